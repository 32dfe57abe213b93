"""Running programs under limits, with real programs."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gitevals.process import Ended, Filter, Limits, Outcome, run
from gitevals.supervise import from_ps, process_table

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 30
PATH = {"PATH": os.environ["PATH"]}

# Writes its process id to the file $1, ignores SIGTERM if $2 says so, and stays.
STAY = 'test $2 = stubborn && trap "" TERM; echo $$ >$1.part; mv $1.part $1; exec sleep 600'
# Leaves argv[2:] behind in a new session, as a child of nobody, with no environment; returns once argv[1] exists.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.argv[2], sys.argv[2:], {})
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""
# Runs argv[3:] with a directory argv[1] to work in and a grace period of argv[2] seconds.
CALLER = """
import os, sys
from gitevals.process import Limits, run
limits = Limits(timeout_seconds=600, grace_seconds=float(sys.argv[2]))
outcome = run(sys.argv[3:], cwd=sys.argv[1], env={"PATH": os.environ["PATH"]}, limits=limits)
print(outcome.exit_code, outcome.stdout.kept, outcome.stderr.kept)
"""


def attempt(
    *argv: str,
    cwd: Path | str = "/",
    env: dict[str, str] = PATH,
    timeout_seconds: float = 60,
    grace_seconds: float = 0.2,
    head_bytes: int = 256 * 1024,
    tail_bytes: int = 768 * 1024,
    on_tick: Callable[[float], None] | None = None,
    filters: Callable[[], Filter] | None = None,
) -> Outcome:
    limits = Limits(
        timeout_seconds=timeout_seconds, grace_seconds=grace_seconds, head_bytes=head_bytes, tail_bytes=tail_bytes
    )
    return run(argv, cwd=str(cwd), env=env, limits=limits, on_tick=on_tick, filters=filters)


def python(program: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-S", "-c", program, *map(str, arguments)]


def stay(file: Path, *, stubborn: bool = False) -> list[str]:
    return ["/bin/sh", "-c", STAY, "sh", str(file), "stubborn" if stubborn else "obedient"]


def daemon(file: Path, *, stubborn: bool = False) -> list[str]:
    return python(DAEMON, file, *stay(file, stubborn=stubborn))


def caller(directory: Path, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", CALLER, str(directory), "0.2", *command]


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_gone(file: Path) -> bool:
    try:
        os.kill(int(file.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("exit_code", [0, 1, 125, 126, 127])
def test_a_command_that_ends_by_itself_gives_its_exit_code(exit_code: int) -> None:
    outcome = attempt("sh", "-c", f"exit {exit_code}")
    assert (outcome.ended, outcome.exit_code, outcome.signal) == (Ended.EXITED, exit_code, None)
    assert (outcome.leftover, outcome.survivors, outcome.message) == ((), (), "")


def test_a_command_ended_by_a_signal_says_which() -> None:
    outcome = attempt("sh", "-c", "kill -ABRT $$")
    assert (outcome.ended, outcome.exit_code, outcome.signal) == (Ended.SIGNALLED, None, signal.SIGABRT)


@pytest.mark.parametrize(
    ("program", "exit_code", "said"),
    [
        ("no-such-program", 127, "No such file"),
        ("./no-such-file", 127, "No such file"),
        ("./notes", 126, "Permission denied"),
        ("./not-a-program", 126, "Exec format error"),
        ("nul\0inside", 126, "null"),
        ("", 126, "empty"),
    ],
)
def test_a_program_that_cannot_be_started_is_told_from_one_that_failed(
    program: str, exit_code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("#!/bin/sh\n")
    (tmp_path / "not-a-program").write_text("exit 0\n")
    (tmp_path / "not-a-program").chmod(0o755)
    outcome = attempt(program, cwd=tmp_path)
    assert (outcome.ended, outcome.exit_code) == (Ended.NOT_STARTED, exit_code)
    assert said in outcome.message


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    outcome = attempt("true", cwd=tmp_path / "gone")
    assert (outcome.ended, outcome.exit_code) == (Ended.NOT_STARTED, 126)
    assert f"cannot enter '{tmp_path}/gone'" in outcome.message


def test_programs_are_looked_up_on_the_path_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "only-here").write_text("#!/bin/sh\necho found in $PWD\n")
    (tmp_path / "only-here").chmod(0o755)
    outcome = attempt("only-here", cwd=tmp_path, env={"PATH": f"/nowhere:{tmp_path}"})
    assert outcome.stdout.kept == f"found in {tmp_path}\n".encode()


def test_the_environment_is_exactly_as_given() -> None:
    env = {"ONE": "1", "EMPTY": "", "ODD": "a\nb=\udcff", "PYTHONHOME": "/nowhere"}
    outcome = attempt(shutil.which("env") or "env", "-0", env=env)
    assert sorted(outcome.stdout.kept.split(b"\0")[:-1]) == [
        b"EMPTY=",
        b"ODD=a\nb=\xff",
        b"ONE=1",
        b"PYTHONHOME=/nowhere",
    ]


def test_no_file_of_ours_is_open_in_the_command(tmp_path: Path) -> None:
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        listing = "import os\nfor n in range(256):\n try: os.fstat(n)\n except OSError: continue\n print(n, end=' ')"
        assert attempt(*python(listing)).stdout.kept == b"0 1 2 "


def test_a_command_starts_with_default_signal_handling() -> None:
    states = (
        "from signal import *; print([n for n in valid_signals() if getsignal(n) == SIG_IGN], pthread_sigmask(0, []))"
    )
    plain = subprocess.run(python(states), capture_output=True, check=True).stdout
    previous = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert attempt(*python(states)).stdout.kept == plain
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_command_has_neither_input_nor_terminal_even_if_the_caller_has(tmp_path: Path) -> None:
    nosy = "test -t 0 && exit 11; (: </dev/tty) 2>/dev/null && exit 12; cat"
    in_terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    has_terminal = ["sh", "-c", 'test -t 0 && : </dev/tty && exec "$@"', "sh"]
    command = [*has_terminal, *caller(tmp_path, ["sh", "-c", nosy])]
    done = subprocess.run([sys.executable, "-c", in_terminal, *command], capture_output=True, cwd=ROOT, check=False)
    assert done.stdout.strip() == b"0 b'' b''"


def test_streams_are_kept_apart_and_as_bytes() -> None:
    every_byte = "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff\\x00')"
    outcome = attempt(*python(every_byte))
    assert outcome.stdout.kept == bytes(range(256))
    assert outcome.stderr.kept == b"\xff\x00"
    assert not outcome.stdout.truncated


@pytest.mark.parametrize(
    ("head_bytes", "tail_bytes", "kept"),
    [
        (4, 6, b"0123456789"),
        (3, 4, b"012\n[git-evals: 3 bytes left out]\n6789"),
        (0, 2, b"\n[git-evals: 8 bytes left out]\n89"),
        (2, 0, b"01\n[git-evals: 8 bytes left out]\n"),
    ],
)
def test_head_and_tail_are_kept_around_a_line_that_counts_the_rest(
    head_bytes: int, tail_bytes: int, kept: bytes
) -> None:
    outcome = attempt("printf", "0123456789", head_bytes=head_bytes, tail_bytes=tail_bytes)
    assert outcome.stdout.kept == kept
    assert (outcome.stdout.total_bytes, outcome.stdout.truncated) == (10, kept != b"0123456789")


class Late:
    """Says everything at the end, one word replaced by a longer one."""

    def __init__(self) -> None:
        self.count = 0
        self.held = b""

    def feed(self, chunk: bytes) -> bytes:
        self.held += chunk
        return b""

    def finish(self) -> bytes:
        self.count = self.held.count(b"345")
        return self.held.replace(b"345", b"<three>")


@pytest.mark.parametrize(
    ("head_bytes", "tail_bytes", "kept"),
    [(20, 20, b"012<three>6789"), (5, 5, b"012<t\n[git-evals: 4 bytes left out]\n>6789")],
)
def test_a_filter_comes_before_the_cut_and_has_each_stream_for_itself(
    head_bytes: int, tail_bytes: int, kept: bytes
) -> None:
    program = 'printf 01234; printf 01 >&2; printf 56789; printf 345 >&2; kill -9 "$$"'
    outcome = attempt("sh", "-c", program, head_bytes=head_bytes, tail_bytes=tail_bytes, filters=Late)
    assert (outcome.stdout.kept, outcome.stdout.total_bytes, outcome.stdout.redacted) == (kept, 10, 1)
    assert (outcome.stderr.kept, outcome.stderr.total_bytes, outcome.stderr.redacted) == (b"01<three>", 5, 1)
    assert attempt("printf", "345").stdout.redacted == 0


def test_a_filter_that_fails_is_told_and_does_not_hold_the_command(tmp_path: Path) -> None:
    class Broken(Late):
        def feed(self, chunk: bytes) -> bytes:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt("sh", "-c", "trap '' PIPE; while echo on; do :; done; : >ended", cwd=tmp_path, filters=Broken)
    assert (tmp_path / "ended").exists()


def test_any_amount_of_output_fits_in_bounded_memory() -> None:
    flood = "import os\nfor n in range(2000): os.write(1, b'x' * 100_000)\nos.write(1, b'the end')"
    tracemalloc.start()
    outcome = attempt(*python(flood))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.stdout.total_bytes == 200_000_007
    assert len(outcome.stdout.kept) == 1024 * 1024 + len("\n[git-evals: 198951431 bytes left out]\n")
    assert outcome.stdout.kept.endswith(b"xthe end")
    assert peak_bytes < 16 * 1024 * 1024


def test_a_command_over_its_time_is_ended(tmp_path: Path) -> None:
    outcome = attempt(*stay(tmp_path / "pid"), timeout_seconds=0.7)
    assert (outcome.ended, outcome.exit_code, outcome.survivors) == (Ended.TIMED_OUT, None, ())
    assert is_gone(tmp_path / "pid")


def test_a_command_that_ends_well_when_its_time_is_over_has_still_timed_out() -> None:
    polite = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"
    outcome = attempt("sh", "-c", polite, timeout_seconds=0.7, grace_seconds=PATIENCE_SECONDS)
    assert (outcome.ended, outcome.exit_code) == (Ended.TIMED_OUT, None)
    assert outcome.stdout.kept == b"bye\n"


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    outcome = attempt(*stay(tmp_path / "pid", stubborn=True), timeout_seconds=0.7)
    assert outcome.ended is Ended.TIMED_OUT
    assert is_gone(tmp_path / "pid")


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_daemon_left_behind_is_ended_and_named(stubborn: bool, tmp_path: Path) -> None:
    outcome = attempt(*daemon(tmp_path / "pid", stubborn=stubborn))
    assert (outcome.ended, outcome.exit_code, outcome.survivors) == (Ended.EXITED, 0, ())
    assert outcome.leftover == (f"{(tmp_path / 'pid').read_text().strip()} sleep",)
    assert is_gone(tmp_path / "pid")


def test_a_daemon_is_ended_too_when_time_is_over(tmp_path: Path) -> None:
    script = '"$@" & while :; do sleep 0.05; done'
    outcome = attempt("sh", "-c", script, "sh", *daemon(tmp_path / "pid", stubborn=True), timeout_seconds=1.5)
    assert outcome.ended is Ended.TIMED_OUT
    assert is_gone(tmp_path / "pid")


def test_a_child_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    script = 'setsid "$@" & while ! test -e pid; do sleep 0.05; done'
    outcome = attempt("sh", "-c", script, "sh", *stay(tmp_path / "pid"), cwd=tmp_path)
    assert outcome.exit_code == 0
    assert is_gone(tmp_path / "pid")


def test_a_background_process_that_holds_the_output_open_does_not_hold_us() -> None:
    outcome = attempt("sh", "-c", "sleep 600 & echo done")
    assert outcome.stdout.kept == b"done\n"
    assert [line.split()[1] for line in outcome.leftover] == ["sleep"]


def test_what_ends_by_itself_just_after_the_command_is_not_left_over() -> None:
    outcome = attempt("sh", "-c", "(sleep 0.02; echo late) & exit 0", grace_seconds=PATIENCE_SECONDS)
    assert (outcome.leftover, outcome.stdout.kept) == ((), b"late\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_stranger_that_holds_the_output_open_does_not_hold_us(tmp_path: Path) -> None:
    script = "echo $$ >part; mv part pid; while ! test -e go; do sleep 0.05; done; echo done"
    held: list[int] = []

    def hold(_: float) -> None:
        held.append(os.open(f"/proc/{(tmp_path / 'pid').read_text().strip()}/fd/1", os.O_WRONLY))
        (tmp_path / "go").touch()

    rescue = threading.Timer(PATIENCE_SECONDS, lambda: os.close(held.pop()))
    rescue.start()
    outcome = attempt("sh", "-c", script, cwd=tmp_path, on_tick=lambda seconds: None if held else hold(seconds))
    rescue.cancel()
    assert outcome.stdout.kept == b"done\n"
    assert held, "the stranger had to let go first"
    os.close(held.pop())


def test_progress_is_told_with_the_time_that_has_passed() -> None:
    ticks: list[float] = []
    attempt("sleep", "0.8", on_tick=ticks.append)
    assert len(ticks) >= 1
    assert ticks == sorted(ticks)


def test_an_exception_while_waiting_ends_the_tree_and_goes_on(tmp_path: Path) -> None:
    def fail_once_running(_: float) -> None:
        if (tmp_path / "pid").exists():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt(*stay(tmp_path / "pid", stubborn=True), grace_seconds=2.5, on_tick=fail_once_running)
    assert is_gone(tmp_path / "pid")


def test_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    command = ["sh", "-c", '"$@"; sleep 600', "sh", *daemon(tmp_path / "pid", stubborn=True)]
    with subprocess.Popen(
        caller(tmp_path, command), cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        assert comes_true((tmp_path / "pid").exists)
        os.killpg(running.pid, signal.SIGINT)
        assert running.stderr
        assert running.stderr.read().endswith(b"KeyboardInterrupt\n")
    assert is_gone(tmp_path / "pid")


def test_the_end_of_the_caller_is_the_end_of_the_command(tmp_path: Path) -> None:
    command = ["sh", "-c", '"$@"; sleep 600', "sh", *daemon(tmp_path / "pid", stubborn=True)]
    with subprocess.Popen(caller(tmp_path, command), cwd=ROOT) as running:
        assert comes_true((tmp_path / "pid").exists)
        running.kill()
    assert comes_true(lambda: is_gone(tmp_path / "pid"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_ends_its_supervisor_has_not_passed(number: int, tmp_path: Path) -> None:
    script = '"$@" & while ! test -e pid; do sleep 0.05; done; trap "exit 0" TERM; kill -$0 $PPID; sleep 600'
    outcome = attempt("sh", "-c", script, str(int(number)), *stay(tmp_path / "pid"), cwd=tmp_path)
    assert (outcome.ended, outcome.exit_code, outcome.signal) == (Ended.SIGNALLED, None, number)
    assert "supervisor" in outcome.message
    assert comes_true(lambda: is_gone(tmp_path / "pid"))


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps")
def test_ps_and_proc_tell_the_same_about_us() -> None:
    rows = [[row for row in table() if row.pid == os.getpid()] for table in (from_ps, process_table)]
    assert [(row.parent, row.group) for [row] in rows] == [(os.getppid(), os.getpgrp())] * 2
