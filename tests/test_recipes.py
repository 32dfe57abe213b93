"""The recipes under docs/recipes do what they say: their shell blocks run as they stand and print what is shown."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[1] / "docs" / "recipes"
BLOCK = re.compile(r"^```(?P<kind>sh|sh fails|)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"\b[0-9a-f]{7,64}\b|\b\d+\.\d+(?= s\b)")
GITHUB = "https://github.com"
ORIGINS = {
    "replay-history.md": (f"{GITHUB}/hukkin/tomli",),
    "setuptools-scm.md": (f"{GITHUB}/pytest-dev/pluggy",),
    "npm.md": (f"{GITHUB}/tj/commander.js",),
    "submodule.md": (f"{GITHUB}/python-poetry/tomlkit", f"{GITHUB}/BurntSushi/toml-test.git"),
}
PROGRAMS = {"npm.md": ("node", "npm")}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with a ``git-evals`` that is this checkout's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "git-evals"
    here = Path(__file__).parents[1]
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{here}" exec "{sys.executable}" -m gitevals "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.mark.network
@pytest.mark.parametrize("recipe", ORIGINS)
def test_a_recipe_does_what_it_says(recipe: str, programs: Path, tmp_path: Path, sealed: Path) -> None:
    """``GITEVALS_MIRROR_<NAME>`` may name a local clone to use in place of the origin of that name."""
    for program in PROGRAMS.get(recipe, ()):
        if not shutil.which(program):
            pytest.skip(f"there is no {program} here")
    for origin in ORIGINS[recipe]:
        _redirected(origin)
        if subprocess.run(["git", "ls-remote", "-q", origin, "HEAD"], capture_output=True, check=False).returncode:
            pytest.skip(f"{origin} cannot be reached")
    done = subprocess.run(
        ["sh"],
        input=_script(recipe),
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "clean" in done.stdout
    printed = {_comparable(line) for line in done.stdout.splitlines()}
    missing = [line for line in _shown(recipe) if _comparable(line) not in printed]
    assert not missing, done.stdout


def _redirected(origin: str) -> None:
    """Have git read a local mirror of ``origin``, where one is named; for submodules, files must be allowed as well."""
    name = origin.rpartition("/")[2].removesuffix(".git")
    mirror = os.environ.get(f"GITEVALS_MIRROR_{re.sub('[^A-Z0-9]', '_', name.upper())}")
    if mirror:
        for setting in ((f"url.{mirror}.insteadOf", origin), ("protocol.file.allow", "always")):
            subprocess.run(["git", "config", "--global", *setting], check=True)


def _script(recipe: str) -> str:
    lines = ["set -eu"]
    for block in BLOCK.finditer((RECIPES / recipe).read_text()):
        text = block["text"].rstrip("\n")
        if block["kind"]:
            fails = block["kind"] == "sh fails"
            lines.append(f"if {text}; then echo 'was to fail' >&2; exit 9; fi" if fails else text)
    return "\n".join(lines)


def _shown(recipe: str) -> list[str]:
    """The lines of output that the recipe shows, without the marks of what it leaves out."""
    blocks = BLOCK.finditer((RECIPES / recipe).read_text())
    lines = [line for block in blocks if not block["kind"] for line in block["text"].splitlines()]
    return [line for line in lines if line.strip() not in ("", "…")]


def _comparable(line: str) -> str:
    """A line without what differs from run to run: ids and durations."""
    return VARYING.sub("*", line).rstrip()
