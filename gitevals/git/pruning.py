"""Gits that throw away what no ref names: they looked at the refs when they began, and know of no later move."""

import re
import time
from collections.abc import Sequence

from gitevals.errors import CannotTell
from gitevals.git.locks import POLL_SECONDS, at_work
from gitevals.git.repo import Repo

LONGEST_SECONDS = 600
_COMMANDS = frozenset({"prune", "repack"})
_WITH_A_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
# An expiry that spares what was written just now, as `git gc` hands it to these two by default.
_SPARING = re.compile(r"(?:expir|unreachable).*(?:hour|day|week|month|year|never)", re.DOTALL)


def outlast(repo: Repo) -> None:
    """Wait for each git that runs now and may throw away what was unnamed when it began; later ones see what we named.

    Where processes cannot be looked at, none is seen.
    """
    waiting = _pruning(repo)
    until = time.monotonic() + LONGEST_SECONDS
    while waiting:
        if time.monotonic() > until:
            raise CannotTell(
                f"a git that prunes has been at work for {LONGEST_SECONDS} seconds: it may take the new record away",
                hint="once it has ended, run the command again",
            )
        time.sleep(POLL_SECONDS)
        waiting &= _pruning(repo)


def _pruning(repo: Repo) -> set[tuple[str, tuple[str, ...]]]:
    return {
        (process, words)
        for process, words in at_work(repo)
        if _verb(words) in _COMMANDS and not _SPARING.search(" ".join(words))
    }


def _verb(words: Sequence[str]) -> str:
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_A_VALUE:
            next(rest, "")
        elif not word.startswith("-"):
            return word
    return ""
