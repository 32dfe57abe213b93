"""Wall-clock figures: variants take turns, so that a drift of the machine's speed falls on all of them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

Variant = Callable[[], object]


class Series(msgspec.Struct, frozen=True):
    """What one variant took, in milliseconds, sorted."""

    times_ms: tuple[float, ...]

    @property
    def least(self) -> float:
        """The shortest time."""
        return self.times_ms[0]

    @property
    def median(self) -> float:
        """The middle one."""
        return self.quantile(0.5)

    def quantile(self, share: float) -> float:
        """The time that so great a share of the runs did not exceed."""
        return self.times_ms[min(len(self.times_ms) - 1, int(share * len(self.times_ms)))]


def interleaved(variants: Mapping[str, Variant], *, rounds: int) -> dict[str, Series]:
    """How long each variant takes, run in turn (A B A B …) after one unmeasured round."""
    for variant in variants.values():
        variant()
    taken: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, variant in variants.items():
            started = time.perf_counter()
            variant()
            taken[name].append((time.perf_counter() - started) * 1000)
    return {name: Series(tuple(sorted(times))) for name, times in taken.items()}


def command(*arguments: str, cwd: Path, stdin: bytes = b"", status: int | None = 0) -> Variant:
    """A variant that runs a command and insists on its exit status (None: any)."""

    def once() -> None:
        done = subprocess.run(arguments, cwd=cwd, input=stdin, capture_output=True, check=False)
        if status is not None and done.returncode != status:
            raise SystemExit(f"{arguments}: exit {done.returncode}\n{done.stderr.decode()}")

    return once


def table(found: Mapping[str, Series], *, baseline: str = "") -> None:
    """Print every series: least, median, p95, and what its median is over the baseline's."""
    width = max(map(len, found))
    say(f"{'ms':{width}}  {'least':>8} {'median':>8} {'p95':>8}  {'over baseline' if baseline else ''}".rstrip())
    for name, series in found.items():
        over = f"  {series.median - found[baseline].median:+13.2f}" if baseline else ""
        say(f"{name:{width}}  {series.least:8.2f} {series.median:8.2f} {series.quantile(0.95):8.2f}{over}")


def machine() -> None:
    """Print what makes figures comparable: load, and the bare start of the hooks' interpreter (the spike's: 7.5 ms)."""
    bare = command(sys.executable, "-I", "-S", "-c", "pass", cwd=Path.cwd())
    loaded = command(sys.executable, "-I", "-S", "-c", _IMPORTS,
                     cwd=Path.cwd())  # fmt: skip
    found = interleaved({"python -I -S -c pass": bare, "… and msgspec, subprocess": loaded}, rounds=31)
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    say(f"load {load}; {os.cpu_count()} processors; Python {sys.version.split()[0]}")
    table(found)
    say()


# As the hook does: without the package that msgspec prefers where it is installed.
_IMPORTS = f"""import sys
sys.path.append({str(Path(str(msgspec.__file__)).parents[1])!r})
sys.modules["typing_extensions"] = None
import msgspec, subprocess"""


def say(text: str = "") -> None:
    """Print one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
