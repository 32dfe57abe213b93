"""What a refused git command left behind, and the one command that takes it back."""

import os
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from gitevals.git import history, refs
from gitevals.git.repo import Repo
from gitevals.running import Running

HEADS = "refs/heads/"
# What git keeps in its directory while an operation is under way, the commands that own it, and its way back. In the
# order in which they explain the situation: a rebase picks, and a pick may leave a merge's files behind.
_STATES = (
    ("rebase-merge/autostash", ("rebase", "pull"), "git rebase --quit && git switch {branch} && {unstash}"),
    ("rebase-merge", ("rebase", "pull"), "git rebase --abort"),
    ("rebase-apply/applying", ("am",), "git am --quit && git reset --merge"),
    ("rebase-apply/autostash", ("rebase", "pull"), "git rebase --quit && git switch {branch} && {unstash}"),
    ("rebase-apply/head-name", ("rebase", "pull"), "git rebase --abort"),
    ("rebase-apply/rebasing", ("rebase", "pull"), "git rebase --quit && git switch {branch}"),
    ("sequencer/todo", ("cherry-pick", "revert"), "git {verb} --quit && git reset --merge"),
    ("CHERRY_PICK_HEAD", ("cherry-pick",), "git cherry-pick --abort"),
    ("REVERT_HEAD", ("revert",), "git revert --abort"),
    ("MERGE_AUTOSTASH", ("merge", "pull"), "git reset --merge && {unstash}"),
    ("MERGE_HEAD", ("merge", "pull"), "git merge --abort"),
)
_UNSTASH = "git stash pop --index"
# What a commit can conclude, and the words for it.
_CONCLUDED = (
    ("MERGE_HEAD", "the merge and what is staged are kept; `git merge --abort` drops both"),
    ("CHERRY_PICK_HEAD", "the cherry-pick and what is staged are kept; `git cherry-pick --abort` drops both"),
    ("REVERT_HEAD", "the revert and what is staged are kept; `git revert --abort` drops both"),
    ("SQUASH_MSG", "the squashed change stays staged; `git reset --merge` drops it"),
)
# These check out before they move the branch; plumbing leaves index and work tree as they were.
_CHECKING_OUT = ("merge", "pull", "reset", "checkout", "switch", "cherry-pick", "revert")


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """``undo`` is the command that restores what was; ``left`` says in words what no single command should decide."""

    undo: str = ""
    left: str = ""


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """A movement of ``branch`` to ``new`` that was refused; ``parent_count`` is that of the commit ``new``."""

    repo: Repo
    branch: str
    new: str
    parent_count: int = 0

    @property
    def has_commit(self) -> bool:
        """Whether there is a commit that the branch was to move to."""
        return bool(self.new.strip("0")) and not self.new.startswith("ref:")


def advice(stopped: Stopped, inherited: Mapping[str, str], running: Running) -> Advice:
    """What to tell about the state that the refused command leaves; nothing where it leaves none."""
    words = running.words
    verb = words[0] if words else inherited.get("GIT_REFLOG_ACTION", "").split(" ")[0].rstrip(":")
    if "--continue" in words and verb != "merge":
        return Advice(left=f"the {verb} and what is staged are kept; `git {verb} --abort` drops both")
    if verb == "commit" or "--continue" in words:
        return Advice(left=_concluded(stopped.repo))
    if not verb:
        return Advice(left="`git status` tells whether the refused command left something")
    undo = _of_state(stopped, verb) or _of_command(stopped, verb, running)
    there = f"cd {shlex.quote(os.getcwd())} && " if running.elsewhere and undo else ""  # hooks run at the top
    return Advice(undo=there + undo)


def _concluded(repo: Repo) -> str:
    ours = "index and work tree are as they were; `git switch -c NAME` takes them to a branch of their own"
    return next((words for name, words in _CONCLUDED if refs.is_under_way(repo, name)), ours)


def _of_state(stopped: Stopped, verb: str) -> str:
    values = {"branch": shlex.quote(stopped.branch), "verb": verb, "unstash": _UNSTASH}
    found = (undo for name, owners, undo in _STATES if verb in owners and refs.is_under_way(stopped.repo, name))
    return next(found, "").format(**values)


def _of_command(stopped: Stopped, verb: str, running: Running) -> str:
    words = running.words
    if verb == "branch":
        return _unrename(stopped.repo, words)
    if verb == "fast-import":
        report = os.path.join(stopped.repo.git_dir, f"fast_import_crash_{running.process}")
        return f"rm -f {shlex.quote(report)}"
    if verb == "rebase" and not _head(stopped.repo):
        return f"git switch {shlex.quote(stopped.branch)}"
    if verb in ("merge", "pull") and stopped.parent_count > 1:
        return "git merge --abort"
    if verb not in _CHECKING_OUT or not stopped.has_commit:
        return ""
    if verb == "reset" and not any(word.startswith(("--h", "--k", "--me")) for word in words):
        soft = any(word.startswith("--s") for word in words)
        return "" if soft else "git reset -q"
    return _of_checkout(stopped)


def _of_checkout(stopped: Stopped) -> str:
    """The way back where index and work tree are at the refused commit, with or without work that is not of it."""
    repo = stopped.repo
    if os.path.lexists(os.path.join(repo.git_dir, "index.lock")):
        return ""
    moved = history.changed_paths(repo, "HEAD", stopped.new)
    asked = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", stopped.new, "--")
    apart = frozenset(filter(None, repo.run(*asked).stdout.decode("utf-8", "surrogateescape").split("\0")))
    if not moved or apart & moved.keys():
        return ""
    return f"git read-tree -m -u {stopped.new[:12]} HEAD" if apart else "git reset --merge"


def _head(repo: Repo) -> str:
    return repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)).removeprefix(HEADS)


def _unrename(repo: Repo, words: Sequence[str]) -> str:
    """The command that makes a branch anew which a refused rename has taken away; git itself puts none back."""
    options = [word for word in words[1:] if word.startswith("-")]
    names = [word for word in words[1:] if not word.startswith("-")]
    renames = any(
        word in ("--move", "--force-move") or (word[1:2] != "-" and set("mM") & set(word)) for word in options
    )
    lost = (_head(repo) if len(names) == 1 else names[0]) if names else ""
    if not renames or not lost or HEADS + lost in refs.values(repo, HEADS + lost):
        return ""
    try:
        with open(os.path.join(repo.common_dir, "logs", "refs", ".tmp-renamed-log"), "rb") as file:
            last = file.read().splitlines()[-1].split(b" ")[1].decode()
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
    return f"git branch {shlex.quote(lost)} {last}"
