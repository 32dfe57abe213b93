"""What a run has to do, and what became of it."""

from collections.abc import Sequence

import msgspec

from gitevals.model.contract import Cached, Command, Contract, verification_id
from gitevals.model.evaluation import CheckRun
from gitevals.model.result import Result


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: set-up commands, verification, and each bound check once.

    ``graders`` maps a check that has graders to the git tree which holds them.
    """

    setup: tuple[Command, ...]
    verification: tuple[Command, ...]
    checks: dict[str, Command]
    outputs: tuple[str, ...] = ()
    cache: tuple[Cached, ...] = ()
    graders: dict[str, str] = {}


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a plan; ``streams`` are the kept bytes by SHA-256; ``reason`` says why it proves nothing."""

    setup: tuple[CheckRun, ...] = ()
    verification: tuple[CheckRun, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    streams: dict[str, bytes] = {}
    reason: str = ""
    notes: tuple[str, ...] = ()
    timed_out_verifying: bool = False


def plan(contracts: Sequence[Contract], *, criteria_count: bool) -> Plan:
    """One plan for contracts of one base: their set-up and verification are the same, a shared check runs once."""
    first = contracts[0]
    checks = {name: command for contract in contracts for name, command in sorted(contract.checks.items())}
    graders = {name: contract.graders for contract in contracts for name, command in contract.checks.items()
               if command.graders}  # fmt: skip
    return Plan(
        setup=first.setup,
        verification=first.verification,
        checks=checks if criteria_count else {},
        outputs=first.outputs,
        cache=first.cache,
        graders=graders,
    )


def nothing_ran(
    wanted: Plan,
    reason: str,
    *,
    setup: tuple[CheckRun, ...] = (),
    streams: dict[str, bytes] | None = None,
    notes: tuple[str, ...] = (),
) -> Ran:
    """The outcome of a plan that came to nothing, perhaps after its set-up."""
    return Ran(
        setup=setup,
        verification=tuple(not_run(verification_id(n)) for n, _ in enumerate(wanted.verification, 1)),
        checks=tuple(not_run(name) for name in wanted.checks),
        streams=streams or {},
        reason=reason,
        notes=notes,
    )


def not_run(name: str) -> CheckRun:
    """A command that something earlier kept from running."""
    return CheckRun(id=name, result=Result.NOT_RUN)


def why(run: CheckRun) -> str:
    """What a command that did not pass is said to have done."""
    return f"{run.id} {run.result.replace('_', ' ')}: {run.reason or f'exit {run.exit_code}'}"
