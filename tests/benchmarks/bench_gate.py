"""The gate alone: its hook, fed one evidenced fast-forward of a protected branch, beside an empty hook.

    python tests/benchmarks/bench_gate.py [--rounds 25] [--quick]

Every project is checked first: the evidenced movement is allowed and rests on a stored evaluation, and the same
movement to a commit without evidence is refused. Ledgers are packed and caches warm. `--quick` leaves out the
100,000 records. ``moved 3`` means that ``main`` moved three commits on since the contract was frozen.
"""

import argparse
import subprocess

import msgspec

from gitevals import gate
from gitevals.spans import Movement
from gitevals.verify import grounds
from tests.benchmarks.corpora import MAIN, Project, fill, inside, install_hook, project, sealed
from tests.benchmarks.timing import Series, Variant, command, interleaved, machine, say, table


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """The size of one project's evidence."""

    writers: int
    records: int
    contracts: bool = False
    moved: int = 0

    @property
    def name(self) -> str:
        """How the table calls it."""
        further = [*(["contracts"] if self.contracts else []), *([f"moved {self.moved}"] if self.moved else [])]
        return " ".join([f"{self.writers:,} x {self.records:,}", *further])


SMALL = Corpus(writers=1, records=100)
LARGE = Corpus(writers=1, records=100_000)
MANY = Corpus(writers=1000, records=10)
CORPORA = (
    SMALL,
    LARGE,
    Corpus(writers=100, records=100),
    MANY,
    Corpus(writers=100, records=100, contracts=True),
    Corpus(writers=1000, records=10, contracts=True),
    Corpus(writers=1, records=100, moved=3),
    Corpus(writers=100, records=100, moved=3),
)


def main() -> None:
    """Build, check, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    machine()
    wanted = [corpus for corpus in CORPORA if not (options.quick and corpus is LARGE)]
    with sealed() as folder:
        made = {corpus: project(folder / f"p{number}", moved=corpus.moved) for number, corpus in enumerate(wanted)}
        for corpus, built in made.items():
            fill(built, writers=corpus.writers, records=corpus.records, contracts=corpus.contracts)
            check(built)
        install_hook(made[SMALL].path, "empty", "#!/bin/sh\nexit 0\n")
        variants = {"empty hook": _hook(made[SMALL], "empty")}
        variants |= {corpus.name: _hook(built, "reference-transaction") for corpus, built in made.items()}
        found = interleaved(variants, rounds=options.rounds)
    table(found, baseline="empty hook")
    ratios(found)


def _hook(built: Project, name: str) -> Variant:
    return command("sh", f".git/hooks/{name}", "prepared", cwd=built.path, stdin=built.line)


def check(built: Project) -> None:
    """End here unless the gate allows the movement because of stored evidence, and refuses one without."""
    with inside(built.path) as here:
        movement = Movement(ref=MAIN, old=built.old, new=built.new, source="task/42")
        decision = gate.judge(grounds(here), movement)
    unknown = built.git("ls-tree", built.new).replace("\twork\n", "\tother\n")
    tree = built.git("mktree", stdin=unknown.encode()).strip()
    other = built.git("commit-tree", tree, "-p", built.old, "-m", "unknown").strip()
    line = built.line.replace(built.new.encode(), other.encode())
    refused = subprocess.run(
        ["sh", ".git/hooks/reference-transaction", "prepared"],
        cwd=built.path, input=line, capture_output=True, check=False,
    )  # fmt: skip
    if not decision.allowed or not decision.evaluations or refused.returncode != 1:
        raise SystemExit(f"{built.path}: not the expected decisions\n{decision}\n{refused}")


def ratios(found: dict[str, Series]) -> None:
    """Print how the time depends on records and on writers."""
    least, median = ({name: getattr(series, kind) for name, series in found.items()} for kind in ("least", "median"))
    for name, times in (("least", least), ("median", median)):
        if LARGE.name in times:
            say(f"{name}: 100,000 records against 100: {times[LARGE.name] / times[SMALL.name]:.3f}")
        each = (times[MANY.name] - times[SMALL.name]) / (MANY.writers - 1) * 1000
        say(f"{name}: {each:.1f} microseconds a writer")


if __name__ == "__main__":
    main()
