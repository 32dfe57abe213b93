"""Refs of the user's repository that moved while commands ran: a check can reach them through what it borrows."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from gitevals.evaluate.checks import listed
from gitevals.evidence.reading import CONTRACTS, EVENTS, LOGS, NOTES
from gitevals.git import history, ledger
from gitevals.git.repo import Repo

Refuses = Callable[[str, str, str], str]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """``reason`` says why what was found proves nothing ("" if it stands); ``notes`` tell of all other movements."""

    reason: str = ""
    notes: tuple[str, ...] = ()


def judged(repo: Repo, writer: str, before: Mapping[str, str], after: Mapping[str, str], refuses: Refuses) -> Moved:
    """What became of the refs: our own ledgers only grew by our own hand, protected refs moved as the gate lets them.

    ``refuses`` says why the gate would not let a ref move from one id to another, "" if it would or if the ref is not
    protected. Everything else that moved is told and weighs nothing.
    """
    own = {family + writer for family in (NOTES, CONTRACTS, EVENTS)}
    known = ledger.written(repo)
    wrong, others = [], []
    for ref in sorted(ref for ref in {*before, *after} if before.get(ref) != after.get(ref)):
        old, new = before.get(ref, repo.zero), after.get(ref, repo.zero)
        if ref in own:
            if not _is_ours(repo, known, old, new):
                wrong.append(f"{ref} was {_done(repo, new)} by something else ({_undo(repo, ref, old)})")
        elif ref.startswith(f"{LOGS}{writer}/") and new in known:
            continue
        elif why := refuses(ref, old, new):
            wrong.append(f"{ref} was {_done(repo, new)}, which the gate refuses: {why} ({_undo(repo, ref, old)})")
        else:
            others.append(f"{ref} {old[:12]} → {new[:12]}")
    return Moved(
        reason=f"refs_moved: {listed(wrong)}" if wrong else "",
        notes=(f"refs that moved meanwhile: {listed(others)}",) if others else (),
    )


def _is_ours(repo: Repo, known: Collection[str], old: str, new: str) -> bool:
    """Whether ``new`` is a tip we gave a ledger and holds all that ``old`` held: one set back has lost records."""
    return new in known and (old == repo.zero or history.is_ancestor(repo, old, new))


def _done(repo: Repo, new: str) -> str:
    return "deleted" if new == repo.zero else f"moved to {new[:12]}"


def _undo(repo: Repo, ref: str, old: str) -> str:
    return f"`git update-ref -d {ref}`" if old == repo.zero else f"`git update-ref {ref} {old}`"
