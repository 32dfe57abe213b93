"""A whole plan: set-up, verification, checks in one or more slots, and what checks say of the base."""

import concurrent.futures
import contextlib
import threading
from collections.abc import Mapping

import msgspec

from gitevals.evaluate import at_base, slots
from gitevals.evaluate.checks import Bench, Done, Happening, Observer, Stopped
from gitevals.evaluate.plan import Plan, Ran, not_run, nothing_ran, why
from gitevals.evaluate.slots import Places, Slot
from gitevals.model.contract import Command, verification_id
from gitevals.model.evaluation import CheckRun
from gitevals.model.result import Result


def carry_out(bench: Bench, wanted: Plan, places: Places) -> Ran:
    """Run the whole plan; what an earlier failure prevented is ``not_run``."""
    slot = slots.prepare(bench, places.first, wanted, folder=places.setup_cache)
    if slot.reason:
        return nothing_ran(wanted, slot.reason, setup=slot.setup, streams=slot.streams, notes=slot.notes)
    verified = _verified(bench, slot, wanted)
    if verified.reason:
        found = _Checked(runs=tuple(not_run(name) for name in wanted.checks), reason=verified.reason)
    else:
        found = _checked(bench, slot, wanted, places)
    return Ran(
        setup=found.setup or slot.setup,
        verification=verified.runs,
        checks=at_base.compared(bench, wanted, found.runs, places),
        streams={**slot.streams, **verified.streams, **found.streams},
        reason=found.reason,
        notes=slot.notes,
        timed_out_verifying=verified.timed_out,
    )


class _Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The records of project verification, and why the checks are not to be run ("" if they are)."""

    runs: tuple[CheckRun, ...]
    reason: str
    streams: dict[str, bytes]
    timed_out: bool


def _verified(bench: Bench, slot: Slot, wanted: Plan) -> _Verified:
    """The project's verification, run up to the first command that does not pass."""
    runs: list[CheckRun] = []
    streams: dict[str, bytes] = {}
    reason, timed_out = "", False
    for number, command in enumerate(wanted.verification, 1):
        name = verification_id(number)
        if reason:
            runs.append(not_run(name))
            continue
        done = slots.check(bench, slot, wanted, name, command)
        streams |= done.streams
        timed_out = timed_out or done.timed_out
        runs.append(done.run)
        if done.changed_source:
            reason = f"{name} {done.run.reason}"
        elif done.run.result is not Result.PASSED:
            reason = why(done.run)
    return _Verified(runs=tuple(runs), reason=reason, streams=streams, timed_out=timed_out)


class _Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The checks' records, why some were not run, and the set-up of the slot that prevented all of them."""

    runs: tuple[CheckRun, ...]
    reason: str
    streams: dict[str, bytes] = {}
    setup: tuple[CheckRun, ...] = ()


class _Queue:
    """Checks in their order, taken by several slots; after one that spoils its slot, later ones are not taken.

    ``interrupted`` tells slots that are stopped that a person did it, and may want to look at what they leave.
    """

    def __init__(self, checks: Mapping[str, Command]) -> None:
        self.interrupted = False
        self._done: dict[int, Done] = {}
        self._broken: _Checked | None = None
        self._lock = threading.Lock()
        self._checks = list(checks.items())
        self._next = 0
        self._end = len(self._checks)

    def take(self) -> tuple[int, str, Command] | None:
        """The position and the next check to run, None once there is none."""
        with self._lock:
            if self._next >= self._end:
                return None
            self._next += 1
            name, command = self._checks[self._next - 1]
            return self._next - 1, name, command

    def give(self, position: int, done: Done) -> None:
        """The outcome of what was taken."""
        with self._lock:
            self._done[position] = done
            if done.changed_source:
                self._end = min(self._end, position + 1)

    def watching(self, position: int, observer: Observer) -> Observer:
        """``observer``, but a check whose outcome no longer counts is stopped."""

        def watched(happening: Happening) -> None:
            if position >= self._end:
                raise Stopped
            observer(happening)

        return watched

    def close(self) -> None:
        """Let nothing more be taken."""
        with self._lock:
            self._end = 0

    def spoil(self, reason: str, slot: Slot | None = None) -> None:
        """Let all of it come to nothing, whatever is found: ``slot`` could not be set up."""
        runs = tuple(not_run(name) for name, _ in self._checks)
        setup, streams = (slot.setup, slot.streams) if slot else ((), {})
        with self._lock:
            self._end = 0
            self._broken = self._broken or _Checked(runs=runs, reason=reason, streams=streams, setup=setup)

    def checked(self) -> _Checked:
        """Every check's record in order, and why later checks were not run: as one slot would tell it."""
        if self._broken:
            return self._broken
        runs: list[CheckRun] = []
        streams: dict[str, bytes] = {}
        reason = ""
        for position, (name, _) in enumerate(self._checks):
            done = self._done.get(position)
            if done is None or reason:
                runs.append(not_run(name))
                continue
            runs.append(done.run)
            streams |= done.streams
            if done.changed_source:
                reason = f"{name} {done.run.reason}"
        return _Checked(runs=tuple(runs), reason=reason, streams=streams)


def _checked(bench: Bench, slot: Slot, wanted: Plan, places: Places) -> _Checked:
    queue = _Queue(wanted.checks)
    count = min(places.jobs, len(wanted.checks))
    if count <= 1:
        _work(bench, slot, wanted, queue)
    else:
        _side_by_side(bench, slot, wanted, places, queue, count)
    return queue.checked()


def _work(bench: Bench, slot: Slot, wanted: Plan, queue: _Queue) -> None:
    while taken := queue.take():
        position, name, command = taken
        watched = msgspec.structs.replace(bench, observer=queue.watching(position, bench.observer))
        try:
            done = slots.check(watched, slot, wanted, name, command)
        except Stopped:
            bench.go_on()
            bench.observer(Happening(id=name, run=not_run(name)))
            return
        queue.give(position, done)
        if done.changed_source:
            return


def _side_by_side(bench: Bench, slot: Slot, wanted: Plan, places: Places, queue: _Queue, count: int) -> None:
    """Let ``count`` slots work; whatever ends one of them early ends all of them."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        try:
            working = [pool.submit(_work, bench, slot, wanted, queue)]
            working += [pool.submit(_further, bench, wanted, places, queue, n) for n in range(2, count + 1)]
            for ended in concurrent.futures.as_completed(working):
                ended.result()
        except BaseException as error:
            queue.interrupted = isinstance(error, KeyboardInterrupt)
            queue.close()
            bench.stop.set()
            raise


def _further(bench: Bench, wanted: Plan, places: Places, queue: _Queue, number: int) -> None:
    """Work in a slot of its own; one that cannot be set up spoils the run, whatever the others find."""
    with contextlib.suppress(Stopped), places.another(places.first.commit) as scratch:
        try:
            slot = slots.prepare(bench, scratch, wanted, folder=places.setup_cache, label=f" in slot {number}")
            if slot.reason:
                queue.spoil(f"slot {number}: {slot.reason}", slot)
            else:
                _work(bench, slot, wanted, queue)
        except Stopped:
            if queue.interrupted:
                raise
