"""Freezing contracts and reopening tasks: what an operator writes."""

from collections.abc import Sequence

from gitevals import __version__
from gitevals.contracts import graders
from gitevals.contracts.reading import Standing, standing
from gitevals.evidence import writing
from gitevals.evidence.reading import CONTRACTS, EVENTS, Evidence
from gitevals.git import trees
from gitevals.git.objects import read
from gitevals.model import contract as contracts
from gitevals.model import record
from gitevals.model.contract import Contract
from gitevals.model.evaluation import Freeze, Reopen
from gitevals.model.facts import ContractState

Files = dict[str, bytes | trees.Entry]


def keep_content(store: writing.Store, frozen: Contract, text: bytes, *, graders_at: str) -> None:
    """Store a contract's content without freezing it; graders that are not here yet are taken from ``graders_at``."""
    digest = contracts.digest(frozen)

    def files(known: Evidence) -> Files:
        return {} if known.contract(frozen.task, digest) else _content_files(store, frozen, digest, text, graders_at)

    writing.append_files(store, CONTRACTS, files)


def freeze(
    store: writing.Store, frozen: Contract, text: bytes, *, base: str, graders_at: str, reason: str, actor: str
) -> Standing:
    """Freeze ``frozen`` in place of every other live freeze; where exactly it is live already, nothing is written.

    The graders are those of the commit ``graders_at``. The answer is how the task stood before.
    """
    digest = contracts.digest(frozen)
    outcome: list[Standing] = []

    def files(known: Evidence) -> Files:
        before = standing(known, frozen.task, digest, store.repository)
        if before.state is ContractState.FROZEN:
            outcome[:] = [before]
            return {}
        raw = record.encode(
            Freeze(
                task=frozen.task,
                digest=digest,
                repository=store.repository,
                base=base,
                supersedes=tuple(sorted(entry.id for entry in before.live)),
                reason=reason,
                actor=actor,
                writer=store.writer,
                tool=f"git-evals {__version__}",
                created=writing.now(),
                nonce=writing.nonce(),
            )
        )
        outcome.clear()
        content = _content_files(store, frozen, digest, text, graders_at)
        return {**content, f"{frozen.task}/freezes/{record.identify(raw)}.json": raw}

    writing.append_files(store, CONTRACTS, files)
    return outcome[0] if outcome else Standing(state=ContractState.MISSING, digest=digest)


def _content_files(store: writing.Store, frozen: Contract, digest: str, text: bytes, graders_at: str) -> Files:
    folder = f"{frozen.task}/{digest}"
    files: Files = {f"{folder}/contract.json": contracts.canonical(frozen), f"{folder}/task.md": text}
    if frozen.graders:
        if read(store.objects, frozen.graders) is None:
            graders.keep(store.objects, graders_at, frozen.graded)
        files[f"{folder}/graders"] = trees.Entry(trees.DIRECTORY, "graders", frozen.graders)
    return files


def reopen(store: writing.Store, task: str, deliveries: Sequence[str], *, reason: str, actor: str) -> Reopen:
    """Record that the contract of ``task`` may be delivered again after ``deliveries``."""
    event = Reopen(
        task=task,
        repository=store.repository,
        deliveries=tuple(deliveries),
        reason=reason,
        actor=actor,
        writer=store.writer,
        created=writing.now(),
        nonce=writing.nonce(),
    )
    raw = record.encode(event)
    writing.append_files(store, EVENTS, lambda _: {f"{task}/{record.identify(raw)}.json": raw})
    return event
