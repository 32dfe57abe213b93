"""Records that stand in a file of their own: freezes and events, of whatever kind."""

from collections.abc import Iterator, Mapping

import msgspec

from gitevals.evidence.reading import Evidence, Fault
from gitevals.git import trees
from gitevals.git.objects import Objects, read
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
    places = [(name, *place) for name, tip in tips.items() for place in _places(evidence.objects, tip, folder)]
    bodies = evidence.objects.read_many([blob for _, _, blob in places])
    found: dict[str, Filed] = {}
    for (name, task, blob), body in zip(places, bodies, strict=True):
        for line in record.lines(body.body if body else b""):
            if line.fault is None:
                found.setdefault(line.id, Filed(ledger=name, task=task, line=line))
            else:
                evidence.faults.append(Fault(ledger=name, place=blob, fault=line.fault))
    return list(found.values())


def _places(objects: Objects, tip: str, folder: str) -> Iterator[tuple[str, str]]:
    """The task and the blob of each file in ``folder`` of each task's folder."""
    root = read(objects, f"{tip}:")
    tasks = _entries(objects, root.id) if root is not None and root.kind == "tree" else []
    for task in tasks:
        if task.mode == trees.DIRECTORY:
            place = read(objects, f"{task.id}:{folder}") if folder else read(objects, task.id)
            files = _entries(objects, place.id) if place is not None and place.kind == "tree" else []
            yield from ((task.name, file.id) for file in files if file.name.endswith(_SUFFIX))


def _entries(objects: Objects, tree: str) -> list[trees.Entry]:
    return trees.load(objects, [tree])[0]
