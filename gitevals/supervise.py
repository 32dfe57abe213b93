"""The parent of one command: a small program that `process` starts, and that outlives the whole tree of the command.

It reads a request from a control pipe, runs the command in a session of its own, ends all that descends from it, and
writes JSON lines to a status pipe. The end of the control pipe (git-evals was interrupted or killed) is the order to
end everything. Only cheap modules are imported, because every check pays for the start of this program.
"""

import errno
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # `typing` would cost more than all the rest
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # `signal` itself imports `enum`, a third of the start-up time

KILL_SECONDS = 5.0
SETTLE_SECONDS = 0.25
RESCAN_SECONDS = 0.02
NAMES_LIMIT = 50
PR_SET_CHILD_SUBREAPER = 36


class Request:
    """What to run and for how long; ``environment`` and the other byte strings reach the command as they are."""

    def __init__(
        self,
        arguments: list[bytes],
        directory: bytes,
        environment: dict[bytes, bytes],
        timeout_seconds: float,
        grace_seconds: float,
    ) -> None:
        self.arguments = arguments
        self.directory = directory
        self.environment = environment
        self.timeout_seconds = timeout_seconds
        self.grace_seconds = grace_seconds

    def encode(self) -> bytes:
        """The bytes for the control pipe; both ends are the same interpreter, so `marshal` will do."""
        return marshal.dumps(
            [self.arguments, self.directory, self.environment, self.timeout_seconds, self.grace_seconds]
        )


class Process:
    """One row of the process table; ``state`` begins with ``Z`` once the process has ended."""

    def __init__(self, pid: int, parent: int, group: int, state: str, name: str) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.state = state
        self.name = name


class Watch:
    """What can wake the supervisor: the end of a child, SIGTERM, or the end of the control pipe."""

    def __init__(self, control: int) -> None:
        self.stopped = False
        self._control = control
        self._signals, wakeup = os.pipe()
        for end in (self._signals, wakeup):
            os.set_blocking(end, False)
        self._poller = select.poll()
        self._poller.register(control, select.POLLIN)
        self._poller.register(self._signals, select.POLLIN)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def pause(self, seconds: float) -> None:
        """Sleep for at most ``seconds``; anything watched ends the sleep."""
        for end, _ in self._poller.poll(max(1, seconds * 1000)):
            if end == self._control:
                self._poller.unregister(end)
                self._stop()
            else:
                os.read(end, 4096)

    def until(self, done: "Callable[[], bool]", seconds: float, *, pause_seconds: float) -> bool:
        """Wait until ``done()``, asked at least every ``pause_seconds``; whether that came within ``seconds``."""
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.pause(min(left, pause_seconds))
        return True

    def _stop(self) -> None:
        self.stopped = True


class Tree:
    """The command with process id ``pid`` and everything that descends from it."""

    def __init__(self, pid: int, *, adopts: bool) -> None:
        self.pid = pid
        self.status: int | None = None
        self._adopts = adopts
        self._started = self._ended = time.monotonic()

    @property
    def duration_ms(self) -> int:
        """From the start of the command to its own end."""
        return round((self._ended - self._started) * 1000)

    def ended(self) -> bool:
        """Whether the command itself has ended; its descendants may live on."""
        self._reap()
        return self.status is not None

    def empty(self) -> bool:
        """Whether nothing is left; a supervisor that adopts orphans knows this from having no child."""
        return not self._reap() and (self._adopts or not self.members())

    def members(self) -> list[Process]:
        """All that lives of the tree, as far as the process table shows it."""
        table = process_table()
        found = {os.getpid()}
        while True:
            more = {process.pid for process in table if process.parent in found or self._is_stray(process)} - found
            if not more:
                break
            found |= more
        return [process for process in table if process.pid in found and process.pid != os.getpid()]

    def signal(self, *numbers: int) -> None:
        """Send each of ``numbers`` to the command's group and to every member, wherever it went."""
        group = [] if self.ended() else [-self.pid]
        for target in [*group, *(process.pid for process in self.members())]:
            for number in numbers:
                send(target, number)

    def names(self) -> list[str]:
        """The living members as ``pid name``."""
        living = [process for process in self.members() if not process.state.startswith("Z")]
        return [f"{process.pid} {process.name}" for process in living[:NAMES_LIMIT]]

    def _is_stray(self, process: Process) -> bool:
        return not self._adopts and process.group == self.pid

    def _reap(self) -> bool:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status, self._ended = status, time.monotonic()


def process_table() -> list[Process]:
    """Every process that can be seen, from /proc or else from ``ps``."""
    if not os.path.exists("/proc/self/stat"):
        return from_ps()
    rows = (from_proc(entry) for entry in os.listdir("/proc") if entry.isdecimal())
    return [row for row in rows if row is not None]


def from_proc(pid: str) -> Process | None:
    """The row of ``pid``, or None if it has gone; its name stands in brackets and may contain anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            before, _, after = file.read(4096).rpartition(b") ")
    except OSError:
        return None
    name = before.partition(b" (")[2].decode("utf-8", "replace")
    state, parent, group = after.split()[:3]
    return Process(int(pid), int(parent), int(group), state.decode(), name)


def from_ps() -> list[Process]:
    """The process table where there is no /proc, without ``ps`` itself."""
    reader, writer = os.pipe()
    arguments = ["ps", "-axo", "pid=,ppid=,pgid=,stat=,comm="]
    ps = os.posix_spawnp("ps", arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)])
    os.close(writer)
    with open(reader, "rb") as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    os.waitpid(ps, 0)
    rows = [line.split(None, 4) for line in lines]
    return [
        Process(int(pid), int(parent), int(group), state, os.path.basename(name))
        for pid, parent, group, state, name in (row for row in rows if len(row) == 5)
        if int(pid) != ps
    ]


def send(target: int, number: int) -> None:
    """Signal a process or (negative) a group; one that has gone or is not ours to signal is left to `Tree.names`."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose parent ends; whether this system can do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def start(request: Request, complaint: int) -> int:
    """Fork the command, and return its process id; a failure to execute it is written to the pipe ``complaint``."""
    pid = os.fork()
    if pid:
        return pid
    try:
        execute(request)
    except (OSError, ValueError) as error:
        os.write(complaint, explain(error, request).encode("utf-8", "replace"))
    finally:
        os._exit(127)


def execute(request: Request) -> None:
    """Become the command; returns only by an exception."""
    os.setsid()
    for number in set(range(1, signal.NSIG)) & set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir(request.directory)
    refusal = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in candidates(request.arguments[0], request.environment):
        try:
            os.execve(path, request.arguments, request.environment)  # noqa: S606 - no shell is what we want
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = error
    raise refusal


def candidates(program: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """The paths that ``program`` may stand for, by the command's own PATH."""
    if b"/" in program or not program:
        return [program]
    places = environment.get(b"PATH", os.defpath.encode()).split(b":")
    return [os.path.join(place, program) for place in places]


def explain(error: Exception, request: Request) -> str:
    """A line ``status message`` in which ``status`` is what a shell would exit with."""
    said = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and error.filename == request.directory:
        return f"126 cannot enter {show(request.directory)}: {said}"
    status = 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126
    return f"{status} cannot start {show(request.arguments[0])}: {said}"


def show(text: bytes) -> str:
    """A path or program in quotes."""
    return "'" + text.decode("utf-8", "replace") + "'"


def supervise(request: Request, control: int, status: int) -> None:
    """Run the request to its end and report it."""
    watch = Watch(control)
    adopts = adopt_orphans()
    reader, complaint = os.pipe()
    tree = Tree(start(request, complaint), adopts=adopts)
    os.close(complaint)
    report(status, pid=tree.pid)
    in_time = watch.until(lambda: tree.ended() or watch.stopped, request.timeout_seconds, pause_seconds=3600)
    forced = "stopped" if watch.stopped else "" if in_time else "timed_out"
    leftover = end_all(tree, watch, request.grace_seconds)
    complained = os.read(reader, 4096).decode() if tree.status is not None else ""
    report(status, **outcome(tree, forced, complained), leftover=leftover, survivors=tree.names())


def end_all(tree: Tree, watch: Watch, grace_seconds: float) -> list[str]:
    """End what is left of the tree; what outlived the command for longer than a moment is returned by name."""
    ended_by_itself = tree.ended()
    if ended_by_itself and watch.until(tree.empty, SETTLE_SECONDS, pause_seconds=RESCAN_SECONDS):
        return []
    leftover = tree.names() if ended_by_itself else []
    tree.signal(signal.SIGTERM, signal.SIGCONT)
    if watch.until(tree.empty, grace_seconds, pause_seconds=RESCAN_SECONDS):
        return leftover
    if tree.ended() and not ended_by_itself:
        leftover = tree.names()

    def killed() -> bool:
        if tree.empty():
            return True
        tree.signal(signal.SIGKILL)
        return False

    watch.until(killed, KILL_SECONDS, pause_seconds=RESCAN_SECONDS)
    return leftover


def outcome(tree: Tree, forced: str, complained: str) -> dict[str, "int | str | None"]:
    """How the command ended, in the words of `process.Ended`."""
    code = os.waitstatus_to_exitcode(tree.status) if tree.status is not None else None
    fields: dict[str, int | str | None] = {"duration_ms": tree.duration_ms}
    if forced == "timed_out":
        return {**fields, "ended": "timed_out"}
    if forced == "stopped":
        return {**fields, "ended": "signalled", "signal": int(signal.SIGTERM), "message": "the supervisor was stopped"}
    if complained:
        shell_status, _, message = complained.partition(" ")
        return {**fields, "ended": "not_started", "exit_code": int(shell_status), "message": message}
    if code is not None and code < 0:
        return {**fields, "ended": "signalled", "signal": -code}
    return {**fields, "ended": "exited", "exit_code": code}


def report(status: int, **fields: "int | str | list[str] | None") -> None:
    """Write one line of JSON to the status pipe."""
    line = "{" + ",".join(f'"{name}":{encode(value)}' for name, value in fields.items()) + "}\n"
    rest = line.encode("utf-8", "replace")
    while rest:
        rest = rest[os.write(status, rest) :]


def encode(value: "int | str | list[str] | None") -> str:
    """JSON for the few types a report has; what would need an escape is replaced."""
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(encode(item) for item in value) + "]"
    return '"' + "".join(letter if letter.isprintable() and letter not in '"\\' else "?" for letter in value) + '"'


def main() -> None:
    """Serve the request on the control pipe; its number and the status pipe's are the last two arguments."""
    control, status = int(sys.argv[-2]), int(sys.argv[-1])
    for end in (control, status):
        os.set_inheritable(end, False)
    with open(control, "rb", closefd=False) as pipe:
        request = Request(*marshal.load(pipe))  # noqa: S302 - from our own parent, through a pipe nobody else has
    supervise(request, control, status)
    os._exit(0)  # spares the interpreter's own clean-up
