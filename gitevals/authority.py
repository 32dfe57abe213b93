"""The remote whose branches are the authority, and its copies of ours."""

import re
from collections.abc import Sequence

from gitevals.git import refs
from gitevals.git.repo import Repo

HEADS = "refs/heads/"
REMOTES = "refs/remotes/"


def remote_of(repo: Repo, ref: str | None) -> str:
    """The authority's remote: ``evals.remote``, else the remote of the branch ``ref``, else ``origin``."""
    own = f"|branch\\.{re.escape(ref.removeprefix(HEADS))}\\.remote" if ref else ""
    listed = repo.text("config", "--local", "-z", "--get-regexp", f"^(evals\\.remote{own})$", accept=(0, 1))
    found = dict(entry.partition("\n")[::2] for entry in listed.split("\0") if entry)
    return found.pop("evals.remote", "") or next(iter(found.values()), "") or "origin"


def head(repo: Repo) -> str | None:
    """The branch, by its full name, that the authority's remote calls its HEAD, as far as this clone knows."""
    place = f"{REMOTES}{remote_of(repo, None)}/"
    name = repo.text("symbolic-ref", "--quiet", f"{place}HEAD", accept=(0, 1, 128))
    return HEADS + name.removeprefix(place) if name.startswith(place) else None


def copies(repo: Repo, names: Sequence[str]) -> dict[str, str]:
    """The authority's copy of each branch in ``names`` (full names), where there is one."""
    tracking = {f"{REMOTES}{remote_of(repo, name)}/{name.removeprefix(HEADS)}": name for name in names}
    known = refs.values(repo, *tracking) if tracking else {}
    return {tracking[ref]: tip for ref, tip in known.items() if ref in tracking}
