"""Where commands print: data on stdout, everything else on stderr."""

import contextlib
import shutil
import sys
from collections.abc import Iterable

from gitevals.evaluate.checks import Happening
from gitevals.report.documents import encoded
from gitevals.report.text import line, plain, words


def data(lines: Iterable[str]) -> None:
    """Print what was asked for, one line an entry; whatever a record put into it acts on no terminal."""
    text = "".join(plain(entry.replace("\n", "\\n")) + "\n" for entry in lines)
    _out(text.encode("utf-8", "replace"))


def document(value: object) -> None:
    """Print one JSON document."""
    _out(encoded(value))


def _out(content: bytes) -> None:
    """Write to stdout; where it is closed, nobody asked for the data."""
    if sys.stdout is not None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


def say(*lines: str) -> None:
    """Say something beside the data."""
    with contextlib.suppress(OSError, AttributeError):  # stderr may be closed or full: no reason to do less
        sys.stderr.write("".join(f"{entry}\n" for entry in lines))
        sys.stderr.flush()


def width() -> int:
    """The width to write for: the terminal's, at most 120; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, 120)


class Progress:
    """Tells on stderr what runs: a line that changes on a terminal, a line a finished check elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, happening: Happening) -> None:
        """Tell of one happening."""
        if self._quiet:
            return
        name = line(happening.id)
        if happening.run is not None:
            why = f" ({line(happening.run.reason)})" if happening.run.reason else ""
            clear = "\r\x1b[K" if self._live else ""
            say(f"{clear}  {name} {words(happening.run.result)} in {happening.run.duration_ms / 1000:.1f} s{why}")
        elif self._live:
            left = max(0, happening.timeout_seconds - int(happening.elapsed_seconds))
            text = f"  {name} running {int(happening.elapsed_seconds)} s, {left} s left"
            sys.stderr.write(f"\r\x1b[K{text[: width() - 1]}")
            sys.stderr.flush()
