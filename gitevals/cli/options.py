"""What several commands share: their options, and what these name."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gitevals.cli.output import say
from gitevals.errors import BadInput
from gitevals.evidence.reading import Evidence
from gitevals.git import refs
from gitevals.model.record import Fault as Unread
from gitevals.report.text import line, short
from gitevals.session import Session
from gitevals.targets import HEADS, Head, Target, branch_head, commit_head, target

Task = Annotated[str, typer.Argument(metavar="TASK", help="The task's id.")]


Into = Annotated[
    str | None, typer.Option("--into", metavar="BRANCH", help="The target branch; default: the protected one.")
]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


Branch = Annotated[str | None, typer.Option("--branch", metavar="BRANCH", help="The branch that holds the change.")]


AtCommit = Annotated[
    str | None, typer.Option("--commit", metavar="COMMIT", help="The commit that is, or holds, the change.")
]


Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, max=64, help="Run up to N checks side by side.")]


def head(here: Session, aim: Target, tasks: Sequence[str], branch: str | None, commit: str | None) -> Head:
    """The change that was named: a branch, a commit, the task's own branch, or the branch that is checked out."""
    if branch is not None and commit is not None:
        raise BadInput("--branch and --commit exclude each other", hint="name one of them")
    if commit is not None:
        return commit_head(here.repo, commit)
    if branch is not None:
        return branch_head(here.repo, branch)
    current = here.repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128)).removeprefix(HEADS)
    named = aim.base.config.branch_of(tasks[0]) if tasks else ""
    if named and refs.values(here.repo, HEADS + named):
        return branch_head(here.repo, named)
    if current and HEADS + current != aim.ref:
        return branch_head(here.repo, current)
    raise BadInput(
        f'there is no branch "{named}"' if named else "no change is named", hint="name it with --branch or --commit"
    )


def report_faults(evidence: Evidence) -> None:
    """Say which stored lines were skipped."""
    for fault in evidence.faults:
        what = "all" if fault.fault is Unread.TOO_LARGE else "a line"
        say(f"warning: {what} of {line(fault.ledger)} on {short(fault.place)} is skipped: {line(fault.fault)}")
    for ledger, count in evidence.untold.items():
        say(f"warning: {count} more of {line(ledger)} are skipped")


def aimed(here: Session, into: str | None) -> Target:
    """The target branch, with what is worth saying about it said."""
    aim = target(here.repo, here.objects, into)
    for notice in aim.notices:
        say(f"note: {line(notice)}")
    if aim.base.config.unknown:
        say(f"warning: unknown keys in .gitevals.yaml: {line(', '.join(aim.base.config.unknown))}")
    return aim
