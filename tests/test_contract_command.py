"""`git evals contract` and `freeze`: what would be captured, what differs, who agrees, and what is written."""

import hashlib
import json
from typing import Any

import pytest

from gitevals.model.contract import CHECKS_LIMIT, CRITERIA_LIMIT
from tests.conftest import CONFIG, TASK, Place, evals, with_task_branch

CONFIGURED = CONFIG.format(mode="enforce")
CHECKED = CONFIGURED.replace(
    "  always:", "  registration: {command: [pytest, -q], timeout_seconds: 60}\n  always:"
).replace('{"*": [good]}', '{"*": [registration]}')


def document(place: Place, *arguments: str, code: int = 0) -> dict[str, Any]:
    answer = evals(place, *arguments, "--json")
    assert answer.code == code, answer
    found: dict[str, Any] = json.loads(answer.out)
    return found


def shown(place: Place, task: str = "42") -> str:
    answer = evals(place, "contract", task)
    assert answer.code == 0, answer
    return " ".join(answer.out.split())


def everything(place: Place) -> dict[str, bytes]:
    """Every file of the git directory but those of the cache, by a digest."""
    root = place.path / ".git"
    files = (file for file in root.rglob("*") if file.is_file() and "git-evals/cache" not in str(file))
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).digest() for file in files}


def test_a_preview_writes_nothing_and_is_what_freezing_captures(a_project: Place) -> None:
    before = everything(a_project)
    preview = document(a_project, "contract", "42")
    assert evals(a_project, "contract", "42").code == 0
    assert everything(a_project) == before
    assert (preview["state"], preview["freezes"], preview["differences"]) == ("missing", [], [])
    assert "differs" not in shown(a_project)
    frozen = document(a_project, "freeze", "42", "--reason", "agreed\x1b[31m")
    assert frozen["digest"] == preview["digest"]
    assert frozen["freezes"][0]["digest"] == preview["digest"]
    stored = a_project.git("show", f"refs/evals/contracts/tester:42/{preview['digest']}/contract.json")
    assert hashlib.sha256(stored.encode()).hexdigest() == preview["digest"]
    before = everything(a_project)
    again = document(a_project, "contract", "42")
    assert (again["state"], again["differences"], len(again["freezes"])) == ("frozen", [], 1)
    text = evals(a_project, "contract", "42").out
    assert "differs" not in text
    assert "agreed\\x1b[31m" in text
    assert evals(a_project, "freeze", "42").out.endswith("is frozen already\n")
    assert everything(a_project) == before


def test_what_differs_is_said_in_words_and_is_the_same_in_both_forms(a_project: Place) -> None:
    place = a_project
    place.commit({".gitevals.yaml": CHECKED})
    assert evals(place, "freeze", "42").code == 0
    changed = CHECKED.replace(
        "timeout_seconds: 60", "timeout_seconds: 120, covers: [sign-up], cwd: web, env: {A: 'b c'}"
    )
    place.commit(
        {".gitevals.yaml": changed, "tasks/42.md": TASK.format(task="42").replace("is there", "\x1b[31mis\u202e")}
    )
    preview = document(place, "contract", "42")
    assert preview["state"] == "out_of_date"
    assert preview["differences"] == [
        'criterion `AC-1`: text "The file of task 42 is there." → "The file of task 42 \x1b[31mis\u202e."',
        "check `registration`: timeout 60 → 120",
        "check `registration`: cwd . → web",
        "check `registration`: env none → A=b c",
        "check `registration`: covers none → sign-up",
    ]
    answer = evals(place, "contract", "42")
    text = " ".join(answer.out.split())
    assert text.count("differs") == 5
    assert "differs check `registration`: timeout 60 → 120" in text
    assert "pytest -q (at most 120 s; in web; with A='b c'; covers sign-up)" in text
    assert [char for char in answer.out if not char.isprintable() and char != "\n"] == []
    assert "\u202e" not in evals(place, "contract", "42", "--json").out
    assert preview["digest"] == document(place, "freeze", "42")["digest"]
    assert document(place, "contract", "42")["differences"] == []


def cloned(place: Place, name: str) -> Place:
    other = Place(place.path.parent / name)
    place.git("clone", "-q", str(place.path), str(other.path))
    other.git("config", "evals.trustBranch", "main")
    return other


def exchange(one: Place, other: Place) -> None:
    """Each gets the other's ledgers, as a person would fetch them."""
    for here, there, name in ((one, other, "there"), (other, one, "here")):
        here.git(
            "fetch", "-q", str(there.path),
            f"+refs/evals/contracts/*:refs/evals-remote/{name}/contracts/*",
            f"+refs/notes/evals/*:refs/notes/evals-remote/{name}/*",
        )  # fmt: skip


@pytest.mark.slow
def test_two_who_freeze_the_same_agree_and_two_who_do_not_are_in_conflict_until_one_freezes_again(
    a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = a_guarded_project, cloned(a_guarded_project, "theirs")
    writers = {"one": mine, "two": theirs}

    def each(*arguments: str) -> list[int]:
        codes = []
        for writer, place in writers.items():
            monkeypatch.setenv("GITEVALS_WRITER", writer)
            codes.append(evals(place, *arguments).code)
        return codes

    assert each("freeze", "42") == [0, 0]
    exchange(mine, theirs)
    preview = document(mine, "contract", "42")
    assert (preview["state"], len(preview["freezes"]), preview["differences"]) == ("frozen", 2, [])
    assert len({entry["id"] for entry in preview["freezes"]}) == 2
    theirs.git("switch", "-q", "-c", "other")
    theirs.commit({"tasks/42.md": TASK.format(task="42").replace("is there", "is elsewhere")})
    monkeypatch.setenv("GITEVALS_WRITER", "two")
    assert evals(theirs, "freeze", "42", "--from", "other").code == 0
    (mine.path.parent / "third.md").write_text(TASK.format(task="42") + "- [ ] [AC-2] And more.\n")
    monkeypatch.setenv("GITEVALS_WRITER", "one")
    assert evals(mine, "freeze", "42", "--task-file", "../third.md").code == 0
    with_task_branch(mine)
    exchange(mine, theirs)
    preview = document(mine, "contract", "42")
    live = {entry["digest"][:12] for entry in preview["freezes"]}
    assert (preview["state"], len(live)) == ("conflict", 2)
    said = [entry for entry in preview["differences"] if entry.startswith("frozen ")]
    assert said == preview["differences"]
    assert {entry.split()[1].rstrip(":") for entry in said} == live
    assert {entry.partition(": ")[2] for entry in said} == {
        'criterion `AC-1`: text "The file of task 42 is elsewhere." → "The file of task 42 is there."',
        'criterion `AC-2`: removed: "And more."',
    }
    assert all(name in shown(mine) for name in live)
    for command in (("run", "42"), ("merge", "task/42"), ("verify", "--task", "42", "--branch", "task/42")):
        answer = evals(mine, *command)
        assert answer.code == 1, (command, answer)
        assert "several different contracts" in answer.out + answer.err
        assert "git evals freeze 42" in answer.out + answer.err
    refused = mine.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert b"several different contracts are frozen" in refused.stderr
    assert b"hint: git evals freeze 42" in refused.stderr
    mine.git("reset", "-q", "--merge")
    assert evals(mine, "freeze", "42", "--reason", "settled").code == 0
    exchange(mine, theirs)
    for place in (mine, theirs):
        found = document(place, "contract", "42")
        assert (found["state"], [entry["reason"] for entry in found["freezes"]]) == ("frozen", ["settled"])
        assert len(found["freezes"][0]["supersedes"]) == 2
    assert evals(mine, "merge", "task/42", "-q").code == 0


@pytest.mark.slow
def test_a_conflict_about_a_text_that_no_base_has_is_named_and_settled_by_a_file(
    a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = a_guarded_project, cloned(a_guarded_project, "theirs")
    for writer, place, text in (("one", mine, "is there"), ("two", theirs, "is elsewhere")):
        monkeypatch.setenv("GITEVALS_WRITER", writer)
        file = place.path.parent / f"{writer}.md"
        file.write_text(TASK.format(task="7").replace("is there", text))
        assert evals(place, "freeze", "7", "--task-file", str(file)).code == 0
    exchange(mine, theirs)
    with_task_branch(mine, "7")
    for command in (("contract", "7"), ("run", "7"), ("merge", "task/7"), ("freeze", "7")):
        answer = evals(mine, *command)
        assert (answer.code, "several different contracts of task 7 are frozen: " in answer.err) == (1, True), answer
        assert "git evals freeze 7 --task-file FILE" in answer.err
    assert evals(mine, "verify", "--branch", "task/7").code == 1
    refused = mine.attempt("git", "merge", "task/7")
    assert b"several different contracts are frozen" in refused.stderr
    mine.git("reset", "-q", "--merge")
    assert evals(mine, "freeze", "7", "--task-file", "../one.md").code == 0
    assert evals(mine, "run", "7", "-q").code == 0
    mine.git("merge", "-q", "task/7")


def criteria(count: int, words: str = "It holds.") -> str:
    return "# T\n\n## Acceptance Criteria\n\n" + "".join(f"- [ ] {words}\n" for _ in range(count))


def test_the_limits_hold_to_the_last_one(a_project: Place) -> None:
    place = a_project
    file = place.path / ".git" / "text.md"
    file.write_text(criteria(CRITERIA_LIMIT, "ä" * 500))
    assert len(document(place, "freeze", "42", "--task-file", str(file))["criteria"]) == CRITERIA_LIMIT
    file.write_text(criteria(CRITERIA_LIMIT + 1))
    answer = evals(place, "freeze", "42", "--task-file", str(file))
    assert (answer.code, f"{CRITERIA_LIMIT}" in answer.err) == (2, True), answer
    many = "".join(f"  c{n}: {{command: [x], graders: [a], covers: [f{n}]}}\n" for n in range(CHECKS_LIMIT - 2))
    bound = ", ".join(["good", "always", *(f"c{n}" for n in range(CHECKS_LIMIT - 2))])
    config = CONFIGURED.replace("bindings:", f"{many}bindings:").replace('{"*": [good]}', f'{{"*": [{bound}]}}')
    place.commit({".gitevals.yaml": config, "a": "1\n"})
    assert len(document(place, "contract", "42")["checks"]) == CHECKS_LIMIT
    place.commit({".gitevals.yaml": config.replace("bindings:", "  more: {command: [x]}\nbindings:")})
    answer = evals(place, "contract", "42")
    assert (answer.code, "more than 100 checks" in answer.err) == (2, True)
    room = 64 * 1024 - len(CONFIGURED.encode())
    place.commit({".gitevals.yaml": CONFIGURED + "#" * room})
    assert evals(place, "contract", "42").code == 0
    place.commit({".gitevals.yaml": CONFIGURED + "#" * (room + 1)})
    answer = evals(place, "contract", "42")
    assert (answer.code, ".gitevals.yaml:1: larger than 65536 bytes" in answer.err) == (2, True)


def test_a_record_keeps_two_kibibytes_of_a_description_and_the_contract_all_of_it(a_project: Place) -> None:
    place = a_project
    long = "é" * 3000
    place.commit({"tasks/42.md": criteria(1, f"[AC-1] {long}")})
    with_task_branch(place)
    found = document(place, "run", "42", "-q")
    assert len(found["findings"][0]["description"].encode()) <= 2048
    assert document(place, "contract", "42")["criteria"][0]["description"] == long


FEATURES = (
    CONFIGURED.replace("always: {", "always: {covers: [sign-up, 'a|b'], ").replace(
        "good: {", "good: {covers: [sign-up], "
    )
    + '  "42": {AC-1: [always], AC-2: [good]}\n'
)


@pytest.mark.slow
def test_a_report_ends_in_tally_verification_and_features_in_every_form(a_project: Place) -> None:
    place = a_project
    place.commit(
        {".gitevals.yaml": FEATURES, "tasks/42.md": TASK.format(task="42") + "- [ ] [AC-2] Two.\n- [ ] Three.\n"}
    )
    place.git("switch", "-q", "-c", "task/42")
    place.commit({"unrelated": "1\n"})
    found = document(place, "run", "42", "-q", code=1)["summary"]
    assert found == {
        "tally": {"passed": 1, "failed": 1, "inconclusive": 0, "not_run": 1},
        "verification": "passed",
        "features": [
            {"name": "a|b", "result": "passed", "checks": ["always"]},
            {"name": "sign-up", "result": "failed", "checks": ["always", "good"]},
        ],
    }
    text = " ".join(evals(place, "report", "42").out.split())
    assert "criteria 1 passed, 1 failed, 0 inconclusive, 1 not run" in text
    assert "failed a check showed that it does not hold" in text
    assert "verified passed" in text
    assert "✗ feature sign-up: failed (always, good)" in text
    markdown = evals(place, "report", "42", "--markdown").out
    assert "| failed | 1 | a check showed that it does not hold |" in markdown
    assert "Project verification: passed." in markdown
    assert "| a\\|b | passed | always |" in markdown
    place.commit({"broken": "1\n"})
    found = document(place, "run", "42", "-q", code=1)["summary"]
    assert found["verification"] == "failed"
    assert {feature["result"] for feature in found["features"]} == {"not_run"}
    assert "- feature sign-up: not run (always, good)" in " ".join(evals(place, "report", "42").out.split())
    config = FEATURES.replace("always: {", "always: {at_base: fail, ")
    place.git("switch", "-q", "main")
    place.commit({".gitevals.yaml": config})
    assert evals(place, "freeze", "42").code == 0
    place.git("switch", "-q", "-c", "again", "main")
    place.commit({"ok-42": "1\n"})
    found = document(place, "run", "42", "-q", "--branch", "again", code=3)["summary"]
    assert {feature["name"]: feature["result"] for feature in found["features"]} == {
        "a|b": "inconclusive", "sign-up": "inconclusive",
    }, "a check that passes before the change shows nothing of a feature either"  # fmt: skip
