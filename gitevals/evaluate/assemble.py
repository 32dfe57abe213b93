"""What commands did becomes an evaluation: findings by binding, one result, no weighing."""

from collections.abc import Mapping

import msgspec

from gitevals import __version__
from gitevals.contracts.reading import Standing
from gitevals.evaluate.plan import Plan, Ran
from gitevals.evidence.writing import SHORTEST_REASON_BYTES, clip, nonce
from gitevals.model.contract import AtBase, Command, Contract, Criterion, Mode
from gitevals.model.evaluation import (
    DESCRIPTION_LIMIT_BYTES,
    BaseRun,
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
    checks = entry.contract.checks
    findings = tuple(_finding(criterion, runs, checks, frame.mode) for criterion in entry.contract.criteria)
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
        notes=tuple(clip(note, DESCRIPTION_LIMIT_BYTES) for note in ran.notes),
        merge=frame.merge,
        nonce=nonce(),
        correlation=frame.correlation,
    )


def smallest(entry: Examined, wanted: Plan, frame: Frame) -> Evaluation:
    """What the evaluation of carrying out ``wanted`` comes to at least, once all is shrunk that can be."""
    said = "x" * SHORTEST_REASON_BYTES
    found = [CheckRun(id=name, result=Result.INCONCLUSIVE, reason=said, exit_code=255, duration_ms=10**7,
                      at_base=None if command.at_base is AtBase.ANY else BaseRun(result=Result.INCONCLUSIVE))
             for name, command in wanted.checks.items()]  # fmt: skip
    numbered = [CheckRun(id=f"setup-{n}", result=Result.INCONCLUSIVE, reason=said, exit_code=255, duration_ms=10**7)
                for n in range(1, len(wanted.setup) + len(wanted.verification) + 1)]  # fmt: skip
    whole = assemble(entry, Ran(checks=tuple(found), setup=tuple(numbered), reason=said, notes=(said,) * 8), frame)
    findings = tuple(
        msgspec.structs.replace(each, description=said, reason=said, result=Result.INCONCLUSIVE)
        for each in whole.findings
    )
    return msgspec.structs.replace(whole, findings=findings)


def _result(entry: Examined, ran: Ran, findings: tuple[Finding, ...], mode: Mode) -> Result:
    result = of_evaluation(
        [run.result for run in ran.verification],
        [finding.result for finding in findings],
        criteria_count=bool(entry.task) and mode is not Mode.OFF,
    )
    return Result.INCONCLUSIVE if ran.reason and result is Result.PASSED else result


def _finding(criterion: Criterion, runs: Mapping[str, CheckRun], checks: Mapping[str, Command], mode: Mode) -> Finding:
    clipped = clip(criterion.description, DESCRIPTION_LIMIT_BYTES)
    if mode is Mode.OFF:
        return Finding(criterion=criterion.id, description=clipped, result=Result.NOT_RUN, reason="evaluation is off")
    bound = [weighed(runs[name], checks.get(name)) for name in criterion.checks if name in runs]
    result = of_bound([run.result for run in bound])
    return Finding(
        criterion=criterion.id,
        description=clipped,
        result=result,
        checks=criterion.checks,
        reason=_why(bound, result),
    )


def weighed(run: CheckRun, command: Command | None) -> CheckRun:
    """``run`` as it counts for a criterion: a pass that the base belies proves nothing about the change."""
    if command is None or command.at_base is AtBase.ANY or run.result is not Result.PASSED:
        return run
    wanted = Result.FAILED if command.at_base is AtBase.FAIL else Result.PASSED
    found = run.at_base.result if run.at_base else Result.NOT_RUN
    if found is wanted:
        return run
    told = f" ({run.at_base.reason})" if run.at_base and run.at_base.reason else ""
    reason = f"{found}_at_base{told}: it has to {command.at_base} before the change"
    return msgspec.structs.replace(run, result=Result.INCONCLUSIVE, reason=reason)


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
