"""Commands of a contract, run one after the other in a scratch checkout and judged by what they did to it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from gitevals import process
from gitevals.evaluate import environment
from gitevals.git import watch
from gitevals.git.scratch import Scratch
from gitevals.model.contract import Command, Contract, verification_id
from gitevals.model.evaluation import EXCERPT_LIMIT_BYTES, CheckRun, Stream
from gitevals.model.record import identify
from gitevals.model.result import Result, of_exit


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody who watches a run is told: ``run`` is None while the command is still going."""

    id: str
    elapsed_seconds: float = 0.0
    timeout_seconds: int = 0
    run: CheckRun | None = None


Observer = Callable[[Happening], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: set-up commands, verification, and each bound check once."""

    setup: tuple[Command, ...]
    verification: tuple[Command, ...]
    checks: dict[str, Command]
    outputs: tuple[str, ...] = ()


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a plan; ``streams`` are the kept bytes by SHA-256; ``stopped`` says why the rest was not run."""

    setup: tuple[CheckRun, ...] = ()
    verification: tuple[CheckRun, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    streams: dict[str, bytes] = {}
    reason: str = ""
    timed_out_verifying: bool = False


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where commands run: the scratch repository and what every command's environment is built from."""

    scratch: Scratch
    inherited: Mapping[str, str]
    base: str
    head: str
    task: str
    observer: Observer


def plan(contracts: Sequence[Contract], *, criteria_count: bool) -> Plan:
    """One plan for contracts of one base: their set-up and verification are the same, a shared check runs once."""
    first = contracts[0]
    checks = {name: command for contract in contracts for name, command in sorted(contract.checks.items())}
    return Plan(
        setup=first.setup,
        verification=first.verification,
        checks=checks if criteria_count else {},
        outputs=first.outputs,
    )


def carry_out(bench: Bench, wanted: Plan) -> Ran:
    """Run the whole plan; what an earlier failure prevented is ``not_run``."""
    streams: dict[str, bytes] = {}
    untouched = watch.baseline(bench.scratch) if wanted.setup else None
    setup = tuple(_run(bench, f"setup-{n}", command, streams) for n, command in enumerate(wanted.setup, 1))
    broken = next((run for run in setup if run.result is not Result.PASSED), None)
    if broken is not None:
        return _nothing(wanted, setup, streams, f"{broken.id} did not succeed: {broken.reason or _exit(broken)}")
    if not os.path.isdir(bench.scratch.worktree):
        return _nothing(wanted, setup, streams, "the set-up commands removed the checkout")
    altered = _altered(bench, untouched) if untouched else ()
    if altered:
        return _nothing(wanted, setup, streams, f"the set-up commands changed the source: {_listed(altered)}")
    before = watch.baseline(bench.scratch)
    verification, stop = _in_turn(
        bench,
        {verification_id(n): c for n, c in enumerate(wanted.verification, 1)},
        wanted,
        before,
        streams,
        all_pass=True,
    )
    reason = stop
    unproven = next((run for run in verification if run.result is not Result.PASSED), None)
    if unproven is not None:
        reason = reason or f"{unproven.id} {unproven.result.replace('_', ' ')}: {unproven.reason or _exit(unproven)}"
        checks = tuple(_not_run(name) for name in wanted.checks)
    else:
        checks, reason = _in_turn(bench, wanted.checks, wanted, before, streams, all_pass=False)
    return Ran(
        setup=setup,
        verification=verification,
        checks=checks,
        streams=streams,
        reason=reason,
        timed_out_verifying=any(_is_over_time(run) for run in verification),
    )


def _altered(bench: Bench, untouched: watch.Baseline) -> tuple[str, ...]:
    """What set-up commands did to the commit that is to be judged; files that they add are no such thing."""
    return tuple(told for told in watch.changes(bench.scratch, untouched) if not told.startswith("new file: "))


def _nothing(wanted: Plan, setup: tuple[CheckRun, ...], streams: dict[str, bytes], reason: str) -> Ran:
    return Ran(
        setup=setup,
        verification=tuple(_not_run(verification_id(n)) for n, _ in enumerate(wanted.verification, 1)),
        checks=tuple(_not_run(name) for name in wanted.checks),
        streams=streams,
        reason=reason,
    )


def nothing_ran(wanted: Plan, reason: str) -> Ran:
    """The outcome of a plan that could not even begin."""
    return _nothing(wanted, (), {}, reason)


def _not_run(name: str) -> CheckRun:
    return CheckRun(id=name, result=Result.NOT_RUN)


def _exit(run: CheckRun) -> str:
    return f"exit {run.exit_code}"


def _in_turn(
    bench: Bench,
    commands: Mapping[str, Command],
    wanted: Plan,
    before: watch.Baseline,
    streams: dict[str, bytes],
    *,
    all_pass: bool,
) -> tuple[tuple[CheckRun, ...], str]:
    """Run ``commands`` until one changes the source (or, with ``all_pass``, does not pass); the rest is ``not_run``."""
    runs: list[CheckRun] = []
    stopped, reason = False, ""
    for name, command in commands.items():
        if stopped:
            runs.append(_not_run(name))
            continue
        run = _run(bench, name, command, streams, lambda: watch.changes(bench.scratch, before, outputs=wanted.outputs))
        if run.reason.startswith(SOURCE_CHANGED):
            stopped, reason = True, f"{name} {run.reason}"
        stopped = stopped or (all_pass and run.result is not Result.PASSED)
        runs.append(run)
    return tuple(runs), reason


SOURCE_CHANGED = "source_changed"
TIMED_OUT = "timed out"


def _run(
    bench: Bench,
    name: str,
    command: Command,
    streams: dict[str, bytes],
    changes: Callable[[], tuple[str, ...]] = tuple,
) -> CheckRun:
    bench.observer(Happening(id=name, timeout_seconds=command.timeout_seconds))
    outcome = process.run(
        command.command,
        cwd=str(Path(bench.scratch.worktree, command.cwd)),
        env=_environment(bench, command),
        limits=process.Limits(timeout_seconds=command.timeout_seconds),
        on_tick=lambda elapsed: bench.observer(
            Happening(id=name, elapsed_seconds=elapsed, timeout_seconds=command.timeout_seconds)
        ),
    )
    run = _judged(name, command, outcome, changes(), streams)
    bench.observer(Happening(id=name, run=run))
    return run


def _environment(bench: Bench, command: Command) -> dict[str, str]:
    temporary = os.path.join(bench.scratch.root, "tmp")
    os.makedirs(temporary, exist_ok=True)
    return environment.built(
        bench.inherited,
        command,
        base=bench.base,
        head=bench.head,
        task=bench.task,
        root=bench.scratch.root,
        temporary=temporary,
    )


def _judged(
    name: str, command: Command, outcome: process.Outcome, changed: tuple[str, ...], streams: dict[str, bytes]
) -> CheckRun:
    result, reasons = _result(command, outcome)
    if changed:
        result, reasons = Result.INCONCLUSIVE, [f"{SOURCE_CHANGED}: {_listed(changed)}", *reasons]
    if outcome.leftover:
        reasons.append(f"left {len(outcome.leftover)} process(es) running, ended: {_listed(outcome.leftover)}")
    if outcome.survivors:
        result, reasons = Result.INCONCLUSIVE, [*reasons, f"could not be ended: {_listed(outcome.survivors)}"]
    told = result is not Result.PASSED
    return CheckRun(
        id=name,
        result=result,
        reason="; ".join(reasons),
        exit_code=outcome.exit_code,
        duration_ms=outcome.duration_ms,
        stdout=_stream(outcome.stdout, streams, excerpted=told),
        stderr=_stream(outcome.stderr, streams, excerpted=told),
    )


def _result(command: Command, outcome: process.Outcome) -> tuple[Result, list[str]]:
    if outcome.ended is process.Ended.TIMED_OUT:
        return Result.INCONCLUSIVE, [f"{TIMED_OUT} after {command.timeout_seconds} s"]
    if outcome.ended is process.Ended.SIGNALLED:
        return Result.INCONCLUSIVE, [f"ended by signal {outcome.signal}"]
    if outcome.ended is process.Ended.NOT_STARTED or outcome.exit_code is None:
        return Result.INCONCLUSIVE, [f"could not be started: {outcome.message}"]
    result = of_exit(outcome.exit_code, refined=command.refined_exits())
    return result, [] if result is Result.PASSED else [f"exit {outcome.exit_code}"]


def _is_over_time(run: CheckRun) -> bool:
    return any(reason.startswith(TIMED_OUT) for reason in run.reason.split("; ", 2)[:2])


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _stream(captured: process.Captured, streams: dict[str, bytes], *, excerpted: bool) -> Stream | None:
    if captured.total_bytes == 0:
        return None
    sha256 = identify(captured.kept)
    streams[sha256] = captured.kept
    excerpt = captured.kept[-EXCERPT_LIMIT_BYTES:].decode("utf-8", "replace") if excerpted else ""
    return Stream(sha256=sha256, bytes=captured.total_bytes, truncated=captured.truncated, excerpt=excerpt)
