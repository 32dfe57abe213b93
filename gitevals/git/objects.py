"""Read and write git objects through one small interface that libgit2 and git's plumbing both serve."""

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from gitevals.errors import ObjectMissing


class GitObject(msgspec.Struct, frozen=True):
    """An object as stored: its hex id, its kind (``blob``, ``tree``, ``commit``, ``tag``), its body without header."""

    id: str
    kind: str
    body: bytes


class NewObject(msgspec.Struct, frozen=True):
    """An object to write; the kind as in `GitObject`, the body is taken as it is."""

    kind: str
    body: bytes


class Name(msgspec.Struct, frozen=True):
    """What to read: the object ``id``, or what stands at ``path`` below it (``""`` is its root tree)."""

    id: str
    path: str | None


class Objects(Protocol):
    """An open object database."""

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""

    def read_many(self, names: Sequence[str], *, limit_bytes: int | None = None) -> list[GitObject | None]:
        """The object for each name, None where there is none.

        A name is a full lower-case hex id, or ``<id>:<path>`` with the id of a commit, tag or tree. Of a body larger
        than ``limit_bytes`` only one byte more than these is read, which tells it from one that fits.
        """

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The hex id of each object, after all of them are in the database."""

    def settle(self) -> None:
        """Return once everything written since `release` is there and would survive a loss of power.

        What another git took away meanwhile, because no ref names it yet, is written again.
        """

    def release(self) -> None:
        """Answer no longer for what was written so far: refs name it now, or nobody wants it."""


def read(objects: Objects, name: str, *, limit_bytes: int | None = None) -> GitObject | None:
    """The object called ``name``, or None; ``limit_bytes`` as in `Objects.read_many`."""
    return objects.read_many([name], limit_bytes=limit_bytes)[0]


def require(objects: Objects, name: str) -> GitObject:
    """The object called ``name``; `ObjectMissing` where there is none."""
    found = read(objects, name)
    if found is None:
        raise ObjectMissing(
            f"object {name.removesuffix(':')} is missing", hint="fetch it again, or look with `git fsck`"
        )
    return found


def parse_name(name: str, object_format: str) -> Name | None:
    """``name`` taken apart; None for what is no name here (an abbreviated id, a ref), although git would read it."""
    object_id, colon, path = name.partition(":")
    if not _FULL_ID[object_format].fullmatch(object_id) or not (path.isascii() or _stands_for_bytes(path)):
        return None
    return Name(object_id, path if colon else None)


def _stands_for_bytes(path: str) -> bool:
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


_FULL_ID = {"sha1": re.compile("[0-9a-f]{40}"), "sha256": re.compile("[0-9a-f]{64}")}
