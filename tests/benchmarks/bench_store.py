"""Recording evaluations in a ledger of 100,000, beside one `git notes append` on the same tree.

    python tests/benchmarks/bench_store.py [--records 100000] [--rounds 21]

What we record survives a loss of power; what `git notes` writes does so only with `core.fsync`: hence two rows of it.
In this process, by libgit2 where it serves. One evaluation is two notes (head and tree) in one commit.
"""

import argparse
import itertools
from pathlib import Path

from gitevals.evidence.reading import NOTES
from gitevals.evidence.writing import append_evaluations
from gitevals.model import record
from tests.benchmarks.corpora import REPOSITORY, WRITER, fill, filler, inside, project, sealed
from tests.benchmarks.timing import Variant, command, interleaved, machine, say, table


def main() -> None:
    """Build, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    machine()
    with sealed() as folder:
        made = project(folder / "large")
        small = project(folder / "small")
        fill(made, writers=1, records=options.records)
        fill(small, writers=1, records=100)
        for place in (made, small):
            place.git("update-ref", "refs/notes/plain", f"{NOTES}{WRITER}")
            (place.path / ".git" / "hooks" / "reference-transaction").unlink()
        line = folder / "line"
        line.write_bytes(record.encode(made.evaluation))
        fresh = (filler(made.evaluation, f"fresh/{number}") for number in itertools.count())
        with inside(small.path) as few, inside(made.path) as many:
            size = f"{options.records:,}"
            stores = {"100": few.store(REPOSITORY), size: many.store(REPOSITORY)}
            variants = {
                f"git notes append among {size}": append(made.path, line),
                f"git notes append among {size}, on disk": append(made.path, line, "-c", "core.fsync=all"),
                f"one evaluation among {size}": lambda: append_evaluations(stores[size], [next(fresh)]),
                "git notes append among 100": append(small.path, line),
                "one evaluation among 100": lambda: append_evaluations(stores["100"], [next(fresh)]),
            }
            table(interleaved(variants, rounds=options.rounds), baseline=f"git notes append among {size}, on disk")
            say()
            bulk = {f"1,000 evaluations in one commit among {size}": lambda: append_evaluations(
                stores[size], list(itertools.islice(fresh, 1000)))}  # fmt: skip
            table(interleaved(bulk, rounds=max(3, options.rounds // 5)))


def append(path: Path, line: Path, *options: str) -> Variant:
    """A variant that appends one record to the note of the first commit, as a person would."""
    return command("git", *options, "notes", "--ref=plain", "append", "-F", str(line), "main", cwd=path)


if __name__ == "__main__":
    main()
