"""What freezing a task would capture, and how that differs from what is frozen."""

import msgspec

from gitevals.contracts.differences import differences
from gitevals.contracts.reading import BaseConfig, Standing, frozen_content, standing
from gitevals.contracts.stating import Origin, Source, Stated, content, expected, renewed, stated
from gitevals.errors import BadInput
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract
from gitevals.model.facts import ContractState


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """A contract as it is frozen, else as it would be now: content, title, standing, what freezing would change.

    ``graders_moved`` tells that the base's graders are others than the frozen ones, which still count.
    """

    content: Contract
    title: str
    origin: Origin
    standing: Standing
    differences: tuple[str, ...] = ()
    graders_moved: bool = False


def preview(source: Source, base: BaseConfig, task: str) -> Preview:
    """What freezing ``task`` at ``base`` would capture; writes nothing."""
    statement = stated(source, base, task)
    counts = expected(source, base, statement)
    stands = standing(source.evidence, task, contracts.digest(counts), base.config.repository)
    would_be = _renewed(source, base, statement, counts)
    is_frozen = stands.state is ContractState.FROZEN
    return Preview(
        content=counts if is_frozen else would_be,
        title=statement.task.title,
        origin=statement.origin,
        standing=stands,
        differences=tuple(_differences(source, would_be, stands)),
        graders_moved=is_frozen and would_be.graders != counts.graders,
    )


def _renewed(source: Source, base: BaseConfig, statement: Stated, counts: Contract) -> Contract:
    """With the base's graders; where it has none (they were frozen from elsewhere), with those that count."""
    try:
        return renewed(source, base, statement, base.commit)
    except BadInput:
        if frozen_content(source.evidence, statement.task.id, base.config.repository) is None:
            raise
        return content(base.config, statement, graders=counts.graders)


def _differences(source: Source, now: Contract, stands: Standing) -> list[str]:
    digests = list(dict.fromkeys(entry.freeze.digest for entry in stands.live))
    said: list[str] = []
    for digest in digests:
        frozen = source.evidence.contract(now.task, digest)
        found = ("its content is not here",) if frozen is None else differences(frozen, now)
        label = f"frozen {digest[:12]}: " if len(digests) > 1 else ""
        said += [f"{label}{text}" for text in found]
    return said
