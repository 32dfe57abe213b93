"""An evaluation for people: on a terminal, as Markdown, and as what an agent needs for its next try."""

import shlex
import textwrap

from gitevals.model.contract import Contract
from gitevals.model.evaluation import CheckRun, Evaluation, Finding, Stored
from gitevals.model.result import Result
from gitevals.report.text import line, plain, short, words
from gitevals.status import Tries

_SIGNS = {Result.PASSED: "✓", Result.FAILED: "✗", Result.INCONCLUSIVE: "?", Result.NOT_RUN: "-"}


def terminal(stored: Stored, tries: Tries, width: int) -> list[str]:
    """The whole evaluation in lines of at most ``width`` characters where words allow it."""
    found = stored.evaluation
    name = f"task {found.task}" if found.task else "project verification"
    said = [f"{line(name)}: {words(found.result)}, try {tries.number} of {tries.count} (unsigned)"]
    said += _wrapped("  change     ", _change(found), width)
    if found.task:
        said.append(f"  contract   {short(found.contract)}")
    said.append(f"  evaluation {short(stored.id)} by {line(found.writer)}, {line(found.finished)}")
    if found.reason:
        said += _wrapped("  because    ", line(found.reason), width)
    for finding in found.findings:
        said += _wrapped(f"  {_SIGNS[finding.result]} {finding.criterion:<10} ", _finding(finding), width)
    for run in (*found.setup, *found.verification, *found.checks):
        said += _wrapped(f"    {run.id:<12} ", _run(run), width)
    return said


def _change(found: Evaluation) -> str:
    subject = found.subject
    name = line(subject.source) + " at " if subject.source else ""
    ref = line(subject.ref.removeprefix("refs/heads/"))
    return f"{name}{short(subject.head)} into {ref} at {short(subject.base)}"


def _finding(finding: Finding) -> str:
    why = f" ({line(finding.reason)})" if finding.reason else ""
    return f"{words(finding.result)}{why}: {line(finding.description)}"


def _run(run: CheckRun) -> str:
    if run.result is Result.NOT_RUN:
        return "not run"
    why = f" ({line(run.reason)})" if run.reason else ""
    return f"{words(run.result)} in {run.duration_ms / 1000:.1f} s{why}"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    indent = " " * len(label)
    return textwrap.wrap(text, max(width, len(label) + 24), initial_indent=label, subsequent_indent=indent) or [label]


def feedback(stored: Stored) -> list[str]:
    """The failed criteria, the evaluated commit, and the relevant end of each failing check's output; nothing else."""
    found = stored.evaluation
    broken = [finding for finding in found.findings if finding.result is not Result.PASSED]
    if found.result is Result.PASSED:
        return [f"commit {found.subject.head}", "all criteria passed"]
    said = [f"commit {found.subject.head}"]
    said += [f"{line(finding.criterion)} {words(finding.result)}: {line(finding.description)}" for finding in broken]
    if found.reason:
        said.append(f"because {line(found.reason)}")
    for run in (*found.setup, *found.verification, *found.checks):
        if run.result not in (Result.PASSED, Result.NOT_RUN):
            said += ["", f"{line(run.id)}: {line(run.reason)}", *_output(run)]
    return said


def _output(run: CheckRun) -> list[str]:
    said = []
    for name, stream in (("stdout", run.stdout), ("stderr", run.stderr)):
        if stream is not None and stream.excerpt.strip():
            said.append(f"--- end of {name}")
            said += plain(stream.excerpt).rstrip("\n").split("\n")
    return said


def markdown(stored: Stored, tries: Tries, contract: Contract | None) -> list[str]:
    """The evaluation as GitHub-flavoured Markdown, for a pull request or an issue."""
    found = stored.evaluation
    name = f"Task {found.task}" if found.task else "Project verification"
    said = [f"### {_cell(name)}: {words(found.result)} (try {tries.number} of {tries.count})", ""]
    said += [f"{_cell(_change(found))}, evaluation `{short(stored.id)}`, unsigned.", ""]
    if found.reason:
        said += [f"Because: {_cell(found.reason)}", ""]
    if found.findings:
        said += ["| criterion | result | checks | requirement |", "|---|---|---|---|"]
        said += [_row(finding) for finding in found.findings] + [""]
    said += ["| check | result | time | command |", "|---|---|---|---|"]
    said += [_check_row(run, contract) for run in (*found.setup, *found.verification, *found.checks)]
    return said


def _row(finding: Finding) -> str:
    checks = ", ".join(f"`{_cell(name)}`" for name in finding.checks)
    why = f" ({_cell(finding.reason)})" if finding.reason else ""
    return f"| {_cell(finding.criterion)} | {words(finding.result)}{why} | {checks} | {_cell(finding.description)} |"


def _check_row(run: CheckRun, contract: Contract | None) -> str:
    command = _command(run.id, contract)
    why = f" ({_cell(run.reason)})" if run.reason else ""
    time = "" if run.result is Result.NOT_RUN else f"{run.duration_ms / 1000:.1f} s"
    return f"| `{_cell(run.id)}` | {words(run.result)}{why} | {time} | {command} |"


def _command(name: str, contract: Contract | None) -> str:
    if contract is None:
        return ""
    numbered = {f"verify-{n}": command for n, command in enumerate(contract.verification, 1)}
    numbered |= {f"setup-{n}": command for n, command in enumerate(contract.setup, 1)}
    found = contract.checks.get(name) or numbered.get(name)
    return f"`{_cell(shlex.join(found.command)).replace('`', '')}`" if found else ""


def _cell(text: str) -> str:
    """``text`` so that it can neither end a table's cell nor start markup of its own."""
    shown = line(text).replace("\\", "\\\\").replace("|", "\\|")
    for char in "<>[]*_#`":
        shown = shown.replace(char, f"\\{char}")
    return shown
