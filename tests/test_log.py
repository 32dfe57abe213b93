"""`git evals log`: one order for all ledgers that no clock can turn round, nothing dropped, nothing twice."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from gitevals.cli.output import pause
from gitevals.evidence import writing
from gitevals.evidence.reading import CONTRACTS, EVENTS
from gitevals.journal import follow, journal
from gitevals.model import record
from gitevals.model.evaluation import Evaluation, Freeze
from gitevals.model.record import Record
from gitevals.session import Session, session
from tests.conftest import Place, evals, with_task_branch
from tests.model import about, an_evaluation

LATE, EARLY = "2031-01-01T00:00:00.000Z", "2029-01-01T00:00:00.000Z"
A, B = ("a" * 40, "a1" * 20), ("b" * 40, "b1" * 20)


@pytest.fixture
def here(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(a_project.path)
    with session() as opened:
        yield opened


def told(finished: str, where: tuple[str, str] = A, nonce: str = "n") -> Evaluation:
    """An evaluation on the head and tree ``where``."""
    found = about(an_evaluation(finished=finished), head=where[0], heads=(where[0],), tree=where[1])
    return msgspec.structs.replace(found, nonce=nonce)


def wrote(here: Session, writer: str, evaluation: Evaluation) -> str:
    store = msgspec.structs.replace(here.store("r1"), writer=writer)
    return writing.append_evaluations(store, [evaluation])[0].id


def froze(here: Session, writer: str, created: str, supersedes: Sequence[str] = ()) -> str:
    freeze = Freeze(
        task="42", digest="d" * 64, repository="r1", base="b" * 40, supersedes=tuple(supersedes), writer=writer,
        tool="t", created=created, nonce=created,
    )  # fmt: skip
    return filed(here, CONTRACTS, "42/freezes", freeze, writer)


def filed(here: Session, family: str, folder: str, content: Record, writer: str = "tester") -> str:
    raw = record.encode(content)
    store = msgspec.structs.replace(here.store("r1"), writer=writer)
    writing.append_files(store, family, lambda _: {f"{folder}/{record.identify(raw)}.json": raw})
    return record.identify(raw)


def order(here: Session) -> list[str]:
    return [entry.id for entry in journal(here, here.evidence()).entries]


def test_what_an_evaluation_came_after_stands_before_it_whatever_the_clocks_say(here: Session) -> None:
    first = wrote(here, "one", told(LATE))
    second = wrote(here, "two", told(EARLY))
    third = wrote(here, "one", told(EARLY, nonce="m"))
    assert order(here) == [first, second, third]


def test_what_a_ledger_held_stands_before_what_was_added(here: Session) -> None:
    first = wrote(here, "one", told(LATE, A))
    second = wrote(here, "one", told(EARLY, B))
    assert order(here) == [first, second]


def test_without_a_cause_the_clock_decides_and_then_the_id(here: Session) -> None:
    last, first = wrote(here, "one", told(LATE, A)), wrote(here, "two", told(EARLY, B))
    other = ("c" * 40, "c1" * 20)
    same = sorted([wrote(here, "three", told(LATE, other)), last])
    assert order(here) == [first, *same]


def test_a_superseded_freeze_stands_before_the_one_that_replaces_it(here: Session) -> None:
    first = froze(here, "one", LATE)
    second = froze(here, "two", EARLY, [first])
    assert order(here) == [first, second]


def test_a_rewritten_ledger_cannot_turn_round_what_a_record_says(here: Session, a_project: Place) -> None:
    first, second = wrote(here, "one", told(LATE)), wrote(here, "one", told(EARLY))
    ref = "refs/notes/evals/one"
    whole, line = a_project.git("rev-parse", f"{ref}^{{tree}}"), wrote_alone(a_project, ref)
    bottom = a_project.git("commit-tree", line, "-m", "second first")
    a_project.git("update-ref", ref, a_project.git("commit-tree", whole, "-p", bottom, "-m", "then both"))
    assert order(here) == [first, second]


def wrote_alone(place: Place, ref: str) -> str:
    """A notes tree in which only the later of the two records of the tree ``A`` stands."""
    lines = place.git("show", f"{ref}:{A[1][:2]}/{A[1][2:]}").split("\n")
    later = next(line for line in lines if json.loads(line)["after"])
    blob = place.git("hash-object", "-w", "--stdin", stdin=later.encode() + b"\n")
    inner = place.git("mktree", stdin=f"100644 blob {blob}\t{A[1][2:]}\n".encode())
    return place.git("mktree", stdin=f"040000 tree {inner}\t{A[1][:2]}\n".encode())


def test_a_ledger_whose_history_is_damaged_is_still_told_by_after_and_time(here: Session, a_project: Place) -> None:
    first, second = wrote(here, "one", told(LATE)), wrote(here, "one", told(EARLY))
    old = a_project.git("rev-parse", "refs/notes/evals/one~")
    (a_project.path / ".git/objects" / old[:2] / old[2:]).unlink()
    found = journal(here, here.evidence())
    assert [entry.id for entry in found.entries] == [first, second]
    assert "cannot be read" in found.notices[0]


class Strange(Record, frozen=True, kw_only=True):
    """An event of a kind that this version does not know."""

    schema: int = 1
    kind: str = "inter\x1b[31mvention"
    task: str = "42"
    created: str = EARLY
    text: str = ""


def test_the_journal_of_a_delivery_in_words_and_as_a_document(here: Session, a_project: Place) -> None:
    with_task_branch(a_project)
    labels = ("--run", "r-1", "--attempt", "a\x07-2", "--stage", "ci")
    assert evals(a_project, "freeze", "42", "--reason", "agreed").code == 0
    assert evals(a_project, "run", "42", "-q", *labels).code == 0
    assert evals(a_project, "merge", "task/42", "-q").code == 0
    assert evals(a_project, "reopen", "42", "--reason", "once more").code == 0
    filed(here, EVENTS, "42", Strange(text="x" * 70 * 1024))
    strange = filed(here, EVENTS, "43", Strange(task="43"))
    wrong = filed(here, EVENTS, "42", Strange(kind="reopen"))
    answer = evals(a_project, "log", "--json")
    events = json.loads(answer.out)["events"]
    assert answer.code == 0
    by_kind = {entry["event"]: entry for entry in reversed(events)}
    assert set(by_kind) == {"evaluation.contract", "evaluation.finished", "reopen", "inter\x1b[31mvention"}
    finished = by_kind["evaluation.finished"]
    assert (finished["task"], finished["result"], finished["try"]) == ("42", "passed", {"number": 1, "of": 1})
    assert (finished["subject"]["head"], finished["subject"]["ref"]) == (
        a_project.git("rev-parse", "task/42"), "refs/heads/main",
    )  # fmt: skip
    assert finished["correlation"] == {"run": "r-1", "task": "", "attempt": "a\x07-2", "stage": "ci"}
    assert by_kind["evaluation.contract"]["reason"] == "agreed"
    assert by_kind["inter\x1b[31mvention"]["id"] == strange
    assert [entry["event"] for entry in events if entry["id"] == wrong] == ["reopen"]
    assert "too_long" in answer.err
    assert "malformed" in answer.err
    for width in (40, 80, 120):
        assert_readable(a_project, width, [entry["id"][:12] for entry in events])
    only = json.loads(evals(a_project, "log", "--task", "43", "--json").out)["events"]
    assert [entry["id"] for entry in only] == [strange]
    assert evals(a_project, "log", "--task", "../43").code == 2


def assert_readable(place: Place, width: int, ids: Sequence[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        answer = evals(place, "log")
    assert answer.code == 0
    assert [name for name in ids if name not in answer.out] == []
    assert [char for char in answer.out if not char.isprintable() and char != "\n"] == []
    assert [row for row in answer.out.split("\n") if len(row) > width] == []


def test_hostile_notes_are_reported_and_hide_nothing(here: Session, a_project: Place) -> None:
    known = wrote(here, "one", told(EARLY))
    blob = a_project.git("hash-object", "-w", "--stdin", stdin=b"{" + b"x" * 70 * 1024 + b"\n\x1b[2J\n{}\n")
    inner = a_project.git("mktree", stdin=f"100644 blob {blob}\t{B[1][2:]}\n".encode())
    tree = a_project.git("mktree", stdin=f"040000 tree {inner}\t{B[1][:2]}\n".encode())
    commit = a_project.git("commit-tree", tree, "-m", "hostile")
    for ref in ("refs/notes/evals-remote/origin/two", "refs/evals-remote/origin/events/two"):
        a_project.git("update-ref", ref, commit)
    answer = evals(a_project, "log")
    assert answer.code == 0
    assert known[:12] in answer.out
    assert {row.rpartition(": ")[2] for row in answer.err.splitlines()} == {"too_long", "not_json", "malformed"}


def test_an_empty_journal_is_an_empty_list(a_project: Place) -> None:
    assert evals(a_project, "log").out == ""
    assert json.loads(evals(a_project, "log", "--json").out) == {"schema": 1, "events": []}


def test_following_tells_each_entry_once_and_rests_while_nothing_moves(here: Session) -> None:
    first = wrote(here, "one", told(EARLY))
    later: list[tuple[str, Evaluation] | None] = [("one", told(LATE, B)), ("two", told(LATE)), None]

    def step_on() -> bool:
        if not later:
            return False
        step = later.pop()
        if step is not None:
            wrote(here, *step)
        return True

    batches = [[entry.id for entry in found.entries] for found, _ in follow(here, step_on)]
    assert [len(batch) for batch in batches] == [1, 1, 1]
    assert sorted(name for batch in batches for name in batch) == sorted(order(here))
    assert batches[0] == [first]


def _following(place: Place, *options: str) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "gitevals", "log", "--follow", *options], cwd=place.path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip


@pytest.mark.slow
def test_following_goes_on_until_it_is_interrupted(here: Session, a_project: Place) -> None:
    first = wrote(here, "one", told(EARLY))
    with _following(a_project, "--json") as started:
        assert started.stdout is not None
        assert json.loads(started.stdout.readline())["id"] == first
        second = wrote(here, "one", told(LATE, B))
        assert json.loads(started.stdout.readline())["id"] == second
        started.send_signal(signal.SIGINT)
        rest, said = started.communicate(timeout=30)
        assert (started.returncode, rest, said) == (130, b"", b"git-evals: interrupted\n")


def test_a_pause_ends_at_once_when_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, written = os.pipe()
    os.close(reading)
    with open(written, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert not pause()


@pytest.mark.slow
def test_following_ends_in_silence_once_nobody_reads(here: Session, a_project: Place) -> None:
    wrote(here, "one", told(EARLY))
    with _following(a_project) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        assert select.select([started.stdout], [], [], 30)[0]
        started.stdout.close()
        assert (started.wait(timeout=30), started.stderr.read()) == (0, b"")
