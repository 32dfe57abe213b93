"""What stands at a path, looked at without following a link or waiting for a pipe."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

_PIECE_BYTES = 1 << 18

Kind = Literal["absent", "file", "link", "directory", "other", "unreadable"]


class Seen(msgspec.Struct, frozen=True):
    """What stands at a path: ``digest`` is the SHA-256 of a file's bytes, or a link's target."""

    kind: Kind
    executable: bool = False
    digest: bytes = b""


_Names = Mapping[str, os.DirEntry[str]] | None
ABSENT = Seen("absent")
_UNREADABLE = Seen("unreadable")


def look(top: str, paths: Iterable[str]) -> dict[str, Seen]:
    """What stands at each path below ``top``; content is read each time, for a time stamp proves nothing."""
    known: dict[str, _Names] = {}
    return {path: look_at(top, path, known) for path in paths}


def look_at(top: str, path: str, known: dict[str, _Names]) -> Seen:
    """What stands at one path below ``top``; ``known`` keeps directories that were read for it."""
    directory, _, name = path.rstrip("/").rpartition("/")
    names = _names(top, directory, known)
    if names is None:
        return _UNREADABLE
    entry = names.get(name)
    return seen_entry(entry) if entry else ABSENT


def _names(top: str, directory: str, known: dict[str, _Names]) -> _Names:
    """The entries of a directory, none if a link or anything else took its place; None if it cannot be read."""
    if directory not in known:
        known[directory] = scan(os.path.join(top, directory)) if _is_real(top, directory, known) else {}
    return known[directory]


def _is_real(top: str, directory: str, known: dict[str, _Names]) -> bool:
    if not directory:
        return True
    above, _, name = directory.rpartition("/")
    names = _names(top, above, known)
    return names is None or (name in names and names[name].is_dir(follow_symlinks=False))


def scan(directory: str) -> _Names:
    """The entries of a directory by name; None if it cannot be read."""
    try:
        with os.scandir(directory) as found:
            return {entry.name: entry for entry in found}
    except OSError:
        return None


def seen_entry(entry: os.DirEntry[str]) -> Seen:
    """What an entry of a directory is."""
    try:
        if entry.is_symlink():
            return Seen("link", digest=os.fsencode(os.readlink(entry.path)))
        if entry.is_file(follow_symlinks=False):
            return _seen_file(entry.path)
    except OSError:
        return _UNREADABLE
    return Seen("directory" if entry.is_dir(follow_symlinks=False) else "other")


def _seen_file(path: str) -> Seen:
    file = _open(path)
    try:
        hasher = hashlib.sha256()
        while piece := os.read(file, _PIECE_BYTES):
            hasher.update(piece)
        return Seen("file", bool(os.fstat(file).st_mode & stat.S_IXUSR), hasher.digest())
    finally:
        os.close(file)


def _open(path: str) -> int:
    """Open for reading; a link is refused and a pipe does not block."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def is_directory(path: str) -> bool:
    """Whether a directory stands at ``path`` itself, and no link to one."""
    return identity(path) != ""


def identity(directory: str) -> str:
    """What tells a directory from another one that took its place; "" for anything else."""
    with contextlib.suppress(OSError):
        status = os.lstat(directory)
        if stat.S_ISDIR(status.st_mode):
            return f"{status.st_dev}:{status.st_ino}"
    return ""


def small_file(path: str, limit_bytes: int) -> str | None:
    """The beginning of a regular file as text; None where none can be read."""
    with contextlib.suppress(OSError):
        file = _open(path)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)
            return _read(file, limit_bytes) if regular else None
        finally:
            os.close(file)
    return None


def _read(file: int, limit_bytes: int) -> str:
    with os.fdopen(os.dup(file), "rb") as opened:
        return os.fsdecode(opened.read(limit_bytes))
