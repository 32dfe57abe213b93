"""Where notes stand in a notes tree: written at one place, read at whatever depth another program chose."""

import re
from collections.abc import Iterator

from gitevals.git import trees
from gitevals.git.objects import Objects
from gitevals.git.trees import Entry

_FAN_OUT = re.compile("[0-9a-f]{2}")
_HEX = re.compile("[0-9a-f]+")
ALIKE_LIMIT = 64  # notes that end in the same digits, in a layout so deep that no git makes it
_TREES_AT_ONCE = 64


def path_of(object_id: str) -> str:
    """The one path at which we write the note of an object: ``ab/cdef…``."""
    return f"{object_id[:2]}/{object_id[2:]}"


def blobs_of(objects: Objects, tree: str, object_id: str) -> list[str]:
    """The blob of each note for ``object_id`` below ``tree``, the least deep first; one read for each depth."""
    blobs = []
    directory: str | None = tree
    rest = object_id
    while directory is not None:
        [body] = trees.bodies(objects, [directory])
        within = trees.entries(body, trees.id_length_bytes(objects.object_format))
        named = {entry.name: entry for entry in within if entry.name in (rest, rest[:2])}
        if rest in named and _is_file(named[rest]):
            blobs.append(named[rest].id)
        deeper = named.get(rest[:2])
        directory = deeper.id if deeper and deeper.mode == trees.DIRECTORY and len(rest) > 2 else None
        rest = rest[2:]
    return blobs


def all_notes(objects: Objects, tree: str) -> Iterator[tuple[str, str]]:
    """The annotated object and the blob of each note below ``tree``; an object comes once for each of its notes.

    Of the directories of one level that are the same tree, at most `ALIKE_LIMIT` are looked into: few objects can stand
    for very many paths.
    """
    level = {tree: [""]}
    while level:
        below: dict[str, list[str]] = {}
        waiting = list(level)
        for start in range(0, len(waiting), _TREES_AT_ONCE):
            asked = waiting[start : start + _TREES_AT_ONCE]
            for tree_id, body in zip(asked, trees.bodies(objects, asked), strict=True):
                for prefix in level[tree_id]:
                    yield from _notes_in(objects, prefix, body, below)
        level = below


def _notes_in(objects: Objects, prefix: str, body: bytes, below: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The notes that stand in one directory; its directories are added to ``below``, by tree, with their prefixes."""
    id_bytes = trees.id_length_bytes(objects.object_format)
    for entry in trees.entries(body, id_bytes):
        length = len(prefix) + len(entry.name)
        if _is_file(entry) and length == 2 * id_bytes and _HEX.fullmatch(entry.name):
            yield prefix + entry.name, entry.id
        elif entry.mode == trees.DIRECTORY and length < 2 * id_bytes and _FAN_OUT.fullmatch(entry.name):
            alike = below.setdefault(entry.id, [])
            if len(alike) < ALIKE_LIMIT:
                alike.append(prefix + entry.name)


def _is_file(entry: Entry) -> bool:
    return entry.mode.startswith("100")
