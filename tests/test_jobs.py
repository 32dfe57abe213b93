"""`--jobs`: several slots find what one would have found, end together, and are told of in whole lines."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gitevals.cli import output
from gitevals.errors import CannotTell
from gitevals.evaluate import slots
from gitevals.evaluate.checks import Bench, Done, Happening
from gitevals.evaluate.plan import Plan
from gitevals.model.contract import Command
from gitevals.model.evaluation import CheckRun
from gitevals.model.result import Result
from tests.conftest import Place, evals, with_task_branch
from tests.test_run import PATIENCE_SECONDS, ROOT, comes_true, configure, count, run, state_of

# What is different each time, and "try", which a view counts.
VARYING = {"id", "nonce", "started", "finished", "after", "duration_ms", "try"}


@pytest.fixture
def place(a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project whose scratch directories stand in a folder of their own, so that what is left there shows."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return a_project


def shell(script: str, **more: object) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], **more}


def scratches(place: Place) -> list[Path]:
    return list(Path(os.environ["TMPDIR"]).iterdir())


def without(value: Any, keys: set[str]) -> Any:
    """A document without ``keys`` at any depth."""
    if isinstance(value, dict):
        return {key: without(entry, keys) for key, entry in value.items() if key not in keys}
    return [without(entry, keys) for entry in value] if isinstance(value, list) else value


def results(found: Mapping[str, Any]) -> list[str]:
    return [entry["result"] for entry in found["checks"]]


MIXED = {
    "a-passes": shell("echo $VIRTUAL; exec .venv/bin/python -c 'import sys; print(sys.prefix[-5:])'"),
    "b-fails": shell("echo out; echo err >&2; exit 1"),
    "c-cannot-tell": shell("exit 125"),
    "d-takes-too-long": shell("echo begun; exec sleep 600", timeout_seconds=1),
    "e-loud": shell("seq 1 9999; seq 1 9999 >&2; exit 3"),
    "f-drops": shell("echo x >dropped"),
    "g-later": shell("echo later"),
    "h-later": shell("exit 1"),
}


PLAIN = 'mkdir -p .venv/bin && ln -s "$(command -v python3)" .venv/bin/python'
REAL = "exec python3 -m venv --without-pip .venv"


@pytest.mark.parametrize(
    ("setup", "is_spoilt"),
    [(PLAIN, True), *(pytest.param(REAL, ending, marks=pytest.mark.slow) for ending in (True, False))],
)
def test_four_slots_with_an_environment_each_find_what_one_finds(setup: str, is_spoilt: bool, place: Place) -> None:
    made = place.path.parent / "made"
    place.commit({".gitignore": ".venv/\n"}, "ignore")
    checks = MIXED if is_spoilt else {**MIXED, "f-drops": shell("rm -f *.none")}
    configure(place, checks, setup=[shell(f"echo x >>'{made}'; {setup}")])
    with_task_branch(place)
    place.commit({"elsewhere": "1\n"}, "main goes on, so that a merge has to be made")
    found = [run(place, "42", "--force", "--jobs", jobs) for jobs in ("1", "4")]
    assert count(made) == 5
    assert found[0][1]["merge"]["strategy"] == "ort"
    assert [code for code, _ in found] == [1, 1]
    one, four = (without(entry, VARYING) for _, entry in found)
    assert one == four
    assert results(one)[:5] == ["passed", "failed", "inconclusive", "inconclusive", "failed"]
    assert results(one)[5:] == (["inconclusive", "not_run", "not_run"] if is_spoilt else ["passed", "passed", "failed"])
    assert one["checks"][4]["stdout"]["bytes"] > len(one["checks"][4]["stdout"]["excerpt"]) > 1000
    assert scratches(place) == []


def test_a_slot_that_cannot_be_set_up_is_named_and_spoils_the_run(place: Place) -> None:
    counter = place.path.parent / "counter"
    setup = shell(f"echo x >>'{counter}'; test $(wc -l <'{counter}') != 2 || {{ echo no room in the second; exit 9; }}")
    configure(place, {f"check-{n}": shell("true") for n in range(4)}, setup=[setup])
    with_task_branch(place)
    code, found = run(place, "42", "--jobs", "2")
    assert (code, found["result"]) == (3, "inconclusive")
    assert found["reason"] == "slot 2: setup-1 did not succeed: exit 9"
    assert set(results(found)) == {"not_run"}
    assert [entry["stdout"]["excerpt"] for entry in found["setup"]] == ["no room in the second\n"]
    assert place.git("cat-file", "blob", found["setup"][0]["stdout"]["blob"]) == "no room in the second"
    assert "no room in the second" in evals(place, "report", "42", "--feedback").out
    assert scratches(place) == []


def test_more_jobs_than_checks_make_no_more_slots_and_shared_checks_run_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = place.path.parent / 'with:"a\\colon'
    strange.mkdir()
    monkeypatch.setenv("TMPDIR", str(strange))
    setups, runs = place.path.parent / "setups", place.path.parent / "runs"
    checks = {name: shell(f"echo {name} >>'{runs}'") for name in ("shared", "other", "unbound")}
    bindings = {"42": {"AC-1": ["shared"]}, "43": {"AC-1": ["shared", "other"]}}
    configure(place, checks, bindings=bindings, setup=[shell(f"echo x >>'{setups}'")])
    with_task_branch(place)
    place.commit({"elsewhere": "1\n"}, "main goes on, so that a merge has to be made")
    answer = evals(place, "run", "42", "43", "--jobs", "9", "--json")
    assert answer.code == 0, answer
    first, second = json.loads(answer.out)
    assert sorted(runs.read_text().split()) == ["other", "shared"]
    assert count(setups) == 2
    assert [entry["id"] for entry in first["checks"]] == ["shared"]
    assert sorted(entry["id"] for entry in second["checks"]) == ["other", "shared"]
    assert first["checks"][0] in second["checks"]
    assert scratches(place) == []


def waiting_for_each_other(place: Place) -> tuple[str, str]:
    """Shell texts of two checks: one goes on when the other runs, which is slow, and tells if it was waited for."""
    ready = place.path.parent / "ready"
    os.mkfifo(ready)
    return f"read line <'{ready}'", f"echo x >'{ready}'; sleep 30; echo x >'{place.path.parent}/waited-for'"


def test_a_fault_in_one_slot_ends_the_others_and_is_told_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = slots.check

    def without_room(bench: Bench, slot: slots.Slot, wanted: Plan, name: str, command: Command) -> Done:
        if name == "c-later":
            raise CannotTell("there is no room", hint="make some")
        return checked(bench, slot, wanted, name, command)

    monkeypatch.setattr(slots, "check", without_room)
    first, slow = waiting_for_each_other(place)
    configure(place, {"a-first": shell(first), "b-waits": shell(slow), "c-later": shell("true")})
    with_task_branch(place)
    before = state_of(place)
    answer = evals(place, "run", "42", "--jobs", "2")
    assert (answer.code, answer.out) == (3, ""), answer
    assert answer.err.count("git-evals: ") == 1
    assert "the scratch checkout is kept" not in answer.err
    assert not (place.path.parent / "waited-for").exists()
    assert scratches(place) == []
    assert state_of(place) == before


def test_what_no_longer_counts_is_not_waited_for(place: Place) -> None:
    first, slow = waiting_for_each_other(place)
    configure(place, {"a-drops": shell(f"{first}; echo x >new"), "b-waits": shell(slow), "c-later": shell("true")})
    with_task_branch(place)
    code, found = run(place, "42", "--jobs", "2")
    assert (code, results(found)) == (3, ["inconclusive", "not_run", "not_run"])
    assert found["reason"] == "a-drops source_changed: new file: new"
    assert not (place.path.parent / "waited-for").exists()
    assert scratches(place) == []


def start(place: Place, *arguments: str, stderr: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "gitevals", *arguments], cwd=place.path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
    )  # fmt: skip


def test_ctrl_c_ends_all_slots_and_each_scratch_that_is_kept_is_named(place: Place) -> None:
    started = place.path.parent / "started"
    mark = f"sleep-{os.getpid()}-of-jobs"
    script = f"echo x >>'{started}'; (setsid sh -c 'sleep 600; : {mark}' &); sleep 600; : {mark}"
    configure(place, {f"check-{n}": shell(script) for n in range(5)})
    with_task_branch(place)
    before = state_of(place)
    process = start(place, "run", "42", "--jobs", "3")
    assert comes_true(lambda: process.poll() is not None or count(started) == 3)
    os.killpg(process.pid, signal.SIGINT)
    out, raw = process.communicate(timeout=PATIENCE_SECONDS)
    err = raw.decode()
    assert (process.returncode, out, count(started)) == (130, b"", 3), err
    kept = re.findall(r"the scratch checkout is kept in (.+)\n", err)
    assert len(set(kept)) == len(kept) == 3, err
    assert all(Path(path, "ok-42").exists() for path in kept)
    assert {str(path / "work") for path in scratches(place)} == set(kept)
    assert err.endswith("git-evals: interrupted\n")
    commands = list(Path("/proc").glob("[0-9]*/cmdline"))
    assert [entry for entry in commands if mark.encode() in _read(entry)] == []
    assert place.git("for-each-ref", "refs/notes/") == ""
    assert state_of(place) == before


def _read(file: Path) -> bytes:
    with contextlib.suppress(OSError):
        return file.read_bytes()
    return b""


def test_progress_is_whole_lines_where_there_is_no_terminal(place: Place) -> None:
    configure(place, {f"check-{n}": shell(f"exit {n % 2}") for n in range(5)})
    with_task_branch(place)
    answer = evals(place, "run", "42", "--jobs", "3")
    lines = answer.err.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("froze the contract of task 42 (")
    assert all(re.fullmatch(r"  check-\d (passed|failed) in \d+\.\d s( \(exit 1\))?", entry) for entry in lines[1:])
    assert {entry.split()[0] for entry in lines[1:]} == {f"check-{n}" for n in range(5)}


@contextlib.contextmanager
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What is shown on a terminal that is our standard error, read from its other end."""
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        yield ours
    os.close(ours)


def shown(terminal: int) -> str:
    os.set_blocking(terminal, False)
    found = b""
    with contextlib.suppress(BlockingIOError):
        while True:
            found += os.read(terminal, 4096)
    return found.decode()


def standing(text: str) -> list[str]:
    """The lines that stand on a terminal once ``text`` has been written to it."""
    return [entry.split("\r\x1b[K")[-1] for entry in text.replace("\r\n", "\n").split("\n")]


def test_a_terminal_shows_all_that_runs_on_one_line_below_what_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_terminal(monkeypatch) as terminal:
        progress = output.Progress(quiet=False)
        progress(Happening(id="one", timeout_seconds=300))
        progress(Happening(id="two", timeout_seconds=60))
        progress(Happening(id="one", elapsed_seconds=12.6, timeout_seconds=300))
        assert standing(shown(terminal)) == ["  running one 12 s (288 s left), two 0 s (60 s left)"]
        output.say("the scratch checkout is kept in /x")
        progress(Happening(id="two", elapsed_seconds=70.0, timeout_seconds=60))
        progress(Happening(id="one", run=CheckRun(id="one", result=Result.FAILED, reason="exit 1", duration_ms=1500)))
        assert standing(shown(terminal)) == [
        "the scratch checkout is kept in /x", "  one failed in 1.5 s (exit 1)", "  running two 70 s (0 s left)",
    ]  # fmt: skip
        for number in range(20):
            progress(Happening(id=f"check-{number}", timeout_seconds=300))
        [last] = standing(shown(terminal))
        assert len(last) < 80
        assert last.startswith("  running two 70 s (0 s left), check-0 0 s (300 s left)")
        assert re.search(r" and \d+ more$", last)
        progress(Happening(id="two", run=CheckRun(id="two", result=Result.PASSED)))
        for number in range(20):
            progress(Happening(id=f"check-{number}", run=CheckRun(id=f"check-{number}", result=Result.PASSED)))
        assert standing(shown(terminal))[-1] == ""


def test_a_terminal_that_goes_away_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    survived = False
    with contextlib.suppress(OSError), open(theirs, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        progress = output.Progress(quiet=False)
        os.close(ours)
        progress(Happening(id="one", timeout_seconds=300))
        progress(Happening(id="one", run=CheckRun(id="one", result=Result.PASSED)))
        survived = True
    monkeypatch.undo()
    assert survived


def test_threads_that_tell_at_once_write_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_terminal(monkeypatch) as terminal:
        progress = output.Progress(quiet=False)

        def tell(name: str) -> None:
            for number in range(20):
                progress(Happening(id=f"{name}-{number}", timeout_seconds=9))
                progress(Happening(id=f"{name}-{number}", run=CheckRun(id="x", result=Result.PASSED)))

        threads = [threading.Thread(target=tell, args=(f"thread{n}",)) for n in range(4)]
        seen: list[str] = []
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            seen.append(shown(terminal))
        lines = standing("".join([*seen, shown(terminal)]))
        assert sorted(lines) == sorted(["", *(f"  thread{n}-{m} passed in 0.0 s" for n in range(4) for m in range(20))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code"), [("true", 0), ("head -c 4096 /dev/zero | tr '\\0' x | tee /dev/stderr; exit 1", 1)]
)
@pytest.mark.parametrize("together", [False, True])
def test_two_hundred_criteria_and_a_hundred_checks_stay_readable(
    script: str, code: int, together: bool, place: Place
) -> None:
    listed = "".join(f"- [ ] [AC-{n}] Requirement number {n} of many, with some words to read.\n" for n in range(200))
    place.commit({"tasks/42.md": f"# T\n\n## Acceptance Criteria\n\n{listed}"}, "task")
    names = [f"check-{n}" for n in range(100)]
    bindings = {f"AC-{n}": names[n % 50 : n % 50 + 5] if together else [names[n % 100]] for n in range(200)}
    configure(place, {name: shell(script) for name in names}, bindings={"42": bindings})
    head = with_task_branch(place)
    answer = evals(place, "run", "42", "--jobs", "4")
    assert answer.code == code, answer
    assert len(answer.out.splitlines()) <= 150
    assert max(map(len, answer.out.splitlines())) <= 80
    [line] = place.git("notes", "--ref=evals/tester", "show", head).encode().split(b"\n")
    assert len(line) <= 64 * 1024
    assert len(evals(place, "report", "42", "--markdown").out) <= 65536
    assert len(evals(place, "report", "42").out.splitlines()) <= 150
    found = json.loads(evals(place, "report", "42", "--json").out)
    assert (len(found["findings"]), len(found["checks"])) == (200, 100 if not together else 54)
    shown = evals(place, "show", found["id"]).out
    assert all(f"AC-{n} " in shown for n in range(200))


def test_a_contract_whose_evaluation_fits_no_record_is_refused_before_anything_runs(place: Place) -> None:
    ran = place.path.parent / "ran"
    listed = "".join(f"- [ ] [AC-{n}] Text.\n" for n in range(200))
    place.commit({"tasks/42.md": f"# T\n\n## Acceptance Criteria\n\n{listed}"}, "task")
    configure(place, {f"check-{n}": shell(f"echo x >>'{ran}'") for n in range(100)})
    with_task_branch(place)
    answer = evals(place, "run", "42", "--jobs", "4")
    assert (answer.code, count(ran)) == (2, 0), answer
    assert "the evaluation of task 42 does not fit a record" in answer.err
    assert "bind fewer checks to each criterion" in answer.err
    assert place.git("for-each-ref", "refs/evals/", "refs/notes/") == ""
