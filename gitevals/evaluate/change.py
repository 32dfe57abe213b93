"""What is evaluated, and how."""

from collections.abc import Callable

import msgspec

from gitevals.evaluate.checks import Observer
from gitevals.evaluate.moved import Refuses
from gitevals.model.evaluation import Correlation
from gitevals.targets import Head, Target


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated: the target, the head that is to enter it, and whether it is taken as it is."""

    target: Target
    head: Head
    alone: bool = False
    given: bool = False


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How to run: again although evidence is there, keep the scratch, labels to store, whom to tell.

    ``jobs`` checks run side by side; ``refuses`` is the gate's word on refs that moved meanwhile (see `moved.judged`).
    """

    force: bool = False
    keep: bool = False
    jobs: int = 1
    refuses: Refuses = lambda ref, old, new: ""
    correlation: Correlation = Correlation()
    observer: Observer = lambda _: None
    announce: Callable[[str], None] = lambda _: None
