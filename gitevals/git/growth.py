"""How ledgers grew: which commit first brought each blob."""

import contextlib
import resource
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from gitevals.errors import GitFailed
from gitevals.git.repo import Repo

_PIECE_BYTES = 1 << 16
MEMORY_LIMIT_BYTES = 1 << 28  # of one git; a million paths of one commit fit


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a chain: its id, its parents, and the blobs that it has and its first parent has not."""

    id: str
    parents: tuple[str, ...]
    blobs: tuple[str, ...]


def steps(repo: Repo, tips: Sequence[str]) -> list[Step]:
    """Every commit that ``tips`` reach, parents before children, by two processes; raises `GitFailed` on damage."""
    if not tips:
        return []
    listed = repo.run("rev-list", "--topo-order", "--reverse", "--parents", "--stdin", stdin=_lines(tips)).stdout
    chains = [row.split() for row in listed.decode().splitlines()]
    # With a parent beside it a commit is compared to that one alone; without one, to the empty tree.
    blobs = _blobs(repo, _lines([" ".join(chain[:2]) for chain in chains]))
    return [Step(id=chain[0], parents=tuple(chain[1:]), blobs=tuple(blobs.get(chain[0], ()))) for chain in chains]


def _blobs(repo: Repo, pairs: bytes) -> dict[str, dict[str, None]]:
    """The new blobs by commit, each once."""
    found: dict[str, dict[str, None]] = {}
    fields = _told(repo, pairs)
    blobs: dict[str, None] = {}
    for field in fields:
        if field.startswith(b":"):
            next(fields, b"")  # the path: it may look like an id
            blob = field.split(b" ")[3].decode()
            blobs.update({blob: None} if blob.strip("0") else {})
        elif field:
            blobs = found.setdefault(field.decode("utf-8", "surrogateescape"), {})
    return found


def _told(repo: Repo, pairs: bytes) -> Iterator[bytes]:
    """The fields of ``diff-tree -z`` as they come, for one commit may have very many: its id, then what and path."""
    asked = ("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-abbrev", "--no-renames", "--always")
    started = repo.start(*asked, piped=True)
    stdin, stdout = started.stdin, started.stdout
    if stdin is None or stdout is None:
        raise ValueError("it was started without pipes")
    _bound(started.pid)
    feeding = threading.Thread(target=_feed, args=(stdin, pairs))
    feeding.start()
    try:
        rest = b""
        while piece := stdout.read(_PIECE_BYTES):
            *whole, rest = (rest + piece).split(b"\0")
            yield from whole
        yield rest
    finally:
        stdout.close()
        feeding.join()
        status = started.wait()
    if status != 0:
        hint = "look for damage with `git fsck`"
        raise GitFailed(f"git diff-tree failed: exit {status}", status=status, hint=hint)


def _bound(process: int) -> None:
    # Git gathers all paths of a commit before it tells the first, and few trees can stand for more than any memory
    # holds. It ends with an error then, which is told like any damage.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def _feed(stdin: IO[bytes], pairs: bytes) -> None:
    with contextlib.suppress(OSError), stdin:  # one that ends early says so by its status
        stdin.write(pairs)


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()
