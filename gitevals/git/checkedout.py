"""One commit put into one work tree, and the proof that nothing else stands there."""

import contextlib
import errno
import filecmp
import os
import re
import stat
import tempfile
from collections.abc import Iterator

import msgspec

from gitevals.errors import BadInput, CannotTell, GitFailed
from gitevals.git import lfs, promised
from gitevals.git.sealed import Scratch, fields

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# Less than this and the next object or index of git does not fit.
_FULL_BYTES = 1 << 16


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """What a proven checkout holds beside ordinary files: ``gitlinks`` maps the paths of submodules to commits."""

    gitlinks: dict[str, str]
    attributes: tuple[str, ...]


def put(scratch: Scratch, commit: str) -> tuple[Scratch, Tracked]:
    """The scratch with ``commit`` checked out, proven equal to its tree, and LFS pointers then filled in."""
    promised.bring(scratch.repo, scratch.sources, [commit])
    switch(scratch, commit)
    scratch.watch.run("read-tree", commit)
    tracked = _proven(scratch, commit)
    filled = lfs.fill(scratch, tracked.attributes)
    return msgspec.structs.replace(scratch, commit=commit, filled=filled), tracked


def switch(scratch: Scratch, commit: str) -> None:
    """Check out ``commit``, detached; a commit that is not here in full raises `BadInput`."""
    try:
        scratch.repo.run("checkout", "-q", "-f", "--detach", commit, "--")
    except GitFailed as error:
        raise explained(scratch, commit, error) from error


def explained(scratch: Scratch, commit: str, error: GitFailed) -> Exception:
    """Why git could not read ``commit``: it is not here, or not all of it is; else what git said."""
    if scratch.repo.run("cat-file", "-e", f"{commit}^{{commit}}", accept=range(256)).status:
        shallow = os.path.exists(os.path.join(scratch.repo.git_dir, "shallow"))
        hint = "the repository is shallow: `git fetch --unshallow`" if shallow else "fetch it first: `git fetch`"
        return BadInput(f"commit {commit} is not in the repository", hint=hint)
    missing = promised.missing(scratch.repo, [commit])
    if missing:
        partial = next((source for source in scratch.sources if promised.is_partial(source)), None)
        hint = promised.hint(partial) if partial else "this brings what a clone lacks: `git fetch --refetch`"
        return BadInput(f"{len(missing)} objects of commit {commit} are not in the repository", hint=hint)
    hint = error.hint or "look for damage with `git fsck`"
    return GitFailed(error.message, status=error.status, stderr=error.stderr, hint=hint)


def _proven(scratch: Scratch, commit: str) -> Tracked:
    """What is tracked; a work tree that is not what a checkout of ``commit`` makes raises `CannotTell`."""
    listed = scratch.watch.run("ls-files", "-z", "-t", "-s", "-d", "-m", "-o").stdout
    odd = [entry for entry in fields(listed) if not entry.startswith("H ")]
    wrong = _really_different(scratch, [_without_stage(entry) for entry in odd])
    if wrong:
        shown = ", ".join(scratch.named(path) for path in wrong[:5])
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise CannotTell(
            f"the checkout of {commit} differs from its tree: {shown}{more}",
            hint="a file system that folds case or lacks links does this: set evals.scratchDir to another one",
        )
    links = re.findall(rb"(?:\A|\0)H 160000 ([0-9a-f]+) 0\t([^\0]+)", listed)
    attributes = re.findall(rb"(?:\A|\0)H 100[0-7]+ [0-9a-f]+ 0\t((?:[^\0]*/)?\.gitattributes)(?=\0)", listed)
    return Tracked(
        gitlinks={os.fsdecode(path): oid.decode() for oid, path in links},
        attributes=tuple(os.fsdecode(path) for path in attributes),
    )


def _without_stage(entry: str) -> str:
    return entry if entry.startswith("? ") else entry[:2] + entry.partition("\t")[2]


def different(scratch: Scratch, *asked: str) -> list[str]:
    """Paths of ``git ls-files <asked>`` that are not what a checkout makes of the commit; needs its fresh index.

    That index knows no time stamp, so content is compared.
    """
    return _really_different(scratch, fields(scratch.watch.run("ls-files", "-z", "-t", *asked).stdout))


def _really_different(scratch: Scratch, tagged: list[str]) -> list[str]:
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


@contextlib.contextmanager
def told(root: str) -> Iterator[None]:
    """Turn what a full or failing disk below ``root`` does to us and to git into a `CannotTell` that says so."""
    hint = "make room, or name another place: `git config evals.scratchDir DIRECTORY`"
    try:
        yield
    except OSError as error:
        raise CannotTell(f"cannot work in {os.path.dirname(root)!r}: {error.strerror}", hint=hint) from error
    except GitFailed as error:
        if not _is_full(root):
            raise
        reason = f"cannot work in {os.path.dirname(root)!r}: {os.strerror(errno.ENOSPC)}"
        raise CannotTell(reason, hint=hint) from error


def _is_full(directory: str) -> bool:
    with contextlib.suppress(OSError):
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize < _FULL_BYTES or (found.f_files > 0 and found.f_favail == 0)
    return False
