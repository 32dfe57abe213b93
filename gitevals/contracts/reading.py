"""Contracts: what a base says a task's examination is, what was frozen, and how the two stand to each other."""

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gitevals import __version__, cache
from gitevals.config import PATH, Config
from gitevals.config import parse as parse_config
from gitevals.errors import BadInput, ConfigInvalid, ObjectMissing
from gitevals.evidence.reading import Evidence, Frozen
from gitevals.git import trees
from gitevals.git.objects import Objects, read, require
from gitevals.git.repo import Repo
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract, Criterion
from gitevals.model.decision import ContractState

if TYPE_CHECKING:
    from gitevals.tasks import Task

# Part of every cache key: a change of how text or configuration is read makes all derived values misses.
READING = f"1-{__version__}"


class BaseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that a base commit bears: its ``blob`` id and the parsed values."""

    commit: str
    blob: str
    config: Config


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a task's content (``digest``) stands to its freezes; ``live`` are the freezes that none supersedes."""

    state: ContractState
    digest: str
    live: tuple[Frozen, ...] = ()
    known: tuple[Frozen, ...] = ()


def config_at(repo: Repo, objects: Objects, commit: str) -> BaseConfig | None:
    """The configuration in ``commit``, or None where it has none.

    Raises `ConfigInvalid` if it does not parse and `ObjectMissing` if it cannot be told whether there is one.
    """
    found = read(objects, f"{commit}:{PATH}")
    if found is None:
        root = require(objects, f"{commit}:")
        if any(entry.name == PATH for entry in trees.parse(root.body, len(root.id) // 2)):
            raise ObjectMissing(f"{PATH} of {commit[:12]} is missing", hint="fetch it again, or look with `git fsck`")
        return None
    if found.kind != "blob":
        raise ConfigInvalid(f"{PATH} is not a file", hint=f"make {PATH} a file")
    return BaseConfig(commit=commit, blob=found.id, config=_cached_config(repo, found.id, found.body))


def _cached_config(repo: Repo, blob: str, content: bytes) -> Config:
    key = f"{blob}-{READING}"
    kept = cache.get(repo.common_dir, "config", key)
    if kept is not None:
        try:
            return msgspec.json.decode(kept, type=Config)
        except (msgspec.MsgspecError, RecursionError):
            pass
    config = parse_config(content)
    cache.put(repo.common_dir, "config", key, msgspec.json.encode(config))
    return config


def task_path(config: Config, task: str) -> str:
    """Where the base keeps the text of ``task``."""
    if config.task_path is None:
        raise BadInput(
            f"no place for the text of task {task} is configured",
            hint='add `tasks: {path: "tasks/{task}.md"}` to .gitevals.yaml',
        )
    return config.task_path.replace("{task}", task)


def task_at(objects: Objects, base: BaseConfig, task: str) -> "tuple[Task, bytes]":
    """The task as the base states it, and its text's bytes."""
    from gitevals.tasks import parse  # a hook finds the digest derived

    path = task_path(base.config, task)
    found = read(objects, f"{base.commit}:{path}")
    if found is None or found.kind != "blob":
        raise BadInput(
            f'unknown task "{task}": there is no {path} in {base.commit[:12]}',
            hint=f"commit {path} to the target branch first",
        )
    return parse(task, found.body, headings=base.config.headings, name=path), found.body


def content(config: Config, task: "Task") -> Contract:
    """What freezing ``task`` under ``config`` captures."""
    bound = {requirement.id: _bound(config, task, requirement.id) for requirement in task.criteria}
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
    )


def _bound(config: Config, task: "Task", criterion: str) -> tuple[str, ...]:
    own = config.bindings.get(task.id)
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


def digest_at(repo: Repo, objects: Objects, base: BaseConfig, task: str) -> str:
    """The digest of what the base says of ``task``; derived once for each pair of configuration and text."""
    found = read(objects, f"{base.commit}:{task_path(base.config, task)}")
    text = found.id if found is not None else "none"
    key = hashlib.sha256("\0".join((READING, base.blob, text, task)).encode()).hexdigest()
    kept = cache.get(repo.common_dir, "content", key)
    if kept is not None and re.fullmatch(rb"[0-9a-f]{64}", kept):
        return kept.decode()
    digest = contracts.digest(content(base.config, task_at(objects, base, task)[0]))
    cache.put(repo.common_dir, "content", key, digest.encode())
    return digest


def live(freezes: Sequence[Frozen]) -> tuple[Frozen, ...]:
    """The freezes that no other one supersedes."""
    superseded = {name for frozen in freezes for name in frozen.freeze.supersedes}
    return tuple(frozen for frozen in freezes if frozen.id not in superseded)


def standing(evidence: Evidence, task: str, digest: str, repository: str) -> Standing:
    """How the base's content of ``task`` stands to what is frozen in this repository."""
    known = tuple(frozen for frozen in evidence.freezes(task) if frozen.freeze.repository == repository)
    current = live(known)
    digests = {frozen.freeze.digest for frozen in current}
    if not digests:
        state = ContractState.MISSING
    elif len(digests) > 1:
        state = ContractState.CONFLICT
    else:
        state = ContractState.FROZEN if digest in digests else ContractState.OUT_OF_DATE
    return Standing(state=state, digest=digest, live=current, known=known)
