"""A commit straight onto a protected branch is judged by the tree that it would have, whichever index it is made of."""

from pathlib import Path

import pytest

from tests.conftest import Place
from tests.hooks import CHANGE, installed

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
    name: str, linked: bool, a_proven_change: Place, as_files: tuple[str, ...], tmp_path: Path
) -> None:
    prepare, command, allowed = INDEX_WAYS[name]
    if as_files:
        installed(a_proven_change, *as_files)
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
