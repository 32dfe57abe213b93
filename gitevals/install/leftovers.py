"""What killed programs left in the git directory: lock files that stand in the way, files that were being written."""

import contextlib
import os
import re
import time
from collections.abc import Iterator

from gitevals import cache
from gitevals.errors import EvalsError
from gitevals.evidence.reading import CONTRACTS, EVENTS, LOGS, NOTES
from gitevals.git import ledger
from gitevals.git import locks as git_locks
from gitevals.git.locks import HINT, Lock
from gitevals.install.finding import Finding, State
from gitevals.session import Session

# Younger ones are most likely in use this very moment.
IN_USE_SECONDS = 60
_OURS = (NOTES, CONTRACTS, EVENTS, LOGS)
_UNFINISHED = re.compile(r"\..+\.\d+|scratch-parents\.\d+|.+\.new")
_CLEAN = "git evals doctor --clean"


def locks(session: Session, *, clean: bool) -> list[Finding]:
    """Each lock file that nobody seems to hold; ``clean`` removes those of our own ledgers, never another's."""
    found = []
    for lock in git_locks.standing(session.repo):
        ours = lock.ref.startswith(_OURS)
        if lock.age_seconds < IN_USE_SECONDS:
            continue
        if ours and clean:
            found.append(_removed(session, lock))
        else:
            found.append(_left(lock, _CLEAN if ours else HINT))
    return found or [Finding(name="locks", state=State.OK, text="nothing is locked")]


def _left(lock: Lock, repair: str) -> Finding:
    text = f"{lock.path} has been there for {age(lock.age_seconds)}: what it locks cannot be changed"
    return Finding(name="locks", state=State.NOTE, text=text, repair=repair)


def _removed(session: Session, lock: Lock) -> Finding:
    try:
        with ledger.locked(session.repo):
            gone = git_locks.make_way(session.repo, lock.ref, lambda: ledger.written(session.repo))
    except EvalsError as error:
        return Finding(name="locks", state=State.PROBLEM, text=error.message, repair=error.hint)
    if not gone:
        return Finding(name="locks", state=State.NOTE, text=f"in use: {lock.path}")
    return Finding(name="locks", state=State.OK, text=f"removed: {lock.path}")


def unfinished(session: Session, *, clean: bool) -> list[Finding]:
    """Our own side files that a killed command was just writing; ``clean`` removes them."""
    left = list(_unfinished(session.repo.common_dir))
    if not left:
        return []
    if clean:
        for path in left:
            with contextlib.suppress(OSError):
                os.unlink(path)
        left = [path for path in left if os.path.lexists(path)]
        if not left:
            return [Finding(name="side files", state=State.OK, text="removed: files of commands that were killed")]
    text = f"{len(left)} of commands that were killed, {left[0]} for one"
    return [Finding(name="side files", state=State.NOTE, text=text, repair=_CLEAN)]


def _unfinished(common_dir: str) -> Iterator[str]:
    families = [entry.path for entry in _entries(os.path.dirname(cache.folder(common_dir, "any")))]
    # What set-up commands made is kept there under names that are not ours.
    places = [cache.directory(common_dir), *(place for place in families if place != cache.folder(common_dir, "setup"))]
    before = time.time() - IN_USE_SECONDS
    for entry in (entry for place in places for entry in _entries(place)):
        with contextlib.suppress(OSError):
            is_file = entry.is_file(follow_symlinks=False)
            if is_file and _UNFINISHED.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before:
                yield entry.path


def _entries(place: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        return list(entries)
    return []


def age(seconds: float) -> str:
    """How long something has been there, as a person says it."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds)} seconds"
