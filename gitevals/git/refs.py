"""Refs, read by ``for-each-ref`` and moved by ``update-ref``: right in every ref format, and seen by hooks."""

import os
from collections.abc import Sequence

from gitevals.errors import BadInput, GitFailed
from gitevals.git import run
from gitevals.git.repo import Repo
from gitevals.git.run import Started


def values(repo: Repo, *patterns: str) -> dict[str, str]:
    """The id of each ref that a pattern names in full, or that stands below a pattern ending in a slash."""
    if not patterns:
        return {}
    listed = repo.text("for-each-ref", "--format=%(objectname) %(refname)", "--", *patterns)
    found = {name: value for value, _, name in (line.partition(" ") for line in listed.split("\n"))}
    exact = frozenset(patterns)
    prefixes = tuple(pattern for pattern in patterns if pattern.endswith("/"))
    return {name: value for name, value in found.items() if name in exact or name.startswith(prefixes)}


def targets(repo: Repo, *patterns: str) -> dict[str, str]:
    """What each symbolic ref that a pattern means (as in `values`) stands for in the end."""
    listed = repo.text("for-each-ref", "--format=%(refname) %(symref)", "--", *patterns) if patterns else ""
    return {name: target for name, _, target in (line.partition(" ") for line in listed.split("\n")) if target}


# What an operation under way is remembered by as a ref; where all refs are in tables, it is no file.
_OF_OPERATIONS = ("CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_AUTOSTASH")


def is_under_way(repo: Repo, name: str) -> bool:
    """Whether git keeps ``name``, a path in its directory such as ``MERGE_HEAD`` that tells of an operation."""
    if os.path.lexists(os.path.join(repo.git_dir, name)):
        return True
    in_tables = name in _OF_OPERATIONS and os.path.isdir(os.path.join(repo.common_dir, "reftable"))
    return in_tables and bool(repo.text("rev-parse", "--quiet", "--verify", name, accept=(0, 1)))


def update(repo: Repo, ref: str, new: str, old: str, *, held: Sequence[int] = ()) -> bool:
    """Move ``ref`` from ``old`` to ``new`` (`Repo.zero`: it is not there); False is a lost race, to be tried again.

    Once true is returned the move is on disk. Git is neither cut short by Ctrl-C nor by our end, and keeps the locks
    ``held`` until it has ended.

    Git says in English only why it failed, so the repository is asked: another value, or a lock that is there, means
    that somebody else is writing. Where neither is seen the other may just have given up, so it is tried once more; a
    second failure has nothing to do with others and raises `GitFailed`. A ref that stands where ``ref`` needs a
    directory, or below it, raises `BadInput`: no retry helps.
    """
    from gitevals.git import durable  # a hook moves no ref

    failure = _swap(repo, ref, new, old, held)
    if failure is not None and not _is_contended(repo, ref, old):
        check_way(repo, ref)
        failure = _swap(repo, ref, new, old, held)
        if failure is not None and not _is_contended(repo, ref, old):
            raise failure
    if failure is None:
        durable.harden_ref(repo, ref)
    return failure is None


def _swap(repo: Repo, ref: str, new: str, old: str, held: Sequence[int]) -> GitFailed | None:
    from gitevals.git import durable

    command = f"update {ref}\0{new}\0{old}\0".encode("utf-8", "surrogateescape")
    try:
        run.run_to_its_end(
            [f"--git-dir={repo.git_dir}", *durable.GIT, "update-ref", "--no-deref", "--stdin", "-z"],
            env=repo.env,
            cwd=repo.worktree or repo.git_dir,
            stdin=command,
            held=held,
        )
    except GitFailed as failure:
        return failure
    return None


def _is_contended(repo: Repo, ref: str, old: str) -> bool:
    from gitevals.git import locks

    if values(repo, ref).get(ref, repo.zero) != old:
        return True
    return bool(locks.in_the_way(repo, ref))


def check_way(repo: Repo, *wanted: str) -> None:
    """Raise `BadInput` if another ref stands where one of ``wanted`` needs a directory, or below one."""
    ways = [way for ref in wanted for way in (*_above(ref), f"{ref}/")]
    for other in values(repo, *dict.fromkeys(ways)):
        blocked = next(ref for ref in wanted if other in _above(ref) or other.startswith(f"{ref}/"))
        raise BadInput(
            f"ref {other} is in the way of {blocked}",
            hint=f"keep it elsewhere (`git update-ref {_elsewhere(other)} {other}`), then `git update-ref -d {other}`",
        )


def _above(ref: str) -> list[str]:
    """The names that must be free for ``ref`` to be made below them."""
    parts = ref.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]


def _elsewhere(ref: str) -> str:
    return f"refs/old/{ref.removeprefix('refs/')}"


def start(repo: Repo, *patterns: str) -> Started:
    """Start listing what `for-each-ref` matches (its own patterns, ``*`` too); read the answer with `finish`."""
    return repo.start("for-each-ref", "--format=%(objectname) %(refname)", "--", *patterns)


def finish(started: Started) -> dict[str, str]:
    """The listing that was started: id by full name."""
    output, _ = started.communicate()
    if started.returncode != 0:
        hint = "look for damage with `git fsck`"
        raise GitFailed("git for-each-ref failed: the refs cannot be read", status=started.returncode, hint=hint)
    lines = output.decode("utf-8", "surrogateescape").rstrip("\n").split("\n") if output else []
    return {name: value for value, _, name in (line.partition(" ") for line in lines)}
