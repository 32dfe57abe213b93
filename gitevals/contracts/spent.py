"""Whether a contract was delivered already: a passing evaluation of it covers a step of the target's history."""

from collections.abc import Sequence

from gitevals.contracts.reading import BaseConfig
from gitevals.evidence.reading import Evidence, Frozen
from gitevals.git import history
from gitevals.git.objects import Objects, read
from gitevals.git.repo import Repo
from gitevals.model.movement import Commit, Span, covers
from gitevals.model.result import Result


def deliveries(repo: Repo, evidence: Evidence, base: BaseConfig, ref: str, frozen: Sequence[Frozen]) -> tuple[str, ...]:
    """The first-parent commits of ``ref`` that delivered the contract of ``frozen`` and that no reopening lifted.

    ``frozen`` holds every freeze of one content; history is searched from the earliest one's base to ``base``.
    """
    bases = {entry.freeze.base for entry in frozen}
    if not frozen or bases == {base.commit}:
        return ()
    task, digest = frozen[0].freeze.task, frozen[0].freeze.digest
    chain = _since(repo, evidence.objects, base.commit, sorted(bases))
    delivered = []
    evidence.lines([commit.tree for commit in chain[1:]])  # asked for at once, not one by one
    for end in range(1, len(chain)):
        spans = [Span(ref=ref, old=old, new=chain[end]) for old in chain[:end]]
        for stored in evidence.evaluations([chain[end].tree]):
            found = stored.evaluation
            if (found.task, found.contract, found.weight) == (task, digest, Result.PASSED) and any(
                covers(found, span, base.config.repository) for span in spans
            ):
                delivered.append(chain[end].id)
    if not delivered:
        return ()
    lifted = {name for event in evidence.reopens(task) for name in event.deliveries}
    return tuple(name for name in dict.fromkeys(delivered) if name not in lifted)


def _since(repo: Repo, objects: Objects, tip: str, bases: Sequence[str]) -> tuple[Commit, ...]:
    """The first-parent chain up to ``tip``, beginning with what all of ``bases`` have in common with it."""
    known = [name for name in bases if read(objects, name) is not None]
    if not known:
        return ()
    oldest = repo.text("merge-base", "--octopus", *known, tip, accept=(0, 1))
    entries = history.log(repo, "--first-parent", tip, *([f"^{oldest}"] if oldest else []), trailer="Task")
    links = tuple(Commit(id=entry.id, tree=entry.tree, parents=entry.parents) for entry in reversed(entries))
    if not links or not links[0].parents:
        return links
    before = read(objects, f"{links[0].parents[0]}:")
    return (Commit(id=links[0].parents[0], tree=before.id if before else ""), *links)
