"""What set-up need not make again: directories kept from one run to the next for as long as their key files are equal.

An entry is a copy that is made right after set-up, before any check runs, and is copied back before the next set-up.
What names the place it was made in (a virtual environment does) is never kept: it would test the wrong files.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence

import msgspec

from gitevals import __version__
from gitevals.evaluate.plan import Plan
from gitevals.git.kept import delete
from gitevals.git.scratch import Scratch, quoted
from gitevals.git.seen import is_directory
from gitevals.model.contract import Cached, canonical

ENTRIES_LIMIT = 4  # of one path; the one that was used longest ago goes first
SEARCHED_LIMIT_BYTES = 16 << 20  # of one file, for the name of the place it was made in
_PIECE_BYTES = 1 << 20
_UNFINISHED, _LEAVING = ".new-", ".old-"
_ABANDONED_SECONDS = 24 * 3600


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A cached ``path`` of one checkout and the directory ``kept`` for its key; ``fault`` says why there is none."""

    path: str
    kept: str = ""
    fault: str = ""


def entries(folder: str, scratch: Scratch, wanted: Plan) -> tuple[Entry, ...]:
    """Where ``folder`` keeps what set-up is about to make in the fresh checkout."""
    return tuple(_entry(folder, scratch, wanted, cached) for cached in wanted.cache)


def restore(scratch: Scratch, cached: Sequence[Entry]) -> tuple[str, ...]:
    """Copy what is known into the checkout; the paths that were restored."""
    return tuple(entry.path for entry in cached if _is_restored(scratch, entry))


def keep(scratch: Scratch, cached: Sequence[Entry]) -> tuple[str, ...]:
    """Keep what set-up made and is not known yet; what could not be kept, one line each."""
    told = []
    for entry in cached:
        fault = entry.fault or _unkept(scratch, entry)
        if fault:
            told.append(f"cache: {quoted(entry.path)} not kept: {fault}")
    return tuple(told)


def _entry(folder: str, scratch: Scratch, wanted: Plan, cached: Cached) -> Entry:
    if os.path.lexists(os.path.join(scratch.worktree, cached.path)):
        return Entry(path=cached.path, fault="the commit has something of its own there")
    hasher = hashlib.sha256(canonical([__version__, cached, wanted.setup, platform.platform(), platform.machine()]))
    for name in cached.key:
        digest = _digest(scratch, name)
        if digest is None:
            return Entry(path=cached.path, fault=f"its key file {quoted(name)} is absent or no plain file")
        hasher.update(digest)
    family = hashlib.sha256(cached.path.encode()).hexdigest()[:16]
    return Entry(path=cached.path, kept=os.path.join(folder, family, hasher.hexdigest()))


def _digest(scratch: Scratch, name: str) -> bytes | None:
    """SHA-256 of a key file; None for one that is absent, reached through a link, or no plain file."""
    path = os.path.join(scratch.worktree, name)
    if not _is_reached(scratch, name):
        return None
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return hashlib.file_digest(file, "sha256").digest() if regular else None
    except OSError:
        return None


def _is_restored(scratch: Scratch, entry: Entry) -> bool:
    if not entry.kept or not is_directory(entry.kept) or not _is_reached(scratch, entry.path):
        return False
    target = os.path.join(scratch.worktree, entry.path)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copytree(entry.kept, target, symlinks=True)
    except (OSError, shutil.Error):  # a cache that cannot be read is a miss
        delete(target)
        return False
    with contextlib.suppress(OSError):
        os.utime(entry.kept)
    return True


def _unkept(scratch: Scratch, entry: Entry) -> str:
    """Why what set-up made is not kept afterwards; "" if it is."""
    if os.path.lexists(entry.kept):
        return "" if is_directory(entry.kept) else f"{quoted(entry.kept)} is no directory"
    made = os.path.join(scratch.worktree, entry.path)
    if not _is_reached(scratch, entry.path) or not is_directory(made):
        return "set-up made no directory there"
    try:
        named = _names_its_place(made, os.fsencode(scratch.root))
        if named:
            return f"{quoted(named)} names the directory it was made in"
        _keep(made, entry.kept)
    except RecursionError:
        return "it is too deep"
    except (OSError, shutil.Error) as error:
        return "" if is_directory(entry.kept) else _said(error)
    return ""


def _said(error: OSError) -> str:
    """The reason of an error; that of a whole copy holds one for each file."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        source, _, reason = error.args[0][0]
        return f"{quoted(os.path.basename(os.fsdecode(source)))}: {reason}"
    return error.strerror or str(error)


def _is_reached(scratch: Scratch, path: str) -> bool:
    """Whether nothing but real directories stands on the way to ``path``, as far as there is something."""
    here = scratch.worktree
    for part in path.split("/")[:-1]:
        here = os.path.join(here, part)
        if os.path.lexists(here) and not is_directory(here):
            return False
    return True


def _keep(made: str, kept: str) -> None:
    family = os.path.dirname(kept)
    os.makedirs(family, exist_ok=True)
    place = tempfile.mkdtemp(dir=family, prefix=_UNFINISHED)
    try:
        whole = os.path.join(place, "copy")
        shutil.copytree(made, whole, symlinks=True)
        mode = stat.S_IMODE(os.lstat(whole).st_mode)
        os.chmod(whole, mode | 0o700)  # a directory that is read-only cannot be moved
        os.rename(whole, kept)
        os.chmod(kept, mode)
        os.utime(kept)
    finally:
        delete(place)
    _prune(family)


def _prune(family: str) -> None:
    """Forget what was used longest ago, and what commands left that were killed."""
    found = sorted(os.scandir(family), key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
    whole = [entry.path for entry in found if not entry.name.startswith((_UNFINISHED, _LEAVING))]
    for path in whole[: max(0, len(whole) - ENTRIES_LIMIT)]:
        # Moved first: who is copying it then fails, and does not take what is half deleted for all of it.
        leaving = tempfile.mkdtemp(dir=family, prefix=_LEAVING)
        os.rename(path, os.path.join(leaving, "entry"))
        delete(leaving)
    for entry in found:
        is_old = entry.stat(follow_symlinks=False).st_mtime < time.time() - _ABANDONED_SECONDS
        if is_old and entry.name.startswith((_UNFINISHED, _LEAVING)):
            delete(entry.path)


def _names_its_place(top: str, place: bytes) -> str:
    """The first file below ``top`` that holds ``place``, or a link that leads there; "" if there is none."""
    for path in _walk(top):
        if os.path.islink(path):
            if os.path.isabs(os.readlink(path)):
                return os.path.relpath(path, top)
        elif _holds(path, place):
            return os.path.relpath(path, top)
    return ""


def _walk(top: str) -> Iterator[str]:
    for directory, folders, files in os.walk(top):
        yield from (os.path.join(directory, name) for name in sorted(files))
        yield from (path for name in sorted(folders) if os.path.islink(path := os.path.join(directory, name)))


def _holds(path: str, place: bytes) -> bool:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as file:
            before, read = b"", 0
            while read < SEARCHED_LIMIT_BYTES and (piece := file.read(_PIECE_BYTES)):
                if place in before + piece:
                    return True
                before, read = piece[-len(place) :], read + len(piece)
    except OSError:
        return True
    return False
