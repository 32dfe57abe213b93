"""Every task, the journal and the doctor's findings for people."""

import textwrap
from collections.abc import Sequence

from gitevals.install.finding import Finding
from gitevals.journal import Entry
from gitevals.listing import Listed
from gitevals.model.evaluation import Evaluation, Freeze, Reopen
from gitevals.report.layout import cut
from gitevals.report.text import line, short, words

_TITLE_LEAST = 8
_MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def tasks(found: Sequence[Listed], width: int) -> list[str]:
    """A table if ``width`` holds one, else a short block a task; below a row, what makes it stale or unreadable."""
    if not found:
        return ["no task is known yet"]
    header = ("task", "title", "contract", "evidence", "fresh", "tries", "episode")
    rows = [_cells(row) for row in found]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    room = width - sum(widths) + widths[1] - 2 * (len(header) - 1)
    wide = room >= min(_TITLE_LEAST, widths[1])
    said = [_row(header, widths, room)] if wide else []
    for row, cells in zip(found, rows, strict=True):
        said += [_row(cells, widths, room)] if wide else _block(cells, width)
        for why in row.status.stale_because or row.status.reasons:
            said += _wrapped("  - ", line(why), width)
    return said


def _cells(row: Listed) -> tuple[str, ...]:
    status = row.status
    stale = status.evidence_state == "stale"
    evidence = status.result if stale and status.result else status.evidence_state
    fresh = "stale" if stale else "yes" if row.pending and status.result else "-"
    count = len(row.episode.deliveries)
    episode = f"{row.episode.state} ({count})" if count > 1 else row.episode.state
    return (
        line(status.task), line(status.title), words(status.contract_state), words(evidence), fresh,
        str(status.tries), episode,
    )  # fmt: skip


def _row(cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    fitted = [cut(cell, room) if column == 1 else cell for column, cell in enumerate(cells)]
    limits = [min(length, room) if column == 1 else length for column, length in enumerate(widths)]
    return "  ".join(cell.ljust(limit) for cell, limit in zip(fitted, limits, strict=True)).rstrip()


def _block(cells: Sequence[str], width: int) -> list[str]:
    task, title, contract, evidence, fresh, tries, episode = cells
    said = [f"{task}  {cut(title, width - len(task) - 2)}".rstrip() if width - len(task) > _TITLE_LEAST else task]
    state = f"contract {contract}, evidence {evidence}{', stale' if fresh == 'stale' else ''}, tries {tries}, {episode}"
    return said + _wrapped("  ", state, width)


def event(entry: Entry, width: int) -> list[str]:
    """One entry of the journal: when, what, which task, and what it says."""
    head = f"{line(entry.time) or '(no time)'} {line(entry.event)}"
    task = f"task {line(entry.task)}" if entry.task else "project verification"
    by = f"by {line(entry.writer)}" if entry.writer else ""
    told = [part for part in (task, _told(entry), by, *_labels(entry)) if part]
    return _wrapped("", f"{head}: {', '.join(told)}", width, further="    ")


def _told(entry: Entry) -> str:
    record = entry.record
    if isinstance(record, Evaluation):
        number = f", try {entry.tries.number} of {entry.tries.count}" if entry.tries else ""
        ref = line(record.subject.ref.removeprefix("refs/heads/"))
        return f"{words(record.result)}{number}, {short(record.subject.head)} into {ref}, evaluation {short(entry.id)}"
    if isinstance(record, Freeze):
        replaced = f" in place of {', '.join(short(name) for name in record.supersedes)}" if record.supersedes else ""
        reason = f" ({line(record.reason)})" if record.reason else ""
        what = f"contract {short(record.digest)} frozen at {short(record.base)}"
        return f"{what}{replaced}{reason}, freeze {short(entry.id)}"
    if isinstance(record, Reopen):
        lifted = ", ".join(short(name) for name in record.deliveries)
        return f"lifts {lifted or 'nothing'} ({line(record.reason)}), event {short(entry.id)}"
    return f"event {short(entry.id)}"


def _labels(entry: Entry) -> list[str]:
    if not isinstance(entry.record, Evaluation):
        return []
    labels = entry.record.correlation
    named = (("run", labels.run), ("task", labels.task), ("attempt", labels.attempt), ("stage", labels.stage))
    return [f"{name}={line(value)}" for name, value in named if value]


def findings(found: Sequence[Finding], width: int) -> list[str]:
    """Each finding with its repair, then the sum."""
    said: list[str] = []
    for entry in found:
        said += _wrapped(f"{_MARKS[entry.state]} ", f"{line(entry.name)}: {line(entry.text)}", width, further=" " * 8)
        said += [f"        repair: {line(entry.repair)}"] if entry.repair else []
    problems = sum(entry.state == "problem" for entry in found)
    return [*said, f"{problems} problem{'' if problems == 1 else 's'}" if problems else "no problem"]


def _wrapped(label: str, text: str, width: int, further: str | None = None) -> list[str]:
    """``text`` in lines of ``width``; a word is never cut, so that ids can be copied."""
    indent = " " * len(label) if further is None else further
    return textwrap.wrap(
        text, max(width, len(indent) + 16), initial_indent=label, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]  # fmt: skip
