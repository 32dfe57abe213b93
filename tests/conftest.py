"""Sealed environments: real git with a private HOME, no user or system configuration, fixed identity and dates."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

DATE = "2030-01-02T03:04:05Z"


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
            command, cwd=cwd or self.path, input=stdin, capture_output=True, env={**os.environ, **(env or {})}, check=False
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
        if name.startswith(("GIT_", "GITEVALS_", "XDG_", "PYTEST_ADDOPTS")) or name in ("EDITOR", "VISUAL", "PYTHONPATH"):
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
    for name, value in identity.items():
        monkeypatch.setenv(name, value)
    (home / ".gitconfig").write_text("[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n")
    return home


@pytest.fixture(params=["sha1"])
def object_format(request: pytest.FixtureRequest) -> str:
    """The object format of the repositories a test makes; parametrise it indirectly for both."""
    return str(request.param)


@pytest.fixture
def a_repo(tmp_path: Path, object_format: str) -> Place:
    """A repository with one commit on ``main``."""
    path = tmp_path / "repo"
    path.mkdir()
    place = Place(path)
    place.git("init", "-q", f"--object-format={object_format}")
    place.commit({"README": "hello\n"}, "first")
    return place
