"""Commands and writers that are killed at any moment: what was acknowledged stays, and whoever comes next can write."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitevals.evidence.reading import gathered
from gitevals.git import ledger
from gitevals.git.store import Implementation, opened
from tests.conftest import Place, evals, with_task_branch
from tests.git import EVERY_STORE, assert_sound, repo_of

ROOT = Path(__file__).parents[1]
SEED = int(os.environ.get("CRASH_SEED") or random.SystemRandom().randrange(1 << 32))
ROUNDS = 70  # three stores make more than 200
LONGEST_WAIT_SECONDS = 10  # a second, on a machine that has ten times as much to do

# A process that stands by with everything imported; for each line it gets it forks a writer, which leads a group of its
# own and writes until it is killed: first a log, then a file, then an evaluation, telling the id of each and how long
# it took.
WRITERS = f"""
import os, sys, time
sys.path[:] = {[str(ROOT), *sys.path]!r}
from gitevals.evidence import writing
from gitevals.evidence.reading import CONTRACTS
from gitevals.git import repo
from gitevals.git import store as stores
from gitevals.model.evaluation import Environment, Evaluation, Merge, Subject
from gitevals.model.result import Result
using, base, head, tree = sys.argv[1:]
def evaluation(nonce):
    return Evaluation(
        task="42", contract="c" * 64, result=Result.FAILED, verification_digest="d" * 64, evaluator="test",
        subject=Subject(ref="refs/heads/main", source=None, repository="r1", base=base, base_tree=tree, head=head,
                        heads=(head,), tree=tree),
        writer="w", started="", finished="", environment=Environment(git="", os="", arch=""),
        merge=Merge(strategy="none", git=""), nonce=nonce,
    )
def write():
    here = repo.discover()
    with stores.opened(here, using) as opened:
        store = writing.Store(repo=here, objects=opened, writer="w", repository="r1")
        for number in range(1 << 20):
            nonce = writing.nonce()
            began = time.monotonic()
            [log] = writing.keep_logs(store, [nonce.encode()], "2030-01")
            print("log", log, time.monotonic() - began, flush=True)
            writing.append_files(store, CONTRACTS, lambda _: {{f"42/{{nonce}}": nonce.encode()}})
            print("file", nonce, time.monotonic() - began, flush=True)
            [stored] = writing.append_evaluations(store, [evaluation(nonce)])
            print("evaluation", stored.id, time.monotonic() - began, flush=True)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        write()
    os.waitpid(child, 0)
"""


def family(process: int) -> list[int]:
    """A process and all that descend from it."""
    with contextlib.suppress(OSError):
        below = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [process, *(each for child in below for each in family(int(child)))]
    return [process]


def end(process: int, how: str) -> None:
    """Kill a process alone, with its group, with all that it started, or only what it started."""
    everybody = family(process)
    with contextlib.suppress(ProcessLookupError):
        if how == "group":
            os.killpg(process, signal.SIGKILL)
        for each in {"alone": [process], "group": [process], "all": everybody, "children": everybody[1:]}[how]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        os.kill(process, signal.SIGKILL)


def assert_whole(place: Place) -> None:
    """No ledger says what it cannot show: records are readable, and their contracts are there."""
    repo = repo_of(place)
    with opened(repo) as objects:
        evidence = gathered(repo, objects)
        for stored in evidence.every_evaluation():
            digest = stored.evaluation.contract
            assert not digest or set(digest) == {"c"} or evidence.contract(stored.evaluation.task, digest)
        assert evidence.faults == []


@pytest.fixture
def chance() -> random.Random:
    sys.stdout.write(f"CRASH_SEED={SEED}\n")
    return random.Random(SEED)


Killed = tuple[set[tuple[str, str]], float]


def killed_at_random(place: Place, using: str, chance: random.Random, ways: list[str], rounds: int) -> Killed:
    """What the writers acknowledged until each was killed, and the longest that one write took."""
    base, head = place.git("rev-parse", "HEAD"), place.commit({"change": "1\n"})
    tree = place.git("rev-parse", "HEAD^{tree}")
    command = [sys.executable, "-S", "-c", WRITERS, using, base, head, tree]
    told: set[tuple[str, str]] = set()
    longest = 0.0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place.path) as standing:
        assert standing.stdin
        assert standing.stdout
        for _ in range(rounds):
            standing.stdin.write(b"\n")
            standing.stdin.flush()
            # The first acknowledgement shows that this one could write after what became of the one before.
            rows = [standing.stdout.readline()]
            time.sleep(chance.random() * 0.15)
            [writer] = family(standing.pid)[1:2]
            end(writer, chance.choice(ways))
            os.set_blocking(standing.stdout.fileno(), False)
            rows += (standing.stdout.read() or b"").splitlines(keepends=True)
            os.set_blocking(standing.stdout.fileno(), True)
            for row in rows:
                kind, name, seconds = row.decode().split()
                told.add((kind, name))
                longest = max(longest, float(seconds))
    return told, longest


def assert_kept(place: Place, told: set[tuple[str, str]]) -> None:
    repo = repo_of(place)
    with opened(repo) as objects, ledger.locked(repo):  # whoever still writes has ended then
        evidence = gathered(repo, objects)
        found = {("evaluation", stored.id) for stored in evidence.every_evaluation()}
        found |= {("log", name.replace("/", "")) for name in names_in(place, "refs/evals/logs/w/2030-01")}
        found |= {("file", name.removeprefix("42/")) for name in names_in(place, "refs/evals/contracts/w")}
    assert told - found == set()
    assert_sound(place)
    assert_whole(place)


def names_in(place: Place, ref: str) -> list[str]:
    return place.git("ls-tree", "-r", "--name-only", ref).split("\n")


@pytest.mark.slow
@EVERY_STORE
def test_whatever_was_acknowledged_outlives_every_kill(
    a_repo: Place, using: Implementation, chance: random.Random
) -> None:
    told, longest = killed_at_random(a_repo, using, chance, ["alone", "group", "all", "children"], ROUNDS)
    assert len(told) >= ROUNDS
    assert longest < LONGEST_WAIT_SECONDS
    assert_kept(a_repo, told)


@pytest.mark.slow
def test_kills_leave_a_reftable_repository_whole(tmp_path: Path, chance: random.Random) -> None:
    place = Place(tmp_path)
    made = place.attempt("git", "init", "-q", "--ref-format=reftable")
    if made.returncode != 0:
        pytest.skip("this git has no reftable")
    place.commit({"README": "hello\n"})
    told, longest = killed_at_random(place, "plumbing", chance, ["alone", "group"], ROUNDS // 2)
    assert longest < LONGEST_WAIT_SECONDS
    assert_kept(place, told)


COMMANDS = {
    "run": ("run", "42", "--branch", "task/42", "--force", "--quiet"),
    "freeze": ("freeze", "42"),
    "merge": ("merge", "task/42", "--quiet"),
    "hooks": ("hooks", "install"),
    "init": ("init", "--protect", "main"),
}


def started(place: Place, *arguments: str) -> "subprocess.Popen[bytes]":
    """A command that leads a session of its own, once its interpreter is up."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from gitevals.__main__ import main;"
        " import gitevals.cli.app; print('up', flush=True); sys.argv[0] = 'git-evals'; main()"
    )
    command = [sys.executable, "-c", code, str(ROOT), *arguments]
    process = subprocess.Popen(
        command, cwd=place.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    return process


def a_copy(place: Place, to: Path) -> Place:
    subprocess.run(["cp", "-a", str(place.path), str(to)], check=True)
    return Place(to)


def duration_seconds(place: Place, command: tuple[str, ...]) -> float:
    process = started(place, *command)
    began = time.monotonic()
    out, err = process.communicate()
    assert process.returncode == 0, (out, err)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_after_a_command_was_killed_the_next_one_works(
    name: str, a_project: Place, tmp_path: Path, chance: random.Random
) -> None:
    with_task_branch(a_project)
    if name == "init":
        a_project.git("rm", "-q", ".gitevals.yaml")
        a_project.commit()
    whole = duration_seconds(a_copy(a_project, tmp_path / "whole"), COMMANDS[name])
    for number in range(8):
        place = a_copy(a_project, tmp_path / f"copy-{number}")
        process = started(place, *COMMANDS[name])
        time.sleep(chance.random() * whole)
        end(process.pid, chance.choice(["alone", "group", "all"]))
        out, err = process.communicate()
        with ledger.locked(repo_of(place)):
            pass
        doctor = evals(place, "doctor")
        assert doctor.code in (0, 1), doctor
        again = evals(place, *COMMANDS[name])
        done = b"merged task/42" in out or b"already delivered" in again.err.encode()
        assert again.code == 0 or (name == "merge" and done), (again, out, err)
        assert_whole(place)
        assert_sound(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "freeze", "merge"])
def test_ctrl_c_at_any_moment_is_all_or_nothing(
    name: str, a_project: Place, tmp_path: Path, chance: random.Random
) -> None:
    with_task_branch(a_project)
    whole = duration_seconds(a_copy(a_project, tmp_path / "whole"), COMMANDS[name])
    for number in range(10):
        place = a_copy(a_project, tmp_path / f"copy-{number}")
        process = started(place, *COMMANDS[name])
        time.sleep(chance.random() * whole)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
        # One that comes when all is done but the interpreter ends by the signal itself, which a shell calls 130.
        assert process.returncode in (0, 130, -signal.SIGINT), (out, err)
        assert b"Traceback" not in err
        assert_whole(place)
        assert_sound(place)
        assert list(place.path.glob(".git/refs/**/*.lock")) == []
        assert place.git("status", "--porcelain") == ""
