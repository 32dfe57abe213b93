"""One command, run in a scratch checkout and judged by what it did: to itself, to its processes, to the checkout."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from gitevals import process, redact
from gitevals.evaluate import environment
from gitevals.evidence.writing import clip
from gitevals.git.scratch import Scratch, quoted, told
from gitevals.git.sealed import unquoted
from gitevals.git.seen import is_directory
from gitevals.model.contract import Command
from gitevals.model.evaluation import EXCERPT_LIMIT_BYTES, CheckRun, Stream
from gitevals.model.record import identify
from gitevals.model.result import Result, of_exit

SOURCE_CHANGED = "source_changed"
REASON_LIMIT_BYTES = 1024
_TELLING_BYTES = 6
_ANCHORS = tuple(shape.anchor for shape in redact.SHAPES)


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody who watches a run is told: ``run`` is None while the command is still going."""

    id: str
    elapsed_seconds: float = 0.0
    timeout_seconds: int = 0
    run: CheckRun | None = None


Observer = Callable[[Happening], None]
Changes = Callable[[], tuple[str, ...]]


class Stopped(Exception):
    """Another part of the run has ended, so this one is not to go on."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """What every command of a run shares: what its environment is built from, what is secret, who watches.

    ``stop`` is set when the run is not to go on; a command that is running then ends by `Stopped`.
    """

    inherited: Mapping[str, str]
    path: str
    base: str
    head: str
    task: str
    observer: Observer
    secrets: redact.Secrets
    stop: threading.Event

    def go_on(self) -> None:
        """Raise `Stopped` where the run is not to go on."""
        if self.stop.is_set():
            raise Stopped


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """One command's record and the bytes its streams refer to, by SHA-256.

    ``changed_source`` tells whether it altered what was to be judged, ``timed_out`` whether its time limit ended it.
    """

    run: CheckRun
    streams: dict[str, bytes] = {}
    changed_source: bool = False
    timed_out: bool = False


def run_command(
    bench: Bench, scratch: Scratch, name: str, command: Command, changes: Changes = tuple, *, label: str = ""
) -> Done:
    """Run ``command`` in ``scratch``; ``changes`` tells afterwards what it altered, ``label`` is what watchers read."""
    label = label or name
    bench.go_on()
    bench.observer(Happening(id=label, timeout_seconds=command.timeout_seconds))

    def tick(elapsed_seconds: float) -> None:
        bench.go_on()
        bench.observer(Happening(id=label, elapsed_seconds=elapsed_seconds, timeout_seconds=command.timeout_seconds))

    outcome = process.run(
        command.command,
        cwd=str(Path(scratch.worktree, command.cwd)),
        env=_environment(bench, scratch, command),
        limits=process.Limits(timeout_seconds=command.timeout_seconds),
        filters=lambda: redact.Redactor(bench.secrets),
        on_tick=tick,
    )
    done = _judged(bench, name, command, outcome, changes())
    bench.observer(Happening(id=label, run=done.run))
    return done


def _environment(bench: Bench, scratch: Scratch, command: Command) -> dict[str, str]:
    temporary = os.path.join(scratch.root, "tmp")
    with told(scratch.root):
        if not is_directory(temporary):
            # A command may have put a file or a link there; a link would lead those that follow out of the scratch.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            os.mkdir(temporary)
        os.chmod(temporary, 0o700)
    return environment.built(
        bench.inherited,
        command,
        path=bench.path,
        base=bench.base,
        head=bench.head,
        task=bench.task,
        root=scratch.root,
        temporary=temporary,
    )


def _judged(bench: Bench, name: str, command: Command, outcome: process.Outcome, changed: tuple[str, ...]) -> Done:
    result, reasons = _result(command, outcome)
    if changed:
        shown = listed([_path_hidden(bench.secrets, change) for change in changed])
        result, reasons = Result.INCONCLUSIVE, [f"{SOURCE_CHANGED}: {shown}", *reasons]
    if outcome.leftover:
        shown = listed(_names_hidden(bench.secrets, outcome.leftover))
        reasons.append(f"left {len(outcome.leftover)} process(es) running, ended: {shown}")
    if outcome.survivors:
        shown = listed(_names_hidden(bench.secrets, outcome.survivors))
        result, reasons = Result.INCONCLUSIVE, [*reasons, f"could not be ended: {shown}"]
    excerpted = result is not Result.PASSED
    run = CheckRun(
        id=name,
        result=result,
        reason=clip(redact.text(bench.secrets, "; ".join(reasons)), REASON_LIMIT_BYTES),
        exit_code=outcome.exit_code,
        duration_ms=outcome.duration_ms,
        stdout=_stream(outcome.stdout, excerpted=excerpted),
        stderr=_stream(outcome.stderr, excerpted=excerpted),
    )
    kept = [captured.kept for captured in (outcome.stdout, outcome.stderr) if captured.total_bytes]
    return Done(
        run=run,
        streams={identify(content): content for content in kept},
        changed_source=bool(changed),
        timed_out=outcome.ended is process.Ended.TIMED_OUT,
    )


def _path_hidden(secrets: redact.Secrets, change: str) -> str:
    """``change`` without a secret that stands in a quoted path, where its own characters may be escapes."""
    before, quote, path = change.partition('"')
    if not quote or not path.endswith('"'):
        return change
    plain = unquoted(quote + path)
    hidden = redact.text(secrets, plain)
    return change if hidden == plain else before + quoted(hidden)


def _names_hidden(secrets: redact.Secrets, processes: Sequence[str]) -> list[str]:
    """Processes ("pid name") without names that begin a secret: the system cuts a name to 15 bytes."""
    return [_name_hidden(secrets, *process_named.partition(" ")[::2]) for process_named in processes]


def _name_hidden(secrets: redact.Secrets, pid: str, name: str) -> str:
    start = name.rstrip("\ufffd").encode()
    is_value = len(start) >= _TELLING_BYTES and any(value.startswith(start) for value in secrets.values)
    return f"{pid} [redacted]" if is_value or start.lower().startswith(_ANCHORS) else f"{pid} {name}"


def _result(command: Command, outcome: process.Outcome) -> tuple[Result, list[str]]:
    if outcome.ended is process.Ended.TIMED_OUT:
        return Result.INCONCLUSIVE, [f"timed out after {command.timeout_seconds} s"]
    if outcome.ended is process.Ended.SIGNALLED:
        return Result.INCONCLUSIVE, [f"ended by signal {outcome.signal}"]
    if outcome.ended is process.Ended.NOT_STARTED or outcome.exit_code is None:
        return Result.INCONCLUSIVE, [f"could not be started: {outcome.message}"]
    result = of_exit(outcome.exit_code, refined=command.refined_exits())
    return result, [] if result is Result.PASSED else [f"exit {outcome.exit_code}"]


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first of ``names``, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _stream(captured: process.Captured, *, excerpted: bool) -> Stream | None:
    if captured.total_bytes == 0:
        return None
    excerpt = captured.kept[-EXCERPT_LIMIT_BYTES:].decode("utf-8", "replace") if excerpted else ""
    return Stream(
        sha256=identify(captured.kept),
        bytes=captured.total_bytes,
        truncated=captured.truncated,
        redacted=captured.redacted,
        excerpt=excerpt,
    )
