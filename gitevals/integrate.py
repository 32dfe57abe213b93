"""Change and target become one candidate: what is checked out, and which trees the evidence will name."""

from typing import Literal

import msgspec

from gitevals.errors import BadInput, CannotTell, EvalsError, GitFailed
from gitevals.git.repo import Repo
from gitevals.git.scratch import Scratch, quoted
from gitevals.git.scratch_merge import merge

Strategy = Literal["none", "ort", "given"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """``heads`` integrated with ``base``; ``commit`` and ``tree`` are None if they do not merge.

    ``commit`` is what to check out: the head itself when ``base`` is its ancestor, else the merge commit.
    """

    base: str
    base_tree: str
    heads: tuple[str, ...]
    commit: str | None
    tree: str | None
    strategy: Strategy
    conflicts: tuple[str, ...] = ()
    note: str = ""


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    base: str
    base_tree: str
    commit: str
    tree: str
    parents: tuple[str, ...]


def plan(repo: Repo, *, base: str, head: str) -> Candidate | None:
    """The candidate that needs no merge because ``base`` is an ancestor of ``head``; None if a real merge is needed."""
    return _plan(repo, _named(repo, base, head))


def given(repo: Repo, *, base: str, commit: str) -> Candidate | None:
    """The merge that a person resolved: first parent ``base``, and more; any other commit is planned like a branch."""
    named = _named(repo, base, commit)
    if named.parents[:1] != (named.base,) or len(named.parents) < 2:
        return _plan(repo, named)
    return _checked_out(named, heads=named.parents[1:], strategy="given")


def in_scratch(scratch: Scratch, *, base: str, head: str) -> Candidate:
    """The candidate that a real merge of ``head`` into ``base`` makes; conflicts leave it without commit and tree."""
    outcome = merge(scratch, base, head)
    drivers = ", ".join(quoted(name) for name in outcome.custom_drivers)
    notes = (outcome.message, f"custom merge drivers were not used: {drivers}" if drivers else "")
    return Candidate(
        base=base,
        base_tree=outcome.base_tree,
        heads=(head,),
        commit=outcome.commit,
        tree=outcome.tree,
        strategy="ort",
        conflicts=outcome.conflicts,
        note="; ".join(note for note in notes if note),
    )


def _plan(repo: Repo, named: _Named) -> Candidate | None:
    common = repo.text("merge-base", named.base, named.commit, accept=(0, 1))
    if common == named.commit:
        raise BadInput(
            f"nothing to merge: {named.commit[:12]} is in {named.base[:12]} already",
            hint="name a branch that has commits of its own",
        )
    return _checked_out(named, heads=(named.commit,), strategy="none") if common == named.base else None


def _checked_out(named: _Named, *, heads: tuple[str, ...], strategy: Strategy) -> Candidate:
    return Candidate(
        base=named.base, base_tree=named.base_tree, heads=heads, commit=named.commit, tree=named.tree, strategy=strategy
    )


def _named(repo: Repo, base: str, commit: str) -> _Named:
    asked = (f"{base}^{{commit}}", f"{base}^{{tree}}", f"{commit}^{{commit}}", f"{commit}^{{tree}}", f"{commit}^@")
    if base.startswith("-") or commit.startswith("-"):
        raise _unknown(base, commit)
    try:
        found = repo.text("rev-parse", *asked, "--").splitlines()
    except GitFailed as error:
        raise _unread(repo, base, commit) from error
    if any(line.startswith("^") for line in found):  # a range
        raise _unknown(base, commit)
    return _Named(base=found[0], base_tree=found[1], commit=found[2], tree=found[3], parents=tuple(found[4:-1]))


def _unread(repo: Repo, base: str, commit: str) -> EvalsError:
    """Why two names are not two commits: nobody would type a full id, so one that cannot be read is lost or damaged."""
    for name in (base, commit):
        is_id = len(name) == len(repo.zero) and name.isalnum()
        if is_id and repo.run("cat-file", "-t", f"{name}^{{tree}}", accept=range(256)).status:
            hint = "`git fetch` brings what is missing, `git fsck` finds damage"
            return CannotTell(f"commit {name[:12]} or its tree cannot be read", hint=hint)
    return _unknown(base, commit)


def _unknown(base: str, commit: str) -> BadInput:
    return BadInput(
        f"not two commits of this repository: {quoted(base)!r} and {quoted(commit)!r}", hint="`git fetch` first"
    )
