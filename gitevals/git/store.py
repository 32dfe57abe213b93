"""Opening a repository's objects: by libgit2 where it can serve them, by git's plumbing elsewhere."""

import contextlib
from collections.abc import Iterator
from typing import Literal, Protocol

from gitevals.errors import CannotTell
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo

Implementation = Literal["libgit2", "plumbing"]


@contextlib.contextmanager
def opened(repo: Repo, using: Implementation | None = None) -> Iterator[Objects]:
    """The objects of ``repo``, by libgit2 where it can serve them and by plumbing elsewhere, unless ``using`` says."""
    with contextlib.closing(_open(repo, using)) as objects:
        yield objects


class _Closable(Objects, Protocol):
    def close(self) -> None: ...


def _open(repo: Repo, using: Implementation | None) -> _Closable:
    # Imported here because pygit2 alone costs a hook more than its whole budget.
    if using != "plumbing":
        from gitevals.git import libgit

        found = libgit.open_objects(repo)
        if found is not None:
            return found
        if using == "libgit2":
            raise CannotTell(f"libgit2 cannot serve the objects of {repo.git_dir!r}")
    from gitevals.git import plumbing

    return plumbing.PlumbingObjects(repo)
