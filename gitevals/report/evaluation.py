"""An evaluation for people: on a terminal, as Markdown, and as what an agent needs for its next try."""

import shlex
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from gitevals.model.contract import Contract
from gitevals.model.evaluation import CheckRun, Evaluation, Finding, Stored
from gitevals.model.result import Result
from gitevals.report.layout import cut, wrapped
from gitevals.report.summary import LIMIT, MEANING, Summary, summary
from gitevals.report.text import line, plain, short, words
from gitevals.status import Tries

_FIRST = 30  # rows of many that are shown although they did not pass
_CELLS_LIMIT = 24_000  # characters of a table's texts; a comment on GitHub holds 65,536
_SIGNS = {Result.PASSED: "✓", Result.FAILED: "✗", Result.INCONCLUSIVE: "?", Result.NOT_RUN: "-"}


def terminal(
    stored: Stored, tries: Tries, width: int, contract: Contract | None = None, *, limit: int = LIMIT
) -> list[str]:
    """The evaluation in lines of at most ``width`` characters where words allow it.

    Of more than ``limit`` criteria or commands, those that passed are only counted.
    """
    found = stored.evaluation
    name = f"task {found.task}" if found.task else "project verification"
    said = [f"{line(name)}: {words(found.result)}, try {tries.number} of {tries.count} (unsigned)"]
    said += wrapped("  change     ", _change(found), width)
    if found.task:
        said.append(f"  contract   {short(found.contract)}")
    said.append(f"  evaluation {short(stored.id)} by {line(found.writer)}, {line(found.finished)}")
    if found.reason:
        said += wrapped("  because    ", line(found.reason), width)
    for note in found.notes:
        said += wrapped("  note       ", line(note), width)
    findings = _bounded(found.findings, limit)
    for finding in findings.shown:
        label = f"  {_SIGNS[finding.result]} {finding.criterion:<10} "
        said += wrapped(label, _finding(finding), width, findings.lines)
    said += _elided(findings, "criteria", stored)
    runs = _bounded((*found.setup, *found.verification, *found.checks), limit)
    for run in runs.shown:
        said += wrapped(f"    {run.id:<12} ", _run(run), width, runs.lines)
    said += _elided(runs, "commands", stored)
    return said + _summary(summary(found, contract), width)


T = TypeVar("T", Finding, CheckRun)


class _Bounded(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The rows to show, each on at most so many ``lines`` (None: all); how many others passed, and how many did not."""

    shown: list[T]
    lines: int | None = None
    passed: int = 0
    others: int = 0


def _bounded(rows: Sequence[T], limit: int) -> _Bounded[T]:
    """``rows`` as they are or, where they are more than ``limit``, the first that did not pass, shortly."""
    if len(rows) <= limit:
        return _Bounded(shown=list(rows))
    told = [row for row in rows if row.result is not Result.PASSED]
    passed = len(rows) - len(told)
    return _Bounded(shown=told[:_FIRST], lines=2, passed=passed, others=len(told[_FIRST:]))


def _elided(rows: _Bounded[T], what: str, stored: Stored) -> list[str]:
    hint = f"all: `git evals show {short(stored.id)}`"
    counts = ((rows.others, "did not pass"), (rows.passed, "passed"))
    return [f"    … and {count} {what} that {how}; {hint}" for count, how in counts if count]


def _summary(found: Summary, width: int) -> list[str]:
    said: list[str] = []
    counts = {Result(name): count for name, count in found.tally.items()}
    if any(counts.values()):
        listed = ", ".join(f"{count} {words(result)}" for result, count in counts.items())
        said += wrapped("  criteria   ", listed, width)
        for result, count in counts.items():
            if count and result is not Result.PASSED:
                said += wrapped(f"    {words(result):<12} ", MEANING[result], width)
    if found.verification is not None:
        said.append(f"  verified   {words(found.verification)}")
    for feature in found.features:
        text = f"{line(feature.name)}: {words(feature.result)} ({line(', '.join(feature.checks))})"
        said += wrapped(f"  {_SIGNS[feature.result]} feature    ", text, width)
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
    base = f"; at base {words(run.at_base.result)}" if run.at_base else ""
    hidden = sum(stream.redacted for stream in (run.stdout, run.stderr) if stream)
    secrets = f"; {hidden} secret(s) redacted" if hidden else ""
    return f"{words(run.result)} in {run.duration_ms / 1000:.1f} s{why}{base}{secrets}"


def feedback(stored: Stored) -> list[str]:
    """The failed criteria, the evaluated commit, and the relevant end of each failing check's output; nothing else."""
    found = stored.evaluation
    broken = [finding for finding in found.findings if finding.result is not Result.PASSED]
    if found.result is Result.PASSED:
        return [f"commit {found.subject.head}", "all criteria passed"]
    said = [f"commit {found.subject.head}"]
    broken_runs = [run for run in (*found.setup, *found.verification, *found.checks)
                   if run.result not in (Result.PASSED, Result.NOT_RUN)]  # fmt: skip
    for finding in broken:
        said.append(f"{line(finding.criterion)} {words(finding.result)}: {line(finding.description)}")
        if finding.reason and not {run.id for run in broken_runs} & set(finding.checks):
            said.append(f"  {line(finding.reason)}")
    if found.reason:
        said.append(f"because {line(found.reason)}")
    for position, run in enumerate(broken_runs):
        said += ["", f"{line(run.id)}: {line(run.reason)}", *(_output(run) if position < LIMIT else [])]
    return said


def _output(run: CheckRun) -> list[str]:
    said = []
    for name, stream in (("stdout", run.stdout), ("stderr", run.stderr)):
        if stream is not None and stream.excerpt.strip():
            said.append(f"--- end of {name}")
            said += plain(stream.excerpt).rstrip("\n").split("\n")
    return said


def markdown(stored: Stored, tries: Tries, contract: Contract | None) -> list[str]:
    """The evaluation as GitHub-flavoured Markdown, for a pull request or an issue; it fits in a comment there."""
    found = stored.evaluation
    name = f"Task {found.task}" if found.task else "Project verification"
    said = [f"### {_cell(name)}: {words(found.result)} (try {tries.number} of {tries.count})", ""]
    said += [f"{_cell(_change(found))}, evaluation `{short(stored.id)}`, unsigned.", ""]
    if found.reason:
        said += [f"Because: {_cell(found.reason)}", ""]
    said += [f"- Note: {_cell(note)}" for note in found.notes] + ([""] if found.notes else [])
    said += _markdown_summary(summary(found, contract))
    room = max(60, min(500, _CELLS_LIMIT // max(1, len(found.findings))))
    head = ["| criterion | result | checks | requirement |", "|---|---|---|---|"]
    said += _table("criteria", head, [(row.result, _row(row, room)) for row in found.findings])
    runs = (*found.setup, *found.verification, *found.checks)
    room = max(60, min(500, _CELLS_LIMIT // max(1, len(runs))))
    head = ["| check | result | time | command |", "|---|---|---|---|"]
    return said + _table("commands", head, [(run.result, _check_row(run, contract, room)) for run in runs])


def _table(what: str, head: list[str], rows: Sequence[tuple[Result, str]]) -> list[str]:
    """One table, or, of many rows, those that did not pass and the others folded away."""
    if len(rows) <= LIMIT:
        return [*head, *(row for _, row in rows), ""] if rows else []
    shown = [row for result, row in rows if result is not Result.PASSED]
    folded = [row for result, row in rows if result is Result.PASSED]
    said = [*head, *shown, ""] if shown else []
    if folded:
        said += [
            f"<details><summary>{len(folded)} {what} that passed</summary>",
            "",
            *head,
            *folded,
            "",
            "</details>",
            "",
        ]
    return said


def _markdown_summary(found: Summary) -> list[str]:
    said = []
    if any(found.tally.values()):
        said += ["| result | criteria | meaning |", "|---|---|---|"]
        said += [f"| {words(name)} | {count} | {MEANING[Result(name)]} |" for name, count in found.tally.items()] + [""]
    if found.verification is not None:
        said += [f"Project verification: {words(found.verification)}.", ""]
    if found.features:
        said += ["| feature | result | checks |", "|---|---|---|"]
        said += [
            f"| {_cell(feature.name)} | {words(feature.result)} | {_cell(', '.join(feature.checks))} |"
            for feature in found.features
        ] + [""]
    return said


def _row(finding: Finding, room: int) -> str:
    checks = ", ".join(f"`{_cell(name)}`" for name in finding.checks)
    why = f" ({_cell(cut(finding.reason, room))})" if finding.reason else ""
    told = _cell(cut(finding.description, room))
    return f"| {_cell(finding.criterion)} | {words(finding.result)}{why} | {checks} | {told} |"


def _check_row(run: CheckRun, contract: Contract | None, room: int) -> str:
    command = _command(run.id, contract, room)
    why = f" ({_cell(cut(run.reason, room))})" if run.reason else ""
    why += f", at base {words(run.at_base.result)}" if run.at_base else ""
    time = "" if run.result is Result.NOT_RUN else f"{run.duration_ms / 1000:.1f} s"
    return f"| `{_cell(run.id)}` | {words(run.result)}{why} | {time} | {command} |"


def _command(name: str, contract: Contract | None, room: int) -> str:
    if contract is None:
        return ""
    numbered = {f"verify-{n}": command for n, command in enumerate(contract.verification, 1)}
    numbered |= {f"setup-{n}": command for n, command in enumerate(contract.setup, 1)}
    found = contract.checks.get(name) or numbered.get(name)
    return f"`{_cell(cut(shlex.join(found.command), room)).replace('`', '')}`" if found else ""


def _cell(text: str) -> str:
    """``text`` so that it can neither end a table's cell nor start markup of its own."""
    shown = line(text).replace("\\", "\\\\").replace("|", "\\|")
    for char in "<>[]*_#`":
        shown = shown.replace(char, f"\\{char}")
    return shown
