"""What a refused git command left behind, and the one command that takes it back."""

import os
import shlex
from collections.abc import Mapping

import msgspec

# What git keeps in its directory while an operation is under way, the commands that own it, and its way back. In the
# order in which they explain the situation: a rebase picks, and a pick may leave a merge's files behind.
_STATES = (
    ("rebase-merge", ("rebase", "pull"), "git rebase --abort"),
    ("rebase-apply/applying", ("am",), "git am --abort"),
    ("rebase-apply/head-name", ("rebase", "pull"), "git rebase --abort"),
    ("rebase-apply/rebasing", ("rebase", "pull"), "git rebase --quit && git switch {branch}"),
    ("sequencer/todo", ("cherry-pick", "revert"), "git {verb} --quit && git reset --merge"),
    ("CHERRY_PICK_HEAD", ("cherry-pick", "commit"), "git cherry-pick --abort"),
    ("REVERT_HEAD", ("revert", "commit"), "git revert --abort"),
    ("MERGE_HEAD", ("merge", "pull", "commit"), "git merge --abort"),
)
# These check out before they move the branch; `commit` and plumbing leave index and work tree as they were.
_CHECKING_OUT = ("merge", "pull", "reset", "checkout", "switch", "cherry-pick", "revert")
_ANCESTORS_LIMIT = 6
_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What can be seen while the refused command still runs.

    ``parent_count`` is that of the refused commit; ``moved_ahead`` says that index and work tree are at the refused
    commit already, while the branch is not. ``head`` is the branch that is checked out ("": detached), ``branches``
    are those that exist.
    """

    git_dir: str
    common_dir: str
    parent_count: int = 0
    moved_ahead: bool = False
    head: str = ""
    branches: frozenset[str] = frozenset()


def command(left: Left, inherited: Mapping[str, str], *, branch: str) -> str:
    """The command that undoes what a refused movement of ``branch`` left, or "" where it left nothing."""
    words = running_command(os.getppid())
    verb = inherited.get("GIT_REFLOG_ACTION", "").split(" ")[0].rstrip(":") or (words[0] if words else "")
    for name, owners, undo in _STATES:
        if os.path.lexists(os.path.join(left.git_dir, name)) and (verb in owners or not verb):
            return undo.format(branch=shlex.quote(branch), verb=verb)
    if verb == "branch":
        return _unrename(left, words)
    if verb == "rebase" and not left.head:
        return f"git switch {shlex.quote(branch)}"
    if verb in ("merge", "pull") and left.parent_count > 1:
        return "git merge --abort"
    return "git reset --merge" if left.moved_ahead and verb in _CHECKING_OUT else ""


def _unrename(left: Left, words: list[str]) -> str:
    """The command that makes a branch anew which a refused rename has taken away; git itself puts none back."""
    options = [word for word in words[1:] if word.startswith("-")]
    names = [word for word in words[1:] if not word.startswith("-")]
    renames = any(
        word in ("--move", "--force-move") or (word[1:2] != "-" and set("mM") & set(word)) for word in options
    )
    lost = (left.head if len(names) == 1 else names[0]) if names else ""
    if not renames or not lost or lost in left.branches:
        return ""
    try:
        with open(os.path.join(left.common_dir, "logs", "refs", ".tmp-renamed-log"), "rb") as file:
            last = file.read().splitlines()[-1].split(b" ")[1].decode()
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
    return f"git branch {shlex.quote(lost)} {last}"


def running_command(process: int) -> list[str]:
    """Sub-command and arguments of the git that runs ``process`` or an ancestor of it; nothing if it is unseen."""
    for _ in range(_ANCESTORS_LIMIT):
        words, process = _process(process)
        if words and os.path.basename(words[0]) == "git":
            return from_verb(words[1:])
        if process <= 1:
            break
    return []


def from_verb(words: list[str]) -> list[str]:
    """The arguments of a git command line from its sub-command on."""
    skip = False
    for position, word in enumerate(words):
        if skip or word.startswith("-"):
            skip = not skip and word in _OPTIONS_WITH_VALUE
        else:
            return words[position:]
    return []


def _process(process: int) -> tuple[list[str], int]:
    """A process's arguments and its parent, from /proc; nothing where there is none."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().rstrip(b"\0").split(b"\0")]
        with open(f"/proc/{process}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return [], 0
    return words, parent
