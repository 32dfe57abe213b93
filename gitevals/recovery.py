"""What a refused git command left behind, and the one command that takes it back."""

import os
from collections.abc import Mapping


def command(git_dir: str, inherited: Mapping[str, str], parents: int) -> str:
    """The command that undoes what a refused ref movement left in this work tree, or "" where it left nothing.

    ``parents`` is how many parents the refused commit has. Asked while the refused command still runs.
    """
    present = {name for name in _STATES if os.path.lexists(os.path.join(git_dir, name))}
    for name, undo in _STATES.items():
        if name in present:
            return undo
    action = inherited.get("GIT_REFLOG_ACTION", "")
    if action.startswith("rebase") or action.startswith("pull --rebase"):
        return "git rebase --abort"
    if parents > 1 and action.startswith(("merge", "pull")):
        return "git merge --abort"
    if action.startswith(("merge", "pull")):
        return "git reset --merge"
    return ""


# In the order in which they explain the situation: a rebase picks, a pick may leave MERGE_MSG behind.
_STATES = {
    "rebase-merge": "git rebase --abort",
    "rebase-apply": "git rebase --abort",
    "CHERRY_PICK_HEAD": "git cherry-pick --abort",
    "REVERT_HEAD": "git revert --abort",
    "MERGE_HEAD": "git merge --abort",
}
