"""What `git evals run` adds to its checks: one `true` on 1,000 files, beside a bare work tree for the same commit.

    python tests/benchmarks/bench_run.py [--files 1000] [--rounds 15]

The configuration has one check and one command of verification, so two programs run; the bare variant runs two also.
In this process: the start of the command is not in it. Every run is forced and stores an evaluation.
"""

import argparse
import subprocess
from pathlib import Path

from gitevals.evaluate.change import Change, Manner
from gitevals.evaluate.examine import examine
from gitevals.evaluate.run import run
from gitevals.model.result import Result
from gitevals.session import Session
from gitevals.targets import branch_head, target
from tests.benchmarks.corpora import TASK, Project, inside, project, sealed
from tests.benchmarks.timing import interleaved, machine, say, table


def main() -> None:
    """Build, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    machine()
    with sealed() as folder:
        made = project(folder / "project", files=options.files)
        with inside(made.path) as here:
            found = interleaved(
                {
                    "git worktree add, true, true, remove": lambda: bare(made, folder / "scratch"),
                    "git evals run": lambda: evaluate(here, force=True),
                    "git evals run, evidence reused": lambda: evaluate(here, force=False),
                },
                rounds=options.rounds,
            )
    table(found, baseline="git worktree add, true, true, remove")
    say(f"{options.files} files; overhead in the last column")


def bare(made: Project, scratch: Path) -> None:
    """The least that running two commands on a fresh checkout can take."""
    made.git("worktree", "add", "-q", "--detach", str(scratch), made.new)
    for _ in range(2):
        subprocess.run(["true"], cwd=scratch, check=True)
    made.git("worktree", "remove", "--force", str(scratch))


def evaluate(here: Session, *, force: bool) -> None:
    """What the command does once its arguments are read."""
    aim = target(here.repo, here.objects, None)
    change = Change(target=aim, head=branch_head(here.repo, f"task/{TASK}"))
    [stored] = run(here, change, [examine(here, aim, TASK)], Manner(force=force))
    if stored.evaluation.result is not Result.PASSED:
        raise SystemExit(f"the evaluation did not pass: {stored.evaluation}")


if __name__ == "__main__":
    main()
