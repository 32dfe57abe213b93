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


def command(git_dir: str, inherited: Mapping[str, str], *, parent_count: int, moved_ahead: bool) -> str:
    """The command that undoes what a refused movement left in this work tree, or "" where it left nothing.

    Asked while the refused command still runs. ``parent_count`` is that of the refused commit; ``moved_ahead`` says
    that index and work tree are at the refused commit already, while the branch is not.
    """
    for name, undo in _STATES.items():
        if os.path.lexists(os.path.join(git_dir, name)):
            return undo
    action = inherited.get("GIT_REFLOG_ACTION", "")
    verb = action.split(" ")[0].rstrip(":")
    if verb in ("cherry-pick", "revert", "rebase"):
        return f"git {verb} --abort"
    if verb in ("merge", "pull") and parent_count > 1:
        return "git merge --abort"
    return "git reset --merge" if moved_ahead else ""
