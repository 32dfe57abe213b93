"""Contracts: contract, freeze, reopen."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, BinaryIO

import typer

from gitevals.cli.options import Into, Json, Task, aimed
from gitevals.cli.output import data, document, say, width
from gitevals.contracts import freezing
from gitevals.contracts.previewing import preview
from gitevals.contracts.reading import BaseConfig, config_at, standing
from gitevals.contracts.spent import deliveries
from gitevals.contracts.stating import Source, Stated, content, given, renewed, restated, stated
from gitevals.errors import BadInput, EvalsError, Refused
from gitevals.evidence.reading import Evidence
from gitevals.markdown import LIMIT_BYTES
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract
from gitevals.model.facts import ContractState
from gitevals.model.task import check_task_id
from gitevals.report import contract as contract_report
from gitevals.report import documents
from gitevals.report.text import line, short
from gitevals.session import Session, session
from gitevals.targets import Target, commit_head


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    for command in (contract, freeze, reopen):
        app.command()(command)


def contract(task: Task, into: Into = None, as_json: Json = False) -> None:
    """Preview what `freeze` would capture and how it differs from what is frozen; writes nothing.

    Example: git evals contract 42
    """
    with session() as here:
        aim = aimed(here, into)
        found = preview(here.source(), aim.base, check_task_id(task))
        if as_json:
            document(documents.contract(found.content, found.title, found.standing, found.differences))
        else:
            data(contract_report.contract(found, width()))


def freeze(
    task: Task,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="REF", help="Read task and configuration there.")
    ] = None,
    task_file: Annotated[
        str | None, typer.Option("--task-file", metavar="FILE", help="Take the task's text from FILE; - is stdin.")
    ] = None,
    graders_from: Annotated[
        str | None, typer.Option("--graders-from", metavar="REF", help="Take the graders from there.")
    ] = None,
    into: Into = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who read the record.")] = "",
    as_json: Json = False,
) -> None:
    """Freeze the task's contract as the target branch states it now.

    Example: git evals freeze 42 --reason "wording agreed"
    """
    with session() as here:
        aim = aimed(here, into)
        base = aim.base if from_ is None else _base_at(here, from_)
        source = here.source()
        statement = _statement(source, base, check_task_id(task), task_file)
        graders_at = base.commit if graders_from is None else commit_head(here.repo, graders_from).commit
        frozen = renewed(source, base, statement, graders_at)
        repository = aim.base.config.repository
        store = here.store(repository)
        apart = _apart(source, aim, frozen) if base.commit != aim.base.commit or task_file is not None else ""
        if apart:
            say(f"warning: {line(apart)}")
        if graders_from is not None and not frozen.graded:
            say("note: no check of this task has graders, so there is nothing to take from elsewhere")
        before = freezing.freeze(
            store, frozen, statement.text, base=aim.tip, graders_at=graders_at, reason=reason, actor=here.actor()
        )
        stands = standing(here.evidence(), task, contracts.digest(frozen), repository)
        if as_json:
            document(documents.contract(frozen, statement.task.title, stands, ()))
        elif before.state is ContractState.FROZEN:
            data([f"contract {short(stands.digest)} of task {line(task)} is frozen already"])
        else:
            data([f"froze contract {short(stands.digest)} of task {line(task)}: {_extent(frozen)}"])


def _statement(source: Source, base: BaseConfig, task: str, task_file: str | None) -> Stated:
    if task_file is None:
        return stated(source, base, task)
    name = "standard input" if task_file == "-" else task_file
    try:
        with _standard_input() if task_file == "-" else open(task_file, "rb") as file:
            text = file.read(LIMIT_BYTES + 1)  # one too many is refused with the limit's name
    except OSError as error:
        raise BadInput(
            f'cannot read "{name}": {error.strerror or error}', hint="name a file with the task's text"
        ) from error
    return given(source, base, task, text, name=name)


def _standard_input() -> AbstractContextManager[BinaryIO]:
    if sys.stdin is None:
        raise OSError("it is closed")
    return nullcontext(sys.stdin.buffer)


def _apart(source: Source, aim: Target, frozen: Contract) -> str:
    """What to warn of: the target states something else than ``frozen``, or cannot tell."""
    try:
        there = content(aim.base.config, restated(source, aim.base, frozen), graders=frozen.graders)
    except EvalsError as error:
        return f"{aim.ref} cannot tell this contract: {error.message}"
    return "" if there == frozen else f"{aim.ref} states another contract; this one will be out of date there"


def _extent(frozen: Contract) -> str:
    graders = f", graders {', '.join(frozen.graded[:5])}" if frozen.graders else ""
    return f"{len(frozen.criteria)} criteria, {len(frozen.checks)} checks{line(graders)}"


def reopen(
    task: Task,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it may be delivered again.")],
    into: Into = None,
) -> None:
    """Let a delivered task be delivered again.

    Example: git evals reopen 42 --reason "the fix was reverted"
    """
    if not reason.strip():
        raise BadInput("a reopening needs a reason", hint="--reason TEXT")
    with session() as here:
        aim = aimed(here, into)
        evidence = here.evidence()
        delivered = _delivered(here, evidence, aim, check_task_id(task))
        if not delivered:
            raise Refused(
                f"task {task} has no delivery to {aim.ref} that still stands", hint="nothing has to be reopened"
            )
        freezing.reopen(here.store(aim.base.config.repository), task, delivered, reason=reason, actor=here.actor())
        data([f"reopened task {line(task)}, delivered by {', '.join(short(name) for name in delivered)}"])


def _delivered(here: Session, evidence: Evidence, aim: Target, task: str) -> tuple[str, ...]:
    known = evidence.freezes(task)
    found: dict[str, None] = {}
    for digest in {entry.freeze.digest for entry in known}:
        same = [entry for entry in known if entry.freeze.digest == digest]
        found.update(dict.fromkeys(deliveries(here.repo, evidence, aim.base, aim.ref, same)))
    return tuple(found)


def _base_at(here: Session, name: str) -> BaseConfig:
    base = config_at(here.repo, here.objects, commit_head(here.repo, name).commit)
    if base is None:
        raise BadInput(f"{name} has no .gitevals.yaml", hint="name a commit that has one")
    return base
