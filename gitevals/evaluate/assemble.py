"""What commands did becomes an evaluation: findings by binding, one result, no weighing."""

import msgspec

from gitevals import __version__
from gitevals.contracts.reading import Standing
from gitevals.evaluate.checks import Ran
from gitevals.evidence.writing import clip, nonce
from gitevals.model.contract import Contract, Criterion, Mode
from gitevals.model.evaluation import (
    DESCRIPTION_LIMIT_BYTES,
    CheckRun,
    Correlation,
    Environment,
    Evaluation,
    Finding,
    Merge,
    Subject,
)
from gitevals.model.result import Result, of_bound, of_evaluation


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One task that a run is for: its contract as the base states it, the text it came from, how it is frozen."""

    contract: Contract
    digest: str
    text: bytes = b""
    standing: Standing | None = None

    @property
    def task(self) -> str:
        """The task's id; empty for project verification alone."""
        return self.contract.task


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What all evaluations of one run share."""

    subject: Subject
    writer: str
    started: str
    finished: str
    environment: Environment
    merge: Merge
    correlation: Correlation
    mode: Mode
    verification_digest: str


def assemble(entry: Examined, ran: Ran, frame: Frame) -> Evaluation:
    """The evaluation of one task out of what was run for all of them."""
    bound = {name for criterion in entry.contract.criteria for name in criterion.checks}
    runs = {run.id: run for run in (*ran.verification, *ran.checks)}
    findings = tuple(_finding(criterion, runs, frame.mode) for criterion in entry.contract.criteria)
    return Evaluation(
        task=entry.task,
        contract=entry.digest,
        subject=frame.subject,
        result=_result(entry, ran, findings, frame.mode),
        reason=clip(ran.reason, DESCRIPTION_LIMIT_BYTES),
        findings=findings,
        checks=tuple(run for run in ran.checks if run.id in bound),
        verification=ran.verification,
        verification_digest=frame.verification_digest,
        setup=ran.setup,
        evaluator=f"git-evals {__version__}",
        writer=frame.writer,
        started=frame.started,
        finished=frame.finished,
        environment=frame.environment,
        merge=frame.merge,
        nonce=nonce(),
        correlation=frame.correlation,
    )


def _result(entry: Examined, ran: Ran, findings: tuple[Finding, ...], mode: Mode) -> Result:
    result = of_evaluation(
        [run.result for run in ran.verification],
        [finding.result for finding in findings],
        criteria_count=bool(entry.task) and mode is not Mode.OFF,
    )
    return Result.INCONCLUSIVE if ran.reason and result is Result.PASSED else result


def _finding(criterion: Criterion, runs: dict[str, CheckRun], mode: Mode) -> Finding:
    clipped = clip(criterion.description, DESCRIPTION_LIMIT_BYTES)
    if mode is Mode.OFF:
        return Finding(criterion=criterion.id, description=clipped, result=Result.NOT_RUN, reason="evaluation is off")
    bound = [runs[name] for name in criterion.checks if name in runs]
    result = of_bound([run.result for run in bound])
    return Finding(
        criterion=criterion.id,
        description=clipped,
        result=result,
        checks=criterion.checks,
        reason=_why(bound, result),
    )


def _why(bound: list[CheckRun], result: Result) -> str:
    if not bound:
        return "no check is bound"
    if result is Result.PASSED:
        return ""
    if result is Result.NOT_RUN:
        return "not run because of what came before"
    decisive = [run for run in bound if run.result is result] or [
        run for run in bound if run.result is not Result.PASSED
    ]
    return clip("; ".join(f"{run.id}: {run.reason or run.result.replace('_', ' ')}" for run in decisive), 512)
