"""`git evals run` and its readers: what commands do to results, records, the user's repository and other processes."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Answer, Place, evals, with_task_branch

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 60.0
OURS = ("refs/evals/", "refs/notes/evals/")
TIMES_UP = "trap '' TERM; while :; do sleep 0.1; done"
REPOSITORY_IN_TMPDIR = (
    'cd "$TMPDIR" && git init -q r && cd r && touch f && git add f'
    " && git -c user.name=n -c user.email=e commit -q -m inside && test ! -e ../../work/f"
)
IN_A_SESSION_OF_ITS_OWN = (
    "import os, sys, time\n"
    "if os.fork():\n"
    "    while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    "    os._exit(0)\n"
    "os.setsid()\n"
    "open(sys.argv[1] + '-new', 'w').write(str(os.getpid()))\n"
    "os.rename(sys.argv[1] + '-new', sys.argv[1])\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where checks leave their process ids; scratch directories stand beside it."""
    (tmp_path / "pids").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return tmp_path / "pids"


def shell(script: str, **more: object) -> dict[str, Any]:
    """A check that notes its process id, then runs ``script``."""
    return {"command": ["sh", "-c", f'echo $$ >"$PIDS/$$"; {script}'], "pass_env": ["PIDS"], **more}


def configure(place: Place, checks: Mapping[str, Mapping[str, object]], **more: object) -> str:
    """Put ``checks``, all bound to every criterion, into the configuration of ``main``; the commit's id."""
    config = {
        "version": 1, "repository": "r1", "mode": "enforce", "protect": ["main"], "branches": "task/{task}",
        "tasks": {"path": "tasks/{task}.md"}, "checks": checks, "bindings": {"*": {"*": list(checks)}}, **more,
    }  # fmt: skip
    return place.commit({".gitevals.yaml": json.dumps(config, indent=1)}, "configure")


def state_of(place: Place) -> dict[str, object]:
    """Everything of the user's that a run must leave as it was."""
    refs = place.git("for-each-ref", "--format=%(refname) %(objectname) %(symref)").split("\n")
    git = place.path / ".git"
    files = {
        str(path.relative_to(place.path)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(place.path.rglob("*"))
        if path.is_file() and git not in path.parents
    }
    return {
        "refs": [ref for ref in refs if not ref.startswith(OURS)],
        "files": files,
        "stash": place.git("stash", "list"),
        **{name: (git / name).read_bytes() for name in ("index", "HEAD", "config")},
    }


def are_gone(pids: Path) -> bool:
    """Whether none of the processes that left their id lives."""
    found = [int(file.read_text()) for file in pids.iterdir() if file.is_file()]
    assert found, "no check ran at all"
    return not any(_is_alive(pid) for pid in found)


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def comes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def document(answer: Answer) -> dict[str, Any]:
    found = json.loads(answer.out)
    assert isinstance(found, dict)
    return found


def run(place: Place, *arguments: str) -> tuple[int, dict[str, Any]]:
    answer = evals(place, "run", *arguments, "--json")
    assert answer.out, answer
    return answer.code, document(answer)


def notes_of(place: Place) -> list[str]:
    return place.git("for-each-ref", "--format=%(refname)", "refs/notes/").split()


def count(file: Path) -> int:
    return len(file.read_text().split()) if file.exists() else 0


CHECKS: dict[str, tuple[dict[str, Any], str, str, int]] = {
    "fails": (shell("exit 1"), "failed", "exit 1", 1),
    "fails with a high status": (shell("exit 255"), "failed", "exit 255", 1),
    "cannot test": (shell("exit 125"), "inconclusive", "exit 125", 3),
    "cannot execute": (shell("exit 126"), "inconclusive", "exit 126", 3),
    "cannot find": (shell("exit 127"), "inconclusive", "exit 127", 3),
    "is not there": ({"command": ["no-such-program-here"]}, "inconclusive", "could not be started: ", 3),
    "has no directory": (
        {"command": ["true"], "cwd": "nowhere"}, "inconclusive", "could not be started: cannot enter ", 3,
    ),
    "dies of a signal": (shell("kill -SEGV $$"), "inconclusive", "ended by signal 11", 3),
    "times out": (shell("exec sleep 600", timeout_seconds=1), "inconclusive", "timed out after 1 s", 3),
    "ignores SIGTERM": (shell(TIMES_UP, timeout_seconds=1), "inconclusive", "timed out after 1 s", 3),
    "leaves a child in a session of its own": (
        {"command": [sys.executable, "-S", "-c", IN_A_SESSION_OF_ITS_OWN, "@PIDS@/child"]},
        "passed", "left 1 process(es) running, ended: ", 0,
    ),
    "prints binary": (shell(r"printf '\377\000\033[31m\n'; exit 1"), "failed", "exit 1", 1),
    "commits": (
        shell("git -c user.name=n -c user.email=e commit -q --allow-empty -m x"),
        "inconclusive", "source_changed: HEAD moved to ", 3,
    ),
    "edits a tracked file": (shell("echo more >>README"), "inconclusive", "source_changed: modified: README", 3),
    "edits a tracked file and fails": (
        shell("echo more >>README; exit 1"), "inconclusive", "source_changed: modified: README; exit 1", 3,
    ),
    "resets HEAD": (shell("git reset -q --soft HEAD~1"), "inconclusive", "source_changed: HEAD moved to ", 3),
    "drops a file": (shell("echo 1 >junk"), "inconclusive", "source_changed: new file: junk", 3),
    "removes the checkout": (
        shell('rm -rf "$PWD"'), "inconclusive", "source_changed: the work tree was replaced or removed", 3,
    ),
    "commits elsewhere": (shell(REPOSITORY_IN_TMPDIR), "passed", "", 0),
    "reads its input": (shell("if read line; then exit 1; fi"), "passed", "", 0),
}  # fmt: skip


FROM_A_HOOK = ("commits elsewhere", "commits", "resets HEAD", "drops a file")


@pytest.mark.parametrize(
    ("name", "hook_environment"), [*((name, False) for name in CHECKS), *((name, True) for name in FROM_A_HOOK)]
)
def test_whatever_a_check_does_is_told_and_touches_nothing_of_ours(
    name: str, hook_environment: bool, a_project: Place, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, result, reason, code = CHECKS[name]
    check = {**check, "command": [word.replace("@PIDS@", str(pids)) for word in check["command"]]}
    configure(a_project, {"this": check, "z-later": {"command": ["true"]}})
    head = with_task_branch(a_project)
    before = state_of(a_project)
    with monkeypatch.context() as patch:
        if hook_environment:
            patch.setenv("GIT_DIR", str(a_project.path / ".git"))
            patch.setenv("GIT_WORK_TREE", str(a_project.path))
            patch.setenv("GIT_INDEX_FILE", str(a_project.path / ".git/index"))
            patch.setenv("GIT_PREFIX", "")
        found_code, found = run(a_project, "42")
    assert found_code == code
    assert found["result"] == result
    [this] = [entry for entry in found["checks"] if entry["id"] == "this"]
    assert (this["result"], this["reason"].startswith(reason)) == (result, True), this
    later = next(entry for entry in found["checks"] if entry["id"] == "z-later")
    assert later["result"] == ("not_run" if "source_changed" in reason else "passed")
    assert found["subject"]["head"] == head
    if "source_changed" in reason:
        assert found["reason"].startswith(f"this {reason}")
    assert state_of(a_project) == before
    assert list((pids.parent / "tmp").iterdir()) == []
    if check.get("pass_env") or name.startswith("leaves"):
        assert are_gone(pids)


def test_the_seeds_four_results_are_those_of_findings(a_project: Place, pids: Path) -> None:
    criteria = "".join(f"- [ ] [{name}] text\n" for name in ("PASSES", "FAILS", "UNSURE", "UNBOUND", "MIXED"))
    a_project.commit({"tasks/42.md": f"# T\n\n## Acceptance Criteria\n\n{criteria}"}, "task")
    bindings = {"PASSES": ["yes"], "FAILS": ["yes", "no", "unsure"], "UNSURE": ["unsure", "yes"], "MIXED": ["yes"]}
    checks = {"yes": shell("exit 0"), "no": shell("exit 1"), "unsure": shell("exit 125")}
    configure(a_project, checks, bindings={"42": bindings})
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert (code, found["result"]) == (1, "failed")
    assert {entry["criterion"]: entry["result"] for entry in found["findings"]} == {
        "PASSES": "passed", "FAILS": "failed", "UNSURE": "inconclusive", "UNBOUND": "not_run", "MIXED": "passed",
    }  # fmt: skip
    assert [entry["reason"] for entry in found["findings"]][1:4] == [
        "no: exit 1", "unsure: exit 125", "no check is bound",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "check", "result", "finding"),
    [("enforce", "exit 0", "inconclusive", "not_run"), ("observe", "exit 0", "inconclusive", "not_run"),
     ("off", "exit 1", "passed", "not_run")],
)  # fmt: skip
def test_a_criterion_without_a_check_is_not_run_and_off_weighs_verification_alone(
    mode: str, check: str, result: str, finding: str, a_project: Place, pids: Path
) -> None:
    bindings = {"*": {"*": ["this"]}} if mode == "off" else {}
    configure(a_project, {"this": shell(check)}, mode=mode, bindings=bindings, verify=[["true"]])
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert (code, found["result"]) == ({"passed": 0, "inconclusive": 3}[result], result)
    assert [entry["result"] for entry in found["findings"]] == [finding]


@pytest.mark.slow
def test_two_hundred_megabytes_are_counted_and_their_head_and_tail_kept(a_project: Place, pids: Path) -> None:
    command = shell("echo begin; head -c 200000000 /dev/zero; echo; echo end")
    configure(a_project, {"loud": command})
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert code == 0
    stream = found["checks"][0]["stdout"]
    assert (stream["bytes"], stream["truncated"]) == (200000000 + 11, True)
    kept = a_project.attempt("git", "cat-file", "blob", stream["blob"]).stdout
    assert len(kept) < 1024 * 1024 + 100
    assert kept.startswith(b"begin\n\0")
    assert kept.endswith(b"\0\nend\n")
    assert stream["excerpt"] == ""


def test_the_excerpts_of_many_failures_shrink_until_the_record_fits(a_project: Place, pids: Path) -> None:
    loud = shell(r"i=0; while [ $i -lt 200 ]; do printf 'é\033%0.s' 1 2 3 4 5 6 7 8 9; i=$((i+1)); done; exit 1")
    configure(a_project, {f"loud-{number}": loud for number in range(12)})
    head = with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert code == 1
    [line] = a_project.git("notes", "--ref=evals/tester", "show", head).encode().split(b"\n")
    assert 32 * 1024 < len(line) <= 64 * 1024
    excerpts = {entry["stdout"]["excerpt"] for entry in found["checks"]}
    assert len(excerpts) == 1
    assert excerpts.pop().endswith("é\x1b")


def test_a_hook_may_call_us_while_a_commit_is_made(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell(REPOSITORY_IN_TMPDIR)})
    head = with_task_branch(a_project)
    a_project.git("switch", "-q", "-c", "elsewhere")
    answer = pids.parent / "answer"
    hook = a_project.path / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -m gitevals"
        f" run 42 --json >{shlex.quote(str(answer))}\n"
    )
    hook.chmod(0o755)
    a_project.write("README", "changed\n")
    a_project.write("untracked", "mine\n")
    a_project.git("commit", "-q", "-a", "-m", "by a person")
    found = json.loads(answer.read_text())
    assert (found["result"], found["subject"]["head"]) == ("passed", head)
    assert a_project.git("show", "--format=%s", "--name-only", "HEAD").split("\n") == ["by a person", "", "README"]
    assert a_project.git("status", "--porcelain") == "?? untracked"
    assert a_project.git("fsck", "--strict") == ""
    assert are_gone(pids)


def test_a_checks_environment_is_built_and_not_inherited(
    a_project: Place, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSH_AUTH_SOCK", "SECRET", "GITEVALS_STRAY"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("WANTED", "passed on")
    check = {"command": ["env"], "env": {"OWN": "set"}, "pass_env": ["WANTED", "ABSENT"]}
    base = configure(a_project, {"this": check})
    head = with_task_branch(a_project)
    _, found = run(a_project, "42")
    printed = a_project.git("cat-file", "blob", found["checks"][0]["stdout"]["blob"])
    given = dict(line.partition("=")[::2] for line in printed.split("\n"))
    assert set(given) <= {
        "PATH", "HOME", "LANG", "TMPDIR", "GIT_CEILING_DIRECTORIES", "GIT_TERMINAL_PROMPT", "GITEVALS_BASE",
        "GITEVALS_HEAD", "GITEVALS_TASK", "OWN", "WANTED", "PWD", "SHLVL", "_",
    }  # fmt: skip
    assert (given["GITEVALS_BASE"], given["GITEVALS_HEAD"], given["GITEVALS_TASK"]) == (base, head, "42")
    assert (given["OWN"], given["WANTED"], given["HOME"]) == ("set", "passed on", os.environ["HOME"])


def test_setup_runs_once_and_what_it_makes_is_no_change(a_project: Place, pids: Path) -> None:
    setup = {"command": ["sh", "-c", f"echo x >>'{pids.parent}/setups'; echo made >made"]}
    checks = {name: shell("test -s made") for name in ("one", "two")}
    configure(a_project, checks, setup=[setup], verify=[["test", "-e", "made"]])
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert code == 0
    assert [(entry["id"], entry["result"]) for entry in found["setup"]] == [("setup-1", "passed")]
    assert count(pids.parent / "setups") == 1


@pytest.mark.parametrize(("script", "why"), [("exit 1", "exit 1"), ("sleep 600", "timed out after 1 s")])
def test_a_setup_that_fails_leaves_everything_open(script: str, why: str, a_project: Place, pids: Path) -> None:
    setup = [shell(script, timeout_seconds=1), shell("exit 0")]
    configure(a_project, {"this": shell(f"echo x >'{pids.parent}/ran'")}, setup=setup, verify=[["true"]])
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert (code, found["result"]) == (3, "inconclusive")
    assert found["reason"] == f"setup-1 did not succeed: {why}"
    assert {entry["result"] for entry in (*found["checks"], *found["verification"], *found["findings"])} == {"not_run"}
    assert not (pids.parent / "ran").exists()
    assert are_gone(pids)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo more >>README", "modified: README"),
        ("rm README", "deleted: README"),
        ("git -c user.name=x -c user.email=x@x commit -q --allow-empty -m moved", "HEAD moved"),
    ],
)
def test_a_setup_that_changes_what_is_judged_is_inconclusive(
    script: str, told: str, a_project: Place, pids: Path
) -> None:
    configure(a_project, {"this": shell(f"echo x >'{pids.parent}/ran'")}, setup=[shell(script)])
    with_task_branch(a_project)
    answer = evals(a_project, "run", "42", "--json")
    assert answer.code == 3
    assert json.loads(answer.out)["reason"].startswith(f"the set-up commands changed the source: {told}")
    assert not (pids.parent / "ran").exists()


def test_a_setup_that_removes_the_checkout_is_inconclusive_and_recorded(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("exit 0")}, setup=[shell('rm -rf "$PWD"')])
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert (code, found["result"], found["reason"]) == (3, "inconclusive", "the set-up commands removed the checkout")
    assert [entry["result"] for entry in (*found["checks"], *found["findings"])] == ["not_run", "not_run"]


@pytest.mark.parametrize(
    ("status", "result", "code"),
    [(0, "passed", 0), (3, "passed", 0), (4, "inconclusive", 3), (5, "inconclusive", 3), (125, "failed", 1),
     (1, "failed", 1), (127, "inconclusive", 3)],
)  # fmt: skip
def test_exit_codes_refine_the_rule(status: int, result: str, code: int, a_project: Place, pids: Path) -> None:
    refined = {"passed": [3], "inconclusive": [4, 5], "failed": [125]}
    configure(a_project, {"this": shell(f"exit {status}", exit_codes=refined)})
    with_task_branch(a_project)
    found_code, found = run(a_project, "42")
    assert (found_code, found["checks"][0]["result"], found["checks"][0]["exit_code"]) == (code, result, status)


@pytest.mark.parametrize("verify_only", [False, True])
def test_outputs_admit_new_files_and_nothing_else(verify_only: bool, a_project: Place, pids: Path) -> None:
    subject = ("--verify-only", "--branch", "task/42") if verify_only else ("42",)
    made = shell("mkdir -p build && echo 1 >build/x && echo 1 >report.log")
    more: dict[str, object] = {"verify": [made]} if verify_only else {}
    configure(a_project, {} if verify_only else {"this": made}, outputs=["build/", "*.log"], **more)
    with_task_branch(a_project)
    code, found = run(a_project, *subject)
    assert (code, found["result"], found["reason"]) == (0, "passed", "")
    edits = {"verify": [shell("echo >>README")]} if verify_only else {}
    configure(a_project, {} if verify_only else {"this": shell("echo >>README")}, outputs=["README"], **edits)
    if not verify_only:
        assert evals(a_project, "freeze", "42").code == 0
    code, found = run(a_project, *subject)
    assert (code, found["result"]) == (3, "inconclusive")


@pytest.mark.parametrize(
    ("script", "result", "code"),
    [("exit 1", "failed", 1), ("exit 125", "inconclusive", 3), ("kill $$", "inconclusive", 3)],
)
def test_a_verification_that_does_not_pass_leaves_the_rest_not_run(
    script: str, result: str, code: int, a_project: Place, pids: Path
) -> None:
    ran = pids.parent / "ran"
    configure(a_project, {"this": shell(f"echo x >>'{ran}'")}, verify=[shell(script), shell(f"echo x >>'{ran}'")])
    with_task_branch(a_project)
    found_code, found = run(a_project, "42")
    assert (found_code, found["result"]) == (code, result)
    assert [entry["result"] for entry in found["verification"]] == [result, "not_run"]
    assert [entry["result"] for entry in (*found["checks"], *found["findings"])] == ["not_run", "not_run"]
    assert found["reason"].startswith(f"verify-1 {result}: ")
    assert count(ran) == 0


@pytest.mark.parametrize("also", ["", "echo >>README; "])
def test_a_verification_over_its_time_keeps_the_scratch_and_says_where(also: str, a_project: Place, pids: Path) -> None:
    configure(
        a_project, {}, verify=[shell(f"{also}exec sleep 600", timeout_seconds=1)], bindings={"*": {"*": ["verify-1"]}}
    )
    head = with_task_branch(a_project)
    answer = evals(a_project, "run", "42")
    assert answer.code == 3
    [kept] = [Path(line.rpartition(" kept in ")[2]) for line in answer.err.split("\n") if " kept in " in line]
    assert Place(kept).git("rev-parse", "HEAD") == head
    assert are_gone(pids)


def test_a_shared_check_runs_once_for_all_criteria_and_tasks(a_project: Place, pids: Path) -> None:
    two = "# T\n\n## Acceptance Criteria\n\n- [ ] one\n- [ ] two\n"
    a_project.commit({"tasks/42.md": two, "tasks/43.md": two}, "tasks")
    ran, verified = pids.parent / "ran", pids.parent / "verified"
    verify = [shell(f"echo x >>'{verified}'")]
    bindings = {"*": {"AC-1": ["shared"], "*": ["shared", "verify-1"]}}
    configure(a_project, {"shared": shell(f"echo x >>'{ran}'")}, verify=verify, bindings=bindings)
    with_task_branch(a_project)
    answer = evals(a_project, "run", "42", "43", "--branch", "task/42", "--json")
    assert answer.code == 0
    first, second = json.loads(answer.out)
    assert [[entry["checks"] for entry in found["findings"]] for found in (first, second)] == [
        [["shared"], ["shared", "verify-1"]]
    ] * 2
    assert (count(ran), count(verified)) == (1, 1)


def test_passing_evidence_is_reused_unless_forced_and_failed_evidence_never(a_project: Place, pids: Path) -> None:
    ran, switch = pids.parent / "ran", pids.parent / "passes"
    configure(a_project, {"this": shell(f"echo x >>'{ran}'; test -e '{switch}'")})
    with_task_branch(a_project)
    codes = [run(a_project, "42")[0] for _ in range(2)]
    assert (codes, count(ran)) == ([1, 1], 2)
    switch.touch()
    _, third = run(a_project, "42")
    assert (third["try"], count(ran)) == ({"number": 3, "of": 3}, 3)
    code, again = run(a_project, "42")
    assert (code, again["id"], count(ran)) == (0, third["id"], 3)
    switch.unlink()
    code, forced = run(a_project, "42", "--force")
    assert (code, forced["after"], count(ran)) == (1, [third["id"]], 4)
    assert run(a_project, "42")[0] == 1
    assert count(ran) == 5


def test_after_names_only_what_was_last_and_labels_are_stored_as_they_are(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("exit 1")})
    with_task_branch(a_project)
    labels = ("--run", "r é", "--attempt", "a\x1b[1m", "--stage", "qa")
    found = [run(a_project, "42", *labels)[1] for _ in range(3)]
    assert [entry["after"] for entry in found] == [[], [found[0]["id"]], [found[1]["id"]]]
    assert found[0]["correlation"] == {"run": "r é", "task": "", "attempt": "a\x1b[1m", "stage": "qa"}
    assert len({entry["nonce"] for entry in found}) == 3


def test_keep_leaves_the_checkout_and_its_place_is_said(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("exit 0")})
    head = with_task_branch(a_project)
    answer = evals(a_project, "run", "42", "--keep")
    [root] = (pids.parent / "tmp").iterdir()
    assert f"the scratch checkout is kept in {root / 'work'}" in answer.err
    assert Place(root / "work").git("rev-parse", "HEAD") == head
    assert "worktree" not in a_project.git("worktree", "list", "--porcelain").partition("\n")[2]


@pytest.mark.parametrize("parted", [False, True])
def test_evidence_alone_opens_the_gate_only_if_the_base_is_an_ancestor(
    parted: bool, a_guarded_project: Place, pids: Path
) -> None:
    base = a_guarded_project.git("rev-parse", "main")
    with_task_branch(a_guarded_project)
    if parted:
        a_guarded_project.git("switch", "-q", "-c", "other")
        a_guarded_project.commit({"tasks/44.md": "# x\n"}, "apart")
        assert evals(a_guarded_project, "run", "--verify-only", "--branch", "other").code == 0
        a_guarded_project.git("switch", "-q", "main")
        a_guarded_project.git("merge", "-q", "--ff-only", "other")
    code, found = run(a_guarded_project, "42", "--alone")
    assert (code, found["subject"]["base"], found["merge"]["strategy"]) == (0, base, "none")
    merged = a_guarded_project.attempt("git", "merge", "-q", "--no-edit", "task/42")
    assert (merged.returncode == 0) is not parted


def test_a_parted_branch_is_really_merged_and_evaluated_as_it_would_be(a_guarded_project: Place, pids: Path) -> None:
    head = with_task_branch(a_guarded_project)
    a_guarded_project.git("switch", "-q", "-c", "admin")
    base = configure(a_guarded_project, {"both": shell("test -e ok-42 && test -e beside && git log -1 --format=%P")})
    base = a_guarded_project.commit({"beside": "1\n"}, "beside")
    a_guarded_project.git("switch", "-q", "main")
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "merge", "-q", "--ff-only", "admin")
    before = state_of(a_guarded_project)
    code, found = run(a_guarded_project, "42")
    assert code == 0
    assert state_of(a_guarded_project) == before
    subject = found["subject"]
    assert (subject["base"], subject["heads"]) == (base, [head])
    assert subject["tree"] == a_guarded_project.git("merge-tree", "--write-tree", "main", "task/42")
    assert found["merge"]["strategy"] == "ort"
    printed = a_guarded_project.git("cat-file", "blob", found["checks"][0]["stdout"]["blob"])
    assert printed == f"{base} {head}"
    a_guarded_project.git("merge", "-q", "--no-edit", "task/42")


def test_a_conflict_is_inconclusive_until_a_person_resolves_it(a_guarded_project: Place, pids: Path) -> None:
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    head = a_guarded_project.commit({"ok-42": "1\n", "README": "theirs\n", "sub dir/ü": "1\n"}, "theirs")
    a_guarded_project.git("switch", "-q", "main")
    a_guarded_project.write("README", "ours\n")
    a_guarded_project.write("sub dir/ü", "2\n")
    a_guarded_project.git("add", "-A")
    a_guarded_project.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "ours")
    code, found = run(a_guarded_project, "42")
    assert (code, found["result"]) == (3, "inconclusive")
    assert found["reason"] == "the merge has conflicts: README, sub dir/ü"
    assert {entry["result"] for entry in (*found["checks"], *found["verification"], *found["findings"])} == {"not_run"}
    assert found["subject"]["tree"] == ""
    assert evals(a_guarded_project, "show", head).out.count("the merge has conflicts") == 1
    assert a_guarded_project.git("fsck", "--strict") == ""
    again_code, again = run(a_guarded_project, "42")
    assert (again_code, again["id"] == found["id"]) == (3, False)
    a_guarded_project.git("switch", "-q", "-c", "resolved", "main")
    a_guarded_project.attempt("git", "merge", "-q", "task/42")
    resolution = a_guarded_project.commit({"README": "both\n", "sub dir/ü": "3\n"}, "resolve")
    a_guarded_project.git("switch", "-q", "main")
    code, found = run(a_guarded_project, "42", "--commit", resolution)
    assert (code, found["merge"]["strategy"], found["subject"]["heads"]) == (0, "given", [head])
    a_guarded_project.git("merge", "-q", "--ff-only", "resolved")


EVALUATION_KEYS = {
    "schema", "id", "kind", "task", "contract", "subject", "result", "findings", "checks", "verification",
    "verification_digest", "evaluator", "writer", "started", "finished", "environment", "isolation", "setup", "merge",
    "after", "nonce", "correlation", "try",
}  # fmt: skip


def test_documents_have_the_keys_that_others_rely_on(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("echo out; echo err >&2; exit 1")}, verify=[["true"]])
    head = with_task_branch(a_project)
    _, found = run(a_project, "42")
    assert set(found) >= EVALUATION_KEYS
    subject = {"ref", "source", "repository", "base", "base_tree", "head", "heads", "tree"}
    assert set(found["subject"]) == subject
    assert (found["subject"]["ref"], found["subject"]["source"]) == ("refs/heads/main", "task/42")
    assert set(found["findings"][0]) == {"criterion", "description", "result", "checks", "reason"}
    check = found["checks"][0]
    assert set(check) >= {"id", "result", "reason", "exit_code", "duration_ms", "stdout", "stderr"}
    assert set(check["stdout"]) == {"sha256", "bytes", "truncated", "redacted", "blob", "excerpt"}
    assert (check["stdout"]["excerpt"], check["stderr"]["excerpt"]) == ("out\n", "err\n")
    assert set(found["environment"]) == {"git", "os", "arch", "tools"}
    assert set(found["merge"]) == {"strategy", "git"}
    assert found["finished"].endswith("Z")
    assert (found["kind"], found["isolation"], found["writer"]) == ("evaluation", "none", "tester")
    for arguments in (("show", found["id"]), ("show", found["id"][:8]), ("show", head), ("report", "42")):
        assert document(evals(a_project, *arguments, "--json")) == found
    stored = json.loads(a_project.git("notes", "--ref=evals/tester", "show", found["subject"]["tree"]))
    assert set(stored) <= set(found) - {"id", "try"}
    status = document(evals(a_project, "status", "42", "--json"))
    [row] = status["tasks"]
    assert set(row) >= {"task", "title", "mode", "contract", "contract_state", "evidence_state", "stale_because",
                        "result", "subject", "evaluation", "tries"}  # fmt: skip
    assert (row["evidence_state"], row["evaluation"], row["tries"]) == ("failed", found["id"], 1)
    contract = document(evals(a_project, "contract", "42", "--json"))
    assert set(contract) >= {"schema", "task", "title", "digest", "state", "mode", "criteria", "checks", "verification",
                             "freezes"}  # fmt: skip
    assert contract["digest"] == found["contract"]


def test_streams_lie_under_a_ref_of_the_month_that_has_no_history(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("echo out $$; echo err >&2")})
    with_task_branch(a_project)
    _, first = run(a_project, "42")
    _, second = run(a_project, "42", "--force")
    name = f"refs/evals/logs/tester/{second['finished'][:7]}"
    assert a_project.git("for-each-ref", "--format=%(refname)", "refs/evals/logs/") == name
    assert a_project.git("log", "--format=%P", name) == ""
    blobs = {found["checks"][0][stream]["blob"] for found in (first, second) for stream in ("stdout", "stderr")}
    listed = a_project.git("ls-tree", "-r", "--format=%(path) %(objectname)", name).split("\n")
    assert sorted(listed) == sorted(f"{blob[:2]}/{blob[2:]} {blob}" for blob in blobs) or sorted(listed) == sorted(
        f"{blob[:2]}/{blob} {blob}" for blob in blobs
    )
    shown = evals(a_project, "show", first["id"]).out
    assert "--- this stdout, " in shown
    assert "\nout " in shown
    assert "\nerr\n" in shown
    a_project.git("update-ref", "-d", name)
    a_project.git("reflog", "expire", "--expire=now", "--all")
    a_project.git("gc", "-q", "--prune=now")
    answer = evals(a_project, "show", first["id"])
    assert (answer.code, "(the log was pruned)" in answer.out) == (0, True)


HOSTILE = (
    r"printf '\033]0;owned\007\033[2J\302\233 31m\342\200\256 \r\010 a|b<b> `x` [l](u)\n' | tee /dev/stderr; exit 1"
)


def test_no_escape_sequence_reaches_the_terminal(a_project: Place, pids: Path) -> None:
    hostile_task = "# T\x1b[1m\n\n## Acceptance Criteria\n\n- [ ] \x1b[31mred\u202e | <b>x</b>\n"
    a_project.commit({"tasks/42.md": hostile_task}, "task")
    configure(a_project, {"this": shell(HOSTILE)})
    head = with_task_branch(a_project)
    labels = ("--run", "\x1b[1m")
    answers = [evals(a_project, "run", "42", *labels)]
    name = document(evals(a_project, "report", "42", "--json"))["id"]
    for arguments in (("show", head), ("show", name), ("status",), ("status", "42"), ("status", head), ("report", "42"),
                      ("report", "42", "--markdown"), ("report", "42", "--feedback"), ("contract", "42")):  # fmt: skip
        answers.append(evals(a_project, *arguments))
    for answer in answers:
        assert answer.out.strip()
        assert [char for char in answer.out + answer.err if not char.isprintable() and char != "\n"] == [], answer
    assert "\\x1b]0;owned" in answers[2].out
    assert "<b>" not in answers[7].out.replace("\\<b\\>", "")


def _tampered(place: Place, head: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace the record of ``head`` by one that a hostile writer made of it, under another ledger."""
    stored = json.loads(place.git("notes", "--ref=evals/tester", "show", head))
    change(stored)
    line = json.dumps(stored).encode() + b"\n"
    blob = place.git("hash-object", "-w", "--stdin", stdin=line)
    tree = place.git("mktree", stdin=f"100644 blob {blob}\t{head}\n".encode())
    commit = place.git("commit-tree", tree, "-m", "hostile")
    place.git("update-ref", "refs/notes/evals-remote/origin/hostile", commit)


def test_a_hostile_record_cannot_write_to_the_terminal_through_any_field(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("exit 1")})
    head = with_task_branch(a_project)
    run(a_project, "42")

    def poison(record: dict[str, Any]) -> None:
        bad = "\x1b[2J\n\u202e"
        record.update(writer=bad, reason=bad, contract=bad, evaluator=bad, finished=bad, nonce=bad)
        record["subject"].update(base=bad, head=bad, source=bad)
        record["findings"][0].update(criterion=bad, description=bad, reason=bad, checks=[bad])
        record["checks"][0].update(id=bad, reason=bad, stdout={"sha256": bad, "bytes": 1, "blob": bad, "excerpt": bad})

    _tampered(a_project, head, poison)
    named = [entry["id"] for entry in json.loads(evals(a_project, "show", head, "--json").out)]
    assert len(named) == 2
    for arguments in (("show", head), *(("show", name) for name in named), ("status", "42"),
                      *(("report", "42", "--evaluation", name, *more) for name in named
                        for more in ((), ("--markdown",), ("--feedback",)))):  # fmt: skip
        answer = evals(a_project, *arguments)
        assert answer.code == 0, answer
        assert [char for char in answer.out + answer.err if not char.isprintable() and char != "\n"] == [], arguments


def test_readers_say_what_an_agent_or_a_reviewer_needs(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("echo details; exit 1"), "fine": shell("echo noise")})
    head = with_task_branch(a_project)
    _, found = run(a_project, "42")
    feedback = evals(a_project, "report", "42", "--feedback").out
    assert feedback == (
        f"commit {head}\nAC-1 failed: The file of task 42 is there.\n\nthis: exit 1\n--- end of stdout\ndetails\n"
    )
    markdown = evals(a_project, "report", "42", "--markdown").out
    assert "| AC-1 | failed (this: exit 1) | `this`, `fine` | The file of task 42 is there. |" in markdown
    report = evals(a_project, "report", "42").out
    assert "task 42: failed, try 1 of 1 (unsigned)" in report
    assert evals(a_project, "show", head).out == report
    assert evals(a_project, "report", "42", "--evaluation", found["id"][:10]).out == report
    status = evals(a_project, "status", "42").out
    assert f"evidence failed: failed on {head[:12]}" in status
    assert evals(a_project, "status", head).out == status
    assert evals(a_project, "show", "main").out == "no record on main\n"
    assert all(evals(a_project, "show", head, cwd=a_project.path / "tasks").out == report for _ in range(1))


def test_a_run_leaves_the_whole_repository_sound(a_project: Place, pids: Path) -> None:
    configure(a_project, {"this": shell("echo out; exit 1")})
    with_task_branch(a_project)
    run(a_project, "42")
    a_project.git("gc", "-q", "--prune=now")
    assert a_project.git("fsck", "--strict") == ""
    assert evals(a_project, "report", "42").code == 0


NO_UTF8 = os.fsdecode(b"caf\xe9")


def test_names_that_are_no_utf8_are_stored_and_shown(a_project: Place, pids: Path) -> None:
    a_project.git("config", "user.name", NO_UTF8)
    junk = "exec 3>\"$(printf 'caf\\351')\"; (exec -a x sleep 0); exit 0"
    configure(a_project, {"this": shell(junk)})
    a_project.git("switch", "-q", "-c", f"topic-{NO_UTF8}")
    a_project.commit({"ok-42": "1\n"}, "do")
    a_project.git("switch", "-q", "main")
    answer = evals(a_project, "run", "42", "--branch", f"topic-{NO_UTF8}", "--run", NO_UTF8)
    assert answer.code == 3, answer
    assert 'new file: "caf\\351"' in answer.out
    assert evals(a_project, "report", "42").code == 0


def start(place: Place, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "gitevals", *arguments],
        cwd=place.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait_for(pids: Path, process: "subprocess.Popen[bytes]") -> None:
    assert comes_true(lambda: process.poll() is not None or any(file.stat().st_size for file in pids.iterdir()))
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize(
    ("options", "script"), [pytest.param((), TIMES_UP, marks=pytest.mark.slow), (("--quiet",), "sleep 600")]
)
def test_ctrl_c_ends_everything_and_names_the_scratch_it_leaves(
    options: Sequence[str], script: str, a_project: Place, pids: Path
) -> None:
    configure(a_project, {"this": shell(f"({script})")})
    head = with_task_branch(a_project)
    before = state_of(a_project)
    process = start(a_project, "run", "42", *options)
    _wait_for(pids, process)
    process.send_signal(signal.SIGINT)
    out, raw = process.communicate(timeout=PATIENCE_SECONDS)
    err = raw.decode()
    assert (process.returncode, out) == (130, b""), err
    [root] = (pids.parent / "tmp").iterdir()
    assert f"the scratch checkout is kept in {root / 'work'}\n" in err
    assert err.endswith("git-evals: interrupted\n")
    assert Place(root / "work").git("rev-parse", "HEAD") == head
    assert are_gone(pids)
    assert notes_of(a_project) == []
    assert state_of(a_project) == before


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_running_and_the_next_one_is_not_disturbed(a_project: Place, pids: Path) -> None:
    switch = pids.parent / "passes"
    configure(a_project, {"this": shell(f"test -e '{switch}' || exec sleep 600")})
    with_task_branch(a_project)
    process = start(a_project, "run", "42")
    _wait_for(pids, process)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    assert comes_true(lambda: are_gone(pids))
    assert notes_of(a_project) == []
    switch.touch()
    assert run(a_project, "42")[0] == 0
