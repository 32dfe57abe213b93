"""Pure values and decisions; the values that these tests start from."""

import msgspec

from gitevals.model.evaluation import CheckRun, Environment, Evaluation, Finding, Merge, Stored, Subject
from gitevals.model.result import Result

SUBJECT = Subject(
    ref="refs/heads/main",
    source="task/42",
    repository="r1",
    base="b0",
    base_tree="b0-tree",
    head="h1",
    heads=("h1",),
    tree="t1",
)


def an_evaluation(
    result: Result = Result.PASSED,
    *,
    task: str = "42",
    contract: str = "c1",
    verified: Result = Result.PASSED,
    verification_digest: str = "v1",
    after: tuple[str, ...] = (),
    findings: tuple[Finding, ...] | None = None,
    reason: str = "",
    finished: str = "2030-01-02T03:04:06.000Z",
    **subject: object,
) -> Evaluation:
    """An evaluation whose one criterion came out as the whole did; further keywords change its subject."""
    return Evaluation(
        task=task,
        contract=contract,
        subject=msgspec.structs.replace(SUBJECT, **subject),
        result=result,
        reason=reason,
        findings=(Finding(criterion="AC-1", result=result),) if findings is None else findings,
        verification=(CheckRun(id="verify-1", result=verified),),
        verification_digest=verification_digest,
        evaluator="git-evals 0.1.0",
        writer="tester",
        started="2030-01-02T03:04:05.000Z",
        finished=finished,
        environment=Environment(git="2.45.0", os="Linux", arch="x86_64"),
        merge=Merge(strategy="none", git="2.45.0"),
        after=after,
        nonce="0011223344556677",
    )


def about(evaluation: Evaluation, **changes: object) -> Evaluation:
    """``evaluation`` of another subject."""
    return msgspec.structs.replace(evaluation, subject=msgspec.structs.replace(evaluation.subject, **changes))


def stored(name: str, evaluation: Evaluation) -> Stored:
    """``evaluation`` as it was read, under an id that a test can spell."""
    return Stored(id=name, evaluation=evaluation, ledger="refs/notes/evals/tester")
