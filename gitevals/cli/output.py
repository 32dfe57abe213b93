"""Where commands print: data on stdout, everything else on stderr."""

import contextlib
import select
import shutil
import sys
import threading
import time
from collections.abc import Iterable

from gitevals.evaluate.checks import Happening
from gitevals.report.documents import compact, encoded
from gitevals.report.text import line, plain, words

_PAUSE_SECONDS = 1


def data(lines: Iterable[str]) -> None:
    """Print what was asked for, one line an entry; whatever a record put into it acts on no terminal."""
    if sys.stdout is not None:
        for entry in lines:
            shown = plain(entry.replace("\n", "\\n")) + "\n"
            sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
        sys.stdout.flush()


def document(value: object) -> None:
    """Print one JSON document."""
    _out(encoded(value))


def document_line(value: object) -> None:
    """Print one JSON document on one line."""
    _out(compact(value))


def pause() -> bool:
    """Wait a second; False as soon as nobody reads stdout any more."""
    try:
        watched = select.poll()
        watched.register(sys.stdout, 0)
        ended = any(mask & (select.POLLERR | select.POLLHUP) for _, mask in watched.poll(_PAUSE_SECONDS * 1000))
    except (AttributeError, ValueError, OSError):  # no stdout, or none that can be waited for
        time.sleep(_PAUSE_SECONDS)
        return True
    return not ended


def _out(content: bytes) -> None:
    """Write to stdout; where it is closed, nobody asked for the data."""
    if sys.stdout is not None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


class _Screen:
    """Standard error, to which several threads write; on a terminal one line may stand there that is drawn anew."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_drawn = False

    def say(self, text: str) -> None:
        """Write whole lines in place of the drawn one."""
        self._write(text, drawn=False)

    def draw(self, text: str) -> None:
        """Have ``text``, without a line end, stand there until something else is written."""
        self._write(text, drawn=bool(text))

    def _write(self, text: str, *, drawn: bool) -> None:
        with self._lock, contextlib.suppress(OSError, AttributeError):  # closed or full: no reason to do less
            sys.stderr.write(f"\r\x1b[K{text}" if self._is_drawn else text)
            self._is_drawn = drawn
            sys.stderr.flush()


_SCREEN = _Screen()


def say(*lines: str) -> None:
    """Say something beside the data."""
    _SCREEN.say("".join(f"{entry}\n" for entry in lines))


def width() -> int:
    """The width to write for: the terminal's, at most 120; 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, 120)


class Progress:
    """Tells on stderr what runs: on a terminal a line that changes, with all of it; elsewhere a line a finished check.

    Several threads may tell it of what they run.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._running: dict[str, Happening] = {}

    def __call__(self, happening: Happening) -> None:
        """Tell of one happening."""
        if self._quiet:
            return
        with self._lock:
            self._running[happening.id] = happening
            if happening.run is not None:
                del self._running[happening.id]
                why = f" ({line(happening.run.reason)})" if happening.run.reason else ""
                seconds = happening.run.duration_ms / 1000
                say(f"  {line(happening.id)} {words(happening.run.result)} in {seconds:.1f} s{why}")
            if self._live:
                _SCREEN.draw(_at_once(list(self._running.values()), width() - 1))


def _at_once(running: list[Happening], room: int) -> str:
    """What runs, on one line of at most ``room`` characters; what finds no place is counted."""
    told = [_going(happening) for happening in running]
    for count in range(len(told), 0, -1):
        more = f" and {len(told) - count} more" if count < len(told) else ""
        text = f"  running {', '.join(told[:count])}{more}"
        if len(text) <= room or count == 1:
            return text[:room]
    return ""


def _going(happening: Happening) -> str:
    elapsed = int(happening.elapsed_seconds)
    return f"{line(happening.id)} {elapsed} s ({max(0, happening.timeout_seconds - elapsed)} s left)"
