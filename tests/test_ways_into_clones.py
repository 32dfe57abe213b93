"""Clones that get the hooks from a template, guarded submodules, great fetches, and hooks that call git themselves."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from gitevals.install import shims
from tests.conftest import Place, evals, with_task_branch

pytestmark = pytest.mark.slow


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A template for new repositories that holds the hooks."""
    for event in shims.EVENTS:
        hook = Place(tmp_path).write(f"template/hooks/{event}", shims.source(event, shims.Kind.HOOK))
        hook.chmod(0o755)
    return tmp_path / "template"


@pytest.fixture
def a_remote(a_project: Place, sealed: Path, tmp_path: Path) -> Place:
    """A bare repository of the project with a branch ``more`` and a submodule on it."""
    with (sealed / ".gitconfig").open("a") as file:
        file.write('[protocol "file"]\n\tallow = always\n')
    a_project.git("clone", "-q", "--bare", ".", "../sub.git")
    a_project.git("switch", "-q", "-c", "more")
    a_project.git("submodule", "--quiet", "add", "../sub.git", "sub")
    a_project.commit({"more": "1\n"}, "more")
    a_project.git("switch", "-q", "main")
    a_project.git("clone", "-q", "--bare", ".", "../remote.git")
    return Place(tmp_path / "remote.git")


CLONES = {
    "plain": (),
    "of one branch": ("--single-branch", "--branch=more"),
    "without a checkout": ("--no-checkout",),
    "bare": ("--bare",),
    "mirror": ("--mirror",),
    "with submodules": ("--recurse-submodules", "--branch=more"),
    "shallow": ("--depth=1",),
    "partial": ("--filter=blob:none",),
    "shared": ("--shared",),
    "trusting": ("-c", "evals.trustBranch=main"),
    "trusting mirror": ("--mirror", "-c", "evals.trustBranch=main"),
    "trusting and shallow": ("--depth=1", "-c", "evals.trustBranch=main"),
}


@pytest.mark.parametrize("options", CLONES.values(), ids=CLONES.keys())
def test_a_clone_with_the_hooks_in_its_template_comes_to_be_and_works(
    options: tuple[str, ...], a_remote: Place, template: Path, tmp_path: Path
) -> None:
    source = f"file://{a_remote.path}" if {"--depth=1", "--filter=blob:none"} & {*options} else str(a_remote.path)
    made = a_remote.attempt("git", "clone", "-q", f"--template={template}", *options, source, str(tmp_path / "clone"))
    assert (made.returncode, b"git-evals" in made.stderr) == (0, False), made.stderr.decode()
    clone = Place(tmp_path / "clone")
    clone.git("fetch", "-q", "origin")
    clone.git("branch", "work", "more" if "--branch=more" in options else "main")
    if "--bare" not in options and "--mirror" not in options:
        clone.git("checkout", "-q", "work")
        clone.commit({"work": "1\n"}, "work")
    tried = clone.attempt("git", "branch", "-D", "main")
    trusting = "evals.trustBranch=main" in options
    assert (b"git-evals: refused" in tried.stderr) is trusting, tried.stderr.decode()


def test_hooks_of_a_template_leave_alone_what_has_no_configuration(template: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "new")
    Place(tmp_path).git("init", "-q", f"--template={template}", str(place.path))
    place.commit({"a": "1\n"}, "first")
    place.commit({"a": "2\n"}, "second")
    place.git("reset", "-q", "--hard", "HEAD~1")
    place.git("switch", "-q", "-c", "other")
    place.git("branch", "-M", "main")
    for command in (["status"], ["tasks"], ["doctor"], ["hooks", "status"], ["audit"], ["log"], ["verify"]):
        answer = evals(place, *command)
        assert answer.code in (0, 1, 2, 3), answer
        assert "Traceback" not in answer.err
    place.git("branch", "-D", "other") if "other" in place.git("branch") else None


def test_a_guarded_submodule_holds_beside_its_guarded_superproject(a_remote: Place, a_project: Place) -> None:
    assert evals(a_project, "hooks", "install").code == 0
    a_project.git("switch", "-q", "more")
    a_project.git("submodule", "--quiet", "update", "--init")
    sub = Place(a_project.path / "sub")
    sub.git("switch", "-q", "main")
    assert evals(sub, "hooks", "install").code == 0
    for place in (sub, a_project):
        place.git("switch", "-q", "main")
        refused = place.attempt("git", "commit", "--allow-empty", "-m", "x")
        assert b"git-evals: refused" in refused.stderr
        with_task_branch(place)
        refused = place.attempt("git", "merge", "--ff-only", "task/42")
        assert b"undo: git reset --merge" in refused.stderr
        place.git("reset", "-q", "--merge")
        place.git("switch", "-q", "more" if place is a_project else "main")
    a_project.git("submodule", "--quiet", "update")
    a_project.git("submodule", "--quiet", "sync", "--recursive")
    a_project.git("submodule", "--quiet", "update", "--remote", "--merge")
    a_project.git("submodule", "--quiet", "foreach", "git switch -q -c here; git commit -q --allow-empty -m x")
    a_project.git("add", "sub")
    a_project.git("commit", "-qm", "sub moves")
    assert a_project.git("status", "--porcelain") == ""


def test_a_fetch_of_a_thousand_refs_starts_no_python(
    a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Place(tmp_path / "remote.git")
    a_project.git("clone", "-q", "--bare", ".", str(remote.path))
    resets = "".join(f"reset refs/heads/r/{number}\nfrom refs/heads/main\n\n" for number in range(1000))
    remote.git("fast-import", "--quiet", stdin=resets.encode())
    python = Place(tmp_path).write("python", f'#!/bin/sh\necho >>"$0.log"\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        assert evals(a_project, "hooks", "install").code == 0
    a_project.git(
        "fetch", "-q", str(remote.path), "refs/heads/*:refs/remotes/origin/*", "refs/heads/r/*:refs/heads/r/*"
    )
    assert not os.path.exists(f"{python}.log")
    assert len(a_project.git("for-each-ref", "refs/heads/r/", "refs/remotes/origin/").splitlines()) == 2001
    a_project.attempt("git", "branch", "-D", "main")
    a_project.git("switch", "-q", "--detach")
    a_project.attempt("git", "branch", "-D", "main")
    assert os.path.exists(f"{python}.log")


# Hooks of the user's that call git: a note while main is being moved, a commit of their own, a run of ours.
THEIRS = {
    "a note meanwhile": ("reference-transaction", '[ "$1" = prepared ] && [ -z "$INNER" ] || exit 0\n'
                         "INNER=1 git notes --ref=theirs add -f -m seen main"),
    "a branch meanwhile": ("reference-transaction", '[ "$1" = prepared ] && [ -z "$INNER" ] || exit 0\n'
                           "INNER=1 git branch -f seen main"),
    "a run before the commit": ("pre-commit", "unset GIT_INDEX_FILE\n{evals} run --verify-only --branch task/42"),
    "a run before the merge commit": ("pre-merge-commit", "{evals} run 42"),
}  # fmt: skip


@pytest.mark.parametrize(("event", "script"), THEIRS.values(), ids=THEIRS.keys())
def test_hooks_of_somebody_elses_may_call_git_and_git_evals(event: str, script: str, a_project: Place) -> None:
    with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    command = f"{shlex.quote(sys.executable)} -m gitevals"
    root = shlex.quote(str(Path(__file__).parents[1]))
    text = f"#!/bin/sh\nexport PYTHONPATH={root}\nexec </dev/null\n{script.format(evals=command)}\n"
    a_project.write(f".git/hooks/{event}", text).chmod(0o755)
    assert evals(a_project, "hooks", "install").code == 0
    for branch in ("free", "main"):
        a_project.git("switch", "-q", "-C", branch)
        a_project.git("merge", "-q", "--no-ff", "--no-edit", "task/42")
        assert a_project.git("log", "-1", "--format=%s").startswith("Merge branch")
    refused = a_project.attempt("git", "commit", "--allow-empty", "-m", "x")
    assert b"git-evals: refused" in refused.stderr


def test_a_check_that_commits_meets_no_hook_and_moves_no_branch(a_guarded_project: Place) -> None:
    place = a_guarded_project
    config = (place.path / ".gitevals.yaml").read_text()
    commits = config.replace('always: {command: ["true"]}', "always: {command: [sh, -c, 'cd ..; git init -q x; cd x;"
                             " git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x']}")  # fmt: skip
    place.git("switch", "-q", "-c", "checks")
    place.commit({".gitevals.yaml": commits.replace("[good]", "[good, always]")}, "a check that commits")
    place.git("switch", "-q", "main")
    assert evals(place, "merge", "checks").code == 0
    with_task_branch(place)
    main = place.git("rev-parse", "main")
    answer = evals(place, "run", "42")
    assert answer.code == 0, answer
    assert place.git("rev-parse", "main") == main
