"""A movement of a ref, and when an evaluation is about exactly that movement."""

import msgspec

from gitevals.model.evaluation import Evaluation, Stored


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate needs of a commit; ``tasks`` are the values of its ``Task:`` trailers."""

    id: str
    tree: str
    parents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A movement of ``ref`` from ``old`` to its descendant ``new``."""

    ref: str
    old: Commit
    new: Commit


def ends_at(evaluation: Evaluation, ref: str, new: Commit, repository: str) -> bool:
    """Whether ``evaluation`` is about a movement of ``ref`` to ``new``, from wherever: all of `covers` but the base."""
    subject = evaluation.subject
    about = subject.ref == ref and subject.repository == repository and subject.tree == new.tree
    return about and (new.id in subject.heads or len(new.parents) == 1 or new.parents[1:] == subject.heads)


def same_key(evaluation: Evaluation, span: Span, repository: str) -> bool:
    """Whether ``evaluation`` is about this tree on this base (or on a base of the same tree), for this ref."""
    subject = evaluation.subject
    return (
        subject.ref == span.ref
        and subject.repository == repository
        and subject.tree == span.new.tree
        and (subject.base == span.old.id or subject.base_tree == span.old.tree)
    )


def covers(evaluation: Evaluation, span: Span, repository: str) -> bool:
    """Whether ``evaluation`` is about this span: the same key, and further parents are the evidenced heads in order."""
    return same_key(evaluation, span, repository) and ends_at(evaluation, span.ref, span.new, repository)


def deciding(evaluations: list[Stored], group: list[Stored]) -> list[Stored]:
    """Those of ``group`` that no other one of ``group`` had seen; what was seen is followed through ``evaluations``."""
    by_id = {stored.id: stored for stored in evaluations}
    seen: set[str] = set()
    waiting = [name for stored in group for name in stored.evaluation.after]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(by_id[name].evaluation.after if name in by_id else ())
    return [stored for stored in group if stored.id not in seen]
