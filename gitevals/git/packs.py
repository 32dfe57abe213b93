"""Many objects written by one git process: as a pack on its standard input (format: gitformat-pack(5))."""

import contextlib
from collections.abc import Sequence

from gitevals.errors import GitFailed
from gitevals.git.objects import NewObject
from gitevals.git.repo import Repo

# From here on a pack of their own is cheaper than a file for each object.
KEEP_PACK_FROM = 100
# ``git gc`` removes directories that it has emptied, also from under whoever is about to put an object into one.
TRIES = 5
_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}


def store(repo: Repo, objects: Sequence[NewObject]) -> None:
    """Put ``objects``, each named once, into the database: a few as loose ones, many as one pack on disk."""
    content = pack(objects, repo.object_format)
    for _ in range(TRIES - 1):
        with contextlib.suppress(GitFailed):
            return _put(repo, objects, content)
    return _put(repo, objects, content)


def _put(repo: Repo, objects: Sequence[NewObject], content: bytes) -> None:
    from gitevals.git import durable  # the gate writes nothing that must last

    if len(objects) < KEEP_PACK_FROM:
        repo.run("unpack-objects", "-q", stdin=content)
    else:
        repo.run(*durable.GIT, "index-pack", "--stdin", stdin=content)


def pack(objects: Sequence[NewObject], object_format: str) -> bytes:
    """A pack, version 2, without deltas."""
    import hashlib  # the gate reads packs of nobody and writes none
    import zlib

    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for new in objects:
        parts += [_header(_KINDS[new.kind], len(new.body)), zlib.compress(new.body, 1)]
    content = b"".join(parts)
    return content + hashlib.new(object_format, content, usedforsecurity=False).digest()


def _header(kind: int, size: int) -> bytes:
    header = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        header[-1] |= 128
        header.append(size & 127)
        size >>= 7
    return bytes(header)
