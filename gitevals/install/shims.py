"""The text of the hooks: put together from their sources for this interpreter."""

import os
import sys
from enum import StrEnum
from pathlib import Path

import msgspec

import gitevals
from gitevals.errors import BadInput

EVENTS = ("reference-transaction", "pre-commit", "pre-merge-commit", "pre-push")
GATE = EVENTS[0]
FED = (GATE, "pre-push")  # git gives them lines to read
MARK = "# Installed by `git evals hooks install`"
SCRIPTS = "git-evals/hooks"
_HEAD = f"#!/bin/sh\n{MARK}; `git evals hooks uninstall` takes it away.\nset -f\n"


class Kind(StrEnum):
    """Where a script stands: as a hook of one repository, as one of many, or beside the hooks, called by another."""

    HOOK = "hook"
    SHARED = "shared"
    SCRIPT = "script"


def folder() -> Path:
    """The folder of the hooks' sources: inside an installed package, beside it in a checkout."""
    package = Path(gitevals.__file__).parent
    for place in (package / "install" / "shims", package.parent / "hooks"):
        if (place / "prelude.sh").is_file():
            return place
    raise BadInput("the hooks of git-evals are missing from its installation", hint="install git-evals again")


def source(event: str, kind: Kind) -> str:
    """The whole text of one hook for this interpreter."""
    enrolled = _part("enrolled.sh") if kind is Kind.SHARED else ""
    judged = _part("prelude.sh").replace("@LOCATE@\n", _part("locate.sh") + enrolled) + _part(event)
    ending = 'judge "$@"\nexit\n' if kind is Kind.SCRIPT else _part("chain.sh")
    text = f"{_HEAD}\njudge() {{\n{judged}}}\n\n{ending}".replace("@EVENT@", event)
    return text.replace("@PYTHON@", _quoted(sys.executable)).replace("@MODULES@", _quoted(os.pathsep.join(_modules())))


def command(event: str) -> str:
    """The value of ``hook.<name>.command``: it finds the script of ``event`` wherever the repository is moved to.

    Where there is no script, it lets pass what can be no branch.
    """
    missing = {GATE: '[ "$1" = prepared ] || exit 0;\n' + _part("missing.sh"), "pre-push": _part("missing.sh")}
    text = _part("locate.sh") + _part("configured.sh").replace("@EVENT@", event) + missing.get(event, "")
    # git puts the arguments after the last word
    return " ".join(line.strip() for line in [*text.splitlines(), ":"])


def is_ours(path: Path) -> bool:
    """Whether the file at ``path`` is a hook of git-evals, of whichever version or installation."""
    try:
        return not path.is_symlink() and path.is_file() and MARK in path.read_text(errors="replace")
    except OSError:
        return False


def interpreter(path: Path) -> str:
    """The interpreter that the hook at ``path`` was made for, "" where it names none."""
    lines = (line for line in path.read_text(errors="replace").splitlines() if line.startswith("python='"))
    return next((line[len("python='") : -1].replace("'\\''", "'") for line in lines), "")


def _part(name: str) -> str:
    return (folder() / name).read_text()


def _modules() -> list[str]:
    """The folders from which an interpreter without site-packages imports us and msgspec."""
    ours, needed = Path(gitevals.__file__).parents[1], Path(str(msgspec.__file__)).parents[1]
    return list(dict.fromkeys(str(place) for place in (ours, needed)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
