"""Contracts: contract, freeze, reopen."""

from typing import Annotated

import typer

from gitevals.cli.options import Into, Json, Task, aimed
from gitevals.cli.output import data, document, say, width
from gitevals.contracts import freezing
from gitevals.contracts.reading import BaseConfig, config_at, content, standing, task_at
from gitevals.contracts.spent import deliveries
from gitevals.errors import BadInput, Refused
from gitevals.evidence.reading import Evidence
from gitevals.model import contract as contracts
from gitevals.model.decision import ContractState
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
    """Preview what `freeze` would capture; writes nothing.

    Example: git evals contract 42
    """
    with session() as here:
        aim = aimed(here, into)
        read, _ = task_at(here.objects, aim.base, check_task_id(task))
        frozen = content(aim.base.config, read)
        stands = standing(here.evidence(), task, contracts.digest(frozen), aim.base.config.repository)
        if as_json:
            document(documents.contract(frozen, read.title, stands))
        else:
            data(contract_report.contract(frozen, read.title, stands, width()))


def freeze(
    task: Task,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="REF", help="Read task and configuration there.")
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
        read, text = task_at(here.objects, base, check_task_id(task))
        frozen = content(base.config, read)
        store = here.store(base.config.repository)
        if base.commit != aim.base.commit and contracts.digest(frozen) != _digest_there(aim, here, task):
            say(f"warning: {aim.ref} states another contract; this one will be out of date there")
        before = freezing.freeze(store, frozen, text, base=aim.tip, reason=reason, actor=here.actor())
        stands = standing(here.evidence(), task, contracts.digest(frozen), base.config.repository)
        if as_json:
            document(documents.contract(frozen, read.title, stands))
        elif before.state is ContractState.FROZEN:
            data([f"contract {short(stands.digest)} of task {line(task)} is frozen already"])
        else:
            data([f"froze contract {short(stands.digest)} of task {line(task)}: {len(frozen.criteria)} criteria"])


def _digest_there(aim: Target, here: Session, task: str) -> str:
    try:
        return contracts.digest(content(aim.base.config, task_at(here.objects, aim.base, task)[0]))
    except BadInput:
        return ""


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
