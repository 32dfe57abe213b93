"""What moved in the user's repository while commands ran: a check can reach it through the objects it borrows."""

import os
from collections.abc import Callable, Collection

import msgspec

from gitevals.evaluate.checks import listed
from gitevals.evidence.reading import CONTRACTS, EVENTS, LOGS, NOTES
from gitevals.git import history, ledger, refs
from gitevals.git.repo import Repo

Refuses = Callable[[str, str, str], str]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """``reason`` says why what was found proves nothing ("" if it stands); ``notes`` tell of all other movements."""

    reason: str = ""
    notes: tuple[str, ...] = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Every ref's value, and the content of the files that say what the repository is set to."""

    refs: dict[str, str]
    files: dict[str, bytes]


def state(repo: Repo) -> State:
    """How the repository stands now."""
    places = {"config": repo.common_dir, "config.worktree": repo.git_dir, "HEAD": repo.git_dir}
    files = {name: _content(os.path.join(place, name)) for name, place in places.items()}
    return State(refs=refs.values(repo, "refs/"), files=files)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def judged(repo: Repo, writer: str, before: State, after: State, refuses: Refuses) -> Moved:
    """What became of it: our own ledgers only grew by our own hand, protected refs moved as the gate lets them.

    ``refuses`` says why the gate would not let a ref move from one id to another, "" if it would or if the ref is not
    protected. Everything else that moved is told and weighs nothing.
    """
    own = {family + writer for family in (NOTES, CONTRACTS, EVENTS)}
    known = ledger.written(repo)
    wrong, others = [], []
    for ref in sorted({*before.refs, *after.refs}):
        old, new = before.refs.get(ref, repo.zero), after.refs.get(ref, repo.zero)
        if old == new:
            continue
        if ref in own:
            if not _is_ours(repo, known, old, new):
                wrong.append(f"{ref} was {_done(repo, new)} by something else ({_undo(repo, ref, old)})")
        elif ref.startswith(f"{LOGS}{writer}/") and new in known:
            continue
        elif why := refuses(ref, old, new):
            wrong.append(f"{ref} was {_done(repo, new)}, which the gate refuses: {why} ({_undo(repo, ref, old)})")
        else:
            others.append(f"{ref} {old[:12]} → {new[:12]}")
    notes = [f"refs that moved meanwhile: {listed(others)}"] if others else []
    files = [name for name, content in before.files.items() if after.files.get(name) != content]
    if files:
        notes.append(f"changed meanwhile in {repo.common_dir}: {listed(files)}")
    return Moved(reason=f"refs_moved: {listed(wrong)}" if wrong else "", notes=tuple(notes))


def _is_ours(repo: Repo, known: Collection[str], old: str, new: str) -> bool:
    """Whether ``new`` is a tip we gave a ledger and holds all that ``old`` held: one set back has lost records."""
    return new in known and (old == repo.zero or history.is_ancestor(repo, old, new))


def _done(repo: Repo, new: str) -> str:
    return "deleted" if new == repo.zero else f"moved to {new[:12]}"


def _undo(repo: Repo, ref: str, old: str) -> str:
    return f"`git update-ref -d {ref}`" if old == repo.zero else f"`git update-ref {ref} {old}`"
