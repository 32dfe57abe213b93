"""Every ordinary way onto a protected branch: refused without evidence, allowed with the evidence of the key."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.conftest import Answer, Place, evals

# How a change lies, before the commands of a way: "ahead" of main, "apart" from it, or "clash"ing with it.
# A way is its name, that, and shell commands; the last one moves main. Before it, a command that fails is a conflict.
Way = tuple[str, str, tuple[str, ...]]

PARAMETERS = ("name", "lies", "commands", "linked", "object_format", "ref_format")
FORMAT = ["object_format", "ref_format"]
AWAY = "git switch -q --detach"

WAYS: list[Way] = [
    ("merge", "apart", ("git merge --no-edit task/42",)),
    ("merge fast-forward", "ahead", ("git merge task/42",)),
    ("merge --ff-only", "ahead", ("git merge --ff-only task/42",)),
    ("merge --no-ff", "ahead", ("git merge --no-ff --no-edit task/42",)),
    ("merge --squash", "ahead", ("git merge --squash task/42", "git commit -qm squashed")),
    ("merge --squash apart", "apart", ("git merge --squash task/42", "git commit -qm squashed")),
    ("merge --no-commit", "apart", ("git merge --no-commit task/42", "git commit --no-edit")),
    ("merge --continue", "apart", ("git merge --no-commit task/42", "git merge --continue")),
    ("merge of three", "apart", ("git merge --no-edit task/42 side",)),
    ("merge -s ours", "apart", ("git merge -s ours --no-edit beside",)),
    ("pull", "apart", ("git pull -q --no-rebase --no-edit . task/42",)),
    ("pull --ff-only", "ahead", ("git pull -q --ff-only . task/42",)),
    ("pull --rebase", "ahead", ("git pull -q --rebase . task/42",)),
    ("rebase", "ahead", ("git rebase task/42",)),
    ("rebase --apply", "ahead", ("git rebase --apply task/42",)),
    ("rebase --exec", "ahead", ("git rebase --exec true task/42",)),
    ("rebase from elsewhere", "ahead", ("git switch -qC elsewhere", "git rebase task/42 main")),
    ("cherry-pick", "apart", ("git cherry-pick task/42",)),
    ("cherry-pick --ff", "ahead", ("git cherry-pick --ff task/42",)),
    ("cherry-pick --no-commit", "apart", ("git cherry-pick --no-commit task/42", "git commit -qm picked")),
    ("revert", "apart", ("git revert --no-edit HEAD",)),
    ("reset --hard", "ahead", ("git reset -q --hard task/42",)),
    ("reset --keep", "ahead", ("git reset -q --keep task/42",)),
    ("reset --merge", "ahead", ("git reset -q --merge task/42",)),
    ("update-ref", "ahead", ("git update-ref refs/heads/main task/42",)),
    ("update-ref with the old value", "ahead", ("git update-ref refs/heads/main task/42 main",)),
    ("update-ref --stdin", "ahead", ("echo update refs/heads/main task/42 | git update-ref --stdin",)),
    ("update-ref in steps", "ahead", (
        r"printf 'start\nupdate refs/heads/main task/42\nprepare\ncommit\n' | git update-ref --stdin",)),
    ("update-ref HEAD", "ahead", ("git update-ref HEAD task/42",)),
    ("commit-tree", "apart", ("git update-ref refs/heads/main $(git commit-tree task/42^{tree} -p main -m x)",)),
    ("branch -f", "ahead", (AWAY, "git branch -f main task/42")),
    ("checkout -B", "ahead", (AWAY, "git checkout -q -B main task/42")),
    ("switch -C", "ahead", (AWAY, "git switch -q -C main task/42")),
    ("worktree add -B", "ahead", (AWAY, "git worktree add -q -B main ../added task/42")),
    ("fetch into it", "ahead", (AWAY, "git fetch -q . task/42:main")),
    ("push into it", "ahead", (AWAY, "git push -q . task/42:main")),
    ("push --no-verify into it", "ahead", (AWAY, "git push -q --no-verify . task/42:main")),
    ("fast-import", "ahead", (
        r"printf 'reset refs/heads/main\nfrom refs/heads/task/42\n\n' | git fast-import --quiet",)),
    ("commit", "ahead", ("git restore --source=task/42 -SW .", "git commit -qm x")),
    ("commit --no-verify", "ahead", (
        "git restore --source=task/42 -SW .", "git commit -n -qm 'x\n\nTask: 42'")),
    ("commit -a", "ahead", ("git restore --source=task/42 -SW .", "git commit -qam x")),
    ("commit after a conflict", "clash", ("git merge task/42", "git commit --no-edit")),
    ("merge --continue after a conflict", "clash", ("git merge task/42", "git merge --continue")),
    ("cherry-pick after a conflict", "clash", ("git cherry-pick task/42", "git cherry-pick --continue")),
    ("am", "ahead", ("git am -q ../42.patch",)),
    ("am --3way", "apart", ("git am -q --3way ../42.patch",)),
    ("replay", "apart", ("git replay --advance main main..task/42 >../moves && git update-ref --stdin <../moves",)),
]  # fmt: skip
# These move main and leave index and work tree where they were.
ELSEWHERE = ("update-ref", "commit-tree", "fast-import", "replay")
# A few ways stand for all, which are tried in the slow group, each in the main work tree and in a linked one.
FORMATS = [("sha1", "files"), ("sha256", "files"), ("sha1", "reftable")]
DEFAULT = {
    (name, linked, FORMATS[0])
    for name, linked in (("merge", False), ("merge --ff-only", False), ("merge --squash", True), ("commit", True),
                         ("commit after a conflict", False), ("update-ref", False), ("reset --hard", True),
                         ("branch -D packed", False), ("a file", False))
}  # fmt: skip


def _rows(table: list[Way]) -> list[ParameterSet]:
    return [
        pytest.param(*way, linked, *formats, id="-".join((way[0], "linked" if linked else "main", *formats)),
                     marks=[] if (way[0], linked, formats) in DEFAULT else [pytest.mark.slow])
        for way in table for linked in (False, True) for formats in FORMATS if not (linked and formats in FORMATS[1:])
    ]  # fmt: skip


Lying = Callable[[str, bool], Place]


@pytest.fixture
def lying(
    a_project: Place,
    mode: str,
    object_format: str,
    ref_format: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lying:
    """A guarded project in which the change lies as it is asked for; the place is its linked work tree, if asked."""

    def made(lies: str, linked: bool) -> Place:
        kept = tmp_path_factory.getbasetemp() / f"made-{lies}-{object_format}-{ref_format}-{mode}"
        if not kept.exists():
            _lay(a_project, lies)
            assert evals(a_project, "hooks", "install").code == 0
            shutil.copytree(a_project.path, kept, symlinks=True)
        shutil.rmtree(a_project.path)
        shutil.copytree(kept, a_project.path, symlinks=True)
        a_project.git("update-index", "-q", "--refresh")
        patch = a_project.git("format-patch", "--stdout", "-1", "task/42")
        (tmp_path / "42.patch").write_text(f"{patch}\n")
        if not linked:
            return a_project
        a_project.git("switch", "-q", "-c", "parking")
        a_project.git("worktree", "add", "-q", str(tmp_path / "linked"), "main")
        return Place(tmp_path / "linked")

    return made


def _lay(place: Place, lies: str) -> None:
    place.git("switch", "-q", "-c", "task/42")
    place.commit({"ok-42": "done\n"} | ({"clash": "theirs\n"} if lies == "clash" else {}), "do task 42")
    if lies == "apart":
        for name in ("side", "beside"):
            place.git("switch", "-q", "-c", name, "main")
            place.commit({name: "1\n"}, name)
    place.git("switch", "-q", "main")
    if lies != "ahead":
        place.commit({"clash": "ours\n"} if lies == "clash" else {"elsewhere": "moved on\n"}, "main moves on")


@pytest.mark.parametrize(PARAMETERS, _rows(WAYS), indirect=FORMAT)
def test_a_protected_branch_moves_only_on_evidence(
    name: str, lies: str, commands: tuple[str, ...], linked: bool, lying: Lying
) -> None:
    place = lying(lies, linked)
    main = place.git("rev-parse", "main")
    refused = _perform(place, commands)
    if b"is not a git command" in refused.stderr:
        pytest.skip("the installed git has no such command")
    assert refused.returncode != 0, refused.stdout
    said = refused.stderr.decode() + refused.stdout.decode()
    assert said.count("git-evals: refused") == 1, said
    assert place.git("rev-parse", "main") == main
    _undo(place, said, main)
    (hint,) = _printed("hint", said)
    answer = _as_printed(place, hint)
    assert answer.code == 0, f"{said}\n{answer}"
    assert place.git("rev-parse", "main") == main
    allowed = _perform(place, commands)
    assert allowed.returncode == 0, allowed.stderr.decode()
    assert place.git("rev-parse", "main") != main
    assert place.git("status", "--porcelain") == "" or name.startswith(ELSEWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["observe"])
@pytest.mark.parametrize("command", ["merge --no-ff --no-edit task/42", "merge --ff-only task/42"])
def test_what_is_said_of_an_allowed_movement_is_said_once(command: str, lying: Lying) -> None:
    place = lying("ahead", False)
    place.write("README", "changed\n")
    allowed = place.attempt("git", *command.split())
    assert allowed.returncode == 0
    assert allowed.stderr.count(b"git-evals: allowed") == 1, allowed.stderr.decode()


# What no evidence lets in: the branch would be gone, or lose commits.
NEVER: list[Way] = [
    ("commit --amend", "ahead", ("git commit -q --amend -m reworded",)),
    ("commit --amend -n", "ahead", ("git commit -q -n --amend -m reworded",)),
    ("branch -D", "ahead", (AWAY, "git branch -q -D main")),
    ("branch -D packed", "ahead", (AWAY, "git pack-refs --all", "git branch -q -D main")),
    ("branch -m to another name", "ahead", (AWAY, "git branch -m main old")),
    ("branch -m where it is checked out", "ahead", ("git branch -m old",)),
    ("update-ref -d", "ahead", (AWAY, "git update-ref -d refs/heads/main")),
    ("update-ref delete", "ahead", (AWAY, "echo delete refs/heads/main | git update-ref --stdin")),
    ("update-ref to no relative", "ahead", ("git update-ref refs/heads/main $(git commit-tree main^{tree} -m x)",)),
    ("reset --hard", "ahead", ("git reset -q --hard HEAD~1",)),
    ("reset --keep", "ahead", ("git reset -q --keep HEAD~1",)),
    ("reset --soft", "ahead", ("git reset -q --soft HEAD~1",)),
    ("reset --mixed", "ahead", ("git reset -q HEAD~1",)),
    ("rebase", "apart", ("git rebase -q task/42",)),
    ("rebase --apply", "apart", ("git rebase -q --apply task/42",)),
    ("rebase -i", "apart", ("git rebase -q -i task/42",)),
    ("pull --rebase", "apart", ("git pull -q --rebase . task/42",)),
    ("checkout -B", "ahead", (AWAY, "git checkout -q -B main HEAD~1")),
    ("branch -f", "ahead", (AWAY, "git branch -f main HEAD~1")),
    ("fetch +", "ahead", (AWAY, "git branch older main~1; git fetch -q . +older:main; git branch -qD older; exit 1")),
    ("push +", "ahead", (AWAY, "git push -q . +main~1:main")),
    ("push +, hooks passed over", "ahead", (AWAY, "git push -q --no-verify . +main~1:main")),
    ("push of nothing", "ahead", (AWAY, "git push -q --no-verify . :main")),
    ("filter-branch", "ahead", (
        "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'cat; echo x' main",)),
]  # fmt: skip


@pytest.mark.parametrize(PARAMETERS, _rows(NEVER), indirect=FORMAT)
def test_a_protected_branch_loses_nothing(
    name: str, lies: str, commands: tuple[str, ...], linked: bool, lying: Lying, ref_format: str
) -> None:
    place = lying(lies, linked)
    main = place.git("rev-parse", "main")
    branches = place.git("for-each-ref", "refs/heads")
    head = _head(place) if AWAY not in commands else None
    refused = _perform(place, commands)
    said = refused.stderr.decode() + refused.stdout.decode()
    if name == "filter-branch":  # which keeps what the hook says to itself
        assert "Could not rewrite refs/heads/main" in said
        assert place.git("rev-parse", "main") == main
        return
    if refused.returncode == 0 and ref_format != "files" and "branch -m" in name:
        pytest.skip("where refs are in tables, git shows a rename to no hook")
    assert "git-evals: refused" in said
    assert re.search(r"would (lose \d commit|be deleted)", said), said
    assert place.git("rev-parse", "main") == main
    _undo(place, said, main)
    assert head in (None, _head(place))
    assert place.git("for-each-ref", "refs/heads") == branches
    assert refused.returncode != 0, said


# Git shows these to no hook, or only recent git does.
UNSEEN: list[Way] = [
    ("symbolic-ref", "ahead", (AWAY, "git symbolic-ref refs/heads/main refs/heads/task/42")),
    ("branch -M", "ahead", (AWAY, "git branch -M task/42 main")),
    ("branch -C", "ahead", (AWAY, "git branch -C task/42 main")),
    ("a file", "ahead", ('git rev-parse task/42 >"$(git rev-parse --git-common-dir)/refs/heads/main"',)),
    ("packed-refs", "ahead", (
        "git pack-refs --all",
        'cd "$(git rev-parse --git-common-dir)"; new=$(git rev-parse task/42); '
        'sed "s,.* refs/heads/main\\$,$new refs/heads/main," packed-refs >changed; mv changed packed-refs')),
]  # fmt: skip


@pytest.mark.parametrize(PARAMETERS, _rows(UNSEEN), indirect=FORMAT)
def test_what_git_shows_to_no_hook_is_found_by_audit(
    name: str, lies: str, commands: tuple[str, ...], linked: bool, lying: Lying, ref_format: str
) -> None:
    if ref_format != "files" and name in ("a file", "packed-refs"):
        pytest.skip("refs are kept in no file of their own")
    place = lying(lies, linked)
    before = place.git("for-each-ref", "refs/heads")
    done = _perform(place, commands)
    if done.returncode != 0:
        assert b"git-evals: refused" in done.stderr
        _undo(place, done.stderr.decode(), place.git("rev-parse", "main"))
        assert place.git("for-each-ref", "refs/heads") == before
        return
    answer = evals(place, "audit", "main")
    assert answer.code == 1
    assert f"refused: {place.git('rev-parse', 'main')[:12]}" in answer.out, answer


def _head(place: Place) -> str:
    return place.attempt("git", "symbolic-ref", "-q", "HEAD").stdout.decode()


def _perform(place: Place, commands: tuple[str, ...]) -> "subprocess.CompletedProcess[bytes]":
    for command in commands[:-1]:
        if place.attempt("sh", "-ec", command).returncode != 0:
            place.write("clash", "resolved\n")
            place.git("add", "clash")
    return place.attempt("sh", "-c", commands[-1])


def _printed(name: str, text: str) -> list[str]:
    return re.findall(rf"^\s*{name}: (.*)$", text, re.MULTILINE)


def _undo(place: Place, said: str, main: str) -> None:
    for undo in _printed("undo", said):
        done = place.attempt("sh", "-ec", undo)
        assert done.returncode == 0, f"{undo}: {done.stderr.decode()}"
    if not _printed("left", said):
        assert place.git("status", "--porcelain") == "", said
    if not _head(place):
        place.git("switch", "-q", "main")
    place.git("reset", "-q", "--hard", "HEAD")
    assert place.git("rev-parse", "main") == main


def _as_printed(place: Place, hint: str) -> Answer:
    """The hint's command; ``TASK`` in it is for the person to fill in."""
    words = ["42" if word == "TASK" else word for word in shlex.split(hint)]
    assert words[:3] == ["git", "evals", "run"], hint
    return evals(place, *words[2:])
