"""The JSON documents of ``--json``: stored values plus what is derived when reading."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gitevals.audit import Audit
from gitevals.contracts.reading import Standing
from gitevals.model.contract import Contract
from gitevals.model.decision import Decision
from gitevals.model.evaluation import CheckRun, Evaluation, Finding, Stored, Stream
from gitevals.status import TaskStatus, Tries

SCHEMA = 1
_OBEYED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
Document = dict[str, Any]


def encoded(document: object) -> bytes:
    """``document`` as indented JSON with a line end; what a terminal might obey stands in it as an escape."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def evaluation(stored: Stored, tries: Tries | None = None) -> Document:
    """One evaluation: the stored record, its ``id``, and which try it was."""
    found = stored.evaluation
    document: Document = {"id": stored.id, **_whole(found)}
    document["findings"] = [_whole(finding) for finding in found.findings]
    for name in ("setup", "verification", "checks"):
        document[name] = [_run(run) for run in getattr(found, name)]
    document["correlation"] = _whole(found.correlation)
    if tries is not None:
        document["try"] = {"number": tries.number, "of": tries.count}
    return document


def _whole(record: Evaluation | Finding | msgspec.Struct) -> Document:
    """Every field of ``record``, those at their default too."""
    return {name: msgspec.to_builtins(getattr(record, name)) for name in record.__struct_fields__}


def _run(run: CheckRun) -> Document:
    return {**_whole(run), "stdout": _stream(run.stdout), "stderr": _stream(run.stderr)}


def _stream(stream: Stream | None) -> Document | None:
    return None if stream is None else _whole(stream)


def contract(content: Contract, title: str, standing: Standing) -> Document:
    """A contract's content and how it stands to what is frozen."""
    document = _whole(content)
    document["criteria"] = [_whole(criterion) for criterion in content.criteria]
    document["checks"] = {name: _whole(command) for name, command in content.checks.items()}
    for name in ("verification", "setup"):
        document[name] = [_whole(command) for command in getattr(content, name)]
    freezes = [{"id": frozen.id, **_whole(frozen.freeze)} for frozen in standing.live]
    return {**document, "title": title, "digest": standing.digest, "state": standing.state, "freezes": freezes}


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
