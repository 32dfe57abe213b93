"""What git exports to hooks and programs, and the bare surroundings of a GUI: the same decisions, nothing touched."""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from gitevals.evaluate.environment import built
from gitevals.git import repo, sealed
from gitevals.model.contract import Command
from tests.conftest import CONFIG, Place, evals, with_task_branch

CHANGE = {"ok-42": "done\n", "README": "hello, done\n"}


@pytest.fixture
def a_proven_change(a_guarded_project: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A guarded project whose branch ``task/42`` passed; ``CHANGE`` is all that it does."""
    kept = tmp_path_factory.getbasetemp() / "made-proven-change"
    if kept.exists():
        shutil.rmtree(a_guarded_project.path)
        shutil.copytree(kept, a_guarded_project.path, symlinks=True)
        return a_guarded_project
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.commit(CHANGE, "do task 42")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42").code == 0
    shutil.copytree(a_guarded_project.path, kept, symlinks=True)
    return a_guarded_project


# How the change lies before it is committed straight onto main, the command, and whether what it would commit is
# exactly the tree that passed. "junk" is a change that nobody evaluated.
STAGE = "git add ok-42 README"
JUNK = "echo junk >>tasks/43.md"
INDEX_WAYS = {
    "all staged": (STAGE, "git commit -qm x", True),
    "junk unstaged": (f"{STAGE}; {JUNK}", "git commit -qm x", True),
    "junk staged": (f"{STAGE}; {JUNK}; git add tasks", "git commit -qm x", False),
    "paths": (f"{STAGE}; {JUNK}; git add tasks", "git commit -qm x ok-42 README", True),
    "too few paths": (STAGE, "git commit -qm x README", False),
    "too many paths": (f"{STAGE}; {JUNK}", "git commit -qm x ok-42 README tasks/43.md", False),
    "--only": (f"{STAGE}; {JUNK}; git add tasks", "git commit -qm x --only ok-42 README", True),
    "--include": ("git add ok-42", "git commit -qm x --include README", True),
    "--include beside junk": (f"git add ok-42; {JUNK}; git add tasks", "git commit -qm x --include README", False),
    "-a": ("git add ok-42", "git commit -qam x", True),
    "-a with junk": (f"git add ok-42; {JUNK}", "git commit -qam x", False),
    "-p": (f"git add ok-42; {JUNK}", "printf 'y\\nn\\n' | git commit -qpm x", True),
    "-p with junk": (f"git add ok-42; {JUNK}", "printf 'y\\ny\\n' | git commit -qpm x", False),
    "intent to add": (f"{STAGE}; echo junk >later; git add -N later", "git commit -qm x", True),
    "split index": (f"git update-index --split-index; {STAGE}", "git commit -qm x", True),
    "split index, paths": (
        f"git update-index --split-index; {STAGE}; {JUNK}; git add tasks", "git commit -qm x ok-42 README", True,
    ),
    "split index with junk": (f"git update-index --split-index; {STAGE}; {JUNK}", "git commit -qam x", False),
    "sparse index": (f"git sparse-checkout set --cone --sparse-index; {STAGE}", "git commit -qm x", True),
    "sparse index, -a": ("git sparse-checkout set --cone --sparse-index; git add ok-42", "git commit -qam x", True),
    "another index, relative": (
        f"{JUNK}; git add -A; GIT_INDEX_FILE=.git/other git read-tree task/42",
        "cd sub && GIT_INDEX_FILE=.git/other git commit -qm x", True,
    ),
    "another index with junk": (
        f"{STAGE}; GIT_INDEX_FILE=.git/other git read-tree main", "GIT_INDEX_FILE=.git/other git commit -qm x", False,
    ),
    "from below": (STAGE, "cd tasks && git commit -qm x", True),
    "from below, paths": (f"{STAGE}; {JUNK}; git add tasks", "cd tasks && git commit -qm x ../ok-42 ../README", True),
    "by -C": (STAGE, 'cd / && git -C "$here" commit -qm x', True),
    "by --git-dir": (STAGE, 'cd / && git --git-dir="$git_dir" --work-tree="$here" commit -qm x', True),
    "by --git-dir with junk": (
        f"{STAGE}; {JUNK}", 'cd / && git --git-dir="$git_dir" --work-tree="$here" commit -qam x', False,
    ),
    "a hook before ours adds": (f"{STAGE}; {JUNK}", "git -c first.do='git add tasks' commit -qm x", False),
    "a hook before ours mends": (
        f"{STAGE}; {JUNK}; git add tasks",
        "git -c first.do='git restore --staged tasks' commit -qm x", True,
    ),
    "a hook before ours mends, -a": (
        f"git add ok-42; {JUNK}", "git -c first.do='git restore --staged tasks' commit -qam x", True,
    ),
    "a hook before ours adds, paths": (
        f"{STAGE}; {JUNK}", "git -c first.do='git add tasks' commit -qm x README ok-42", False,
    ),
}  # fmt: skip
BY_DEFAULT = ("paths", "-a with junk", "another index, relative")
LINKED_BY_DEFAULT = ("paths",)


def _index_rows() -> list[object]:
    return [
        pytest.param(name, linked, id=f"{name}-{'linked' if linked else 'main'}",
                     marks=[] if name in (LINKED_BY_DEFAULT if linked else BY_DEFAULT) else [pytest.mark.slow])
        for name, (_, command, _) in INDEX_WAYS.items()
        for linked in (False, True)
        if not linked or ".git/other" not in command
    ]  # fmt: skip


def with_a_hook_before(place: Place, event: str) -> None:
    """Have the command in the setting ``first.do`` run before our hook ``event``, as a tool in front of it would."""
    hook = Path(place.git("rev-parse", "--path-format=absolute", "--git-common-dir"), "hooks", event)
    hook.rename(hook.with_suffix(".ours"))
    hook.write_text('#!/bin/sh\neval "$(git config first.do)" || exit 1\nexec "$0.ours" "$@"\n')
    hook.chmod(0o755)


@pytest.mark.parametrize(("name", "linked"), _index_rows())
def test_a_commit_onto_a_protected_branch_is_judged_by_the_tree_it_would_make(
    name: str, linked: bool, a_proven_change: Place, tmp_path: Path
) -> None:
    prepare, command, allowed = INDEX_WAYS[name]
    with_a_hook_before(a_proven_change, "pre-commit")
    (a_proven_change.path / ".git/hooks/reference-transaction").unlink()  # pre-commit alone is to decide
    place = a_proven_change
    if linked:
        a_proven_change.git("switch", "-q", "-c", "parking")
        a_proven_change.git("worktree", "add", "-q", str(tmp_path / "linked"), "main")
        place = Place(tmp_path / "linked")
    for path, content in CHANGE.items():
        place.write(path, content)
    (place.path / "sub").mkdir()
    where = {"here": str(place.path), "git_dir": place.git("rev-parse", "--absolute-git-dir")}
    prepared = place.attempt("sh", "-ec", prepare, env=where)
    assert prepared.returncode == 0, prepared.stderr.decode()
    done = place.attempt("sh", "-c", command, env=where)
    made = place.git("rev-parse", "main^{tree}")
    assert (done.returncode == 0) == allowed, done.stderr.decode()
    assert (made == place.git("rev-parse", "task/42^{tree}")) == allowed
    assert allowed or b"git-evals: refused" in done.stderr or b"refs/heads/main" in done.stderr, done.stderr.decode()


# What steers git and is not in its own list of what is local to a repository.
STEERING = (
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_CONFIG_GLOBAL",
    "GIT_ATTR_SOURCE",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_DEFAULT_HASH",
    "GIT_REFLOG_ACTION",
    "GIT_PUSH_OPTION_COUNT",
    "GIT_TRACE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOTES_REF",
    "GIT_EXTERNAL_DIFF",
    "GIT_EDITOR",
    "GIT_AUTHOR_DATE",
    "GIT_REFERENCE_BACKEND",
)
# Kept for our own commands, with what would be wrong without: objects of a push unseen, refs moved while git still
# decides about it, a repository that only the caller's configuration opens.
OURS_TOO = {
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
}
FIXED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": "/dev/null/none"}


def _local(place: Place) -> list[str]:
    """What git calls local to a repository; the installed one says it."""
    return place.git("rev-parse", "--local-env-vars").split()


def test_a_check_is_given_nothing_that_steers_git_even_if_it_asks(a_repo: Place) -> None:
    names = [*_local(a_repo), *STEERING, "GITEVALS_WRITER"]
    command = Command(command=("true",), timeout_seconds=1, pass_env=tuple(names))
    env = built(
        dict.fromkeys(names, "hostile"), command, path="/bin", base="b", head="h", task="42", root="/r", temporary="/t"
    )
    assert {name: value for name, value in env.items() if name.startswith(("GIT_", "GITEVALS_"))} == {
        "GIT_CEILING_DIRECTORIES": "/r", "GIT_TERMINAL_PROMPT": "0",
        "GITEVALS_BASE": "b", "GITEVALS_HEAD": "h", "GITEVALS_TASK": "42",
    }  # fmt: skip


def test_of_each_local_variable_it_is_said_whether_our_own_git_gets_it(a_repo: Place) -> None:
    local = _local(a_repo)
    ours = repo.environment(dict.fromkeys(local, "/hostile"))
    assert {name for name in local if ours.get(name) == "/hostile"} == OURS_TOO
    assert {name: ours[name] for name in local if name in ours and name not in OURS_TOO} == FIXED
    scratch = sealed.environment(ours)
    assert {name for name in local if name in scratch} <= {"GIT_CONFIG_COUNT", "GIT_NO_REPLACE_OBJECTS"}
    assert "/hostile" not in scratch.values()


def test_object_directories_told_from_here_are_told_on_as_whole_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    one, more = "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"
    for name, told, told_on in (
        (one, "objects", "/usr/objects"), (one, "/with:colon", "/with:colon"), (more, "/a::b", "/a:/usr/b"),
        (more, '"/a:b":/c', '"/a:b":/c'), (more, "", ""),
    ):  # fmt: skip
        assert repo.environment({name: told})[name] == told_on


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


def held(place: Place) -> dict[str, bytes]:
    """Every file of the work tree and of what git keeps beside objects, reflogs and our own records."""
    ours = ("objects", "logs", "git-evals", "refs/evals", "refs/notes/evals", "refs/evals-pins")
    skipped = tuple(str(place.path / ".git" / name) for name in ours)
    files = (file for file in place.path.rglob("*") if file.is_file() and not str(file).startswith(skipped))
    return {str(file.relative_to(place.path)): file.read_bytes() for file in files}


WHO = "-c user.name=x -c user.email=x@example.org"
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


def configure(place: Place, checks: dict[str, str], *, setup: str = "true", verify: str = "true") -> None:
    """Commit a configuration with these shell scripts as checks, all bound to the one criterion of every task."""
    base = CONFIG.format(mode="enforce").split("verify:")[0]
    commands = {name: {"command": ["sh", "-c", script]} for name, script in checks.items()}
    rest = {"verify": [["sh", "-c", verify]], "setup": [["sh", "-c", setup]], "checks": commands}
    bindings = {"*": {"*": list(checks)}}
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in {**rest, "bindings": bindings}.items()]
    place.commit({".gitevals.yaml": base + "".join(lines)}, "configure")


@pytest.mark.slow
def test_what_checks_do_with_git_stays_in_their_own_places(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(a_project, {name: script for name, (script, _) in IN_PLACE.items()}, setup=ELSEWHERE, verify=ELSEWHERE)
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
    configure(a_project, {"moves": MOVES[name]})
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
    configure(a_project, {"this": MISCHIEF})
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
    assert [line for line in said.splitlines() if line.startswith("exit ")] == ["exit 0"] * len(SPOKEN), said


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


BARE = "env -i HOME=$HOME GIT_CONFIG_NOSYSTEM=1 PATH=/usr/bin:/bin"
MERGE = '"$git" merge --no-edit --no-ff'
# How little a GUI or a service gives a command; "BRANCH" stands for what is merged.
POOR = {
    "no PATH": f'env -i HOME="$HOME" {MERGE} BRANCH',
    "no HOME": f"env -i PATH=/usr/bin:/bin {MERGE} BRANCH",
    "the C locale": f"{BARE} LC_ALL=C {MERGE} BRANCH",
    "the POSIX locale, never coerced": f"{BARE} LC_ALL=POSIX PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 {MERGE} BRANCH",
    "an unknown locale": f"{BARE} LC_ALL=xx_YY.ISO {MERGE} BRANCH",
    "another Python's variables": f"PYTHONHOME=/none PYTHONPATH=/none PYTHONWARNINGS=error {MERGE} BRANCH",
    "no input": f"{MERGE} BRANCH <&-",
    "no output": f"{MERGE} BRANCH >&-",
    "no errors": f"{MERGE} BRANCH 2>&-",
    "no streams": f"{MERGE} BRANCH <&- >&- 2>&-",
    "a full disk behind the output": f"{MERGE} BRANCH >/dev/full 2>&1",
    "a private umask": f"umask 077; {MERGE} BRANCH",
    "an open umask": f"umask 000; {MERGE} BRANCH",
    "few files": f"ulimit -n 64; {MERGE} BRANCH",
    "a directory that is gone":
        f'here=$PWD; mkdir ../gone; cd ../gone; rmdir ../gone; {MERGE.replace("merge", """-C "$here" merge""")} BRANCH',
    "tracing": f"GIT_TRACE=1 GIT_TRACE2=1 GIT_TRACE_SETUP=1 {MERGE} BRANCH",
    "pathspecs and attributes": f"GIT_LITERAL_PATHSPECS=1 GIT_ATTR_SOURCE=nonexistent {MERGE} BRANCH",
    "another configuration file": f"GIT_CONFIG=/nonexistent GIT_TEMPLATE_DIR=/nonexistent {MERGE} BRANCH",
    "another replacement and a namespace": f"GIT_REPLACE_REF_BASE=refs/heads/ GIT_NAMESPACE=other {MERGE} BRANCH",
    "an object directory told from here": f"GIT_OBJECT_DIRECTORY=.git/objects {MERGE} BRANCH",
    "further objects told from here": f"GIT_ALTERNATE_OBJECT_DIRECTORIES=.git/objects {MERGE} BRANCH",
    "all that hooks have": f"GIT_DIR=.git GIT_WORK_TREE=. GIT_INDEX_FILE=.git/index GIT_PREFIX=sub/ {MERGE} BRANCH",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "no PATH" else [pytest.mark.slow])
     for name in POOR],
)  # fmt: skip
def test_the_gate_decides_alike_in_poor_surroundings(name: str, a_proven_change: Place) -> None:
    a_proven_change.git("switch", "-q", "-c", "unproven")
    a_proven_change.commit({"junk": "x\n"}, "junk")
    a_proven_change.git("switch", "-q", "main")
    a_proven_change.git("config", "user.name", "a")
    a_proven_change.git("config", "user.email", "a@example.org")
    before = a_proven_change.git("rev-parse", "main")
    for branch in ("unproven", "task/42"):
        command = POOR[name].replace("BRANCH", branch)
        done = a_proven_change.attempt("sh", "-c", command, env={"git": str(shutil.which("git"))})
        tip = a_proven_change.git("rev-parse", "main")
        assert (tip == before) == (branch == "unproven"), done.stderr.decode()
        a_proven_change.attempt("git", "merge", "--abort")
    assert a_proven_change.git("rev-parse", "main^{tree}") == a_proven_change.git("rev-parse", "task/42^{tree}")
    assert a_proven_change.git("status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_without_streams_records_what_checks_printed(closed: str, a_project: Place) -> None:
    configure(a_project, {"prints": "echo to-stdout; echo to-stderr >&2; exit 1"})
    with_task_branch(a_project)
    assert a_project.attempt("sh", "-c", f"git-evals run 42 {closed}").returncode == 1
    told = evals(a_project, "report", "42", "--json").out
    assert "to-stdout" in told
    assert "to-stderr" in told


# Which repository is meant: (GIT_DIR is that of "a"), where the command starts, its options, whose state it tells.
MEANT = [
    (False, "b", (), "b"), (True, "a", (), "a"), (True, "b", (), "a"), (True, "b", ("-C", "."), "a"),
    (True, "a", ("-C", "../b"), "a"), (False, "a", ("-C", "../b"), "b"), (True, "b/tasks", (), "a"),
]  # fmt: skip


@pytest.mark.parametrize(("exported", "start", "options", "meant"), MEANT)
def test_an_exported_git_dir_says_which_repository_is_meant_as_it_does_to_git(
    exported: bool, start: str, options: tuple[str, ...], meant: str,
    a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    places = {name: Place(tmp_path / name) for name in ("a", "b")}
    for place in places.values():
        shutil.copytree(a_project.path, place.path, symlinks=True)
    head = with_task_branch(places["a"])
    with_task_branch(places["b"], "43")
    if exported:
        monkeypatch.setenv("GIT_DIR", str(places["a"].path / ".git"))
    cwd = tmp_path / start
    told = evals(a_project, *options, "verify", "--task", "42", "--json", cwd=cwd)
    git = a_project.attempt("git", *options, "rev-parse", "-q", "--verify", "task/42", cwd=cwd).stdout.decode().strip()
    assert git == (head if meant == "a" else "")
    assert (head in told.out) == (meant == "a"), told


@pytest.mark.slow
@pytest.mark.parametrize("bare", ["true", "false"])
@pytest.mark.parametrize("tree_named", [True, False])
def test_a_work_tree_kept_apart_from_its_git_directory_is_brought_along(
    bare: str, tree_named: bool, a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_task_branch(a_project)
    kept, tree = tmp_path / "kept", Place(tmp_path / "home-tree")
    tree.path.mkdir()
    a_project.git("clone", "-q", "--bare", str(a_project.path), str(kept))
    a_project.git("-C", str(kept), "config", "core.bare", bare if tree_named else "false")
    monkeypatch.setenv("GIT_DIR", str(kept))
    if tree_named:
        monkeypatch.setenv("GIT_WORK_TREE", str(tree.path))
    tree.git("config", "evals.trustBranch", "main")
    tree.git("checkout", "-q", "-f", "main")
    merged = evals(tree, "merge", "task/42", cwd=tree.path / "tasks" if tree_named else tree.path)
    assert merged.code == 0, merged
    assert (tree.path / "ok-42").exists()
    assert tree.git("status", "--porcelain") == ""
    assert tree.git("log", "-1", "--format=%s", "main").startswith("Merge branch")
