"""Sealed environments: real git with a private HOME, no user or system configuration, fixed identity and dates."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

DATE = "2030-01-02T03:04:05Z"


def pytest_configure() -> None:
    """Ctrl-C reaches the programs that tests start, also where the tests are a job in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: much of a test's time is waiting for other programs."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


class Place:
    """A repository's work tree and git commands in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Output of a git command that must succeed."""
        done = self.attempt("git", *arguments, stdin=stdin, env=env)
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.decode()}"
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def attempt(
        self, *command: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """A command whose outcome the test judges."""
        return subprocess.run(
            command,
            cwd=cwd or self.path,
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            check=False,
        )

    def write(self, path: str, content: str | bytes) -> Path:
        """A file in the work tree."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "change") -> str:
        """Commit ``files`` on the current branch; the new commit's id."""
        for path, content in (files or {}).items():
            self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def sealed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which nothing of the developer's reaches git or the product."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_", "PYTEST_ADDOPTS", "GITEVALS_W")) or name in (
            "EDITOR",
            "VISUAL",
            "PYTHONPATH",
        ):
            monkeypatch.delenv(name)
    identity = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A U Thor",
        "GIT_AUTHOR_EMAIL": "author@example.org",
        "GIT_COMMITTER_NAME": "C O Mitter",
        "GIT_COMMITTER_EMAIL": "committer@example.org",
        "GIT_AUTHOR_DATE": DATE,
        "GIT_COMMITTER_DATE": DATE,
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    # Few places on PATH: every run looks through all of them for what leads back into the work tree.
    found = [shutil.which(program) for program in ("git", "sh", "man")]
    places = [os.path.dirname(sys.executable), *(os.path.dirname(program) for program in found if program)]
    monkeypatch.setenv("PATH", os.pathsep.join(dict.fromkeys([*places, "/usr/bin", "/bin"])))
    for name, value in identity.items():
        monkeypatch.setenv(name, value)
    (home / ".gitconfig").write_text(
        "[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n"
    )
    return home


@pytest.fixture(params=["sha1"])
def object_format(request: pytest.FixtureRequest) -> str:
    """The object format of the repositories a test makes; parametrise it indirectly for both."""
    return str(request.param)


@pytest.fixture
def ref_format(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """How the repositories a test makes keep their refs; parametrise it indirectly for ``reftable``."""
    wanted = str(getattr(request, "param", "files"))
    if wanted != "files":
        tried = Place(tmp_path).attempt("git", "init", "-q", f"--ref-format={wanted}", str(tmp_path / "tried"))
        if tried.returncode != 0:
            pytest.skip(f"the installed git cannot keep refs as {wanted}")
        shutil.rmtree(tmp_path / "tried")
    return wanted


_MADE: dict[tuple[str, ...], Path] = {}


def _copied(key: tuple[str, ...], path: Path, made: Path, make: Callable[[Place], None]) -> Place:
    """What ``make`` does to an empty directory, done once a process and copied to ``path``."""
    if key not in _MADE:
        made.mkdir(exist_ok=True)
        make(Place(made))
        _MADE[key] = made
    shutil.copytree(_MADE[key], path, symlinks=True)
    return Place(path)


@pytest.fixture
def a_repo(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, object_format: str, ref_format: str) -> Place:
    """A repository with one commit on ``main``."""

    def make(place: Place) -> None:
        kept = () if ref_format == "files" else (f"--ref-format={ref_format}",)
        place.git("init", "-q", f"--object-format={object_format}", *kept)
        place.commit({"README": "hello\n"}, "first")

    key = ("repo", object_format, ref_format)
    return _copied(key, tmp_path / "repo", tmp_path_factory.getbasetemp() / "-".join(("made", *key)), make)


class Answer:
    """What a `git evals` command did: exit code and both streams."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def evals(place: Place, *arguments: str, cwd: Path | None = None) -> Answer:
    """A `git evals` command, run in this process: the same code without the start of another interpreter."""
    from gitevals.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before, argv = Path.cwd(), sys.argv
    os.chdir(cwd or place.path)
    sys.argv = ["git-evals", *arguments]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os.chdir(before)
        sys.argv = argv
    out.flush()
    err.flush()
    return Answer(code, _read(out), _read(err))


def _read(stream: io.TextIOWrapper) -> str:
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


CONFIG = """\
version: 1
repository: r1
mode: {mode}
protect: [main]
branches: "task/{{task}}"
tasks: {{path: "tasks/{{task}}.md"}}
verify:
  - [sh, -c, "test ! -e broken"]
checks:
  good: {{command: [sh, -c, 'test -e "ok-$GITEVALS_TASK"']}}
  always: {{command: ["true"]}}
bindings:
  "*": {{"*": [good]}}
"""

TASK = """\
# Task {task}

## Acceptance Criteria

- [ ] [AC-1] The file of task {task} is there.
"""


@pytest.fixture
def mode() -> str:
    """The mode of a project; parametrise it to get another."""
    return "enforce"


@pytest.fixture
def a_project(
    a_repo: Place,
    mode: str,
    object_format: str,
    ref_format: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    """A repository whose ``main`` has a configuration and the tasks 42 and 43; no hooks yet."""
    monkeypatch.setenv("GITEVALS_WRITER", "tester")

    def make(place: Place) -> None:
        shutil.copytree(a_repo.path, place.path, symlinks=True, dirs_exist_ok=True)
        texts = {f"tasks/{n}.md": TASK.format(task=n) for n in ("42", "43")}
        place.commit({".gitevals.yaml": CONFIG.format(mode=mode), **texts}, "configure")
        place.git("config", "evals.trustBranch", "main")

    key = ("project", object_format, ref_format, mode)
    made = tmp_path_factory.getbasetemp() / "-".join(("made", *key))
    place = _copied(key, a_repo.path.with_name("project"), made, make)
    shutil.rmtree(a_repo.path)
    place.path.rename(a_repo.path)
    return a_repo


@pytest.fixture
def a_guarded_project(
    a_project: Place, mode: str, object_format: str, ref_format: str, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """A project with the hooks in place."""

    def make(place: Place) -> None:
        shutil.copytree(a_project.path, place.path, symlinks=True, dirs_exist_ok=True)
        _with_hooks(place)

    key = ("guarded", object_format, ref_format, mode)
    made = tmp_path_factory.getbasetemp() / "-".join(("made", *key))
    _copied(key, a_project.path.with_name("guarded"), made, make)
    shutil.rmtree(a_project.path)
    a_project.path.with_name("guarded").rename(a_project.path)
    return a_project


def _with_hooks(place: Place) -> None:
    from gitevals.install import hooks
    from gitevals.session import session

    before = Path.cwd()
    os.chdir(place.path)
    try:
        with session() as here:
            hooks.install(here.repo, here.objects)
    finally:
        os.chdir(before)


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program `git-evals` on PATH, as for a client with a window: a hook has its own interpreter alone."""
    monkeypatch.setenv("PATH", os.pathsep.join((os.path.dirname(str(shutil.which("git"))), "/usr/bin", "/bin")))


def hook_file(place: Place, event: str = "reference-transaction") -> Path:
    """Our hook of ``event``: a hook file, or the script that git's configuration names where git knows such hooks."""
    script = place.path / ".git" / "git-evals" / "hooks" / event
    return script if script.exists() else place.path / ".git" / "hooks" / event


def with_task_branch(place: Place, task: str = "42", *, start: str = "main") -> str:
    """A branch ``task/<task>`` with one commit that does the task; the current branch stays. The commit's id."""
    current = place.git("symbolic-ref", "--short", "HEAD")
    place.git("switch", "-q", "-c", f"task/{task}", start)
    commit = place.commit({f"ok-{task}": "done\n"}, f"do task {task}")
    place.git("switch", "-q", current)
    return commit
