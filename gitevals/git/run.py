"""Start git and wait for it: the only door to ``subprocess`` for git commands."""

import contextlib
import signal
import subprocess
from collections.abc import Container, Iterator, Mapping, Sequence

from gitevals.errors import GitFailed

Started = subprocess.Popen[bytes]


class Completed:
    """What a git command left behind: ``status``, ``stdout`` bytes, ``stderr`` text."""

    __slots__ = ("status", "stderr", "stdout")

    def __init__(self, status: int, stdout: bytes, stderr: str) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


def run(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: bytes = b"",
    accept: Container[int] = (0,),
) -> Completed:
    """Run ``git <arguments>``; a status outside ``accept`` raises `GitFailed` with git's last line."""
    return _ended(arguments, env, cwd, stdin, accept, process_group=None)


def run_to_its_end(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: bytes = b"",
    accept: Container[int] = (0,),
) -> Completed:
    """As `run`, for what must not be cut in two: Ctrl-C does not reach git, and is heard once git has ended."""
    with _uninterrupted():
        return _ended(arguments, env, cwd, stdin, accept, process_group=0)


def _ended(
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    stdin: bytes,
    accept: Container[int],
    *,
    process_group: int | None,
) -> Completed:
    try:
        done = subprocess.run(
            ["git", *arguments], input=stdin, capture_output=True, env=env, cwd=cwd, check=False,
            process_group=process_group,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitFailed("git is not installed or not on PATH", status=127, hint="install git 2.38 or newer") from error
    stderr = done.stderr.decode("utf-8", "replace")
    if done.returncode not in accept:
        raise failed(arguments, done.returncode, stderr)
    return Completed(done.returncode, done.stdout, stderr)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    caught: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    except ValueError:  # only the main thread is ever interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if caught:
            raise KeyboardInterrupt


def start(arguments: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, piped: bool = False) -> Started:
    """Start ``git <arguments>`` with its output on a pipe (and its input too when ``piped``); stderr is dropped."""
    return subprocess.Popen(
        ["git", *arguments],
        stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=cwd,
    )


def failed(arguments: Sequence[str], status: int, stderr: str) -> GitFailed:
    """The error for a git command that ended with ``status``."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    said = lines[-1] if lines else f"exit {status}"
    verb = next((word for word in arguments if not word.startswith("-") and "=" not in word), "git")
    return GitFailed(f"git {verb} failed: {said}", status=status, stderr=stderr)
