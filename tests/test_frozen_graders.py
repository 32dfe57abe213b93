"""Graders that are frozen with a contract: which count, where they stand, and what the gate makes of them."""

import json
from pathlib import Path

import pytest

from tests.conftest import TASK, Place, evals
from tests.test_graders import history_of
from tests.test_run import configure, run, state_of

GRADED = {"command": ["sh", "tests/acceptance/check.sh"], "graders": ["tests/acceptance"]}
WORK = "grep -qx done feature || exit 7\n"


@pytest.fixture
def a_graded_project(a_project: Place) -> Place:
    """A project whose one check has graders; a branch ``task/42`` does the work, ``task/43`` weakens the graders."""
    a_project.write("tests/acceptance/check.sh", WORK)
    configure(a_project, {"graded": GRADED})
    for task, files in (("42", {"feature": "done\n"}), ("43", {"tests/acceptance/check.sh": "exit 0\n"})):
        a_project.git("switch", "-q", "-c", f"task/{task}", "main")
        a_project.commit(files, f"do {task}")
        a_project.git("switch", "-q", "main")
    return a_project


def moved_on(place: Place, content: str = "exit 1\n") -> None:
    place.commit({"tests/acceptance/check.sh": content}, "other graders")


def test_a_weakened_grader_fails_as_if_it_had_not_been_and_nothing_of_the_users_is_touched(
    a_graded_project: Place,
) -> None:
    before = state_of(a_graded_project)
    assert evals(a_graded_project, "run", "42", "43", "--branch", "task/42").code == 0
    code, found = run(a_graded_project, "43")
    assert (code, found["checks"][0]["exit_code"]) == (1, 7)
    told = "graders changed, the frozen ones were used: tests/acceptance/check.sh"
    assert found["notes"] == [told]
    for form in ((), ("--markdown",)):
        assert told in " ".join(evals(a_graded_project, "report", "43", *form).out.split()), form
    assert state_of(a_graded_project) == before
    assert run(a_graded_project, "42")[1]["notes"] == []


@pytest.mark.slow
def test_frozen_graders_count_until_they_are_frozen_again(a_graded_project: Place) -> None:
    place = a_graded_project
    assert evals(place, "freeze", "42").code == 0
    old = run(place, "42")[1]["contract"]
    moved_on(place)
    told = evals(place, "contract", "42")
    assert (told.code, "the base's graders moved on" in told.out, "frozen" in told.out) == (0, True, True), told
    shown = json.loads(evals(place, "contract", "42", "--json").out)
    assert (shown["state"], shown["digest"]) == ("frozen", old)
    assert shown["differences"] == ["graders: the files at tests/acceptance are others"]
    code, again = run(place, "42")
    assert (code, again["contract"]) == (0, old)
    assert evals(place, "freeze", "42").code == 0
    frozen = json.loads(evals(place, "contract", "42", "--json").out)
    assert (frozen["state"], len(frozen["freezes"]), frozen["differences"]) == ("frozen", 1, [])
    code, last = run(place, "42")
    assert (code, last["contract"] != old, last["checks"][0]["exit_code"]) == (1, True, 1)
    assert evals(place, "verify", "--branch", "task/42", "--task", "42").code == 1


@pytest.mark.slow
@pytest.mark.parametrize("object_format", ["sha1", "sha256"], indirect=True)
def test_frozen_graders_can_be_read_in_the_ledger_and_outlive_a_gc(a_graded_project: Place) -> None:
    place = a_graded_project
    place.git("switch", "-q", "-c", "elsewhere")
    moved_on(place, f"{WORK}exit 0 # elsewhere\n")
    place.git("switch", "-q", "main")
    assert evals(place, "freeze", "42", "--graders-from", "elsewhere").code == 0
    place.git("branch", "-q", "-D", "elsewhere")
    place.git("reflog", "expire", "--expire=now", "--all")
    place.git("gc", "-q", "--prune=now")
    code, found = run(place, "42")
    name = f"refs/evals/contracts/tester:42/{found['contract']}/graders/tests/acceptance/check.sh"
    assert (code, place.git("cat-file", "-p", name)) == (0, f"{WORK}exit 0 # elsewhere")


REFUSED = {
    "absent": ({}, "there is no grader at tests/acceptance in ", "--graders-from"),
    "a link": ({"tests/acceptance": ("120000", "x")}, "grader tests/acceptance is a symbolic link", "plain"),
    "a link below": ({"tests/acceptance/x": ("120000", "y")}, "grader tests/acceptance/x is a symbolic link", "plain"),
    "a submodule": ({"tests/acceptance": ("160000", "1" * 40)}, "grader tests/acceptance is a submodule", "plain"),
    "behind a link": (
        {"tests": ("120000", "real"), "real/acceptance/x": ("100644", "x")}, "there is no grader at ", "--graders-from",
    ),
    "in LFS": (
        {".gitattributes": ("100644", "*.bin filter=lfs\n"),
         "tests/acceptance/x.bin": ("100644", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")},
        "the grader tests/acceptance/x.bin is an LFS pointer", "outside of LFS",
    ),
}  # fmt: skip


@pytest.mark.slow
def test_what_is_no_plain_grader_is_refused_and_nothing_is_written(a_graded_project: Place) -> None:
    place = a_graded_project
    config = place.git("cat-file", "-p", "main:.gitevals.yaml")
    base = {".gitevals.yaml": ("100644", config), "tasks/42.md": ("100644", TASK.format(task=42))}
    stream = [history_of(f"odd/{n}", "", {**base, **edits}) for n, (edits, _, _) in enumerate(REFUSED.values())]
    place.git("fast-import", "--quiet", stdin=b"".join(stream))
    before = place.git("for-each-ref")
    for number, (message, hint) in enumerate((message, hint) for _, message, hint in REFUSED.values()):
        answer = evals(place, "freeze", "42", "--graders-from", f"odd/{number}")
        assert (answer.code, message in answer.err, hint in answer.err) == (2, True, True), answer
    assert evals(place, "freeze", "42", "--graders-from", "no-such").code == 2
    assert place.git("for-each-ref") == before


@pytest.mark.slow
def test_the_gate_takes_evidence_of_frozen_graders_and_says_which_ones_a_movement_changes(
    a_graded_project: Place,
) -> None:
    place = a_graded_project
    base = place.git("rev-parse", "main")
    place.git("switch", "-q", "task/42")
    place.commit({"tests/acceptance/check.sh": "exit 0\n"}, "weaken")
    place.git("switch", "-q", "main")
    assert evals(place, "hooks", "install").code == 0
    assert evals(place, "freeze", "42").code == 0
    place.git("switch", "-q", "-c", "elsewhere")
    moved_on(place, f"{WORK}true\n")
    place.git("switch", "-q", "main")
    assert run(place, "42")[0] == 0
    answer = evals(place, "verify", "--task", "42", "--branch", "task/42", "--json")
    note = {"severity": "note", "code": "config_change"}
    reasons = json.loads(answer.out)["reasons"]
    assert (answer.code, [{key: row[key] for key in note} for row in reasons]) == (0, [note]), answer
    assert "the grader tests/acceptance is changed by this movement" in reasons[0]["message"]
    merged = place.attempt("git", "merge", "-q", "--no-ff", "-m", "merge\n\nTask: 42", "task/42")
    assert merged.returncode == 0, merged.stderr
    tip = place.git("rev-parse", "main")
    assert _verdict(place, tip) == "evidenced"
    assert evals(place, "freeze", "42", "--graders-from", "elsewhere").code == 0
    assert _verdict(place, tip) == "evidenced"
    assert evals(place, "verify", "--ref", "refs/heads/main", "--old", base, "--new", tip).code != 0


def _verdict(place: Place, commit: str) -> str:
    rows = json.loads(evals(place, "audit", "--json").out)["rows"]
    return next(str(row["verdict"]) for row in rows if row["commit"] == commit)


@pytest.mark.slow
def test_a_clone_that_has_the_contract_examines_with_the_graders_that_were_frozen(
    a_graded_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_graded_project
    assert evals(place, "freeze", "42").code == 0
    frozen = run(place, "42")[1]["contract"]
    moved_on(place)
    place.git("clone", "-q", str(place.path), str(tmp_path / "clone"))
    clone = Place(tmp_path / "clone")
    clone.git("branch", "-q", "task/42", "origin/task/42")
    clone.git("config", "evals.trustBranch", "main")
    monkeypatch.setenv("GITEVALS_WRITER", "another")
    clone.git("fetch", "-q", "origin", "refs/evals/contracts/*:refs/evals-remote/origin/contracts/*")
    code, found = run(clone, "42")
    assert (code, found["contract"]) == (0, frozen)
    assert len(json.loads(evals(clone, "contract", "42", "--json").out)["freezes"]) == 1


@pytest.mark.slow
def test_tasks_share_a_check_if_its_graders_are_the_same_whatever_else_they_are_bound_to(
    a_graded_project: Place,
) -> None:
    place = a_graded_project
    checks = {"graded": GRADED, "own": {"command": ["true"], "graders": ["README"]}}
    configure(place, checks, bindings={"42": {"*": ["graded", "own"]}, "43": {"*": ["graded"]}})
    assert evals(place, "freeze", "42").code == 0
    assert evals(place, "run", "42", "43", "--branch", "task/42").code == 0
    moved_on(place)
    assert evals(place, "freeze", "43").code == 0
    answer = evals(place, "run", "42", "43", "--branch", "task/42")
    assert (answer.code, "froze different graders of the check graded" in answer.err) == (2, True), answer


@pytest.mark.slow
def test_a_base_without_the_graders_is_told_how_to_give_them(a_graded_project: Place) -> None:
    place = a_graded_project
    place.git("branch", "-q", "with", "main")
    place.git("rm", "-q", "-r", "tests")
    place.commit({}, "no graders")
    before = place.git("for-each-ref")
    for command in (("freeze", "42"), ("run", "42"), ("contract", "42")):
        answer = evals(place, *command)
        assert answer.code == 2, answer
        assert "there is no grader at tests/acceptance" in answer.err, answer
        assert "--graders-from REF" in answer.err, answer
    assert place.git("for-each-ref") == before
    assert evals(place, "freeze", "42", "--graders-from", "with").code == 0
    assert evals(place, "contract", "42").code == 0
    assert run(place, "42")[0] == 0
    assert evals(place, "verify", "--task", "42", "--branch", "task/42").code == 0
