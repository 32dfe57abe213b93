"""Every task at a glance: what the target states, what ledgers know, and how fresh the evidence is."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gitevals.config import TASK_FIELD, Flaky
from gitevals.contracts.reading import BaseConfig, Standing, standing
from gitevals.contracts.spent import every_delivery
from gitevals.contracts.stating import Source, expected, stated
from gitevals.errors import BadInput, EvalsError
from gitevals.evidence.reading import Evidence
from gitevals.git.objects import read
from gitevals.git.repo import Repo
from gitevals.model import contract as contracts
from gitevals.model.evaluation import Evaluation, Stored
from gitevals.model.facts import ContractState
from gitevals.model.movement import deciding
from gitevals.model.task import check_task_id
from gitevals.session import Session
from gitevals.status import TaskStatus, Tries, every_try, latest, of_task, unreadable
from gitevals.targets import HEADS, Target


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a task is ``open`` or ``delivered``; ``deliveries`` are the commits that delivered it and still stand."""

    state: str
    deliveries: tuple[str, ...] = ()


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One task among all; ``pending`` is whether it has a branch whose change is not in the target yet."""

    status: TaskStatus
    episode: Episode
    pending: bool = False


class _All(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows share: by branch not yet in the target its tip, by commit not yet there its parents, and so on."""

    session: Session
    target: Target
    source: Source
    base_tree: str
    branches: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]]
    evaluations: Mapping[str, list[Stored]]
    deliveries: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, Tries]


def every_task(session: Session, target: Target, evidence: Evidence) -> list[Listed]:
    """How every task stands that ``target`` states or a ledger knows, by id; what is unreadable is a row that says so.

    `of_task` asks the gate, which may have to merge each branch. Here keys are compared, and the gate is asked only
    where they leave it open. No operator's command is run: a text that is not in the target is taken as frozen.
    """
    evaluations = evidence.every_evaluation()
    by_task: dict[str, list[Stored]] = {}
    for stored in evaluations:
        by_task.setdefault(stored.evaluation.task, []).append(stored)
    names = sorted({*task_ids(session.repo, target.base).ids, *evidence.tasks(), *by_task} - {""})
    freezes = {task: evidence.freezes(task) for task in names}
    root = read(session.objects, f"{target.tip}:")
    branches = _unmerged(session.repo, target.tip)
    every = _All(
        session=msgspec.structs.replace(session, ask=None),
        target=target,
        source=Source(repo=session.repo, objects=session.objects, evidence=evidence),
        base_tree=root.id if root else "",
        branches=branches,
        parents=_parents(session.repo, target.tip, branches.values()),
        evaluations=by_task,
        deliveries=every_delivery(session.repo, evidence, target.base, target.ref, freezes, evaluations),
        numbers=every_try(evaluations),
    )
    return [_listed(every, task) for task in names]


class TaskFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks whose text a base has, and the paths that would be a task's text but for their name."""

    ids: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()


def task_ids(repo: Repo, base: BaseConfig) -> TaskFiles:
    """The tasks that ``base`` states, found by its path pattern."""
    pattern = base.config.task_path
    if pattern is None:
        return TaskFiles()
    before, _, after = pattern.partition(TASK_FIELD)
    folder = before.rpartition("/")[0]
    asked = ("ls-tree", "-z", "--full-tree", "--name-only", *(("-r",) if "/" in after else ()), base.commit)
    ids, misnamed = [], []
    for path in repo.text(*asked, *((f"{folder}/",) if folder else ())).split("\0"):
        name = path[len(before) : len(path) - len(after)]
        if name and "/" not in name and path == f"{before}{name}{after}":
            try:
                ids.append(check_task_id(name))
            except BadInput:
                misnamed.append(path)
    return TaskFiles(ids=tuple(ids), misnamed=tuple(misnamed))


def _unmerged(repo: Repo, tip: str) -> dict[str, str]:
    """The tip of each branch that is not in ``tip`` yet, by its full name."""
    listed = repo.text("for-each-ref", f"--no-merged={tip}", "--format=%(objectname) %(refname)", HEADS)
    return {name: commit for commit, _, name in (row.partition(" ") for row in listed.split("\n")) if name}


def _parents(repo: Repo, tip: str, heads: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The parents of each commit that ``heads`` bring to ``tip``."""
    asked = "".join(f"{name}\n" for name in (*heads, f"^{tip}"))
    listed = repo.run("rev-list", "--parents", "--stdin", stdin=asked.encode()).stdout.decode()
    return {commit: tuple(rest) for commit, *rest in (row.split() for row in listed.splitlines())}


def _listed(every: _All, task: str) -> Listed:
    delivered = every.deliveries.get(task, ())
    episode = Episode(state="delivered" if delivered else "open", deliveries=delivered)
    try:
        status = _of_task(every, check_task_id(task))
        return Listed(status=status, episode=episode, pending=_head(every, task) is not None)
    except EvalsError as error:
        return Listed(status=unreadable(every.target, task, error.message), episode=episode)


def _of_task(every: _All, task: str) -> TaskStatus:
    base = every.target.base
    statement = stated(every.source, base, task)
    digest = contracts.digest(expected(every.source, base, statement))
    stands = standing(every.source.evidence, task, digest, base.config.repository)
    own = every.evaluations.get(task, [])
    head = _head(every, task)
    found = latest([stored for stored in own if stored.evaluation.subject.head == head] or own)
    freshness = _freshness(every, own, stands, head)
    if freshness is None:
        return of_task(every.session, every.target, task)
    return TaskStatus(
        task=task,
        title=statement.task.title,
        mode=base.config.mode,
        contract=digest,
        contract_state=stands.state,
        evidence_state="stale" if freshness.because else freshness.state or (found.evaluation.result if found else ""),
        stale_because=freshness.because,
        result=found.evaluation.result if found else None,
        subject=found.evaluation.subject.head if found else None,
        evaluation=found.id if found else None,
        tries=every.numbers[found.id].count if found else 0,
    )


def _head(every: _All, task: str) -> str | None:
    return every.branches.get(HEADS + every.target.base.config.branch_of(task))


class _Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """What evidence says of a branch: a ``state`` ("": as its newest evaluation), or what makes it stale."""

    state: str = ""
    because: tuple[str, ...] = ()


def _freshness(every: _All, own: list[Stored], stands: Standing, head: str | None) -> _Freshness | None:
    """How the evidence of a task stands to its branch at ``head``; None where only the gate can tell."""
    if head is not None and stands.state is ContractState.OUT_OF_DATE:
        return _Freshness(because=(f"its frozen contract is out of date with {every.target.ref}",))
    if head is None:
        return _Freshness(state="" if own else "missing")
    near = _near(every, own, head)
    moved = {stored.id: _moved(every, stored.evaluation, stands.digest, head) for stored in near}
    same = [stored for stored in near if not moved[stored.id]]
    config = every.target.base.config
    # What else the gate asks of a pass.
    further = config.max_age_seconds or config.max_tries or config.flaky is Flaky.REFUSE
    if same and (further or any(stored.evaluation.merge.strategy == "given" for stored in same)):
        return None
    if not same and any(_on_base(every, stored.evaluation) and _has_tree(every, stored, head) for stored in near):
        return None
    if same:
        results = {stored.evaluation.weight for stored in deciding(own, same)}
        return _Freshness(state=results.pop() if len(results) == 1 else "disputed")
    if not near:
        return _Freshness(state="missing")
    nearest = max(near, key=lambda stored: (-len(moved[stored.id]), stored.evaluation.finished, stored.id))
    return _Freshness(because=moved[nearest.id])


def _near(every: _All, own: Sequence[Stored], head: str) -> list[Stored]:
    """Those of ``own`` that are about this target, and about a commit that ``head`` brings to it or about its tree."""
    wanted = (every.target.ref, every.target.base.config.repository)
    brought, waiting = set(), [head]
    while waiting:
        commit = waiting.pop()
        if commit in every.parents and commit not in brought:
            brought.add(commit)
            waiting.extend(every.parents[commit])
    return [
        stored for stored in own
        if (stored.evaluation.subject.ref, stored.evaluation.subject.repository) == wanted
        and (not brought.isdisjoint(stored.evaluation.subject.heads) or _has_tree(every, stored, head))
    ]  # fmt: skip


def _moved(every: _All, told: Evaluation, digest: str, head: str) -> tuple[str, ...]:
    """Which parts of the key of ``told`` are not those of ``head`` entering the target."""
    subject, target = told.subject, every.target
    said = []
    if not _on_base(every, told):
        said.append(f"evaluated on {subject.base[:12]}, but {target.ref} has moved to {target.tip[:12]}")
    if head not in subject.heads:
        said.append(f"evaluated at {subject.head[:12]}, but the change is now {head[:12]}")
    if not said and told.contract != digest:
        said.append(f"evaluated under contract {told.contract[:12]}, now {digest[:12]}")
    return tuple(said)


def _on_base(every: _All, told: Evaluation) -> bool:
    return told.subject.base == every.target.tip or told.subject.base_tree == every.base_tree


def _has_tree(every: _All, stored: Stored, head: str) -> bool:
    """Whether evidence may be about ``head`` although it names another commit: it has the evaluated tree."""
    root = read(every.session.objects, f"{head}:")
    return root is not None and root.id == stored.evaluation.subject.tree
