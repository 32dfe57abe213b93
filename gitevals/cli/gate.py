"""The gate: verify, merge, audit."""

from functools import partial
from typing import Annotated

import typer

from gitevals import audit as audits
from gitevals import merge as merges
from gitevals import verify as verifying
from gitevals.cli.options import AtCommit, Branch, Into, Jobs, Json, aimed, head
from gitevals.cli.output import Progress, data, document, say, width
from gitevals.errors import BadInput
from gitevals.evaluate.change import Manner
from gitevals.model.task import check_task_id
from gitevals.report import contract as contract_report
from gitevals.report import decision as words
from gitevals.report import documents
from gitevals.report.text import line, short
from gitevals.session import session
from gitevals.targets import branch_head, branch_tip, commit_head


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (verify, merge, audit):
        app.command()(command)


def verify(
    ref: Annotated[str, typer.Option("--ref", metavar="REF", help="The ref that is to move.")] = "",
    old: Annotated[str, typer.Option("--old", metavar="COMMIT", help="Where it is (zeros: it does not exist).")] = "",
    new: Annotated[str, typer.Option("--new", metavar="COMMIT", help="Where it is to be.")] = "",
    task: Annotated[list[str] | None, typer.Option("--task", metavar="TASK", help="The task of the change.")] = None,
    branch: Branch = None,
    commit: AtCommit = None,
    into: Into = None,
    as_json: Json = False,
) -> None:
    """Say whether a movement would be allowed; runs and writes nothing.

    Exit 0 allowed, 1 refused, 3 evidence is missing, stale or inconclusive.

    Example: git evals verify --task 42 --branch task/42
    """
    by_hand = bool(ref or old or new)
    if by_hand and not (ref and old and new):
        raise BadInput("a movement needs --ref, --old and --new", hint="or name the change with --branch")
    if by_hand and (branch or commit or task or into):
        raise BadInput("--ref, --old and --new stand alone", hint="or name the change with --branch")
    with session() as here:
        if by_hand:
            decision = verifying.of_movement(here, *verifying.check_ids(here, ref, old, new))
        else:
            aim = aimed(here, into)
            tasks = [check_task_id(name) for name in task or []]
            change = head(here, aim, tasks, branch, commit)
            decision = verifying.of_change(here, aim, change, tasks, given=commit is not None)
        if as_json:
            document(documents.decision(decision))
        else:
            data(words.lines(decision))
        raise typer.Exit(decision.exit_code)


def merge(
    branch: Annotated[str, typer.Argument(metavar="BRANCH", help="The branch to merge.")],
    task: Annotated[
        list[str] | None, typer.Option("--task", metavar="TASK", help="The task it serves; may be repeated.")
    ] = None,
    into: Into = None,
    expect_head: Annotated[
        str | None, typer.Option("--expect-head", metavar="SHA", help="Refuse if the branch is not at this commit.")
    ] = None,
    ff: Annotated[
        bool, typer.Option("--ff", help="Move the target to the branch itself where that is possible.")
    ] = False,
    no_ff: Annotated[bool, typer.Option("--no-ff", help="Make a merge commit (the default).")] = False,
    squash: Annotated[bool, typer.Option("--squash", help="Make one commit of the whole change.")] = False,
    message: Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="The commit's message.")] = "",
    jobs: Jobs = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Merge a branch if its evidence allows it; runs the checks whose evidence is missing.

    Example: git evals merge task/42 --task 42
    """
    shape = merges.check_shape(ff=ff, no_ff=no_ff, squash=squash)
    with session() as here:
        aim = aimed(here, into)
        change = branch_head(here.repo, branch)
        if expect_head is not None:
            merges.expect(here, change, expect_head)
        tasks = tuple(check_task_id(name) for name in dict.fromkeys(task or []))
        wish = merges.Wish(target=aim, head=change, tasks=tasks, shape=shape, message=message)
        manner = Manner(
            jobs=jobs, observer=Progress(quiet=quiet), announce=say, refuses=partial(verifying.refusal, here)
        )
        merged = merges.merge(here, wish, manner)
        if as_json:
            document(documents.decision(merged.decision))
        elif merged.commit is not None:
            noted = words.lines(merged.decision)[1:] if merged.decision.reasons else []
            data(
                [
                    f"merged {line(branch)} into {line(aim.ref.removeprefix('refs/heads/'))}: {short(merged.commit)}",
                    *noted,
                ]
            )
        else:
            data(words.lines(merged.decision))
        raise typer.Exit(0 if merged.commit is not None else merged.decision.exit_code)


def audit(
    ref: Annotated[str | None, typer.Argument(metavar="[REF]", help="The branch; default: the target.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="COMMIT", help="Only what came after this commit.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Walk a branch since its enrolment and list every movement without evidence.

    Exit 0 clean, 1 if anything got past the gate.

    Example: git evals audit main
    """
    with session() as here:
        name, tip = branch_tip(here.repo, here.objects, ref)
        found = audits.audit(here, name, tip, commit_head(here.repo, since).commit if since else None)
        if as_json:
            document(documents.audit(found))
        else:
            data(contract_report.audit(found, width()))
        raise typer.Exit(0 if found.clean else 1)
