"""The work trees of a repository, as git lists them."""

import msgspec

from gitevals.git.repo import Repo


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list: ``branch`` is a full ref name, "" if none is checked out.

    ``path`` is the git directory where a repository is bare, or its main work tree is a submodule's or kept apart.
    """

    path: str
    branch: str = ""
    bare: bool = False


def worktrees(repo: Repo) -> list[Worktree]:
    """Every work tree of ``repo``, the main one (or the bare repository) first; linked ones may be gone by now."""
    listed = repo.run("worktree", "list", "--porcelain", "-z").stdout.decode("utf-8", "surrogateescape")
    blocks = [block.strip("\0") for block in listed.split("\0\0")]
    rows = [dict(field.partition(" ")[::2] for field in block.split("\0")) for block in blocks if block]
    return [Worktree(path=row["worktree"], branch=row.get("branch", ""), bare="bare" in row) for row in rows]
