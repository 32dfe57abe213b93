"""The hooks' shell: what it lets pass by itself, what it asks the gate, and what it does where nothing is as usual."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitevals.install import shims
from tests.conftest import Place, evals, with_task_branch
from tests.hooks import knows_configured

GATE = shims.GATE
ZERO = "0" * 40
ONE = "1" * 40
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Shim:
    """One hook, run as git runs it, with an interpreter that notes each start."""

    def __init__(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.log = place.path.with_name("started")
        python = place.path.with_name("python")
        python.write_text(f'#!/bin/sh\necho started >>{shlex.quote(str(self.log))}\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(python))
            answer = evals(place, "hooks", "install", *(["--files"] if knows_configured(place) else []))
            assert answer.code == 0, answer
        self.python = python

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        event: str = GATE,
        shell: str = "sh",
    ) -> "subprocess.CompletedProcess[bytes]":
        self.log.unlink(missing_ok=True)
        hook = str(self.place.path / ".git/hooks" / event) if cwd else f".git/hooks/{event}"
        command = [str(shutil.which(shell)), *(["sh"] if shell == "busybox" else []), hook, *arguments]
        return subprocess.run(
            command, input=stdin.encode(), capture_output=True, cwd=cwd or self.place.path,
            env=dict(os.environ) if env is None else env, check=False,
        )  # fmt: skip

    def started(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def shim(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> Shim:
    with_task_branch(a_project)
    return Shim(a_project, monkeypatch)


def _line(place: Place, ref: str) -> str:
    return f"{ZERO} {place.git('rev-parse', 'task/42')} {ref}\n"


# what git may say of refs that are nobody's branch, or in a state in which nothing can be refused any more
PASSED: list[tuple[str, str]] = [
    ("prepared", ""),
    ("prepared", "refs/heads/free"),
    ("prepared", "refs/remotes/origin/main"),
    ("prepared", "refs/notes/commits"),
    ("prepared", "HEAD"),
    ("prepared", "ORIG_HEAD"),
    ("prepared", "AUTO_MERGE"),
    ("prepared", "refs/heads/main2"),
    ("prepared", "refs/heads/MAIN"),
    ("preparing", "refs/heads/main"),
    ("preparing", "HEAD"),
    ("aborted", "refs/heads/main"),
    ("committed", "refs/heads/main"),
    ("some-day", "refs/heads/main"),
    ("", "refs/heads/main"),
]


def test_what_moves_no_protected_branch_passes_without_python(shim: Shim) -> None:
    for state, ref in PASSED:
        done = shim.run(state, stdin=_line(shim.place, ref) if ref else "", env={})
        assert (done.returncode, done.stderr, shim.started()) == (0, b"", 0), (state, ref)
    pointing = f"ref:refs/heads/a ref:refs/heads/b HEAD\n{ZERO} ref:refs/heads/main refs/remotes/origin/HEAD\n"
    assert shim.run("prepared", stdin=pointing, env={}).returncode == 0
    assert shim.started() == 0


def test_a_protected_branch_is_judged_however_it_is_told(shim: Shim) -> None:
    for line in (_line(shim.place, "refs/heads/main"), f"{ZERO} ref:refs/heads/task/42 refs/heads/main\n"):
        done = shim.run("prepared", stdin=_line(shim.place, "refs/heads/free") + line)
        assert (done.returncode, shim.started()) == (1, 1), done.stderr
        assert b"git-evals: refused" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("path", [None, "", "/nowhere"], ids=["no PATH", "an empty PATH", "an absurd PATH"])
def test_builtins_are_enough_in_an_environment_without_anything(path: str | None, shell: str, shim: Shim) -> None:
    env = {} if path is None else {"PATH": path}
    assert shim.run("prepared", stdin=_line(shim.place, "refs/heads/free"), env=env, shell=shell).returncode == 0
    done = shim.run("prepared", stdin=_line(shim.place, "refs/heads/main"), env=env, shell=shell)
    assert done.returncode == 1
    many = "".join(f"{ZERO} {ONE} refs/heads/topic/{number}\n" for number in range(40))
    done = shim.run("prepared", stdin=many, env={"PATH": "/nowhere"}, shell=shell)
    assert (done.returncode, b"needs grep" in done.stderr) == (1, True)


def _gone(shim: Shim) -> None:
    shim.python.unlink()


def _broken(shim: Shim) -> None:
    shim.python.write_text("#!/nowhere/python\n")


def _without_modules(shim: Shim) -> None:
    """As a virtual environment is that was made anew."""
    for event in shims.EVENTS:
        hook = shim.place.path / ".git/hooks" / event
        lines = hook.read_text().splitlines(keepends=True)
        hook.write_text("".join("modules=/nowhere\n" if line.startswith("modules=") else line for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [_gone, _broken, _without_modules])
def test_an_interpreter_that_is_gone_gives_way_to_one_that_runs_the_same_gate(
    spoil: Callable[[Shim], None], shim: Shim, tmp_path: Path
) -> None:
    spoil(shim)
    main, free = (_line(shim.place, f"refs/heads/{name}") for name in ("main", "free"))
    home = tmp_path / "a home"
    system = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    done = shim.run("prepared", stdin=main, env=system)
    assert (done.returncode, b"cannot be run by" in done.stderr, b"hooks install" in done.stderr) == (1, True, True)
    assert shim.run("prepared", stdin=free, env=system).returncode == 0
    program = home / ".local/bin/git-evals"
    program.parent.mkdir(parents=True)
    for text in ("exit 0", 'echo "git-evals 9.9"; exit 0', "exit 1"):  # what is called so, and is something else
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        assert b"cannot be run by" in shim.run("prepared", stdin=main, env=system).stderr, text
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gitevals "$@"\n')
    packages = {"PYTHONPATH": os.pathsep.join(sys.path)}
    for env in (system, {"PATH": f"{program.parent}:/usr/bin:/bin"}):
        done = shim.run("prepared", stdin=main, env={**env, **packages})
        assert (done.returncode, b"git-evals: refused" in done.stderr) == (1, True), done.stderr
        assert b"hint: git evals run 42" in done.stderr
    shim.place.git("-c", "core.hooksPath=/dev/null", "branch", "other", "main")
    done = shim.run(
        "pre-push", "origin", "url", stdin=f"a {ONE} refs/heads/free {ZERO}\n", env=system, event="pre-push"
    )
    assert done.returncode == 0


@pytest.mark.slow
def test_the_repository_is_found_in_whichever_way_git_names_it(shim: Shim, tmp_path: Path) -> None:
    place = shim.place
    place.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    git_file = place.write("elsewhere/.git", "gitdir: ../.git").parent
    ways: dict[str, tuple[Path, dict[str, str]]] = {
        "in the work tree": (place.path, {}),
        "relative": (place.path, {"GIT_DIR": ".git"}),
        "absolute": (tmp_path, {"GIT_DIR": str(place.path / ".git")}),
        "of a linked work tree": (tmp_path / "linked", {"GIT_DIR": str(place.path / ".git/worktrees/linked")}),
        "by a file": (git_file, {}),
        "by a linked work tree's file": (tmp_path / "linked", {}),
        "by a file that is named": (tmp_path, {"GIT_DIR": str(git_file / ".git")}),
        "inside": (place.path / ".git", {}),
    }
    copy = tmp_path / "far/hooks" / GATE  # a directory of hooks says nothing of the repository
    copy.parent.mkdir(parents=True)
    for kind in shims.Kind:
        copy.write_text(shims.source(GATE, kind).replace(sys.executable, str(shim.python)))
        for name, (cwd, env) in ways.items():
            for ref, status in (("refs/heads/main", 1), ("refs/heads/free", 0)):
                shim.log.unlink(missing_ok=True)
                done = place.attempt("sh", str(copy), "prepared", stdin=_line(place, ref).encode(), env=env, cwd=cwd)
                assert (done.returncode, shim.started()) == (status, status), (kind, name, ref, done.stderr)


@pytest.mark.slow
def test_a_shared_hook_does_nothing_where_nobody_installed_git_evals(shim: Shim, tmp_path: Path) -> None:
    other = Place(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q")
    other.git("commit", "-q", "--allow-empty", "-m", "first")
    hook = tmp_path / "hooks" / GATE
    hook.parent.mkdir()
    hook.write_text(shims.source(GATE, shims.Kind.SHARED).replace(sys.executable, str(shim.python)))
    lines = f"{ZERO} {ONE} refs/heads/main\n".encode()
    done = other.attempt("sh", str(hook), "prepared", stdin=lines)
    assert (done.returncode, done.stderr, shim.started()) == (0, b"", 0)


FOLDED = {
    "refs/heads/main": 1,
    "refs/heads/MAIN": 1,
    "refs/heads/mAiN": 1,
    "refs/HEADS/main": 1,
    "refs/heads/mains": 0,
    "refs/heads/free": 0,
}


@pytest.mark.parametrize("count", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_where_case_makes_no_difference_every_spelling_is_protected(
    count: int, a_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_task_branch(a_project)
    a_project.git("config", "core.ignorecase", "true")
    shim = Shim(a_project, monkeypatch)
    many = "".join(f"{ZERO} {ONE} refs/heads/topic/{number}\n" for number in range(count))
    said = b""
    for ref, status in FOLDED.items():
        done = shim.run("prepared", stdin=many + _line(a_project, ref))
        assert (done.returncode, shim.started()) == (status, status), (ref, done.stderr)
        said = said or done.stderr
        assert done.stderr == (said if status else b"")
    assert b"refs/heads/main from" in said


def test_the_hook_that_stood_here_before_inherits_what_git_gave(shim: Shim) -> None:
    beside = shim.place.path / ".git/hooks.git-evals"
    beside.mkdir()
    first = beside / GATE
    first.write_text('#!/bin/sh\necho "$0 $* $python $dir $list $hits"\nwhile read -r line; do echo "<$line>"; done\n')
    names = {"python": "p", "dir": "d", "list": "l", "hits": "h"}
    first.chmod(0o644)
    free = _line(shim.place, "refs/heads/free")
    assert shim.run("prepared", stdin=free).stdout == b""  # as git has it with hooks that are not executable
    first.chmod(0o755)
    for env in ({**os.environ, **names}, {**names, "PATH": "/nowhere"}):
        done = shim.run("prepared", stdin=free * 2, env=env)
        assert done.returncode == 0, done.stderr
        told = done.stdout.decode().splitlines()
        assert told == [f".git/hooks.git-evals/{GATE} prepared p d l h", *[f"<{free.strip()}>"] * 2]
    assert shim.started() == 0


def test_a_tool_that_put_ours_aside_is_not_run_within_itself(shim: Shim) -> None:
    hooks, beside = shim.place.path / ".git/hooks", shim.place.path / ".git/hooks.git-evals"
    beside.mkdir()
    ours = (hooks / "pre-commit").rename(hooks / "pre-commit.legacy")
    theirs = '#!/bin/sh\n# File generated by a tool\necho theirs\nexec "$0.legacy"\n'
    (hooks / "pre-commit").write_text(theirs)
    shutil.copy(ours.parent / "pre-commit", beside / "pre-commit")
    shim.place.git("switch", "-q", "task/42")
    for other, told in ((False, b"theirs\n"), (True, b"theirs\nsomebody\n")):
        if other:
            (beside / "pre-commit").write_text("#!/bin/sh\n# of somebody else\necho somebody\n")
        for file in (*hooks.iterdir(), *beside.iterdir()):
            file.chmod(0o755)
        done = shim.run(event="pre-commit")
        assert (done.returncode, done.stdout) == (0, told), done.stderr
