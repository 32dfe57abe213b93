"""Frozen graders, put in place of whatever a change has at their paths while a check runs, and taken away again."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence

import msgspec

from gitevals.errors import CannotTell, GitFailed
from gitevals.git import promised
from gitevals.git.kept import delete
from gitevals.git.scratch import Scratch, quoted, told
from gitevals.git.seen import ABSENT, Seen, is_directory, look
from gitevals.model.contract import outermost

_OURS = 0o700


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Graders that are in place: ``files`` maps each path below ``top`` to what was put there."""

    top: str
    files: dict[str, Seen]

    def altered(self) -> tuple[str, ...]:
        """What became of them since, one line each; ignore rules of the change hide nothing here."""
        now = look(self.top, self.files)
        return tuple(
            f"grader {'deleted' if now[path] == ABSENT else 'modified'}: {quoted(path)}"
            for path, placed in self.files.items()
            if now[path] != placed
        )


@contextlib.contextmanager
def in_place(scratch: Scratch, tree: str, paths: Sequence[str]) -> Iterator[Placed]:
    """The checkout with the content of ``tree`` at ``paths``, and at nothing else; afterwards it is as before.

    What stands at a path, or a link or file where a directory has to be, is moved aside, never followed.
    """
    wanted = outermost(paths)
    with contextlib.ExitStack() as stack:
        try:
            with told(scratch.root):
                placed = _placed(scratch, tree, wanted, stack)
        except GitFailed as error:
            hint = "look for what is missing with `git fsck`; fetching the contracts again brings what was lost"
            raise CannotTell(f"the frozen graders cannot be checked out: {error.message}", hint=hint) from error
        yield placed


def _placed(scratch: Scratch, tree: str, paths: Sequence[str], stack: contextlib.ExitStack) -> Placed:
    aside = tempfile.mkdtemp(prefix="aside-", dir=scratch.root)
    stack.callback(delete, aside)
    apart = _checked_out(scratch, tree, aside)
    files = sorted(_files(apart, paths))
    for path in paths:
        _clear(scratch.worktree, path, aside, stack)
        os.rename(os.path.join(apart, path), os.path.join(scratch.worktree, path))
        stack.callback(_open_again, scratch.worktree, path)
    return Placed(top=scratch.worktree, files=look(scratch.worktree, files))


def beside(scratch: Scratch, paths: Sequence[str]) -> Scratch:
    """``scratch`` without the submodules that graders at ``paths`` took the place of."""
    wanted = outermost(paths)
    left = [each for each in scratch.inner if not any(f"{each.path}/".startswith(f"{path}/") for path in wanted)]
    return msgspec.structs.replace(scratch, inner=tuple(left))


def _checked_out(scratch: Scratch, tree: str, aside: str) -> str:
    """A directory with the content of ``tree``, made by its own attributes and nobody's of the change."""
    promised.bring(scratch.watch, scratch.sources, [tree])
    apart = os.path.join(aside, "graders")
    os.mkdir(apart)
    env = {**scratch.watch.env, "GIT_INDEX_FILE": f"{apart}.index"}
    own = msgspec.structs.replace(scratch.watch, worktree=apart, env=env)
    own.run("read-tree", tree)
    own.run("checkout-index", "-q", "-a", "-f")
    return apart


def _files(top: str, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        full = os.path.join(top, path)
        if not os.path.isdir(full):
            yield path
        for directory, _, names in os.walk(full):
            yield from (os.path.relpath(os.path.join(directory, name), top) for name in names)


def _clear(top: str, path: str, aside: str, stack: contextlib.ExitStack) -> None:
    """Make room at ``path``: real directories above it, nothing at it."""
    _open(top, "", stack)
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        full = os.path.join(top, here)
        above = depth < len(parts)
        if is_directory(full):
            _open(top, here, stack)
            if above:
                continue
        if os.path.lexists(full):
            _move_aside(top, here, aside, stack)
        if above:
            os.mkdir(full)
        stack.callback(_remove, top, here)


def _open(top: str, path: str, stack: contextlib.ExitStack) -> None:
    """Let entries of a directory be changed, and let it be moved; its mode is as before when the stack has unwound."""
    full = os.path.join(top, path)
    mode = stat.S_IMODE(os.lstat(full).st_mode)
    stack.callback(_set_mode, top, path, mode)
    if mode & _OURS != _OURS:
        os.chmod(full, mode | _OURS)


def _open_again(top: str, path: str) -> None:
    """Undo what a check did to the modes of the directories above ``path``."""
    parts = path.split("/")[:-1]
    for depth in range(len(parts) + 1):
        _set_mode(top, "/".join(parts[:depth]), _OURS)


def _set_mode(top: str, path: str, mode: int) -> None:
    full = os.path.join(top, path)
    if _is_reached(top, path) and is_directory(full):
        with contextlib.suppress(OSError):
            os.chmod(full, mode)


def _move_aside(top: str, path: str, aside: str, stack: contextlib.ExitStack) -> None:
    kept = os.path.join(tempfile.mkdtemp(dir=aside), "kept")
    os.rename(os.path.join(top, path), kept)
    stack.callback(_put_back, kept, top, path)


def _put_back(kept: str, top: str, path: str) -> None:
    with contextlib.suppress(OSError):  # what a check did to the way there was seen as a change of the source
        if _is_reached(top, path):
            os.rename(kept, os.path.join(top, path))


def _remove(top: str, path: str) -> None:
    """Delete what stands at ``path``, unless the way there leads out of the checkout by now."""
    full = os.path.join(top, path)
    if not _is_reached(top, path):
        return
    if is_directory(full):
        delete(full)
    else:
        with contextlib.suppress(OSError):
            os.unlink(full)


def _is_reached(top: str, path: str) -> bool:
    """Whether the way to ``path`` goes through real directories alone."""
    parts = path.split("/")[:-1]
    return all(is_directory(os.path.join(top, *parts[:depth])) for depth in range(len(parts) + 1))
