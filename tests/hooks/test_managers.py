"""Real hook managers and our hooks in one repository: everybody's hooks run, everybody may refuse, nobody is harmed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Place, evals
from tests.hooks import judged, knows_configured, traces

pytestmark = [pytest.mark.network, pytest.mark.slow]
HOOK = 'echo "$1" >>"{log}"\n[ "$1" != pre-push ] || {{ cat; env; }} >>"{log}"\ntest ! -e veto\n'
LEFTHOOK = """\
pre-commit: {commands: {theirs: {run: "sh ./theirs.sh pre-commit"}}}
pre-push: {commands: {theirs: {run: "sh ./theirs.sh pre-push", use_stdin: true}}}
"""
_OF_PRE_COMMIT = "{{id: {0}, name: {0}, language: system, entry: sh ./theirs.sh {0}, stages: [{0}], {1}}}"
_ALWAYS = "always_run: true, pass_filenames: false"
PRE_COMMIT = "repos:\n  - repo: local\n    hooks:\n" + "".join(
    f"      - {_OF_PRE_COMMIT.format(event, _ALWAYS)}\n" for event in ("pre-commit", "pre-push")
)


def _made(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{command[0]} cannot be used: {error}")
    if done.returncode != 0:
        pytest.skip(f"the registry cannot be reached: {(done.stderr or done.stdout).strip()[-200:]}")


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with husky and lefthook."""
    place = tmp_path_factory.mktemp("npm")
    options = ["--ignore-scripts", "--silent", "--no-audit", "--no-fund", "--prefix", str(place)]
    _made(["npm", "install", *options, "husky@9", "lefthook"])
    return place / "node_modules"


@pytest.fixture(scope="session")
def pre_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program pre-commit, in a virtual environment of its own."""
    place = tmp_path_factory.mktemp("pre-commit")
    _made([sys.executable, "-m", "venv", str(place)])
    _made([str(place / "bin/pip"), "install", "--quiet", "pre-commit"])
    return place / "bin/pre-commit"


class Managed:
    """A project in which a hook manager can be installed; what its hooks were told lies in a log."""

    def __init__(self, place: Place, name: str, commands: list[list[str]]) -> None:
        self.place = place
        self.name = name
        self._commands = commands
        self._log = place.path.with_name("theirs.log")
        place.write("theirs.sh", HOOK.format(log=self._log))

    def install(self) -> None:
        for command in self._commands:
            done = self.place.attempt(*command)
            assert done.returncode == 0, done

    def told(self) -> str:
        text = self._log.read_text() if self._log.exists() else ""
        self._log.unlink(missing_ok=True)
        return text

    def state(self) -> dict[str, tuple[int, bytes]]:
        found = traces(self.place.path)
        return {
            name: value for name, value in found.items() if "/hooks" in name or "/.husky" in name or "/config" in name
        }


@pytest.fixture(params=["husky", "lefthook", "pre-commit"])
def managed(request: pytest.FixtureRequest, project: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Managed:
    name = str(request.param)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit-home"))
    for number in ("pre-commit", "pre-push"):
        project.write(f".husky/{number}", f"sh ./theirs.sh {number}\n") if name == "husky" else None
    if name == "pre-commit":
        project.write(".pre-commit-config.yaml", PRE_COMMIT)
        program = str(request.getfixturevalue("pre_commit"))
        return Managed(project, name, [[program, "install", "-t", "pre-commit", "-t", "pre-push"]])
    packages: Path = request.getfixturevalue("npm")
    monkeypatch.setenv("PATH", f"{packages / '.bin'}{os.pathsep}{os.environ['PATH']}")
    if name == "husky":
        return Managed(project, name, [[str(shutil.which("node")), str(packages / "husky/bin.js")]])
    project.write("lefthook.yml", LEFTHOOK)
    return Managed(project, name, [[str(packages / ".bin/lefthook"), "install"]])


def _everybody_is_asked(managed: Managed) -> None:
    place = managed.place
    managed.told()
    assert judged(place) == 1
    place.git("switch", "-q", "-c", "other", "--no-track", "main")
    place.write("free", "lefthook runs nothing where nothing is staged\n")
    place.git("add", "free")
    place.git("commit", "-q", "-m", "free")
    assert managed.told().splitlines().count("pre-commit") == 1
    place.git("push", "-q", ".", "other:refs/heads/copy")
    told = managed.told()
    assert told.splitlines().count("pre-push") == 1
    # pre-commit reads the lines itself, and tells its hooks what they say.
    assert "refs/heads/other" in told
    assert "refs/heads/copy" in told
    place.write("veto", "")
    place.git("add", "veto")
    assert place.attempt("git", "commit", "-q", "--allow-empty", "-m", "vetoed").returncode != 0
    assert place.attempt("git", "push", "-q", ".", "other:refs/heads/vetoed").returncode != 0
    place.git("rm", "-q", "-f", "veto")
    place.git("switch", "-q", "main")
    for branch in ("other", "copy"):
        place.git("branch", "-q", "-D", branch)
    assert judged(place, ("push", "-q", ".", "task/42:main")) == 1


def _before(managed: Managed, install: Callable[[], None]) -> dict[str, tuple[int, bytes]]:
    managed.install()
    state = managed.state()
    install()
    return state


def _over(managed: Managed, install: Callable[[], None]) -> dict[str, tuple[int, bytes]]:
    """The manager comes later, and again: what it would have made without us is seen in a copy."""
    copy = managed.place.path.with_name("copy")
    shutil.copytree(managed.place.path, copy, symlinks=True)
    install()
    managed.install()
    install()
    managed.install()
    assert judged(managed.place) == 1
    install()
    there, kept = managed.place.path, managed.place.path.with_name("kept")
    there.rename(kept)
    copy.rename(there)
    managed.install()
    state = managed.state()
    there.rename(copy)
    kept.rename(there)
    return state


@pytest.mark.parametrize("order", [_before, _over], ids=["the manager is there first", "the manager comes later"])
@pytest.mark.parametrize("files", [True, False], ids=["files", "as git has it"])
def test_all_hooks_run_all_may_refuse_and_no_trace_is_left(
    managed: Managed, order: Callable[[Managed, Callable[[], None]], dict[str, tuple[int, bytes]]], files: bool
) -> None:
    options = ("--files",) if files and knows_configured(managed.place) else ()

    def install() -> None:
        answer = evals(managed.place, "hooks", "install", *options)
        assert answer.code == 0, answer

    state = order(managed, install)
    _everybody_is_asked(managed)
    assert evals(managed.place, "hooks", "status").code == 0
    assert evals(managed.place, "hooks", "uninstall").code == 0
    assert managed.state() == state
    assert judged_by_nobody(managed.place)


def judged_by_nobody(place: Place) -> bool:
    return place.attempt("git", "update-ref", "refs/heads/main", "task/42").returncode == 0
