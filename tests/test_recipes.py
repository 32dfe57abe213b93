"""The recipes under docs/recipes do what they say: their shell blocks are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[1] / "docs" / "recipes"
BLOCK = re.compile(r"^```sh(?P<fails> fails)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


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
@pytest.mark.parametrize(("recipe", "origin"), [("replay-history.md", "https://github.com/hukkin/tomli")])
def test_a_recipe_does_what_it_says(recipe: str, origin: str, programs: Path, tmp_path: Path, sealed: Path) -> None:
    """``GITEVALS_MIRROR_<name>`` may name a local clone to use in place of the origin."""
    mirror = os.environ.get(f"GITEVALS_MIRROR_{origin.rpartition('/')[2].upper()}")
    if mirror:
        subprocess.run(["git", "config", "--global", f"url.{mirror}.insteadOf", origin], check=True)
    if subprocess.run(["git", "ls-remote", "-q", origin, "HEAD"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{origin} cannot be reached")
    script = ["set -eu"]
    for block in BLOCK.finditer((RECIPES / recipe).read_text()):
        text = block["text"].rstrip("\n")
        script.append(f"if {text}; then echo 'was to fail' >&2; exit 9; fi" if block["fails"] else text)
    done = subprocess.run(
        ["sh"],
        input="\n".join(script).encode(),
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert b"clean" in done.stdout
