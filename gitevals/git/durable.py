"""What survives a loss of power: files brought to the disk, in as few waits as there can be."""

import contextlib
import errno
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from gitevals.errors import CannotTell
from gitevals.git.objects import NewObject
from gitevals.git.repo import Repo

# For the git commands that write for us. The user's own core.fsync does not count here: it may give up what the user
# makes, but a ledger that a loss of power cuts short takes with it what others wrote before.
GIT = ("-c", "core.fsync=objects,pack-metadata,reference", "-c", "core.fsyncMethod=fsync")
AT_ONCE = 16
TRIES = 50
# What a file system answers that knows of no such thing, for directories above all.
_CANNOT_BE_ASKED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


def settle(
    repo: Repo, wanted: Mapping[str, NewObject], settled: set[str], write: Callable[[Sequence[NewObject]], object]
) -> None:
    """Have each object of ``wanted`` on disk; one that another git took away, while no ref named it, comes back.

    ``settled`` are those that were brought there before; the others are added.
    """
    for _ in range(TRIES):
        harden_objects(repo, [name for name in wanted if name not in settled])
        taken = absent(repo, wanted)
        settled.update(wanted)
        settled.difference_update(taken)
        if not taken:
            return
        write([wanted[name] for name in taken])
    raise CannotTell(
        f"object {taken[0]} does not stay where it was written", hint="run the command again once `git prune` has ended"
    )


def harden_objects(repo: Repo, ids: Iterable[str]) -> None:
    """Have each loose object of ``ids`` on disk; what is in a pack by now was brought there by git itself."""
    _harden(_loose(repo, name) for name in ids)


def _loose(repo: Repo, name: str) -> str:
    place = repo.env.get("GIT_OBJECT_DIRECTORY") or os.path.join(repo.common_dir, "objects")
    return os.path.join(place, name[:2], name[2:])


def absent(repo: Repo, ids: Iterable[str]) -> list[str]:
    """Those of ``ids`` that name no object: a git that prunes takes whatever no ref names."""
    asked = [name for name in ids if not os.path.exists(_loose(repo, name))]
    if not asked:
        return []
    told = repo.run("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in asked).encode()).stdout
    return [line.split()[0] for line in told.decode().splitlines() if line.endswith(" missing")]


def harden_ref(repo: Repo, ref: str) -> None:
    """Have it on disk that ``ref`` was moved: git writes the file through, but not the name that it is then given."""
    parts = ref.split("/")[:-1]
    folders = [os.path.join(repo.common_dir, *parts[:count]) for count in range(len(parts), 0, -1)]
    _harden([*folders, os.path.join(repo.common_dir, "reftable")])


def _harden(paths: Iterable[str]) -> None:
    """Bring what stands at ``paths`` to the disk; what does not is passed over."""
    failures: list[OSError] = []
    with contextlib.ExitStack() as stack:
        waiting = deque(opened for path in paths for opened in _opened(path, stack, failures))
        # Side by side, because all that wait for the device at one time wait once.
        workers = []
        with contextlib.suppress(RuntimeError):  # where no further thread can be had, those that are there do it all
            for _ in range(min(AT_ONCE, len(waiting)) - 1):
                worker = threading.Thread(target=_work, args=(waiting, failures))
                worker.start()
                workers.append(worker)
        _work(waiting, failures)
        for worker in workers:
            worker.join()
    for failure in failures:
        raise CannotTell(
            f"{failure.filename} cannot be brought to the disk: {failure.strerror}",
            hint="look at the disk, then run the command again: whether it was recorded is not known",
        ) from failure


def _opened(path: str, stack: contextlib.ExitStack, failures: list[OSError]) -> Iterable[tuple[int, str]]:
    try:
        file = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        failures.append(error)
        return
    stack.callback(os.close, file)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # begins to write, and waits for nothing
    yield file, path


def _work(waiting: deque[tuple[int, str]], failures: list[OSError]) -> None:
    with contextlib.suppress(IndexError):  # another worker took the last one
        while True:
            file, path = waiting.popleft()
            try:
                _sync(file)
            except OSError as error:
                if error.errno not in _CANNOT_BE_ASKED:
                    failures.append(OSError(error.errno, error.strerror, path))


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        with contextlib.suppress(OSError):  # not every file system there has it
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
            return
    os.fsync(file)
