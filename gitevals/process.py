"""Run any other program under limits: the only door to ``subprocess`` besides `gitevals.git.run`."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

import msgspec

from gitevals.errors import CannotTell
from gitevals.supervise import KILL_SECONDS, Request

TICK_SECONDS = 0.5
DRAIN_SECONDS = 1.0
OVERDUE_SECONDS = KILL_SECONDS + 10
CHUNK_BYTES = 64 * 1024
# Imported rather than run by its path, because only an import uses the compiled file.
SUPERVISE = "import sys; sys.path.append(sys.argv[1]); import supervise; supervise.main()"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a command may run, how long it may take to obey SIGTERM, and how much of each stream is kept."""

    timeout_seconds: float
    grace_seconds: float = 2.0
    head_bytes: int = 256 * 1024
    tail_bytes: int = 768 * 1024


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """One stream: ``kept`` is all of it or, if ``truncated``, its head and tail around a line that says what is out.

    ``total_bytes`` counts what the command wrote, ``redacted`` the places where a filter put something else.
    """

    kept: bytes
    total_bytes: int
    truncated: bool
    redacted: int = 0


class Filter(Protocol):
    """What one stream passes through before any of it is kept; ``count`` is the number of its replacements."""

    @property
    def count(self) -> int:
        """How many places have been replaced."""

    def feed(self, chunk: bytes) -> bytes:
        """What of the stream, with ``chunk`` at its end, can be given out by now."""

    def finish(self) -> bytes:
        """What is left once the stream has ended."""


class _AsIs:
    count = 0

    def feed(self, chunk: bytes) -> bytes:
        return chunk

    def finish(self) -> bytes:
        return b""


class Ended(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a command; one that was not started has the ``exit_code`` a shell would give (126 or 127).

    ``leftover`` names processes ("pid name") that outlived the command and had to be ended, ``survivors`` those that
    could not be.
    """

    ended: Ended
    exit_code: int | None
    signal: int | None
    duration_ms: int
    stdout: Captured
    stderr: Captured
    leftover: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    message: str = ""


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    limits: Limits,
    on_tick: Callable[[float], None] | None = None,
    filters: Callable[[], Filter] | None = None,
) -> Outcome:
    """Run ``argv`` and wait until nothing of it is left; ``on_tick`` gets the elapsed seconds twice a second.

    Each stream passes through a filter of its own, made by ``filters``, before it is cut to what is kept. An exception
    meanwhile (Ctrl-C, or one from ``on_tick``) propagates once the whole process tree has been ended.
    """
    request = Request(
        [os.fsencode(argument) for argument in argv],
        os.fsencode(Path(cwd).absolute()),
        {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
        limits.timeout_seconds,
        limits.grace_seconds,
    )
    overdue_seconds = limits.timeout_seconds + limits.grace_seconds + OVERDUE_SECONDS
    with (
        _Drain(limits, (filters or _AsIs)()) as stdout,
        _Drain(limits, (filters or _AsIs)()) as stderr,
        _supervisor(request, stdout.entrance, stderr.entrance) as supervisor,
    ):
        report = supervisor.wait(overdue_seconds, on_tick or (lambda elapsed_seconds: None))
    return _outcome(report, stdout.captured(), stderr.captured())


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor says: its first line has ``pid`` alone, its second the rest."""

    pid: int = 0
    ended: Ended = Ended.SIGNALLED
    exit_code: int | None = None
    signal: int | None = None
    duration_ms: int = 0
    leftover: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    message: str = ""


class _Supervisor:
    """A running supervisor: ``child`` itself, the pipe it watches and the pipe it reports on."""

    def __init__(self, child: subprocess.Popen[bytes], control: IO[bytes], status: IO[bytes]) -> None:
        self._child = child
        self._control = control
        self._status = status

    def order(self, request: Request) -> None:
        """Hand over what to run; a supervisor that has died shows when it is waited for."""
        with contextlib.suppress(BrokenPipeError):
            self._control.write(request.encode())
            self._control.flush()

    def wait(self, overdue_seconds: float, on_tick: Callable[[float], None]) -> _Report:
        """The report of how the command ended; a supervisor that was killed or stopped is stood in for."""
        started = time.monotonic()
        received = b""
        while (elapsed := time.monotonic() - started) < overdue_seconds:
            if not _readable(self._status, TICK_SECONDS):
                on_tick(elapsed)
            elif chunk := os.read(self._status.fileno(), CHUNK_BYTES):
                received += chunk
            else:
                break
        lines = [msgspec.json.decode(line, type=_Report) for line in received.split(b"\n") if line.endswith(b"}")]
        return lines[1] if len(lines) > 1 else self._bereft(lines, round(elapsed * 1000))

    def end(self) -> None:
        """Have the tree ended, whatever is left of it, and wait for that."""
        with contextlib.suppress(BrokenPipeError):
            self._control.close()
        self._child.wait()

    def _bereft(self, lines: list[_Report], duration_ms: int) -> _Report:
        self._child.kill()
        for line in lines[:1]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(line.pid, signal.SIGKILL)
        message = "the supervisor of the command was killed or stopped"
        return _Report(signal=int(signal.SIGKILL), duration_ms=duration_ms, message=message)


@contextlib.contextmanager
def _supervisor(request: Request, stdout: IO[bytes], stderr: IO[bytes]) -> Iterator[_Supervisor]:
    """A supervisor at work on ``request``; leaving the block, for whatever reason, ends the command's whole tree."""
    with contextlib.ExitStack() as stack:
        watched, control = _pipe(stack)
        status, reported = _pipe(stack)
        ends = (watched.fileno(), reported.fileno())
        command = [sys.executable, "-I", "-S", "-c", SUPERVISE, str(Path(__file__).parent), *map(str, ends)]
        try:
            child = subprocess.Popen(
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=ends,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotTell(f"cannot start '{sys.executable}': {error.strerror}") from error
        supervisor = _Supervisor(child, control, status)
        stack.callback(supervisor.end)
        for handed_over in (watched, reported, stdout, stderr):
            handed_over.close()
        supervisor.order(request)
        yield supervisor


class _Drain:
    """Reads one stream in a thread and keeps its head and tail; ``entrance`` is where the command writes."""

    def __init__(self, limits: Limits, passing: Filter) -> None:
        self._limits = limits
        self._filter = passing
        self._stack = contextlib.ExitStack()
        self._exit, self.entrance = _pipe(self._stack)
        self._stopped, self._stop = _pipe(self._stack)
        self._head = bytearray()
        self._tail = bytearray()
        self._total_bytes = 0
        self._passed_bytes = 0
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stack:
            self.entrance.close()
            self._thread.join(DRAIN_SECONDS)
            self._stop.close()
            self._thread.join()

    def captured(self) -> Captured:
        """What was read, once the block has been left."""
        if self._failure:
            raise self._failure
        tail = self._tail[max(0, len(self._tail) - self._limits.tail_bytes) :]
        left_out = self._passed_bytes - len(self._head) - len(tail)
        marker = b"\n[git-evals: %d bytes left out]\n" % left_out if left_out else b""
        kept = bytes(self._head) + marker + bytes(tail)
        return Captured(kept=kept, total_bytes=self._total_bytes, truncated=left_out > 0, redacted=self._filter.count)

    def _work(self) -> None:
        try:
            self._read()
            self._keep(self._filter.finish())
        except Exception as error:
            self._failure = error
            # A command that writes on must not wait for a reader that is gone.
            self._exit.close()

    def _read(self) -> None:
        poller = select.poll()
        poller.register(self._exit, select.POLLIN)
        poller.register(self._stopped, select.POLLIN)
        while self._stopped.fileno() not in dict(poller.poll()):
            chunk = os.read(self._exit.fileno(), CHUNK_BYTES)
            if not chunk:
                return
            self._total_bytes += len(chunk)
            self._keep(self._filter.feed(chunk))

    def _keep(self, passed: bytes) -> None:
        self._passed_bytes += len(passed)
        room = self._limits.head_bytes - len(self._head)
        self._head += passed[:room]
        self._tail += passed[room:]
        if len(self._tail) > 2 * self._limits.tail_bytes:
            del self._tail[: len(self._tail) - self._limits.tail_bytes]


def _outcome(report: _Report, stdout: Captured, stderr: Captured) -> Outcome:
    return Outcome(
        ended=report.ended,
        exit_code=report.exit_code,
        signal=report.signal,
        duration_ms=report.duration_ms,
        stdout=stdout,
        stderr=stderr,
        leftover=report.leftover,
        survivors=report.survivors,
        message=report.message,
    )


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return stack.enter_context(open(reader, "rb")), stack.enter_context(open(writer, "wb"))


def _readable(file: IO[bytes], seconds: float) -> bool:
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(seconds * 1000))
