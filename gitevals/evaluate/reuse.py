"""Whether to run at all: passing evidence is used again, and a change that failed too often is not tried again."""

import time
from collections.abc import Sequence

from gitevals.errors import Refused
from gitevals.evaluate.assemble import Examined
from gitevals.evaluate.change import Change
from gitevals.evidence.reading import Evidence
from gitevals.integrate import Candidate
from gitevals.model.age import is_expired
from gitevals.model.contract import Mode
from gitevals.model.evaluation import Stored
from gitevals.model.movement import Commit, Span, covers, deciding, same_key
from gitevals.model.result import Result


def reused(
    evidence: Evidence, change: Change, candidate: Candidate, examined: Sequence[Examined], *, force: bool
) -> list[Stored]:
    """The passing evaluations that the gate would believe, if every task has one and nobody asked to run again.

    Where something has to be run, a task that failed on this change as often as ``max_tries`` allows raises `Refused`,
    if its contract binds.
    """
    known = evidence.evaluations([candidate.tree or candidate.heads[0]])
    found = [passing(known, change, candidate, entry) for entry in examined]
    if all(found) and candidate.tree is not None and not force:
        return [group[0] for group in found]
    for entry in examined:
        _refuse_tried(known, change, candidate, entry)
    return []


def passing(known: Sequence[Stored], change: Change, candidate: Candidate, entry: Examined) -> list[Stored]:
    """The deciding evaluations of ``entry`` on ``candidate``, or none unless all of them passed."""
    span, repository = _span(change, candidate), change.target.base.config.repository
    same = [stored for stored in _same(known, change, candidate, entry) if covers(stored.evaluation, span, repository)]
    final = deciding(list(known), same)
    limit = change.target.base.config.max_age_seconds
    believed = all(stored.evaluation.weight is Result.PASSED for stored in final)
    expired = all(is_expired(stored.evaluation.finished, time.time(), limit) for stored in final)
    return final if believed and not expired else []


def _span(change: Change, candidate: Candidate) -> Span:
    new = Commit(id=candidate.commit or "", tree=candidate.tree or "", parents=(candidate.base, *candidate.heads))
    return Span(ref=change.target.ref, old=Commit(id=candidate.base, tree=candidate.base_tree), new=new)


def _same(known: Sequence[Stored], change: Change, candidate: Candidate, entry: Examined) -> list[Stored]:
    """Those of ``known`` that are about the tree of ``candidate`` on its base, under the contract of ``entry``."""
    span, repository = _span(change, candidate), change.target.base.config.repository
    return [
        stored
        for stored in known
        if stored.evaluation.task == entry.task
        and stored.evaluation.contract == entry.digest
        and same_key(stored.evaluation, span, repository)
    ]


def _refuse_tried(known: Sequence[Stored], change: Change, candidate: Candidate, entry: Examined) -> None:
    config = change.target.base.config
    limit = config.max_tries if config.mode is Mode.ENFORCE else 0
    failed = [stored for stored in _same(known, change, candidate, entry) if stored.evaluation.weight is Result.FAILED]
    if limit and entry.task and len(failed) >= limit:
        raise Refused(
            f"task {entry.task} failed {len(failed)} time(s) on this change, and `max_tries` is {limit}",
            hint=f"git evals report {entry.task} --feedback, then change the code",
        )
