"""What a base states of a task: its text, its bindings, and the contract that these and the configuration make."""

import hashlib
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from gitevals import cache
from gitevals.config import TASK_FIELD, Config
from gitevals.contracts.reading import READING, BaseConfig, frozen_content, live_in
from gitevals.errors import BadInput, CannotTell, EvalsError, Refused
from gitevals.evidence.reading import Evidence
from gitevals.git import trees
from gitevals.git.objects import GitObject, Objects
from gitevals.git.repo import Repo
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract, Criterion

if TYPE_CHECKING:
    from gitevals.tasks import Task

Ask = Callable[[tuple[str, ...]], bytes]
# More than any text, or any file of bindings, may have.
TEXT_LIMIT_BYTES = 256 * 1024
Bindings = dict[str, tuple[str, ...]]


class Origin(StrEnum):
    """Where the text of a task came from."""

    BASE = "base"
    COMMAND = "command"
    FROZEN = "frozen"
    GIVEN = "given"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where statements are looked up; ``ask`` runs an operator's command, None takes its text as it was frozen."""

    repo: Repo
    objects: Objects
    evidence: Evidence
    ask: Ask | None = None


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """A task as somebody states it; ``bindings`` are those of the file at ``bindings_path``, None without one."""

    task: "Task"
    text: bytes
    origin: Origin
    bindings: Bindings | None = None


def stated(source: Source, base: BaseConfig, task: str) -> Stated:
    """The task as the base states it, else as the operator's command tells it, else as it was frozen."""
    text, bindings = _files(source, base, task)
    return _stated(source, base, task, text, _bindings_in(base.config, task, bindings))


def restated(source: Source, base: BaseConfig, frozen: Contract) -> Stated:
    """The task of ``frozen`` as the base states it or the operator's command tells it, else as ``frozen`` has it."""
    text, found = _files(source, base, frozen.task)
    bindings = _bindings_in(base.config, frozen.task, found)
    told = _told(source, base, frozen.task, text, bindings)
    return told or _as_frozen(source.evidence, frozen, bindings)


def given(source: Source, base: BaseConfig, task: str, text: bytes, *, name: str) -> Stated:
    """The task as the bytes ``text`` of the file ``name`` state it, bound as the base says."""
    from gitevals.tasks import parse

    _, bindings = _files(source, base, task)
    return Stated(
        task=parse(task, text, headings=base.config.headings, name=name), text=text, origin=Origin.GIVEN,
        bindings=_bindings_in(base.config, task, bindings),
    )  # fmt: skip


def text_path(config: Config, task: str) -> str | None:
    """Where the base keeps the text of ``task``, if it keeps texts."""
    return config.task_path and config.task_path.replace(TASK_FIELD, task)


def bindings_path(config: Config, task: str) -> str | None:
    """Where the base keeps the bindings of ``task`` that do not stand in its configuration."""
    return config.bindings_path and config.bindings_path.replace(TASK_FIELD, task)


def _files(source: Source, base: BaseConfig, task: str) -> tuple[GitObject | None, GitObject | None]:
    """The blobs of the text and of the bindings of ``task`` in the base."""
    paths = (text_path(base.config, task), bindings_path(base.config, task))
    wanted = [f"{base.commit}:{path}" for path in paths if path]
    found = iter(source.objects.read_many(wanted, limit_bytes=TEXT_LIMIT_BYTES) if wanted else ())
    text, bindings = (next(found) if path else None for path in paths)
    lacking = [path for path, blob in zip(paths, (text, bindings), strict=True) if path and blob is None]
    trees.require_absent(source.objects, base.commit, lacking)
    return _blob(text), _blob(bindings)


def _blob(found: GitObject | None) -> GitObject | None:
    return found if found is not None and found.kind == "blob" else None


def _bindings_in(config: Config, task: str, found: GitObject | None) -> Bindings | None:
    if found is None:
        return None
    from gitevals.configfile import parse_bindings  # a hook finds the content derived

    return parse_bindings(found.body, config, name=bindings_path(config, task) or "")


def _stated(source: Source, base: BaseConfig, task: str, text: GitObject | None, bindings: Bindings | None) -> Stated:
    told = _told(source, base, task, text, bindings)
    if told is not None:
        return told
    frozen = frozen_content(source.evidence, task, base.config.repository)
    if frozen is None:
        raise _untold(source.evidence, base, task)
    return _as_frozen(source.evidence, frozen, bindings)


def _told(
    source: Source, base: BaseConfig, task: str, text: GitObject | None, bindings: Bindings | None
) -> Stated | None:
    """The task by its text in the base, else by what the command tells; None where neither is to be had."""
    from gitevals.tasks import parse  # a hook finds the content derived

    headings = base.config.headings
    if text is not None:
        read = parse(task, text.body, headings=headings, name=text_path(base.config, task) or "")
        return Stated(task=read, text=text.body, origin=Origin.BASE, bindings=bindings)
    if base.config.task_command and source.ask is not None:
        command = tuple(part.replace(TASK_FIELD, task) for part in base.config.task_command)
        told = source.ask(command)
        read = parse(task, told, headings=headings, name=f"the text of task {task}")
        return Stated(task=read, text=told, origin=Origin.COMMAND, bindings=bindings)
    return None


def _as_frozen(evidence: Evidence, frozen: Contract, bindings: Bindings | None) -> Stated:
    from gitevals.tasks import Requirement, Task

    text = evidence.text(frozen.task, contracts.digest(frozen)) or b""
    criteria = tuple(Requirement(id=entry.id, text=entry.description, line=0) for entry in frozen.criteria)
    task = Task(id=frozen.task, title=_title_of(frozen.task, text), criteria=criteria)
    return Stated(task=task, text=text, origin=Origin.FROZEN, bindings=bindings)


def _title_of(task: str, text: bytes) -> str:
    from gitevals.tasks import title_of

    try:
        return title_of(task, text)
    except BadInput:  # what binds was read; its text is for people
        return task


def _untold(evidence: Evidence, base: BaseConfig, task: str) -> EvalsError:
    """Why a task without a text has no content either: nothing is frozen, or nothing that could stand for it."""
    digests = sorted({entry.freeze.digest for entry in live_in(evidence, task, base.config.repository)})
    named = ", ".join(digest[:12] for digest in digests)
    if len(digests) > 1:
        return Refused(
            f"several different contracts of task {task} are frozen: {named}",
            hint=f"git evals freeze {task}{'' if base.config.task_command else ' --task-file FILE'}",
        )
    if digests:
        return CannotTell(
            f"contract {named} of task {task} is frozen, but its content is not here",
            hint="fetch the ledger that holds it, or freeze the task again",
        )
    return _unknown(base, task)


def _unknown(base: BaseConfig, task: str) -> BadInput:
    path = text_path(base.config, task)
    if path:
        return BadInput(
            f'unknown task "{task}": there is no {path} in {base.commit[:12]}',
            hint=f"commit {path} to the target branch first",
        )
    if base.config.task_command:
        return BadInput(f"task {task} was never frozen", hint=f"git evals freeze {task}")
    return BadInput(
        f"no place for the text of task {task} is configured",
        hint='add `tasks: {path: "tasks/{task}.md"}` to .gitevals.yaml, or give it with `freeze --task-file FILE`',
    )


def content(config: Config, statement: Stated, *, graders: str = "") -> Contract:
    """What freezing the task under ``config`` captures; ``graders`` is the tree of the graders that it is bound to."""
    task = statement.task
    bound = {requirement.id: _bound(config, statement, requirement.id) for requirement in task.criteria}
    used = {name for names in bound.values() for name in names}
    return Contract(
        schema=contracts.SCHEMA,
        task=task.id,
        mode=config.mode,
        criteria=tuple(
            Criterion(id=requirement.id, description=requirement.text, checks=bound[requirement.id])
            for requirement in task.criteria
        ),
        checks={name: command for name, command in config.checks.items() if name in used},
        verification=config.verify,
        setup=config.setup,
        outputs=config.outputs,
        cache=config.cache,
        graders=graders,
    )


def _bound(config: Config, statement: Stated, criterion: str) -> tuple[str, ...]:
    task = statement.task
    own = config.bindings.get(task.id, statement.bindings)
    if own is not None:
        known = {requirement.id for requirement in task.criteria} | {"*"}
        for name in own:
            if name not in known:
                raise BadInput(
                    f'bindings of task {task.id} name "{name}", which is none of its criteria',
                    hint=f"its criteria are {', '.join(sorted(known - {'*'}))}",
                )
    entry = own if own is not None else config.bindings.get("*", {})
    return entry.get(criterion, entry.get("*", ()))


def expected(source: Source, base: BaseConfig, statement: Stated) -> Contract:
    """The contract that evidence must be of: what the base states, with the graders that were frozen, if any were."""
    return _with_graders(source, base, content(base.config, statement))


def renewed(source: Source, base: BaseConfig, statement: Stated, graders_at: str) -> Contract:
    """What freezing captures now; graders are those of the commit ``graders_at``."""
    from gitevals.contracts import graders

    bare = content(base.config, statement)
    return msgspec.structs.replace(bare, graders=graders.tree_of(source.objects, graders_at, bare.graded))


def _with_graders(source: Source, base: BaseConfig, bare: Contract) -> Contract:
    if not bare.graded:
        return bare
    frozen = frozen_content(source.evidence, bare.task, base.config.repository)
    if frozen is not None and frozen.graded == bare.graded:
        return msgspec.structs.replace(bare, graders=frozen.graders)
    from gitevals.contracts import graders  # most contracts need none

    return msgspec.structs.replace(bare, graders=graders.tree_of(source.objects, base.commit, bare.graded))


def digest_at(source: Source, base: BaseConfig, task: str, *, among: Collection[str] = ()) -> str:
    """The digest of `expected`; what a pair of configuration and text makes is derived once.

    A digest ``among`` those given is taken instead if it differs in nothing but its graders, or if the base has no text
    that it could differ from.
    """
    text, bindings = _files(source, base, task)
    for digest in dict.fromkeys(among):
        known = source.evidence.contract(task, digest)
        if known is not None and _may_be(source, base, known, text, bindings):
            return digest
    return contracts.digest(_with_graders(source, base, _bare(source, base, task, text, bindings)))


def _may_be(
    source: Source, base: BaseConfig, known: Contract, text: GitObject | None, bindings: GitObject | None
) -> bool:
    """Whether ``known`` is what the base states, but for graders; where the base has no text, with its own criteria."""
    if text is not None:
        bare = _bare(source, base, known.task, text, bindings)
    else:
        bare = content(base.config, _as_frozen(source.evidence, known, _bindings_in(base.config, known.task, bindings)))
    return msgspec.structs.replace(known, graders="") == bare


def _bare(source: Source, base: BaseConfig, task: str, text: GitObject | None, bindings: GitObject | None) -> Contract:
    """What the base states of ``task``, without graders; kept where it stands in the base itself."""
    key = _key(base.blob, text.id, bindings.id if bindings else "", task) if text else ""
    kept = cache.get(source.repo.common_dir, "content", key) if key else None
    known = _decoded(kept) if kept is not None else None
    if known is not None:
        return known
    bare = content(base.config, _stated(source, base, task, text, _bindings_in(base.config, task, bindings)))
    if key:
        cache.put(source.repo.common_dir, "content", key, contracts.canonical(bare))
    return bare


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((READING, *parts)).encode()).hexdigest()


def _decoded(kept: bytes) -> Contract | None:
    try:
        return contracts.decode(kept)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
