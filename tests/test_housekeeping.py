"""What git and people do every day goes on with the gate in place."""

from pathlib import Path

import pytest

from tests.conftest import Place, evals, hook_file, with_task_branch

QUICK = ("pack-refs", "reset")


@pytest.fixture
def a_colleague(a_guarded_project: Place, tmp_path: Path) -> Place:
    """A clone of a bare remote that the guarded project pushed to; nothing is guarded there."""
    a_guarded_project.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    a_guarded_project.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    a_guarded_project.git("push", "-q", "-u", "origin", "main")
    a_guarded_project.git("clone", "-q", str(tmp_path / "remote.git"), str(tmp_path / "colleague"))
    return Place(tmp_path / "colleague")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=" ".join(command), marks=[] if command[0] in QUICK else [pytest.mark.slow])
        for command in (
            ("pack-refs", "--all", "--prune"),
            ("gc", "--prune=now", "-q"),
            ("fsck",),
            ("reset", "-q", "--hard"),
            ("update-ref", "refs/heads/main", "refs/heads/main"),
            ("branch", "-f", "another", "main"),
            ("tag", "v1"),
            ("reflog", "expire", "--expire=now", "--all"),
            ("worktree", "add", "-q", "../beside", "-b", "beside"),
            ("commit-graph", "write", "--reachable"),
        )
    ],
)
def test_housekeeping_is_none_of_the_gates_business(command: tuple[str, ...], a_guarded_project: Place) -> None:
    main = a_guarded_project.git("rev-parse", "main")
    a_guarded_project.git(*command)
    assert a_guarded_project.git("rev-parse", "main") == main


def test_a_stash_can_be_made_and_taken_back(a_guarded_project: Place) -> None:
    a_guarded_project.write("README", "changed\n")
    a_guarded_project.git("stash", "-q")
    a_guarded_project.git("stash", "pop", "-q")
    assert a_guarded_project.git("diff", "--name-only") == "README"


def test_deleting_a_protected_branch_is_refused_packed_or_loose(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "elsewhere")
    for prepare in (("version",), ("pack-refs", "--all")):
        a_guarded_project.git(*prepare)
        refused = a_guarded_project.attempt("git", "branch", "-D", "main")
        assert refused.returncode != 0
        assert b"would be deleted" in refused.stderr
        refused = a_guarded_project.attempt("git", "update-ref", "-d", "refs/heads/main")
        assert b"would be deleted" in refused.stderr
    assert a_guarded_project.git("rev-parse", "main")


def test_renaming_another_branch_over_a_protected_one_is_refused(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("switch", "-q", "task/42")
    main = a_guarded_project.git("rev-parse", "main")
    assert a_guarded_project.attempt("git", "branch", "-M", "task/42", "main").returncode != 0
    assert a_guarded_project.git("rev-parse", "main") == main


def test_a_rewrite_of_a_protected_branch_is_refused(a_guarded_project: Place) -> None:
    refused = a_guarded_project.attempt("git", "reset", "--hard", "HEAD~1")
    assert refused.returncode != 0
    assert b"would lose 1 commit" in refused.stderr
    a_guarded_project.git("reset", "--merge")
    assert a_guarded_project.git("status", "--porcelain") == ""
    amended = a_guarded_project.attempt("git", "commit", "--amend", "-m", "reworded")
    assert amended.returncode != 0


def test_unprotected_branches_move_as_they_like(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "free")
    a_guarded_project.commit({"free": "1\n"})
    a_guarded_project.commit({"free": "2\n"})
    a_guarded_project.git("reset", "-q", "--hard", "HEAD~1")
    a_guarded_project.git("rebase", "-q", "main")
    a_guarded_project.git("switch", "-q", "main")
    a_guarded_project.git("branch", "-q", "-D", "free")


def test_a_clone_with_the_hooks_in_its_template_works(
    a_colleague: Place, a_guarded_project: Place, tmp_path: Path
) -> None:
    template = tmp_path / "template"
    (template / "hooks").mkdir(parents=True)
    for hook in ("reference-transaction", "pre-commit", "pre-merge-commit", "pre-push"):
        (template / "hooks" / hook).write_bytes(hook_file(a_guarded_project, hook).read_bytes())
        (template / "hooks" / hook).chmod(0o755)
    clone = tmp_path / "clone"
    a_colleague.git("clone", "-q", f"--template={template}", str(tmp_path / "remote.git"), str(clone))
    Place(clone).git("switch", "-q", "-c", "work")
    Place(clone).commit({"work": "1\n"})


def test_what_a_colleague_delivered_can_be_pulled(a_colleague: Place, a_guarded_project: Place) -> None:
    a_colleague.commit({"theirs": "1\n"}, "theirs")
    a_colleague.git("push", "-q", "origin", "main")
    a_guarded_project.git("pull", "-q", "--ff-only")
    assert a_guarded_project.git("rev-parse", "main") == a_colleague.git("rev-parse", "main")
    a_guarded_project.git("fetch", "-q", "--prune")


def test_what_the_remote_does_not_have_is_not_a_catch_up(a_colleague: Place, a_guarded_project: Place) -> None:
    a_colleague.commit({"theirs": "1\n"}, "theirs")
    a_colleague.git("push", "-q", "origin", "main")
    a_guarded_project.git("fetch", "-q")
    a_guarded_project.git("switch", "-q", "-c", "more", "origin/main")
    a_guarded_project.commit({"mine": "1\n"}, "mine")
    a_guarded_project.git("switch", "-q", "main")
    assert a_guarded_project.attempt("git", "merge", "more").returncode != 0


def test_a_push_of_a_protected_branch_needs_the_evidence_too(a_colleague: Place, a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    refused = a_guarded_project.attempt("git", "push", "origin", "task/42:main")
    assert refused.returncode != 0
    assert b"git evals run 42" in refused.stderr
    assert evals(a_guarded_project, "run", "42").code == 0
    a_guarded_project.git("push", "-q", "origin", "task/42:main")
    a_guarded_project.git("push", "-q", "origin", "task/42")


def test_several_refs_in_one_transaction_are_judged_together(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    many = "".join(f"create refs/tags/t{n} main\n" for n in range(40))
    last = "update refs/heads/main task/42\n"
    refused = a_guarded_project.attempt("git", "update-ref", "--stdin", stdin=(many + last).encode())
    assert refused.returncode != 0
    assert a_guarded_project.git("tag") == ""
    a_guarded_project.git("update-ref", "--stdin", stdin=many.encode())
    assert len(a_guarded_project.git("tag").splitlines()) == 40


@pytest.mark.parametrize("damage", ["absent", "empty", "cut", "crlf", "no end"])
def test_a_damaged_list_of_protected_branches_is_rebuilt_and_never_opens_the_gate(
    damage: str, a_guarded_project: Place
) -> None:
    with_task_branch(a_guarded_project)
    side = a_guarded_project.path / ".git" / "git-evals" / "protected"
    whole = side.read_text()
    contents = {
        "empty": "",
        "cut": "refs/heads/mai",
        "crlf": whole.replace("\n", "\r\n"),
        "no end": "refs/heads/other\n",
    }
    if damage == "absent":
        side.unlink()
    else:
        side.write_bytes(contents[damage].encode())
    a_guarded_project.git("tag", "free")
    assert a_guarded_project.attempt("git", "merge", "task/42").returncode != 0
    assert side.read_text() == whole


@pytest.mark.usefixtures("no_program")
def test_a_lost_interpreter_refuses_protected_branches_and_lets_the_rest_pass(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    for interpreter in ("/nonexistent/python", "/bin/false"):
        for hook in hook_file(a_guarded_project).parent.iterdir():
            lines = hook.read_text().splitlines(keepends=True)
            text = "".join(f"python='{interpreter}'\n" if line.startswith("python=") else line for line in lines)
            hook.write_text(text)
        refused = a_guarded_project.attempt("git", "update-ref", "refs/heads/main", "task/42")
        assert refused.returncode != 0
        assert interpreter == "/bin/false" or b"git evals hooks install" in refused.stderr
        a_guarded_project.git("update-ref", f"refs/heads/free{len(interpreter)}", "task/42")


@pytest.mark.slow
def test_the_list_follows_the_trust_branch(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "widen")
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    a_guarded_project.commit({".gitevals.yaml": config.replace("[main]", "[main, 'release/*']")}, "protect releases")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "merge", "widen", "--into", "main").code == 0
    listed = (a_guarded_project.path / ".git" / "git-evals" / "protected").read_text()
    assert "refs/heads/release/*" in listed
    a_guarded_project.git("branch", "release/1", "main")
    with_task_branch(a_guarded_project)
    assert a_guarded_project.attempt("git", "branch", "-f", "release/1", "task/42").returncode != 0


def test_uninstall_leaves_no_trace(a_project: Place) -> None:
    before = {path: path.read_bytes() for path in (a_project.path / ".git").rglob("*") if path.is_file()}
    assert evals(a_project, "hooks", "install").code == 0
    assert evals(a_project, "hooks", "status").code == 0
    assert evals(a_project, "hooks", "uninstall").code == 0
    after = {path: path.read_bytes() for path in (a_project.path / ".git").rglob("*") if path.is_file()}
    assert {path: body for path, body in after.items() if "git-evals" not in path.parts} == before
    assert evals(a_project, "hooks", "status").code == 1
