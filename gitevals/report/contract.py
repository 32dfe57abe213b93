"""A contract, statuses and audits for people."""

import shlex

from gitevals.audit import Audit, Verdict
from gitevals.contracts.previewing import Preview
from gitevals.contracts.stating import Origin
from gitevals.model.contract import AtBase, Command, digest
from gitevals.report.layout import wrapped
from gitevals.report.text import line, short, words
from gitevals.status import TaskStatus


def contract(found: Preview, width: int) -> list[str]:
    """What freezing captures, how it stands to what is frozen, and how it differs from that."""
    content, standing = found.content, found.standing
    said = [f"task {line(content.task)}: {line(found.title)}"]
    said.append(f"  contract {short(digest(content))}, mode {content.mode}, {words(standing.state)}")
    if found.origin is not Origin.BASE:
        said.append(f"  text     {_ORIGINS[found.origin]}")
    for frozen in standing.live:
        reason = f" ({line(frozen.freeze.reason)})" if frozen.freeze.reason else ""
        said.append(
            f"  frozen   {short(frozen.freeze.digest)} at {short(frozen.freeze.base)} by {line(frozen.freeze.writer)}"
            f", {line(frozen.freeze.created)}{reason}"
        )
    for difference in found.differences:
        said += wrapped("  differs  ", line(difference), width)
    if found.graders_moved:
        said += wrapped(
            "  note     ", "the base's graders moved on; the frozen ones count until it is frozen again", width
        )
    for criterion in content.criteria:
        bound = ", ".join(criterion.checks) or "no check is bound"
        said += wrapped(f"  {criterion.id:<10} ", f"{line(criterion.description)} [{bound}]", width)
    for name, command in content.checks.items():
        said += wrapped(f"    {name:<12} ", _command(command), width)
    for label, commands in (("verify", content.verification), ("setup", content.setup)):
        for number, command in enumerate(commands, 1):
            said += wrapped(f"    {label}-{number:<5} ", _command(command), width)
    if content.outputs:
        said += wrapped("    outputs      ", line(", ".join(content.outputs)), width)
    for entry in content.cache:
        spares = f", spares {', '.join(entry.spares)}" if entry.spares else ""
        said += wrapped("    cache        ", f"{line(entry.path)}, kept by {line(', '.join(entry.key))}{spares}", width)
    return said


_ORIGINS = {
    Origin.COMMAND: "told by the command of `tasks.command`",
    Origin.FROZEN: "as it was frozen; the target states none",
    Origin.GIVEN: "from a file",
}


def _command(command: Command) -> str:
    further = [f"at most {command.timeout_seconds} s"]
    if command.cwd != ".":
        further.append(f"in {command.cwd}")
    if command.env:
        further.append(f"with {' '.join(f'{name}={shlex.quote(value)}' for name, value in command.env.items())}")
    if command.pass_env:
        further.append(f"passing {', '.join(command.pass_env)}")
    if command.exit_codes:
        further.append(", ".join(f"exit {code} is {result}" for code, result in command.exit_codes.items()))
    if command.at_base is not AtBase.ANY:
        further.append(f"has to {command.at_base} on the base")
    if command.graders:
        further.append(f"graders {', '.join(command.graders)}")
    if command.covers:
        further.append(f"covers {', '.join(command.covers)}")
    return line(f"{shlex.join(command.command)} ({'; '.join(further)})")


def status(tasks: list[TaskStatus], width: int) -> list[str]:
    """One block a task: how it stands, why, and what helps."""
    said: list[str] = []
    for task in tasks:
        said += wrapped(f"{line(task.task)}: ", line(task.title), width)
        said.append(f"  contract {short(task.contract)} {words(task.contract_state)}, mode {task.mode}")
        evidence = f"  evidence {words(task.evidence_state)}"
        if task.evaluation and task.subject:
            evidence += f": {words(task.result or '')} on {short(task.subject)}, evaluation {short(task.evaluation)}"
        said.append(evidence)
        for reason in task.reasons:
            said += wrapped("  - ", line(reason), width)
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
                said += wrapped("  - ", line(reason.message), width)
    freed = [row for row in found.rows if row.verdict is Verdict.UNPROTECTED]
    if freed:
        said.append(f"unprotected: {len(freed)} movement(s) without configuration, from {short(freed[0].commit)}")
    counts = {verdict: sum(row.verdict is verdict for row in found.rows) for verdict in Verdict}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none"
    verdict = "clean" if found.clean else "not clean"
    return [*said, f"{line(found.ref)}: {verdict}; movements since {short(found.enrolled)}: {listed}"]
