"""What checks say of the base, before the change: a check that passes there too proves nothing about the change."""

import contextlib
import hashlib

import msgspec

from gitevals import __version__, cache
from gitevals.evaluate import environment, slots
from gitevals.evaluate.checks import Bench
from gitevals.evaluate.plan import Plan
from gitevals.evaluate.slots import Places, Slot
from gitevals.model.contract import AtBase, Command, canonical
from gitevals.model.evaluation import BaseRun, CheckRun
from gitevals.model.result import Result

FAMILY = "at-base"


def compared(bench: Bench, wanted: Plan, checks: tuple[CheckRun, ...], places: Places) -> tuple[CheckRun, ...]:
    """``checks`` with what each that passed and asks for it says of the base, in a checkout of the base's own."""
    with contextlib.ExitStack() as stack:
        base = _Base(bench, wanted, places, stack)
        return tuple(_with_base(base, wanted, run) for run in checks)


class _Base:
    """A slot of the base commit that is made when it is first needed; one that a check spoilt is made anew."""

    def __init__(self, bench: Bench, wanted: Plan, places: Places, stack: contextlib.ExitStack) -> None:
        self.places = places
        self._bench = msgspec.structs.replace(bench, head=places.base)
        self._wanted, self._stack = wanted, stack
        self._slot: Slot | None = None

    def key(self, name: str, command: Command) -> str:
        """Of what a check says of this base: all that it is told, and all that it rests on."""
        bench, wanted = self._bench, self._wanted
        told = [bench.task, bench.path, environment.passed(bench.inherited, command)]
        rests_on = [self.places.base_tree, wanted.graders.get(name, ""), wanted.setup, wanted.cache, wanted.outputs]
        content = [command, told, rests_on]
        return hashlib.sha256(__version__.encode() + b"\0" + canonical(content)).hexdigest()

    def run(self, name: str, command: Command) -> BaseRun:
        """What the check says of the base now."""
        slot = self._prepared()
        if slot.reason:
            return BaseRun(result=Result.INCONCLUSIVE, reason=slot.reason)
        done = slots.check(self._bench, slot, self._wanted, name, command, label=f"{name} at base")
        if done.changed_source:
            self._leave()
        return BaseRun(result=done.run.result, exit_code=done.run.exit_code, reason=done.run.reason)

    def _prepared(self) -> Slot:
        if self._slot is None:
            scratch = self._stack.enter_context(self.places.another(self.places.base))
            folder = self.places.setup_cache
            self._slot = slots.prepare(self._bench, scratch, self._wanted, folder=folder, label=" at base")
        return self._slot

    def _leave(self) -> None:
        self._slot = None
        self._stack.close()


def _with_base(base: _Base, wanted: Plan, run: CheckRun) -> CheckRun:
    command = wanted.checks[run.id]
    if command.at_base is AtBase.ANY or run.result is not Result.PASSED:
        return run
    key = base.key(run.id, command)
    known = _known(base.places.common_dir, key)
    if known is None:
        known = base.run(run.id, command)
        if known.result in (Result.PASSED, Result.FAILED):
            cache.put(base.places.common_dir, FAMILY, key, msgspec.json.encode(known))
    return msgspec.structs.replace(run, at_base=known)


def _known(common_dir: str, key: str) -> BaseRun | None:
    kept = cache.get(common_dir, FAMILY, key)
    try:
        return msgspec.json.decode(kept, type=BaseRun) if kept is not None else None
    except (msgspec.MsgspecError, RecursionError):
        return None
