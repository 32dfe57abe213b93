"""`git evals hooks`: the gate stands beside whatever hooks are there, and leaves no trace when it goes."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Place, evals, with_task_branch

GATE = "reference-transaction"
EVENTS = (GATE, "pre-commit", "pre-merge-commit", "pre-push")
MAIN = "refs/heads/main"
Tree = dict[str, tuple[int, bytes]]


def traces(*folders: Path) -> Tree:
    """Every file, link and folder below ``folders`` with its mode and content; git's objects and logs left out."""
    found: Tree = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not {"objects", "logs", "cache"} & set(path.relative_to(folder).parts):
                mode = path.lstat().st_mode
                content = (
                    os.readlink(path).encode() if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
                )
                found[str(path)] = (mode, content)
    return found


def installed(place: Place, *options: str) -> list[dict[str, str]]:
    """What `hooks install` says of each hook."""
    answer = evals(place, "hooks", "install", "--json", *options)
    assert answer.code == 0, answer
    found: list[dict[str, str]] = json.loads(answer.out)["hooks"]
    return found


def states(place: Place) -> set[str]:
    return {entry["state"] for entry in json.loads(evals(place, "hooks", "status", "--json").out)["hooks"]}


def judged(place: Place, move: tuple[str, ...] = ("update-ref", MAIN, "task/42")) -> int:
    """How often the gate speaks of a movement that it must refuse."""
    done = place.attempt("git", *move)
    assert done.returncode != 0, (move, done.stderr.decode())
    assert b"git-evals: refused" in done.stderr, (move, done.stderr.decode())
    return done.stderr.decode().count("git-evals: refused")


def knows_configured(place: Place) -> bool:
    return place.attempt("git", "hook", "list", GATE).returncode in (0, 1)


@pytest.fixture
def as_files(a_project: Place) -> tuple[str, ...]:
    """The option that has hook files installed whatever git is there."""
    return ("--files",) if knows_configured(a_project) else ()


@pytest.fixture
def project(a_project: Place) -> Place:
    with_task_branch(a_project)
    a_project.git("pack-refs", "--all")
    return a_project


def spy(place: Place, directory: str, event: str, *, status: int = 0, mode: int = 0o755) -> Path:
    """A hook of somebody else that notes how it was called and what it read."""
    log = place.path.with_name("spied")
    text = f'#!/bin/sh\necho "$(basename "$0") $* [$(cat | tr "\\n" ,)]" >>"{log}"\nexit {status}\n'
    file = place.write(f"{directory}/{event}", text)
    file.chmod(mode)
    return file


def spied(place: Place) -> list[str]:
    log = place.path.with_name("spied")
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


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


def _own_directory(place: Place) -> None:
    """As husky has it: a directory of its own, ignored, whose hooks look for a helper and for their own names."""
    spy(place, ".husky", "pre-commit")
    place.write(".husky/_/.gitignore", "*")
    place.write(
        ".husky/_/h", 'n=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n[ ! -f "$s" ] || sh -e "$s" "$@"\n'
    )
    for event in EVENTS[1:]:
        place.write(f".husky/_/{event}", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n').chmod(0o755)
    place.git("config", "core.hooksPath", ".husky/_")


def _absent_directory(place: Place) -> None:
    place.git("config", "core.hooksPath", "left/over")
    (place.path / ".git/info/exclude").unlink()


def _odd_names(place: Place) -> None:
    spy(place, "odd [hooks] *", "pre-commit")
    place.git("config", "core.hooksPath", "odd [hooks] *")


BEFORE = (
    _nothing, _no_directory, _hooks, _not_executable, _links, _unfinished_files, _own_directory, _absent_directory,
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
        before in (_hooks, _links, _own_directory, _odd_names)
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


def _moved_away(place: Place, name: str) -> None:
    """As pre-commit and lefthook do it: ours gets another name, theirs takes its place."""
    (place.path / ".git/hooks/pre-commit").rename(place.path / f".git/hooks/pre-commit.{name}")
    place.write(".git/hooks/pre-commit", _theirs("2")).chmod(0o755)


def _theirs(version: str) -> str:
    return f"#!/bin/sh\n# File generated by pre-commit: {version}\nexit 0\n"


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
    assert (project.path / ".git/hooks/pre-commit").read_text() == _theirs("2")
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
    (place / "pre-commit").write_text(_theirs("1"))  # replaced
    (place / "pre-push").unlink()  # deleted
    answer = evals(project, "hooks", "uninstall", "--json")
    assert answer.code == 0, answer
    assert (place / "pre-commit").read_text() == _theirs("1")
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


def _linked(project: Place, folder: Path) -> list[Place]:
    project.git("worktree", "add", "-q", "--detach", str(folder / "linked"))
    return [Place(folder / "linked"), project]


def _linked_with_a_relative_path(project: Place, folder: Path) -> list[Place]:
    project.git("config", "core.hooksPath", ".husky/_")
    return _linked(project, folder)


def _bare(project: Place, folder: Path) -> list[Place]:
    project.git("clone", "-q", "--bare", ".", str(folder / "bare.git"))
    bare = Place(folder / "bare.git")
    bare.git("config", "evals.trustBranch", "main")
    bare.git("worktree", "add", "-q", "--detach", str(folder / "of bare"))
    return [bare, Place(folder / "of bare")]


def _submodule(project: Place, folder: Path) -> list[Place]:
    above = Place(folder / "above")
    above.path.mkdir()
    above.git("init", "-q")
    above.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(project.path), "module")
    module = Place(above.path / "module")
    module.git("fetch", "-q", "origin", "task/42:task/42")
    module.git("config", "evals.trustBranch", "main")
    module.git("config", "core.hooksPath", ".hooks")
    module.git("worktree", "add", "-q", "--detach", str(folder / "of module"))
    return [module, Place(folder / "of module")]


def _kept_apart(project: Place, folder: Path) -> list[Place]:
    project.git("init", "-q", "--separate-git-dir", str(folder / "apart"))
    return [project]


def _quoted(project: Place, folder: Path) -> list[Place]:
    odd = folder / """it's a "place" $(of) mine \\ * """
    project.path.rename(odd)
    return [Place(odd)]


def _moved(project: Place, folder: Path) -> list[Place]:
    assert evals(project, "hooks", "install").code == 0
    project.path.rename(folder / "moved")
    return [Place(folder / "moved")]


PLACES = (_linked, _linked_with_a_relative_path, _bare, _submodule, _kept_apart, _quoted, _moved)


@pytest.mark.slow
@pytest.mark.parametrize("made", PLACES, ids=lambda made: made.__name__.strip("_"))
@pytest.mark.parametrize("files", [True, False], ids=["files", "as git has it"])
def test_the_gate_stands_in_every_kind_of_place(
    made: Callable[[Place, Path], list[Place]], files: bool, project: Place, as_files: tuple[str, ...], tmp_path: Path
) -> None:
    trees = made(project, tmp_path)
    before = traces(*(tree.path for tree in trees))
    if made is not _moved:
        assert {entry["state"] for entry in installed(trees[0], *(as_files if files else ()))} == {"installed"}
    for tree in trees:
        assert states(tree) == {"installed"}
        assert judged(tree) == 1, tree.path
        tree.git("update-ref", "refs/heads/free", "main")
        tree.git("update-ref", "-d", "refs/heads/free")
        findings = json.loads(evals(tree, "doctor", "--json").out)["findings"]
        assert {entry["state"] for entry in findings if entry["name"] == "gate"} == {"ok"}, findings
    assert evals(trees[-1], "hooks", "uninstall").code == 0
    if made is not _moved:
        kept = {name: value for name, value in traces(*(tree.path for tree in trees)).items() if "evals" not in name}
        assert kept == {name: value for name, value in before.items() if "evals" not in name}


@pytest.mark.slow
def test_hooks_of_a_template_are_run_too_and_init_puts_ours_beside_them(project: Place, tmp_path: Path) -> None:
    template = tmp_path / "template"
    spy(project, str(template / "hooks"), "pre-commit")
    project.git("config", "--global", "init.templateDir", str(template))
    project.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = Place(tmp_path / "clone")
    answer = evals(clone, "init", "--protect", "main")
    assert answer.code == 0, answer
    assert f"hook {GATE}: installed" in answer.out
    clone.git("fetch", "-q", "origin", "task/42:task/42")
    assert judged(clone, ("commit", "-q", "--allow-empty", "-m", "x")) == 1
    assert [line.split()[0] for line in spied(project)] == ["pre-commit"]


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
    _own_directory(place)
    assert evals(place, "hooks", "install", *(["--files"] if knows_configured(place) else [])).code == 0


def _beside_pre_commit(place: Place) -> None:
    place.write(".git/hooks/pre-commit", _theirs("1"))


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
