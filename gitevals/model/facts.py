"""What the decision on one movement rests on."""

from enum import StrEnum

import msgspec

from gitevals.model.contract import Mode
from gitevals.model.evaluation import Stored
from gitevals.model.movement import Span
from gitevals.model.reason import RULES, Code, Reason, reason


class ContractState(StrEnum):
    """How the frozen contract of a task stands to what its base says now."""

    FROZEN = "frozen"
    MISSING = "missing"
    CONFLICT = "conflict"
    OUT_OF_DATE = "out_of_date"
    UNREADABLE = "unreadable"


class TaskFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one task of a movement; ``digest`` is the base's content, ``spent_by`` an earlier delivery."""

    task: str
    state: ContractState
    digest: str = ""
    spent_by: str = ""
    problem: str = ""
    criteria: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the base's configuration demands of a movement; limits are 0 for none."""

    mode: Mode
    repository: str
    untasked_refuses: bool = True
    untasked_verifies: bool = True
    verification_required: bool = True
    verification_digest: str = ""
    verification_count: int = 0
    flaky_refuses: bool = False
    max_age_seconds: int = 0
    max_tries: int = 0


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the decision on one span rests on.

    ``exempt`` says why verification alone counts ("" if it does not); ``privileged`` names altered files that the
    gate reads; ``where`` is the option that names the change to `run`, ``into`` the one that names the target;
    ``likely_task`` is what a hint calls the task that nobody named. ``now_seconds`` (since 1970) is what age is
    counted to; at 0 age is not judged.
    """

    span: Span
    policy: Policy
    tasks: tuple[TaskFacts, ...] = ()
    evaluations: tuple[Stored, ...] = ()
    exempt: str = ""
    privileged: tuple[str, ...] = ()
    config_problem: str = ""
    where: str = ""
    into: str = ""
    likely_task: str = "TASK"
    now_seconds: float = 0


def said(facts: Facts, code: Code, message: str, *, task: str = "", criterion: str = "", hint: str = "") -> Reason:
    """A reason of the table, weighed by the mode, its hint filled in."""
    hint = (hint or RULES[code].hint).format(task=task, likely=facts.likely_task, where=facts.where, into=facts.into)
    return reason(code, facts.policy.mode, message, hint=" ".join(hint.split()), task=task, criterion=criterion)
