"""Ways past the gate, or into its works, that were found by trying; each is closed."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from gitevals.evidence.writing import AFTER_LIMIT
from gitevals.git.repo import discover
from tests.conftest import Place, evals, hook_file, with_task_branch


def _evil(place: Place, branch: str = "evil", message: str = "evil") -> str:
    """A branch ahead of main without a task; the current branch stays."""
    current = place.git("symbolic-ref", "--short", "HEAD")
    place.git("switch", "-q", "-c", branch, "main")
    commit = place.commit({"evil": "1\n"}, message)
    place.git("switch", "-q", current)
    return commit


def _refused(place: Place, *command: str, saying: str = "git-evals: refused") -> str:
    done = place.attempt("git", *command)
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode != 0, said
    assert saying in said
    assert "Traceback" not in said
    return said


def test_a_submodule_that_is_ignored_is_a_change_all_the_same(a_project: Place) -> None:
    head = a_project.git("rev-parse", "HEAD")
    a_project.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    modules = '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n\tignore = all\n'
    (a_project.path / ".gitmodules").write_text(modules)
    a_project.git("add", ".gitmodules")
    a_project.git("commit", "-qm", "a submodule")
    assert evals(a_project, "hooks", "install").code == 0
    a_project.git("update-index", "--cacheinfo", f"160000,{a_project.git('rev-parse', 'HEAD')},lib")
    bump = a_project.git("commit-tree", a_project.git("write-tree"), "-p", "main", "-m", "bump")
    _refused(a_project, "update-ref", "refs/heads/main", bump, saying="no task is named")


def test_a_base_whose_configuration_cannot_be_read_opens_nothing(a_guarded_project: Place) -> None:
    _evil(a_guarded_project)
    blob = a_guarded_project.git("rev-parse", "main:.gitevals.yaml")
    (a_guarded_project.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    _refused(a_guarded_project, "update-ref", "refs/heads/main", "evil", saying="cannot be read")


def test_a_push_over_a_tip_that_was_never_fetched_is_refused(a_guarded_project: Place, tmp_path: Path) -> None:
    remote = str(tmp_path / "remote.git")
    a_guarded_project.git("clone", "-q", "--bare", ".", remote)
    a_guarded_project.git("remote", "add", "origin", remote)
    a_guarded_project.git("clone", "-q", remote, str(tmp_path / "colleague"))
    colleague = Place(tmp_path / "colleague")
    colleague.commit({"theirs": "1\n"})
    colleague.git("push", "-q", "origin", "main")
    _evil(a_guarded_project)
    _refused(a_guarded_project, "push", "--force", "origin", "evil:main", saying="git fetch")


@pytest.mark.parametrize("source", ["evil^{/fix bug}", ":/fix bug"])
def test_a_push_of_what_was_typed_with_blanks_is_judged(source: str, a_guarded_project: Place, tmp_path: Path) -> None:
    a_guarded_project.git("clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    a_guarded_project.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    _evil(a_guarded_project, message="fix bug")
    _refused(a_guarded_project, "push", "--no-follow-tags", "origin", f"{source}:main", saying="git evals run")


@pytest.mark.slow
def test_what_is_to_be_said_of_a_step_is_said_of_the_whole_path(a_guarded_project: Place) -> None:
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    a_guarded_project.git("switch", "-q", "-c", "steps")
    one = a_guarded_project.commit({"ok-42": "1\n"}, "one\n\nTask: 42")
    a_guarded_project.commit({".gitevals.yaml": config.replace("enforce", "off")}, "two")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42", "--commit", one).code == 0
    a_guarded_project.git("update-ref", "refs/remotes/origin/main", one)
    answer = evals(a_guarded_project, "run", "--verify-only", "--branch", "steps", "--into", "origin/main")
    assert answer.code == 0, answer
    a_guarded_project.git("update-ref", "-d", "refs/remotes/origin/main")
    merged = a_guarded_project.attempt("git", "merge", "--ff-only", "steps")
    assert merged.returncode == 0, merged.stderr
    assert b".gitevals.yaml is changed by this movement" in merged.stderr


def test_audit_goes_on_where_the_configuration_is_gone(a_project: Place) -> None:
    a_project.git("rm", "-q", ".gitevals.yaml")
    a_project.git("commit", "-qm", "free")
    a_project.commit({"evil": "1\n"})
    answer = evals(a_project, "audit")
    assert "unprotected: 1 movement(s) without configuration" in answer.out


@pytest.mark.parametrize(
    "settings",
    [("trailer.separators", "="), ("core.commentChar", "T"), ("i18n.logOutputEncoding", "UTF-16")],
    ids=lambda setting: setting[0],
)
@pytest.mark.parametrize("kept", [False, True], ids=["-c", "kept"])
def test_nobodys_configuration_hides_a_trailer(settings: tuple[str, str], kept: bool, a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "both")
    a_guarded_project.commit({"ok-42": "1\n"}, "both\n\nTask: 42\nTask: 43")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42", "--branch", "both").code == 0
    if kept:
        a_guarded_project.git("config", *settings)
    options = () if kept else ("-c", "=".join(settings))
    _refused(a_guarded_project, *options, "update-ref", "refs/heads/main", "both", saying="task 43")


def test_a_long_transaction_without_grep_is_refused(a_guarded_project: Place, tmp_path: Path) -> None:
    _evil(a_guarded_project)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    many = "".join(f"create refs/tags/t{n} main\n" for n in range(40)) + "update refs/heads/main evil\n"
    done = a_guarded_project.attempt(
        "git", "update-ref", "--stdin", stdin=many.encode(), env={"PATH": str(programs), "LC_ALL": "C.UTF-8"}
    )
    assert done.returncode != 0
    assert b"needs grep" in done.stderr


def test_bytes_that_are_no_text_hide_no_line(a_guarded_project: Place) -> None:
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "x")
    a_guarded_project.write(".gitevals.yaml", config.replace("[main]", "[main, 'release/*']"))
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "protect releases")
    assert evals(a_guarded_project, "hooks", "install").code == 0
    evil = _evil(a_guarded_project)
    many = "".join(f"create refs/tags/t{n} main\n" for n in range(40)).encode()
    last = b"create refs/heads/release/\xff " + evil.encode() + b"\n"
    done = a_guarded_project.attempt("git", "update-ref", "--stdin", stdin=many + last)
    assert done.returncode != 0
    assert b"binary" not in done.stderr
    a_guarded_project.git("branch", "release/a\u00a0b", "main")


def test_a_branch_is_protected_by_the_remotes_word_where_the_trust_branch_is_not_here(
    a_project: Place, tmp_path: Path
) -> None:
    config = (a_project.path / ".gitevals.yaml").read_text()
    a_project.commit({".gitevals.yaml": config.replace("[main]", "[main, dev]")})
    a_project.git("branch", "dev")
    a_project.git("clone", "-q", "-b", "dev", ".", str(tmp_path / "clone"))
    clone = Place(tmp_path / "clone")
    clone.git("config", "evals.trustBranch", "main")
    assert evals(clone, "hooks", "install").code == 0
    clone.write("evil", "1\n")
    clone.git("add", "evil")
    _refused(clone, "commit", "-m", "evil")


def test_another_trust_branch_for_one_command_changes_no_list(a_guarded_project: Place) -> None:
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    (a_guarded_project.path / ".gitevals.yaml").write_text(config + "# more\n")
    before = (a_guarded_project.path / ".git" / "git-evals" / "protected").read_text()
    _refused(a_guarded_project, "-c", "evals.trustBranch=zzz", "commit", "-am", "cfg", saying="--verify-only")
    assert evals(a_guarded_project, "run", "--verify-only", "--commit", _candidate(a_guarded_project)).code == 0
    a_guarded_project.git("-c", "evals.trustBranch=zzz", "commit", "-qam", "cfg")
    a_guarded_project.git("tag", "after")
    assert (a_guarded_project.path / ".git" / "git-evals" / "protected").read_text() == before


def _candidate(place: Place) -> str:
    tree = place.git("stash", "create")
    return place.git("commit-tree", f"{tree}^{{tree}}", "-p", "main", "-m", "candidate")


def test_grafts_make_nobody_a_descendant(a_guarded_project: Place) -> None:
    main = a_guarded_project.git("rev-parse", "main")
    orphan = a_guarded_project.git("commit-tree", "main^{tree}", "-m", "orphan")
    (a_guarded_project.path / ".git" / "info" / "grafts").write_text(f"{orphan} {main}\n")
    _refused(a_guarded_project, "update-ref", "refs/heads/main", orphan, saying="would lose")


def test_leaving_grafts_out_earns_no_advice_of_git_in_our_messages(a_project: Place) -> None:
    found = discover(str(a_project.path), dict(os.environ)).run("log", "-1", "--format=%H")
    assert (found.stdout.decode().strip(), found.stderr) == (a_project.git("rev-parse", "HEAD"), "")


def test_no_merge_driver_of_anybodys_says_what_is_an_undoing(a_guarded_project: Place, tmp_path: Path) -> None:
    with_task_branch(a_guarded_project)
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    _evil(a_guarded_project)
    a_guarded_project.git("config", "merge.ev.driver", f"touch {tmp_path}/ran; echo 1 >%A")
    a_guarded_project.git("config", "merge.default", "ev")
    (a_guarded_project.path / ".git" / "info" / "attributes").write_text("* merge=ev\n")
    _refused(a_guarded_project, "update-ref", "refs/heads/main", "evil", saying="no task is named")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("mode_bits", ["100755", "120000"])
def test_a_program_in_the_place_of_a_task_file_is_no_task_file(mode_bits: str, a_guarded_project: Place) -> None:
    blob = a_guarded_project.git("hash-object", "-w", "--stdin", stdin=b"x")
    a_guarded_project.git("switch", "-q", "-c", "sly")
    a_guarded_project.git("update-index", "--add", "--cacheinfo", f"{mode_bits},{blob},tasks/77.md")
    a_guarded_project.git("commit", "-qm", "sly")
    a_guarded_project.git("switch", "-q", "-f", "main")
    _refused(a_guarded_project, "update-ref", "refs/heads/main", "sly", saying="no task is named")


@pytest.mark.usefixtures("no_program")
def test_an_interpreter_that_cannot_import_us_refuses_with_the_repair(a_guarded_project: Place) -> None:
    _evil(a_guarded_project)
    hook = hook_file(a_guarded_project)
    lines = hook.read_text().splitlines(keepends=True)
    hook.write_text("".join("modules='/nonexistent'\n" if line.startswith("modules=") else line for line in lines))
    said = _refused(a_guarded_project, "update-ref", "refs/heads/main", "evil", saying="git evals hooks install")
    assert "ModuleNotFoundError" in said
    a_guarded_project.git("branch", "free", "evil")


@pytest.mark.parametrize("damage", ["file", "directories"])
@pytest.mark.slow
def test_side_files_that_cannot_be_used_cost_time_and_nothing_else(damage: str, a_guarded_project: Place) -> None:
    side = a_guarded_project.path / ".git" / "git-evals"
    shutil.rmtree(side)
    if damage == "file":
        side.write_text("not a directory")
    else:
        for name in ("protected", "protected.stale", "cache"):
            (side / name).mkdir(parents=True)
    _evil(a_guarded_project)
    _refused(a_guarded_project, "update-ref", "refs/heads/main", "evil")
    a_guarded_project.git("branch", "free", "evil")


def test_a_refused_rename_says_how_to_make_the_lost_branch_anew(a_guarded_project: Place) -> None:
    evil = _evil(a_guarded_project)
    a_guarded_project.git("switch", "-q", "-c", "elsewhere")
    said = _refused(a_guarded_project, "branch", "-M", "evil", "main")
    undo = next(line for line in said.splitlines() if "undo: " in line).split("undo: ")[1]
    a_guarded_project.attempt("git", "branch", "-D", "evil")
    assert a_guarded_project.attempt("sh", "-c", undo).returncode == 0
    assert a_guarded_project.git("rev-parse", "evil") == evil


def test_an_operation_that_is_none_of_the_refused_commands_is_never_undone(a_guarded_project: Place) -> None:
    a_guarded_project.git("switch", "-q", "-c", "mine")
    a_guarded_project.commit({"README": "mine\n"})
    a_guarded_project.git("switch", "-q", "-c", "theirs", "main")
    a_guarded_project.commit({"README": "theirs\n"})
    assert a_guarded_project.attempt("git", "merge", "mine").returncode != 0
    stale = a_guarded_project.path / ".git" / "logs" / "refs" / ".tmp-renamed-log"
    stale.write_text(f"{'0' * 40} {a_guarded_project.git('rev-parse', 'mine')} C <c@e> 1 +0000\tx\n")
    for command in (
        ("branch", "-f", "main", "theirs"),
        ("branch", "-m", "main", "old"),
        ("branch", "-D", "main", "mine"),
    ):
        said = _refused(a_guarded_project, *command)
        assert "undo" not in said


def test_a_hint_can_be_pasted_whatever_a_branch_is_called(a_guarded_project: Place) -> None:
    _evil(a_guarded_project, "x;id>pwned")
    said = _refused(a_guarded_project, "merge", "x;id>pwned")
    assert "--branch 'x;id>pwned'" in said


def test_a_task_that_the_target_no_longer_states_hides_no_other(a_project: Place) -> None:
    with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    assert evals(a_project, "freeze", "43").code == 0
    a_project.git("rm", "-q", "tasks/43.md")
    a_project.git("commit", "-qm", "no more 43")
    answer = evals(a_project, "status")
    assert answer.code == 0
    assert "42: Task 42" in answer.out
    assert "43: Task 43" in answer.out
    (a_project.path / "tasks/42.md").write_text("no criteria")
    a_project.git("commit", "-qam", "no more 42 either")
    answer = evals(a_project, "status")
    assert answer.code == 0
    assert "unreadable" in answer.out
    assert "43: Task 43" in answer.out


def test_a_branchs_own_merge_options_change_nothing_of_a_merge(a_guarded_project: Place) -> None:
    with_task_branch(a_guarded_project)
    a_guarded_project.git("config", "branch.main.mergeoptions", "--squash --no-commit")
    main = a_guarded_project.git("rev-parse", "main")
    assert evals(a_guarded_project, "merge", "task/42").code == 0
    assert a_guarded_project.git("rev-parse", "main") != main
    assert a_guarded_project.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name",
    [
        "line\nend",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("co:lon", 'quo"te', "it's", "sp ace", "n\u2028l")),
    ],
)
def test_a_repository_may_be_called_anything(name: str, a_project: Place, tmp_path: Path) -> None:
    place = Place(tmp_path / name)
    a_project.path.rename(place.path)
    with_task_branch(place)
    assert evals(place, "hooks", "install").code == 0
    assert evals(place, "merge", "task/42").code == 0
    done = place.attempt("git", "revert", "--no-edit", "-m", "1", "main")
    assert b"is restored" in done.stderr or b"is undone" in done.stderr, done.stderr
    assert evals(place, "audit").code == 0


def test_a_merge_names_the_tasks_that_the_gate_would(a_guarded_project: Place) -> None:
    config = (a_guarded_project.path / ".gitevals.yaml").read_text()
    a_guarded_project.write(".gitevals.yaml", config.replace("[main]", "[main, 'release/*']"))
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "protect releases")
    assert evals(a_guarded_project, "hooks", "install").code == 0
    a_guarded_project.git("switch", "-q", "-c", "work")
    a_guarded_project.commit({"ok-42": "1\n"}, "one\n\nTask: 42")
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "branch", "release/1", "work")
    a_guarded_project.git("switch", "-q", "main")
    assert "no task is named" in evals(a_guarded_project, "verify", "--branch", "work", "--into", "main").out
    assert "no task is named" in evals(a_guarded_project, "merge", "work", "--into", "main").out


@pytest.mark.parametrize(
    "closed", ["2>&-", *(pytest.param(way, marks=pytest.mark.slow) for way in (">&-", ">/dev/full", "2>/dev/full"))]
)
def test_a_stream_that_nobody_reads_ends_no_command_in_a_traceback(closed: str, a_project: Place) -> None:
    import sys

    command = f'"{sys.executable}" -m gitevals contract 42 {closed}'
    done = a_project.attempt("sh", "-c", command, env={"PYTHONPATH": str(Path(__file__).parents[1])})
    assert done.returncode == (3 if closed == ">/dev/full" else 0)
    assert b"Traceback" not in done.stderr


def test_a_rename_of_the_branch_that_is_checked_out_can_be_taken_back(a_guarded_project: Place) -> None:
    evil = _evil(a_guarded_project)
    a_guarded_project.git("switch", "-q", "evil")
    said = _refused(a_guarded_project, "branch", "-M", "main")
    undo = next((line for line in said.splitlines() if "undo: " in line), "").partition("undo: ")[2]
    assert a_guarded_project.attempt("sh", "-ec", undo or "false").returncode == 0, said
    assert a_guarded_project.git("rev-parse", "evil") == evil


def test_a_pattern_is_never_the_trust_branch(a_repo: Place) -> None:
    answer = evals(a_repo, "init", "--protect", "release/*", "--protect", "main", "--mode", "enforce")
    assert answer.code == 0, answer
    assert "trusted branch: main" in answer.out
    listed = (a_repo.path / ".git" / "git-evals" / "protected").read_text()
    assert listed.startswith("refs/heads/main\n")
    for name in ("", "*", "[a", "-x"):
        assert evals(a_repo, "init", "--protect", name).code == 2


def test_what_was_not_seen_for_want_of_history_is_not_remembered(a_project: Place, tmp_path: Path) -> None:
    with_task_branch(a_project)
    assert evals(a_project, "merge", "task/42").code == 0
    a_project.git("clone", "-q", "--depth", "1", f"file://{a_project.path}", str(tmp_path / "shallow"))
    clone = Place(tmp_path / "shallow")
    clone.git("fetch", "-q", "origin", "+refs/evals/*:refs/evals/*", "+refs/notes/evals/*:refs/notes/evals/*")
    clone.git("config", "evals.trustBranch", "main")
    clone.git("switch", "-q", "-c", "again")
    clone.commit({"more": "1\n"}, "more\n\nTask: 42")
    clone.git("switch", "-q", "main")
    evals(clone, "run", "42", "--branch", "again")
    clone.git("fetch", "-q", "--unshallow")
    answer = evals(clone, "verify", "--branch", "again")
    assert answer.code == 1, answer
    assert "already delivered" in answer.out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="another process's memory cannot be bounded here")
def test_few_trees_that_stand_for_very_many_paths_take_no_memory(a_project: Place) -> None:
    with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    entry = f"100644 blob {a_project.git('rev-parse', 'main:README')}"
    for _ in range(3):
        listed = "".join(f"{entry}\t{number:02x}\n" for number in range(256))
        entry = f"040000 tree {a_project.git('mktree', stdin=listed.encode())}"
    bomb = a_project.git("commit-tree", "-m", "x", entry.split(" ")[2])
    a_project.git("update-ref", "refs/evals/events/another", bomb)
    answer = evals(a_project, "log")
    assert answer.code == 0
    assert "history of the ledgers cannot be read" in answer.err
    assert "evaluation.finished" in answer.out


@pytest.mark.slow
def test_very_many_evaluations_of_a_change_keep_nobody_from_running_it(a_project: Place) -> None:
    head = with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    tree = a_project.git("rev-parse", f"{head}^{{tree}}")
    record = json.loads(a_project.git("cat-file", "blob", f"refs/notes/evals/tester:{tree[:2]}/{tree[2:]}"))
    forged = [{**record, "nonce": f"{number:016x}", "result": "failed"} for number in range(AFTER_LIMIT)]
    forged += [{**record, "nonce": f"{number:016x}"} for number in range(AFTER_LIMIT, 1200)]
    lines = b"".join(json.dumps(one, sort_keys=True, separators=(",", ":")).encode() + b"\n" for one in forged)
    blob = a_project.git("hash-object", "-w", "--stdin", stdin=lines)
    a_project.git("notes", "--ref=evals/another", "add", "-C", blob, tree)
    assert evals(a_project, "verify", "--branch", "task/42").code == 1
    answer = evals(a_project, "run", "42", "--force")
    assert answer.code == 0, answer
    answer = evals(a_project, "verify", "--branch", "task/42")
    assert answer.code == 0, answer


@pytest.mark.slow
@pytest.mark.parametrize("base", ["main:README", "main^{tree}", "v1", "broken"])
def test_a_freeze_at_what_is_no_commit_of_history_changes_nothing(base: str, a_project: Place) -> None:
    commit = with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    a_project.git("tag", "-a", "-m", "x", "v1", "main:README")
    orphan = a_project.git("cat-file", "commit", "main").partition("\n")[0] + f"\nparent {'1' * 40}\n"
    orphan += "author A <a@example.org> 0 +0000\ncommitter A <a@example.org> 0 +0000\n\nx\n"
    broken = a_project.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=orphan.encode())
    name = broken if base == "broken" else a_project.git("rev-parse", base)
    place = a_project.git("ls-tree", "-r", "--name-only", "refs/evals/contracts/tester", "42/freezes/")
    record = json.loads(a_project.git("cat-file", "blob", f"refs/evals/contracts/tester:{place}"))
    raw = json.dumps({**record, "base": name, "nonce": "1" * 16}, sort_keys=True, separators=(",", ":")).encode()
    blob = a_project.git("hash-object", "-w", "--stdin", stdin=raw)
    index = {"GIT_INDEX_FILE": str(a_project.path / ".git" / "another-index")}
    a_project.git("update-index", "--add", "--cacheinfo", f"100644,{blob},42/freezes/{'a' * 64}.json", env=index)
    forged = a_project.git("commit-tree", "-m", "x", a_project.git("write-tree", env=index))
    a_project.git("update-ref", "refs/evals/contracts/another", forged)
    for command in (("status",), ("tasks",), ("verify", "--branch", "task/42"), ("merge", "task/42", "--quiet")):
        assert evals(a_project, *command).code == 0, command
    a_project.git("switch", "-q", "-c", "again", commit)
    a_project.commit({"more": "1\n"})
    answer = evals(a_project, "verify", "--branch", "again", "--task", "42")
    assert answer.code == 1
    assert "already delivered" in answer.out


def test_a_file_that_only_the_target_changed_is_in_nobodys_way(a_project: Place) -> None:
    with_task_branch(a_project)
    a_project.commit({"README": "changed on main\n"})
    a_project.write("README", "and changed here\n")
    assert evals(a_project, "merge", "task/42").code == 0
    assert (a_project.path / "README").read_text() == "and changed here\n"


def test_no_configuration_from_outside_names_the_authority(a_guarded_project: Place, sealed: Path) -> None:
    evil = _evil(a_guarded_project)
    a_guarded_project.git("update-ref", "refs/remotes/fork/main", evil)
    a_guarded_project.git("config", "--global", "evals.remote", "fork")
    _refused(a_guarded_project, "merge", "--ff-only", "evil")


@pytest.mark.slow
def test_many_deliveries_of_the_same_file_are_searched_at_once(a_guarded_project: Place, tmp_path: Path) -> None:
    a_guarded_project.git("config", "core.hooksPath", "/dev/null")
    for number in range(30):
        a_guarded_project.commit({"log": f"{number}\n"}, "Task: 42")
    a_guarded_project.git("config", "--unset", "core.hooksPath")
    a_guarded_project.git("switch", "-q", "-c", "other")
    a_guarded_project.commit({"log": "other\n"})
    a_guarded_project.git("switch", "-q", "main")
    programs = tmp_path / "programs"
    programs.mkdir()
    git = shutil.which("git")
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >>{programs}/log\nexec {git} "$@"\n')
    (programs / "git").chmod(0o755)
    line = (
        f"{a_guarded_project.git('rev-parse', 'main')} {a_guarded_project.git('rev-parse', 'other')} refs/heads/main\n"
    )
    hook = ("sh", str(hook_file(a_guarded_project)), "prepared")
    done = a_guarded_project.attempt(*hook, stdin=line.encode(), env={"PATH": f"{programs}:/usr/bin:/bin"})
    assert done.returncode != 0
    calls = (programs / "log").read_text().splitlines()
    assert sum(" init " in f" {call} " for call in calls) == 1
    assert sum("diff-tree" in call for call in calls) == 1


def test_a_stranger_before_the_first_commit_is_told_to_make_it(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    place = Place(tmp_path / "new")
    place.git("init", "-q")
    assert evals(place, "init").code == 0
    answer = evals(place, "status")
    assert answer.code == 2
    assert "commit .gitevals.yaml to main first" in answer.err


def test_a_transaction_of_symbolic_refs_alone_is_judged(a_guarded_project: Place) -> None:
    line = f"{'0' * 40} ref:refs/heads/x refs/heads/main\n".encode()
    done = a_guarded_project.attempt("sh", str(hook_file(a_guarded_project)), "prepared", stdin=line)
    assert done.returncode == 1
    assert b"would become a symbolic ref" in done.stderr
