"""One command's view of a repository: opened once, handed to whatever the command calls."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping

import msgspec

from gitevals.contracts.asking import asking
from gitevals.contracts.stating import Ask, Source
from gitevals.evidence import writing
from gitevals.evidence.reading import Evidence, gathered
from gitevals.git import repo
from gitevals.git.objects import Objects
from gitevals.git.store import opened


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, its open objects, and the variables the command was started with.

    ``ask`` runs an operator's command for a task's text, each once for as long as the session lasts; without it texts
    are taken as they were frozen.
    """

    repo: repo.Repo
    objects: Objects
    inherited: Mapping[str, str]
    ask: Ask | None = None

    def evidence(self) -> Evidence:
        """The evidence that is here now."""
        return gathered(self.repo, self.objects)

    def source(self) -> Source:
        """Where this command looks up what bases state."""
        return Source(repo=self.repo, objects=self.objects, evidence=self.evidence(), ask=self.ask)

    def store(self, repository: str) -> writing.Store:
        """The place this clone writes records to; picks a writer id the first time."""
        writer = writing.writer_of(self.repo, self.inherited, socket.gethostname())
        return writing.Store(repo=self.repo, objects=self.objects, writer=writer, repository=repository)

    def scratch_directory(self) -> str | None:
        """Where scratch checkouts are to stand: ``evals.scratchDir``, or None for TMPDIR."""
        return self.repo.setting("evals.scratchDir") or None

    def actor(self) -> str:
        """Who runs the command, as git's identity tells it, or "" where none is set."""
        name = self.repo.setting("user.name")
        email = self.repo.setting("user.email")
        return f"{name} <{email}>" if email else name


@contextlib.contextmanager
def session(inherited: Mapping[str, str] | None = None) -> Iterator[Session]:
    """The session of a command that was started here."""
    found = dict(os.environ if inherited is None else inherited)
    here = repo.discover(inherited=found)
    with opened(here) as objects:
        yield Session(repo=here, objects=objects, inherited=found, ask=asking(here, found))
