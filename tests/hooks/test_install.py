"""`git evals hooks`: the gate stands beside whatever hooks are there, and leaves no trace when it goes."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Place, evals
from tests.hooks import EVENTS, GATE, MAIN, installed, judged, knows_configured, spied, spy, traces, with_husky


def test_ours_and_theirs_both_run_and_either_one_refuses(project: Place) -> None:
    for event in EVENTS:
        spy(project, ".git/hooks", event)
    installed(project)
    spied(project)
    assert judged(project) == 1
    [prepared] = [line for line in spied(project) if line.startswith(f"{GATE} prepared")]
    assert "refs/heads/main," in prepared
    project.git("branch", "free")
    assert any("refs/heads/free,]" in line for line in spied(project))
    assert judged(project, ("push", "-q", ".", "task/42:main")) == 1
    assert any(
        re.fullmatch(r"pre-push \. \. \[refs/heads/task/42 .* refs/heads/main .*,\]", line) for line in spied(project)
    )
    kept = project.path / (".git/hooks" if knows_configured(project) else ".git/hooks.git-evals") / GATE
    kept.write_text("#!/bin/sh\n[ $1 != prepared ]\n")
    assert project.attempt("git", "branch", "not-free").returncode != 0
    assert judged(project) == 1


def _nothing(place: Place) -> None:
    pass


def _no_directory(place: Place) -> None:
    shutil.rmtree(place.path / ".git/hooks")


def _hooks(place: Place) -> None:
    for event in (*EVENTS, "commit-msg"):
        spy(place, ".git/hooks", event)


def _not_executable(place: Place) -> None:
    spy(place, ".git/hooks", GATE, status=1, mode=0o640)


def _links(place: Place) -> None:
    spy(place, "scripts", "pre-commit")
    (place.path / ".git/hooks/pre-commit").symlink_to("../../scripts/pre-commit")
    (place.path / ".git/hooks/pre-push").symlink_to("nowhere")
    (place.path / ".git/hooks/pre-merge-commit").symlink_to("pre-commit")


def _unfinished_files(place: Place) -> None:
    place.git("config", "--unset", "evals.trustBranch")
    for name in ("config", "info/exclude"):
        file = place.path / ".git" / name
        file.write_bytes(file.read_bytes().rstrip(b"\n") + b"\n# mine\n[mine]\n\tvalue = 1")


def _absent_directory(place: Place) -> None:
    place.git("config", "core.hooksPath", "left/over")
    (place.path / ".git/info/exclude").unlink()


def _odd_names(place: Place) -> None:
    spy(place, "odd [hooks] *", "pre-commit")
    place.git("config", "core.hooksPath", "odd [hooks] *")


BEFORE = (
    _nothing, _no_directory, _hooks, _not_executable, _links, _unfinished_files, with_husky, _absent_directory,
    _odd_names,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("before", BEFORE, ids=lambda before: before.__name__.strip("_"))
@pytest.mark.parametrize("files", [True, False], ids=["files", "as git has it"])
def test_it_stands_beside_what_is_there_and_leaves_no_trace(
    before: Callable[[Place], None], files: bool, project: Place, as_files: tuple[str, ...]
) -> None:
    before(project)
    found, shown = traces(project.path), project.git("status", "--porcelain")
    options = as_files if files else ()
    first = installed(project, *options)
    assert {entry["state"] for entry in first} == {"installed"}
    assert installed(project, *options) == first
    assert project.git("status", "--porcelain") in (shown, "")
    assert judged(project) == 1
    project.git("switch", "-q", "-c", "other")
    project.git("commit", "-q", "--allow-empty", "-m", "free")
    assert [line.split()[0] for line in spied(project)].count("pre-commit") == (
        before in (_hooks, _links, with_husky, _odd_names)
    )
    project.git("switch", "-q", "main")
    project.git("branch", "-q", "-D", "other")
    assert evals(project, "hooks", "uninstall").code == 0
    after = traces(project.path)
    changing = {
        str(project.path / ".git" / name) for name in ("index", "COMMIT_EDITMSG", "HEAD", "ORIG_HEAD", "git-evals")
    }
    assert {name: value for name, value in after.items() if name not in changing} == {
        name: value for name, value in found.items() if name not in changing
    }


def _tracked_others(place: Place) -> None:
    spy(place, ".githooks", "pre-commit")
    place.commit({}, "hooks of the team")
    place.git("config", "core.hooksPath", ".githooks")


def _tracked_gate(place: Place) -> None:
    spy(place, ".githooks", GATE)
    place.commit({}, "hooks of the team")
    place.git("config", "core.hooksPath", ".githooks")


def _no_hooks_at_all(place: Place) -> None:
    place.git("config", "core.hooksPath", "/dev/null")


def _set_to_nothing(place: Place) -> None:
    place.git("config", "core.hooksPath", "")


def _below_a_file(place: Place) -> None:
    place.git("config", "core.hooksPath", "README/hooks")


def _a_folder_in_the_way(place: Place) -> None:
    (place.path / ".git/hooks/pre-push").mkdir()


def _of_all_repositories(place: Place) -> None:
    folder = place.path.with_name("everywhere")
    folder.mkdir()
    place.git("config", "--global", "core.hooksPath", str(folder))


def _a_link_to_elsewhere(place: Place) -> None:
    place.path.with_name("everywhere").mkdir()
    shutil.rmtree(place.path / ".git/hooks")
    (place.path / ".git/hooks").symlink_to("../../everywhere")


def _on_no_branch(place: Place) -> None:
    place.git("config", "--unset", "evals.trustBranch")
    place.git("checkout", "-q", "--detach")


# what stands in the way → what is said of it, and the hint
REFUSED: dict[Callable[[Place], None], tuple[str, str]] = {
    _tracked_gate: ("is tracked by git", "$(git rev-parse --git-common-dir)/git-evals/hooks/reference-transaction;"),
    _no_hooks_at_all: ('"/dev/null" is no directory', "git config --unset core.hooksPath"),
    _set_to_nothing: ("core.hooksPath is set to nothing", "git config --unset core.hooksPath"),
    _below_a_file: ("is no directory", "git config --unset core.hooksPath"),
    _a_folder_in_the_way: ("is a directory", "move it away"),
    _of_all_repositories: ("serve other repositories, too", "git evals hooks install --shared"),
    _a_link_to_elsewhere: ("hooks lie in", "git evals hooks install --shared"),
    _on_no_branch: ("no branch is checked out", "evals.trustBranch"),
}


@pytest.mark.slow
@pytest.mark.parametrize("in_the_way", REFUSED, ids=lambda case: case.__name__.strip("_"))
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    in_the_way: Callable[[Place], None], project: Place, as_files: tuple[str, ...]
) -> None:
    in_the_way(project)
    before = traces(project.path)
    answer = evals(project, "hooks", "install", *as_files)
    said, hint = REFUSED[in_the_way]
    assert answer.code == 2, answer
    assert said in answer.err
    assert hint in answer.err
    assert traces(project.path) == before


@pytest.mark.slow
def test_a_pipe_for_a_hook_is_refused_and_not_waited_for(project: Place, as_files: tuple[str, ...]) -> None:
    os.mkfifo(project.path / ".git/hooks/pre-push")
    answer = evals(project, "hooks", "install", *as_files)
    assert answer.code == 2, answer
    assert 'pre-push" is no file' in answer.err
    assert evals(project, "hooks", "status").code == 1
    assert evals(project, "doctor").code == 1


@pytest.mark.slow
def test_a_hook_that_git_tracks_is_left_to_its_owner(project: Place, as_files: tuple[str, ...]) -> None:
    _tracked_others(project)
    found = traces(project.path)
    assert {entry["event"]: entry["state"] for entry in installed(project, *as_files)} == {
        event: "left" if event == "pre-commit" else "installed" for event in EVENTS
    }
    assert project.git("status", "--porcelain") == ""
    assert judged(project) == 1
    status = evals(project, "hooks", "status")
    assert (status.code, "pre-commit: left" in status.out) == (0, True)
    assert evals(project, "hooks", "uninstall").code == 0
    assert traces(project.path).keys() - found.keys() <= {str(project.path / ".git/git-evals")}
    assert (project.path / ".githooks/pre-commit").read_bytes() == found[str(project.path / ".githooks/pre-commit")][1]


@pytest.mark.slow
def test_a_tracked_hook_may_ask_the_gate_by_itself(project: Place, as_files: tuple[str, ...]) -> None:
    _tracked_gate(project)
    refused = evals(project, "hooks", "install", *as_files)
    line = refused.err.split("add to it: ")[1].splitlines()[0]
    project.commit({f".githooks/{GATE}": f"#!/bin/sh\n{line}\n"}, "ask the gate")
    assert {entry["state"] for entry in installed(project, *as_files)} == {"installed"}
    assert judged(project) == 1
    project.git("branch", "free")
    assert project.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_directory_of_many_repositories_gets_hooks_that_know_who_wants_them(
    project: Place, as_files: tuple[str, ...], tmp_path: Path
) -> None:
    everywhere = tmp_path / "everywhere"
    for event in ("pre-commit", GATE):
        spy(Place(project.path), str(everywhere), event)
    project.git("config", "--global", "core.hooksPath", str(everywhere))
    other = Place(tmp_path / "other")
    shutil.copytree(project.path, other.path)
    before, mine = traces(everywhere), traces(project.path)
    assert {entry["state"] for entry in installed(project, "--shared", *as_files)} == {"installed"}
    spied(project)
    assert judged(project) == 1
    assert any(line.startswith(f"{GATE} prepared") for line in spied(project))
    other.git("update-ref", MAIN, "task/42")
    assert any(line.startswith(f"{GATE} prepared") for line in spied(project))
    other.git("update-ref", MAIN, "task/42~")
    assert evals(other, "hooks", "install", "--shared", *as_files).code == 0
    assert evals(project, "hooks", "uninstall").code == 0
    assert {name: value for name, value in traces(project.path).items() if not name.endswith("/git-evals")} == mine
    project.git("update-ref", MAIN, "task/42")
    project.git("update-ref", MAIN, "task/42~")
    assert judged(other) == 1
    assert evals(other, "hooks", "uninstall", "--shared").code == 0
    assert traces(everywhere) == before
    other.git("update-ref", MAIN, "task/42")
