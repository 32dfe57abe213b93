"""Movements that are more than one task's plain change: privileged, spent, several tasks, spans, undoing, enrolment."""

import json

import pytest

from tests.conftest import Place, evals, with_task_branch


def _branch(place: Place, name: str, files: dict[str, str], message: str = "change") -> str:
    place.git("switch", "-q", "-c", name, "main")
    commit = place.commit(dict(files), message)
    place.git("switch", "-q", "main")
    return commit


def test_a_change_of_the_configuration_is_judged_by_the_bases_version_and_said_loudly(a_guarded_project: Place) -> None:
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    loosened = config.replace("[sh, -c, 'test -e \"ok-$GITEVALS_TASK\"']", '["true"]').replace("enforce", "observe")
    _branch(a_guarded_project, "task/42", {".gitevals.yaml": loosened, "other": "1\n"})
    assert evals(a_guarded_project, "run", "42").code == 1
    refused = a_guarded_project.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert b".gitevals.yaml is changed by this movement" in refused.stderr
    assert b"AC-1 failed" in refused.stderr


def test_a_change_of_its_own_task_file_is_judged_by_the_bases_version(a_guarded_project: Place) -> None:
    weaker = "# T\n\n## Acceptance Criteria\n\n- [ ] [AC-9] Anything goes.\n"
    _branch(a_guarded_project, "task/42", {"tasks/42.md": weaker, "other": "1\n"})
    answer = evals(a_guarded_project, "run", "42")
    assert answer.code == 1
    assert "AC-9" not in answer.out
    answer = evals(a_guarded_project, "verify", "--branch", "task/42")
    assert answer.code == 1
    assert "tasks/42.md is changed by this movement" in answer.out


def test_a_change_that_breaks_the_configuration_is_refused_in_every_mode(a_guarded_project: Place) -> None:
    _branch(a_guarded_project, "task/42", {".gitevals.yaml": "version: [\n", "ok-42": "1\n"})
    assert evals(a_guarded_project, "run", "42").code == 0
    refused = a_guarded_project.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert b"the new configuration is refused" in refused.stderr


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_broken_configuration_is_refused_where_nothing_else_is(a_guarded_project: Place) -> None:
    _branch(a_guarded_project, "free", {"anything": "1\n"})
    a_guarded_project.git("merge", "-q", "free")
    _branch(a_guarded_project, "breaks", {".gitevals.yaml": "mode: perhaps\n"})
    assert a_guarded_project.attempt("git", "merge", "-q", "breaks").returncode != 0


def test_on_a_broken_base_only_what_mends_it_may_enter(a_project: Place) -> None:
    good = (a_project.path / ".gitevals.yaml").read_text()
    a_project.commit({".gitevals.yaml": "version: [\n"}, "break it")
    assert evals(a_project, "hooks", "install").code == 0
    _branch(a_project, "other", {"other": "1\n"})
    assert a_project.attempt("git", "merge", "other").returncode != 0
    a_project.git("reset", "-q", "--merge")
    _branch(a_project, "both", {"other": "1\n", ".gitevals.yaml": good})
    assert a_project.attempt("git", "merge", "both").returncode != 0
    a_project.git("reset", "-q", "--merge")
    _branch(a_project, "mend", {".gitevals.yaml": good})
    a_project.git("merge", "-q", "mend")


def test_configuration_and_task_files_alone_need_verification_alone(a_guarded_project: Place) -> None:
    _branch(a_guarded_project, "admin", {"tasks/77.md": "# New\n\n## Acceptance Criteria\n\n- [ ] x\n"})
    refused = a_guarded_project.attempt("git", "merge", "admin")
    assert b"git evals run --verify-only" in refused.stderr
    a_guarded_project.git("reset", "-q", "--merge")
    assert evals(a_guarded_project, "run", "--verify-only", "--branch", "admin").code == 0
    a_guarded_project.git("merge", "-q", "admin")


def test_a_delivered_task_is_spent_until_it_is_reopened(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    a_guarded_project.git("switch", "-q", "-c", "again", "main")
    a_guarded_project.commit({"more": "1\n"}, "more\n\nTask: 42")
    a_guarded_project.git("switch", "-q", "main")
    answer = evals(a_guarded_project, "run", "42", "--branch", "again")
    assert answer.code == 1
    assert "already delivered" in answer.err
    refused = a_guarded_project.attempt("git", "merge", "again")
    assert b"already delivered" in refused.stderr
    assert b"git evals reopen 42 --reason TEXT" in refused.stderr
    a_guarded_project.git("reset", "-q", "--merge")
    answer = evals(a_guarded_project, "freeze", "42")
    assert "frozen already" in answer.out
    assert evals(a_guarded_project, "run", "42", "--branch", "again").code == 1
    assert evals(a_guarded_project, "reopen", "42", "--reason", " ").code == 2
    assert evals(a_guarded_project, "reopen", "42", "--reason", "more to do").code == 0
    assert evals(a_guarded_project, "reopen", "42", "--reason", "again").code == 1
    assert evals(a_guarded_project, "run", "42", "--branch", "again").code == 0
    a_guarded_project.git("merge", "-q", "again")
    assert evals(a_guarded_project, "audit").code == 0


def test_two_tasks_in_one_movement_both_need_their_pass(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "both", "main")
    a_guarded_project.commit({"ok-42": "1\n", "ok-42 43": "1\n"}, "one\n\nTask: 42")
    a_guarded_project.commit({"ok-43": "1\n"}, "two\n\nTask: 43")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42", "--branch", "both").code == 0
    refused = a_guarded_project.attempt("git", "merge", "both")
    assert refused.returncode != 0
    assert b"task 43" in refused.stderr
    assert b"task 42:" not in refused.stderr
    a_guarded_project.git("reset", "-q", "--merge")
    assert evals(a_guarded_project, "run", "43", "--branch", "both").code == 0
    a_guarded_project.git("merge", "-q", "both")


def test_two_tasks_run_together_are_integrated_once_and_recorded_apart(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "both", "main")
    a_guarded_project.commit({"ok-42 43": "1\n"}, "both\n\nTask: 42\nTask: 43")
    a_guarded_project.git("switch", "-q", "main")
    answer = evals(a_guarded_project, "run", "42", "43", "--branch", "both", "--json")
    assert answer.code == 0
    first, second = json.loads(answer.out)
    assert (first["task"], second["task"]) == ("42", "43")
    assert first["started"] == second["started"]
    assert first["subject"] == second["subject"]
    a_guarded_project.git("merge", "-q", "both")


@pytest.mark.slow
def test_several_steps_at_once_are_each_covered_or_spanned_by_one_evaluation(a_guarded_project: Place) -> None:
    base = a_guarded_project.git("rev-parse", "main")
    a_guarded_project.git("switch", "-q", "-c", "steps", "main")
    one = a_guarded_project.commit({"ok-42": "1\n"}, "one\n\nTask: 42")
    two = a_guarded_project.commit({"ok-43": "1\n"}, "two\n\nTask: 43")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42", "--commit", one).code == 0
    assert a_guarded_project.attempt("git", "merge", "--ff-only", "steps").returncode != 0
    a_guarded_project.git("reset", "-q", "--merge")
    a_guarded_project.git("branch", "half", one)
    a_guarded_project.git("config", "evals.trustBranch", "main")
    # The second step's evidence is taken while a target stands at the first.
    a_guarded_project.git("update-ref", "refs/remotes/origin/main", one)
    assert evals(a_guarded_project, "run", "43", "--commit", two, "--into", "origin/main").code == 0
    a_guarded_project.git("update-ref", "-d", "refs/remotes/origin/main")
    assert a_guarded_project.git("rev-parse", "main") == base
    a_guarded_project.git("merge", "-q", "--ff-only", "steps")
    assert a_guarded_project.git("rev-parse", "main") == two
    assert evals(a_guarded_project, "audit").code == 0


def test_undoing_exactly_one_delivery_needs_verification_alone(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    with_task_branch(a_guarded_project, "43")
    assert evals(a_guarded_project, "merge", "task/43").code == 0
    refused = a_guarded_project.attempt("git", "revert", "--no-edit", "-m", "1", "HEAD~1")
    assert refused.returncode != 0
    said = refused.stderr.decode()
    assert "is undone: verification alone is needed" in said, said
    undo = next(line for line in said.splitlines() if "undo: git " in line).split("undo: git ")[1]
    assert a_guarded_project.attempt("sh", "-ec", f"git {undo}").returncode == 0
    assert a_guarded_project.git("status", "--porcelain") == ""
    hint = next(line for line in said.splitlines() if "hint: git evals" in line).split("git evals ")[1]
    assert evals(a_guarded_project, *hint.split()).code == 0
    a_guarded_project.git("revert", "--no-edit", "-m", "1", "HEAD~1")
    assert evals(a_guarded_project, "audit").code == 0


def test_more_than_an_undoing_is_no_undoing(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    a_guarded_project.git("switch", "-q", "-c", "sly", "main")
    a_guarded_project.git("revert", "--no-edit", "-m", "1", "main")
    a_guarded_project.commit({"sly": "1\n"}, "and something else")
    a_guarded_project.git("switch", "-q", "main")
    refused = a_guarded_project.attempt("git", "merge", "sly")
    assert b"no task is named" in refused.stderr


def test_an_unchanged_tree_needs_verification_alone(a_guarded_project: Place) -> None:
    refused = a_guarded_project.attempt("git", "commit", "--allow-empty", "-m", "empty")
    assert b"the tree is unchanged" in refused.stderr


def test_the_movement_that_removes_the_configuration_is_said_loudly(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "bare", "main")
    a_guarded_project.git("rm", "-q", ".gitevals.yaml")
    a_guarded_project.git("commit", "-qm", "no more gate")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "--verify-only", "--branch", "bare").code == 0
    merged = a_guarded_project.attempt("git", "merge", "bare")
    assert merged.returncode == 0
    assert b"no longer be protected" in merged.stderr


def test_a_failed_verification_refuses_in_every_mode(a_guarded_project: Place) -> None:
    _branch(a_guarded_project, "broken", {"broken": "1\n"})
    assert evals(a_guarded_project, "run", "--verify-only", "--branch", "broken").code == 1
    refused = a_guarded_project.attempt("git", "merge", "broken")
    assert b"project verification failed" in refused.stderr


@pytest.mark.parametrize("mode", ["observe", "off"])
@pytest.mark.slow
def test_a_failed_verification_refuses_in_lenient_modes_and_nothing_else_does(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("merge", "-q", "task/42")
    a_guarded_project.git("switch", "-q", "-c", "task/43", "main")
    a_guarded_project.commit({"unrelated": "1\n"})
    a_guarded_project.git("switch", "-q", "main")
    evals(a_guarded_project, "run", "43")
    a_guarded_project.git("merge", "-q", "task/43")
    test_a_failed_verification_refuses_in_every_mode(a_guarded_project)


def test_evidence_of_another_repository_never_counts(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "run", "42").code == 0
    a_guarded_project.git("switch", "-q", "-c", "fork", "main")
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    a_guarded_project.commit({".gitevals.yaml": config.replace("repository: r1", "repository: r2")}, "fork")
    assert evals(a_guarded_project, "verify", "--ref", "main", "--old", "main", "--new", "task/42").code == 0
    a_guarded_project.git("config", "core.hooksPath", "/dev/null")
    a_guarded_project.git("switch", "-q", "main")
    a_guarded_project.git("merge", "-q", "fork")
    a_guarded_project.git("config", "--unset", "core.hooksPath")
    assert evals(a_guarded_project, "verify", "--branch", "task/42").code == 3


def test_a_signed_looking_record_of_a_bystander_changes_nothing_but_a_believed_failure_does(
    a_guarded_project: Place,
) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "run", "42").code == 0
    tree = a_guarded_project.git("rev-parse", "task/42^{tree}")
    note = a_guarded_project.git("notes", "--ref=evals/tester", "show", tree)
    assert '"kind":"evaluation"' in note
    hostile = "not json\n" + "[" * 50000 + "\n" + "x" * (10 * 1024 * 1024) + "\n\x1b]0;owned\x07\n" + note
    a_guarded_project.git("notes", "--ref=evals/bystander", "add", "-F", "-", tree, stdin=hostile.encode())
    answer = evals(a_guarded_project, "show", "task/42")
    assert answer.code == 0
    assert "skipped: too_long" in answer.err
    assert "skipped: not_json" in answer.err
    assert "\x1b" not in answer.out + answer.err
    assert answer.out.count("task 42: passed") == 1
    failing = note.replace('"result":"passed","reason":""', '"result":"failed","reason":""').replace(
        'nonce":"', 'nonce":"f'
    )
    assert failing != note
    a_guarded_project.git("notes", "--ref=evals/second", "add", "-f", "-F", "-", tree, stdin=failing.encode())
    refused = a_guarded_project.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert b"did not see each other differ" in refused.stderr


def test_audit_lists_what_got_past_the_gate(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "merge", "-q", "task/42")
    answer = evals(a_guarded_project, "audit")
    assert answer.code == 1
    assert "refused:" in answer.out
    listed = json.loads(evals(a_guarded_project, "audit", "--json").out)
    assert [row["verdict"] for row in listed["rows"]] == ["refused"]
    assert evals(a_guarded_project, "audit", "--since", "HEAD").code == 0
