"""What a movement is decided on: the facts that tests of decisions start from, and any others there may be."""

import msgspec
from hypothesis import strategies as st

from gitevals.model.contract import Mode
from gitevals.model.evaluation import Finding, Stored
from gitevals.model.facts import ContractState, Facts, Policy, TaskFacts
from gitevals.model.movement import Commit, Span
from gitevals.model.result import Result
from tests.model import an_evaluation, stored

SPAN = Span(
    ref="refs/heads/main",
    old=Commit(id="b0", tree="b0-tree"),
    new=Commit(id="h1", tree="t1", parents=("b0",)),
)
TASK = TaskFacts(task="42", state=ContractState.FROZEN, digest="c1")
OTHER = TaskFacts(task="43", state=ContractState.FROZEN, digest="c2")
PASS = stored("e1", an_evaluation())
FAIL = stored("e2", an_evaluation(Result.FAILED))


def policy_of(mode: Mode = Mode.ENFORCE, **changes: object) -> Policy:
    """What a configuration of ``mode`` demands by default, with one command of verification."""
    strict = mode is Mode.ENFORCE
    policy = Policy(
        mode=mode,
        repository="r1",
        untasked_refuses=strict,
        untasked_verifies=not strict,
        verification_required=strict,
        verification_digest="v1",
        verification_count=1,
    )
    return msgspec.structs.replace(policy, **changes)


def facts_of(*evaluations: Stored, mode: Mode = Mode.ENFORCE, policy: Policy | None = None, **changes: object) -> Facts:
    """The facts of task 42 on one span, known by ``evaluations`` alone."""
    facts = Facts(
        span=SPAN,
        policy=policy or policy_of(mode),
        tasks=(TASK,),
        evaluations=evaluations,
        where="--branch task/42",
    )
    return msgspec.structs.replace(facts, **changes)


_COMMITS = st.sampled_from(["b0", "b1", "h1", "h2"])
_TREES = st.sampled_from(["b0-tree", "t1", "t2", ""])


@st.composite
def _evidence(draw: st.DrawFn) -> tuple[Stored, ...]:
    known: list[Stored] = []
    for n in range(draw(st.integers(0, 5))):
        result = draw(st.sampled_from(Result))
        finding = Finding(criterion="AC-1", result=draw(st.sampled_from(Result)))
        evaluation = an_evaluation(
            result,
            task=draw(st.sampled_from(["42", "42", "43", ""])),
            contract=draw(st.sampled_from(["c1", "c1", "c2"])),
            verified=draw(st.sampled_from(Result)),
            verification_digest=draw(st.sampled_from(["v1", "v1", "v2"])),
            after=tuple(sorted(draw(st.sets(st.sampled_from([*(entry.id for entry in known), "gone"]))))),
            findings=draw(st.sampled_from([(), (finding,)])),
            reason=draw(st.sampled_from(["", "{odd} {0}"])),
            finished=draw(st.sampled_from(["1", "2"])),
            ref=draw(st.sampled_from(["refs/heads/main", "refs/heads/main", "refs/heads/x"])),
            repository=draw(st.sampled_from(["r1", "r1", "r2"])),
            base=draw(_COMMITS),
            base_tree=draw(_TREES),
            heads=tuple(draw(st.lists(_COMMITS, max_size=2))),
            tree=draw(st.sampled_from(["t1", "t1", "t2", ""])),
        )
        known.append(stored(f"e{n}", evaluation))
    return tuple(draw(st.permutations(known)))


_TASKS = st.builds(
    TaskFacts,
    task=st.sampled_from(["42", "43", "{0}"]),
    state=st.sampled_from(ContractState) | st.just(ContractState.FROZEN),
    digest=st.sampled_from(["c1", "c1", "c2", ""]),
    spent_by=st.sampled_from(["", "", "m9"]),
    problem=st.sampled_from(["", "{task}"]),
)
_NEW = st.builds(
    Commit, id=_COMMITS, tree=st.sampled_from(["t1", "t2"]), parents=st.lists(_COMMITS, max_size=3).map(tuple)
)
ANY_FACTS = st.builds(
    Facts,
    span=st.builds(Span, ref=st.just("refs/heads/main"), old=st.just(SPAN.old), new=_NEW | st.just(SPAN.new)),
    policy=st.builds(
        Policy,
        mode=st.sampled_from(Mode),
        repository=st.just("r1"),
        untasked_refuses=st.booleans(),
        untasked_verifies=st.booleans(),
        verification_required=st.booleans(),
        verification_digest=st.just("v1"),
        verification_count=st.integers(0, 2),
    ),
    tasks=st.lists(_TASKS, max_size=2, unique_by=lambda task: task.task).map(tuple),
    evaluations=_evidence(),
    exempt=st.sampled_from(["", "", "", "{why}"]),
    privileged=st.sampled_from([(), ("{file} is changed",)]),
    config_problem=st.sampled_from(["", "", "", "{line}"]),
    where=st.sampled_from(["", "--branch {x}"]),
    into=st.sampled_from(["", " --into {y}"]),
)
