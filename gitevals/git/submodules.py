"""Submodules of a checkout: each a repository of its own over what the user's clone already has of it."""

import contextlib
import os
import shlex
import shutil
import stat
from collections.abc import Iterator, Sequence

import msgspec

from gitevals.errors import BadInput
from gitevals.git import checkedout, gitmodules
from gitevals.git.checkedout import Tracked
from gitevals.git.repo import Repo
from gitevals.git.sealed import Scratch, borrow, fields, make_watch, quoted, tags, write
from gitevals.git.seen import is_directory

_GITFILE_LIMIT_BYTES = 1 << 16
# What a push or a surrounding git says about *its* repository, not about a submodule's.
_OF_THE_OUTER = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
_DEEPEST = 32


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    commit: str
    name: str


def populate(top: Scratch, tracked: Tracked) -> Scratch:
    """``top`` with every submodule of its commit populated from the local stores, at every depth.

    A gitlink that ``.gitmodules`` does not name, and a submodule that is switched off, stay empty as in any clone. One
    that is not there locally, or whose name or path could lead elsewhere, raises `BadInput`.
    """
    return msgspec.structs.replace(top, inner=tuple(_below(top, top, tracked, depth=0)))


def clear(top: Scratch) -> None:
    """Empty the places of all submodules, so that the next checkout finds none."""
    for module in top.inner:
        shutil.rmtree(module.worktree, ignore_errors=True)
        shutil.rmtree(module.watch_dir, ignore_errors=True)
    shutil.rmtree(os.path.join(top.repo.git_dir, "modules"), ignore_errors=True)


@contextlib.contextmanager
def lent(scratch: Scratch) -> Iterator[None]:
    """For a while, let git in the scratch read the commits of the submodules that its index holds, as a merge asks for.

    What is not in the local stores is missing there too, as it would be in the user's own merge.
    """
    entries = [entry.partition("\t") for entry in fields(scratch.repo.run("ls-files", "-z", "-s").stdout)]
    known = gitmodules.read(scratch, {path for mode, _, path in entries if mode.startswith("160000 ")})
    try:
        for path, name in known.names.items():
            sources = tuple(_stores(scratch.sources, name, path))
            if sources:
                _repository(scratch, scratch, path, name, sources)
        yield
    finally:
        clear(scratch)


def _below(top: Scratch, outer: Scratch, tracked: Tracked, *, depth: int) -> Iterator[Scratch]:
    if not tracked.gitlinks:
        return
    if depth == _DEEPEST:
        raise BadInput(f"submodule {quoted(outer.path)} lies more than {_DEEPEST} submodules deep")
    known = gitmodules.read(outer, tracked.gitlinks)
    off = gitmodules.switched_off(outer, known)
    for path, commit in sorted(tracked.gitlinks.items()):
        each = _Wanted(path=path, commit=commit, name=known.names.get(path, ""))
        _refuse_detours(outer, each.path)
        if not each.name or each.path in off:
            yield _empty(top, outer, each)
            continue
        module, its = _populated(top, outer, each)
        yield module
        yield from _below(top, module, its, depth=depth + 1)


def _refuse_detours(outer: Scratch, path: str) -> None:
    """A submodule's place is an empty directory below nothing but directories; the checkout made it so."""
    if not _is_plain(outer.worktree, path):
        raise BadInput(f"submodule {outer.named(path)} lies behind something that is no directory")
    if os.listdir(os.path.join(outer.worktree, path)):
        raise BadInput(f"the place of submodule {outer.named(path)} is not empty")


def _is_plain(top: str, path: str) -> bool:
    """Whether ``path`` and all above it, up to ``top``, are directories and no links."""
    parts = path.split("/")
    return all(is_directory(os.path.join(top, *parts[: count + 1])) for count in range(len(parts)))


def _populated(top: Scratch, outer: Scratch, wanted: _Wanted) -> tuple[Scratch, Tracked]:
    path = os.path.join(outer.path, wanted.path)
    sources = tuple(_stores(outer.sources, wanted.name, wanted.path))
    option = "--recursive " if outer.path else ""
    shown = shlex.quote(path if not outer.path else _top_level(top, outer.path))
    update = f"git submodule update --init {option}{shown}"
    if not sources:
        raise BadInput(f"submodule {quoted(path)} is not in the local repository", hint=f"fetch it first: `{update}`")
    module = _made(top, outer, wanted, sources)
    try:
        return checkedout.put(module, wanted.commit)
    except BadInput as error:
        fetch = f"git -C {shlex.quote(path)} fetch origin {wanted.commit}"
        raise BadInput(f"submodule {quoted(path)}: {error.message}", hint=f"`{update}`, then `{fetch}`") from error


def _top_level(top: Scratch, path: str) -> str:
    """The part of a nested submodule's path that is a submodule of the outermost repository."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        if os.path.lexists(os.path.join(top.worktree, *parts[:count], ".git")):
            return "/".join(parts[:count])
    return path


def _stores(sources: Sequence[Repo], name: str, path: str) -> Iterator[Repo]:
    """The local repositories of the submodule: absorbed ones of this and other work trees, then one in place."""
    seen: set[str] = set()
    for source in sources:
        places = [source.git_dir, source.common_dir, *_linked(source.common_dir)]
        found = [os.path.join(place, "modules", name) for place in places]
        worktree = None
        if source.worktree and _is_plain(source.worktree, path):
            worktree = os.path.join(source.worktree, path)
            found.append(_in_place(worktree))
        for git_dir in found:
            real = os.path.realpath(git_dir) if git_dir else ""
            if real not in seen and _is_repository(real):
                seen.add(real)
                yield _store(source, real, worktree)


def _linked(common_dir: str) -> list[str]:
    with contextlib.suppress(OSError):
        place = os.path.join(common_dir, "worktrees")
        return [os.path.join(place, name) for name in sorted(os.listdir(place))]
    return []


def _in_place(worktree: str) -> str:
    """The git directory of a submodule that stands in the user's work tree; "" if there is none."""
    git = os.path.join(worktree, ".git")
    with contextlib.suppress(OSError):
        mode = os.lstat(git).st_mode
        if stat.S_ISDIR(mode):
            return git
        said = _line(git) if stat.S_ISREG(mode) else ""
        return os.path.join(worktree, said.removeprefix("gitdir: ")) if said.startswith("gitdir: ") else ""
    return ""


def _line(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(_GITFILE_LIMIT_BYTES).rstrip("\r\n")


def _is_repository(git_dir: str) -> bool:
    return bool(git_dir) and os.path.isfile(os.path.join(git_dir, "HEAD"))


def _store(source: Repo, git_dir: str, worktree: str | None) -> Repo:
    common_dir = git_dir
    with contextlib.suppress(OSError):
        common_dir = os.path.join(git_dir, _line(os.path.join(git_dir, "commondir")))
    env = {name: value for name, value in source.env.items() if name not in _OF_THE_OUTER}
    # Its configured core.worktree need not exist any more, and none of our commands looks at one.
    return Repo(
        git_dir=git_dir,
        common_dir=common_dir,
        worktree=worktree,
        object_format=source.object_format,
        env=env | {"GIT_WORK_TREE": git_dir},
    )


def _made(top: Scratch, outer: Scratch, wanted: _Wanted, sources: tuple[Repo, ...]) -> Scratch:
    """A repository where git would keep it, known to the outer one as active; neither has a remote."""
    git_dir, stores = _repository(top, outer, wanted.path, wanted.name, sources)
    worktree = os.path.join(outer.worktree, wanted.path)
    write(os.path.join(git_dir, "packed-refs"), tags(sources[0]))
    link = f"gitdir: {os.path.relpath(git_dir, worktree)}\n"
    write(os.path.join(worktree, ".git"), link.encode(errors="surrogateescape"))
    known = f"[submodule {_value(wanted.name)}]\n\tactive = true\n"
    with open(os.path.join(outer.repo.git_dir, "config"), "ab") as config:
        config.write(known.encode(errors="surrogateescape"))
    return _scratch(top, outer, wanted, git_dir, [*stores, os.path.join(git_dir, "objects")], sources)


def _repository(top: Scratch, outer: Scratch, path: str, name: str, sources: Sequence[Repo]) -> tuple[str, list[str]]:
    """A new git directory under ``modules`` of the outer one, and the object directories that it reads."""
    git_dir = os.path.join(outer.repo.git_dir, "modules", *name.split("/"))
    os.makedirs(os.path.join(git_dir, "refs"))
    place = _value(os.path.relpath(os.path.join(outer.worktree, path), git_dir))
    own = f"[core]\n\tworktree = {place}\n".encode(errors="surrogateescape")
    write(os.path.join(git_dir, "config"), _config_of(top) + own)
    write(os.path.join(git_dir, "HEAD"), b"ref: refs/heads/scratch\n")
    return git_dir, borrow(git_dir, sources)


def _empty(top: Scratch, outer: Scratch, wanted: _Wanted) -> Scratch:
    git_dir = os.path.join(outer.worktree, wanted.path, ".git")
    return _scratch(top, outer, wanted, git_dir, [], ())


def _scratch(
    top: Scratch, outer: Scratch, wanted: _Wanted, git_dir: str, stores: list[str], sources: tuple[Repo, ...]
) -> Scratch:
    worktree = os.path.join(outer.worktree, wanted.path)
    watch_dir = _watch_dir(top)
    make_watch(watch_dir, _config_of(top), stores)
    repo = msgspec.structs.replace(top.repo, git_dir=git_dir, common_dir=git_dir, worktree=worktree)
    watch = msgspec.structs.replace(repo, git_dir=watch_dir, common_dir=watch_dir)
    return msgspec.structs.replace(
        top,
        worktree=worktree,
        watch_dir=watch_dir,
        commit="",
        repo=repo,
        watch=watch,
        sources=sources,
        path=os.path.join(outer.path, wanted.path),
        filled=frozenset(),
        inner=(),
    )


def _watch_dir(top: Scratch) -> str:
    number = 1
    while os.path.lexists(place := f"{top.watch_dir}-{number}"):
        number += 1
    return place


def _config_of(top: Scratch) -> bytes:
    with open(os.path.join(top.watch_dir, "config"), "rb") as file:
        return file.read()


def _value(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
