"""What git exports to hooks and programs, and the bare surroundings of a GUI: the same decisions."""

import shutil
from pathlib import Path

import pytest

from gitevals.evaluate.environment import built
from gitevals.git import repo, sealed
from gitevals.install import shims
from gitevals.model.contract import Command
from tests.conftest import Place, evals, with_task_branch
from tests.hooks import GATE, MAIN, installed, with_scripts

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
    "pathspecs and attributes": f"GIT_LITERAL_PATHSPECS=1 GIT_ATTR_SOURCE=main {MERGE} BRANCH",
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
    with_scripts(a_project, {"prints": "echo to-stdout; echo to-stderr >&2; exit 1"})
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


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 40], ids=["one ref", "many refs"])
def test_a_hook_that_may_open_no_more_files_refuses(count: int, project: Place, as_files: tuple[str, ...]) -> None:
    installed(project, *as_files)
    script = str(project.write("gate", shims.source(GATE, shims.Kind.SCRIPT)))
    tip, evil = project.git("rev-parse", "main"), project.git("rev-parse", "task/42")
    lines = [f"{tip} {tip} refs/heads/free/{number}\n" for number in range(count - 1)]
    told = "".join([*lines, f"{tip} {evil} {MAIN}\n"]).encode()
    for limit in range(5, 24):
        done = project.attempt("sh", "-c", f'ulimit -n {limit}; . "$0"; exit', script, "prepared", stdin=told)
        assert done.returncode != 0, (limit, done.stderr)
