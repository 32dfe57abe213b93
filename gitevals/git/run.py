"""Start git and wait for it: the only door to ``subprocess`` for git commands."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Container, Iterator, Mapping, Sequence

from gitevals.errors import GitFailed

Started = subprocess.Popen[bytes]

# What git says of a lock that is there already, and of a disk that takes nothing, in the language that our commands ask
# for; only the words of our message hang on it.
_LOCK = re.compile(r"(?:'([^'\n]+\.lock)'|could not lock config file ([^\n]+)): File exists")
_NO_WRITING = re.compile(
    r"No space left|Read-only file system|Permission denied|Input/output error|[Qq]uota exceeded|File too large"
    r"|couldn't write|unable to (?:write|create)|insufficient permission"
)


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
    held: Sequence[int] = (),
) -> Completed:
    """As `run`, for what must not be cut in two: Ctrl-C does not reach git, and is heard once git has ended.

    ``held`` are open locks that git inherits, so that they are held until it has ended, even if we are killed.
    """
    with _uninterrupted():
        return _ended(arguments, env, cwd, stdin, accept, process_group=0, held=held)


def _ended(
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    stdin: bytes,
    accept: Container[int],
    *,
    process_group: int | None,
    held: Sequence[int] = (),
) -> Completed:
    try:
        done = subprocess.run(
            ["git", *arguments], input=stdin, capture_output=True, env=env, cwd=cwd, check=False,
            process_group=process_group, pass_fds=held,
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
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):  # a job in the background, for one
        yield
        return
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
    causes = [line for line in lines if _NO_WRITING.search(line)]
    ending = f"exit {status}" if status >= 0 else f"it was ended by signal {-status}"
    said = [*lines, *causes][-1] if lines else ending
    verb = next((word for word in arguments if not word.startswith("-") and "=" not in word), "git")
    lock = _LOCK.search(stderr)
    if lock is not None:
        path = (lock[1] or lock[2]).removesuffix(".lock") + ".lock"
        hint = f"delete {path} if no git is at work: one that was killed leaves such a file"
        return GitFailed(f"git {verb} failed: {path} is in its way", status=status, stderr=stderr, hint=hint)
    hint = "look at the permissions and the space there" if causes else ""
    return GitFailed(f"git {verb} failed: {said}", status=status, stderr=stderr, hint=hint)
