"""Checks that do not play fair: what they change is told, what they start is ended, what is the user's stays."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Place, evals, with_task_branch
from tests.test_run import configure, count, document, run, state_of

ROOT = Path(__file__).parents[1]
LEDGER = "refs/notes/evals/tester"
# A check gets to the user's repository through what its own borrows objects from.
USERS = 'cd "$(dirname "$(head -n 1 .git/objects/info/alternates)")"'
EVALS = f"PYTHONPATH='{ROOT}' '{sys.executable}' -m gitevals"
HIDING = r"""
git update-index --assume-unchanged README && git update-index --skip-worktree ok-42
printf '#!/bin/sh\ntouch "%s"\nprintf "x\\0/\\0"\n' "$EVIL" >.git/evil && chmod +x .git/evil
git config core.fsmonitor "$PWD/.git/evil"
git config core.hooksPath "$PWD/.git" && cp .git/evil .git/post-index-change
git config filter.hide.clean "'$PWD/.git/evil' >&2; printf 'hello\n'" && git config core.excludesFile "$PWD/.git/rules"
mkdir -p .git/info && echo '* filter=hide' >.git/info/attributes && echo '*' >.git/info/exclude && echo '*' >.git/rules
git config core.worktree / && git config core.ignoreStat true
echo more >>README && echo more >>ok-42 && echo new >hidden
"""


@pytest.fixture
def place(a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project whose scratch directories stand in a folder of their own, so that what is left there shows."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return a_project


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """A word that stands in the command line or the environment of all that a check starts."""
    return f"mark-{os.getpid()}-{tmp_path.name}"


def shell(script: str, **more: object) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], **more}


def living(mark: str) -> list[str]:
    """The processes that bear ``mark``."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                told = [(process / name).read_bytes() for name in ("cmdline", "environ")]
            except OSError:
                continue
            if any(mark.encode() in text for text in told):
                found.append(f"{process.name} {told[0]!r}")
    return found


def refs(place: Place) -> dict[str, str]:
    listed = place.git("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    return dict(entry.split(" ") for entry in listed)


def by_id(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in found["checks"]}


def scratches(place: Place) -> list[Path]:
    return list((place.path.parent / "tmp").iterdir())


def test_an_edit_that_is_hidden_from_git_in_every_way_is_found_and_runs_nothing(place: Place, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    configure(place, {"this": shell(HIDING, env={"EVIL": str(evil)}), "z-later": shell("true")})
    with_task_branch(place)
    before = state_of(place)
    code, found = run(place, "42")
    reason = "source_changed: new file: hidden, modified: README, modified: ok-42"
    assert (code, found["result"]) == (3, "inconclusive")
    assert set(by_id(found)["this"]["reason"].removeprefix("source_changed: ").split(", ")) == set(
        reason.removeprefix("source_changed: ").split(", ")
    )
    assert by_id(found)["z-later"]["result"] == "not_run"
    assert not evil.exists()
    assert state_of(place) == before
    assert scratches(place) == []


TERMINAL = "if (exec 3</dev/tty) 2>/dev/null; then exit 1; fi; if (exec 3>/dev/tty) 2>/dev/null; then exit 1; fi"
FORKS_TWICE = "(setsid sh -c 'env -i sleep 600; : @MARK@' >/dev/null 2>&1 &) ; (env -i sh -c ': @MARK@; sleep 600' &)"
UNFAIR: dict[str, tuple[str, str, str]] = {
    "breaks-its-config": ("echo '[broken' >>.git/config; rm -rf .git/refs/tags", "passed", ""),
    "closes-its-streams": ("exec <&- >&- 2>&-; exit 1", "failed", "exit 1"),
    "fills-its-quota": ("ulimit -f 8; head -c 100000 /dev/zero >$TMPDIR/big", "@QUOTA@", ""),
    "forks-twice": (FORKS_TWICE, "passed", "left "),
    "hides-its-daemon": (
        "mkfifo $TMPDIR/p; (setsid setsid env -i sh -c 'trap \"\" TERM HUP; echo >$0; while :; do sleep 1; done;"
        " : @MARK@' $TMPDIR/p >/dev/null 2>&1 &); read x <$TMPDIR/p; exit 1", "failed", "exit 1; left ",
    ),
    "puts-a-file-for-its-tmpdir": ("rm -rf \"$TMPDIR\" && echo >\"$TMPDIR\"", "passed", ""),
    "puts-a-link-for-its-tmpdir": (
        "test -d \"$TMPDIR\" && rm -rf \"$TMPDIR\" && ln -s \"$HOME\" \"$TMPDIR\"", "passed", ""
    ),
    "puts-no-way-into-its-tmpdir": (
        "test ! -L \"$TMPDIR\" && test -d \"$TMPDIR\" && chmod 0 \"$TMPDIR\"", "passed", ""
    ),
    "reads-its-input": ("read line && exit 1; cat; test -z \"$(cat)\"", "passed", ""),
    "reads-the-terminal": (TERMINAL, "passed", ""),
    "unsets-everything": ("for name in $(env | cut -d= -f1); do unset $name; done; /bin/true", "passed", ""),
    "z-later": ("test \"$(cat README)\" = hello && test \"$(stat -c %a \"$TMPDIR\")\" = 700", "passed", ""),
}  # fmt: skip


def test_what_a_check_does_to_itself_and_its_processes_is_its_own_affair(place: Place, mark: str) -> None:
    scripts = {name: script.replace("@MARK@", mark) for name, (script, _, _) in UNFAIR.items()}
    configure(place, {name: shell(script, env={"MARK": mark}) for name, script in scripts.items()})
    with_task_branch(place)
    before = state_of(place)
    code, found = run(place, "42")
    for name, (_, result, reason) in UNFAIR.items():
        entry = by_id(found)[name]
        if result == "@QUOTA@":  # a shell tells of the signal in its own way
            assert entry["result"] in ("failed", "inconclusive"), entry
        else:
            assert (entry["result"], entry["reason"].startswith(reason)) == (result, True), entry
    assert (code, found["result"]) == (1, "failed")
    assert living(mark) == []
    assert state_of(place) == before
    assert scratches(place) == []


def follow_the_undo(place: Place, reason: str) -> None:
    """Run what the reason says would put each ref back."""
    commands = re.findall(r"`(git update-ref [^`]+)`", reason)
    assert commands, reason
    for command in commands:
        place.git(*command.split()[1:])


OWN: dict[str, tuple[str, str]] = {
    "deleted": (f"git update-ref -d {LEDGER}", f"{LEDGER} was deleted by something else"),
    "set back to where it stood before": (f"git update-ref {LEDGER} $(git rev-parse {LEDGER}~1)", "was moved to "),
    "forked from where it stood before": (
        "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e;"
        f"git update-ref {LEDGER} $(git commit-tree -p {LEDGER} -m x {LEDGER}^{{tree}})", f"{LEDGER} was moved to ",
    ),
}  # fmt: skip


@pytest.mark.slow
def test_our_own_ledger_grows_by_our_own_hand_alone(place: Place) -> None:
    configure(place, {"this": shell(f"{USERS} && test ! -e ../do || sh ../do")})
    with_task_branch(place)
    assert [run(place, "42", "--force")[0] for _ in range(2)] == [0, 0]
    for script, told in OWN.values():
        before = refs(place)
        place.write("do", script)
        code, found = run(place, "42", "--force")
        assert (code, found["result"]) == (3, "inconclusive"), script
        assert found["reason"].startswith("refs_moved: "), script
        assert told in found["reason"]
        follow_the_undo(place, found["reason"])
        assert {ref: tip for ref, tip in refs(place).items() if not ref.startswith("refs/evals/logs/")} == before


def test_a_protected_branch_that_was_moved_unproven_spoils_the_run_and_the_undo_is_told(place: Place) -> None:
    script = (
        f"{USERS} && git update-ref refs/heads/main refs/heads/task/43 && git update-ref -d refs/heads/stable"
        " && printf garbage >refs/heads/release && git update-ref refs/heads/fresh refs/heads/task/43"
    )
    configure(place, {"this": shell(script)}, protect=["main", "stable", "release", "fresh"])
    for name in ("stable", "release"):
        place.git("branch", name)
    with_task_branch(place)
    with_task_branch(place, "43")
    before = state_of(place)
    code, found = run(place, "42", "--into", "main")
    assert (code, found["result"]) == (3, "inconclusive")
    reason = found["reason"]
    assert reason.startswith("refs_moved: ")
    for told in ("refs/heads/main was moved to ", "refs/heads/stable was deleted", "refs/heads/release was deleted"):
        assert f"{told}" in reason, reason
    (place.path / ".git/refs/heads/release").unlink()
    follow_the_undo(place, reason)
    place.attempt("git", "update-ref", "-d", "refs/heads/fresh")
    assert state_of(place) == before
    assert evals(place, "verify", "--task", "42", "--branch", "task/42").code != 0


def test_other_refs_may_move_and_are_told(place: Place) -> None:
    script = (
        f"{USERS} && git update-ref refs/heads/topic HEAD && git update-ref -d refs/heads/old"
        " && git tag v1 && git update-ref refs/remotes/origin/x HEAD"
        " && git update-ref -d refs/evals/logs/tester/2001-01"
    )
    configure(place, {"this": shell(script)})
    place.git("branch", "old")
    place.git("update-ref", "refs/evals/logs/tester/2001-01", "HEAD")
    with_task_branch(place)
    code, found = run(place, "42")
    assert (code, found["result"], found.get("reason", "")) == (0, "passed", "")
    [note] = found["notes"]
    assert note.startswith("refs that moved meanwhile: ")
    for ref in ("heads/topic", "heads/old", "tags/v1", "remotes/origin/x", "evals/logs/tester/2001-01"):
        assert f"refs/{ref} " in note
    assert "refs that moved meanwhile" in evals(place, "report", "42").out


@pytest.mark.slow
def test_a_lawful_merge_meanwhile_is_nobodys_fault(place: Place) -> None:
    merging = f"test $GITEVALS_TASK = 43 || ({USERS}/.. && GITEVALS_WRITER=tester {EVALS} merge task/43)"
    configure(place, {"this": shell(merging)})
    place.git("config", "user.name", "n")
    place.git("config", "user.email", "n@example.org")
    assert evals(place, "hooks", "install").code == 0
    with_task_branch(place)
    with_task_branch(place, "43")
    before = place.git("rev-parse", "main")
    code, found = run(place, "42")
    said = found["checks"][0].get("stderr", {}).get("excerpt", "")
    assert (code, found["result"], found.get("reason", "")) == (0, "passed", ""), said
    assert [found["subject"]["base"], place.git("rev-parse", "main~1")] == [before, before]
    assert any("refs/heads/main" in note for note in found["notes"])
    assert evals(place, "status", "42").code == 0


@pytest.fixture
def a_small_disk(place: Place) -> Iterator[Path]:
    """A file system of a few megabytes, where scratch directories are to stand."""
    disk = place.path.parent / "disk"
    disk.mkdir()
    mount = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    place.git("config", "evals.scratchDir", str(disk))
    yield disk
    subprocess.run(["umount", disk], check=True)


FILL = 'cat /dev/zero >"$TMPDIR/fill" 2>/dev/null; test -s "$TMPDIR/fill"'


ON_A_FULL_DISK: dict[str, tuple[dict[str, Any], str]] = {
    "a file is dropped": (shell("echo x >new; exit 0"), "source_changed: new file: new"),
    "graders are wanted": (shell("true", graders=["README"]), "No space left on device"),
}


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ON_A_FULL_DISK)
def test_a_disk_that_a_check_fills_ends_in_a_clear_word_and_nothing_is_left(
    name: str, jobs: str, place: Place, a_small_disk: Path
) -> None:
    check, told = ON_A_FULL_DISK[name]
    configure(place, {"a-fills": shell(FILL), "b-next": check, "c-loud": shell("seq 100000; exit 125")})
    with_task_branch(place)
    before = state_of(place)
    answer = evals(place, "run", "42", "--jobs", jobs)
    assert (answer.code, "bug" in answer.err, "Traceback" in answer.err) == (3, False, False), answer
    wanted = (told,) if jobs == "1" else (told, "No space left on device", "inconclusive")
    assert any(word in answer.out + answer.err for word in wanted), answer
    assert list(a_small_disk.iterdir()) == []
    assert state_of(place) == before


def leaking_environment(place: Place) -> Path:
    """A virtual environment beside the work tree in which the work tree is installed for editing."""
    venv = place.path.parent / "venv"
    site = venv / "lib/python3.11/site-packages"
    for folder in (site, venv / "bin"):
        folder.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "bin/python").symlink_to(sys.executable)
    (site / "_editable_impl_project.pth").write_text(f"{place.path}\n")
    return venv


def with_path(monkeypatch: pytest.MonkeyPatch, *entries: Path | str) -> None:
    monkeypatch.setenv("PATH", ":".join([*map(str, entries), os.environ["PATH"]]))


def test_an_environment_that_leads_back_proves_nothing_and_opens_no_gate(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = place.path.parent / "ran"
    configure(place, {"this": shell(f"echo x >>'{ran}'")}, verify=[["sh", "-c", f"echo x >>'{ran}'"]])
    with_task_branch(place)
    venv = leaking_environment(place)
    with monkeypatch.context() as patch:
        with_path(patch, place.path / "bin", venv / "bin")
        code, found = run(place, "42")
    assert (code, found["result"], count(ran)) == (3, "inconclusive", 0)
    assert found["reason"].startswith("environment_leak: ")
    assert str(place.path) in found["reason"]
    assert {entry["result"] for entry in (*found["checks"], *found["verification"])} == {"not_run"}
    assert f"left out of PATH: {place.path / 'bin'}" in found["notes"]
    refused = evals(place, "verify", "--task", "42", "--branch", "task/42", "--json")
    assert (refused.code, document(refused)["allowed"]) == (3, False), refused
    merged = evals(place, "merge", "task/42", "--json")
    assert count(ran) == 2, "without the environment it runs, and may be merged"
    assert merged.code == 0, merged


def test_an_ignored_environment_without_links_serves_and_dropped_entries_are_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.commit({".gitignore": ".venv/\n"}, "ignore")
    configure(place, {"this": {"command": ["of-the-environment"]}})
    with_task_branch(place)
    place.write(".venv/bin/of-the-environment", "#!/bin/sh\nexit 0\n").chmod(0o755)
    (place.path / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    place.write("tools/true", "#!/bin/sh\nexit 1\n").chmod(0o755)
    with_path(monkeypatch, place.path / "tools", place.path / ".venv/bin")
    code, found = run(place, "42")
    assert (code, found["notes"]) == (0, [f"left out of PATH: {place.path / 'tools'}"]), found
    assert "left out of PATH" in evals(place, "report", "42").out


def test_what_the_repository_is_set_to_is_told_if_it_changed_meanwhile(a_project: Place) -> None:
    reach = "repo=$(cat .git/objects/info/alternates | head -1); repo=${repo%/objects}"
    configure(a_project, {"this": shell(f'{reach}; git --git-dir="$repo" config evals.trustBranch other')})
    with_task_branch(a_project)
    code, found = run(a_project, "42")
    assert (code, found["result"]) == (0, "passed")
    assert any(note.startswith("changed meanwhile in ") and note.endswith(": config") for note in found["notes"])
