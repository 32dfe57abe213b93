"""`git evals run`: from what a person named to stored evaluations."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import msgspec

from gitevals import cache, integrate, redact
from gitevals.contracts.freezing import freeze, keep_content
from gitevals.errors import BadInput
from gitevals.evaluate import environment, leaks, moved, steering
from gitevals.evaluate.assemble import Examined, Frame, assemble, smallest
from gitevals.evaluate.carry_out import carry_out
from gitevals.evaluate.change import Change, Manner
from gitevals.evaluate.checks import Bench, Stopped, listed
from gitevals.evaluate.plan import Plan, Ran, nothing_ran, plan
from gitevals.evaluate.reuse import reused
from gitevals.evaluate.slots import Places
from gitevals.evidence import writing
from gitevals.git import history
from gitevals.git import scratch as scratches
from gitevals.integrate import Candidate
from gitevals.model.contract import Command, Mode
from gitevals.model.evaluation import CheckRun, Merge, Stored, Stream, Subject
from gitevals.model.facts import ContractState
from gitevals.session import Session


class _Request(msgspec.Struct, frozen=True, kw_only=True):
    """What one run is asked for: what to evaluate, for which tasks, how, and where the outcome is stored."""

    session: Session
    store: writing.Store
    change: Change
    examined: tuple[Examined, ...]
    manner: Manner


def run(session: Session, change: Change, examined: Sequence[Examined], manner: Manner) -> list[Stored]:
    """Evaluate ``change`` for every task at once and store one evaluation each; passing evidence is reused."""
    _refuse_other_graders(session, change.target.tip, examined)
    candidate = _direct(session, change)
    store = session.store(change.target.base.config.repository)
    writing.check_way(store)
    request = _Request(session=session, store=store, change=change, examined=tuple(examined), manner=manner)
    if candidate is not None and (known := _reused(request, candidate)):
        return known
    kept: list[str] = []
    with scratches.scratch(session.repo, directory=session.scratch_directory(), keep=lambda: bool(kept)) as place:
        try:
            return _in_scratch(request, place, candidate, kept)
        except KeyboardInterrupt:
            kept.append(place.worktree)
            raise
        finally:
            for path in kept:
                manner.announce(f"the scratch checkout is kept in {path}")


def _refuse_other_graders(session: Session, tip: str, examined: Sequence[Examined]) -> None:
    """One run of a check serves all tasks, so it cannot have two versions of its graders."""
    if len(examined) == 1:
        return
    seen: dict[str, tuple[str, list[str]]] = {}
    for entry in examined:
        is_new = entry.standing is not None and entry.standing.state is ContractState.MISSING
        root = tip if is_new else entry.contract.graders  # what was never frozen is not stored yet
        for name, command in entry.contract.checks.items():
            found = session.objects.read_many([f"{root}:{path}" for path in command.graders])
            ids = [grader.id if grader else "" for grader in found]
            task, known = seen.setdefault(name, (entry.task, ids))
            if known != ids:
                raise BadInput(
                    f"tasks {task} and {entry.task} froze different graders of the check {name}",
                    hint="run them one after the other, or freeze both again",
                )


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


def _reused(request: _Request, candidate: Candidate) -> list[Stored]:
    """The evidence that makes a run needless, or none."""
    evidence = request.session.evidence()
    known = reused(evidence, request.change, candidate, request.examined, force=request.manner.force)
    if known:
        _authorise(request)
    return known


def _authorise(request: _Request) -> None:
    """Keep the content that each evaluation will name; the first run of a task also freezes it, and says so.

    Called once all input is known to be good, and before the first command runs.
    """
    store, tip = request.store, request.change.target.tip
    for entry in request.examined:
        if entry.standing is not None and entry.standing.state is ContractState.MISSING:
            freeze(
                store, entry.contract, entry.text, base=tip, graders_at=tip, reason="first run",
                actor=request.session.actor(),
            )  # fmt: skip
            request.manner.announce(f"froze the contract of task {entry.task} ({entry.digest[:12]})")
        elif entry.task:
            keep_content(store, entry.contract, entry.text, graders_at=tip)


def _in_scratch(request: _Request, place: scratches.Scratch, direct: Candidate | None, kept: list[str]) -> list[Stored]:
    """Merge in ``place`` where there is no ``direct`` candidate, and evaluate; a place to keep is added to ``kept``."""
    change, manner = request.change, request.manner
    candidate = direct or integrate.in_scratch(place, base=change.target.tip, head=change.head.commit)
    if candidate.note:
        manner.announce(candidate.note)
    if direct is None and (known := _reused(request, candidate)):
        return known
    if candidate.commit is not None:
        place = scratches.checkout(place, candidate.commit)
    counts = change.target.base.config.mode is not Mode.OFF
    wanted = plan([entry.contract for entry in request.examined], criteria_count=counts)
    frame = _frame(request, candidate)
    for entry in request.examined:
        writing.fit(smallest(entry, wanted, frame))
    _authorise(request)
    if candidate.commit is None:
        ran = nothing_ran(wanted, _conflict(candidate))
    else:
        ran = _run_in(request, place, candidate, wanted)
    if manner.keep or ran.timed_out_verifying:
        kept.append(place.worktree)
    return _stored(request, ran, frame)


def _run_in(request: _Request, place: scratches.Scratch, candidate: Candidate, wanted: Plan) -> Ran:
    """Carry out ``wanted`` in ``place``, where the candidate is checked out, and judge what the commands left."""
    session, manner = request.session, request.manner
    commands = (*wanted.setup, *wanted.verification, *wanted.checks.values())
    around = _surroundings(session, commands)
    dropped = (f"left out of PATH: {listed(around.dropped)}",) if around.dropped else ()
    if around.leaks:
        return nothing_ran(wanted, f"environment_leak: {listed(around.leaks)}", notes=dropped)
    bench = Bench(
        inherited=session.inherited,
        path=around.path,
        base=candidate.base,
        head=request.change.head.commit,
        task=" ".join(entry.task for entry in request.examined),
        observer=manner.observer,
        secrets=redact.secrets_in(session.inherited, *(command.env for command in commands)),
        stop=threading.Event(),
    )
    places = Places(
        first=place, another=_another(session, place, manner), jobs=manner.jobs,
        setup_cache=cache.folder(session.repo.common_dir, "setup"), common_dir=session.repo.common_dir,
        base=candidate.base, base_tree=candidate.base_tree,
    )  # fmt: skip
    changed = history.changed_paths(place.repo, candidate.base, candidate.commit or candidate.base)
    before = moved.state(session.repo)
    ran = carry_out(bench, wanted, places)
    after = moved.state(session.repo)
    found = moved.judged(session.repo, request.store.writer, before, after, manner.refuses)
    graded = tuple(dict.fromkeys(path for entry in request.examined for path in entry.contract.graded))
    notes = (*steering.notes(changed, graded), *ran.notes, *dropped, *found.notes)
    return msgspec.structs.replace(
        ran,
        reason=redact.text(bench.secrets, "; ".join(part for part in (ran.reason, found.reason) if part)),
        notes=tuple(redact.text(bench.secrets, note) for note in notes),
    )


def _surroundings(session: Session, commands: Sequence[Command]) -> leaks.Surroundings:
    """What commands get of the caller's environment, with every leak there and in what they ask for themselves."""
    trees = leaks.worktrees(session.repo)
    around = leaks.surroundings(session.inherited, trees, leaks.ignored_by_git(session.repo, trees))
    own = (told for command in commands for told in leaks.of_command(command, session.inherited, trees))
    return msgspec.structs.replace(around, leaks=tuple(dict.fromkeys((*around.leaks, *own))))


def _another(
    session: Session, first: scratches.Scratch, manner: Manner
) -> Callable[[str], AbstractContextManager[scratches.Scratch]]:
    """A way to further checkouts, kept where a person stops the run.

    Only those of the same commit see what ``first`` has made (the merge, say): what ran there may have added objects,
    and the base is not to be read from these.
    """
    made = [f"{first.repo.git_dir}/objects"]
    both = scratches.seen_too(made, session.repo.env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))
    seeing = msgspec.structs.replace(session.repo, env={**session.repo.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES": both})

    @contextmanager
    def another(commit: str) -> Iterator[scratches.Scratch]:
        repo = seeing if commit == first.commit else session.repo
        kept: list[str] = []
        with scratches.scratch(repo, directory=session.scratch_directory(), keep=lambda: bool(kept)) as place:
            try:
                yield scratches.checkout(place, commit)
            except (KeyboardInterrupt, Stopped):
                kept.append(place.worktree)
                manner.announce(f"the scratch checkout is kept in {place.worktree}")
                raise

    return another


def _conflict(candidate: Candidate) -> str:
    if candidate.conflicts:
        return f"the merge has conflicts: {', '.join(candidate.conflicts)}"
    return candidate.note or "the change cannot be merged"


def _stored(request: _Request, ran: Ran, frame: Frame) -> list[Stored]:
    frame = msgspec.structs.replace(frame, finished=writing.now())
    blobs = writing.keep_logs(request.store, list(ran.streams.values()), frame.finished[:7])
    ran = _with_blobs(ran, dict(zip(ran.streams, blobs, strict=True)))
    return writing.append_evaluations(request.store, [assemble(entry, ran, frame) for entry in request.examined])


def _frame(request: _Request, candidate: Candidate) -> Frame:
    """What all evaluations of the run share, as of now."""
    where, started = environment.described(request.session.repo), writing.now()
    config = request.change.target.base.config
    return Frame(
        subject=_subject(request.change, candidate),
        writer=request.store.writer,
        started=started,
        finished=started,
        environment=where,
        merge=Merge(strategy=candidate.strategy, git=where.git),
        correlation=request.manner.correlation,
        mode=config.mode,
        verification_digest=config.verification_digest,
    )


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
