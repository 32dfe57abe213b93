"""Tree objects: read, write, and edit many paths at once while touching only what changes."""

import hashlib
import re
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from gitevals.errors import BadInput, CannotTell, ObjectMissing
from gitevals.git.objects import GitObject, NewObject, Objects, read

FILE = "100644"
EXECUTABLE = "100755"
DIRECTORY = "40000"

_RAW = {length: re.compile(rb"([0-7]+) ([^\0/]+)\0(.{%d})" % length, re.DOTALL) for length in (20, 32)}
_REFUSED_NAMES = ("", ".", "..", ".git", "git~1")

Directories = dict[str, dict[str, "Entry | None"]]


class Entry(msgspec.Struct, frozen=True):
    """One entry of a tree; ``mode`` as git stores it (``100644``, ``40000``), undecodable bytes of ``name`` escaped."""

    mode: str
    name: str
    id: str


def object_id(kind: str, body: bytes, object_format: str) -> str:
    """The id git gives to an object."""
    return hashlib.new(object_format, b"%s %d\0" % (kind.encode(), len(body)) + body, usedforsecurity=False).hexdigest()


def id_length_bytes(object_format: str) -> int:
    """How many bytes an id takes in a tree's body."""
    return 32 if object_format == "sha256" else 20


def raw_entries(body: bytes, id_length_bytes: int) -> list[tuple[bytes, bytes, bytes]]:
    """Mode, name and binary id of each entry: for readers of very many trees."""
    found: list[tuple[bytes, bytes, bytes]] = _RAW[id_length_bytes].findall(body)
    if sum(len(mode) + len(name) for mode, name, _ in found) + (2 + id_length_bytes) * len(found) != len(body):
        raise CannotTell("a tree object is damaged", hint="look for more with `git fsck`")
    return found


def parse(body: bytes, id_length_bytes: int) -> list[Entry]:
    """The entries of a tree's body, in the order they are stored."""
    return [
        Entry(mode.decode(), name.decode("utf-8", "surrogateescape"), binary.hex())
        for mode, name, binary in raw_entries(body, id_length_bytes)
    ]


def serialise(entries: Iterable[Entry]) -> bytes:
    """The body of a tree with ``entries``, sorted as git wants them: a directory as if its name ended in a slash."""
    lines = []
    for entry in entries:
        name = entry.name.encode("utf-8", "surrogateescape")
        key = name + b"/" if entry.mode == DIRECTORY else name
        lines.append((key, b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.id))))
    return b"".join(line for _, line in sorted(lines))


def load(objects: Objects, tree_ids: Sequence[str]) -> list[list[Entry]]:
    """The entries of each tree, by one read; `ObjectMissing` where an id is no tree here."""
    loaded = []
    for tree_id, tree in zip(tree_ids, objects.read_many(tree_ids), strict=True):
        if tree is None or tree.kind != "tree":
            raise ObjectMissing(f"tree {tree_id} is missing", hint="fetch it again, or look with `git fsck`")
        loaded.append(parse(tree.body, id_length_bytes(objects.object_format)))
    return loaded


def find(objects: Objects, root: str, path: str) -> GitObject | None:
    """What stands at ``path`` below a commit, tag or tree, by reading each tree on the way."""
    found = read(objects, root)
    while found is not None and found.kind in ("commit", "tag"):
        found = read(objects, found.body.split(b"\n", 1)[0].split(b" ")[1].decode())
    for part in path.split("/") if path else ():
        if found is None or found.kind != "tree":
            return None
        named = {entry.name: entry.id for entry in parse(found.body, id_length_bytes(objects.object_format))}
        if part not in named:
            return None
        found = read(objects, named[part])
    return found


class Uncommitted:
    """``objects`` to read from; what is written there is given its id and otherwise dropped."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def object_format(self) -> str:
        """As that of the objects read from."""
        return self._objects.object_format

    def read_many(self, names: Sequence[str]) -> list[GitObject | None]:
        """As the objects read from have them."""
        return self._objects.read_many(names)

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The ids that the objects would have."""
        return [object_id(new.kind, new.body, self.object_format) for new in objects]


def edit(objects: Objects, root: str | None, changes: Mapping[str, str | Entry | None]) -> str:
    """The tree ``root`` with each path set to a blob, or gone (file or directory) where the change is None.

    An `Entry` as a change brings its own mode, so that a whole directory can be set; its name is not looked at. A file
    gives way to a directory and the other way round; directories that become empty vanish. No path of ``changes`` may
    lead through another. Removing the last entry leaves the empty tree.
    """
    wanted = _by_directory(changes)
    present = _present(objects, root, wanted)
    made: list[NewObject] = []
    for directory in sorted(wanted, key=_depth, reverse=True):
        before = present.get(directory)
        after = _applied(before or {}, wanted[directory])
        if after == before:
            continue
        if after or not directory:
            made.append(NewObject("tree", serialise(after.values())))
        if directory and (after or before is not None):
            parent, name = _split(directory)
            new_id = object_id("tree", made[-1].body, objects.object_format) if after else ""
            wanted[parent][name] = Entry(DIRECTORY, name, new_id) if after else None
    return objects.write_many(made)[-1] if made or root is None else root


def _by_directory(changes: Mapping[str, str | Entry | None]) -> Directories:
    wanted: Directories = {"": {}}
    for path, change in changes.items():
        if any(part.lower() in _REFUSED_NAMES or "\0" in part for part in path.split("/")):
            raise BadInput(f"{path!r} cannot be a path in a tree")
        directory, name = _split(path)
        wanted.setdefault(directory, {})[name] = _entry(name, change)
        while directory and (directory := _split(directory)[0]) not in wanted:
            wanted[directory] = {}
    for path in changes:
        if path in wanted:
            raise ValueError(f"{path!r} is changed as a file and as a directory")
    return wanted


def _entry(name: str, change: str | Entry | None) -> Entry | None:
    if isinstance(change, Entry):
        return Entry(change.mode, name, change.id)
    return Entry(FILE, name, change) if change else None


def _present(objects: Objects, root: str | None, wanted: Directories) -> dict[str, dict[str, Entry]]:
    """The entries of each existing directory that a change goes through; one read for each level."""
    present: dict[str, dict[str, Entry]] = {}
    level = {"": root} if root else {}
    while level:
        for directory, entries in zip(level, load(objects, list(level.values())), strict=True):
            present[directory] = {entry.name: entry for entry in entries}
        level = _below(level, present, wanted)
    return present


def _below(level: Container[str], present: Mapping[str, Mapping[str, Entry]], wanted: Directories) -> dict[str, str]:
    below = {}
    for directory in wanted:
        parent, name = _split(directory)
        entry = present[parent].get(name) if directory and parent in level else None
        if entry is not None and entry.mode == DIRECTORY:
            below[directory] = entry.id
    return below


def _applied(before: Mapping[str, Entry], changes: Mapping[str, Entry | None]) -> dict[str, Entry]:
    after = {**before, **changes}
    return {name: entry for name, entry in after.items() if entry is not None}


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _depth(directory: str) -> int:
    return directory.count("/") + 1 if directory else 0
