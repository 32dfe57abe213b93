"""`git evals verify`: the gate's answer to a movement, without moving or writing anything."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence

import msgspec

from gitevals import gate, integrate, protection
from gitevals.authority import copies
from gitevals.errors import BadInput
from gitevals.evidence.reading import Evidence
from gitevals.git import refs
from gitevals.git import scratch as scratches
from gitevals.git.plumbing import PlumbingObjects
from gitevals.git.repo import Repo
from gitevals.model.decision import Decision
from gitevals.model.reason import Code, Reason, Severity
from gitevals.session import Session
from gitevals.spans import Grounds, Movement
from gitevals.targets import Head, Target


def grounds(session: Session, *, frozen_ever: bool = False, also: str = "") -> Grounds:
    """What decisions in ``session``'s repository are made from; ``also`` names a ref to treat as protected."""
    named = protection.patterns(session.repo, session.objects)
    tips = refs.values(session.repo, *protection.prefixes((*named, *([also] if also else ()))))
    protected = {ref: tip for ref, tip in tips.items() if ref == also or protection.matches(named, ref)}
    return Grounds(
        repo=session.repo,
        objects=session.objects,
        evidence=session.evidence(),
        protected=protected,
        copies=copies(session.repo, list(dict.fromkeys([*protected, *([also] if also else [])]))),
        frozen_ever=frozen_ever,
        ask=None if frozen_ever else session.ask,
        now_seconds=0 if frozen_ever else time.time(),
    )


def of_movement(session: Session, ref: str, old: str, new: str) -> Decision:
    """The decision on a movement whose ends exist."""
    return gate.judge(grounds(session, also=ref), Movement(ref=ref, old=old, new=new))


def refusal(session: Session, ref: str, old: str, new: str) -> str:
    """Why the gate would not let ``ref`` move so; "" where it would, or where the ref is not protected."""
    if not protection.matches(protection.patterns(session.repo, session.objects), ref):
        return ""
    found = msgspec.structs.replace(grounds(session, also=ref), catching_up=True)
    refusals = gate.judge(found, Movement(ref=ref, old=old, new=new)).refusals
    return refusals[0].message if refusals else ""


def of_change(session: Session, target: Target, head: Head, tasks: Sequence[str], *, given: bool = False) -> Decision:
    """The decision on ``head`` entering ``target``; where that needs a merge, one is made in scratch."""
    found = grounds(session, also=target.ref)
    ready = (
        integrate.given(session.repo, base=target.tip, commit=head.commit)
        if given
        else integrate.plan(session.repo, base=target.tip, head=head.commit)
    )
    if ready is not None:
        return gate.judge(found, _movement(target, head, ready.commit or head.commit, tasks))
    with scratches.scratch(session.repo, directory=session.scratch_directory()) as place:
        candidate = integrate.in_scratch(place, base=target.tip, head=head.commit)
        if candidate.commit is None:
            return _unmergeable(target, head, candidate)
        with _seeing(session.repo, place.repo) as (repo, objects):
            evidence = Evidence(objects, found.evidence.ledgers, repo.common_dir)
            seeing = msgspec.structs.replace(found, repo=repo, objects=objects, evidence=evidence)
            return gate.judge(seeing, _movement(target, head, candidate.commit, tasks))


def _movement(target: Target, head: Head, new: str, tasks: Sequence[str]) -> Movement:
    return Movement(
        ref=target.ref, old=target.tip, new=new, source=head.branch or "", into=target.option, tasks=tuple(tasks)
    )


@contextlib.contextmanager
def _seeing(repo: Repo, scratch: Repo) -> Iterator[tuple[Repo, PlumbingObjects]]:
    """``repo`` with the objects of ``scratch`` in view, as a push sees its quarantine."""
    own = repo.env.get("GIT_OBJECT_DIRECTORY", os.path.join(repo.common_dir, "objects"))
    both = scratches.seen_too([own], repo.env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))
    borrowed = {
        "GIT_OBJECT_DIRECTORY": os.path.join(scratch.git_dir, "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": both,
    }
    wider = msgspec.structs.replace(repo, env={**repo.env, **borrowed})
    with PlumbingObjects(wider) as objects:
        yield wider, objects


def _unmergeable(target: Target, head: Head, candidate: integrate.Candidate) -> Decision:
    """A change that does not merge has no tree that evidence could be about."""
    listed = f": {', '.join(candidate.conflicts)}" if candidate.conflicts else ""
    found = Reason(
        code=Code.INCONCLUSIVE,
        severity=Severity.REFUSE,
        message=f"{head.branch or head.commit[:12]} does not merge into {target.ref}{listed or ': ' + candidate.note}",
        hint=f"merge {target.ref.removeprefix('refs/heads/')} into the branch and resolve the conflicts there",
    )
    return Decision(
        allowed=False, ref=target.ref, old=target.tip, new=head.commit, mode=target.base.config.mode, reasons=(found,)
    )


def check_ids(session: Session, ref: str, old: str, new: str) -> tuple[str, str, str]:
    """The full forms of a movement that was given by hand: a full ref name and two commits (zeros: none)."""
    if not ref.startswith("refs/"):
        ref = f"refs/heads/{ref}"
    if session.repo.run("check-ref-format", ref, accept=(0, 1)).status:
        raise BadInput(f'"{ref}" is no name of a ref', hint="name it in full, such as refs/heads/main")
    return ref, _commit(session, old), _commit(session, new)


def _commit(session: Session, name: str) -> str:
    from gitevals.targets import commit_head

    if not name.strip("0"):
        return session.repo.zero
    return commit_head(session.repo, name).commit
