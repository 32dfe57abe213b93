"""Records that stand in a file of their own: freezes and events, of whatever kind."""

import itertools
from collections.abc import Iterator, Mapping

import msgspec

from gitevals.evidence.reading import READ_AT_ONCE, Evidence
from gitevals.git import trees
from gitevals.git.objects import GitObject, Objects, read
from gitevals.model import record

_SUFFIX = ".json"


class Filed(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was read: the ledger ref that holds it, and the task whose folder it stands in."""

    ledger: str
    task: str
    line: record.Line


def freezes(evidence: Evidence) -> list[Filed]:
    """Every line that stands where a freeze does, each record once; what cannot be read is added to the faults."""
    return _read(evidence, evidence.ledgers.contracts, "freezes")


def events(evidence: Evidence) -> list[Filed]:
    """Every line of the events ledgers, each record once; what cannot be read is added to the faults."""
    return _read(evidence, evidence.ledgers.events, "")


def _read(evidence: Evidence, tips: Mapping[str, str], folder: str) -> list[Filed]:
    found: dict[str, Filed] = {}
    for name, tip in tips.items():
        places = _places(evidence.objects, tip, folder)
        while some := list(itertools.islice(places, READ_AT_ONCE)):
            bodies = evidence.objects.read_many([blob for _, blob in some], limit_bytes=record.LINE_LIMIT_BYTES)
            for (task, blob), body in zip(some, bodies, strict=True):
                for line in _lines(evidence, name, blob, body.body if body else b""):
                    found.setdefault(line.id, Filed(ledger=name, task=task, line=line))
    return list(found.values())


def _lines(evidence: Evidence, ledger: str, place: str, body: bytes) -> Iterator[record.Line]:
    """The lines of a file that can be read; one larger than a record may be has none."""
    if len(body) > record.LINE_LIMIT_BYTES:
        evidence.tell(ledger, place, record.Fault.TOO_LONG)
        return
    for line in record.lines(body):
        if line.fault is None:
            yield line
        else:
            evidence.tell(ledger, place, line.fault)


def _places(objects: Objects, tip: str, folder: str) -> Iterator[tuple[str, str]]:
    """The task and the blob of each file in ``folder`` of each task's folder, a blob once a folder."""
    root = read(objects, f"{tip}:")
    for task in _entries(objects, root):
        if task.mode == trees.DIRECTORY:
            place = read(objects, f"{task.id}:{folder}") if folder else read(objects, task.id)
            within = _entries(objects, place)
            for blob in dict.fromkeys(file.id for file in within if file.name.endswith(_SUFFIX)):
                yield task.name, blob


def _entries(objects: Objects, found: GitObject | None) -> Iterator[trees.Entry]:
    if found is not None and found.kind == "tree":
        yield from trees.entries(found.body, trees.id_length_bytes(objects.object_format))
