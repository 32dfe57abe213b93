"""What the gate's hooks cost, counted and not timed: modules, processes, objects that are read."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Place, evals, hook_file, with_task_branch

MAIN = "refs/heads/main"
# Each of these costs a hook more than all of its own modules, or would mean that something is derived anew.
NOT_FOR_A_HOOK = frozenset(
    ("pygit2", "cffi", "typer", "click", "rich", "yaml", "markdown_it", "typing_extensions", "json", "tempfile",
     "pathlib", "secrets", "random", "socket", "dataclasses", "argparse", "asyncio", "logging", "importlib.metadata",
     "gitevals.cli", "gitevals.git.libgit", "gitevals.evaluate", "gitevals.evidence.writing", "gitevals.session",
     "gitevals.yamltree", "gitevals.process")
)  # fmt: skip
GITEVALS_MODULES = 37
GIT_PROCESSES = ["cat-file", "for-each-ref", "log"]
# Of the movement: configuration (old, new, and both once more after an allowed one), old tree, text, freezes, record.
READS_WITH_ONE_WRITER = 11
# For each writer: the note of the tree in its notes ledger, and the freezes in its contracts ledger.
READS_OF_A_WRITER = 2

_LEDGER = "git-evals <writer@git-evals.invalid> 1893553445 +0000"


class Guarded:
    """A guarded project whose ``main`` may move to an evidenced commit, and programs that log how they are called."""

    def __init__(self, place: Place, programs: Path, new: str) -> None:
        self.place = place
        self.programs = programs
        self.evidenced = f"{place.git('rev-parse', 'main')} {new} {MAIN}\n".encode()

    def hook(self, lines: bytes) -> "subprocess.CompletedProcess[bytes]":
        """The hook of a prepared transaction, with the logging programs first on its PATH."""
        for log in self.programs.glob("*.log"):
            log.unlink()
        env = {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"}
        return self.place.attempt("sh", str(hook_file(self.place)), "prepared", stdin=lines, env=env)

    def logged(self, name: str) -> list[str]:
        """What the programs wrote to one log, sorted: they run side by side."""
        log = self.programs / f"{name}.log"
        return sorted(log.read_text().splitlines()) if log.exists() else []

    def with_writers(self, count: int) -> None:
        """Further writers, each with a ledger of evaluations and one of contracts that say nothing of this movement."""
        stream = [
            _ledger(f"{family}further-{number}", path, f"{number}\n")
            for number in range(1, count)
            for family, path in (("refs/notes/evals/", f"ab/{'0' * 38}"), ("refs/evals/contracts/", f"T-{number}/x"))
        ]
        self.place.git("fast-import", "--quiet", stdin="".join(stream).encode())
        assert self.hook(self.evidenced).returncode == 0  # learns the layout of the new ledgers


def _ledger(ref: str, path: str, content: str) -> str:
    text = f"git-evals ledger v1\n\nLedger: {ref}\nRepository: r1\n"
    said = f"commit {ref}\ncommitter {_LEDGER}\ndata {len(text)}\n{text}\n"
    return f"{said}M 100644 inline {path}\ndata {len(content)}\n{content}\n\n"


# Names that are asked of cat-file are logged before it gets them: whoever has its answer can read the log.
_GIT = """#!/bin/sh
skip=
for verb in "$@"; do case $skip$verb in +*) skip= ;; -c) skip=+ ;; -*) ;; *) break ;; esac; done
echo "$verb" >>{programs}/git.log
case $verb in
cat-file) while IFS= read -r name; do echo "$name" >>{programs}/objects.log; echo "$name"; done | {program} "$@" ;;
*) exec {program} "$@" ;;
esac
"""
_OTHER = """#!/bin/sh
echo {name} >>{programs}/{name}.log
exec {program} "$@"
"""


@pytest.fixture
def guarded(a_guarded_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guarded:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, program in {"git": shutil.which("git"), "grep": shutil.which("grep"), "python": sys.executable}.items():
        text = _GIT if name == "git" else _OTHER
        values = {"name": name, "programs": shlex.quote(str(programs)), "program": shlex.quote(str(program))}
        (programs / name).write_text(text.format(**values))
        (programs / name).chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(programs / "python"))
        assert evals(a_guarded_project, "hooks", "install").code == 0
    new = with_task_branch(a_guarded_project)
    answer = evals(a_guarded_project, "run", "42", "--branch", "task/42", "--quiet")
    assert answer.code == 0, answer
    made = Guarded(a_guarded_project, programs, new)
    assert made.hook(made.evidenced).returncode == 0  # fills the caches
    return made


def _creations(count: int) -> bytes:
    return b"".join(b"%040d %040x refs/heads/topic/%d\n" % (0, number + 1, number) for number in range(count))


def _modules(guarded: Guarded) -> frozenset[str]:
    """What the interpreter of a hook holds after it allowed the movement; started just as the shim starts it."""
    code = (
        "import gc, sys; gc.disable(); sys.path += sys.argv.pop(1).split(':'); from gitevals.hook import answer;"
        " status = answer(sys.argv[1:]); print(*[name for name, module in sys.modules.items() if module]);"
        " sys.exit(status)"
    )
    shim = hook_file(guarded.place).read_text()
    (folders,) = (shlex.split(line)[0] for line in shim.splitlines() if line.startswith("modules="))
    command = (sys.executable, "-I", "-S", "-c", code, folders.removeprefix("modules="), "reference-transaction")
    done = guarded.place.attempt(*command, stdin=guarded.evidenced)
    assert done.returncode == 0, done.stderr.decode()
    return frozenset(name for name in done.stdout.decode().split())


def test_a_hook_that_allows_imports_nothing_that_is_slow_to_import(guarded: Guarded) -> None:
    assert sorted(NOT_FOR_A_HOOK & _modules(guarded)) == []


def test_a_hook_that_allows_imports_few_modules_of_our_own(guarded: Guarded) -> None:
    ours = sorted(name for name in _modules(guarded) if name.partition(".")[0] == "gitevals")
    assert len(ours) <= GITEVALS_MODULES, ours


@pytest.mark.parametrize("writers", [1, 50])
def test_an_allowed_movement_starts_one_python_and_three_gits_whatever_the_number_of_writers(
    writers: int, guarded: Guarded
) -> None:
    guarded.with_writers(writers)
    assert guarded.hook(guarded.evidenced).returncode == 0
    assert guarded.logged("git") == GIT_PROCESSES
    assert guarded.logged("python") == ["python"]
    assert guarded.logged("grep") == []


def test_an_allowed_movement_reads_two_objects_for_each_writer_and_few_besides(guarded: Guarded) -> None:
    assert guarded.hook(guarded.evidenced).returncode == 0
    few = guarded.logged("objects")
    guarded.with_writers(50)
    assert guarded.hook(guarded.evidenced).returncode == 0
    many = guarded.logged("objects")
    assert len(few) <= READS_WITH_ONE_WRITER, few
    assert len(many) - len(few) == 49 * READS_OF_A_WRITER, many


def test_an_unprotected_movement_starts_no_process_at_all(guarded: Guarded) -> None:
    assert guarded.hook(_creations(1)).returncode == 0
    assert (guarded.logged("python"), guarded.logged("git"), guarded.logged("grep")) == ([], [], [])


def test_so_many_unprotected_movements_in_one_transaction_are_sifted_by_one_grep(guarded: Guarded) -> None:
    assert guarded.hook(_creations(5000)).returncode == 0
    assert (guarded.logged("python"), guarded.logged("git"), guarded.logged("grep")) == ([], [], ["grep"])


def test_a_protected_movement_is_found_behind_thousands_of_others(guarded: Guarded) -> None:
    assert guarded.hook(_creations(5000) + guarded.evidenced).returncode == 0
    assert (guarded.logged("python"), guarded.logged("grep")) == (["python"], ["grep"])
