"""Checks that have to say something of the base too, and files that steer test runners: what a pass is worth."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gitevals.evaluate import steering
from tests.conftest import Place, evals
from tests.test_run import configure, run

# At base → how it ends there; what is found for the criterion, what is told of the base, and why.
CASES: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    "fail-fails": ({"at_base": "fail", "command": "exit 1"}, "passed", "failed", ""),
    "fail-passes": (
        {"at_base": "fail", "command": "exit 0"},
        "inconclusive", "passed", "fail-passes: passed_at_base: it has to fail before the change",
    ),
    "fail-cannot-tell": (
        {"at_base": "fail", "command": "exit 125"},
        "inconclusive", "inconclusive",
        "fail-cannot-tell: inconclusive_at_base (exit 125): it has to fail before the change",
    ),
    "fail-spoils": (
        {"at_base": "fail", "command": "echo x >junk; exit 1"},
        "inconclusive", "inconclusive",
        "fail-spoils: inconclusive_at_base (source_changed: new file: junk; exit 1): it has to fail before the change",
    ),
    "fail-refined": (
        {"at_base": "fail", "command": "exit 4", "exit_codes": {"inconclusive": [4]}},
        "inconclusive", "inconclusive", "fail-refined: inconclusive_at_base (exit 4): it has to fail before the change",
    ),
    "pass-passes": ({"at_base": "pass", "command": "exit 0"}, "passed", "passed", ""),
    "pass-fails": (
        {"at_base": "pass", "command": "exit 1"},
        "inconclusive", "failed", "pass-fails: failed_at_base (exit 1): it has to pass before the change",
    ),
    "any": ({"at_base": "any", "command": "exit 1"}, "passed", None, ""),
    "unset": ({"command": "exit 1"}, "passed", None, ""),
    "told-of-the-base": (
        {"at_base": "fail", "command": '[ "$GITEVALS_HEAD" != "$GITEVALS_BASE" ]'}, "passed", "failed", "",
    ),
    "with-graders": (
        {"at_base": "fail", "command": '[ "$(cat grader)" != frozen ]', "graders": ["grader"]}, "passed", "failed", "",
    ),
}  # fmt: skip
BROKEN = {"command": ["sh", "-c", 'echo >>"$RUNS/broken"; exit 1'], "pass_env": ["RUNS"], "at_base": "fail"}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where checks count how often they run on the base."""
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def check(name: str, script: str, **more: object) -> dict[str, object]:
    """A check that passes where the file ``done`` is, and elsewhere counts and does what ``script`` says."""
    counted = f'test -e done || {{ echo >>"$RUNS"/{shlex.quote(name)}; {script}; }}'
    return {"command": ["sh", "-c", counted], "pass_env": ["RUNS"], **more}


def project(place: Place, checks: Mapping[str, Mapping[str, object]], **more: object) -> None:
    """A task with one criterion for each check, and a change that makes ``done``."""
    text = "".join(f"- [ ] [{name}] text\n" for name in checks)
    place.write("tasks/42.md", f"# T\n\n## Acceptance Criteria\n\n{text}")
    configure(place, checks, bindings={"42": {name: [name] for name in checks}}, **more)
    place.git("switch", "-q", "-c", "task/42")
    place.commit({"done": "x\n", "grader": "weakened\n"}, "do 42")
    place.git("switch", "-q", "main")


def counted(runs: Path) -> dict[str, int]:
    return {file.name: len(file.read_text()) for file in runs.iterdir()}


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_check_says_of_the_base_decides_what_its_pass_is_worth(
    again: bool, a_project: Place, runs: Path
) -> None:
    checks = {name: check(name, case["command"], **{key: value for key, value in case.items() if key != "command"})
              for name, (case, *_) in CASES.items()}  # fmt: skip
    a_project.write("grader", "frozen\n")
    project(a_project, {**checks, "broken": BROKEN})
    code, found = run(a_project, "42")
    assert (code, found["result"]) == (1, "failed")
    findings = {row["criterion"]: (row["result"], row["reason"]) for row in found["findings"]}
    assert findings.pop("broken") == ("failed", "broken: exit 1")
    assert findings == {name: (result, reason) for name, (_, result, _, reason) in CASES.items()}
    at_base = {row["id"]: row["at_base"] and row["at_base"]["result"] for row in found["checks"]}
    assert at_base == {**{name: told for name, (_, _, told, _) in CASES.items()}, "broken": None}
    assert all(row["result"] == "passed" for row in found["checks"] if row["id"] != "broken")
    once = {name: 1 for name, (case, *_) in CASES.items() if case.get("at_base", "any") != "any"}
    assert counted(runs) == {**once, "broken": 1}
    feedback = evals(a_project, "report", "42", "--feedback").out
    assert "  fail-passes: passed_at_base: it has to fail before the change\n" in feedback
    if again:
        assert run(a_project, "42", "--force")[0] == 1
        twice = [name for name, number in counted(runs).items() if number == 2]
        assert sorted(twice) == ["broken", "fail-cannot-tell", "fail-refined", "fail-spoils"]


@pytest.mark.slow
def test_what_is_known_of_a_base_is_used_for_this_base_task_check_graders_and_set_up_alone(
    a_project: Place, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks(script: str = "exit 1") -> dict[str, dict[str, object]]:
        return {"a": check("a", script, at_base="fail", graders=["grader"])}

    def runs_of(*arguments: str) -> tuple[int, int]:
        before = counted(runs).get("a", 0)
        assert evals(a_project, "freeze", "42").code == 0
        code, _ = run(a_project, "42", "--force", *arguments)
        return code, counted(runs).get("a", 0) - before

    a_project.write("grader", "frozen\n")
    project(a_project, checks())
    assert [runs_of(), runs_of()] == [(0, 1), (0, 0)]
    a_project.commit({"tasks/43.md": (a_project.path / "tasks/42.md").read_text()}, "another base")
    assert [runs_of(), runs_of("--alone"), runs_of("--alone")] == [(0, 1), (0, 0), (0, 0)]
    configure(a_project, checks("exit 2"), bindings={"*": {"*": ["a"]}})
    assert [runs_of(), runs_of(), runs_of("--alone")] == [(0, 1), (0, 0), (0, 1)]
    code, _ = run(a_project, "43", "--branch", "task/42", "--force")
    assert (code, runs_of()) == (0, (0, 0))
    assert counted(runs)["a"] == 5
    a_project.git("branch", "-q", "other-graders")
    a_project.git("switch", "-q", "other-graders")
    a_project.commit({"grader": "others\n"})
    a_project.git("switch", "-q", "main")
    assert evals(a_project, "freeze", "42", "--graders-from", "other-graders").code == 0
    assert run(a_project, "42", "--force")[0] == 0
    assert counted(runs)["a"] == 6
    configure(a_project, checks("exit 2"), bindings={"*": {"*": ["a"]}}, setup=[["true"]])
    assert [runs_of(), runs_of("--alone")] == [(0, 1), (0, 1)]


@pytest.mark.slow
def test_a_base_that_cannot_be_set_up_makes_nothing_pass_and_alone_looks_at_the_merge_base(
    a_project: Place, runs: Path
) -> None:
    setup = [["sh", "-c", "test -e done || exit 3"]]
    project(a_project, {"a": check("a", "exit 0", at_base="fail")}, setup=setup)
    code, found = run(a_project, "42")
    [finding] = found["findings"]
    told = "a: inconclusive_at_base (setup-1 did not succeed: exit 3): it has to fail before the change"
    assert (code, finding["result"], finding["reason"]) == (3, "inconclusive", told)
    assert counted(runs) == {}
    a_project.commit({"done": "by others\n"}, "the same work, so that set-up would succeed at the tip")
    code, found = run(a_project, "42", "--alone", "--force")
    assert (code, found["findings"][0]["reason"]) == (3, told)


@pytest.mark.slow
def test_a_change_whose_check_failed_before_it_is_merged(a_project: Place, runs: Path) -> None:
    project(a_project, {"a": check("a", "exit 1", at_base="fail")})
    answer = evals(a_project, "merge", "task/42")
    assert answer.code == 0, answer
    assert (a_project.path / "done").exists()
    assert counted(runs) == {"a": 1}


FLAGGED = (
    "conftest.py", "tests/deep/conftest.py", "sitecustomize.py", "src/sitecustomize/__init__.py", "usercustomize.py",
    "evil.pth", "package.json", "web/package.json", "Makefile", "makefile", "GNUmakefile", "a/b.mk", "pytest.ini",
    "PyTest.ini", ".pytest.ini", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "jest.config.js",
    "vitest.config.mts", ".mocharc.cjs", "CMakeLists.txt", "Cargo.toml", "build.rs", ".cargo/config.toml",
    "x/.cargo/config.toml", ".mvn/jvm.config", "go.mod", "pom.xml", "build.gradle.kts", "phpunit.xml.dist", ".npmrc",
    "requirements.txt", "requirements-dev.txt", ".envrc", ".gitattributes", "pytest.py", "pytest/__init__.py",
)  # fmt: skip
NOT_FLAGGED = (
    "README.md", "src/conftest.py.txt", "my_conftest.py", "conftest/__init__.py", "package.json.md", "Makefile.md/x",
    "docs/pytest.ini.rst", "config.toml", "pkg/__init__.py", "conftest.py/x", "mvn/jvm.config", "setup.cfg.d/x",
)  # fmt: skip


def test_names_that_steer_are_told_from_others_at_any_depth() -> None:
    assert [name for name in FLAGGED if not steering.is_steering(name)] == []
    assert [name for name in NOT_FLAGGED if steering.is_steering(name)] == []


def test_a_change_of_what_steers_is_flagged_wherever_the_evaluation_is_shown(a_project: Place) -> None:
    files = {"Makefile": "all:\n", "web/package.json": "{}\n", "tests/acceptance/x": "grader\n", "plain": "x\n"}
    for path, content in files.items():
        a_project.write(path, content)
    always = {"command": ["true"], "graders": ["tests/acceptance"]}
    configure(a_project, {"always": always})
    a_project.git("switch", "-q", "-c", "task/42")
    a_project.git("rm", "-q", "Makefile")
    a_project.git("mv", "web/package.json", "web/old.json")
    a_project.git("mv", "tests/acceptance/x", "tests/acceptance/y")
    a_project.commit({"a/con\nftest.py": "x", "tests/\x1b[31m/conftest.py": "x", "sitecustomize.py": "x", "plain": "y"})
    a_project.git("switch", "-q", "main")
    code, found = run(a_project, "42")
    shown = r'Makefile (removed), sitecustomize.py, "tests/\033[31m/conftest.py", web/package.json (removed)'
    notes = [
        f"steers test runners: {shown}",
        "graders changed, the frozen ones were used: tests/acceptance/x (removed), tests/acceptance/y",
    ]
    assert (code, found["notes"]) == (0, notes)
    terminal = " ".join(evals(a_project, "report", "42").out.split())
    assert all(note in terminal for note in notes), terminal
    document = json.loads(evals(a_project, "report", "42", "--json").out)
    assert document["notes"] == notes
    markdown = evals(a_project, "report", "42", "--markdown").out
    assert "steers test runners: " in markdown
    assert "sitecustomize.py" in markdown
    assert "\x1b" not in markdown
