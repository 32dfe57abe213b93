import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitevals.errors import BadInput
from gitevals.git.repo import discover
from gitevals.git.scratch import Scratch, checkout, scratch
from gitevals.git.scratch_merge import merge
from gitevals.git.watch import baseline, changes
from tests.conftest import Place


def git_in(work: Path, *arguments: str) -> str:
    options = ("-c", "protocol.file.allow=always", "-C", str(work))
    done = subprocess.run(["git", *options, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def new_repo(path: Path, files: dict[str, str]) -> Place:
    path.mkdir(parents=True)
    git_in(path, "init", "-q")
    place = Place(path)
    place.commit(files)
    return place


def make_nest(place: Path) -> None:
    """In ``place/repo`` a repository with the submodule ``libs/mod``, under another name, which has ``deep`` in it."""
    deep = new_repo(place / "origin/deep", {"bottom": "b\n"})
    deep.git("tag", "d1")
    middle = new_repo(place / "origin/middle", {"code": "c\n", "run": "r\n", ".gitignore": "*.o\n"})
    middle.git("tag", "-a", "-m", "one", "m1.0")
    git_in(middle.path, "submodule", "-q", "add", f"file://{deep.path}", "deep")
    middle.commit({}, "with deep")
    outer = new_repo(place / "repo", {"README": "hello\n"})
    git_in(outer.path, "submodule", "-q", "add", "--name", "the mod", f"file://{middle.path}", "libs/mod")
    git_in(outer.path, "submodule", "-q", "update", "--init", "--recursive")
    outer.commit({"top": "t\n"}, "with mod")
    outer.git("tag", "v1")


_template: list[Path] = []


@pytest.fixture
def a_nest(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A copy of what `make_nest` makes once."""
    if not _template:
        made = tmp_path_factory.mktemp("nest")
        make_nest(made)
        _template.append(made / "repo")
    shutil.copytree(_template[0], tmp_path / "repo", symlinks=True)
    return Place(tmp_path / "repo")


def head_of(place: Place) -> str:
    return place.git("rev-parse", "HEAD")


@pytest.fixture
def a_scratch(a_nest: Place) -> Iterator[Scratch]:
    """A scratch with the tip of ``a_nest`` checked out, submodules and all."""
    with scratch(discover(str(a_nest.path))) as made:
        yield checkout(made, head_of(a_nest))


def test_submodules_look_as_in_a_clone_at_every_depth_and_can_reach_nobody(a_nest: Place, a_scratch: Scratch) -> None:
    work = Path(a_scratch.worktree)
    for command in (
        ("submodule", "status", "--recursive"),
        ("status", "--porcelain=v2"),
        ("describe", "--tags", "--dirty", "--long"),
        ("-C", "libs/mod", "describe", "--dirty", "--long"),
        ("-C", "libs/mod", "log", "--format=%H %d%n%B", "--decorate-refs=refs/tags"),
        ("-C", "libs/mod", "rev-parse", "--show-toplevel", "--git-dir"),
        ("-C", "libs/mod/deep", "status", "--porcelain=v2", "--ignored"),
        ("-C", "libs/mod/deep", "rev-parse", "HEAD"),
    ):
        assert git_in(work, *command) == git_in(a_nest.path, *command).replace(str(a_nest.path), str(work)), command
    for place in ("", "libs/mod", "libs/mod/deep"):
        assert git_in(work / place, "remote") == ""
        assert git_in(work / place, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
        keys = {line.partition("=")[0] for line in git_in(work / place, "config", "--local", "--list").splitlines()}
        assert not [key for key in keys if not key.startswith(("core.", "submodule.", "extensions."))]
        assert not {"core.hookspath", "core.fsmonitor", "core.sshcommand"} & keys
    assert (work / "libs/mod/deep/bottom").read_text() == "b\n"
    assert git_in(work / "libs/mod/deep", "fsck") == ""


def edit(path: str, content: str = "other\n") -> Callable[[Path], None]:
    def action(work: Path) -> None:
        (work / path).write_text(content)

    return action


def remove(path: str) -> Callable[[Path], None]:
    def action(work: Path) -> None:
        shutil.rmtree(work / path) if (work / path).is_dir() else (work / path).unlink()

    return action


def hide_by_bits(work: Path) -> None:
    git_in(work / "libs/mod", "update-index", "--assume-unchanged", "code")
    git_in(work / "libs/mod", "update-index", "--skip-worktree", "code")
    edit("libs/mod/code")(work)


def hide_by_exclude(work: Path) -> None:
    (work / ".git/modules/the mod/info").mkdir(exist_ok=True)
    (work / ".git/modules/the mod/info/exclude").write_text("*\n")
    edit("libs/mod/hidden")(work)


def hide_by_config(work: Path) -> None:
    evil = work / ".git/evil"
    evil.write_text('#!/bin/sh\ntouch "$EVIL_MARK"\n')
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge"):
        git_in(work / "libs/mod", "config", key, str(evil))
    git_in(work / "libs/mod", "config", "core.worktree", str(work.parent))
    (work / ".git/modules/the mod/info").mkdir(exist_ok=True)
    (work / ".git/modules/the mod/info/attributes").write_text("* filter=x\n")
    edit("libs/mod/code")(work)


def ignore_in_gitmodules(work: Path) -> None:
    git_in(work, "config", "submodule.the mod.ignore", "all")
    edit("libs/mod/run")(work)


def move_head(work: Path) -> None:
    git_in(work / "libs/mod/deep", "checkout", "-q", "--orphan", "other")
    (work / ".git/modules/the mod/modules/deep/HEAD").write_text("0123456789" * 4 + "\n")


def swap_git(work: Path) -> None:
    (work / "libs/mod/.git").unlink()
    shutil.copytree(work / ".git/modules/the mod", work / "libs/mod/.git")


def point_elsewhere(work: Path) -> None:
    shutil.copytree(work / ".git/modules/the mod", work / ".git/modules/copy", symlinks=True)
    (work / "libs/mod/.git").write_text("gitdir: ../../.git/modules/copy\n")


def replace_the_whole(work: Path) -> None:
    (work / "libs/mod/deep").rename(work / ".git/old")
    shutil.copytree(work / ".git/old", work / "libs/mod/deep")


def swap_for_a_link(work: Path) -> None:
    (work / "libs/mod/deep").rename(work / ".git/old")
    os.symlink("../../.git/old", work / "libs/mod/deep")


@pytest.mark.parametrize(
    "told",
    [
        {
            edit("libs/mod/new"): "new file: libs/mod/new",
            edit("libs/mod/new.o"): "",
            edit("libs/mod/deep/new.o"): "new file: libs/mod/deep/new.o",
            edit("libs/mod/deep/bottom"): "modified: libs/mod/deep/bottom",
            remove("libs/mod/run"): "deleted: libs/mod/run",
            hide_by_bits: "modified: libs/mod/code",
            move_head: "HEAD of submodule libs/mod/deep moved to " + "0123456789" * 4,
        },
        {
            hide_by_exclude: "new file: libs/mod/hidden",
            hide_by_config: "modified: libs/mod/code",
            ignore_in_gitmodules: "modified: libs/mod/run",
            swap_git: "libs/mod/.git was replaced or removed",
            replace_the_whole: "replaced or removed: libs/mod/deep",
        },
        {
            point_elsewhere: "libs/mod/.git was replaced or removed",
            swap_for_a_link: "replaced by a symbolic link: libs/mod/deep",
        },
        {
            edit(".git/modules/the mod/HEAD", "x"): "HEAD of submodule libs/mod is unreadable",
            remove("libs/mod/deep"): "deleted: libs/mod/deep",
            edit("libs/mod/.gitignore", "*\n"): "modified: libs/mod/.gitignore",
        },
        {edit("../watch-2/config", ""): "our own records beside the work tree were altered"},
    ],
)
def test_whatever_happens_in_a_submodule_is_told_with_its_path_from_the_top(
    told: dict[Callable[[Path], None], str], a_scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = baseline(a_scratch)
    assert changes(a_scratch, before) == ()
    for action in told:
        action(Path(a_scratch.worktree))
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "evil"))
    found = changes(a_scratch, before)
    assert set(found) == set(told.values()) - {""}
    assert len(set(found)) == len(found)
    assert not (tmp_path / "evil").exists()


def test_outputs_reach_into_submodules(a_scratch: Scratch) -> None:
    before = baseline(a_scratch)
    edit("libs/mod/new")(Path(a_scratch.worktree))
    edit("libs/mod/deep/bottom")(Path(a_scratch.worktree))
    for outputs in (["/libs/mod/new"], ["new"], ["libs/"]):
        assert changes(a_scratch, before, outputs=outputs) == ("modified: libs/mod/deep/bottom",)


def absorb_nothing(place: Place) -> Place:
    """The same clone, its submodule an ordinary repository with a real ``.git`` directory."""
    git = place.path / "libs/mod/.git"
    git.unlink()
    (place.path / ".git/modules/the mod").rename(git)
    git_in(git, "config", "--unset", "core.worktree")
    return place


def in_a_linked_worktree(place: Place) -> Place:
    git_in(place.path, "worktree", "add", "-q", "--detach", "../linked")
    linked = Place(place.path.parent / "linked")
    git_in(linked.path, "submodule", "-q", "update", "--init", "--recursive")
    shutil.rmtree(place.path / ".git/modules")
    return linked


def seen_from_outside_of_a_linked_worktree(place: Place) -> Place:
    in_a_linked_worktree(place)
    return place


def without_a_work_tree(place: Place) -> Place:
    shutil.rmtree(place.path / "libs")
    return place


def shallow(place: Place) -> Place:
    path = place.path.parent / "shallow"
    git_in(place.path, "clone", "-q", "--depth=1", "--shallow-submodules", "--recurse-submodules", f"file://{place.path}",
           str(path))  # fmt: skip
    return Place(path)


@pytest.mark.parametrize(
    "kind",
    [
        absorb_nothing,
        pytest.param(in_a_linked_worktree, marks=pytest.mark.slow),
        pytest.param(seen_from_outside_of_a_linked_worktree, marks=pytest.mark.slow),
        pytest.param(without_a_work_tree, marks=pytest.mark.slow),
        pytest.param(shallow, marks=pytest.mark.slow),
    ],
)
def test_a_submodule_is_found_wherever_a_clone_keeps_it(kind: Callable[[Place], Place], a_nest: Place) -> None:
    clone = kind(a_nest)
    with scratch(discover(str(clone.path))) as made:
        made = checkout(made, head_of(a_nest))
        assert (Path(made.worktree) / "libs/mod/deep/bottom").read_text() == "b\n"
        assert git_in(Path(made.worktree), "status", "--porcelain") == ""
        if kind is shallow:
            assert git_in(Path(made.worktree) / "libs/mod", "rev-list", "--count", "HEAD") == "1"
        made = checkout(made, head_of(a_nest))
        assert changes(made, baseline(made)) == ()
        if kind is shallow:
            return
        made = checkout(made, a_nest.git("rev-parse", "HEAD^"))
        assert made.inner == ()
        assert not (Path(made.worktree) / "libs").exists()


def test_what_the_clone_lacks_is_named_with_the_command_that_brings_it(a_nest: Place) -> None:
    tip = head_of(a_nest)
    a_nest.git("update-index", "--cacheinfo", f"160000,{'1' * 40},libs/mod")
    a_nest.git("commit", "-qm", "moved on")
    modules = a_nest.path / ".git/modules"
    for commit, lost, message, hint in (
        (head_of(a_nest), "none", "submodule libs/mod: commit 1111", "`git -C libs/mod fetch origin 11111"),
        (tip, "the mod/modules", "submodule libs/mod/deep is not in", "update --init --recursive libs/mod`"),
        (tip, "the mod", "submodule libs/mod is not in", "`git submodule update --init libs/mod`"),
    ):
        shutil.rmtree(modules / lost, ignore_errors=True)
        with scratch(discover(str(a_nest.path))) as made, pytest.raises(BadInput, match=message) as caught:
            checkout(made, commit)
        assert hint in caught.value.hint


def test_a_link_in_the_work_tree_leads_to_no_store(a_nest: Place, tmp_path: Path) -> None:
    absorb_nothing(a_nest)
    (a_nest.path / "libs").rename(tmp_path / "libs")
    os.symlink(tmp_path / "libs", a_nest.path / "libs")
    with scratch(discover(str(a_nest.path))) as made, pytest.raises(BadInput, match="submodule libs/mod is not in"):
        checkout(made, head_of(a_nest))


def test_a_submodule_that_is_switched_off_stays_empty_and_is_watched(a_nest: Place) -> None:
    for key, value, empty in (
        ("submodule.the mod.update", "none", True),
        ("submodule.the mod.update", "checkout", False),
        ("submodule.the mod.active", "false", True),
        ("submodule.active", ":(exclude)libs", True),
    ):
        if key == "submodule.active":
            a_nest.attempt("git", "config", "--unset", "submodule.the mod.active")
        a_nest.git("config", key, value)
        with scratch(discover(str(a_nest.path))) as made:
            made = checkout(made, head_of(a_nest))
            work = Path(made.worktree)
            assert (os.listdir(work / "libs/mod") == []) is empty, (key, value)
            assert git_in(work, "status", "--porcelain") == ""
            if empty:
                before = baseline(made)
                edit("libs/mod/planted")(work)
                git_in(work, "init", "-q", "libs/mod")
                assert changes(made, before) == ("libs/mod/.git was made", "new file: libs/mod/planted")


def test_a_gitlink_that_nothing_names_stays_empty_as_in_every_clone(a_repo: Place) -> None:
    a_repo.git("update-index", "--add", "--cacheinfo", f"160000,{head_of(a_repo)},module")
    a_repo.git("commit", "-qm", "module")
    with scratch(discover(str(a_repo.path))) as made:
        made = checkout(made, head_of(a_repo))
        before = baseline(made)
        edit("module/planted")(Path(made.worktree))
        assert changes(made, before) == ("new file: module/planted",)
        assert changes(made, before, outputs=["planted"]) == ()


def gitmodules(*entries: tuple[str, str]) -> str:
    return "".join(f'[submodule "{name}"]\n\tpath = {path}\n\turl = https://x.invalid/\n' for name, path in entries)


HOSTILE = (
    (gitmodules(("../../x", "m")), "m", "would lead elsewhere"),
    (gitmodules(("a/../../x", "m")), "m", "would lead elsewhere"),
    (gitmodules(("/etc", "m")), "m", "would lead elsewhere"),
    (gitmodules(("-x", "m")), "m", "would lead elsewhere"),
    (gitmodules(("x/.GIT", "m")), "m", "would lead elsewhere"),
    (gitmodules((".", "m")), "m", "would lead elsewhere"),
    (gitmodules(("a", "m"), ("b", "m")), "m", "gives m two names: a, b"),
    (gitmodules(("a", "m"), ("A/objects", "n")), "m", "claim one directory"),
    (gitmodules(("m", "m")) + "[broken", "m", "does not parse"),
    (gitmodules(("m", "../m")), "m", ""),
    (gitmodules(("../x", "gone"), ("y", "gone")), "m", ""),
    (gitmodules(("m", "-m")), "-m", ""),
)


def test_a_gitmodules_that_leads_elsewhere_is_refused_and_leads_nowhere(a_repo: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    commit = head_of(a_repo)
    with scratch(discover(str(a_repo.path)), directory=str(outside)) as made:
        for text, path, message in HOSTILE:
            blob = a_repo.git("hash-object", "-w", "--stdin", stdin=text.encode())
            links = [path, "n"] if "A/objects" in text else [path]
            entries = f"100644 blob {blob}\t.gitmodules\n" + "".join(f"160000 commit {commit}\t{n}\n" for n in links)
            tip = a_repo.git("commit-tree", "-m", "hostile", a_repo.git("mktree", "--missing", stdin=entries.encode()))
            with pytest.raises(BadInput, match=message) if message else contextlib.nullcontext():
                shutil.rmtree(checkout(made, tip).inner[0].watch_dir)
            assert os.listdir(Path(made.worktree, path)) == []
            assert sorted(os.listdir(made.root)) == ["scratch.json", "watch", "work"]
            assert not (Path(made.repo.git_dir) / "modules").exists()
    assert os.listdir(outside) == []


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_merge_sees_how_the_commits_of_a_submodule_follow_each_other(known: bool, a_nest: Place) -> None:
    mod = Place(a_nest.path / "libs/mod")
    start, older = head_of(a_nest), mod.commit({"code": "2\n"})
    base = a_nest.commit({})
    newer = mod.commit({"code": "3\n"})
    a_nest.git("switch", "-q", "-c", "topic", start)
    head = a_nest.commit({})
    assert older != newer
    a_nest.git("switch", "-q", "main")
    git_in(a_nest.path, "submodule", "-q", "update")
    if not known:
        shutil.rmtree(a_nest.path / ".git/modules")
    with scratch(discover(str(a_nest.path))) as made:
        outcome = merge(made, base, head)
        assert not Path(made.worktree, ".git/modules").exists()
        if not known:
            assert outcome.conflicts == ("libs/mod",)
            return
        assert outcome.commit
        made = checkout(made, outcome.commit)
        assert Path(made.worktree, "libs/mod/code").read_text() == "3\n"
        assert git_in(Path(made.worktree), "status", "--porcelain") == ""
    a_nest.git("merge", "-q", "--no-ff", "--no-edit", "topic")
    assert outcome.tree == a_nest.git("rev-parse", "HEAD^{tree}")
