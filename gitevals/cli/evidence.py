"""Evidence: run, status, report, show."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from gitevals.cli.options import AtCommit, Branch, Into, Jobs, Json, Task, aimed, head, report_faults
from gitevals.cli.output import Progress, data, document, say, width
from gitevals.errors import BadInput, EvalsError
from gitevals.evaluate.change import Change, Manner
from gitevals.evaluate.examine import examine, verification_alone
from gitevals.evaluate.run import run
from gitevals.evidence.reading import CONTENT_LIMIT_BYTES, Evidence
from gitevals.git import history, refs
from gitevals.git.objects import read
from gitevals.listing import every_task
from gitevals.model.contract import Contract
from gitevals.model.evaluation import Correlation, Stored
from gitevals.model.result import Result, worst
from gitevals.model.task import check_task_id
from gitevals.report import contract as contract_report
from gitevals.report import documents
from gitevals.report import evaluation as evaluation_report
from gitevals.report.summary import LIMIT
from gitevals.report.text import line, plain, short
from gitevals.session import Session, session
from gitevals.status import TaskStatus, newest, of_task, tries, tries_of, unreadable
from gitevals.targets import HEADS, Target, commit_head
from gitevals.verify import refusal

_EXITS = {Result.PASSED: 0, Result.FAILED: 1, Result.INCONCLUSIVE: 3, Result.NOT_RUN: 3}


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (run_, status, report, show):
        app.command(name=command.__name__.rstrip("_"))(command)


def run_(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK...", help="The tasks to evaluate.")] = None,
    branch: Branch = None,
    commit: AtCommit = None,
    into: Into = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Evaluate the change as it is, not merged; opens no gate.")
    ] = False,
    verify_only: Annotated[
        bool, typer.Option("--verify-only", help="Run the project's verification and name no task.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Run again although passing evidence is there.")] = False,
    jobs: Jobs = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch checkout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    run_label: Annotated[
        str, typer.Option("--run", metavar="ID", help="An orchestrator's label, stored as it is.")
    ] = "",
    attempt: Annotated[str, typer.Option("--attempt", metavar="ID", help="Likewise.")] = "",
    stage: Annotated[str, typer.Option("--stage", metavar="NAME", help="Likewise.")] = "",
    as_json: Json = False,
) -> None:
    """Run the checks of tasks on exactly what would be merged, and store what was found.

    Exit 0 passed, 1 failed, 3 inconclusive.

    Example: git evals run 42 --branch task/42
    """
    named = [check_task_id(task) for task in dict.fromkeys(tasks or [])]
    if bool(named) == verify_only:
        raise BadInput("name a task, or say --verify-only", hint="git evals run TASK")
    with session() as here:
        aim = aimed(here, into)
        examined = [verification_alone(aim)] if verify_only else [examine(here, aim, task) for task in named]
        change = Change(target=aim, head=head(here, aim, named, branch, commit), alone=alone, given=commit is not None)
        manner = Manner(
            force=force, keep=keep, jobs=jobs, observer=Progress(quiet=quiet), announce=say,
            refuses=partial(refusal, here),
            correlation=Correlation(run=run_label, attempt=attempt, stage=stage),
        )  # fmt: skip
        _print_evaluations(here, run(here, change, examined, manner), as_json=as_json)


def _print_evaluations(here: Session, found: Sequence[Stored], *, as_json: bool) -> None:
    evidence = here.evidence()
    _print(evidence, found, as_json=as_json)
    report_faults(evidence)
    raise typer.Exit(_EXITS[worst([stored.evaluation.result for stored in found])])


def _print(evidence: Evidence, found: Sequence[Stored], *, as_json: bool, limit: int = LIMIT) -> None:
    """Print evaluations: one as a document of its own, several as an array."""
    numbers = tries_of(evidence, found)
    shown = [(stored, numbers[stored.id], _contract(evidence, stored)) for stored in found]
    if as_json:
        views = [documents.evaluation(*entry) for entry in shown]
        document(views[0] if len(views) == 1 else views)
    else:
        data(row for stored, number, contract in shown
             for row in evaluation_report.terminal(stored, number, width(), contract, limit=limit))  # fmt: skip


def _contract(evidence: Evidence, stored: Stored) -> Contract | None:
    return evidence.contract(stored.evaluation.task, stored.evaluation.contract)


def status(
    subject: Annotated[
        str | None, typer.Argument(metavar="[TASK | COMMIT]", help="One task, or what lies on a commit.")
    ] = None,
    into: Into = None,
    as_json: Json = False,
) -> None:
    """Show how a task stands: its contract, its newest evidence, and what is stale about it.

    Example: git evals status 42
    """
    with session() as here:
        aim = aimed(here, into)
        evidence = here.evidence()
        found = _standings(here, aim, evidence, subject)
        if as_json:
            document(documents.status(found))
        else:
            data(contract_report.status(found, width()))
        evidence.evaluations([row.subject for row in found if row.subject])
        report_faults(evidence)


def _standings(here: Session, aim: Target, evidence: Evidence, subject: str | None) -> list[TaskStatus]:
    """Every known task at a glance; one task, or those evaluated on a commit, as the gate sees them."""
    if subject is None:
        known = evidence.tasks()
        return [row.status for row in every_task(here, aim, evidence) if row.status.task in known]
    if subject in evidence.tasks() or not history.commit_of(here.repo, subject):
        return [of_task(here, aim, check_task_id(subject))]
    named = sorted({stored.evaluation.task for stored in _on(here, evidence, subject)} - {""})
    return [_standing(here, aim, task) for task in named]


def _standing(here: Session, aim: Target, task: str) -> TaskStatus:
    """How one task of several stands; one that cannot be read is shown as such and hides none."""
    try:
        return of_task(here, aim, check_task_id(task))
    except EvalsError as error:
        return unreadable(aim, task, error.message)


def _on(here: Session, evidence: Evidence, name: str) -> list[Stored]:
    commit = commit_head(here.repo, name).commit
    return evidence.evaluations([commit, history.tree_of(here.repo, commit)])


def report(
    task: Task,
    evaluation: Annotated[
        str | None, typer.Option("--evaluation", metavar="ID", help="This one, not the newest.")
    ] = None,
    feedback: Annotated[bool, typer.Option("--feedback", help="Only what an agent needs for its next try.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    into: Into = None,
    as_json: Json = False,
) -> None:
    """Show the newest evaluation of a task.

    Example: git evals report 42 --feedback
    """
    if feedback + markdown + as_json > 1:
        raise BadInput("--feedback, --markdown and --json exclude each other", hint="name one of them")
    with session() as here:
        evidence = here.evidence()
        stored = _chosen(here, evidence, check_task_id(task), evaluation, into)
        if feedback:
            data(evaluation_report.feedback(stored))
        elif markdown:
            data(evaluation_report.markdown(stored, tries(evidence, stored), _contract(evidence, stored)))
        else:
            _print(evidence, [stored], as_json=as_json)
        report_faults(evidence)


def _chosen(here: Session, evidence: Evidence, task: str, wanted: str | None, into: str | None) -> Stored:
    if wanted is not None:
        stored = _by_id(evidence, wanted)
        if stored.evaluation.task != task:
            raise BadInput(
                f"evaluation {short(stored.id)} is of task {stored.evaluation.task}", hint="name its own task"
            )
        return stored
    branch = aimed(here, into).base.config.branch_of(task)
    heads = list(refs.values(here.repo, HEADS + branch).values()) if branch else []
    found = newest(evidence, task, heads)
    if found is None:
        raise BadInput(f"there is no evaluation of task {task}", hint=f"git evals run {task}")
    return found


def _by_id(evidence: Evidence, prefix: str) -> Stored:
    found = [stored for stored in evidence.every_evaluation() if prefix and stored.id.startswith(prefix.lower())]
    if len(found) != 1:
        what = f"{len(found)} records have" if found else "no record has"
        raise BadInput(f'{what} an id that starts with "{prefix}"', hint="`git evals show COMMIT` lists ids")
    return found[0]


def show(
    subject: Annotated[str, typer.Argument(metavar="COMMIT | ID", help="A commit, or the id of a record.")],
    as_json: Json = False,
) -> None:
    """Show all records on a commit, or one record with what its checks printed.

    Example: git evals show HEAD
    """
    with session() as here:
        evidence = here.evidence()
        if history.commit_of(here.repo, subject) is None:
            stored = _by_id(evidence, subject)
            _print(evidence, [stored], as_json=as_json, limit=sys.maxsize)
            if not as_json:
                data(_logs(here, stored))
            report_faults(evidence)
            return
        found = _on(here, evidence, subject)
        _print(evidence, found, as_json=as_json)
        if not found and not as_json:
            data([f"no record on {line(subject)}"])
        report_faults(evidence)


def _logs(here: Session, stored: Stored) -> list[str]:
    said = []
    for ran in (*stored.evaluation.setup, *stored.evaluation.verification, *stored.evaluation.checks):
        for name, stream in (("stdout", ran.stdout), ("stderr", ran.stderr)):
            if stream is not None:
                kept = read(here.objects, stream.blob, limit_bytes=CONTENT_LIMIT_BYTES) if stream.blob else None
                said.append(f"--- {line(ran.id)} {name}, {stream.bytes} bytes{', cut' if stream.truncated else ''}")
                text = (
                    kept.body.decode("utf-8", "surrogateescape")
                    if kept and len(kept.body) <= CONTENT_LIMIT_BYTES
                    else f"{stream.excerpt}\n(the log was pruned)"
                )
                said += plain(text).rstrip("\n").split("\n")
    return said
