"""`git evals run`: from what a person named to stored evaluations."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gitevals import integrate
from gitevals.contracts.freezing import freeze, keep_content
from gitevals.contracts.reading import Standing, content, standing, task_at
from gitevals.contracts.spent import deliveries
from gitevals.errors import BadInput, Refused
from gitevals.evaluate import checks, environment
from gitevals.evaluate.assemble import Examined, Frame, assemble
from gitevals.evaluate.checks import Bench, Observer, Ran
from gitevals.evidence import writing
from gitevals.evidence.reading import Evidence
from gitevals.git import history
from gitevals.git import scratch as scratches
from gitevals.integrate import Candidate
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract, Mode
from gitevals.model.decision import ContractState
from gitevals.model.evaluation import CheckRun, Correlation, Merge, Stored, Stream, Subject
from gitevals.model.movement import Commit, Span, covers, deciding
from gitevals.model.result import Result
from gitevals.session import Session
from gitevals.targets import Head, Target


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated: the target, the head that is to enter it, and whether it is taken as it is."""

    target: Target
    head: Head
    alone: bool = False
    given: bool = False


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How to run: again although evidence is there, keep the scratch, labels to store, whom to tell."""

    force: bool = False
    keep: bool = False
    correlation: Correlation = Correlation()
    observer: Observer = lambda _: None
    announce: Callable[[str], None] = lambda _: None


def examine(session: Session, target: Target, task: str) -> Examined:
    """The examination of ``task`` as the target's tip states it; a contract that must not be used raises `Refused`."""
    read, text = task_at(session.objects, target.base, task)
    contract = content(target.base.config, read)
    digest = contracts.digest(contract)
    evidence = session.evidence()
    stands = standing(evidence, task, digest, target.base.config.repository)
    refuse_unusable(session, evidence, target, task, stands)
    return Examined(contract=contract, digest=digest, text=text, standing=stands)


def refuse_unusable(session: Session, evidence: Evidence, target: Target, task: str, stands: Standing) -> None:
    """Raise `Refused` where the frozen contract is out of date, in conflict or (in ``enforce``) spent."""
    if stands.state is ContractState.OUT_OF_DATE:
        raise Refused(
            f"the frozen contract of task {task} is out of date with {target.ref}",
            hint=f"git evals freeze {task}{target.option}",
        )
    if stands.state is ContractState.CONFLICT:
        raise Refused(
            f"several different contracts of task {task} are frozen",
            hint=f"git evals freeze {task}{target.option}",
        )
    config = target.base.config
    if stands.state is ContractState.FROZEN and config.mode is Mode.ENFORCE:
        same = [frozen for frozen in stands.known if frozen.freeze.digest == stands.digest]
        spent = deliveries(session.repo, evidence, target.base, target.ref, same)
        if spent:
            raise Refused(
                f"the contract of task {task} was already delivered by {spent[0][:12]}",
                hint=f"git evals reopen {task}{target.option} --reason TEXT",
            )


def verification_alone(target: Target) -> Examined:
    """The examination that names no task: the project's verification and nothing else."""
    config = target.base.config
    contract = Contract(
        schema=contracts.SCHEMA, task="", mode=config.mode, verification=config.verify, setup=config.setup,
        outputs=config.outputs,
    )  # fmt: skip
    return Examined(contract=contract, digest=contracts.digest(contract))


def run(session: Session, change: Change, examined: Sequence[Examined], manner: Manner) -> list[Stored]:
    """Evaluate ``change`` for every task at once and store one evaluation each; passing evidence is reused."""
    target = change.target
    candidate = _direct(session, change)
    store = session.store(target.base.config.repository)
    writing.check_way(store)
    if candidate is not None:
        reused = _reused(session, change, candidate, examined, manner)
        if reused:
            _authorise(session, store, change, examined, manner)
            return reused
    kept: list[str] = []
    with scratches.scratch(session.repo, directory=session.scratch_directory(), keep=lambda: bool(kept)) as place:
        try:
            return _in_scratch(session, store, place, change, candidate, examined, manner, kept)
        except KeyboardInterrupt:
            kept.append(place.worktree)
            raise
        finally:
            for path in kept:
                manner.announce(f"the scratch checkout is kept in {path}")


def _direct(session: Session, change: Change) -> Candidate | None:
    """The candidate where no merge has to be made: alone, a merge somebody made, or a head on top of the base."""
    repo, tip, head = session.repo, change.target.tip, change.head.commit
    if change.alone:
        base = history.merge_base(repo, tip, head)
        if base is None:
            raise _unrelated(session, change)
        return Candidate(
            base=base, base_tree=history.tree_of(repo, base), heads=(head,), commit=head,
            tree=history.tree_of(repo, head), strategy="none",
        )  # fmt: skip
    if change.given:
        resolved = integrate.given(repo, base=tip, commit=head)
        if resolved is not None:
            return resolved
    planned = integrate.plan(repo, base=tip, head=head)
    if planned is None and history.merge_base(repo, tip, head) is None:
        raise _unrelated(session, change)
    return planned


def _unrelated(session: Session, change: Change) -> BadInput:
    shallow = history.is_shallow(session.repo)
    return BadInput(
        f"{change.head.commit[:12]} and {change.target.ref} have no common history"
        + (" within what this shallow clone holds" if shallow else ""),
        hint="git fetch --unshallow" if shallow else "name another --into",
    )


def _reused(
    session: Session, change: Change, candidate: Candidate, examined: Sequence[Examined], manner: Manner
) -> list[Stored]:
    """The passing evaluations that the gate would believe, if every task has one and nobody asked to run again."""
    if manner.force or candidate.tree is None:
        return []
    known = session.evidence().evaluations([candidate.tree])
    found = [passing(known, change, candidate, entry) for entry in examined]
    if any(not group for group in found):
        return []
    return [group[0] for group in found]


def passing(known: Sequence[Stored], change: Change, candidate: Candidate, entry: Examined) -> list[Stored]:
    """The deciding evaluations of ``entry`` on ``candidate``, or none unless all of them passed."""
    new = Commit(id=candidate.commit or "", tree=candidate.tree or "", parents=(candidate.base, *candidate.heads))
    old = Commit(id=candidate.base, tree=candidate.base_tree)
    span = Span(ref=change.target.ref, old=old, new=new)
    repository = change.target.base.config.repository
    group = [
        stored
        for stored in known
        if stored.evaluation.task == entry.task
        and stored.evaluation.contract == entry.digest
        and covers(stored.evaluation, span, repository)
    ]
    final = deciding(list(known), group)
    return final if all(stored.evaluation.weight is Result.PASSED for stored in final) else []


def _authorise(
    session: Session, store: writing.Store, change: Change, examined: Sequence[Examined], manner: Manner
) -> None:
    """Keep the content that each evaluation will name; the first run of a task also freezes it, and says so.

    Called once all input is known to be good, and before the first command runs.
    """
    for entry in examined:
        if entry.standing is not None and entry.standing.state is ContractState.MISSING:
            freeze(store, entry.contract, entry.text, base=change.target.tip, reason="first run", actor=session.actor())
            manner.announce(f"froze the contract of task {entry.task} ({entry.digest[:12]})")
        elif entry.task:
            keep_content(store, entry.contract, entry.text)


def _in_scratch(
    session: Session,
    store: writing.Store,
    place: scratches.Scratch,
    change: Change,
    direct: Candidate | None,
    examined: Sequence[Examined],
    manner: Manner,
    kept: list[str],
) -> list[Stored]:
    target = change.target
    candidate = direct or integrate.in_scratch(place, base=target.tip, head=change.head.commit)
    if candidate.note:
        manner.announce(candidate.note)
    if direct is None:
        reused = _reused(session, change, candidate, examined, manner)
        if reused:
            _authorise(session, store, change, examined, manner)
            return reused
    if candidate.commit is not None:
        place = scratches.checkout(place, candidate.commit)
    _authorise(session, store, change, examined, manner)
    started = writing.now()
    counts = target.base.config.mode is not Mode.OFF
    wanted = checks.plan([entry.contract for entry in examined], criteria_count=counts)
    if candidate.commit is None:
        ran = checks.nothing_ran(wanted, _conflict(candidate))
    else:
        tasks = " ".join(entry.task for entry in examined)
        ran = checks.carry_out(
            Bench(
                scratch=place, inherited=session.inherited, base=candidate.base, head=change.head.commit,
                task=tasks, observer=manner.observer,
            ),
            wanted,
        )  # fmt: skip
    if manner.keep or ran.timed_out_verifying:
        kept.append(place.worktree)
    return _stored(session, store, change, candidate, examined, ran, started, manner)


def _conflict(candidate: Candidate) -> str:
    if candidate.conflicts:
        return f"the merge has conflicts: {', '.join(candidate.conflicts)}"
    return candidate.note or "the change cannot be merged"


def _stored(
    session: Session,
    store: writing.Store,
    change: Change,
    candidate: Candidate,
    examined: Sequence[Examined],
    ran: Ran,
    started: str,
    manner: Manner,
) -> list[Stored]:
    finished = writing.now()
    blobs = writing.keep_logs(store, list(ran.streams.values()), finished[:7])
    ran = _with_blobs(ran, dict(zip(ran.streams, blobs, strict=True)))
    where = environment.described(session.repo)
    frame = Frame(
        subject=_subject(change, candidate),
        writer=store.writer,
        started=started,
        finished=finished,
        environment=where,
        merge=Merge(strategy=candidate.strategy, git=where.git),
        correlation=manner.correlation,
        mode=change.target.base.config.mode,
        verification_digest=change.target.base.config.verification_digest,
    )
    return writing.append_evaluations(store, [assemble(entry, ran, frame) for entry in examined])


def _subject(change: Change, candidate: Candidate) -> Subject:
    return Subject(
        ref=change.target.ref,
        source=change.head.branch,
        repository=change.target.base.config.repository,
        base=candidate.base,
        base_tree=candidate.base_tree,
        head=candidate.heads[0],
        heads=candidate.heads,
        tree=candidate.tree or "",
    )


def _with_blobs(ran: Ran, blobs: Mapping[str, str]) -> Ran:
    def named(run: CheckRun) -> CheckRun:
        return msgspec.structs.replace(run, stdout=_with_blob(run.stdout, blobs), stderr=_with_blob(run.stderr, blobs))

    return msgspec.structs.replace(
        ran,
        setup=tuple(map(named, ran.setup)),
        verification=tuple(map(named, ran.verification)),
        checks=tuple(map(named, ran.checks)),
    )


def _with_blob(stream: Stream | None, blobs: Mapping[str, str]) -> Stream | None:
    return stream and msgspec.structs.replace(stream, blob=blobs[stream.sha256])
