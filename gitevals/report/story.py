"""The demo's story on a terminal."""

import shlex
import textwrap
from pathlib import Path

from gitevals.demo import Played
from gitevals.report.text import plain

_WIDTH = 78
_LINES = 14


def opening() -> list[str]:
    """What is said before the first step."""
    return ["A story in a throw-away repository: every command is real, and so is every refusal.", ""]


def step(played: Played) -> list[str]:
    """One step: what happens, the command, the start of what it printed."""
    said = textwrap.wrap(played.step.tells, _WIDTH) if played.step.tells else []
    if played.step.quiet:
        return said
    said.append(f"  $ {shlex.join(played.step.command)}")
    printed = [shown for shown in plain(played.output).splitlines() if shown.strip()]
    said += [f"    {part}" for shown in printed[:_LINES] for part in _folded(shown)]
    return [*said, *([f"    … {len(printed) - _LINES} more lines"] if len(printed) > _LINES else []), ""]


def _folded(text: str) -> list[str]:
    """``text`` on at most two lines, cut where even these do not hold it."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    parts = textwrap.wrap(text, _WIDTH - 4, subsequent_indent=indent, drop_whitespace=True, replace_whitespace=False)
    first = text[: len(text) - len(text.lstrip())] + parts[0].lstrip()
    return [first] if len(parts) == 1 else [first, parts[1] + ("…" if len(parts) > 2 else "")]


def ending(kept: Path | None) -> list[str]:
    """What is said after the last step."""
    where = (
        f"The repository is kept in {kept}/project." if kept else "The repository is gone again; --keep DIR keeps it."
    )
    return ["Every step behaved as told.", where]
