"""Which git command is under way around a hook: git itself does not tell it."""

import os

import msgspec

from gitevals.errors import CannotTell

PROC = "/proc"
_ANCESTORS_LIMIT = 12
_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")
# The sub-commands that people move branches with.
_MOVING = frozenset({
    "am", "branch", "checkout", "cherry-pick", "commit", "fast-import", "merge", "pull", "rebase", "reset", "revert",
    "switch",
})  # fmt: skip
_PS_SECONDS = 5.0


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """The git command that is under way: its process, and its arguments from the sub-command on.

    It is ``elsewhere`` if it was sent to another directory than that in which it was typed.
    """

    process: int = 0
    words: tuple[str, ...] = ()
    elsewhere: bool = False


def running_command(process: int, *, proc: str = PROC) -> Running:
    """The git command that runs ``process`` or an ancestor of it; nothing if it is unseen.

    It is read from the file system ``proc`` or, where there is none, from what `ps` lists.
    """
    listed = None if os.path.isdir(proc) else _listed()
    found: list[Running] = []
    for _ in range(_ANCESTORS_LIMIT):
        words, parent = _process(proc, process) if listed is None else listed.get(process, ([], 0))
        found += _of_git(process, words, blurred=listed is not None)
        if parent <= 1:
            break
        process = parent
    nearest = found[0] if found else Running()
    return msgspec.structs.replace(nearest, elsewhere=any(git.elsewhere for git in found))


def _of_git(process: int, words: list[str], *, blurred: bool) -> list[Running]:
    """The process as a git command, if it is one; ``blurred`` words were cut at blanks."""
    name = os.path.basename(words[0]) if words else ""
    if name.startswith("git-"):
        return [Running(process=process, words=(name.removeprefix("git-"), *words[1:]))]
    if name != "git":
        return []
    typed = _from_known_verb(from_verb(words[1:])) if blurred else from_verb(words[1:])
    before = words[1 : len(words) - len(typed)]
    sent = any(word.startswith(("-C", "--git-dir", "--work-tree")) for word in before)
    elsewhere = sent or bool(typed and typed[0].startswith("submodule"))
    return [Running(process=process, words=tuple(typed), elsewhere=elsewhere)]


def from_verb(words: list[str]) -> list[str]:
    """The arguments of a git command line from its sub-command on."""
    skip = False
    for position, word in enumerate(words):
        if skip or word.startswith("-"):
            skip = not skip and word in _OPTIONS_WITH_VALUE
        else:
            return words[position:]
    return []


def _from_known_verb(words: list[str]) -> list[str]:
    """``words`` from the first one that is a sub-command: an option's value may hold the blanks it was cut at."""
    return words[next((position for position, word in enumerate(words) if word in _MOVING), 0) :]


def _process(proc: str, process: int) -> tuple[list[str], int]:
    try:
        with open(f"{proc}/{process}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().rstrip(b"\0").split(b"\0")]
        with open(f"{proc}/{process}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return [], 0
    return words, parent


def _listed() -> dict[int, tuple[list[str], int]]:
    """Every process's arguments and parent as `ps` has them, cut at blanks."""
    from gitevals import process  # only where a hook refuses, and there is no other way to look

    limits = process.Limits(timeout_seconds=_PS_SECONDS, head_bytes=1 << 22)
    try:
        told = process.run(
            ["ps", "-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "args="],
            cwd="/", env={**os.environ, "LC_ALL": "C"}, limits=limits,
        )  # fmt: skip
    except CannotTell:
        return {}
    rows = [os.fsdecode(line).split() for line in told.stdout.kept.splitlines()]
    return {int(row[0]): (row[2:], int(row[1])) for row in rows if len(row) > 2 and row[0].isdigit()}
