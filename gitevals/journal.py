"""The journal: contracts, evaluations and delivery events of all ledgers in one order."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gitevals.errors import GitFailed
from gitevals.evidence import filed
from gitevals.evidence.filed import Filed
from gitevals.evidence.reading import NOTE_LIMIT_BYTES, READ_AT_ONCE, Evidence, Fault
from gitevals.git import growth
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo
from gitevals.model import record
from gitevals.model.evaluation import Evaluation, Freeze, Reopen
from gitevals.session import Session
from gitevals.status import Tries, every_try

CONTRACT = "evaluation.contract"
FINISHED = "evaluation.finished"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; ``record`` is None where only the kind, which ``event`` names then, is understood."""

    event: str
    id: str
    task: str
    time: str
    writer: str
    ledger: str
    record: Evaluation | Freeze | Reopen | None = None
    tries: Tries | None = None

    @property
    def after(self) -> tuple[str, ...]:
        """The ids of what it says it came after."""
        if isinstance(self.record, Evaluation):
            return self.record.after
        return self.record.supersedes if isinstance(self.record, Freeze) else ()


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """All entries in order, and what is worth saying about the reading."""

    entries: tuple[Entry, ...]
    notices: tuple[str, ...] = ()


class _Loose(record.Record, frozen=True, kw_only=True):
    """What an event of an unknown kind probably says, too."""

    task: str = ""
    writer: str = ""
    created: str = ""
    finished: str = ""


def journal(session: Session, evidence: Evidence) -> Journal:
    """Everything that the ledgers of ``evidence`` tell; what cannot be read is added to its faults.

    An entry comes after all that it names in ``after`` or ``supersedes``, and after what its ledger already held when
    it was added. Clocks settle only what is left open, so that a wrong one moves no cause behind its effect. Were the
    two to contradict each other, which takes a rewritten ledger, what the record says holds.
    """
    entries = {entry.id: entry for entry in (*_evaluations(evidence), *_freezes(evidence), *_events(evidence))}
    try:
        before = _ancestry(session.repo, session.objects, evidence, entries)
    except GitFailed as error:
        said = f"the history of the ledgers cannot be read, so `after` and times alone give the order: {error.message}"
        return Journal(entries=tuple(_in_order(entries, {})), notices=(said,))
    return Journal(entries=tuple(_in_order(entries, before)))


def follow(session: Session, pause: Callable[[], bool]) -> Iterator[tuple[Journal, Evidence]]:
    """The journal as it is, then, as often as a ledger has moved after a ``pause``, what is new; False ends it."""
    told: set[str] = set()
    reported: set[Fault] = set()
    seen = None
    while True:
        evidence = session.evidence()
        if evidence.ledgers != seen:
            seen = evidence.ledgers
            found = journal(session, evidence)
            fresh = tuple(entry for entry in found.entries if entry.id not in told)
            told.update(entry.id for entry in fresh)
            evidence.faults[:] = [fault for fault in evidence.faults if fault not in reported]
            reported.update(evidence.faults)
            yield msgspec.structs.replace(found, entries=fresh), evidence
        if not pause():
            return


def _evaluations(evidence: Evidence) -> list[Entry]:
    found = evidence.every_evaluation()
    numbers = every_try(found)
    return [
        Entry(
            event=FINISHED, id=stored.id, task=stored.evaluation.task, time=stored.evaluation.finished,
            writer=stored.evaluation.writer, ledger=stored.ledger, record=stored.evaluation, tries=numbers[stored.id],
        )
        for stored in found
    ]  # fmt: skip


def _freezes(evidence: Evidence) -> list[Entry]:
    return [_entry(evidence, found, "freeze", CONTRACT, Freeze) for found in filed.freezes(evidence)]


def _events(evidence: Evidence) -> list[Entry]:
    return [_entry(evidence, found, "reopen", "reopen", Reopen) for found in filed.events(evidence)]


def _entry(evidence: Evidence, found: Filed, kind: str, event: str, as_type: type[Freeze] | type[Reopen]) -> Entry:
    """The entry of a filed line: as ``event`` where it is the ``kind`` that is understood, else by its own kind."""
    header = found.line.header
    read: Freeze | Reopen | None = None
    if header is not None and (header.kind, header.schema) == (kind, record.SCHEMA):
        read = record.decode(found.line, as_type)
        if read is None:
            evidence.tell(found.ledger, found.line.id, record.Fault.MALFORMED)
    loose = record.decode(found.line, _Loose) or _Loose()
    return Entry(
        event=event if read is not None else header.kind if header is not None else "",
        id=found.line.id,
        task=loose.task or found.task,
        time=loose.created or loose.finished,
        writer=loose.writer or found.ledger.rpartition("/")[2],
        ledger=found.ledger,
        record=read,
    )


Before = dict[str, set[str]]


def _ancestry(repo: Repo, objects: Objects, evidence: Evidence, entries: Mapping[str, Entry]) -> Before:
    """What came before in a ledger, by what came after: ids of entries, and of commits as the links between them."""
    ledgers = evidence.ledgers
    tips = {*ledgers.notes.values(), *ledgers.contracts.values(), *ledgers.events.values()}
    placed: set[str] = set()
    before: Before = {}
    for step in growth.steps(repo, sorted(tips)):
        before.setdefault(step.id, set()).update(step.parents)
        for name in _ids_in(objects, step.blobs):
            if name in entries and name not in placed:
                placed.add(name)
                before.setdefault(name, set()).update(step.parents)
                before[step.id].add(name)
    return before


def _ids_in(objects: Objects, blobs: Sequence[str]) -> Iterator[str]:
    """The id of every line in ``blobs``, a few of which are in memory at once; one too large to be a note has none."""
    for start in range(0, len(blobs), READ_AT_ONCE):
        for found in objects.read_many(blobs[start : start + READ_AT_ONCE], limit_bytes=NOTE_LIMIT_BYTES):
            if found is not None and len(found.body) <= NOTE_LIMIT_BYTES:
                yield from (line.id for line in record.lines(found.body))


def _in_order(entries: Mapping[str, Entry], before: Before) -> Iterator[Entry]:
    """``entries`` sorted topologically, the earliest of those that may come next first."""
    hard = {
        name: {other for other in entry.after if other in entries and other != name} for name, entry in entries.items()
    }
    nodes = {*entries, *before}
    waits = {
        name: hard.get(name, set()) | {other for other in before.get(name, ()) if other in nodes} for name in nodes
    }
    yield from (entries[name] for name in _sorted(waits, hard, entries) if name in entries)


def _sorted(waits: Before, hard: Before, entries: Mapping[str, Entry]) -> Iterator[str]:
    blocks: dict[str, list[str]] = {}
    for name, others in waits.items():
        for other in others:
            blocks.setdefault(other, []).append(name)
    ready = [_rank(name, entries) for name, others in waits.items() if not others]
    heapq.heapify(ready)
    left = set(waits)
    while left:
        name = heapq.heappop(ready)[-1] if ready else _unblocked(left, hard, entries)
        if name not in left:
            continue
        left.remove(name)
        yield name
        for other in blocks.get(name, ()):
            waits[other].discard(name)
            hard.get(other, set()).discard(name)
            if not waits[other]:
                heapq.heappush(ready, _rank(other, entries))


def _unblocked(left: set[str], hard: Before, entries: Mapping[str, Entry]) -> str:
    """Where ledgers contradict what records say, the earliest of what no record holds back."""
    return min(_rank(name, entries) for name in left if name in entries and not hard.get(name))[-1]


def _rank(name: str, entries: Mapping[str, Entry]) -> tuple[bool, str, str]:
    """Commits at once, as they only link; entries by time, then id."""
    entry = entries.get(name)
    return entry is not None, entry.time if entry is not None else "", name
