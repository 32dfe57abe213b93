"""What a refused git command left behind, and the one command that takes it back."""

import os
from collections.abc import Mapping

# In the order in which they explain the situation: a rebase picks, and a pick may leave a merge's files behind.
_STATES = {
    "rebase-merge": "git rebase --abort",
    "rebase-apply/applying": "git am --abort",
    "rebase-apply": "git rebase --abort",
    "CHERRY_PICK_HEAD": "git cherry-pick --abort",
    "REVERT_HEAD": "git revert --abort",
    "MERGE_HEAD": "git merge --abort",
}
# These check out before they move the branch; `commit` and plumbing leave index and work tree as they were.
_CHECKING_OUT = ("merge", "pull", "reset", "checkout", "switch", "cherry-pick", "revert")
_ANCESTORS_LIMIT = 6
_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")


def command(git_dir: str, inherited: Mapping[str, str], *, parent_count: int, moved_ahead: bool) -> str:
    """The command that undoes what a refused movement left in this work tree, or "" where it left nothing.

    Asked while the refused command still runs. ``parent_count`` is that of the refused commit; ``moved_ahead`` says
    that index and work tree are at the refused commit already, while the branch is not.
    """
    for name, undo in _STATES.items():
        if os.path.lexists(os.path.join(git_dir, name)):
            return undo
    verb = inherited.get("GIT_REFLOG_ACTION", "").split(" ")[0].rstrip(":") or running_verb(os.getppid())
    if verb in ("merge", "pull") and parent_count > 1:
        return "git merge --abort"
    return "git reset --merge" if moved_ahead and verb in _CHECKING_OUT else ""


def running_verb(process: int) -> str:
    """The sub-command of the git that runs ``process`` or one of its ancestors, or "" where that cannot be seen."""
    for _ in range(_ANCESTORS_LIMIT):
        words, process = _process(process)
        if words and os.path.basename(words[0]) == "git":
            return verb_of(words[1:])
        if process <= 1:
            break
    return ""


def verb_of(words: list[str]) -> str:
    """The sub-command among the arguments of a git command line."""
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in _OPTIONS_WITH_VALUE
        else:
            return word
    return ""


def _process(process: int) -> tuple[list[str], int]:
    """A process's arguments and its parent, from /proc; nothing where there is none."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")]
        with open(f"/proc/{process}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return [], 0
    return words, parent
