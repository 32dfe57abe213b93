"""A slot: one scratch checkout, set up once, in which checks run one after the other."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from gitevals.evaluate import graders, setup_cache
from gitevals.evaluate.checks import Bench, Done, listed, run_command
from gitevals.evaluate.plan import Plan
from gitevals.git import watch
from gitevals.git.scratch import Scratch, quoted
from gitevals.model.contract import Command, setup_id
from gitevals.model.evaluation import CheckRun
from gitevals.model.result import Result

Another = Callable[[str], AbstractContextManager[Scratch]]


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a plan is carried out: a first checkout, a way to further ones of any commit, side folders.

    ``setup_cache`` is the folder of what set-up need not make again, ``common_dir`` holds what is known of checks on
    bases; ``base`` and ``base_tree`` name the base.
    """

    first: Scratch
    another: Another
    jobs: int
    setup_cache: str
    common_dir: str
    base: str
    base_tree: str


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A set-up checkout; ``before`` is its state that checks are measured against, None if it came to nothing.

    ``reason`` says why it came to nothing, ``notes`` what a reader should know of its set-up.
    """

    scratch: Scratch
    before: watch.Baseline | None = None
    setup: tuple[CheckRun, ...] = ()
    streams: dict[str, bytes] = {}
    reason: str = ""
    notes: tuple[str, ...] = ()


def prepare(bench: Bench, scratch: Scratch, wanted: Plan, *, folder: str, label: str = "") -> Slot:
    """Run the set-up commands in ``scratch``; what they made before is fetched from the cache in ``folder`` first."""
    untouched = watch.baseline(scratch) if wanted.setup else None
    cached = setup_cache.entries(folder, scratch, wanted) if wanted.setup else ()
    restored = setup_cache.restore(scratch, cached)
    notes = tuple(f"cache: {quoted(path)} restored" for path in restored)
    spared = {name: entry.path for entry in wanted.cache if entry.path in restored for name in entry.spares}
    runs: list[CheckRun] = []
    streams: dict[str, bytes] = {}
    reason = ""
    for number, command in enumerate(wanted.setup, 1):
        name = setup_id(number)
        if name in spared:
            runs.append(CheckRun(id=name, result=Result.PASSED, reason=f"spared: {quoted(spared[name])} was restored"))
            continue
        done = run_command(bench, scratch, name, command, label=f"{name}{label}")
        runs.append(done.run)
        streams |= done.streams
        if done.run.result is not Result.PASSED:
            reason = f"{name} did not succeed: {done.run.reason}"
            break
    reason = reason or _spoilt(scratch, untouched)
    if not reason:
        notes = (*notes, *setup_cache.keep(scratch, cached))
    return Slot(
        scratch=scratch,
        before=None if reason else watch.baseline(scratch),
        setup=tuple(runs),
        streams=streams,
        reason=reason,
        notes=notes,
    )


def _spoilt(scratch: Scratch, untouched: watch.Baseline | None) -> str:
    """What set-up commands did to the commit that is to be judged; files that they add are no such thing."""
    if untouched is None:
        return ""
    if not os.path.isdir(scratch.worktree):
        return "the set-up commands removed the checkout"
    altered = [told for told in watch.changes(scratch, untouched) if not told.startswith("new file: ")]
    return f"the set-up commands changed the source: {listed(altered)}" if altered else ""


def check(bench: Bench, slot: Slot, wanted: Plan, name: str, command: Command, *, label: str = "") -> Done:
    """Run a check or verification command in ``slot``, with its graders in place while it runs."""
    before = slot.before
    if before is None:
        raise ValueError("this slot came to nothing")
    scratch, outputs = slot.scratch, wanted.outputs
    if not command.graders:
        return run_command(
            bench, scratch, name, command, lambda: watch.changes(scratch, before, outputs=outputs), label=label
        )
    with graders.in_place(scratch, wanted.graders[name], command.graders) as placed:
        beside = graders.beside(scratch, command.graders)
        among = _ruled_as(before, watch.baseline(beside))
        return run_command(
            bench, scratch, name, command,
            lambda: _altered(placed, watch.changes(beside, among, outputs=outputs)), label=label,
        )  # fmt: skip


def _ruled_as(before: watch.Baseline, among: watch.Baseline) -> watch.Baseline:
    """``among`` with the strange ignore rules of ``before`` alone: those of graders are the operator's."""
    inner = {
        path: msgspec.structs.replace(found, rules=before.inner[path].rules) for path, found in among.inner.items()
    }
    return msgspec.structs.replace(among, rules=before.rules, inner=inner)


def _altered(placed: graders.Placed, changes: tuple[str, ...]) -> tuple[str, ...]:
    """What became of graders, then of all else."""
    told = placed.altered()
    said = {line.removeprefix("grader ") for line in told}
    return (*told, *(line for line in changes if line not in said))
