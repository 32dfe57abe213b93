"""The operator's command that tells a task's text, such as ``gh issue view 42 --json title,body``."""

import os
from collections.abc import Mapping
from shlex import join

import msgspec

from gitevals import process
from gitevals.contracts.stating import Ask
from gitevals.errors import CannotTell
from gitevals.git.repo import Repo

TIMEOUT_SECONDS = 60
TEXT_LIMIT_BYTES = 512 * 1024
SAID_LIMIT = 300
_BODIES = ("body", "description")  # gh and glab


def asking(repo: Repo, inherited: Mapping[str, str]) -> Ask:
    """A way to ask: each command is run once, as its operator would run it, in the top directory."""
    told: dict[tuple[str, ...], bytes | CannotTell] = {}

    def ask(command: tuple[str, ...]) -> bytes:
        if command not in told:
            try:
                told[command] = text_of(_output(command, repo.worktree or repo.git_dir, inherited))
            except CannotTell as error:
                told[command] = error
        found = told[command]
        if isinstance(found, CannotTell):
            raise found
        return found

    return ask


def text_of(output: bytes) -> bytes:
    """The Markdown in what a command printed: itself, or title and body of one JSON object."""
    if not output.lstrip().startswith(b"{"):
        return output
    try:
        found = msgspec.json.decode(output)
    except (msgspec.MsgspecError, RecursionError):
        return output
    title, bodies = found.get("title"), [found[name] for name in _BODIES if name in found]
    body = next((text for text in bodies if text), "" if bodies else None)
    if not isinstance(body, str):
        raise CannotTell(
            f"`tasks.command` told JSON without text in {' or '.join(_BODIES)}: {', '.join(sorted(found)[:10])}",
            hint='let it print Markdown, or JSON like {"title": …, "body": …}',
        )
    heading = f"# {' '.join(title.split())}\n\n" if isinstance(title, str) and title.strip() else ""
    return f"{heading}{body}".encode("utf-8", "surrogatepass")


def _output(command: tuple[str, ...], directory: str, inherited: Mapping[str, str]) -> bytes:
    env = {name: value for name, value in inherited.items() if not name.startswith(("GIT_", "GITEVALS_"))}
    limits = process.Limits(timeout_seconds=TIMEOUT_SECONDS, head_bytes=TEXT_LIMIT_BYTES, tail_bytes=0)
    done = process.run(command, cwd=os.path.abspath(directory), env=env, limits=limits)
    if done.ended is process.Ended.EXITED and done.exit_code == 0 and not done.stdout.truncated:
        return done.stdout.kept
    raise CannotTell(
        f"`{join(command)}` did not tell the task's text: {_why(done)}",
        hint="try the command by hand; it is `tasks.command` of .gitevals.yaml",
    )


def _why(done: process.Outcome) -> str:
    if done.stdout.truncated:
        return f"it printed more than {TEXT_LIMIT_BYTES} bytes"
    said = " ".join(done.stderr.kept.decode("utf-8", "replace").split())[:SAID_LIMIT]
    if done.ended is process.Ended.TIMED_OUT:
        return f"it took longer than {TIMEOUT_SECONDS} s"
    if done.ended is process.Ended.NOT_STARTED:
        return done.message
    how = f"exit {done.exit_code}" if done.exit_code is not None else f"signal {done.signal}"
    return f"{how}{': ' + said if said else ''}"
