"""What a refused command leaves is taken back by the command that is printed: nothing of the user's is lost."""

import os
import re
import sys
from pathlib import Path

import pytest

from gitevals import recovery
from gitevals.git.repo import discover
from gitevals.recovery import Advice, Stopped
from gitevals.running import Running
from tests.conftest import Place, evals

# What the user has under way that the command has nothing to do with.
NONE, EDITS, STAGED = "nothing of one's own", "edits", "edits and staged work"
ALL = (NONE, EDITS, STAGED)
AWAY = "git switch -q --detach"
AT_OTHER = "git switch -q other"
APPLY = "git am -q ../patches"
RESOLVE = "echo resolved >clash; git add clash"

# name, the work that git lets stand beside it, commands before it, the refused command, what is told.
Row = tuple[str, tuple[str, ...], str, str, str]
UNDONE: list[Row] = [
    ("merge --ff-only", ALL, "", "git merge -q --ff-only change", "undo"),
    ("merge, hooks passed over", (NONE, EDITS), "", "git merge -q --no-verify --no-ff --no-edit change", "undo"),
    ("merge --no-ff", (NONE, EDITS), "", "git merge -q --no-ff --no-edit change", "undo"),
    ("merge of three", (NONE, EDITS), "", "git merge -q --no-edit change other", "undo"),
    ("merge --autostash", (EDITS, STAGED), "", "git merge -q --autostash --ff-only change", "undo"),
    ("merge --no-ff --autostash", (EDITS, STAGED), "", "git merge -q --autostash --no-ff --no-edit change", "undo"),
    ("pull --ff-only", ALL, "", "git pull -q --ff-only . change", "undo"),
    ("pull --no-rebase", (NONE, EDITS), "", "git pull -q --no-rebase --no-ff --no-edit . change", "undo"),
    ("pull --rebase", (NONE,), "", "git pull -q --rebase . change", "undo"),
    ("rebase", (NONE,), "", "git rebase -q change", "undo"),
    ("rebase of commits", (NONE,), "", "git rebase -q other", "undo"),
    ("rebase --autostash", (EDITS, STAGED), "", "git rebase -q --autostash change", "undo"),
    ("rebase --apply", (NONE,), "", "git rebase -q --apply change", "undo"),
    ("rebase --apply of commits", (NONE,), "", "git rebase -q --apply other", "undo"),
    ("rebase --apply --autostash", (EDITS, STAGED), "", "git rebase -q --apply --autostash change", "undo"),
    ("cherry-pick", (NONE, EDITS), "", "git cherry-pick change~1", "undo"),
    ("cherry-pick of several", (NONE, EDITS), "", "git cherry-pick main..change", "undo"),
    ("revert", (NONE, EDITS), "", "git revert --no-edit HEAD", "undo"),
    ("revert of several", (NONE, EDITS), "", "git revert --no-edit HEAD HEAD~1", "undo"),
    ("reset --hard", (NONE,), "", "git reset -q --hard change", "undo"),
    ("reset --keep", (NONE, EDITS), "", "git reset -q --keep change", "undo"),
    ("reset --merge", (NONE, EDITS), "", "git reset -q --merge change", "undo"),
    ("reset --mixed", (NONE, EDITS), "", "git reset -q change", "undo"),
    ("reset --soft", ALL, "", "git reset -q --soft change", ""),
    ("reset --soft to what is staged", (NONE,), "git read-tree -u -m HEAD change", "git reset -q --soft change", ""),
    ("checkout -B", ALL, AWAY, "git checkout -q -B main change", "undo"),
    ("checkout -B from elsewhere", ALL, AT_OTHER, "git checkout -q -B main change", "undo"),
    ("checkout -B where one stands", ALL, "git switch -q change", "git checkout -q -B main", ""),
    ("switch -C", ALL, AWAY, "git switch -q -C main change", "undo"),
    ("am", (NONE, EDITS), "git format-patch -q --stdout main..change >../patches", APPLY, "undo"),
    ("branch -M", ALL, AT_OTHER, "git branch -M change main", "undo"),
    ("branch -M of the current one", ALL, AT_OTHER, "git branch -M main", "undo"),
    ("branch -f", ALL, AWAY, "git branch -f main change", ""),
    ("update-ref", ALL, "", "git update-ref refs/heads/main change", ""),
    ("fetch", ALL, AWAY, "git fetch -q . change:main", ""),
    ("fast-import", ALL, "", r"printf 'reset refs/heads/main\nfrom refs/heads/change\n\n' | git fast-import --quiet",
     "undo"),
    ("commit", (STAGED,), "", "git commit -qm x", "left"),
    ("commit, hooks passed over", (STAGED,), "", "git commit -n -qm x", "left"),
    ("commit -a", (EDITS, STAGED), "", "git commit -qam x", "left"),
    ("commit --amend", ALL, "", "git commit -q --amend -m x", "left"),
    ("commit of a squash", (NONE, EDITS), "git merge -q --squash change >/dev/null", "git commit -qm x", "left"),
    ("commit of a merge", (NONE, EDITS), "git merge -q --no-commit --no-ff change", "git commit -qm x", "left"),
    ("merge --continue", (NONE, EDITS), f"git merge -q clashing || {{ {RESOLVE}; }}", "git merge --continue", "left"),
    ("cherry-pick --continue", (NONE, EDITS), f"git cherry-pick clashing || {{ {RESOLVE}; }}",
     "git cherry-pick --continue", "left"),
    ("commit of a cherry-pick", (NONE, EDITS), f"git cherry-pick clashing || {{ {RESOLVE}; }}", "git commit -qm x",
     "left"),
    ("am --continue", (NONE, EDITS), "git format-patch -q --stdout -1 clashing >../patches; "
     f"git am -q ../patches || {{ {RESOLVE}; }}", "git am --continue", "left"),
]  # fmt: skip
FEW = {("merge --ff-only", STAGED), ("checkout -B from elsewhere", STAGED), ("rebase", NONE), ("branch -M", NONE)}
ROWS = [
    pytest.param(work, *row[2:], linked, formats, id="-".join((row[0], work, "linked" if linked else "main", formats)),
                 marks=[] if (row[0], work) in FEW and not linked and formats == "files" else [pytest.mark.slow])
    for row in UNDONE for work in row[1] for linked in (False, True) for formats in ("files", "reftable")
]  # fmt: skip


@pytest.fixture
def a_place(a_project: Place) -> Place:
    """A guarded project: ``change`` is two commits ahead of main, ``other`` and ``clashing`` lie apart from it."""
    place = a_project
    for name, content in (("other", {"far": "1\n"}), ("clashing", {"clash": "theirs\n"})):
        place.git("switch", "-q", "-c", name, "main")
        place.commit(content, name)
    place.git("switch", "-q", "main")
    place.commit({"clash": "ours\n"}, "main moves on")
    place.git("switch", "-q", "-c", "change")
    place.git("rm", "-q", "tasks/42.md")
    place.commit({"new": "1\n"}, "change")
    place.commit({"new": "2\n"}, "more")
    place.git("switch", "-q", "main")
    assert evals(place, "hooks", "install").code == 0
    return place


def _work(place: Place, work: str) -> None:
    if work != NONE:
        place.write("README", "edited\n")
        place.write("notes", "nobody tracks this\n")
    if work == STAGED:
        place.write("mine", "staged\n")
        place.write("tasks/43.md", "staged\n")
        place.git("add", "mine", "tasks/43.md")
        place.write("mine", "staged, then edited\n")


_LEFTOVERS = ("MERGE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "MERGE_AUTOSTASH",
              "rebase-merge", "rebase-apply", "sequencer", "index.lock", "HEAD.lock")  # fmt: skip


def _seen(place: Place) -> dict[str, object]:
    """All that a user could miss."""
    git_dir = Path(place.git("rev-parse", "--absolute-git-dir"))
    asked = {
        "branch": ("symbolic-ref", "-q", "HEAD"),
        "index": ("ls-files", "--stage"),
        "status": ("status", "--porcelain"),
        "refs": ("for-each-ref",),
        "picked": ("rev-parse", "-q", "--verify", "CHERRY_PICK_HEAD"),
        "stashed": ("rev-parse", "-q", "--verify", "MERGE_AUTOSTASH"),
    }
    told: dict[str, object] = {name: place.attempt("git", *command).stdout for name, command in asked.items()}
    files = [path for path in place.path.rglob("*") if path.is_file() and ".git" not in path.parts]
    told["files"] = {str(path): path.read_bytes() for path in files if path.name != ".git"}
    told["under way"] = [name for name in _LEFTOVERS if (git_dir / name).exists()]
    told["reports"] = [path.name for path in git_dir.glob("fast_import_crash_*")]
    return told


@pytest.mark.parametrize(
    ("work", "before", "command", "told", "linked", "ref_format"), ROWS, indirect=["ref_format"]
)  # fmt: skip
def test_the_printed_command_restores_what_was(
    work: str, before: str, command: str, told: str, linked: bool, ref_format: str, a_place: Place
) -> None:
    place = a_place
    if linked:
        place.git("switch", "-q", "-c", "parking")
        place.git("worktree", "add", "-q", "../linked", "main")
        place = Place(place.path.with_name("linked"))
    if before:
        done = place.attempt("sh", "-ec", before)
        assert done.returncode == 0, done.stderr.decode()
    _work(place, work)
    was = _seen(place)
    refused = place.attempt("sh", "-c", command)
    if refused.returncode == 0 and ref_format != "files" and "branch -M" in command:
        pytest.skip("where refs are in tables, git shows a rename to no hook")
    said = refused.stderr.decode()
    assert "git-evals: refused" in said, said
    assert [name for name in ("undo", "left") if _printed(name, said)] == ([told] if told else []), said
    for undo in _printed("undo", said):
        done = place.attempt("sh", "-ec", undo)
        assert done.returncode == 0, f"{said}\n{undo}: {done.stderr.decode()}"
    assert _seen(place) == was, said


def test_a_command_that_was_sent_elsewhere_is_taken_back_there(a_place: Place) -> None:
    above = a_place.path.parent
    was = _seen(a_place)
    refused = a_place.attempt("git", "-C", "repo", "merge", "-q", "--ff-only", "change", cwd=above)
    assert a_place.git("status", "--porcelain") != ""
    (undo,) = _printed("undo", refused.stderr.decode())
    assert a_place.attempt("sh", "-ec", undo, cwd=above).returncode == 0
    assert _seen(a_place) == was


def _printed(name: str, text: str) -> list[str]:
    return re.findall(rf"^\s*{name}: (.*)$", text, re.MULTILINE)


LOOK = """#!/bin/sh
[ "$1" = prepared ] && exec '{python}' -c '
import os, sys
sys.path.append("{root}")
from gitevals.running import running_command
print(*(running_command(os.getppid(), proc=proc).words for proc in ("/proc", "/nowhere")), sep="|")
'
:
"""


def test_the_running_command_is_found_with_and_without_a_file_system_of_processes(a_repo: Place) -> None:
    root = Path(recovery.__file__).parents[1]
    hook = a_repo.write(".git/hooks/reference-transaction", LOOK.format(python=sys.executable, root=root))
    hook.chmod(0o755)
    told = a_repo.attempt("git", "-c", "user.name=A U Thor", "branch", "x", "main").stderr.decode().strip()
    read, listed = told.split("|")
    assert listed == "('branch', 'x', 'main')"
    assert read == (listed if os.path.isdir("/proc") else "()")


@pytest.mark.parametrize(
    ("inherited", "advice"),
    [
        ({"GIT_REFLOG_ACTION": "merge change"}, Advice(undo="git reset --merge")),
        ({"GIT_REFLOG_ACTION": "deploy: of tonight"}, Advice()),
        ({}, Advice(left="`git status` tells whether the refused command left something")),
    ],
    ids=["git says", "somebody says", "nobody says"],
)
def test_a_command_that_cannot_be_seen_is_not_guessed(
    inherited: dict[str, str], advice: Advice, a_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_place.git("read-tree", "-u", "-m", "HEAD", "change")
    monkeypatch.chdir(a_place.path)
    stopped = Stopped(repo=discover(), branch="main", new=a_place.git("rev-parse", "change"), parent_count=1)
    assert recovery.advice(stopped, inherited, Running()) == advice
