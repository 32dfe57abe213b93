"""Tree objects: read, write, and edit many paths at once while touching only what changes."""

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from gitevals.errors import BadInput, CannotTell, ObjectMissing
from gitevals.git.objects import GitObject, NewObject, Objects, read

FILE = "100644"
EXECUTABLE = "100755"
DIRECTORY = "40000"
SUBMODULE = "160000"

_RAW = {length: re.compile(rb"([0-7]+) ([^\0/]+)\0(.{%d})" % length, re.DOTALL) for length in (20, 32)}
_LOST = "fetch it again, or look with `git fsck`"
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


def raw_entries(body: bytes, id_length_bytes: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Mode, name and binary id of each entry, one by one; raises at the end where the tree is damaged."""
    end = 0
    for entry in _RAW[id_length_bytes].finditer(body):
        if entry.start() != end:
            break
        end = entry.end()
        mode, name, binary = entry.groups()
        yield mode, name, binary
    if end != len(body):
        raise CannotTell("a tree object is damaged", hint="look for more with `git fsck`")


def entries(body: bytes, id_length_bytes: int) -> Iterator[Entry]:
    """The entries of a tree's body one by one, as `raw_entries` finds them: a tree may have very many."""
    for mode, name, binary in raw_entries(body, id_length_bytes):
        yield Entry(mode.decode(), name.decode("utf-8", "surrogateescape"), binary.hex())


def parse(body: bytes, id_length_bytes: int) -> list[Entry]:
    """The entries of a tree's body, in the order they are stored."""
    return list(entries(body, id_length_bytes))


def serialise(entries: Iterable[Entry]) -> bytes:
    """The body of a tree with ``entries``, sorted as git wants them: a directory as if its name ended in a slash."""
    lines = []
    for entry in entries:
        name = entry.name.encode("utf-8", "surrogateescape")
        key = name + b"/" if entry.mode == DIRECTORY else name
        lines.append((key, b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.id))))
    return b"".join(line for _, line in sorted(lines))


def bodies(objects: Objects, tree_ids: Sequence[str]) -> list[bytes]:
    """The body of each tree, by one read; `ObjectMissing` where an id is no tree here."""
    found = []
    for tree_id, tree in zip(tree_ids, objects.read_many(tree_ids), strict=True):
        if tree is None or tree.kind != "tree":
            raise ObjectMissing(f"tree {tree_id} is missing", hint=_LOST)
        found.append(tree.body)
    return found


def load(objects: Objects, tree_ids: Sequence[str]) -> list[list[Entry]]:
    """The entries of each tree, by one read; `ObjectMissing` where an id is no tree here."""
    length = id_length_bytes(objects.object_format)
    return [parse(body, length) for body in bodies(objects, tree_ids)]


def find(objects: Objects, root: str, path: str, *, limit_bytes: int | None = None) -> GitObject | None:
    """What stands at ``path`` below a commit, tag or tree, by reading each tree on the way."""
    found = read(objects, root)
    while found is not None and found.kind in ("commit", "tag"):
        named = found.body.partition(b"\n")[0].partition(b" ")[2]  # of damage, what is no id
        found = read(objects, named.decode("utf-8", "replace"))
    parts = path.split("/") if path else []
    for depth, part in enumerate(parts, 1):
        if found is None or found.kind != "tree":
            return None
        wanted = part.encode("utf-8", "surrogateescape")
        within = raw_entries(found.body, id_length_bytes(objects.object_format))
        ids = [binary.hex() for _, name, binary in within if name == wanted]
        if not ids:
            return None
        found = read(objects, ids[-1], limit_bytes=limit_bytes if depth == len(parts) else None)
    return found


def require_absent(objects: Objects, root: str, paths: Iterable[str]) -> None:
    """Raise `ObjectMissing` if a tree below the commit ``root`` names one of ``paths``, where nothing can be read."""
    for path in paths:
        directory, _, name = path.rpartition("/")
        above = read(objects, f"{root}:{directory}")
        if above is None and not directory:
            raise ObjectMissing(f"commit {root[:12]} or its tree is missing", hint=_LOST)
        if above is None:
            require_absent(objects, root, [directory])
        elif above.kind == "tree" and _names(above, name):
            raise ObjectMissing(f"{path} of {root[:12]} is missing", hint=_LOST)


def _names(tree: GitObject, name: str) -> bool:
    return any(entry.name == name and entry.mode != SUBMODULE for entry in entries(tree.body, len(tree.id) // 2))


class Uncommitted:
    """``objects`` to read from; what is written there is given its id and otherwise dropped."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def object_format(self) -> str:
        """As that of the objects read from."""
        return self._objects.object_format

    def read_many(self, names: Sequence[str], *, limit_bytes: int | None = None) -> list[GitObject | None]:
        """As the objects read from have them."""
        return self._objects.read_many(names, limit_bytes=limit_bytes)

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The ids that the objects would have."""
        return [object_id(new.kind, new.body, self.object_format) for new in objects]

    def settle(self) -> None:
        """Nothing was written."""

    def release(self) -> None:
        """Nothing was written."""


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
