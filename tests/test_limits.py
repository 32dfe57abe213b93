"""What a pass is worth after failures and with age: `flaky`, `max_tries` and `max_age`, through real runs."""

import json
import os
from pathlib import Path

import pytest

from gitevals.evidence import writing
from tests.conftest import CONFIG, Place, evals, with_task_branch

# The check tells nothing, fails or passes by a file that no commit holds.
CHECK = 'test ! -e "$HOME/unsure" || exit 125; test -e "$HOME/mended"'
OLD = "2020-01-02T03:04:05.000Z"


def limited(place: Place, keys: str, *, mode: str = "enforce") -> Place:
    """``place`` with ``keys`` configured, a branch of task 42 and the hooks."""
    text = CONFIG.format(mode=mode).replace("""'test -e "ok-$GITEVALS_TASK"'""", f"'{CHECK}'")
    place.commit({".gitevals.yaml": f"{text}{keys}\n"}, "limits")
    with_task_branch(place)
    assert evals(place, "hooks", "install").code == 0
    return place


def home(name: str) -> Path:
    return Path(os.environ["HOME"], name)


def tried(place: Place, *outcomes: str) -> list[int]:
    """The exits of one run for each outcome, forced where a pass would be used again."""
    codes = []
    for outcome in outcomes:
        for name in ("mended", "unsure"):
            home(name).unlink(missing_ok=True)
        if outcome != "failed":
            home("mended" if outcome == "passed" else "unsure").touch()
        codes.append(evals(place, "run", "42", "-q").code)
    return codes


def assert_refused(place: Place, code: str, said: str) -> None:
    """Whether `verify`, `merge` and git itself refuse the branch, with ``code`` and words that say why."""
    answer = evals(place, "verify", "--branch", "task/42", "--json")
    assert answer.code == 1, answer
    (reason,) = json.loads(answer.out)["reasons"]
    assert (reason["code"], reason["severity"], said in reason["message"]) == (code, "refuse", True)
    refused = place.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert said.encode() in refused.stderr
    place.git("reset", "-q", "--merge")


@pytest.mark.slow
def test_a_flaky_pass_is_refused_until_the_change_is_another(a_project: Place) -> None:
    place = limited(a_project, "flaky: refuse")
    assert tried(place, "failed", "passed") == [1, 0]
    assert_refused(place, "failed", "passed after 1 failure(s) on the same change, and `flaky: refuse`")
    place.git("switch", "-q", "task/42")
    place.git("commit", "-q", "--amend", "-m", "the same in other words")
    place.git("switch", "-q", "main")
    assert tried(place, "passed") == [0]
    answer = evals(place, "merge", "task/42", "-q", "--no-ff")
    assert (answer.code, "`flaky: refuse`" in answer.out + answer.err) == (1, True), answer
    assert json.loads(evals(place, "tasks", "--json").out)["tasks"][0]["evidence_state"] == "failed"
    place.git("switch", "-q", "task/42")
    place.commit({"more": "1\n"}, "another tree")
    place.git("switch", "-q", "main")
    assert tried(place, "passed") == [0]
    place.git("merge", "-q", "task/42")


@pytest.mark.slow
def test_a_change_that_failed_too_often_is_not_tried_again(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place = limited(a_project, "max_tries: 2")
    assert tried(place, "failed", "inconclusive", "failed") == [1, 3, 1]
    home("mended").touch()
    for command in (("run", "42", "--force"), ("merge", "task/42")):
        answer = evals(place, *command)
        assert answer.code == 1, answer
        assert "task 42 failed 2 time(s) on this change, and `max_tries` is 2" in answer.err
        assert "hint: git evals report 42 --feedback" in answer.err
    assert "of 3" in evals(place, "report", "42").out
    pass_it_by_hand(place, monkeypatch)
    assert_refused(place, "failed", "`max_tries: 2`")
    place.git("switch", "-q", "task/42")
    place.commit({"more": "1\n"}, "another tree")
    place.git("switch", "-q", "main")
    assert tried(place, "passed") == [0]
    place.git("merge", "-q", "task/42")


def pass_it_by_hand(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A passing evaluation as a clone writes it that saw one failure: its ledger stands beside ours."""
    head = place.git("rev-parse", "task/42")
    tree = place.git("rev-parse", "task/42^{tree}")
    lines = place.git("show", f"refs/notes/evals/tester:{tree[:2]}/{tree[2:]}").split("\n")
    told = json.dumps(json.loads(lines[0])).replace('"failed"', '"passed"').replace('"inconclusive"', '"passed"')
    passed = {**json.loads(told), "after": ids(place), "nonce": "x", "reason": ""}
    note = place.git("hash-object", "-w", "--stdin", stdin=json.dumps(passed, separators=(",", ":")).encode())
    for name in (head, tree):
        place.git("notes", "--ref=evals-remote/origin/other", "add", "-C", note, name)


def ids(place: Place) -> list[str]:
    return sorted(entry["id"] for entry in json.loads(evals(place, "show", "task/42", "--json").out))


@pytest.mark.slow
def test_old_evidence_is_expired_and_run_again(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place = limited(a_project, "max_age: 30d")
    base = place.git("rev-parse", "main")
    with monkeypatch.context() as patch:
        patch.setattr(writing, "now", lambda: OLD)
        assert tried(place, "passed") == [0]
    assert_refused(place, "expired", f"its evidence ({OLD}) is older than `max_age`")
    assert "hint: git evals run 42" in evals(place, "verify", "--branch", "task/42").out
    row = json.loads(evals(place, "status", "42", "--json").out)["tasks"][0]
    assert (
        row["evidence_state"]
        == json.loads(evals(place, "tasks", "--json").out)["tasks"][0]["evidence_state"]
        == "expired"
    )
    assert evals(place, "run", "42", "-q").code == 0
    assert len(ids(place)) == 2, "it ran again"
    assert evals(place, "run", "42", "-q").code == 0
    assert len(ids(place)) == 2, "what is fresh is used again"
    place.git("merge", "-q", "task/42")
    assert "1 evidenced" in evals(place, "audit", "--since", base).out


@pytest.mark.slow
def test_an_audit_does_not_judge_age_and_old_verification_is_expired_too(
    a_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = limited(a_project, "max_age: 1h\nuntasked: verify")
    base = place.git("rev-parse", "main")
    place.git("switch", "-q", "-c", "free", "main")
    place.commit({"free": "1\n"})
    place.git("switch", "-q", "main")
    with monkeypatch.context() as patch:
        patch.setattr(writing, "now", lambda: OLD)
        assert evals(place, "run", "--verify-only", "--branch", "free", "-q").code == 0
    answer = evals(place, "verify", "--branch", "free")
    assert (answer.code, "older than `max_age`" in answer.out, "--verify-only" in answer.out) == (1, True, True), answer
    refused = place.attempt("git", "merge", "free")
    assert refused.returncode != 0
    place.git("reset", "-q", "--merge")
    assert evals(place, "hooks", "uninstall").code == 0
    place.git("merge", "-q", "free")
    answer = evals(place, "audit", "--since", base)
    assert (answer.code, "1 evidenced" in answer.out) == (0, True), answer


@pytest.mark.slow
def test_what_observes_tells_of_a_limit_and_stops_nobody(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place = limited(a_project, "flaky: refuse\nmax_tries: 1\nmax_age: 1h", mode="observe")
    assert tried(place, "failed", "failed") == [1, 1]
    with monkeypatch.context() as patch:
        patch.setattr(writing, "now", lambda: OLD)
        assert tried(place, "passed") == [0]
    answer = evals(place, "verify", "--branch", "task/42", "--json")
    assert answer.code == 0, answer
    assert {(found["code"], found["severity"]) for found in json.loads(answer.out)["reasons"]} == {("failed", "note")}
    assert evals(place, "merge", "task/42", "-q").code == 0
