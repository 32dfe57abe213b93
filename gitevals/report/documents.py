"""The JSON documents of ``--json``: stored values plus what is derived when reading."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gitevals.audit import Audit
from gitevals.contracts.reading import Standing
from gitevals.install.finding import Finding as Found
from gitevals.install.finding import State
from gitevals.journal import Entry
from gitevals.listing import Listed
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract
from gitevals.model.decision import Decision
from gitevals.model.evaluation import CheckRun, Evaluation, Finding, Stored, Stream
from gitevals.report.summary import summary
from gitevals.status import TaskStatus, Tries

SCHEMA = 1
_OBEYED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
Document = dict[str, Any]


def encoded(document: object) -> bytes:
    """``document`` as indented JSON with a line end; what a terminal might obey stands in it as an escape."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def compact(document: object) -> bytes:
    """``document`` as `encoded` has it, on one line."""
    text = msgspec.json.encode(document).decode()
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def evaluation(stored: Stored, tries: Tries | None = None, content: Contract | None = None) -> Document:
    """One evaluation: the stored record, its ``id``, which try it was, and the rows that every report ends in."""
    found = stored.evaluation
    document: Document = {"id": stored.id, **_whole(found)}
    document["findings"] = [_whole(finding) for finding in found.findings]
    for name in ("setup", "verification", "checks"):
        document[name] = [_run(run) for run in getattr(found, name)]
    document["correlation"] = _whole(found.correlation)
    document["summary"] = _whole(summary(found, content))
    if tries is not None:
        document["try"] = {"number": tries.number, "of": tries.count}
    return document


def _whole(record: Evaluation | Finding | msgspec.Struct) -> Document:
    """Every field of ``record``, those at their default too."""
    return {name: msgspec.to_builtins(getattr(record, name)) for name in record.__struct_fields__}


def _run(run: CheckRun) -> Document:
    at_base = None if run.at_base is None else _whole(run.at_base)
    return {**_whole(run), "at_base": at_base, "stdout": _stream(run.stdout), "stderr": _stream(run.stderr)}


def _stream(stream: Stream | None) -> Document | None:
    return None if stream is None else _whole(stream)


def contract(content: Contract, title: str, standing: Standing, differences: Sequence[str]) -> Document:
    """A contract's content and how it stands to what is frozen; ``differences`` are in words."""
    document = _whole(content)
    document["criteria"] = [_whole(criterion) for criterion in content.criteria]
    document["checks"] = {name: _whole(command) for name, command in content.checks.items()}
    for name in ("verification", "setup"):
        document[name] = [_whole(command) for command in getattr(content, name)]
    document["cache"] = [_whole(entry) for entry in content.cache]
    freezes = [{"id": frozen.id, **_whole(frozen.freeze)} for frozen in standing.live]
    return {
        **document,
        "title": title,
        "digest": contracts.digest(content),
        "state": standing.state,
        "differences": list(differences),
        "freezes": freezes,
    }


def decision(found: Decision) -> Document:
    """A decision of the gate."""
    return {"schema": SCHEMA, **_whole(found), "reasons": [_whole(entry) for entry in found.reasons]}


def status(tasks: Sequence[TaskStatus]) -> Document:
    """How tasks stand."""
    return {"schema": SCHEMA, "tasks": [_whole(task) for task in tasks]}


def audit(found: Audit) -> Document:
    """A branch's history, step by step."""
    rows = [{**_whole(row), "reasons": [_whole(entry) for entry in row.reasons]} for row in found.rows]
    return {**_whole(found), "rows": rows, "clean": found.clean}


def tasks(found: Sequence[Listed]) -> Document:
    """How every task stands: `status`, and the episode of each."""
    return {"schema": SCHEMA, "tasks": [{**_whole(row.status), "episode": _whole(row.episode)} for row in found]}


def event(entry: Entry) -> Document:
    """One entry of the journal; what its record says further stands beside what all entries have."""
    document: Document = {
        "event": entry.event, "id": entry.id, "task": entry.task, "time": entry.time, "writer": entry.writer,
        "ledger": entry.ledger,
    }  # fmt: skip
    if isinstance(entry.record, Evaluation):
        found = entry.record
        number = {"number": entry.tries.number, "of": entry.tries.count} if entry.tries else None
        return {
            **document, "result": found.result, "reason": found.reason, "try": number, "contract": found.contract,
            "subject": _whole(found.subject), "after": list(found.after), "correlation": _whole(found.correlation),
        }  # fmt: skip
    shared = ("schema", "kind", "task", "writer", "created", "nonce")
    further = _whole(entry.record) if entry.record is not None else {}
    return document | {name: value for name, value in further.items() if name not in shared}


def journal(entries: Sequence[Entry]) -> Document:
    """The journal."""
    return {"schema": SCHEMA, "events": [event(entry) for entry in entries]}


def doctor(found: Sequence[Found]) -> Document:
    """What the doctor found, and whether nothing of it is a problem."""
    ok = all(entry.state is not State.PROBLEM for entry in found)
    return {"schema": SCHEMA, "findings": [_whole(entry) for entry in found], "ok": ok}
