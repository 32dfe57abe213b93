"""What a transaction that moves no protected branch pays: the shell of the hook, over an empty hook.

    python tests/benchmarks/bench_prefilter.py [--rounds 41]

The transaction of 5,000 refs is timed three times only: writing so many files takes seconds.

The hooks are installed for an interpreter that logs its start; at the end the log must be empty.
"""

import argparse
import sys
from pathlib import Path

from gitevals.install import hooks
from tests.benchmarks.corpora import Project, inside, install_hook, patterns, project, sealed, unprotected
from tests.benchmarks.timing import Variant, command, interleaved, machine, say, table

EMPTY = "#!/bin/sh\nexit 0\n"
HOOK = "reference-transaction"


def main() -> None:
    """Build, measure, count interpreters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    machine()
    with sealed() as folder:
        guarded, empty, bare = (project(folder / name) for name in ("guarded", "empty", "bare"))
        log = log_interpreter(folder, guarded)
        install_hook(empty.path, HOOK, EMPTY)
        (bare.path / ".git" / "hooks" / HOOK).unlink()
        say(f"protected list: {patterns(guarded)}")
        for count in (1, 8, 32, 33, 100, 1000, 5000):
            say(f"\none call with {count} line(s)")
            lines = unprotected(count)
            calls = {"empty hook": call(empty, lines), "hook": call(guarded, lines)}
            table(interleaved(calls, rounds=options.rounds), baseline="empty hook")
        for count in (1, 5000):
            say(f"\ngit update-ref --stdin that creates and deletes {count} ref(s)")
            projects = {"empty hook": empty, "no hook": bare, "hook": guarded}
            whole = {name: transaction(made, count) for name, made in projects.items()}
            table(interleaved(whole, rounds=options.rounds if count == 1 else 3), baseline="empty hook")
        say(f"\ninterpreters started by the hook: {len(log.read_text().splitlines()) if log.exists() else 0}")
        if log.exists():
            raise SystemExit("an unprotected movement started Python")
        call(guarded, guarded.line)()
        say(f"… and by one protected movement: {len(log.read_text().splitlines())}")


def log_interpreter(folder: Path, made: Project) -> Path:
    """Install the hooks for an interpreter that writes a line to the returned file whenever it starts."""
    log, interpreter, real = folder / "started", folder / "python", sys.executable
    interpreter.write_text(f'#!/bin/sh\necho started >>"{log}"\nexec "{real}" "$@"\n')
    interpreter.chmod(0o755)
    sys.executable = str(interpreter)
    with inside(made.path) as here:
        hooks.install(here.repo, here.objects, files=True)
    sys.executable = real
    return log


def call(made: Project, lines: bytes) -> Variant:
    """One call of the hook as git makes it."""
    return command("sh", f".git/hooks/{HOOK}", "prepared", cwd=made.path, stdin=lines)


def transaction(made: Project, count: int) -> Variant:
    """Two whole transactions, one that creates refs and one that deletes them."""
    names = [f"refs/heads/topic/{number}" for number in range(count)]
    create = command("git", "update-ref", "--stdin", cwd=made.path,
                     stdin="".join(f"create {name} {made.old}\n" for name in names).encode())  # fmt: skip
    delete = command("git", "update-ref", "--stdin", cwd=made.path,
                     stdin="".join(f"delete {name}\n" for name in names).encode())  # fmt: skip

    def both() -> None:
        create()
        delete()

    return both


if __name__ == "__main__":
    main()
