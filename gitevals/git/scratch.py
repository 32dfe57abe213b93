"""Throw-away repositories beside the user's: they read its objects and can touch nothing of it."""

import contextlib
import filecmp
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping

import msgspec

from gitevals.errors import BadInput, CannotTell, GitFailed
from gitevals.git import run
from gitevals.git.repo import Repo

_WHO = "git-evals"
_EMAIL = "scratch@git-evals.invalid"
_EPOCH = "@946684800 +0000"

# Outranks every configuration file, so that neither the user's defaults nor a file in the scratch steers our commands.
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.ignoreStat": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_SEALED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DEFAULT_REF_FORMAT": "files",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_AUTHOR_NAME": _WHO,
    "GIT_AUTHOR_EMAIL": _EMAIL,
    "GIT_AUTHOR_DATE": _EPOCH,
    "GIT_COMMITTER_NAME": _WHO,
    "GIT_COMMITTER_EMAIL": _EMAIL,
    "GIT_COMMITTER_DATE": _EPOCH,
    "XDG_CONFIG_HOME": "/dev/null",
    "LC_ALL": "C",
}


class Scratch(msgspec.Struct, frozen=True, kw_only=True):
    """A throw-away repository below ``root``; ``commit`` is what `checkout` put there ("" before).

    ``repo`` is the repository in ``worktree`` and is for use before foreign code ran in it; ``watch`` is our own git
    directory and index over the same work tree. Both use ``env``, which no configuration of the user's reaches.
    """

    root: str
    worktree: str
    watch_dir: str
    commit: str
    repo: Repo
    watch: Repo
    env: dict[str, str]


def _never() -> bool:
    return False


@contextlib.contextmanager
def scratch(repo: Repo, *, directory: str | None = None, keep: Callable[[], bool] = _never) -> Iterator[Scratch]:
    """An empty scratch repository over the objects of ``repo``, removed afterwards unless ``keep()`` then says so.

    It stands in ``directory``, else in TMPDIR, and never below the work tree of a repository.
    """
    root = _place(repo, directory)
    try:
        yield _make(repo, root)
    finally:
        if not keep():
            remove(root)


def _place(repo: Repo, directory: str | None) -> str:
    parent = os.path.realpath(directory or repo.env.get("TMPDIR") or tempfile.gettempdir())
    hint = "name a directory outside of every work tree: `git config evals.scratchDir DIRECTORY`"
    above = _worktree_above(parent, repo.worktree)
    if above:
        raise BadInput(f"scratch directory {quoted(parent)} lies in the work tree {quoted(above)}", hint=hint)
    try:
        os.makedirs(parent, exist_ok=True)
        return tempfile.mkdtemp(prefix="git-evals-", dir=parent)
    except OSError as error:
        raise BadInput(f"cannot use {quoted(parent)} for scratch directories: {error.strerror}", hint=hint) from error


def _worktree_above(path: str, known: str | None) -> str | None:
    known = known and os.path.realpath(known)
    while True:
        git = os.path.join(path, ".git")
        if path == known or os.path.isfile(git) or os.path.exists(os.path.join(git, "HEAD")):
            return path
        if path == (path := os.path.dirname(path)):
            return None


def _make(repo: Repo, root: str) -> Scratch:
    worktree, watch_dir = os.path.join(root, "work"), os.path.join(root, "watch")
    env = _sealed(repo.env)
    arguments = ("--template=", "--initial-branch=scratch", f"--object-format={repo.object_format}", worktree)
    run.run(["init", "-q", *arguments], env=env, cwd=root)
    git_dir = os.path.join(worktree, ".git")
    stores = _object_stores(repo)
    _write(os.path.join(git_dir, "objects", "info", "alternates"), _lines(stores))
    _write(os.path.join(git_dir, "packed-refs"), _tags(repo))
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(os.path.join(repo.common_dir, "shallow"), os.path.join(git_dir, "shallow"))
    _make_watch(git_dir, watch_dir, [*stores, os.path.join(git_dir, "objects")])
    inner = Repo(git_dir=git_dir, common_dir=git_dir, worktree=worktree, object_format=repo.object_format, env=env)
    watch = msgspec.structs.replace(inner, git_dir=watch_dir, common_dir=watch_dir)
    return Scratch(root=root, worktree=worktree, watch_dir=watch_dir, commit="", repo=inner, watch=watch, env=env)


def apart(repo: Repo, place: str) -> Repo:
    """A git directory in the empty ``place`` that reads the objects of ``repo`` and knows nothing else of it."""
    root = os.path.join(place, "apart")
    env = _sealed(repo.env)
    run.run(["init", "-q", "--bare", "--template=", f"--object-format={repo.object_format}", root], env=env, cwd=place)
    os.makedirs(os.path.join(root, "objects", "info"), exist_ok=True)
    _write(os.path.join(root, "objects", "info", "alternates"), _lines(_object_stores(repo)))
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(os.path.join(repo.common_dir, "shallow"), os.path.join(root, "shallow"))
    return Repo(git_dir=root, common_dir=root, worktree=None, object_format=repo.object_format, env=env)


def _make_watch(git_dir: str, watch_dir: str, stores: list[str]) -> None:
    for name in ("refs", "objects/info"):
        os.makedirs(os.path.join(watch_dir, name))
    shutil.copyfile(os.path.join(git_dir, "config"), os.path.join(watch_dir, "config"))
    _write(os.path.join(watch_dir, "HEAD"), b"ref: refs/heads/watch\n")
    _write(os.path.join(watch_dir, "objects", "info", "alternates"), _lines(stores))


def _sealed(inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name == "GIT_EXEC_PATH"}
    config = {"GIT_CONFIG_COUNT": str(len(_CONFIG))}
    for number, (key, value) in enumerate(_CONFIG.items()):
        config |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**kept, **_SEALED, **config}


def _object_stores(repo: Repo) -> list[str]:
    """Absolute object directories of ``repo``; in a push's quarantine its own comes first."""
    here = repo.worktree or repo.git_dir
    quarantine = [path for path in (repo.env.get("GIT_OBJECT_DIRECTORY"),) if path]
    found = [*quarantine, *_alternates(repo.env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))]
    return list(dict.fromkeys(os.path.join(here, path) for path in [*found, os.path.join(repo.common_dir, "objects")]))


def _alternates(listed: str) -> list[str]:
    """The entries of GIT_ALTERNATE_OBJECT_DIRECTORIES: colon-separated, C-quoted if they start with a quote."""
    entries = re.findall(r'"(?:[^"\\]|\\.)*"|[^:]+', listed, re.DOTALL)
    return [_unquoted(entry) if entry.startswith('"') else entry for entry in entries]


def _unquoted(entry: str) -> str:
    named = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return os.fsdecode(bytes([int(code, 8) & 0xFF])) if code.isdigit() else named.get(code, code)

    return os.fsdecode(os.fsencode(re.sub(r"\\([0-7]{3}|.)", plain, entry[1:-1], flags=re.DOTALL)))


def quoted(path: str) -> str:
    """``path`` as git shows it: in quotes with C escapes if it holds anything that would not print as itself."""
    if path.isprintable() and not any(char in path for char in '"\\'):
        return path
    shown = (char if char.isprintable() and char not in '"\\' else _octal(char) for char in path)
    return f'"{"".join(shown)}"'


def _octal(char: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def _lines(stores: list[str]) -> bytes:
    lines = (path if path.isprintable() and not path.startswith(('"', "#")) else quoted(path) for path in stores)
    return os.fsencode("".join(f"{line}\n" for line in lines))


def _tags(repo: Repo) -> bytes:
    return repo.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/").stdout


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def remove(root: str) -> None:
    """Delete a scratch directory, read-only parts too, following no link; what resists even that is left behind."""
    for _ in range(3):
        shutil.rmtree(root, ignore_errors=True)
        if not os.path.lexists(root):
            return
        with contextlib.suppress(OSError, RecursionError):
            _unlock(root)


def _unlock(directory: str) -> None:
    os.chmod(directory, 0o700)
    with os.scandir(directory) as entries:
        inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for path in inner:
        _unlock(path)


def checkout(scratch: Scratch, commit: str) -> Scratch:
    """The scratch with ``commit`` checked out, detached, and the work tree proven equal to the commit's tree."""
    switch(scratch, commit)
    scratch.watch.run("read-tree", commit)
    wrong = different(scratch, "-d", "-m", "-o")
    if wrong:
        shown = ", ".join(quoted(path) for path in wrong[:5])
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise CannotTell(
            f"the checkout of {commit} differs from its tree: {shown}{more}",
            hint="a file system that folds case or lacks links does this: set evals.scratchDir to another one",
        )
    return msgspec.structs.replace(scratch, commit=commit)


def switch(scratch: Scratch, commit: str) -> None:
    """Check out ``commit``, detached; a commit that is not here in full raises `BadInput`."""
    try:
        scratch.repo.run("checkout", "-q", "-f", "--detach", commit, "--")
    except GitFailed as error:
        raise explained(scratch, commit, error) from error


def explained(scratch: Scratch, commit: str, error: GitFailed) -> Exception:
    """Why git could not read ``commit``: it is not here, or not all of it is; else ``error`` itself."""
    hint = "fetch it first: `git fetch`"
    if os.path.exists(os.path.join(scratch.repo.git_dir, "shallow")):
        hint = "the repository is shallow: `git fetch --unshallow`"
    if scratch.repo.run("cat-file", "-e", f"{commit}^{{commit}}", accept=range(256)).status:
        return BadInput(f"commit {commit} is not in the repository", hint=hint)
    asked = ("--objects", "--no-walk", "--missing=print", commit)
    listed = scratch.repo.run("rev-list", *asked, accept=range(256)).stdout
    missing = [line for line in listed.splitlines() if line.startswith(b"?")]
    if missing:
        return BadInput(f"{len(missing)} objects of commit {commit} are not in the repository", hint=hint)
    return error


def different(scratch: Scratch, *asked: str) -> list[str]:
    """Paths of ``git ls-files <asked>`` that are not what a checkout makes of the commit; needs its fresh index.

    That index knows no time stamp, so content is compared.
    """
    tagged = fields(scratch.watch.run("ls-files", "-z", "-t", *asked).stdout)
    modified = {entry[2:] for entry in tagged if entry.startswith("C ")}
    wrong = {entry[2:] for entry in tagged if not entry.startswith("C ")}
    return sorted(wrong | _unlike_a_second_checkout(scratch, modified - wrong))


def _unlike_a_second_checkout(scratch: Scratch, paths: set[str]) -> set[str]:
    """Those of ``paths`` that really differ: to git, content that breaks its own ``text`` always looks modified."""
    if not paths:
        return set()
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    with tempfile.TemporaryDirectory(dir=scratch.root) as second:
        scratch.watch.run("checkout-index", "-q", f"--prefix={second}/", "-z", "--stdin", stdin=listed)
        return {path for path in paths if not _alike(os.path.join(second, path), os.path.join(scratch.worktree, path))}


def _alike(one: str, other: str) -> bool:
    modes = [os.lstat(path).st_mode for path in (one, other)]
    return modes[0] == modes[1] and stat.S_ISREG(modes[0]) and filecmp.cmp(one, other, shallow=False)


def fields(output: bytes) -> list[str]:
    """The parts of a ``-z`` output, as text that goes back to the same bytes."""
    return [os.fsdecode(field) for field in output.split(b"\0") if field]
