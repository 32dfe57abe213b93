"""Looking round: tasks, log, doctor."""

from typing import Annotated

import typer

from gitevals.cli.options import Into, Json, aimed, report_faults
from gitevals.cli.output import data, document, document_line, pause, say, width
from gitevals.evidence.reading import Evidence
from gitevals.install import doctor as doctors
from gitevals.install.finding import State
from gitevals.journal import Journal, follow, journal
from gitevals.listing import every_task, task_ids
from gitevals.model.task import check_task_id
from gitevals.report import documents
from gitevals.report import overview as report
from gitevals.report.text import line
from gitevals.session import session


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (tasks, log, doctor):
        app.command()(command)


def tasks(into: Into = None, as_json: Json = False) -> None:
    """List every task: its contract, its newest evidence and how fresh that is, its tries, its episode.

    Example: git evals tasks
    """
    with session() as here:
        aim = aimed(here, into)
        evidence = here.evidence()
        found = every_task(here, aim, evidence)
        if as_json:
            document(documents.tasks(found))
        else:
            data(report.tasks(found, width()))
        misnamed = task_ids(here.repo, aim.base).misnamed
        if misnamed:
            say(f"note: no task ids, so no tasks: {line(', '.join(misnamed[:5]))}{', …' if len(misnamed) > 5 else ''}")
        report_faults(evidence)


def log(
    task: Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only what concerns this task.")] = None,
    follow_: Annotated[bool, typer.Option("--follow", help="Go on with what is new, until interrupted.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; with --follow, one a line for each entry.")
    ] = False,
) -> None:
    """Show the journal: contracts, evaluations and delivery events, causes before their effects.

    Example: git evals log --task 42
    """
    wanted = check_task_id(task) if task is not None else None
    with session() as here:
        if follow_:
            for found, evidence in follow(here, pause):
                _print_entries(found, evidence, wanted, as_lines=as_json)
            return
        evidence = here.evidence()
        found = journal(here, evidence)
        if as_json:
            document(documents.journal([entry for entry in found.entries if wanted in (None, entry.task)]))
            _say_beside(found, evidence)
        else:
            _print_entries(found, evidence, wanted, as_lines=False)


def _print_entries(found: Journal, evidence: Evidence, wanted: str | None, *, as_lines: bool) -> None:
    entries = [entry for entry in found.entries if wanted in (None, entry.task)]
    if as_lines:
        for entry in entries:
            document_line(documents.event(entry))
    else:
        data(row for entry in entries for row in report.event(entry, width()))
    _say_beside(found, evidence)


def _say_beside(found: Journal, evidence: Evidence) -> None:
    for notice in found.notices:
        say(f"warning: {line(notice)}")
    report_faults(evidence)


def doctor(
    clean: Annotated[bool, typer.Option("--clean", help="Remove what killed commands left behind.")] = False,
    as_json: Json = False,
) -> None:
    """Look whether the gate stands and what lies about; each finding comes with its repair.

    Exit 0 if there is no problem, else 1.

    Example: git evals doctor
    """
    with session() as here:
        found = doctors.examine(here, clean=clean)
        if as_json:
            document(documents.doctor(found))
        else:
            data(report.findings(found, width()))
        if any(entry.state is State.PROBLEM for entry in found):
            raise typer.Exit(1)
