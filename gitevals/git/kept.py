"""Scratch directories that outlived their command: marked when they are made, found again, removed."""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from gitevals.git.repo import Repo
from gitevals.git.sealed import write

PREFIX = "git-evals-"
_MARKER = "scratch.json"
_MARKER_LIMIT_BYTES = 1 << 14
_BLOCK_BYTES = 512
_SHALLOW = 8  # that many longest names are still a path that the system takes


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A scratch directory at ``path``; ``started`` is RFC 3339, ``running`` that the command which made it goes on."""

    path: str
    started: str
    running: bool
    size_bytes: int


class _Marker(msgspec.Struct, frozen=True, kw_only=True):
    """``repository`` is the common directory as hexadecimal bytes; the process holds a lock on the marker if it can."""

    repository: str
    pid: int
    process_started: str
    started: str
    locked: bool


@contextlib.contextmanager
def marked(repo: Repo, root: str) -> Iterator[None]:
    """Mark ``root`` as a scratch of ``repo`` that is in use until the context, or this process, ends."""
    path = os.path.join(root, _MARKER)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        locked = _lock(file)
        started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        marker = _Marker(
            repository=_identity(repo.common_dir),
            pid=os.getpid(),
            process_started=_process_started(os.getpid()),
            started=started,
            locked=locked,
        )
        os.write(file, msgspec.json.encode(marker))
        _remember(repo, os.path.dirname(root))
        yield
    finally:
        os.close(file)


def left_behind(repo: Repo, directory: str | None) -> tuple[Left, ...]:
    """The scratch directories of ``repo`` in ``directory``, in TMPDIR, and wherever earlier ones were made.

    Only real directories that belong to this user, under a scratch's name and directly in such a place, count.
    """
    parents = [directory, repo.env.get("TMPDIR"), tempfile.gettempdir(), *_remembered(repo)]
    places = dict.fromkeys(os.path.realpath(parent) for parent in parents if parent)
    found = [left for place in places for left in _left_in(place, _identity(repo.common_dir))]
    return tuple(sorted(found, key=lambda left: (left.started, left.path)))


def remove(root: str) -> None:
    """Delete a scratch directory, read-only parts too, following no link.

    One that a running command uses is left alone, and so is what resists even that.
    """
    marker = _marker(root)
    if marker is None or not _is_running(root, marker):
        delete(root)


def delete(root: str) -> None:
    """Delete a directory that no other process uses, read-only parts too, following no link; what resists stays."""
    for _ in range(3):
        with contextlib.suppress(RecursionError):
            shutil.rmtree(root, ignore_errors=True)
        if not os.path.lexists(root):
            return
        with contextlib.suppress(OSError):
            _flatten(root)


def _flatten(root: str) -> None:
    """Open every directory below ``root`` and bring deep ones to its top, so that neither mode nor depth keeps any."""
    os.chmod(root, 0o700)
    waiting = [(root, 0)]
    while waiting:
        directory, depth = waiting.pop()
        for inner in _opened(directory):
            if depth < _SHALLOW:
                waiting.append((inner, depth + 1))
                continue
            flat = tempfile.mkdtemp(dir=root)
            with contextlib.suppress(OSError):
                os.rename(inner, flat)
            waiting.append((flat, 1))


def _opened(directory: str) -> list[str]:
    """The directories in ``directory``, each with a mode that lets it be moved and emptied."""
    with os.scandir(directory) as entries:
        inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for path in inner:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o700)
    return inner


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _identity(common_dir: str) -> str:
    return os.fsencode(os.path.realpath(common_dir)).hex()


def _process_started(pid: int) -> str:
    """What tells a process from a later one of the same number; "" where the system has no such file."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()
    return ""


def _left_in(place: str, repository: str) -> Iterator[Left]:
    try:
        with os.scandir(place) as entries:
            roots = [entry.path for entry in entries if entry.name.startswith(PREFIX) and _is_ours(entry)]
    except OSError:
        return
    for root in roots:
        marker = _marker(root)
        if marker and marker.repository == repository:
            running = _is_running(root, marker)
            yield Left(path=root, started=marker.started, running=running, size_bytes=_size_bytes(root))


def _is_ours(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def _marker(root: str) -> _Marker | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        file = _open(root)
        try:
            return msgspec.json.decode(os.read(file, _MARKER_LIMIT_BYTES), type=_Marker)
        finally:
            os.close(file)
    return None


def _open(root: str) -> int:
    """The marker, open for reading: a regular file, no link, and no pipe that would block."""
    file = os.open(os.path.join(root, _MARKER), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError
    return file


def _is_running(root: str, marker: _Marker) -> bool:
    """Whether the process that made it lives: it holds the lock, else its number and start are still those."""
    if not marker.locked:
        started = _process_started(marker.pid)
        return started == marker.process_started if started else _is_alive(marker.pid)
    with contextlib.suppress(OSError):
        file = _open(root)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _size_bytes(root: str) -> int:
    total, waiting = 0, [root]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return total


def _memory(repo: Repo) -> str:
    return os.path.join(repo.common_dir, "git-evals", "scratch-parents")


def _remembered(repo: Repo) -> list[str]:
    with contextlib.suppress(OSError), open(_memory(repo), "rb") as file:
        return [os.fsdecode(place) for place in file.read().split(b"\0") if place]
    return []


def _remember(repo: Repo, parent: str) -> None:
    """Keep where scratches stand; what is lost of it costs nothing but a left-over that nobody finds."""
    known = _remembered(repo)
    if parent in known:
        return
    kept = [place for place in known if os.path.isdir(place)]
    with contextlib.suppress(OSError):
        temporary = f"{_memory(repo)}.{os.getpid()}"
        write(temporary, b"".join(os.fsencode(place) + b"\0" for place in [*kept, parent]))
        os.replace(temporary, _memory(repo))
