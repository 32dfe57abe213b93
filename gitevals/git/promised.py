"""Objects that a partial clone left with its remote: fetched in one go, before anybody misses them."""

import contextlib
import os
import re
import shlex
from collections.abc import Sequence

from gitevals.errors import CannotTell, GitFailed
from gitevals.git.repo import Repo

# A clone without trees needs its top trees, then what hangs on them, then blobs.
_ROUNDS = 6
# As git itself fetches what it finds missing: exactly these objects, no negotiation about history.
_FETCH = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "-q")
_NOTHING_ELSE = (
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--recurse-submodules=no",
    "--filter=blob:none",
    "--stdin",
)


def is_partial(repo: Repo) -> bool:
    """Whether ``repo`` was cloned without some of its objects: git marks packs that promise more."""
    with contextlib.suppress(OSError):
        return any(name.endswith(".promisor") for name in os.listdir(os.path.join(repo.common_dir, "objects", "pack")))
    return False


def bring(reader: Repo, sources: Sequence[Repo], commits: Sequence[str]) -> None:
    """Fetch into each partial clone of ``sources`` whatever ``reader`` lacks of the trees of ``commits``.

    ``reader`` sees the objects of ``sources`` and has no network. A remote that does not answer, or does not have
    what it promised, raises `CannotTell`; a commit that is not there at all is left to whoever reads it.
    """
    for source in sources:
        if is_partial(source):
            _bring(reader, source, commits)


def _bring(reader: Repo, source: Repo, commits: Sequence[str]) -> None:
    before: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        lacking = missing(reader, commits)
        if not lacking:
            return
        _fetch(source, lacking, made_no_progress=lacking == before)
        before = lacking


def missing(reader: Repo, commits: Sequence[str]) -> frozenset[str]:
    """The objects of the trees of ``commits`` that ``reader`` does not have; none if a commit itself is not there."""
    asked = ("--objects", "--no-walk", "--missing=print", "--quiet", *commits, "--")
    listed = reader.run("rev-list", *asked, accept=range(256)).stdout
    return frozenset(line[1:].decode() for line in listed.splitlines() if line.startswith(b"?"))


def _fetch(source: Repo, lacking: frozenset[str], *, made_no_progress: bool) -> None:
    found = remotes(source)
    said = "it sends them not" if made_no_progress else "no remote is a promisor"
    stdin = "".join(f"{oid}\n" for oid in sorted(lacking)).encode()
    for remote in () if made_no_progress else found:
        try:
            source.run(*_FETCH, remote, *_NOTHING_ELSE, stdin=stdin)
            return
        except GitFailed as error:
            said = reason(error.stderr) or error.message
    named = found[0] if found else "the remote"
    raise CannotTell(f"{len(lacking)} promised objects could not be fetched from {named}: {said}", hint=hint(source))


def unfetched(source: Repo, stderr: str) -> CannotTell:
    """The error for what git, which said ``stderr``, should have fetched into a partial clone when it was read."""
    named = next(iter(remotes(source)), "the remote")
    return CannotTell(f"a promised object could not be fetched from {named}: {reason(stderr)}", hint=hint(source))


def reason(stderr: str) -> str:
    """Git's reason: the transport speaks first, then git, then comes advice."""
    return "; ".join([line.strip() for line in stderr.splitlines() if line.strip()][:2])


def hint(source: Repo) -> str:
    """What brings the objects that a partial clone lacks; a plain fetch does not."""
    remote = next(iter(remotes(source)), "REMOTE")
    return f"the clone is partial; this brings everything: `git fetch --refetch --no-filter {shlex.quote(remote)}`"


def remotes(source: Repo) -> list[str]:
    """The remotes that are configured to have what the clone lacks; none where it lacks nothing."""
    asked = ("config", "-z", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$")
    entries = [entry.partition("\n") for entry in os.fsdecode(source.run(*asked, accept=(0, 1)).stdout).split("\0")]
    found = [value for key, _, value in entries if key == "extensions.partialclone"]
    found += [name[1] for key, _, value in entries if (name := re.fullmatch(r"remote\.(.*)\.promisor", key, re.DOTALL))
              and value.lower() not in ("false", "no", "off", "0")]  # fmt: skip
    return list(dict.fromkeys(name for name in found if name and not name.startswith("-")))
