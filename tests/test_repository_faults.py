"""Repositories in which something is missing, damaged, forbidden or unknown: one clear message, and never a yes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Answer, Place, evals
from tests.repositories import branched, cloned, done, sharing

READING = (
    ("status",),
    ("tasks",),
    ("contract", "42"),
    ("report", "42"),
    ("show", "task/42"),
    ("log",),
    ("verify", "--task", "42", "--branch", "task/42"),
    ("audit",),
    ("hooks", "status"),
    ("doctor",),
)
WRITING = (
    ("init",),
    ("freeze", "43"),
    ("run", "42", "--force"),
    ("run", "43"),
    ("merge", "task/42"),
    ("hooks", "install"),
    ("hooks", "uninstall"),
)
JUDGING = (
    ("status", "42"),
    ("contract", "42"),
    ("freeze", "42"),
    ("run", "42"),
    ("verify", "--task", "42", "--branch", "task/42"),
    ("merge", "task/42"),
)


@pytest.fixture
def a_story(a_project: Place) -> Place:
    return branched(a_project)


def apart(place: Place, *arguments: str) -> Answer:
    """A command in a process of its own."""
    package = str(Path(__file__).parents[1])
    told = place.attempt(sys.executable, "-m", "gitevals", *arguments, env={"PYTHONPATH": package})
    return Answer(told.returncode, told.stdout.decode(), told.stderr.decode())


def about_repository(place: Place) -> list[tuple[str, str]]:
    findings = json.loads(evals(place, "doctor", "--json").out)["findings"]
    return [(entry["state"], entry["text"]) for entry in findings if entry["name"] == "repository"]


# settings → words of git, and the hint
FORMATS = {
    ("extensions.somethingNew=true",): ("unknown repository extension found: somethingnew", "a newer git may know"),
    ("core.repositoryFormatVersion=2",): ("Expected git repo version <= 1, found 2", "a newer git may know"),
    ("core.repositoryFormatVersion=words",): ("bad numeric config value", "`git status` must work here first"),
}


def test_a_format_that_git_does_not_know_is_named_in_its_words(a_repo: Place) -> None:
    config = a_repo.path / ".git/config"
    before = config.read_text()
    for settings, (said, hint) in FORMATS.items():
        for setting in ("core.repositoryFormatVersion=1", *settings):
            a_repo.git("config", "--file", ".git/config", *setting.split("="))
        answer = done(a_repo, "status", code=3)
        assert f"git does not open this repository: {said}" in answer.err
        assert hint in answer.err
        config.write_text(before)


def test_a_git_directory_that_is_gone_is_not_called_no_repository(a_repo: Place) -> None:
    (a_repo.path / ".git").rename(a_repo.path.with_name("moved"))
    a_repo.write(".git", "gitdir: ../gone\n")
    answer = done(a_repo, "status", code=3)
    assert re.search("this repository: (not a git repository|gitfile does not point)", answer.err), answer
    (a_repo.path / ".git").unlink()
    assert "not a git repository\nhint: run the command inside" in done(a_repo, "status", code=2).err


@pytest.mark.slow
def test_a_bare_repository_out_of_bounds_is_opened_where_it_is_named(
    a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Place(tmp_path / "bare.git")
    a_project.git("clone", "-q", "--bare", str(a_project.path), str(bare.path))
    bare.git("config", "evals.trustBranch", "main")
    done(bare, "hooks", "install")
    bare.git("config", "--global", "safe.bareRepository", "explicit")
    answer = done(bare, "status", code=3)
    assert "safe.bareRepository" in answer.err
    assert "hint: name it: `git --git-dir=DIRECTORY evals" in answer.err
    monkeypatch.setenv("GIT_DIR", ".")
    done(bare, "status")
    done(bare, "doctor")


@pytest.mark.slow
def test_in_a_bare_repository_all_is_judged_and_only_a_work_tree_is_lacking(a_story: Place, tmp_path: Path) -> None:
    bare = Place(tmp_path / "bare.git")
    a_story.git("clone", "-q", "--bare", str(a_story.path), str(bare.path))
    for command in (("init",), ("run", "42"), ("merge", "task/42"), ("audit",), ("doctor",)):
        done(bare, *command)
    assert ("ok", "complete, sha1, bare") in about_repository(bare)
    moved = bare.attempt("git", "update-ref", "refs/heads/main", "task/wrong")
    assert (moved.returncode, b"git-evals: refused" in moved.stderr) == (128, True), moved
    answer = done(bare, "init", "--from-yard", code=2)
    assert "no work tree here" in answer.err


@pytest.fixture
def read_only(a_story: Place, tmp_path: Path) -> Iterator[Place]:
    """A project with evidence and hooks, seen through a mount that nobody can write to."""
    done(a_story, "run", "42")
    done(a_story, "init")
    mount = tmp_path / "mount"
    mount.mkdir()
    mounted = subprocess.run(["mount", "--bind", str(a_story.path), str(mount)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(mount)], check=True)
        yield Place(mount)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


@pytest.mark.slow
def test_what_cannot_be_written_can_be_read(read_only: Place) -> None:
    for command in READING:
        done(read_only, *command)
    [(state, said)] = about_repository(read_only)
    assert (state, said.endswith("evidence can be read here, and none can be stored")) == ("note", True)


@pytest.mark.slow
def test_what_cannot_be_written_is_said_once_and_clearly(read_only: Place) -> None:
    for command in WRITING:
        answer = apart(read_only, *command)
        assert answer.code == 3, (command, answer)
        assert [row.split(":")[0] for row in answer.err.splitlines()] == ["git-evals", "hint"], (command, answer)
    assert read_only.git("status", "--short") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to somebody else")
def test_the_owner_is_asked_for_as_git_does_it(a_story: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    done(a_story, "init")
    subprocess.run(["chown", "-R", "65534:65534", str(a_story.path)], check=True)
    answer = done(a_story, "status", code=3)
    assert "git does not open this repository: detected dubious ownership in repository at" in answer.err
    with monkeypatch.context() as named:  # to git, and so to both ways of reading objects, that is consent
        named.setenv("GIT_DIR", str(a_story.path / ".git"))
        done(a_story, "status")
    [hint] = [row for row in answer.err.splitlines() if row.startswith("hint: ")]
    a_story.attempt("sh", "-c", hint.removeprefix("hint: ").strip("`"), cwd=a_story.path.parent)
    done(a_story, "verify", "--task", "42", "--branch", "task/42", code=3)
    merge = a_story.attempt("git", "merge", "--no-ff", "-m", "x", "task/42")
    assert b"git-evals: refused" in merge.stderr
    assert b"ownership" not in merge.stderr


def test_a_partial_clone_whose_remote_is_gone_says_so(a_story: Place) -> None:
    clone = cloned("--filter=blob:none", "--no-checkout")(a_story)
    a_story.path.rename(a_story.path.with_name("gone"))
    for command in (("contract", "42"), ("verify", "--task", "42", "--branch", "task/42")):
        answer = done(clone, *command, code=3)
        assert "could not be fetched from origin: fatal: " in answer.err
        assert "`git fetch --refetch --no-filter origin`" in answer.err


@pytest.mark.slow
def test_an_alternate_that_vanished_is_named_by_the_doctor(a_story: Place) -> None:
    clone = sharing(a_story)
    done(clone, "init")
    [(state, said)] = about_repository(clone)
    assert (state, "without it, nothing here can be judged" in said) == ("note", True)
    a_story.path.rename(a_story.path.with_name("gone"))
    for command in JUDGING:
        answer = done(clone, *command, code=3)
        assert "is missing" in answer.err
    [(state, said)] = about_repository(clone)
    assert (state, f"{a_story.path}/.git/objects, which is not there" in said) == ("problem", True)


# what is damaged → the commands that must not give an answer then
DAMAGED = {
    "main:.gitevals.yaml": JUDGING,
    "main:tasks/42.md": JUDGING,
    "main:tasks": JUDGING,
    "main^{tree}": JUDGING,
    "task/42^{tree}": (("run", "42"), ("verify", "--task", "42", "--branch", "task/42"), ("merge", "task/42")),
    "task/42:ok-42": (("run", "42"), ("merge", "task/42")),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"garbage", None], ids=["empty", "garbage", "gone"])
def test_what_is_damaged_is_never_taken_for_what_is_not_there(damage: bytes | None, a_story: Place) -> None:
    done(a_story, "init")
    main = a_story.git("rev-parse", "main")
    for name, commands in DAMAGED.items():
        broken = a_story.git("rev-parse", name)
        file = a_story.path / ".git/objects" / broken[:2] / broken[2:]
        content = file.read_bytes()
        file.unlink()
        if damage is not None:
            file.write_bytes(damage)
        for command in commands:
            answer = evals(a_story, *command)
            assert answer.code in (2, 3), (name, command, answer)
            assert "hint: " in answer.out + answer.err, answer
            assert re.search(
                "(cannot|unable to) (be )?read|missing|is corrupt|not in the repo", answer.out + answer.err
            ), answer
        made = a_story.attempt("git", "update-ref", "refs/heads/main", "task/42")
        assert made.returncode, (name, made)
        assert a_story.git("rev-parse", "main") == main
        file.unlink(missing_ok=True)
        file.write_bytes(content)


@pytest.mark.slow
def test_an_audit_does_not_begin_later_because_the_first_configuration_is_lost(a_project: Place) -> None:
    lost = a_project.git("rev-parse", "main:.gitevals.yaml")
    text = (a_project.path / ".gitevals.yaml").read_text()
    a_project.commit({".gitevals.yaml": f"{text}x-note: new\n"})
    done(a_project, "audit", code=1)
    (a_project.path / ".git/objects" / lost[:2] / lost[2:]).unlink()
    assert ".gitevals.yaml of" in done(a_project, "audit", code=3).err


@pytest.mark.slow
def test_before_the_first_commit_every_command_says_what_is_lacking(a_repo: Place, tmp_path: Path) -> None:
    unborn = Place(tmp_path / "unborn")
    a_repo.git("init", "-q", str(unborn.path))
    for command in (("status",), ("run", "42"), ("audit",), ("merge", "x")):
        assert "no target branch is known" in done(unborn, *command, code=2).err
    done(unborn, "init")
    assert 'there is no commit on "main" yet' in done(unborn, "run", "42", code=2).err


@pytest.mark.slow
def test_without_a_branch_init_asks_which_one_and_all_else_goes_on(a_story: Place) -> None:
    a_story.git("switch", "-q", "--detach", "main")
    a_story.git("config", "--unset", "evals.trustBranch")
    answer = done(a_story, "init", code=2)
    assert "no branch is checked out" in answer.err
    assert "`--protect BRANCH`" in answer.err
    done(a_story, "init", "--protect", "main")
    done(a_story, "status")


def test_a_history_that_ends_too_early_asks_for_the_rest(a_story: Place) -> None:
    clone = cloned("--depth=1", "--no-single-branch")(a_story)
    assert "git fetch --unshallow" in done(clone, "run", "42", code=2).err
    assert ("note", "shallow: deliveries and audits cannot look further back than it does") in about_repository(clone)
