"""Lock files of git: which of them stand, and which nobody can be holding any more."""

import contextlib
import glob
import os
import time
from collections.abc import Callable, Container, Iterator, Sequence

import msgspec

from gitevals.errors import LedgerBusy
from gitevals.git.repo import Repo
from gitevals.git.seen import small_file

# How long a lock that may be another program's is watched before it counts as left behind.
STILL_SECONDS = 0.6
LONGEST_SECONDS = 5  # where a git is at work that may be holding it
POLL_SECONDS = 0.02
_CONTENT_LIMIT_BYTES = 4096
TABLES = "reftable/tables.list.lock"
HINT = "delete it if no git is at work: one that was killed leaves such a file"
_NOT_SEARCHED = ("objects", "modules", "hooks", "git-evals")
_LOCKING_NOTHING = frozenset({"cat-file", "evals", "for-each-ref", "log", "merge-base", "rev-list", "rev-parse"})


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock file: its absolute path, the ref it locks ("" where it locks something else), how old it is."""

    path: str
    ref: str
    age_seconds: float


def make_way(repo: Repo, ref: str, ours: Callable[[], Container[str]]) -> bool:
    """Wait for the lock on ``ref`` to go, and remove it if it is nobody's; whether it is gone.

    To be called with the turn to write ledgers, which a git that we started keeps for as long as it lives: a lock that
    holds an id which this clone set out to write (``ours``) was therefore left behind. Any other is another program's:
    it is given up once it has not changed for `STILL_SECONDS` and no git is at work that could hold it.
    """
    path = os.path.join(repo.common_dir, f"{ref}.lock")
    first = seen = _seen(path)
    known: Container[str] = ours() if seen is not None else ()
    started = since = time.monotonic()
    while seen is not None:
        if _content(path) in known or (time.monotonic() - since > STILL_SECONDS and not _is_git_at_work(repo)):
            return _remove(path)
        if time.monotonic() - started > LONGEST_SECONDS:
            return False
        time.sleep(POLL_SECONDS)
        seen = _seen(path)
        if seen != first:
            first, since = seen, time.monotonic()
    return True


def _is_git_at_work(repo: Repo) -> bool:
    """Whether a git runs here that may lock refs: packing them, it would take away what is written past its lock."""
    return any(not _LOCKING_NOTHING.intersection(words) for _, words in at_work(repo))


def at_work(repo: Repo) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each git that runs here, as its place among all processes and the words of its command.

    Where processes cannot be looked at, none is seen.
    """
    places = [repo.common_dir, os.path.dirname(repo.common_dir)]
    for name in glob.glob(os.path.join(glob.escape(repo.common_dir), "worktrees", "*", "gitdir")):
        places.append(os.path.dirname(_content(name)))
    for process in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            with open(os.path.join(process, "cmdline"), "rb") as file:
                words = tuple(os.fsdecode(word) for word in file.read().split(b"\0"))
            if os.path.basename(words[0]) == "git" and _is_here(process, words, places):
                yield process, words


def _is_here(process: str, words: Sequence[str], places: Sequence[str]) -> bool:
    if any(places[0] in word for word in words[1:]):
        return True
    directory = os.path.join(os.readlink(os.path.join(process, "cwd")), "")
    return any(directory.startswith(os.path.join(place, "")) for place in places if place)


def in_the_way(repo: Repo, ref: str) -> str:
    """The lock that keeps ``ref`` from being moved, "" where there is none."""
    places = (os.path.join(repo.common_dir, name) for name in (f"{ref}.lock", TABLES))
    return next((place for place in places if os.path.lexists(place)), "")


def standing(repo: Repo) -> list[Lock]:
    """Every lock file in the common directory but for those of objects, the oldest first."""
    now = time.time()
    found = []
    for path in _files(repo.common_dir):
        with contextlib.suppress(OSError):
            name = os.path.relpath(path, repo.common_dir).removesuffix(".lock")
            ref = name if name.startswith("refs/") else ""
            found.append(Lock(path=path, ref=ref, age_seconds=max(0.0, now - os.lstat(path).st_mtime)))
    return sorted(found, key=lambda lock: -lock.age_seconds)


def _files(common_dir: str) -> Iterator[str]:
    for folder, inner, names in os.walk(common_dir):
        if folder == common_dir:
            inner[:] = [name for name in inner if name not in _NOT_SEARCHED]
        yield from (os.path.join(folder, name) for name in (*names, *inner) if name.endswith(".lock"))


def _seen(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _content(path: str) -> str:
    return (small_file(path, _CONTENT_LIMIT_BYTES) or "").strip()


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise LedgerBusy(f"{path} stands in the way and cannot be removed: {error.strerror}", hint=HINT) from error
    return True
