"""`git evals audit`: every movement of a branch since its enrolment, judged again from what lies in git."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from gitevals import gate, verify
from gitevals.config import PATH
from gitevals.contracts.reading import BaseConfig, config_at
from gitevals.errors import BadInput, ConfigInvalid
from gitevals.gate import evidenced_starts
from gitevals.git import history, trees
from gitevals.model.contract import Mode
from gitevals.model.decision import Decision
from gitevals.model.movement import Commit, Span
from gitevals.model.reason import Code, Reason, reason
from gitevals.session import Session
from gitevals.spans import TRAILER, Grounds, Movement, commit_of, judge_span


class Verdict(StrEnum):
    """How one movement stands: by evidence, unprotected, without evidence where none is demanded, or against it."""

    EVIDENCED = "evidenced"
    UNPROTECTED = "unprotected"
    UNVERIFIED = "unverified"
    REFUSED = "refused"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One first-parent step of the branch, oldest first."""

    commit: str
    old: str
    verdict: Verdict
    mode: str
    reasons: tuple[Reason, ...] = ()
    tasks: tuple[str, ...] = ()


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """A branch's history since ``enrolled`` (the first commit that bears a configuration), step by step."""

    schema: int = 1
    ref: str
    tip: str
    enrolled: str | None
    rows: tuple[Row, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no step was refused."""
        return all(row.verdict is not Verdict.REFUSED for row in self.rows)


def audit(session: Session, ref: str, tip: str, since: str | None) -> Audit:
    """Judge each step of ``ref`` by its own base's configuration, its contracts as they ever were frozen."""
    grounds = msgspec.structs.replace(verify.grounds(session, frozen_ever=True, also=ref), copies={})
    entries = history.log(session.repo, tip, trailer=TRAILER)
    by_id = {entry.id: entry for entry in entries}
    chain = _first_parents(by_id, tip)
    start = _enrolment(grounds, chain)
    if start is None:
        return Audit(ref=ref, tip=tip, enrolled=None)
    enrolled = chain[start].id
    if since is not None:
        known = [n for n, commit in enumerate(chain) if commit.id == since]
        if not known:
            raise BadInput(f"{since[:12]} is no first-parent commit of {ref}", hint=f"git log --first-parent {ref}")
        start = max(start, known[0])
    steps = _steps(by_id, chain, start)
    return Audit(ref=ref, tip=tip, enrolled=enrolled, rows=tuple(_rows(grounds, ref, chain[start:], steps)))


def _first_parents(by_id: dict[str, history.Entry], tip: str) -> list[Commit]:
    chain: list[Commit] = []
    name: str | None = tip
    while name is not None and name in by_id:
        entry = by_id[name]
        chain.append(commit_of(entry))
        name = entry.parents[0] if entry.parents else None
    return chain[::-1]


def _enrolment(grounds: Grounds, chain: Sequence[Commit]) -> int | None:
    found = grounds.objects.read_many([f"{commit.id}:{PATH}" for commit in chain])
    enrolled = next((n for n, config in enumerate(found) if config is not None), None)
    for commit in chain[:enrolled][-1:]:  # one that is lost would take all it governed out of the audit
        trees.require_absent(grounds.objects, commit.id, [PATH])
    return enrolled


def _steps(by_id: dict[str, history.Entry], chain: Sequence[Commit], start: int) -> list[tuple[history.Entry, ...]]:
    """What each step after ``start`` brought in: the commits that its predecessor does not contain."""
    seen: set[str] = set()
    _spread(by_id, chain[start].id, seen)
    return [_spread(by_id, commit.id, seen) for commit in chain[start + 1 :]]


def _spread(by_id: dict[str, history.Entry], start: str, seen: set[str]) -> tuple[history.Entry, ...]:
    found, waiting = [], [start]
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen:
            seen.add(name)
            found.append(by_id[name])
            waiting.extend(by_id[name].parents)
    return tuple(found)


def _rows(grounds: Grounds, ref: str, chain: Sequence[Commit], steps: Sequence[tuple[history.Entry, ...]]) -> list[Row]:
    rows: list[Row] = []
    for end in range(1, len(chain)):
        rows.append(_row(grounds, ref, chain[end - 1], chain[end], steps[end - 1]))
        if rows[-1].verdict in (Verdict.REFUSED, Verdict.UNVERIFIED):
            _span_over(grounds, ref, chain, steps, end, rows)
    return rows


def _row(grounds: Grounds, ref: str, old: Commit, new: Commit, entries: Sequence[history.Entry]) -> Row:
    try:
        base = config_at(grounds.repo, grounds.objects, old.id)
    except ConfigInvalid as error:
        decision = gate.judge(grounds, Movement(ref=ref, old=old.id, new=new.id))
        reasons = decision.reasons or (reason(Code.CONFIG_INVALID, Mode.OBSERVE, error.message),)
        verdict = Verdict.EVIDENCED if decision.allowed else Verdict.REFUSED
        return Row(commit=new.id, old=old.id, verdict=verdict, mode="", reasons=reasons)
    if base is None:
        return Row(commit=new.id, old=old.id, verdict=Verdict.UNPROTECTED, mode="")
    decision = _decision(grounds, ref, base, old, new, entries)
    return Row(
        commit=new.id,
        old=old.id,
        verdict=_verdict(decision),
        mode=base.config.mode,
        reasons=decision.reasons,
        tasks=decision.tasks,
    )


def _decision(
    grounds: Grounds, ref: str, base: BaseConfig, old: Commit, new: Commit, entries: Sequence[history.Entry]
) -> Decision:
    return judge_span(
        grounds, Movement(ref=ref, old=old.id, new=new.id), base, Span(ref=ref, old=old, new=new), entries
    )


def _verdict(decision: Decision) -> Verdict:
    if not decision.allowed:
        return Verdict.REFUSED
    told = [found for found in decision.reasons if found.code is not Code.CONFIG_CHANGE]
    return Verdict.UNVERIFIED if told or not decision.evaluations else Verdict.EVIDENCED


def _span_over(
    grounds: Grounds,
    ref: str,
    chain: Sequence[Commit],
    steps: Sequence[tuple[history.Entry, ...]],
    end: int,
    rows: list[Row],
) -> None:
    """Where one evaluation spans several steps up to ``end``, all of them stand by it."""
    for start in sorted(evidenced_starts(grounds, ref, chain, end)):
        base = config_at(grounds.repo, grounds.objects, chain[start].id)
        entries = [entry for step in steps[start:end] for entry in step]
        if base is None or start == end - 1:
            continue
        decision = _decision(grounds, ref, base, chain[start], chain[end], entries)
        if _verdict(decision) is Verdict.EVIDENCED:
            for position in range(start, end):
                rows[position] = msgspec.structs.replace(
                    rows[position], verdict=Verdict.EVIDENCED, reasons=decision.reasons, tasks=decision.tasks
                )
            return
