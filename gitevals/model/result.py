"""The four results and the rules that fold many of them into one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum


class Result(StrEnum):
    """What a check, a finding or an evaluation can say; nothing else exists."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not_run"


def of_exit(status: int, *, refined: Mapping[int, Result] | None = None) -> Result:
    """The result of a command that ended by itself with ``status`` (0 to 255).

    125 (cannot test), 126 (not executable) and 127 (not found) prove nothing about the change, as in `git bisect run`.
    """
    if refined and status in refined:
        return refined[status]
    if status == 0:
        return Result.PASSED
    if status in (125, 126, 127):
        return Result.INCONCLUSIVE
    return Result.FAILED


def of_bound(results: Sequence[Result]) -> Result:
    """The result of a criterion whose bound checks gave ``results``; nothing bound is ``not_run``."""
    if Result.FAILED in results:
        return Result.FAILED
    if all(result is Result.NOT_RUN for result in results):
        return Result.NOT_RUN
    if all(result is Result.PASSED for result in results):
        return Result.PASSED
    return Result.INCONCLUSIVE


def of_verification(results: Sequence[Result]) -> Result:
    """The result of the project's verification; an empty one is satisfied without a run."""
    return of_bound(results) if results else Result.PASSED


def of_evaluation(verification: Sequence[Result], findings: Sequence[Result], *, criteria_count: bool) -> Result:
    """The result of one evaluation; where criteria do not count (mode ``off``), verification alone does."""
    weighed = [of_verification(verification), *(findings if criteria_count else ())]
    if Result.FAILED in weighed:
        return Result.FAILED
    if all(result is Result.PASSED for result in weighed):
        return Result.PASSED
    return Result.INCONCLUSIVE


def worst(results: Sequence[Result]) -> Result:
    """The least favourable of several evaluations' results, for one exit code."""
    order = (Result.FAILED, Result.INCONCLUSIVE, Result.NOT_RUN, Result.PASSED)
    return min(results, key=order.index)
