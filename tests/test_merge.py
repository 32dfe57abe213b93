"""`git evals merge`: integrates, runs what is missing, moves the target only if the gate agrees."""

import json
from pathlib import Path

import pytest

from tests.conftest import Answer, Place, evals, with_task_branch


def _state(place: Place) -> tuple[str, str, str]:
    return (
        place.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/remotes"),
        place.git("status", "--porcelain"),
        place.git("worktree", "list"),
    )


def _checks_run(answer: Answer) -> int:
    return answer.err.count(" passed in ") + answer.err.count(" failed in ")


def test_a_passing_branch_enters_by_a_merge_commit_that_names_its_task(a_guarded_project: Place) -> None:
    head = with_task_branch(a_guarded_project)
    main = a_guarded_project.git("rev-parse", "main")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert a_guarded_project.git("rev-parse", "main^1", "main^2").split() == [main, head]
    assert a_guarded_project.git("log", "-1", "--format=%(trailers:key=Task,valueonly)", "main").strip() == "42"
    assert a_guarded_project.git("log", "-1", "--format=%an <%ae>") == "A U Thor <author@example.org>"
    assert a_guarded_project.git("status", "--porcelain") == ""
    assert (a_guarded_project.path / "ok-42").exists()


def test_a_failing_branch_leaves_nothing_behind(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.commit({"useless": "1\n"})
    a_guarded_project.git("switch", "-q", "main")
    before = _state(a_guarded_project)
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 1
    assert "AC-1 failed" in answer.out
    assert _state(a_guarded_project) == before


def test_a_conflicting_branch_is_inconclusive_and_leaves_nothing_behind(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.commit({"README": "theirs\n"})
    a_guarded_project.git("switch", "-q", "main")
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "x")
    (a_guarded_project.path / "README").write_text("ours\n")
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "ours")
    before = _state(a_guarded_project)
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 3
    assert "README" in answer.out
    assert _state(a_guarded_project) == before


@pytest.mark.parametrize(
    ("option", "parents"), [("--no-ff", 2), ("--ff", 1), ("--squash", 1)], ids=["no-ff", "ff", "squash"]
)
@pytest.mark.parametrize("apart", [False, True], ids=["ahead", "apart"])
def test_each_shape_of_merge(option: str, parents: int, apart: bool, a_project: Place) -> None:
    head = with_task_branch(a_project)
    if apart:
        a_project.commit({"elsewhere": "1\n"}, "main moves on")
    start = a_project.git("rev-parse", "main")
    assert evals(a_project, "hooks", "install").code == 0
    assert evals(a_project, "merge", "task/42", option, "-m", "Say it").code == 0
    made = a_project.git("log", "-1", "--format=%P", "main").split()
    assert len(made) == (2 if option == "--ff" and apart else parents)
    assert (a_project.git("rev-parse", "main") == head) == (option == "--ff" and not apart)
    if option != "--ff":
        assert a_project.git("log", "-1", "--format=%B", "main") == "Say it\n\nTask: 42"
    assert a_project.git("status", "--porcelain") == ""
    assert evals(a_project, "audit", "--since", start).code == 0


def test_shapes_exclude_each_other(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "merge", "task/42", "--ff", "--squash").code == 2


def test_only_the_expected_head_is_merged(a_guarded_project: Place) -> None:
    head = with_task_branch(a_guarded_project)
    main = a_guarded_project.git("rev-parse", "main")
    answer = evals(a_guarded_project, "merge", "task/42", "--expect-head", main)
    assert answer.code == 1
    assert "not at" in answer.err
    assert a_guarded_project.git("rev-parse", "main") == main
    assert evals(a_guarded_project, "merge", "task/42", "--expect-head", head[:10]).code == 0


def test_a_target_that_is_nowhere_checked_out_moves_alone(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("switch", "-q", "-c", "elsewhere")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert a_guarded_project.git("status", "--porcelain", "--branch") == "## elsewhere"
    assert a_guarded_project.git("show", "main:ok-42") == "done"


def test_a_target_that_another_work_tree_has_is_brought_along_there(a_guarded_project: Place, tmp_path: Path) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("switch", "-q", "-c", "elsewhere")
    a_guarded_project.git("worktree", "add", "-q", str(tmp_path / "beside"), "main")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert Place(tmp_path / "beside").git("status", "--porcelain") == ""
    assert (tmp_path / "beside" / "ok-42").exists()
    assert not (a_guarded_project.path / "ok-42").exists()


def test_a_hook_that_refuses_at_last_leaves_the_work_tree_as_it_was(a_project: Place) -> None:
    with_task_branch(a_project)
    refuses = '#!/bin/sh\n[ "$1" != prepared ] || ! grep -q refs/heads/main\n'
    a_project.write(".git/hooks/reference-transaction", refuses).chmod(0o755)
    a_project.write("staged", "mine\n")
    a_project.git("add", "staged")
    a_project.write("README", "edited\n")
    before = (a_project.git("rev-parse", "main"), a_project.git("status", "--porcelain"))
    answer = evals(a_project, "merge", "task/42")
    assert (answer.code, "as they were" in answer.err) == (1, True), answer
    assert (a_project.git("rev-parse", "main"), a_project.git("status", "--porcelain")) == before


def test_a_clash_with_uncommitted_work_is_refused_before_any_check_runs(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.write("ok-42", "mine, not committed\n")
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 1
    assert "ok-42" in answer.err
    assert _checks_run(answer) == 0
    assert (a_guarded_project.path / "ok-42").read_text() == "mine, not committed\n"


def test_uncommitted_work_elsewhere_stays_as_it_is(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.write("README", "mine, not committed\n")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert a_guarded_project.git("status", "--porcelain").strip() == "M README"


@pytest.mark.parametrize("staged", [False, True], ids=["checked out", "staged"])
def test_a_submodule_is_in_the_way_only_once_its_commit_is_staged(a_guarded_project: Place, staged: bool) -> None:
    a_guarded_project.git("config", "core.hooksPath", "/dev/null")
    first, second, third = (_committed_below(a_guarded_project, "lib") for _ in range(3))
    a_guarded_project.git("-C", "lib", "checkout", "-q", first)
    a_guarded_project.commit(message="a submodule")
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.git("-C", "lib", "checkout", "-q", second)
    a_guarded_project.commit({"ok-42": "done\n"})
    a_guarded_project.git("-C", "lib", "checkout", "-q", third)
    a_guarded_project.git("switch", "-q", "main")
    if staged:
        a_guarded_project.git("add", "lib")
    answer = evals(a_guarded_project, "merge", "task/42")
    assert (answer.code, "overwritten: lib" in answer.err) == ((1, True) if staged else (0, False)), answer.err
    assert a_guarded_project.git("-C", "lib", "rev-parse", "HEAD") == third


def _committed_below(place: Place, path: str) -> str:
    (place.path / path).mkdir(exist_ok=True)
    place.git("-C", path, "init", "-q")
    place.git("-C", path, "commit", "-q", "--allow-empty", "-m", str(len(place.git("-C", path, "reflog", "--all"))))
    return place.git("-C", path, "rev-parse", "HEAD")


def test_an_operation_in_progress_is_refused_before_any_check_runs(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    (a_guarded_project.path / ".git" / "MERGE_HEAD").write_text(a_guarded_project.git("rev-parse", "task/42") + "\n")
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 1
    assert "a merge is in progress" in answer.err
    assert _checks_run(answer) == 0


@pytest.mark.slow
def test_the_users_message_hook_and_signing_are_honoured(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    hook = a_guarded_project.path / ".git" / "hooks" / "commit-msg"
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    main = a_guarded_project.git("rev-parse", "main")
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 1
    assert "commit-msg hook refuses" in answer.err
    hook.write_text('#!/bin/sh\necho "Reviewed: yes" >>"$1"\n')
    a_guarded_project.git("config", "commit.gpgSign", "true")
    a_guarded_project.git("config", "gpg.program", "false")
    assert evals(a_guarded_project, "merge", "task/42").code == 3
    assert a_guarded_project.git("rev-parse", "main") == main
    a_guarded_project.git("config", "commit.gpgSign", "false")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert "Reviewed: yes" in a_guarded_project.git("log", "-1", "--format=%B")


def test_evidence_that_is_there_is_not_made_again(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "run", "42").code == 0
    answer = evals(a_guarded_project, "merge", "task/42")
    assert answer.code == 0
    assert _checks_run(answer) == 0


@pytest.mark.parametrize("mode", ["observe", pytest.param("off", marks=pytest.mark.slow)])
def test_lenient_modes_merge_what_fails_its_criteria_but_not_what_fails_verification(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.commit({"useless": "1\n"})
    a_guarded_project.git("switch", "-q", "-c", "task/43", "main")
    a_guarded_project.commit({"broken": "1\n"})
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    answer = evals(a_guarded_project, "merge", "task/43")
    assert answer.code == 1
    assert "project verification failed" in answer.out


def test_a_change_without_a_task_is_refused_in_enforce(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "untasked")
    a_guarded_project.commit({"untasked": "1\n"})
    a_guarded_project.git("switch", "-q", "main")
    answer = evals(a_guarded_project, "merge", "untasked", "--json")
    assert answer.code == 1
    decision = json.loads(answer.out)
    assert [reason["code"] for reason in decision["reasons"]] == ["untasked"]
    assert decision["allowed"] is False


def test_a_squash_does_not_take_a_quoted_trailer_for_a_task(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "quoted")
    a_guarded_project.commit({"ok-42": "1\n"}, "quote\n\n    Task: 43\n\nand go on")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "merge", "quoted", "--task", "42", "--squash").code == 0
    assert evals(a_guarded_project, "audit").code == 0


def test_a_merge_driver_of_the_users_never_runs_in_scratch(a_project: Place, tmp_path: Path) -> None:
    a_project.commit({".gitattributes": "README merge=mine\n"}, "attributes")
    a_project.git("config", "merge.mine.driver", f"touch {tmp_path}/ran; exit 0")
    with_task_branch(a_project)
    a_project.git("switch", "-q", "task/42")
    a_project.commit({"README": "hello\nthere\n"})
    a_project.git("switch", "-q", "main")
    a_project.commit({"elsewhere": "1\n"}, "main moves on")
    assert evals(a_project, "merge", "task/42").code == 0
    assert not (tmp_path / "ran").exists()
