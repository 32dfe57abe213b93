"""Each outcome of an evaluation in each mode: the exit of `run`, and what git itself may then do."""

import os
from pathlib import Path

import pytest

from tests.conftest import Place, evals

# What makes the task's check pass, fail or find nothing out, and what makes verification fail.
CHECK = 'if test -e cannot-tell; then exit 125; fi; test -e "ok-$GITEVALS_TASK" || test -e "$HOME/mended"'
OUTCOMES = {
    "passed": "ok-42",
    "failed": "unrelated",
    "inconclusive": "cannot-tell",
    "not_run": "ok-43",
    "verification failed": "broken",
    "nobody ran it": "ok-42",
}


@pytest.fixture
def a_guarded_project(a_project: Place) -> Place:
    """The usual project with a check of three outcomes; to the criterion of task 43 nothing is bound."""
    text = (a_project.path / ".gitevals.yaml").read_text()
    lines = [f"  good: {{command: [sh, -c, '{CHECK}']}}" if "good:" in line else line for line in text.splitlines()]
    a_project.commit({".gitevals.yaml": "\n".join([*lines, '  "43": {AC-1: []}', ""])}, "bind otherwise")
    assert evals(a_project, "hooks", "install").code == 0
    return a_project


def _branch(place: Place, task: str, file: str) -> None:
    place.git("switch", "-q", "-c", f"task/{task}", "main")
    place.commit({file: "1\n"})
    place.git("switch", "-q", "main")


def _merge(place: Place, task: str) -> bool:
    """Whether plain `git merge` brought the branch in; either way the target agrees with what git said."""
    before, wanted = place.git("rev-parse", "main"), place.git("rev-parse", f"task/{task}")
    merged = place.attempt("git", "merge", f"task/{task}").returncode == 0
    assert place.git("rev-parse", "main") == (wanted if merged else before)
    return merged


@pytest.mark.parametrize(
    ("mode", "outcome", "run_exits", "enters"),
    [
        ("enforce", "passed", 0, True),
        ("enforce", "failed", 1, False),
        ("enforce", "inconclusive", 3, False),
        ("enforce", "not_run", 3, False),
        ("enforce", "verification failed", 1, False),
        ("enforce", "nobody ran it", None, False),
        ("observe", "passed", 0, True),
        ("observe", "failed", 1, True),
        ("observe", "inconclusive", 3, True),
        ("observe", "not_run", 3, True),
        ("observe", "verification failed", 1, False),
        ("observe", "nobody ran it", None, True),
        ("off", "failed", 0, True),
        ("off", "verification failed", 1, False),
        ("off", "nobody ran it", None, True),
    ],
)
def test_an_outcome_decides_by_mode_what_enters(
    a_guarded_project: Place, outcome: str, run_exits: int | None, enters: bool
) -> None:
    task = "43" if outcome == "not_run" else "42"
    _branch(a_guarded_project, task, OUTCOMES[outcome])
    if run_exits is not None:
        answer = evals(a_guarded_project, "run", task)
        assert answer.code == run_exits, answer
    assert _merge(a_guarded_project, task) is enters


@pytest.mark.slow
def test_the_last_run_that_saw_the_others_decides(a_guarded_project: Place) -> None:
    _branch(a_guarded_project, "42", "unrelated")
    assert evals(a_guarded_project, "run", "42").code == 1
    mended = Path(os.environ["HOME"], "mended")
    mended.touch()
    answer = evals(a_guarded_project, "run", "42")
    assert answer.code == 0
    assert "try 2 of 2" in answer.out
    mended.unlink()
    assert evals(a_guarded_project, "run", "42", "--force").code == 1
    assert not _merge(a_guarded_project, "42")
    a_guarded_project.git("reset", "-q", "--merge")
    mended.touch()
    assert evals(a_guarded_project, "run", "42").code == 0
    assert _merge(a_guarded_project, "42")
