"""`git evals tasks`: every task in one table, at any width, and never in contradiction to `status`."""

import json
import re
from typing import Any

import pytest

from tests.conftest import CONFIG, TASK, Place, evals, with_task_branch

HOSTILE_TITLE = "# Evil \x1b[31mred\x07 and a title that is far too long for any column of any table\n"
CRITERIA = "\n## Acceptance Criteria\n\n- [ ] [AC-1] x\n"
LONG = "a-long-id-" + "x" * 50
ODD = ("a..b", "\x1b[2Jclear", "with blank", "ends.lock")


def rows(place: Place) -> dict[str, dict[str, Any]]:
    answer = evals(place, "tasks", "--json")
    assert answer.code == 0, answer
    return {row["task"]: row for row in json.loads(answer.out)["tasks"]}


def with_odd_folders(place: Place) -> None:
    """A contracts ledger with folders that can be no task's."""
    blob = place.git("hash-object", "-w", "--stdin", stdin=b"x" * 70 * 1024)
    inner = place.git("mktree", stdin=f"100644 blob {blob}\tx.json\n".encode())
    tree = place.git("mktree", "-z", stdin="".join(f"040000 tree {inner}\t{name}\0" for name in ODD).encode())
    commit = place.git("commit-tree", "-m", "odd", tree)
    place.git("update-ref", "refs/evals-remote/origin/contracts/odd", commit)


@pytest.fixture
def a_crowded_project(a_project: Place) -> Place:
    """Tasks in every state: delivered, stale, untouched, unreadable, known to a ledger alone."""
    texts = {"44": "no criteria\n", "45": HOSTILE_TITLE + CRITERIA, LONG: "# L\n" + CRITERIA}
    none = ("tasks/not an id.md", "tasks/.hidden.md", "tasks/deep/46.md", "tasks/46.txt")
    a_project.commit(
        {**{f"tasks/{name}.md": text for name, text in texts.items()}, **dict.fromkeys(none, "x")}, "tasks"
    )
    with_task_branch(a_project, "43")
    assert evals(a_project, "run", "43", "-q").code == 0
    with_task_branch(a_project)
    assert evals(a_project, "run", "42", "-q").code == 0
    assert evals(a_project, "merge", "task/42", "-q").code == 0
    with_odd_folders(a_project)
    return a_project


@pytest.mark.slow
def test_every_task_has_a_row_and_one_that_cannot_be_read_hides_no_other(a_crowded_project: Place) -> None:
    found = rows(a_crowded_project)
    assert set(found) == {"42", "43", "44", "45", LONG, *ODD}
    shown = {name: (row["contract_state"], row["evidence_state"], row["tries"], row["episode"]["state"])
             for name, row in found.items()}  # fmt: skip
    assert shown["42"] == ("frozen", "passed", 1, "delivered")
    assert shown["43"] == ("frozen", "stale", 1, "open")
    assert shown["44"] == ("unreadable", "unknown", 0, "open")
    assert shown["45"] == ("missing", "missing", 0, "open")
    assert {shown[name] for name in ODD} == {("unreadable", "unknown", 0, "open")}
    assert found["42"]["episode"]["deliveries"] == [a_crowded_project.git("rev-parse", "main")]
    assert "has moved" in found["43"]["stale_because"][0]
    assert "no acceptance section" in found["44"]["reasons"][0]
    status = json.loads(evals(a_crowded_project, "status", "42", "--json").out)["tasks"][0]
    assert {name: value for name, value in found["42"].items() if name != "episode"} == status
    for width in (40, 80, 120):
        assert_readable(a_crowded_project, width, found)
    assert evals(a_crowded_project, "reopen", "42", "--reason", "again").code == 0
    assert rows(a_crowded_project)["42"]["episode"] == {"state": "open", "deliveries": []}


def assert_readable(place: Place, width: int, found: dict[str, dict[str, Any]]) -> None:
    """Whether the text at ``width`` has every id whole, no line longer than it must be, nothing that acts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        answer = evals(place, "tasks")
    assert answer.code == 0
    assert [name for name in found if name.isprintable() and name not in answer.out] == []
    assert [char for char in answer.out + answer.err if not char.isprintable() and char != "\n"] == []
    unbroken = max(len(word) for word in answer.out.split())
    assert [row for row in answer.out.split("\n") if len(row) > max(width, unbroken + 4)] == []
    assert "not an id.md" in answer.err
    assert ".hidden.md" in answer.err
    assert answer.out.startswith("task  ") == (width == 120)


def test_no_task_at_all_is_said_so(a_project: Place) -> None:
    a_project.git("rm", "-rq", "tasks")
    a_project.commit({}, "none")
    assert evals(a_project, "tasks").out == "no task is known yet\n"
    a_project.commit({".gitevals.yaml": re.sub(r"tasks:.*\n", "", CONFIG.format(mode="enforce"))}, "no place")
    assert (evals(a_project, "tasks").code, rows(a_project)) == (0, {})


def test_a_pattern_with_the_task_in_the_middle_finds_each_once(a_project: Place) -> None:
    pattern = CONFIG.format(mode="enforce").replace("tasks/{task}.md", "work/t-{task}/text.md")
    files = {f"work/t-{n}/text.md": TASK.format(task=n) for n in ("7", "8")}
    other = {"work/t-9/other.md": "x", "work/t-7/x/text.md": "x", "work/x-7/text.md": "x", "work/t-/text.md": "x"}
    a_project.commit({".gitevals.yaml": pattern, **files, **other}, "elsewhere")
    assert {name: row["title"] for name, row in rows(a_project).items()} == {"7": "Task 7", "8": "Task 8"}


@pytest.mark.slow
def test_the_evidence_state_is_that_of_status_whatever_moved(a_project: Place) -> None:
    commit = with_task_branch(a_project)
    git = a_project.git
    assert_like_status(a_project, "missing")
    assert evals(a_project, "run", "42", "-q").code == 0
    assert_like_status(a_project, "passed")
    git("switch", "-q", "task/42")
    git("commit", "-q", "--amend", "-m", "the same tree in other words")
    assert_like_status(a_project, "passed")
    a_project.commit({"more": "x"}, "more")
    assert_like_status(a_project, "missing")
    git("reset", "-q", "--hard", commit)
    a_project.commit({"more": "x"}, "more")
    assert_like_status(a_project, "stale", "the change is now")
    git("reset", "-q", "--hard", commit)
    git("switch", "-q", "main")
    a_project.commit({"elsewhere": "x"}, "main moves on")
    assert_like_status(a_project, "stale", "has moved")
    assert evals(a_project, "run", "42", "-q").code == 0
    assert_like_status(a_project, "passed")
    a_project.commit({"tasks/42.md": TASK.format(task="42").replace("is there", "is not there")}, "another text")
    assert_like_status(a_project, "stale", "out of date")


def assert_like_status(place: Place, state: str, because: str = "") -> None:
    row = rows(place)["42"]
    status = json.loads(evals(place, "status", "42", "--json").out)["tasks"][0]
    names = (
        "evidence_state",
        "contract_state",
        "contract",
        "result",
        "subject",
        "evaluation",
        "tries",
        "title",
        "mode",
    )
    assert {name: row[name] for name in names} == {name: status[name] for name in names}
    assert row["evidence_state"] == state
    assert bool(row["stale_because"]) == bool(status["stale_because"]) == bool(because)
    assert because in " ".join(row["stale_because"])


def test_runs_that_did_not_see_each_other_are_disputed(a_project: Place) -> None:
    head = with_task_branch(a_project)
    assert evals(a_project, "run", "42", "-q").code == 0
    tree = a_project.git("rev-parse", f"{head}^{{tree}}")
    line = a_project.git("show", f"refs/notes/evals/tester:{tree[:2]}/{tree[2:]}")
    other = json.dumps({**json.loads(line), "result": "failed", "nonce": "x"})
    note = a_project.git("hash-object", "-w", "--stdin", stdin=other.encode())
    for name in (head, tree):
        a_project.git("notes", "--ref=evals-remote/origin/other", "add", "-C", note, name)
    assert_like_status(a_project, "disputed")
