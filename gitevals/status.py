"""How tasks stand, for displays: contract state, newest evidence, what is stale. Nothing here decides."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gitevals import verify
from gitevals.contracts.reading import standing
from gitevals.contracts.stating import expected, stated
from gitevals.errors import BadInput
from gitevals.evidence.reading import Evidence
from gitevals.git import refs
from gitevals.model import contract as contracts
from gitevals.model.decision import Decision
from gitevals.model.evaluation import Evaluation, Stored
from gitevals.model.movement import deciding
from gitevals.model.reason import Code
from gitevals.session import Session
from gitevals.targets import HEADS, Head, Target

_STATES = {Code.MISSING: "missing", Code.DISPUTED: "disputed", Code.VERIFICATION: "failed"}


class Tries(msgspec.Struct, frozen=True, kw_only=True):
    """Which of how many runs of one contract on one subject an evaluation was, in the order they came to be."""

    number: int
    count: int


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One task; ``evidence_state`` is ``missing stale disputed failed inconclusive not_run passed`` or ``unknown``."""

    task: str
    title: str
    mode: str
    contract: str
    contract_state: str
    evidence_state: str
    stale_because: tuple[str, ...] = ()
    result: str | None = None
    subject: str | None = None
    evaluation: str | None = None
    tries: int = 0
    reasons: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def tries(evidence: Evidence, stored: Stored) -> Tries:
    """Which try ``stored`` was among the runs of its contract on its subject."""
    return tries_of(evidence, [stored])[stored.id]


def tries_of(evidence: Evidence, found: Sequence[Stored]) -> dict[str, Tries]:
    """What `tries` says of each of ``found``, by its id."""
    near = evidence.evaluations([stored.evaluation.subject.tree or stored.evaluation.subject.head for stored in found])
    return every_try([*near, *found])


def every_try(evaluations: Iterable[Stored]) -> dict[str, Tries]:
    """Which try each of ``evaluations`` was, by its id."""
    groups: dict[tuple[str, ...], dict[str, Stored]] = {}
    for stored in evaluations:
        groups.setdefault(_same_subject(stored.evaluation), {})[stored.id] = stored
    found = {}
    for group in groups.values():
        ranked = sorted((_depth(entry, group), entry.evaluation.finished, entry.id) for entry in group.values())
        found.update({name: Tries(number=n, count=len(ranked)) for n, (_, _, name) in enumerate(ranked, 1)})
    return found


def _same_subject(one: Evaluation) -> tuple[str, ...]:
    return one.task, one.contract, one.subject.ref, one.subject.base_tree, one.subject.tree


def _depth(stored: Stored, by_id: Mapping[str, Stored]) -> int:
    """How many of a group came before ``stored``, as far as ``after`` tells."""
    seen: set[str] = set()
    waiting = list(stored.evaluation.after)
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen:
            seen.add(name)
            waiting.extend(by_id[name].evaluation.after)
    return len(seen)


def newest(evidence: Evidence, task: str, heads: Sequence[str] = ()) -> Stored | None:
    """The evaluation of ``task`` that was written last: on ``heads`` if any is, else anywhere."""
    near = [stored for stored in evidence.evaluations(list(heads)) if stored.evaluation.task == task]
    return latest(near or [stored for stored in evidence.every_evaluation() if stored.evaluation.task == task])


def latest(found: list[Stored]) -> Stored | None:
    """The one of ``found`` that was written last."""
    final = deciding(found, found)
    return max(final, key=lambda stored: (stored.evaluation.finished, stored.id), default=None)


def of_task(session: Session, target: Target, task: str) -> TaskStatus:
    """How ``task`` stands towards ``target``; its branch is found by the ``branches:`` pattern."""
    source = session.source()
    evidence = source.evidence
    statement = stated(source, target.base, task)
    digest = contracts.digest(expected(source, target.base, statement))
    stands = standing(evidence, task, digest, target.base.config.repository)
    head = _branch(session, target, task)
    found = newest(evidence, task, [head.commit] if head else [])
    decision = _decision(session, target, task, head)
    return TaskStatus(
        task=task,
        title=statement.task.title,
        mode=target.base.config.mode,
        contract=digest,
        contract_state=stands.state,
        evidence_state=_evidence_state(decision, found),
        stale_because=tuple(reason.message for reason in decision.reasons if reason.code.startswith("stale"))
        if decision
        else (),
        result=found.evaluation.result if found else None,
        subject=found.evaluation.subject.head if found else None,
        evaluation=found.id if found else None,
        tries=tries(evidence, found).count if found else 0,
        reasons=tuple(reason.message for reason in decision.reasons) if decision else (),
        hints=tuple(dict.fromkeys(reason.hint for reason in decision.reasons if reason.hint)) if decision else (),
    )


def unreadable(target: Target, task: str, problem: str) -> TaskStatus:
    """The row of a task that evidence knows and the target does not state (any more)."""
    return TaskStatus(
        task=task,
        title="",
        mode=target.base.config.mode,
        contract="",
        contract_state="unreadable",
        evidence_state="unknown",
        reasons=(problem,),
    )


def _branch(session: Session, target: Target, task: str) -> Head | None:
    name = target.base.config.branch_of(task)
    tip = refs.values(session.repo, HEADS + name).get(HEADS + name) if name else None
    return Head(commit=tip, branch=name) if tip else None


def _decision(session: Session, target: Target, task: str, head: Head | None) -> Decision | None:
    if head is None:
        return None
    try:
        return verify.of_change(session, target, head, [task])
    except BadInput:  # the branch is in the target already, or has nothing in common with it: no movement to judge
        return None


def _evidence_state(decision: Decision | None, found: Stored | None) -> str:
    if decision is None:
        return found.evaluation.result if found else "missing"
    codes = [reason.code for reason in decision.reasons if reason.code is not Code.CONFIG_CHANGE]
    if any(code.startswith("stale") for code in codes):
        return "stale"
    named = next((_STATES.get(code, str(code)) for code in codes if not code.startswith("contract")), None)
    return named or (found.evaluation.result if found else "missing")
