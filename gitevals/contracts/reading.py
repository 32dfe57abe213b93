"""The configuration that a base bears, and how a content stands to what was frozen."""

from collections.abc import Sequence

import msgspec

from gitevals import __version__, cache
from gitevals.config import LIMIT_BYTES, PATH, Config
from gitevals.errors import ConfigInvalid
from gitevals.evidence.reading import Evidence, Frozen
from gitevals.git import trees
from gitevals.git.objects import Objects, read
from gitevals.git.repo import Repo
from gitevals.model.contract import Contract
from gitevals.model.facts import ContractState

# Part of every cache key: a change of how text or configuration is read makes all derived values misses.
READING = f"2-{__version__}"


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
    found = read(objects, f"{commit}:{PATH}", limit_bytes=LIMIT_BYTES)
    if found is None:
        trees.require_absent(objects, commit, [PATH])
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
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    from gitevals.configfile import parse  # a hook finds the configuration parsed

    config = parse(content)
    cache.put(repo.common_dir, "config", key, msgspec.json.encode(config))
    return config


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


def frozen_content(evidence: Evidence, task: str, repository: str) -> Contract | None:
    """The one content of ``task`` that is frozen in this repository; None without a freeze, or in a conflict."""
    digests = {entry.freeze.digest for entry in live_in(evidence, task, repository)}
    return evidence.contract(task, digests.pop()) if len(digests) == 1 else None


def live_in(evidence: Evidence, task: str, repository: str) -> tuple[Frozen, ...]:
    """The freezes of ``task`` in this repository that none supersedes."""
    return live([frozen for frozen in evidence.freezes(task) if frozen.freeze.repository == repository])
