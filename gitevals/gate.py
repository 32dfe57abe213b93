"""Movement → decision: gathers what one movement of a protected ref rests on and asks the pure function."""

from collections.abc import Sequence

import msgspec

from gitevals import protection
from gitevals.config import PATH
from gitevals.contracts.reading import BaseConfig, config_at
from gitevals.errors import ConfigInvalid, GitFailed, ObjectMissing
from gitevals.git import history
from gitevals.git.objects import read
from gitevals.git.run import Started
from gitevals.model.contract import Mode
from gitevals.model.decision import Decision
from gitevals.model.movement import Commit, Span
from gitevals.model.reason import RULES, Code, reason
from gitevals.spans import TRAILER, Grounds, Movement, commit_of, judge_span


def judge(grounds: Grounds, movement: Movement, started: Started | None = None) -> Decision:
    """Whether ``movement`` may happen; ``started`` is the log of it, if somebody asked for it already."""
    zero = grounds.repo.zero
    if movement.old == movement.new:
        return _allowed(movement)
    if movement.new.startswith("ref:"):
        mode = _mode_of(grounds, [tip for tip in (movement.old, *grounds.protected.values()) if tip != zero])
        text = f"{movement.ref} is protected and would become a symbolic ref"
        return _with_reason(movement, mode, Code.REWRITTEN, text, hint="a protected branch holds commits of its own")
    if movement.old == zero:
        return _created(grounds, movement)
    try:
        base = config_at(grounds.repo, grounds.objects, movement.old)
    except ConfigInvalid as error:
        return _mended(grounds, movement, error)
    except ObjectMissing as error:
        text = f"what {movement.ref} stands at cannot be read: {error.message}"
        return _with_reason(movement, Mode.ENFORCE, Code.UNVERIFIABLE, text, hint="git fetch")
    if base is None:
        return _allowed(movement)
    mode = base.config.mode
    if movement.new == zero:
        return _with_reason(movement, mode, Code.DELETED, f"{movement.ref} is protected and would be deleted")
    apart = _apart(grounds, movement, started)
    if apart is None:
        text = f"a commit between {movement.old[:12]} and {movement.new[:12]} cannot be read"
        return _with_reason(movement, mode, Code.UNVERIFIABLE, text)
    if apart.behind:
        text = f"{movement.ref} would lose {len(apart.behind)} commit(s): {movement.new[:12]} is not built on its tip"
        return _with_reason(movement, mode, Code.REWRITTEN, text)
    if _caught_up(grounds, movement):
        return _allowed(movement, mode=mode)
    return _of_chain(grounds, movement, base, apart)


def _apart(grounds: Grounds, movement: Movement, started: Started | None) -> history.Divergence | None:
    try:
        if started is not None:
            return history.finish_divergence(started)
        return history.divergence(grounds.repo, movement.old, movement.new, trailer=TRAILER)
    except GitFailed:
        return None


def _allowed(movement: Movement, *, mode: Mode | None = None) -> Decision:
    return Decision(allowed=True, ref=movement.ref, old=movement.old, new=movement.new, mode=mode)


def _with_reason(movement: Movement, mode: Mode, code: Code, message: str, *, hint: str = "") -> Decision:
    found = reason(code, mode, message, hint=hint or RULES[code].hint)
    allowed = found.severity != "refuse"
    return Decision(allowed=allowed, ref=movement.ref, old=movement.old, new=movement.new, mode=mode, reasons=(found,))


def _created(grounds: Grounds, movement: Movement) -> Decision:
    """A protected ref comes into being: at a commit that is protected already, or as the first one of all."""
    others = [tip for ref, tip in grounds.protected.items() if ref != movement.ref]
    known = [*others, *(tip for ref, tip in grounds.copies.items() if ref == movement.ref)]
    if not known or movement.new == grounds.repo.zero or movement.new in known:
        return _allowed(movement)
    if not history.not_contained(grounds.repo, movement.new, known):
        return _allowed(movement)
    mode = _mode_of(grounds, others or known)
    text = f"{movement.ref} would be created at {movement.new[:12]}, which no protected branch contains"
    return _with_reason(movement, mode, Code.MISSING, text, hint=_at_protected(grounds, movement.ref))


def _at_protected(grounds: Grounds, ref: str) -> str:
    known = next((name for name in grounds.protected if name != ref), "a protected branch")
    import shlex

    return f"git branch {shlex.quote(ref.removeprefix(protection.HEADS))} {known.removeprefix(protection.HEADS)}"


def _mode_of(grounds: Grounds, tips: Sequence[str]) -> Mode:
    for tip in tips:
        try:
            base = config_at(grounds.repo, grounds.objects, tip)
        except ConfigInvalid:
            return Mode.ENFORCE
        if base is not None:
            return base.config.mode
    return Mode.OBSERVE


def _mended(grounds: Grounds, movement: Movement, error: ConfigInvalid) -> Decision:
    """On a base whose configuration is broken, only a movement that touches it alone and mends it may happen."""
    if movement.new != grounds.repo.zero and history.is_ancestor(grounds.repo, movement.old, movement.new):
        paths = history.changed_paths(grounds.repo, movement.old, movement.new)
        try:
            mended = config_at(grounds.repo, grounds.objects, movement.new) is not None
        except ConfigInvalid:
            mended = False
        if list(paths) == [PATH] and mended:
            text = f"{PATH} is mended by this movement, which nothing else judges"
            return _with_reason(movement, Mode.ENFORCE, Code.CONFIG_CHANGE, text)
    text = f"the configuration of {movement.ref} is broken: {error.message}"
    return _with_reason(
        movement, Mode.ENFORCE, Code.CONFIG_INVALID, text, hint=f"first commit a change that mends {PATH} alone"
    )


def _caught_up(grounds: Grounds, movement: Movement) -> bool:
    """Whether the authority already has what the ref would move to: it was judged there."""
    copy = grounds.copies.get(movement.ref)
    if not grounds.catching_up or copy is None or copy == movement.old:
        return False
    return history.is_ancestor(grounds.repo, movement.new, copy)


def _of_chain(grounds: Grounds, movement: Movement, base: BaseConfig, apart: history.Divergence) -> Decision:
    """One span if evidence spans it; else a path of spans along the first parents, each with its own evidence."""
    chain = _chain(grounds, movement, apart)
    whole = judge_span(grounds, movement, base, _span(movement, chain, 0, len(chain) - 1), apart.ahead)
    if whole.allowed or len(chain) == 2:
        return whole
    path = _path(grounds, movement, base, chain, apart.ahead)
    reached = max(path)
    if reached == len(chain) - 1:
        return _along(whole, path[reached])
    unexplained = any(found.code in (Code.MISSING, Code.UNTASKED) for found in whole.refusals)
    if reached == 0 or not unexplained:
        return whole
    step = _span(movement, chain, reached, reached + 1)
    return judge_span(grounds, movement, base, step, _between(apart.ahead, step))


def _span(movement: Movement, chain: Sequence[Commit], start: int, end: int) -> Span:
    return Span(ref=movement.ref, old=chain[start], new=chain[end])


def _chain(grounds: Grounds, movement: Movement, apart: history.Divergence) -> tuple[Commit, ...]:
    """The first-parent chain from old to new, or just the two where old is not on it."""
    by_id = {entry.id: entry for entry in apart.ahead}
    if movement.new not in by_id:
        raise ObjectMissing(f"commit {movement.new[:12]} is not in the log of its own movement", hint="git fsck")
    links: list[Commit] = []
    name = movement.new
    while name in by_id:
        entry = by_id[name]
        links.append(commit_of(entry))
        if not entry.parents:
            break
        name = entry.parents[0]
    old = Commit(id=movement.old, tree=_tree(grounds, movement.old))
    return (old, *reversed(links)) if name == movement.old else (old, links[0])


def _tree(grounds: Grounds, commit: str) -> str:
    found = read(grounds.objects, f"{commit}:")
    return found.id if found is not None else ""


def _along(whole: Decision, decisions: Sequence[Decision]) -> Decision:
    """``whole`` as the decisions on a path of spans bear it out: what each says and rests on, together."""
    reasons = tuple(dict.fromkeys(found for decision in decisions for found in decision.reasons))
    evaluations = tuple(dict.fromkeys(name for decision in decisions for name in decision.evaluations))
    return msgspec.structs.replace(whole, allowed=True, reasons=reasons, evaluations=evaluations)


def _path(
    grounds: Grounds, movement: Movement, base: BaseConfig, chain: Sequence[Commit], ahead: Sequence[history.Entry]
) -> dict[int, tuple[Decision, ...]]:
    """The positions of ``chain`` that paths of allowed spans lead to from its start, each with its path's decisions."""
    reached: dict[int, tuple[Decision, ...]] = {0: ()}
    for end in range(1, len(chain)):
        starts = {end - 1} | evidenced_starts(grounds, movement.ref, chain, end)
        for start in sorted(starts & reached.keys(), reverse=True):
            span = _span(movement, chain, start, end)
            decision = judge_span(grounds, movement, base, span, _between(ahead, span))
            if decision.allowed:
                reached[end] = (*reached[start], decision)
                break
    return reached


def evidenced_starts(grounds: Grounds, ref: str, chain: Sequence[Commit], end: int) -> set[int]:
    """The positions of ``chain`` that evaluations of the tree at ``end`` took for their base."""
    known = grounds.evidence.evaluations([chain[end].tree])
    bases = {stored.evaluation.subject.base for stored in known if stored.evaluation.subject.ref == ref}
    return {position for position in range(end) if chain[position].id in bases}


def _between(ahead: Sequence[history.Entry], span: Span) -> tuple[history.Entry, ...]:
    """The commits of ``ahead`` that are reachable from the span's end and not from its start."""
    by_id = {entry.id: entry for entry in ahead}
    before = set(_reached(by_id, span.old.id))
    return tuple(by_id[name] for name in _reached(by_id, span.new.id) if name not in before)


def _reached(by_id: dict[str, history.Entry], start: str) -> list[str]:
    seen: dict[str, None] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in by_id and name not in seen:
            seen[name] = None
            waiting.extend(by_id[name].parents)
    return list(seen)
