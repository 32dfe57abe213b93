"""The gate stands wherever git looks for hooks: in every work tree, and in every kind of repository."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Place, evals
from tests.hooks import GATE, installed, judged, spied, spy, states, traces


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


def _link_inside(project: Place) -> None:
    shutil.rmtree(project.path / ".git/hooks")
    (project.path / ".git/hooks").symlink_to("../hk")


def _link_outside(project: Place) -> None:
    outside = project.path.with_name("outside")
    (project.path / "hk").rename(outside)
    (project.path / ".git/hooks").rename(project.path / ".git/own")
    (project.path / ".git/hooks").symlink_to(outside)


def _path(setting: str) -> Callable[[Place], None]:
    def set_to(project: Place) -> None:
        project.git("config", "core.hooksPath", setting)

    return set_to


SPELLINGS: dict[str, Callable[[Place], None]] = {
    "a link into the work tree": _link_inside,
    "a link elsewhere": _link_outside,
    "a slash at the end": _path("hk/"),
    "slashes": _path("./hk//"),
    "a dot at the end": _path("hk/."),
    "two dots": _path("hk/sub/.."),
}


@pytest.mark.slow
@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_displaced_hook_is_found_by_whatever_name_its_directory_has(
    spelled: str, project: Place, as_files: tuple[str, ...]
) -> None:
    spy(project, "hk", "pre-commit")
    (project.path / "hk/sub").mkdir()
    SPELLINGS[spelled](project)
    project.write(".git/info/exclude", "/hk/pre-commit\n")
    before = traces(project.path.parent)
    installed(project, *as_files, "--shared")
    assert project.git("status", "--porcelain") == ""
    assert judged(project, ("commit", "-q", "--allow-empty", "-m", "x")) == 1
    assert [line.split()[0] for line in spied(project)] == ["pre-commit"]
    assert evals(project, "hooks", "uninstall", "--shared").code == 0
    kept = {name: value for name, value in traces(project.path.parent).items() if ".git/git-evals" not in name}
    assert kept == {name: value for name, value in before.items() if ".git/git-evals" not in name}
