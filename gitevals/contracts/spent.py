"""Whether a contract was delivered already: a passing evaluation of it covers a step of the target's history."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence

from gitevals import cache
from gitevals.contracts.reading import READING, BaseConfig
from gitevals.evidence.reading import Evidence, Frozen
from gitevals.git import history
from gitevals.git.objects import Objects, read
from gitevals.git.repo import Repo
from gitevals.model.evaluation import Evaluation, Stored
from gitevals.model.movement import Commit, ends_at
from gitevals.model.result import Result


def deliveries(repo: Repo, evidence: Evidence, base: BaseConfig, ref: str, frozen: Sequence[Frozen]) -> tuple[str, ...]:
    """The first-parent commits of ``ref`` that delivered the contract of ``frozen`` and that no reopening lifted.

    ``frozen`` holds every freeze of one content; history is searched from the earliest one's base to ``base``.
    """
    bases = {entry.freeze.base for entry in frozen}
    if not frozen or bases == {base.commit}:
        return ()
    task = frozen[0].freeze.task
    delivered = _remembered(repo, evidence, base, ref, frozen)
    if not delivered:
        return ()
    lifted = {name for event in evidence.reopens(task) for name in event.deliveries}
    return tuple(name for name in delivered if name not in lifted)


def every_delivery(
    repo: Repo, evidence: Evidence, base: BaseConfig, ref: str, freezes: Mapping[str, Sequence[Frozen]],
    evaluations: Sequence[Stored],
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """What `deliveries` says of all contents of each task in ``freezes``, oldest first, by one walk of history.

    ``evaluations`` are all there are. Cost grows with history and evidence, so only displays ask.
    """
    frozen = [entry for entries in freezes.values() for entry in entries]
    chain = _since(repo, evidence.objects, base.commit, sorted({entry.freeze.base for entry in frozen}))
    passed = _passed(chain, ref, base.config.repository, evaluations)
    place = {commit.id: position for position, commit in enumerate(chain)}
    found: dict[str, tuple[str, ...]] = {}
    for task, entries in freezes.items():
        kept: set[str] = set()
        for digest in {entry.freeze.digest for entry in entries}:
            same = [entry for entry in entries if entry.freeze.digest == digest]
            if all(entry.freeze.base in place for entry in same):
                start = min(place[entry.freeze.base] for entry in same)
                kept.update(_within(chain, start, passed.get((task, digest), ())))
            else:
                kept.update(deliveries(repo, evidence, base, ref, same))
        lifted = {name for event in evidence.reopens(task) for name in event.deliveries} if kept else set()
        found[task] = tuple(sorted(kept - lifted, key=lambda name: place.get(name, -1)))
    return found


def _passed(
    chain: Sequence[Commit], ref: str, repository: str, evaluations: Sequence[Stored]
) -> dict[tuple[str, str], list[tuple[int, Evaluation]]]:
    """The passing evaluations about a step of ``chain``, with the step's position, by task and contract."""
    by_tree: dict[str, list[Evaluation]] = {}
    for stored in evaluations:
        by_tree.setdefault(stored.evaluation.subject.tree, []).append(stored.evaluation)
    found: dict[tuple[str, str], list[tuple[int, Evaluation]]] = {}
    for position, commit in enumerate(chain):
        for told in by_tree.get(commit.tree, ()):
            if told.weight is Result.PASSED and ends_at(told, ref, commit, repository):
                found.setdefault((told.task, told.contract), []).append((position, told))
    return found


def _within(chain: Sequence[Commit], start: int, passed: Sequence[tuple[int, Evaluation]]) -> set[str]:
    """The steps of ``passed`` whose base is a commit of ``chain`` between ``start`` and the step."""
    found = set()
    for position, told in passed:
        before = chain[start:position]
        if any(told.subject.base == commit.id or told.subject.base_tree == commit.tree for commit in before):
            found.add(chain[position].id)
    return found


def _remembered(
    repo: Repo, evidence: Evidence, base: BaseConfig, ref: str, frozen: Sequence[Frozen]
) -> tuple[str, ...]:
    """`_delivered`, kept for as long as neither the ref nor any ledger moves."""
    known = [base.commit, base.config.repository, ref, *(f"{entry.id}" for entry in frozen)]
    tips = [f"{name} {tip}" for name, tip in sorted(evidence.ledgers.notes.items())]
    if any(read(evidence.objects, entry.freeze.base) is None for entry in frozen):
        return _delivered(repo, evidence, base, ref, frozen)  # history may yet be fetched
    known.append(_shallow(repo))
    key = hashlib.sha256("\0".join((READING, *known, *tips)).encode("utf-8", "surrogateescape")).hexdigest()
    kept = cache.get(repo.common_dir, "spent", key)
    if kept is not None and re.fullmatch(rb"(?:[0-9a-f]{40,64}\n)*", kept):
        return tuple(kept.decode().split())
    found = _delivered(repo, evidence, base, ref, frozen)
    cache.put(repo.common_dir, "spent", key, "".join(f"{name}\n" for name in found).encode())
    return found


def _shallow(repo: Repo) -> str:
    """Where the history that is here ends, if it is not whole."""
    try:
        with open(os.path.join(repo.common_dir, "shallow"), encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _delivered(repo: Repo, evidence: Evidence, base: BaseConfig, ref: str, frozen: Sequence[Frozen]) -> tuple[str, ...]:
    wanted = (frozen[0].freeze.task, frozen[0].freeze.digest, Result.PASSED)
    chain = _since(repo, evidence.objects, base.commit, sorted({entry.freeze.base for entry in frozen}))
    evidence.gather([commit.tree for commit in chain[1:]])  # asked for at once, not one by one
    ids, trees, found = {commit.id for commit in chain[:1]}, {commit.tree for commit in chain[:1]}, []
    for commit in chain[1:]:
        for stored in evidence.evaluations([commit.tree]):
            told = stored.evaluation
            based = told.subject.base in ids or told.subject.base_tree in trees
            if (told.task, told.contract, told.weight) == wanted and based:
                found += [commit.id] if ends_at(told, ref, commit, base.config.repository) else []
        ids.add(commit.id)
        trees.add(commit.tree)
    return tuple(dict.fromkeys(found))


def _since(repo: Repo, objects: Objects, tip: str, bases: Sequence[str]) -> tuple[Commit, ...]:
    """The first-parent chain up to ``tip``, beginning with what all of ``bases`` have in common with it.

    Anybody may write anything as a base: what is no commit is passed over, and where git cannot tell what is in common,
    all of history is searched.
    """
    known = [found.id for found in objects.read_many(bases) if found is not None and found.kind == "commit"]
    if not known:
        return ()
    oldest = repo.text("merge-base", "--octopus", *known, tip, accept=(0, 1, 128))
    entries = history.log(repo, "--first-parent", tip, *([f"^{oldest}"] if oldest else []), trailer="Task")
    links = tuple(Commit(id=entry.id, tree=entry.tree, parents=entry.parents) for entry in reversed(entries))
    if not links or not links[0].parents:
        return links
    before = read(objects, f"{links[0].parents[0]}:")
    return (Commit(id=links[0].parents[0], tree=before.id if before else ""), *links)
