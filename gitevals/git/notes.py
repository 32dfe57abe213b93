"""Where notes stand in a notes tree: written at one place, read at whatever depth another program chose."""

import re
from collections.abc import Iterator

from gitevals.git import trees
from gitevals.git.objects import Objects
from gitevals.git.trees import Entry

_FAN_OUT = re.compile("[0-9a-f]{2}")
_HEX = re.compile("[0-9a-f]+")


def path_of(object_id: str) -> str:
    """The one path at which we write the note of an object: ``ab/cdef…``."""
    return f"{object_id[:2]}/{object_id[2:]}"


def blobs_of(objects: Objects, tree: str, object_id: str) -> list[str]:
    """The blob of each note for ``object_id`` below ``tree``, the least deep first; one read for each depth."""
    blobs = []
    directory: str | None = tree
    rest = object_id
    while directory is not None:
        named = {entry.name: entry for entry in trees.load(objects, [directory])[0]}
        if rest in named and _is_file(named[rest]):
            blobs.append(named[rest].id)
        deeper = named.get(rest[:2])
        directory = deeper.id if deeper and deeper.mode == trees.DIRECTORY and len(rest) > 2 else None
        rest = rest[2:]
    return blobs


def all_notes(objects: Objects, tree: str) -> Iterator[tuple[str, str]]:
    """The annotated object and the blob of each note below ``tree``; an object comes once for each of its notes."""
    length = 2 * trees.id_length_bytes(objects.object_format)
    level = [("", tree)]
    while level:
        below = []
        loaded = trees.load(objects, [tree_id for _, tree_id in level])
        for (prefix, _), entries in zip(level, loaded, strict=True):
            for entry in entries:
                full = prefix + entry.name
                if _is_file(entry) and len(full) == length and _HEX.fullmatch(entry.name):
                    yield full, entry.id
                elif entry.mode == trees.DIRECTORY and len(full) < length and _FAN_OUT.fullmatch(entry.name):
                    below.append((full, entry.id))
        level = below


def _is_file(entry: Entry) -> bool:
    return entry.mode.startswith("100")
