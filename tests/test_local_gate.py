"""Every ordinary way onto a protected branch: refused without evidence, allowed with the evidence of the key."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Answer, Place, evals, with_task_branch

Way = tuple[str, str, tuple[tuple[str, ...], ...]]

# name, how the branch lies ("ahead" of main or "apart" from it), the commands; the last one moves main.
WAYS: list[Way] = [
    ("merge", "apart", (("merge", "--no-edit", "task/42"),)),
    ("merge fast-forward", "ahead", (("merge", "task/42"),)),
    ("merge --ff-only", "ahead", (("merge", "--ff-only", "task/42"),)),
    ("merge --no-ff", "ahead", (("merge", "--no-ff", "--no-edit", "task/42"),)),
    ("merge --squash", "ahead", (("merge", "--squash", "task/42"), ("commit", "-qm", "squashed"))),
    ("merge --squash apart", "apart", (("merge", "--squash", "task/42"), ("commit", "-qm", "squashed"))),
    ("merge --no-commit", "apart", (("merge", "--no-commit", "task/42"), ("commit", "--no-edit"))),
    ("cherry-pick", "apart", (("cherry-pick", "task/42"),)),
    ("rebase", "ahead", (("rebase", "task/42"),)),
    ("rebase --apply", "ahead", (("rebase", "--apply", "task/42"),)),
    ("reset --hard", "ahead", (("reset", "--hard", "task/42"),)),
    ("update-ref", "ahead", (("update-ref", "refs/heads/main", "task/42"),)),
    ("branch -f", "ahead", (("switch", "-q", "--detach"), ("branch", "-f", "main", "task/42"))),
    ("checkout -B", "ahead", (("switch", "-q", "--detach"), ("checkout", "-q", "-B", "main", "task/42"))),
    ("fetch into it", "ahead", (("switch", "-q", "--detach"), ("fetch", "-q", ".", "task/42:main"))),
    (
        "commit --no-verify",
        "ahead",
        (("restore", "--source=task/42", "-SW", "."), ("commit", "-n", "-qm", "x\n\nTask: 42")),
    ),
    ("commit", "ahead", (("restore", "--source=task/42", "-SW", "."), ("commit", "-qm", "x"))),
    ("commit after a conflict", "clash", (("merge", "task/42"), ("commit", "--no-edit"))),
    ("am", "ahead", (("am", "-q", "../42.patch"),)),
]


@pytest.fixture
def a_place(a_project: Place, tmp_path: Path) -> Callable[[str, bool], Place]:
    def made(lies: str, linked: bool) -> Place:
        with_task_branch(a_project)
        (tmp_path / "42.patch").write_text(a_project.git("format-patch", "--stdout", "-1", "task/42") + "\n")
        if lies == "clash":
            a_project.git("switch", "-q", "task/42")
            a_project.commit({"clash": "theirs\n"}, "clash")
            a_project.git("switch", "-q", "main")
            a_project.commit({"clash": "ours\n"}, "main clashes")
        if lies == "apart":
            a_project.commit({"elsewhere": "moved on\n"}, "main moves on")
        if linked:
            a_project.git("switch", "-q", "-c", "parking")
            a_project.git("worktree", "add", "-q", str(tmp_path / "linked"), "main")
        assert evals(a_project, "hooks", "install").code == 0
        return Place(tmp_path / "linked") if linked else a_project

    return made


def _printed(name: str, text: str) -> list[str]:
    return re.findall(rf"^\s*{name}: (.*)$", text, re.MULTILINE)


# In a linked work tree, a few ways stand for all that are tried beside them in the slow group; so do some elsewhere.
LINKED = ("merge", "merge --squash", "reset --hard", "commit")
ALIKE = (
    "merge fast-forward", "merge --squash apart", "merge --no-commit", "rebase --apply", "branch -f", "checkout -B",
    "fetch into it",
)  # fmt: skip
ROWS = [
    pytest.param(*way, linked, id=f"{way[0]}-{'linked' if linked else 'main'}",
                 marks=[pytest.mark.slow] if way[0] in ALIKE or (linked and way[0] not in LINKED) else [])
    for way in WAYS for linked in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("name", "lies", "commands", "linked"), ROWS)
def test_a_protected_branch_moves_only_on_evidence(
    name: str, lies: str, commands: tuple[tuple[str, ...], ...], linked: bool, a_place: Callable[[str, bool], Place]
) -> None:
    place = a_place(lies, linked)
    main = place.git("rev-parse", "main")
    refused = _perform(place, commands)
    assert refused.returncode != 0, refused.stdout
    said = refused.stderr.decode() + refused.stdout.decode()
    assert "git-evals: refused" in said
    assert place.git("rev-parse", "main") == main
    _undo(place, said, main)
    (hint,) = _printed("hint", said)
    answer = _as_printed(place, hint)
    assert answer.code == 0, f"{said}\n{answer}"
    assert place.git("rev-parse", "main") == main
    allowed = _perform(place, commands)
    assert allowed.returncode == 0, allowed.stderr.decode()
    assert place.git("rev-parse", "main") != main
    assert place.git("status", "--porcelain") == "" or name in ("update-ref",)


def _perform(place: Place, commands: tuple[tuple[str, ...], ...]) -> "subprocess.CompletedProcess[bytes]":
    for command in commands[:-1]:
        if place.attempt("git", *command).returncode != 0:
            place.write("clash", "resolved\n")
            place.git("add", "clash")
    return place.attempt("git", *commands[-1])


def _undo(place: Place, said: str, main: str) -> None:
    for undo in _printed("undo", said):
        done = place.attempt("sh", "-ec", undo)
        assert done.returncode == 0, f"{undo}: {done.stderr.decode()}"
    if place.attempt("git", "symbolic-ref", "-q", "HEAD").returncode != 0:
        place.git("switch", "-q", "main")
    if "commit" not in said:
        assert place.git("status", "--porcelain") == "", said
    place.git("reset", "-q", "--hard", "HEAD")
    assert place.git("rev-parse", "HEAD") == main


def _as_printed(place: Place, hint: str) -> Answer:
    """The hint's command; ``TASK`` in it is for the person to fill in."""
    words = ["42" if word == "TASK" else word for word in shlex.split(hint)]
    assert words[:3] == ["git", "evals", "run"], hint
    return evals(place, *words[2:])
