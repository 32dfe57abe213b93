"""A contract, statuses and audits for people."""

import shlex
import textwrap

from gitevals.audit import Audit, Verdict
from gitevals.contracts.reading import Standing
from gitevals.model.contract import Command, Contract
from gitevals.report.text import line, short, words
from gitevals.status import TaskStatus


def contract(content: Contract, title: str, standing: Standing, width: int) -> list[str]:
    """What freezing captures, and how it stands to what is frozen."""
    said = [f"task {line(content.task)}: {line(title)}"]
    said.append(f"  contract {short(standing.digest)}, mode {content.mode}, {words(standing.state)}")
    for frozen in standing.live:
        reason = f" ({line(frozen.freeze.reason)})" if frozen.freeze.reason else ""
        said.append(
            f"  frozen   {short(frozen.freeze.digest)} at {short(frozen.freeze.base)} by {line(frozen.freeze.writer)}"
            f", {line(frozen.freeze.created)}{reason}"
        )
    for criterion in content.criteria:
        bound = ", ".join(criterion.checks) or "no check is bound"
        said += _wrapped(f"  {criterion.id:<10} ", f"{line(criterion.description)} [{bound}]", width)
    for name, command in content.checks.items():
        said += _wrapped(f"    {name:<12} ", _command(command), width)
    for label, commands in (("verify", content.verification), ("setup", content.setup)):
        for number, command in enumerate(commands, 1):
            said += _wrapped(f"    {label}-{number:<5} ", _command(command), width)
    return said


def _command(command: Command) -> str:
    return f"{line(shlex.join(command.command))} (at most {command.timeout_seconds} s)"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    indent = " " * len(label)
    return textwrap.wrap(text, max(width, len(label) + 24), initial_indent=label, subsequent_indent=indent) or [label]


def status(tasks: list[TaskStatus], width: int) -> list[str]:
    """One block a task: how it stands, why, and what helps."""
    said: list[str] = []
    for task in tasks:
        said += _wrapped(f"{line(task.task)}: ", line(task.title), width)
        said.append(f"  contract {short(task.contract)} {words(task.contract_state)}, mode {task.mode}")
        evidence = f"  evidence {words(task.evidence_state)}"
        if task.evaluation and task.subject:
            evidence += f": {words(task.result or '')} on {short(task.subject)}, evaluation {short(task.evaluation)}"
        said.append(evidence)
        for reason in task.reasons:
            said += _wrapped("  - ", line(reason), width)
        said += [f"  hint: {line(hint)}" for hint in task.hints[:1]]
    return said or ["no task is known yet"]


def audit(found: Audit, width: int) -> list[str]:
    """What got past the gate, then how many movements stand how."""
    if found.enrolled is None:
        return [f"{line(found.ref)} has no .gitevals.yaml anywhere in its history"]
    said: list[str] = []
    for row in found.rows:
        if row.verdict in (Verdict.REFUSED, Verdict.UNVERIFIED):
            said.append(f"{row.verdict}: {short(row.commit)} on {short(row.old)}")
            for reason in row.reasons:
                said += _wrapped("  - ", line(reason.message), width)
    freed = [row for row in found.rows if row.verdict is Verdict.UNPROTECTED]
    if freed:
        said.append(f"unprotected: {len(freed)} movement(s) without configuration, from {short(freed[0].commit)}")
    counts = {verdict: sum(row.verdict is verdict for row in found.rows) for verdict in Verdict}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none"
    verdict = "clean" if found.clean else "not clean"
    return [*said, f"{line(found.ref)}: {verdict}; movements since {short(found.enrolled)}: {listed}"]
