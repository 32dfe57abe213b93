"""Hooks and programs that git runs call `git evals`: the same decisions, and nothing of the user's touched."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import Place, evals, with_task_branch
from tests.hooks import WHO, held, with_scripts


def as_a_hook_has_it(place: Place) -> dict[str, str]:
    """Everything that git, or a program around it, may have exported for a command in ``place``."""
    git_dir = place.path / ".git"
    return {
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(place.path),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_COMMON_DIR": str(git_dir),
        "GIT_OBJECT_DIRECTORY": str(git_dir / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": ".git/objects",
        "GIT_PREFIX": "tasks/",
        "GIT_CONFIG_PARAMETERS": "'core.bare'='false'",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": str(place.path),
        "GIT_CONFIG": "/nonexistent",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_TEMPLATE_DIR": "/nonexistent",
        "GIT_REPLACE_REF_BASE": "refs/heads/",
        "GIT_ATTR_SOURCE": "nonexistent",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_REFLOG_ACTION": "commit",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NOTES_REF": "refs/notes/mine",
        "GIT_EXEC_PATH": place.git("--exec-path"),
        "GITHEAD_" + "0" * 40: "main",
    }


ELSEWHERE = f"""set -e
mkdir "$TMPDIR/of-$$"; cd "$TMPDIR/of-$$"; git init -q .; echo x >x; git add -A; git {WHO} commit -qm x; echo y >x
git {WHO} commit -qam y; git branch -M main; git checkout -qb other; git {WHO} notes add -m n
git worktree add -q ../w-$$ main
echo z >x; git {WHO} stash -q; git update-index --refresh; git config user.name x; git gc -q; git config core.bare true
"""
# What a check does in its own directory, and what becomes of it.
IN_PLACE = {
    "init": ("git init -q", "passed"),
    "core-bare": ("git config core.bare true", "passed"),
    "name": ("git config user.name x && git config --global --get init.defaultBranch", "passed"),
    "add": ("git add -A", "passed"),
    "stash": (f"git {WHO} stash", "passed"),
    "notes": (f"git {WHO} notes add -m x", "passed"),
    "update-index": ("git update-index --assume-unchanged README", "passed"),
    "worktree": ('git worktree add -q "$TMPDIR/tree" HEAD', "passed"),
    "gc": ("git gc -q", "passed"),
    "elsewhere": (ELSEWHERE, "passed"),
    "zz-unset": (
        "git config --unset core.bare; env | grep ^GIT_ | grep -v -e CEILING -e PROMPT; test $? = 1",
        "passed",
    ),
}


@pytest.mark.slow
def test_what_checks_do_with_git_stays_in_their_own_places(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with_scripts(a_project, {name: script for name, (script, _) in IN_PLACE.items()}, setup=ELSEWHERE, verify=ELSEWHERE)
    with_task_branch(a_project)
    before = held(a_project)
    for name, value in as_a_hook_has_it(a_project).items():
        monkeypatch.setenv(name, value)
    told = evals(a_project, "run", "42", "--json")
    found = {entry["id"]: (entry["result"], entry["reason"]) for entry in json.loads(told.out)["checks"]}
    wrong = {name: found[name] for name, (_, result) in IN_PLACE.items() if found[name][0] != result}
    assert not wrong, wrong
    assert told.code == 0, told
    assert held(a_project) == before


MOVES = {
    "commit": f"echo more >>README; git {WHO} commit -qam x",
    "new branch": "git checkout -qb mine",
    "new branch and commit": f"git checkout -qb mine; git {WHO} commit -q --allow-empty -m x",
    "stash of a change": f"echo more >>README; git {WHO} stash -q",
    "index alone": "git rm -q --cached README",
    "bare, then a commit": f"git config core.bare true; git --work-tree=. {WHO} commit -q --allow-empty -m x",
}
TOLD = {"commit", "new branch and commit", "bare, then a commit"}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOVES)
def test_a_check_that_moves_its_own_head_is_told_and_the_users_stays(
    name: str, a_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_scripts(a_project, {"moves": MOVES[name]})
    with_task_branch(a_project)
    before = held(a_project)
    for variable, value in as_a_hook_has_it(a_project).items():
        monkeypatch.setenv(variable, value)
    told = evals(a_project, "run", "42", "--json")
    [check] = [entry for entry in json.loads(told.out)["checks"] if entry["id"] == "moves"]
    assert (check["result"], check["reason"][:14]) == (
        ("inconclusive", "source_changed") if name in TOLD else ("passed", "")
    )
    assert held(a_project) == before


# The hook, what of a branch "work" stands ready, and the command that makes git run the hook; "" is no hook of git's.
REAL = {
    "commit with a path": ("pre-commit", "echo 1 >>README", "git commit -qm x README"),
    "commit -a": ("pre-commit", "echo 1 >>README", "git commit -qam x"),
    "commit -p": ("pre-commit", "echo 1 >>README", "echo y | git commit -qpm x"),
    "commit --amend": ("post-rewrite", "", "git commit -q --amend -m other"),
    "after a commit": ("post-commit", "echo 1 >>README; echo 2 >>sub/file; git add sub", "git commit -qm x README"),
    "the message": ("commit-msg", "echo 1 >>README", "git commit -qam x"),
    "merge": ("pre-merge-commit", "", "git merge -q --no-ff --no-edit task/43"),
    "after a merge": ("post-merge", "", "git merge -q task/43"),
    "checkout": ("post-checkout", "", "git checkout -q --detach task/43"),
    "rebase": ("pre-rebase", "", "git rebase -q task/43"),
    "rebase --exec": ("", "", 'git rebase -q --exec "$hook" task/43'),
    "bisect run": ("", "git bisect start HEAD HEAD~2", 'git bisect run "$hook"'),
    "alias": ("", "", 'cd sub && git -c alias.there="!$hook" there'),
    "reference-transaction": ("reference-transaction", "", "git update-ref refs/tags/t HEAD"),
    "push": ("pre-push", "", "git push -q ../bare work"),
    "another index": (
        "pre-commit", "cp \"$git_dir/index\" other", 'GIT_INDEX_FILE=$PWD/other git commit -q --allow-empty -m x',
    ),
}  # fmt: skip
MISCHIEF = f"""set -e
cd "$TMPDIR"; git init -q .; git config core.bare false; git {WHO} commit -qm x --allow-empty; git checkout -qb other
cd "$OLDPWD"; git init -q; git config core.bare true; git config user.name x; git --work-tree=. add -A
"""
SPOKEN = ("freeze 42", "run 42", "verify --task 42", "status")


def with_a_user_hook(place: Place, event: str, commands: tuple[str, ...]) -> dict[str, str]:
    """A user's hook, or else a program, that calls git-evals once; the variables by which commands name it."""
    file = place.path.parent / f"{place.path.name}-hook"
    calls = "".join(f'{{ git evals {command}; echo "exit $?"; }} >>"$0.said" 2>&1\n' for command in commands)
    file.write_text(f'#!/bin/sh\n[ -z "$INNER" ] || exit 0\nexport INNER=1\n{calls}exit 0\n')
    file.chmod(0o755)
    if event:
        hook = place.path / ".git/hooks" / event
        hook.write_text(f"#!/bin/sh\nexec {shlex.quote(str(file))}\n")
        hook.chmod(0o755)
    return {"hook": str(file)}


def seen(place: Place, git_dir: str) -> tuple[str, ...]:
    """A repository as its user sees it, without places that differ between two copies."""
    refs = place.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    asked = (("symbolic-ref", "-q", "HEAD"), ("rev-parse", "HEAD"), ("ls-files", "-s"), ("status", "--porcelain=v2"))
    states = [place.attempt("git", *question).stdout.decode() for question in asked]
    config = Path(place.git("rev-parse", "--path-format=absolute", "--git-common-dir"), "config").read_text()
    kept = [name for name in os.listdir(git_dir) if name not in ("git-evals", "logs", "index")]
    listed = place.git("worktree", "list", "--porcelain").count("worktree ")
    return (*(ref for ref in refs if "evals" not in ref), *states, config, *sorted(kept), str(listed))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "linked"),
    [pytest.param(name, linked, id=f"{name}-{'linked' if linked else 'main'}") for name in REAL
     for linked in (False, True)],
)  # fmt: skip
def test_a_users_hook_may_call_us_and_the_command_ends_as_without(
    name: str, linked: bool, a_project: Place, tmp_path: Path
) -> None:
    event, prepare, command = REAL[name]
    with_scripts(a_project, {"this": MISCHIEF})
    with_task_branch(a_project)
    with_task_branch(a_project, "43")
    a_project.git("switch", "-q", "-c", "work", "main~1")
    a_project.commit({"sub/file": "1\n"}, "work")
    a_project.git("init", "-q", "--bare", "../bare")
    a_project.git("switch", "-q", "main")
    outcomes = []
    for commands in ((), SPOKEN):
        main = Place(tmp_path / f"with-{len(commands)}")
        shutil.copytree(a_project.path, main.path, symlinks=True)
        place = Place(tmp_path / f"linked-{len(commands)}") if linked else main
        main.git(*(("worktree", "add", "-q", str(place.path), "work") if linked else ("switch", "-q", "work")))
        git_dir = place.git("rev-parse", "--absolute-git-dir")
        where = {**with_a_user_hook(main, event, commands), "git_dir": git_dir}
        place.attempt("sh", "-ec", prepare, env=where | {"INNER": "1"})
        done = place.attempt("sh", "-c", command, env=where)
        outcomes.append((done.returncode, seen(place, git_dir), main.git("status", "--porcelain")))
    said = Path(f"{where['hook']}.said").read_text()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == 0, done.stderr.decode()
    exits = [line for line in said.splitlines() if line.startswith("exit ")]
    # A transaction calls the hook in each of its states; how many there are is git's affair.
    calls = len(exits) // len(SPOKEN) if event == "reference-transaction" else 1
    assert calls > 0
    assert exits == ["exit 0"] * len(SPOKEN) * calls, said


@pytest.mark.slow
def test_a_hook_in_a_linked_work_tree_may_merge_into_the_branch_of_another(
    a_proven_change: Place, tmp_path: Path
) -> None:
    linked = Place(tmp_path / "linked")
    a_proven_change.git("worktree", "add", "-q", "-b", "work", str(linked.path), "main~1")
    where = with_a_user_hook(a_proven_change, "post-commit", ("merge task/42",))
    linked.write("README", "mine\n")
    linked.git("commit", "-qm", "mine", "README")
    assert "exit 0" in Path(f"{where['hook']}.said").read_text()
    assert a_proven_change.git("rev-parse", "main^{tree}") == a_proven_change.git("rev-parse", "task/42^{tree}")
    assert a_proven_change.git("status", "--porcelain") == linked.git("status", "--porcelain") == ""
    assert linked.git("symbolic-ref", "HEAD") == "refs/heads/work"


@pytest.mark.slow
def test_a_submodule_is_meant_where_foreach_stands_in_it(a_proven_change: Place, tmp_path: Path) -> None:
    outer = Place(tmp_path / "outer")
    a_proven_change.git("init", "-q", str(outer.path))
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(a_proven_change.path), "inner")
    outer.commit({}, "with a submodule")
    inner = Place(outer.path / "inner")
    inner.git("branch", "-q", "task/42", "origin/task/42")
    before = held(outer).keys()
    said = outer.git("submodule", "foreach", "git evals run 42 --json")
    assert f'"head": "{inner.git("rev-parse", "task/42")}"' in said
    assert {file for file in held(outer).keys() - before if "evals" not in file and "/objects/" not in file} <= {
        ".git/modules/inner/packed-refs"
    }


@pytest.mark.slow
@pytest.mark.parametrize("event", ["pre-receive", "update", "post-receive"])
def test_a_servers_own_hook_may_ask_us_about_objects_that_are_still_in_quarantine(
    event: str, a_proven_change: Place, tmp_path: Path
) -> None:
    place = a_proven_change
    bare = Place(tmp_path / "bare.git")
    place.git("clone", "-q", "--bare", str(place.path), str(bare.path))
    bare.git("fetch", "-q", str(place.path), "refs/evals/*:refs/evals/*", "refs/notes/evals/*:refs/notes/evals/*")
    bare.git("update-ref", "-d", "refs/heads/task/42")
    bare.git("config", "evals.trustBranch", "main")
    reads = '"$2" "$3" "$1"' if event == "update" else "$(cat)"
    hook = bare.path / "hooks" / event
    hook.write_text(
        f'#!/bin/sh\nset -- {reads}\nquarantine() {{ find "${{GIT_QUARANTINE_PATH:-/nonexistent}}" -type f 2>&-; }}\n'
        'before=$(quarantine)\ngit evals verify --ref "$3" --old "$1" --new "$2" >&2; status=$?\n'
        'git evals run 42 --branch main >"$0.ran" 2>&1; echo $? >>"$0.ran"\n'
        'echo "$before" >"$0.before"; quarantine >"$0.after"\n'
        f"exit {'0' if event == 'post-receive' else '$status'}\n"
    )
    hook.chmod(0o755)
    place.git("switch", "-q", "-c", "pushed", "task/42")
    made = place.git("commit-tree", "pushed^{tree}", "-p", "main", "-p", "task/42", "-m", "made just now")
    junk = place.commit({"junk": "x\n"}, "junk")
    if event != "post-receive":
        refused = place.attempt("git", "push", "-q", str(bare.path), f"{junk}:refs/heads/main")
        assert refused.returncode != 0
        assert b"refused: refs/heads/main" in refused.stderr, refused.stderr.decode()
        assert bare.git("rev-parse", "main") == place.git("rev-parse", "main")
    allowed = place.attempt("git", "push", "-q", str(bare.path), f"{made}:refs/heads/main")
    assert allowed.returncode == 0, allowed.stderr.decode()
    assert bare.git("rev-parse", "main") == made
    assert Path(f"{hook}.before").read_text() == Path(f"{hook}.after").read_text() or event != "pre-receive"
    assert "bug" not in Path(f"{hook}.ran").read_text()
