"""How ledgers grew: which commit first brought each blob."""

from collections.abc import Sequence

import msgspec

from gitevals.git.repo import Repo


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
    pairs = [" ".join(chain[:2]) for chain in chains]
    asked = ("diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-abbrev", "--no-renames", "--always")
    told = repo.run(*asked, stdin=_lines(pairs)).stdout
    blobs = _blobs(told.decode("utf-8", "surrogateescape").split("\0"))
    return [Step(id=chain[0], parents=tuple(chain[1:]), blobs=tuple(blobs.get(chain[0], ()))) for chain in chains]


def _blobs(fields: Sequence[str]) -> dict[str, list[str]]:
    """The new blobs by commit in the output of ``diff-tree -z``: a commit's id, then pairs of what and path."""
    found: dict[str, list[str]] = {}
    rest = iter(fields)
    blobs: list[str] = []
    for field in rest:
        if field.startswith(":"):
            next(rest, "")  # the path: it may look like an id
            blob = field.split(" ")[3]
            blobs += [blob] if blob.strip("0") else []
        elif field:
            blobs = found.setdefault(field, [])
    return found


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()
