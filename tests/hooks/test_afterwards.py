"""What becomes of installed hooks: tools put them aside, git changes, settings silence them; the doctor tells."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Place, evals
from tests.hooks import EVENTS, GATE, installed, judged, knows_configured, of_pre_commit, spy, traces, with_husky


def _moved_away(place: Place, name: str) -> None:
    """As pre-commit and lefthook do it: ours gets another name, theirs takes its place."""
    (place.path / ".git/hooks/pre-commit").rename(place.path / f".git/hooks/pre-commit.{name}")
    place.write(".git/hooks/pre-commit", of_pre_commit("2")).chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["legacy", "old"])
def test_a_tool_that_put_ours_aside_is_found_and_ends_beside_ours(
    name: str, project: Place, as_files: tuple[str, ...]
) -> None:
    first = spy(project, ".git/hooks", "pre-commit")
    content = first.read_bytes()
    installed(project, *as_files)
    _moved_away(project, name)
    findings = json.loads(evals(project, "doctor", "--json").out)["findings"]
    assert any(f"put ours aside as {project.path}/.git/hooks/pre-commit.{name}" in entry["text"] for entry in findings)
    installed(project, *as_files)
    # As if ours had never been there, theirs has put aside what was there before.
    aside = project.path / f".git/hooks/pre-commit.{name}"
    assert aside.read_bytes() == content
    assert evals(project, "hooks", "uninstall").code == 0
    assert (project.path / ".git/hooks/pre-commit").read_text() == of_pre_commit("2")
    assert aside.read_bytes() == content
    assert not (project.path / ".git/hooks.git-evals").exists()


@pytest.mark.slow
def test_what_others_changed_meanwhile_is_not_touched_and_what_is_left_over_is_told(
    project: Place, as_files: tuple[str, ...]
) -> None:
    for event in EVENTS:
        spy(project, ".git/hooks", event)
    found = traces(project.path / ".git/hooks")
    installed(project, *as_files)
    place = project.path / ".git/hooks"
    (place / "pre-commit").write_text(of_pre_commit("1"))  # replaced
    (place / "pre-push").unlink()  # deleted
    answer = evals(project, "hooks", "uninstall", "--json")
    assert answer.code == 0, answer
    assert (place / "pre-commit").read_text() == of_pre_commit("1")
    for event in ("pre-push", "pre-merge-commit", GATE):
        assert (place / event).read_bytes() == found[str(place / event)][1]
    [left] = json.loads(answer.out)["left"]
    assert Path(left).read_bytes() == found[str(place / "pre-commit")][1]
    assert evals(project, "hooks", "uninstall").out.startswith("no hook of git-evals is installed\nleft: ")


@pytest.mark.slow
def test_installed_anew_after_git_changed_each_movement_is_judged_once(project: Place) -> None:
    if not knows_configured(project):
        pytest.skip("the installed git knows no configured hooks")
    spy(project, ".git/hooks", GATE)
    before = traces(project.path / ".git")
    for options in ((), ("--files",), (), ("--files",)):
        assert {entry["way"] for entry in installed(project, *options)} == {"file" if options else "configured"}
        assert judged(project) == 1
        assert bool(project.attempt("git", "config", "--get-regexp", "^hook[.]").stdout) == (not options)
    assert evals(project, "hooks", "uninstall").code == 0
    after = traces(project.path / ".git")
    assert {name: value for name, value in after.items() if not name.endswith("/git-evals")} == before


@pytest.mark.slow
def test_a_configured_hook_whose_script_is_gone_lets_pass_what_is_no_branch(project: Place) -> None:
    if not knows_configured(project):
        pytest.skip("the installed git knows no configured hooks")
    installed(project)
    shutil.rmtree(project.path / ".git/git-evals")
    project.git("fetch", "-q", ".", "refs/heads/*:refs/remotes/copy/*")
    project.git("tag", "free")
    for command in (("branch", "free"), ("push", "-q", ".", "main:refs/heads/free")):
        done = project.attempt("git", *command)
        assert (done.returncode != 0, b"hint: git evals hooks install" in done.stderr) == (True, True)
    findings = json.loads(evals(project, "doctor", "--json").out)["findings"]
    [gate] = [entry for entry in findings if entry["name"] == "gate"]
    assert ("the script of the hook is gone" in gate["text"], gate["repair"]) == (True, "git evals hooks install")
    installed(project)
    project.git("branch", "free")
    assert judged(project) == 1


def _leftover(place: Place) -> None:
    place.git("config", "core.hooksPath", ".husky/_")


def _hidden(place: Place) -> None:
    spy(place, ".git/hooks", "commit-msg")
    spy(place, "elsewhere", "commit-msg")
    place.git("config", "core.hooksPath", "elsewhere")


def _mute(place: Place) -> None:
    (place.path / ".git/hooks" / GATE).chmod(0o644)


def _interpreter_gone(place: Place) -> None:
    hook = place.path / ".git/hooks" / GATE
    hook.write_text(hook.read_text().replace("python='", "python='/nowhere"))


def _beside_husky(place: Place) -> None:
    with_husky(place)
    assert evals(place, "hooks", "install", *(["--files"] if knows_configured(place) else [])).code == 0


def _beside_pre_commit(place: Place) -> None:
    place.write(".git/hooks/pre-commit", of_pre_commit("1"))


def _configured_by(place: Place, *also: str) -> None:
    for event in EVENTS:
        place.git("config", f"hook.git-evals-{event}.command", ":")
        place.git("config", f"hook.git-evals-{event}.event", event)
    for name in also:
        place.git("config", name, "false")


def _both(place: Place) -> None:
    _configured_by(place)


def _one_off(place: Place) -> None:
    _configured_by(place, f"hook.git-evals-{GATE}.enabled")


def _event_off(place: Place) -> None:
    _configured_by(place, "hook.pre-push.enabled")


# what is done to hook files → state, text and repair of what the doctor says
DOCTORED: dict[Callable[[Place], None], tuple[str, str, str]] = {
    _leftover: ("problem", 'core.hooksPath is ".husky/_", and there is no such directory', "git config --unset"),
    _hidden: ("note", "so these are never run: commit-msg", "git config --unset core.hooksPath"),
    _mute: ("problem", "is not executable, so git does not run it", "git evals hooks install"),
    _interpreter_gone: ("problem", "they were made for /nowhere", "git evals hooks install"),
    _beside_husky: ("ok", "hooks of husky run, too (core.hooksPath, local: .husky/_): pre-commit", ""),
    _beside_pre_commit: ("ok", "hooks of pre-commit run, too", ""),
}
# the same for what git's configuration says, for a git that knows such hooks; another one says that it does not
DOCTORED_SETTINGS: dict[Callable[[Place], None], tuple[str, str, str]] = {
    _both: ("note", "installed both ways, so each movement is judged twice", "git evals hooks install"),
    _one_off: ("problem", f"hook.git-evals-{GATE}.enabled is false", "git config --unset hook.git-evals-"),
    _event_off: ("problem", "hook.pre-push.enabled is false", "git config --unset hook.pre-push.enabled"),
}


@pytest.mark.slow
def test_the_doctor_names_what_keeps_the_hooks_from_being_run(
    project: Place, as_files: tuple[str, ...], tmp_path: Path
) -> None:
    installed(project, *as_files)
    for spoil, (state, said, repair) in (DOCTORED | DOCTORED_SETTINGS).items():
        place = Place(tmp_path / spoil.__name__)
        shutil.copytree(project.path, place.path)
        spoil(place)
        if spoil in DOCTORED_SETTINGS and not knows_configured(place):
            state, said, repair = "problem", "the git on PATH is too old", "git evals hooks install"
        findings = json.loads(evals(place, "doctor", "--json").out)["findings"]
        found = [entry for entry in findings if entry["name"] == "hooks" and said in entry["text"]]
        assert [entry["state"] for entry in found] == [state], (spoil, findings)
        assert found[0]["repair"].startswith(repair), found
        assert bool(found[0]["repair"]) == bool(repair), found
