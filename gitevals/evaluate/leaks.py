"""What of the caller's environment would lead a check back into a work tree; nothing that is found there is run."""

import functools
import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from gitevals.evaluate import environment, sites
from gitevals.evaluate.sites import Pointer
from gitevals.git import run
from gitevals.git import worktrees as listed
from gitevals.git.repo import Repo
from gitevals.model.contract import Command

LEAKS_LIMIT = 200
PREFIXES_LIMIT = 200
LINKS_LIMIT = 16

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_RUNNERS = ("pytest", "py.test")
# Long interpreter paths are started through `/bin/sh`, as pip writes it.
_INTERPRETER = re.compile(r"""\A#!\s*(?:/bin/sh\n'''exec' )?(?:"(/[^"\n]+)"|(/\S+))""")
_SYSTEM_SITE = re.compile(r"^include-system-site-packages\s*=\s*true\s*$", re.IGNORECASE | re.MULTILINE)
_HOME = re.compile(r"^home\s*=\s*(.+?)\s*$", re.MULTILINE)
_SEPARATORS = (r"[:,;=\s'\"]+", r"[:,;=]", r"[\s'\"]+", r"\Z")
_FLAG = re.compile(r"\A-{1,2}[A-Za-z]+(?=/)")

Ignored = Callable[[Sequence[str]], Collection[str]]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What of the caller's environment a run uses: the PATH for commands, what was left out of it, leaks found.

    ``dropped`` are entries that are relative or inside a work tree and not ignored there; ``leaks`` is a sentence each.
    """

    path: str
    dropped: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()


class _Lead(msgspec.Struct, frozen=True, kw_only=True):
    """A pointer into a work tree, and the folders of the installation that it belongs to."""

    pointer: Pointer
    target: str
    owners: tuple[str, ...]


class _Program(msgspec.Struct, frozen=True, kw_only=True):
    """A link or test runner in a PATH directory, and each file that it leads to in turn."""

    path: str
    name: str
    hops: tuple[str, ...] = ()


def surroundings(inherited: Mapping[str, str], worktrees: Sequence[str], ignored: Ignored) -> Surroundings:
    """What commands get of ``inherited``; ``ignored`` says which of real paths inside ``worktrees`` git ignores."""
    trees = tuple(os.path.realpath(tree) for tree in worktrees)
    entries = (inherited.get("PATH") or environment.DEFAULT_PATH).split(os.pathsep)
    real = {entry: os.path.realpath(entry) for entry in entries if os.path.isabs(entry)}
    home = os.path.realpath(inherited.get("HOME") or "/")
    inside = {place for place in (*real.values(), home) if _innermost(place, trees)}
    astray = inside.difference(ignored(sorted(inside)) if inside else ())
    kept = [entry for entry in entries if entry in real and real[entry] not in astray]
    leaks = [f"HOME leads back to {home}"] if home in astray else []
    # An interpreter finds its virtual environment by the path that it was started by.
    prefixes = [os.path.dirname(entry) for entry in kept if os.path.basename(entry) == "bin"]
    leaks += _along([real[entry] for entry in kept], [*prefixes, *_user_prefixes(home)], trees, ignored)
    return Surroundings(
        path=os.pathsep.join(kept) or environment.DEFAULT_PATH,
        dropped=tuple(dict.fromkeys(_shown(entry or ".") for entry in entries if entry not in kept)),
        leaks=_listed(leaks),
    )


def of_command(command: Command, inherited: Mapping[str, str], worktrees: Sequence[str]) -> tuple[str, ...]:
    """What of the command's ``env`` and ``pass_env`` leads into a work tree; relative paths mean the checkout."""
    trees = tuple(os.path.realpath(tree) for tree in worktrees)
    handed = {name: value for name, value in environment.passed(inherited, command).items() if name not in command.env}
    values = [("env", name, value) for name, value in command.env.items()]
    values += [("pass_env", name, value) for name, value in handed.items()]
    leaks: list[str] = []
    for source, name, value in values:
        leaks += [f"{source} {name} leads back to {target}" for target in _named_in(value, trees)]
        if name == "PATH":
            leaks += _along([os.path.realpath(e) for e in value.split(os.pathsep) if os.path.isabs(e)], [], trees)
        elif name == "PYTHONUSERBASE" and os.path.isabs(value):
            leaks += _along([], [value], trees)
    return _listed(leaks)


def worktrees(repo: Repo) -> tuple[str, ...]:
    """The real paths of the main and all linked work trees; none for a bare repository that has none."""
    found = [repo.worktree or "", *(tree.path for tree in listed.worktrees(repo) if not tree.bare)]
    trees = dict.fromkeys(os.path.realpath(path) for path in found if path)
    # Git names the git directory where that does not lie in the main work tree.
    common = os.path.realpath(repo.common_dir)
    if common in trees:
        del trees[common]
        told = repo.text("config", "--file", os.path.join(common, "config"), "core.worktree", accept=(0, 1))
        trees |= {os.path.realpath(os.path.join(common, told)): None} if told else {}
    return tuple(trees)


def ignored_by_git(repo: Repo, trees: Sequence[str]) -> Ignored:
    """Asks git which real paths inside ``trees`` are ignored there; one that holds tracked files is not."""

    def ask(paths: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for tree in trees:
            # Of work trees inside one another, the inner one knows.
            mine = [path for path in paths if path != tree and _innermost(path, trees) == tree]
            found |= _ignored(repo, tree, mine)
        return found

    return ask


def _ignored(repo: Repo, tree: str, paths: Sequence[str]) -> set[str]:
    if not paths or not os.path.isdir(tree):
        return set()
    arguments = ["check-ignore", "-z", "--stdin"]
    if repo.worktree and os.path.realpath(repo.worktree) == tree:
        arguments = [f"--git-dir={repo.git_dir}", f"--work-tree={tree}", *arguments]
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    done = run.run(arguments, env=repo.env, cwd=tree, stdin=stdin, accept=(0, 1, 128))
    if done.status != 128:
        return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}
    # Git gives up at the first path in a submodule: to this work tree, that one is tracked.
    return set().union(*(_ignored(repo, tree, [path]) for path in paths)) if len(paths) > 1 else set()


def _along(
    directories: Sequence[str], prefixes: Sequence[str], trees: Sequence[str], ignored: Ignored = lambda _: ()
) -> list[str]:
    """What the programs in ``directories`` and the packages below ``prefixes`` lead to, a sentence each."""
    real = functools.cache(os.path.realpath)
    leads: list[_Lead] = []
    reached = dict.fromkeys(prefixes)
    for directory in dict.fromkeys(directories):
        parent, name = os.path.split(directory)
        programs = _programs(directory, real)
        pointers = _linked(programs, trees)
        if name == ".bin":
            pointers = itertools.chain(pointers, sites.of_node(parent))
        leads += _leads(pointers, (directory, parent), trees, real)
        reached |= dict.fromkeys(_prefixes(directory, programs))
    with_bases = dict.fromkeys(itertools.chain.from_iterable((prefix, *_base(prefix)) for prefix in reached))
    bounded = itertools.islice(with_bases, PREFIXES_LIMIT)
    owners = {place: real(prefix) for prefix in bounded for place in sites.places(prefix)}
    for place, owner in owners.items():
        leads += _leads(sites.pointers(place, trees), (owner,), trees, real)
    return [_told(lead) for lead in _foreign(leads, trees, ignored)]


def _leads(
    pointers: Iterator[Pointer], owners: tuple[str, ...], trees: Sequence[str], real: Callable[[str], str]
) -> Iterator[_Lead]:
    for pointer in pointers:
        target = _resolved(pointer.target, real)
        tree = _innermost(target, trees)
        # What a package manager put into `node_modules` may be linked about there.
        if tree and sites.NODE_MODULES not in target.removeprefix(tree).split("/"):
            yield _Lead(pointer=pointer, target=target, owners=owners)


def _foreign(leads: Sequence[_Lead], trees: Sequence[str], ignored: Ignored) -> list[_Lead]:
    """The leads that leave their own installation, as far as that is a folder which git ignores."""
    own = [tuple(owner for owner in lead.owners if _holds(owner, lead.target, trees)) for lead in leads]
    # The ignore file that hides a virtual environment may lie in it; then git ignores its files, but not the folder.
    probes = {owner: os.path.join(owner, "pyvenv.cfg") for owners in own for owner in owners}
    hidden = ignored(sorted(probes.values())) if probes else ()
    pairs = zip(leads, own, strict=True)
    return [lead for lead, owners in pairs if not any(probes[owner] in hidden for owner in owners)]


def _holds(owner: str, target: str, trees: Sequence[str]) -> bool:
    return owner not in trees and _innermost(owner, trees) != "" and _innermost(target, [owner]) != ""


def _programs(directory: str, real: Callable[[str], str]) -> list[_Program]:
    entries = [entry for entry in sites.scan(directory) if entry.is_symlink() or entry.name in _RUNNERS]
    return [_Program(path=entry.path, name=entry.name, hops=tuple(_hops(entry.path, real))) for entry in entries]


def _hops(link: str, real: Callable[[str], str]) -> Iterator[str]:
    """Each file that a link leads to in turn, its folder resolved."""
    for _ in range(LINKS_LIMIT):
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError:
            return
        folder, name = os.path.split(target)
        link = os.path.join(real(folder), name) if name not in ("", ".", "..") else real(target)
        yield link


def _linked(programs: Sequence[_Program], trees: Sequence[str]) -> Iterator[Pointer]:
    """Programs that are links; one to a program of a virtual environment is judged by what is installed there."""
    virtual = functools.cache(_is_virtual)
    for program in programs:
        prefix = _prefix_of(program.hops[-1]) if program.hops else ""
        if program.hops and (prefix in trees or not virtual(prefix)):
            yield Pointer(source=program.path, target=program.hops[-1])


def _prefixes(directory: str, programs: Sequence[_Program]) -> Iterator[str]:
    """Where programs of a PATH directory look for their packages."""
    parent, name = os.path.split(directory)
    if name == "bin":
        yield parent
    if name == "shims":  # of pyenv, asdf, mise: scripts that start one of the installed versions
        for versions in ("versions", "installs/python"):
            yield from (entry.path for entry in sites.scan(os.path.join(parent, versions)))
    linked: dict[str, bool] = {}
    for program in programs:
        is_python = _PYTHON.fullmatch(program.name) is not None
        for hop in program.hops:
            linked[_prefix_of(hop)] = linked.get(_prefix_of(hop), False) or is_python
        if not program.hops and (found := _INTERPRETER.match(sites.text_of(program.path))):
            linked[_prefix_of(found[1] or found[2])] = True
    # The interpreter of a virtual environment is a link to one whose packages it does not see; `_base` knows better.
    follows = name != "bin" or not _is_virtual(parent)
    yield from (prefix for prefix, is_python in linked.items() if (is_python and follows) or _is_virtual(prefix))


def _prefix_of(program: str) -> str:
    return os.path.dirname(os.path.dirname(program))


def _base(prefix: str) -> list[str]:
    """The prefix of the interpreter whose packages a virtual environment sees too."""
    told = sites.text_of(os.path.join(prefix, "pyvenv.cfg"))
    home = _HOME.search(told) if _SYSTEM_SITE.search(told) else None
    return [os.path.dirname(os.path.realpath(home[1]))] if home else []


def _is_virtual(prefix: str) -> bool:
    return os.path.isfile(os.path.join(prefix, "pyvenv.cfg"))


def _user_prefixes(home: str) -> list[str]:
    frameworks = sites.scan(os.path.join(home, "Library", "Python"))
    return [os.path.join(home, ".local"), *(entry.path for entry in frameworks)]


def _named_in(value: str, trees: Sequence[str]) -> list[str]:
    """The places in work trees that a variable's value names, resolved; blanks and colons may be part of a path."""
    for pattern in _SEPARATORS:
        pieces = [_FLAG.sub("", piece.strip()) for piece in re.split(pattern, value)]
        paths = [piece for piece in pieces if piece.startswith("/")]
        places = dict.fromkeys(_resolved(path, os.path.realpath) for path in (*paths, *sites.file_urls(value)))
        if found := [place for place in places if _innermost(place, trees)]:
            return found
    return []


def _resolved(path: str, real: Callable[[str], str]) -> str:
    try:
        return real(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def _innermost(path: str, trees: Sequence[str]) -> str:
    """The work tree that ``path`` lies in, or nothing."""
    return max((tree for tree in trees if path == tree or path.startswith(tree.rstrip("/") + "/")), key=len, default="")


def _told(lead: _Lead) -> str:
    if lead.pointer.copied:
        return f"{lead.pointer.source} tells of a copy of {lead.target}, which may be tested in place of the checkout"
    return f"{lead.pointer.source} leads back to {lead.target}"


def _listed(leaks: Sequence[str]) -> tuple[str, ...]:
    return tuple(itertools.islice(dict.fromkeys(_shown(leak) for leak in leaks), LEAKS_LIMIT))


def _shown(text: str) -> str:
    """Text that a record can hold, whatever bytes a path has."""
    return os.fsencode(text).decode("utf-8", "replace")
