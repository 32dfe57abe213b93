"""`git evals doctor`: what it proves, what it finds, and that it changes nothing but what `--clean` says."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitevals.install import configured, hooks
from gitevals.install.doctor import size
from gitevals.install.probe import probe
from gitevals.model.contract import Mode
from gitevals.session import session
from tests.conftest import CONFIG, Place, evals, with_task_branch

HOOK = ".git/hooks/reference-transaction"
Findings = list[dict[str, Any]]


@pytest.fixture
def a_guarded_project(a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch, no_program: None) -> Place:
    """A project with hook files, whatever git could do: most of what can go wrong with hooks goes wrong with files."""
    with monkeypatch.context() as patch:
        patch.chdir(a_guarded_project.path)
        with session() as here:
            if configured.known(here.repo):
                hooks.install(here.repo, here.objects, files=True)
    return a_guarded_project


def examined(place: Place, *options: str, code: int) -> Findings:
    answer = evals(place, "doctor", "--json", *options)
    assert answer.code == code, answer
    document = json.loads(answer.out)
    assert document["ok"] == (code == 0)
    findings: Findings = document["findings"]
    assert {entry["state"] for entry in findings} <= {"ok", "note", "problem"}
    assert any(entry["state"] == "problem" for entry in findings) == (code == 1)
    return findings


def named(findings: Findings, name: str) -> Findings:
    return [entry for entry in findings if entry["name"] == name]


def everything(place: Place) -> tuple[str, list[str]]:
    """All refs with their values and logs, and every file of git's own that is no object."""
    shown = place.git("for-each-ref", "--format=%(refname) %(objectname)") + place.git("reflog", "main")
    files = sorted(str(path) for path in (place.path / ".git").rglob("*") if "objects" not in path.parts)
    return shown, [path for path in files if "/git-evals/cache" not in path]


def _nothing(place: Place) -> None:
    pass


def _removed(place: Place) -> None:
    (place.path / HOOK).unlink()


def _not_executable(place: Place) -> None:
    (place.path / HOOK).chmod(0o644)


def _elsewhere(place: Place) -> None:
    place.git("config", "core.hooksPath", "/dev/null")


def _replaced(place: Place, text: str) -> None:
    (place.path / HOOK).write_text(f"#!/bin/sh\n{text}\n")


def _silent(place: Place) -> None:
    _replaced(place, "exit 0")


def _somebody_refuses(place: Place) -> None:
    _replaced(place, 'echo "not today \033[31m" >&2; exit 1')


def _without_python(place: Place) -> None:
    file = place.path / HOOK
    file.write_text(file.read_text().replace("python='", "python='/nowhere"))


def _unlisted(place: Place) -> None:
    place.write(".git/git-evals/protected", "refs/heads/other\n# end 1\n")


# name → what is done to the hooks, the state of the gate, and what is said of it
GATES: dict[str, tuple[Callable[[Place], None], str, str]] = {
    "the hook is there": (_nothing, "ok", "tried and refused"),
    "it was removed": (_removed, "problem", "git asks nobody"),
    "it is not executable": (_not_executable, "problem", "git asks nobody"),
    "git looks elsewhere": (_elsewhere, "problem", "git asks nobody"),
    "it was replaced": (_silent, "problem", "git asks nobody"),
    "another tool refuses": (_somebody_refuses, "problem", "the gate was not reached"),
    "its interpreter is gone": (_without_python, "problem", "cannot start git-evals"),
    "the protected list is wrong": (_unlisted, "problem", "git asks nobody"),
}


def test_the_gate_is_proven_by_a_movement_that_never_happens(
    a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = (a_guarded_project.path / HOOK).read_text()
    monkeypatch.chdir(a_guarded_project.path)
    tip = a_guarded_project.git("rev-parse", "main")
    with session() as here:
        for name, (spoil, state, said) in GATES.items():
            a_guarded_project.git("pack-refs", "--all")
            spoil(a_guarded_project)
            before = everything(a_guarded_project)
            gate = probe(here.repo, str(a_guarded_project.path), "refs/heads/main", tip, Mode.ENFORCE)
            assert (gate.state, said in gate.text) == (state, True), (name, gate)
            assert bool(gate.repair) == (state == "problem")
            assert everything(a_guarded_project) == before, name
            a_guarded_project.attempt("git", "config", "--unset", "core.hooksPath")
            a_guarded_project.write(".git/git-evals/protected", "refs/heads/main\n# end 1\n")
            a_guarded_project.write(HOOK, hook).chmod(0o755)


def test_a_clone_that_is_as_it_should_be_has_no_problem(a_guarded_project: Place) -> None:
    before = everything(a_guarded_project)
    [gate] = named(examined(a_guarded_project, code=0), "gate")
    assert gate["text"].endswith("a deletion of refs/heads/main was tried and refused")
    assert everything(a_guarded_project) == before


@pytest.mark.parametrize("mode", ["observe"])
def test_a_lenient_gate_is_proven_by_what_it_says(a_guarded_project: Place) -> None:
    [gate] = named(examined(a_guarded_project, code=0), "gate")
    assert "allowed with a note, as mode observe has it" in gate["text"]
    _removed(a_guarded_project)
    [gate] = named(examined(a_guarded_project, code=1), "gate")
    assert "git asks nobody" in gate["text"]


def test_every_work_tree_is_tried(a_guarded_project: Place, tmp_path: Path) -> None:
    for name in ("good", "bad", "gone"):
        a_guarded_project.git("worktree", "add", "-q", "--detach", str(tmp_path / name))
    (tmp_path / "gone").rename(tmp_path / "moved")
    a_guarded_project.git("config", "extensions.worktreeConfig", "true")
    Place(tmp_path / "bad").git("config", "--worktree", "core.hooksPath", "/dev/null")
    found = named(examined(a_guarded_project, code=1), "gate")
    assert [entry["state"] for entry in found] == ["ok", "problem", "note", "ok"]
    assert str(tmp_path / "bad") in found[1]["text"]
    assert found[2]["repair"] == "git worktree prune"


def test_an_interrupt_waits_until_git_has_let_go_of_the_branch(a_guarded_project: Place) -> None:
    _replaced(a_guarded_project, f"kill -{signal.SIGINT.value} {os.getpid()}; exit 1")
    before = everything(a_guarded_project)
    assert evals(a_guarded_project, "doctor").code == 130
    assert everything(a_guarded_project) == before


def _no_trust(place: Place) -> None:
    place.git("config", "--unset", "evals.trustBranch")


def _trust_gone(place: Place) -> None:
    place.git("config", "evals.trustBranch", "gone")


def _configured(place: Place, text: str) -> None:
    (place.path / ".git/hooks").rename(place.path / ".git/away")
    place.commit({".gitevals.yaml": text}, "configure")
    (place.path / ".git/away").rename(place.path / ".git/hooks")


def _broken(place: Place) -> None:
    _configured(place, CONFIG.format(mode="perhaps"))


def _sloppy(place: Place) -> None:
    """A configuration that parses and has every flaw that one can have."""
    place.git("branch", "bare", "main~")
    text = CONFIG.format(mode="enforce").replace("repository: r1\n", "").replace("[main]", "[main, bare]")
    _configured(place, text + '  "42": {AC-9: [good]}\nwishes: 1\n')
    (place.path / HOOK).unlink()


def _no_list(place: Place) -> None:
    (place.path / ".git/git-evals/protected").unlink()


def _wrong_list(place: Place) -> None:
    _unlisted(place)
    _silent(place)


def _odd_history(place: Place) -> None:
    """A line that is no record in our own ledger, by a commit that is not ours, in a clone that is not whole."""
    place.git("notes", "--ref=evals/tester", "add", "-m", "x" * 70 * 1024)
    place.write(".git/shallow", place.git("rev-parse", "HEAD") + "\n")
    place.git("config", "remote.origin.promisor", "true")


Expected = tuple[str, str, str, str]
INSTALL = "git evals hooks install"

# what is done → for each finding that comes of it: its name and state, what it and its repair say
TROUBLES: dict[Callable[[Place], None], list[Expected]] = {
    _no_trust: [("trusted branch", "problem", "none is chosen", "git evals init")],
    _trust_gone: [("trusted branch", "problem", "no such branch", "evals.trustBranch")],
    _broken: [("trusted branch", "problem", "perhaps", "write")],
    _sloppy: [
        ("protected branch", "note", "refs/heads/bare", "commit .gitevals.yaml to bare"),
        ("configuration", "note", "wishes", "x-"),
        ("configuration", "note", "no repository id", "repository: r"),
        ("tasks", "note", '"AC-9"', "AC-1"),
        ("bindings", "note", "always", "bind or remove"),
        ("hooks", "problem", "absent: reference-", INSTALL),
    ],
    _no_list: [("protected list", "note", "absent or cut short", INSTALL)],
    _wrong_list: [
        ("protected list", "problem", "refs/heads/other, but", INSTALL),
        ("hooks", "problem", "somebody else's: reference-", INSTALL),
    ],
    _odd_history: [
        ("ledgers", "note", "1 line of refs/notes/evals/tester", "git evals log"),
        ("ledgers", "note", "was not written by git-evals", "evals.writer tester-2"),
        ("repository", "note", "shallow", "git fetch --unshallow"),
        ("repository", "note", "partial", ""),
        ("trust", "note", "unsigned", ""),
    ],
}


def test_each_trouble_is_found_and_comes_with_its_repair(a_guarded_project: Place, tmp_path: Path) -> None:
    for spoil, expected in TROUBLES.items():
        place = Place(tmp_path / spoil.__name__)
        shutil.copytree(a_guarded_project.path, place.path)
        spoil(place)
        findings = json.loads(evals(place, "doctor", "--json").out)["findings"]
        for name, state, said, repair in expected:
            found = [entry for entry in named(findings, name) if said in entry["text"]]
            assert [entry["state"] for entry in found] == [state], (spoil, name, findings)
            assert repair in found[0]["repair"], found
            assert bool(found[0]["repair"]) == bool(repair)


def test_a_writer_id_that_cannot_name_a_ledger_is_a_problem(
    a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITEVALS_WRITER")
    [writer] = named(examined(a_guarded_project, code=0), "writer")
    assert (writer["state"], "no writer id yet" in writer["text"]) == ("note", True)
    assert a_guarded_project.attempt("git", "config", "evals.writer").returncode == 1
    a_guarded_project.git("config", "evals.writer", "No Writer")
    [writer] = named(examined(a_guarded_project, code=1), "writer")
    assert (writer["state"], '"No Writer" cannot be a writer id' in writer["text"]) == ("problem", True)


def test_what_was_left_behind_is_listed_and_cleaned(a_guarded_project: Place, tmp_path: Path) -> None:
    a_guarded_project.git("config", "evals.scratchDir", str(tmp_path / "scratch"))
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "run", "42", "-q", "--keep").code == 0
    [kept] = (tmp_path / "scratch").iterdir()
    found = examined(a_guarded_project, code=0)
    [scratch] = named(found, "scratch")
    assert (scratch["state"], str(kept) in scratch["text"]) == ("note", True)
    assert scratch["repair"] == "git evals doctor --clean"
    assert named(found, "writers")[0]["text"] == "records by writer: tester 2"
    assert "in 2 refs" in named(found, "disk")[0]["text"]
    [scratch] = named(examined(a_guarded_project, "--clean", code=0), "scratch")
    assert (scratch["state"], scratch["text"].startswith("removed: ")) == ("ok", True)
    assert not kept.exists()
    assert named(examined(a_guarded_project, code=0), "scratch")[0]["text"] == "nothing is left behind"


@pytest.mark.parametrize("columns", ["40", "120"])
def test_the_findings_in_words(columns: str, a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _somebody_refuses(a_guarded_project)
    answer = evals(a_guarded_project, "doctor")
    assert answer.code == 1
    assert "PROBLEM gate:" in answer.out
    assert "repair: run `git evals doctor` again" in " ".join(answer.out.split())
    assert answer.out.endswith("2 problems\n")
    assert [char for char in answer.out + answer.err if not char.isprintable() and char != "\n"] == []


def test_a_repository_without_anything_is_told_what_is_missing(tmp_path: Path) -> None:
    Place(tmp_path).git("init", "-q")
    found = examined(Place(tmp_path), code=1)
    assert named(found, "trusted branch")[0]["state"] == "problem"
    assert named(found, "gate")[0]["state"] == "note"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes_are_shown_as_people_read_them(count: int, shown: str) -> None:
    assert size(count) == shown
