"""One span of a movement → decision: gathers what it rests on and asks the pure function."""

from collections.abc import Sequence

import msgspec

from gitevals import protection
from gitevals.config import PATH, Config, Flaky, Untasked, Verification
from gitevals.contracts.reading import BaseConfig, config_at, standing
from gitevals.contracts.spent import deliveries
from gitevals.contracts.stating import Ask, Source, bindings_path, digest_at, stated, text_path
from gitevals.errors import ConfigInvalid, EvalsError, ObjectMissing
from gitevals.evidence.reading import Evidence
from gitevals.git import history
from gitevals.git.objects import Objects, read
from gitevals.git.repo import Repo
from gitevals.model.decision import Decision, decide
from gitevals.model.evaluation import Stored
from gitevals.model.facts import ContractState, Facts, Policy, TaskFacts
from gitevals.model.movement import Commit, Span, covers
from gitevals.model.task import check_task_id

TRAILER = "Task"


NEAR_LIMIT = 64  # commits of a movement whose notes are searched for a nearest evaluation


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """What decisions in one repository are made from.

    ``protected`` maps protected refs to their tips, ``copies`` to the authority's copy of them, where there is one.
    ``catching_up`` lets a local ref follow that copy; ``frozen_ever`` takes a contract that was superseded later.
    ``ask`` runs an operator's command for a task's text; without it the text is taken as it was frozen. The age of
    evidence is counted to ``now_seconds``; at 0 it is not judged.
    """

    repo: Repo
    objects: Objects
    evidence: Evidence
    protected: dict[str, str]
    copies: dict[str, str] = {}
    frozen_ever: bool = False
    catching_up: bool = False
    ask: Ask | None = None
    now_seconds: float = 0

    @property
    def source(self) -> Source:
        """Where these decisions look up what bases state."""
        return Source(repo=self.repo, objects=self.objects, evidence=self.evidence, ask=self.ask)


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """A ref that is asked to move; ids are full, zeros stand for "no commit".

    ``source`` is the branch that is being brought in, where it is known; ``into`` the option that names the target;
    ``tasks`` what its trailers will name, where there is no commit yet that bears them.
    """

    ref: str
    old: str
    new: str
    source: str = ""
    into: str = ""
    tasks: tuple[str, ...] = ()


def commit_of(entry: history.Entry) -> Commit:
    """A log's entry as the gate sees it."""
    return Commit(id=entry.id, tree=entry.tree, parents=entry.parents, tasks=entry.trailers)


def judge_span(
    grounds: Grounds, movement: Movement, base: BaseConfig, span: Span, entries: Sequence[history.Entry]
) -> Decision:
    """The decision on one span, whose commits are ``entries``; what only a refusal needs is gathered only after one."""
    new = span.new
    problem, privileged = _configuration(grounds, base, new)
    evaluations = grounds.evidence.evaluations([new.tree])
    tasks, from_trailers = _tasks(grounds, movement, base, span, entries, evaluations)
    facts = Facts(
        span=span,
        policy=policy_of(base.config),
        tasks=tuple(task_facts(grounds, base, span.ref, task, evaluations) for task in tasks),
        evaluations=tuple(evaluations),
        privileged=(*privileged, *_altered_texts(grounds, base, new, tasks)),
        config_problem=problem,
        into=movement.into,
        now_seconds=grounds.now_seconds,
    )
    decision = decide(facts)
    if not decision.reasons:
        return decision
    return decide(_nearer(grounds, movement, base, facts, entries, exemptible=not from_trailers))


def policy_of(config: Config) -> Policy:
    """What ``config`` demands of a movement."""
    return Policy(
        mode=config.mode,
        repository=config.repository,
        untasked_refuses=config.untasked is Untasked.REFUSE,
        untasked_verifies=config.untasked is Untasked.VERIFY,
        verification_required=config.verification is Verification.REQUIRED,
        verification_digest=config.verification_digest,
        verification_count=len(config.verify),
        flaky_refuses=config.flaky is Flaky.REFUSE,
        max_age_seconds=config.max_age_seconds,
        max_tries=config.max_tries,
    )


def _configuration(grounds: Grounds, base: BaseConfig, new: Commit) -> tuple[str, tuple[str, ...]]:
    """Why the new tip's configuration is unusable ("" if it is not), and what to say loudly of a change of it."""
    found = read(grounds.objects, f"{new.id}:{PATH}")
    if found is not None and found.id == base.blob:
        return "", ()
    try:
        if config_at(grounds.repo, grounds.objects, new.id) is None:
            return "", (f"{PATH} is removed: the branch will no longer be protected; judged by {base.commit[:12]}'s",)
    except (ConfigInvalid, ObjectMissing) as error:
        return error.message, ()
    return "", (f"{PATH} is changed by this movement; it is judged by the version of {base.commit[:12]}",)


def _altered_texts(grounds: Grounds, base: BaseConfig, new: Commit, tasks: Sequence[str]) -> tuple[str, ...]:
    """What to say loudly of changes to what the examination rests on besides the configuration."""
    said = {}
    for task in tasks:
        for path in filter(None, (text_path(base.config, task), bindings_path(base.config, task))):
            said[path] = f"{path} is changed by this movement; task {task} is judged as {base.commit[:12]} has it"
    for path in sorted({path for command in base.config.checks.values() for path in command.graders}):
        said[path] = f"the grader {path} is changed by this movement; the frozen one counts"
    pairs = [f"{commit}:{path}" for path in said for commit in (base.commit, new.id)]
    found = iter(grounds.objects.read_many(pairs) if pairs else ())
    altered = []
    for path, before, after in zip(said, found, found, strict=True):
        if (before and before.id) != (after and after.id):
            altered.append(said[path])
    return tuple(altered)


def _tasks(
    grounds: Grounds,
    movement: Movement,
    base: BaseConfig,
    span: Span,
    entries: Sequence[history.Entry],
    evaluations: Sequence[Stored],
) -> tuple[tuple[str, ...], bool]:
    """The tasks of a span, and whether trailers named them: else matching evidence does, else the branch's name."""
    named = movement.tasks or trailers_of(grounds, movement, entries)
    if named:
        return named, True
    repository = base.config.repository
    matching = [stored.evaluation for stored in evaluations if covers(stored.evaluation, span, repository)]
    by_evidence = tuple(sorted({evaluation.task for evaluation in matching if evaluation.task}))
    if by_evidence:
        return by_evidence, False
    by_branch = task_of_branch(base.config, movement.source)
    return ((by_branch,) if by_branch else ()), False


def trailers_of(grounds: Grounds, movement: Movement, entries: Sequence[history.Entry]) -> tuple[str, ...]:
    """The tasks that trailers name, of commits that no other protected ref contains."""
    bearing = [entry for entry in entries if entry.trailers]
    elsewhere = [tip for ref, tip in {**grounds.protected, **grounds.copies}.items() if ref != movement.ref]
    copy = grounds.copies.get(movement.ref)
    excluded = [tip for tip in (*elsewhere, *([copy] if copy else [])) if tip != movement.old]
    if bearing and excluded:
        counted = history.not_contained(grounds.repo, movement.new, excluded)
        bearing = [entry for entry in bearing if entry.id in counted]
    return tuple(sorted({value for entry in bearing for value in entry.trailers}))


def task_of_branch(config: Config, branch: str) -> str:
    """The task that a branch's name stands for under the ``branches:`` pattern, or ""."""
    if not config.branches or not branch:
        return ""
    before, after = config.branches.split("{task}")
    fits = branch.startswith(before) and branch.endswith(after) and len(branch) > len(before) + len(after)
    return branch[len(before) : len(branch) - len(after)] if fits else ""


def task_facts(
    grounds: Grounds, base: BaseConfig, ref: str, task: str, evaluations: Sequence[Stored] = ()
) -> TaskFacts:
    """How ``task`` and its contract stand on ``base``, the tip of ``ref``.

    Where superseded contracts count too, one that ``evaluations`` were made under is preferred: it may have other
    graders than what is frozen today.
    """
    used = [stored.evaluation.contract for stored in evaluations if stored.evaluation.task == task]
    try:
        digest = digest_at(grounds.source, base, check_task_id(task), among=used if grounds.frozen_ever else ())
    except EvalsError as error:
        return TaskFacts(task=task, state=_state_untold(grounds, base, task), problem=error.message)
    stands = standing(grounds.evidence, task, digest, base.config.repository)
    state = stands.state
    if grounds.frozen_ever and digest in {frozen.freeze.digest for frozen in stands.known}:
        state = ContractState.FROZEN
    spent = ""
    if state is ContractState.FROZEN:
        same = [frozen for frozen in stands.known if frozen.freeze.digest == digest]
        spent = next(iter(deliveries(grounds.repo, grounds.evidence, base, ref, same)), "")
    return TaskFacts(task=task, state=state, digest=digest, spent_by=spent)


def _state_untold(grounds: Grounds, base: BaseConfig, task: str) -> ContractState:
    """How a task stands whose content the base does not tell."""
    state = standing(grounds.evidence, task, "", base.config.repository).state
    if state is ContractState.CONFLICT:
        return state
    told_by_command = base.config.task_command and grounds.ask is None
    return state if told_by_command and state is ContractState.MISSING else ContractState.UNREADABLE


def _where(repo: Repo, movement: Movement, span: Span, config: Config, tasks: Sequence[str]) -> str:
    """The options with which `run` evaluates the change; a merge that git makes otherwise goes by its commit."""
    import shlex  # hints are for a shell; what is allowed needs none

    from gitevals import undo

    source = movement.source
    if len(span.new.parents) > 1 and source and not undo.is_plain_merge(repo, span):
        source = ""
    if source and tasks and source == config.branch_of(tasks[0]):
        return movement.into.strip()
    named = f"--branch {shlex.quote(source)}" if source else f"--commit {span.new.id[:12]}"
    return f"{named}{movement.into}"


def _nearer(
    grounds: Grounds,
    movement: Movement,
    base: BaseConfig,
    facts: Facts,
    entries: Sequence[history.Entry],
    *,
    exemptible: bool,
) -> Facts:
    """``facts`` with what a refusal needs: evaluations near the change, tasks they name, and whether it is exempt."""
    span = facts.span
    near = [span.new.tree, span.new.id, *span.new.parents[1:], *(entry.id for entry in entries[:NEAR_LIMIT])]
    evaluations = tuple(grounds.evidence.evaluations(near))
    tasks = facts.tasks
    if not tasks:
        named = {
            stored.evaluation.task
            for stored in evaluations
            if stored.evaluation.task and stored.evaluation.subject.ref == span.ref
        }
        tasks = tuple(task_facts(grounds, base, span.ref, task, evaluations) for task in sorted(named))
    tasks = tuple(msgspec.structs.replace(task, criteria=_criteria(grounds, base, task.task)) for task in tasks)
    from gitevals import undo  # what is allowed at once does not need it

    exempt = undo.exemption(grounds.repo, base, span) if exemptible else ""
    where = _where(grounds.repo, movement, span, base.config, [task.task for task in tasks])
    likely = "TASK" if tasks or exempt else _likely_task(grounds, base.config, span)
    return msgspec.structs.replace(
        facts, evaluations=evaluations, tasks=tasks, exempt=exempt, where=where, likely_task=likely
    )


def _criteria(grounds: Grounds, base: BaseConfig, task: str) -> tuple[str, ...]:
    """The ids of a task's criteria, for a refusal to name; none where its text cannot be read."""
    try:
        return tuple(requirement.id for requirement in stated(grounds.source, base, task).task.criteria)
    except EvalsError:
        return ()


def _likely_task(grounds: Grounds, config: Config, span: Span) -> str:
    """What the task is probably called: a branch with a task's name stands at what comes in."""
    points = [f"--points-at={name}" for name in (span.new.id, *span.new.parents[1:])]
    listed = grounds.repo.text("for-each-ref", "--format=%(refname:lstrip=2)", *points, protection.HEADS)
    found = [task_of_branch(config, branch) for branch in listed.split("\n")]
    return next((task for task in found if task), "TASK")
