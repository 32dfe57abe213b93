"""The story that `git evals demo` plays: real commands in a throw-away repository, each with its expected outcome."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from gitevals import process
from gitevals.errors import BadInput, EvalsError

GIT_EVALS = ("git", "evals")


class StoryBroken(EvalsError):
    """A step did not behave as narrated."""

    exit_code = 4


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step: what is told, files written first, the command, and what it must do.

    ``shows`` are texts that its output must contain, after ``{head}`` and ``{main}`` became short commit ids.
    """

    tells: str
    command: tuple[str, ...]
    files: dict[str, str] = {}
    refused: bool = False
    exit_code: int | None = None
    shows: tuple[str, ...] = ()
    quiet: bool = False


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A step that behaved as narrated, with its output."""

    step: Step
    number: int
    output: str


_CONFIG = """\
version: 1
repository: demo
mode: enforce
protect: [main]
branches: "task/{task}"
tasks: {path: "tasks/{task}.md"}
verify:
  - [sh, tests/smoke.sh]
checks:
  valid: {command: [sh, tests/valid.sh], timeout_seconds: 20}
  duplicate: {command: [sh, tests/duplicate.sh], timeout_seconds: 20}
  listing: {command: [sh, tests/listing.sh], timeout_seconds: 20}
bindings:
  "42": {AC-1: [valid], AC-2: [duplicate]}
  "43": {AC-1: [listing, verify-1]}
untasked: verify
outputs: [users]
"""

_TASK = """\
# Registration

## Acceptance Criteria

- [ ] [AC-1] A valid registration stores exactly one user.
- [ ] [AC-2] A duplicate email is rejected and stores no second user.
"""

_LISTING_TASK = """\
# Listing

## Acceptance Criteria

- [ ] [AC-1] `list` prints every user, sorted.
"""

_BASE = {
    ".gitevals.yaml": _CONFIG,
    "tasks/42.md": _TASK,
    "tasks/43.md": _LISTING_TASK,
    "register.sh": "echo not implemented >&2\nexit 1\n",
    "tests/smoke.sh": "sh -n register.sh\n",
    "tests/valid.sh": 'rm -f users\nsh register.sh ann@example.org || exit 1\n[ "$(wc -l <users)" -eq 1 ]\n',
    "tests/duplicate.sh": "rm -f users\nsh register.sh ann@example.org || exit 1\n"
    "if sh register.sh ann@example.org; then echo 'the duplicate was accepted' >&2; exit 1; fi\n"
    '[ "$(wc -l <users)" -eq 1 ]\n',
    "tests/listing.sh": "rm -f users\nsh register.sh b@example.org && sh register.sh a@example.org || exit 1\n"
    '[ "$(sh list.sh | head -n 1)" = a@example.org ]\n',
}
_PLAUSIBLE = 'echo "$1" >>users\necho "welcome, $1"\n'
_RIGHT = (
    'if grep -qxF "$1" users 2>/dev/null; then\n    echo "$1 is registered already" >&2\n    exit 1\nfi\n' + _PLAUSIBLE
)


def story() -> tuple[Step, ...]:
    """The steps, in order."""
    return (*_SETTING, *_FIRST_TASK, *_STALENESS, *_END)


_SETTING = (
    Step(tells="A repository with one protected branch.", command=("git", "init", "-q", "-b", "main"), quiet=True),
    Step(tells="Its configuration and two tasks are on main.", command=("git", "add", "."), files=_BASE, quiet=True),
    Step(tells="", command=("git", "commit", "-qm", "begin"), quiet=True),
    Step(tells="The gate is put in place.", command=(*GIT_EVALS, "init"), shows=("reference-transaction: installed",)),
    Step(
        tells="The criteria of task 42 are frozen before anybody works on it.",
        command=(*GIT_EVALS, "freeze", "42"),
        shows=("froze contract", "2 criteria"),
    ),
)
_FIRST_TASK = (
    Step(tells="An agent takes the task to a branch.", command=("git", "switch", "-q", "-c", "task/42"), quiet=True),
    Step(
        tells="Its change looks plausible, and forgets duplicates.",
        command=("git", "commit", "-qam", "Add registration"),
        files={"register.sh": _PLAUSIBLE},
    ),
    Step(
        tells="The checks run on exactly what would be merged: AC-2 fails.",
        command=(*GIT_EVALS, "run", "42", "--quiet"),
        exit_code=1,
        shows=("AC-1", "AC-2", "failed"),
    ),
    Step(tells="", command=("git", "switch", "-q", "main"), quiet=True),
    Step(
        tells="A plain `git merge` is refused, with the criterion, the commit and the next command.",
        command=("git", "merge", "task/42"),
        refused=True,
        shows=("AC-2 failed on {head}", "git evals report 42 --feedback", "undo: git reset --merge"),
    ),
    Step(tells="The undo that was printed works.", command=("git", "reset", "--merge"), quiet=True),
    Step(
        tells="This is what the agent gets for its next try.",
        command=(*GIT_EVALS, "report", "42", "--feedback"),
        shows=("AC-2", "the duplicate was accepted"),
    ),
    Step(tells="", command=("git", "switch", "-q", "task/42"), quiet=True),
    Step(
        tells="The agent mends it.",
        command=("git", "commit", "-qam", "Reject duplicate registrations"),
        files={"register.sh": _RIGHT},
    ),
    Step(tells="Now everything passes.", command=(*GIT_EVALS, "run", "42", "--quiet"), exit_code=0, shows=("passed",)),
    Step(tells="", command=("git", "switch", "-q", "main"), quiet=True),
    Step(tells="The same merge is allowed.", command=("git", "merge", "task/42"), shows=("Fast-forward",)),
    Step(
        tells="The evidence is a note on the commit, in git.",
        command=("git", "log", "-1", "--notes=evals/*", "--format=%h %s%n%N"),
        shows=('"kind":"evaluation"', '"result":"passed"'),
    ),
)
_STALENESS = (
    Step(tells="A second task.", command=("git", "switch", "-q", "-c", "task/43"), quiet=True),
    Step(tells="", command=("git", "add", "."), files={"list.sh": "sort users\n"}, quiet=True),
    Step(tells="The second task is done on its branch.", command=("git", "commit", "-qm", "Add list.sh")),
    Step(tells="It passes.", command=(*GIT_EVALS, "run", "43", "--quiet"), exit_code=0, shows=("passed",)),
    Step(
        tells="One more commit lands on the branch.",
        command=("git", "commit", "-qam", "List faster"),
        files={"list.sh": "sort <users\n"},
    ),
    Step(tells="", command=("git", "switch", "-q", "main"), quiet=True),
    Step(
        tells="Evidence for the commit before it does not count.",
        command=("git", "merge", "task/43"),
        refused=True,
        shows=("the change is now {head}", "git evals run 43"),
    ),
    Step(tells="", command=("git", "reset", "--merge"), quiet=True),
    Step(
        tells="Evaluated again, it passes.",
        command=(*GIT_EVALS, "run", "43", "--quiet"),
        exit_code=0,
        shows=("passed",),
    ),
    Step(tells="", command=("git", "switch", "-q", "-c", "readme"), quiet=True),
    Step(tells="", command=("git", "add", "."), files={"README": "Registers users.\n"}, quiet=True),
    Step(tells="", command=("git", "commit", "-qm", "Add a README"), quiet=True),
    Step(tells="", command=("git", "switch", "-q", "main"), quiet=True),
    Step(
        tells="Meanwhile main moves: a README needs no task, only the project's verification.",
        command=(*GIT_EVALS, "merge", "readme", "--quiet"),
        shows=("merged readme into main",),
    ),
    Step(
        tells="The evidence of task 43 is about the old main.",
        command=("git", "merge", "--no-edit", "task/43"),
        refused=True,
        shows=("has moved to {main}", "git evals run 43"),
    ),
    Step(tells="", command=("git", "merge", "--abort"), quiet=True),
    Step(
        tells="`git evals merge` runs what is missing and merges in one go.",
        command=(*GIT_EVALS, "merge", "task/43", "--quiet"),
        shows=("merged task/43 into main",),
    ),
)
_END = (
    Step(tells="The history shows nothing that got past the gate.", command=(*GIT_EVALS, "audit"), shows=("clean",)),
)


def play(keep: Path | None, *, on_step: Callable[[Played], None]) -> None:
    """Play the whole story, in ``keep`` if it is given; the first step that misbehaves raises `StoryBroken`."""
    with _stage(keep) as place:
        env = _environment(place)
        for number, step in enumerate(story(), 1):
            on_step(Played(step=step, number=number, output=_perform(step, place / "project", env)))


@contextlib.contextmanager
def _stage(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="git-evals-demo-") as name:
            place = Path(name)
            (place / "project").mkdir()
            yield place
        return
    place = keep.absolute()
    if place.exists() and any(place.iterdir()):
        raise BadInput(f'"{keep}" is not empty', hint="name a new directory")
    (place / "project").mkdir(parents=True)
    yield place


def _environment(place: Path) -> Mapping[str, str]:
    """A home of its own, a fixed identity, and a `git evals` that is this very program."""
    programs = place / "bin"
    programs.mkdir()
    command = programs / "git-evals"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitevals "$@"\n')
    command.chmod(0o755)
    modules = str(Path(__file__).parents[1])
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(place),
        "TMPDIR": tempfile.gettempdir(),
        "LANG": "C.UTF-8",
        "COLUMNS": os.environ.get("COLUMNS", "80"),
        "PYTHONPATH": modules,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "An Agent",
        "GIT_AUTHOR_EMAIL": "agent@example.org",
        "GIT_COMMITTER_NAME": "An Agent",
        "GIT_COMMITTER_EMAIL": "agent@example.org",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GITEVALS_WRITER": "demo",
    }


def _perform(step: Step, directory: Path, env: Mapping[str, str]) -> str:
    for name, content in step.files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    outcome = process.run(step.command, cwd=str(directory), env=env, limits=process.Limits(timeout_seconds=60))
    output = (outcome.stdout.kept + outcome.stderr.kept).decode("utf-8", "replace")
    _check(step, outcome, output, directory, env)
    return output


def _check(step: Step, outcome: process.Outcome, output: str, directory: Path, env: Mapping[str, str]) -> None:
    command = " ".join(step.command)
    if step.refused or step.exit_code:
        fits = outcome.exit_code != 0 if step.refused else outcome.exit_code == step.exit_code
    else:
        fits = outcome.exit_code == 0
    if not fits:
        raise StoryBroken(f"`{command}` ended with {outcome.exit_code}, not as narrated: {output.strip()[-400:]}")
    for wanted in step.shows:
        named = wanted.format(head=_tip(step.command[-1], directory, env), main=_tip("main", directory, env))
        if named not in output:
            raise StoryBroken(f'`{command}` does not say "{named}": {output.strip()[-400:]}')


def _tip(branch: str, directory: Path, env: Mapping[str, str]) -> str:
    outcome = process.run(
        ("git", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"),
        cwd=str(directory), env=env, limits=process.Limits(timeout_seconds=20),
    )  # fmt: skip
    return outcome.stdout.kept.decode().strip()[:12]
