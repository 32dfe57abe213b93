import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitevals.errors import BadInput, CannotTell
from gitevals.git.repo import Repo, discover
from gitevals.git.scratch import Scratch, checkout, quoted, scratch
from gitevals.git.scratch_merge import MergeOutcome, merge
from gitevals.git.watch import baseline, changes
from tests.conftest import Place

EVIL = '#!/bin/sh\ntouch "$EVIL_MARK"\nexit 1\n'


def repo_of(place: Place) -> Repo:
    return discover(str(place.path))


@pytest.fixture
def a_tree(a_repo: Place) -> Place:
    """A repository whose commit holds files, a program, a link, ignore rules and attributes."""
    a_repo.write("src/deep/run.sh", "#!/bin/sh\necho hi\n").chmod(0o755)
    os.symlink("one.txt", a_repo.path / "src" / "link")
    a_repo.commit(
        {
            "src/one.txt": "line\nline\n",
            "src/deep/two.txt": "two\n",
            "auto.txt": "a\nb\n",
            ".gitattributes": "auto.txt text=auto\n",
            ".gitignore": "*.ignored\n/out/\n",
            "docs/page": "page\n",
        }
    )
    return a_repo


@pytest.fixture
def a_scratch(a_tree: Place) -> Iterator[Scratch]:
    """A scratch repository with the tip of ``a_tree`` checked out."""
    with scratch(repo_of(a_tree)) as made:
        yield checkout(made, a_tree.git("rev-parse", "HEAD"))


def git_in(work: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(work), *arguments], check=True, capture_output=True)


def edit(work: Path) -> None:
    (work / "src/one.txt").write_text("line\nLINE\n")


def edit_and_reset_the_times(work: Path) -> None:
    before = (work / "src/one.txt").stat()
    edit(work)
    os.utime(work / "src/one.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def edit_under_assume_unchanged(work: Path) -> None:
    git_in(work, "update-index", "--assume-unchanged", "src/one.txt")
    edit(work)


def edit_under_skip_worktree(work: Path) -> None:
    git_in(work, "update-index", "--skip-worktree", "src/one.txt")
    edit(work)


def edit_behind_a_filter(work: Path) -> None:
    git_in(work, "config", "filter.hide.clean", "printf 'line\\nline\\n'")
    (work / ".git/info").mkdir(exist_ok=True)
    (work / ".git/info/attributes").write_text("* filter=hide\n")
    edit(work)


def edit_behind_a_monitor(work: Path) -> None:
    (work / ".git/evil").write_text(EVIL)
    (work / ".git/evil").chmod(0o755)
    git_in(work, "config", "core.fsmonitor", str(work / ".git/evil"))
    git_in(work, "config", "core.hooksPath", str(work / ".git"))
    edit(work)


def edit_only_the_line_ends(work: Path) -> None:
    (work / "auto.txt").write_bytes(b"a\r\nb\r\n")


def clear_a_mode_that_git_ignores(work: Path) -> None:
    git_in(work, "config", "core.fileMode", "false")
    (work / "src/deep/run.sh").chmod(0o644)


def swap_a_file_for_a_link(work: Path) -> None:
    shutil.copy(work / "src/one.txt", work / "copy.ignored")
    (work / "src/one.txt").unlink()
    os.symlink("../copy.ignored", work / "src/one.txt")


def swap_a_link(work: Path) -> None:
    (work / "src/link").unlink()
    os.symlink("deep/two.txt", work / "src/link")


def swap_a_link_for_its_text(work: Path) -> None:
    (work / "src/link").unlink()
    (work / "src/link").write_text("one.txt")


def swap_a_directory_for_a_link(work: Path) -> None:
    (work / "docs").rename(work / "docs.ignored")
    os.symlink("docs.ignored", work / "docs")


def swap_a_file_for_a_directory(work: Path) -> None:
    (work / "docs/page").unlink()
    (work / "docs/page").mkdir()


def swap_a_file_for_a_pipe(work: Path) -> None:
    (work / "docs/page").unlink()
    os.mkfifo(work / "docs/page")


def delete_and_forget(work: Path) -> None:
    git_in(work, "rm", "-q", "docs/page")


def add(name: str, content: str = "x\n") -> Callable[[Path], None]:
    def action(work: Path) -> None:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)

    return action


def hide_by_info_exclude(work: Path) -> None:
    add(".git/info/exclude", "*\n")(work)
    add("hidden")(work)


def hide_by_configured_excludes(work: Path) -> None:
    add(".git/rules", "*\n")(work)
    git_in(work, "config", "core.excludesFile", str(work / ".git/rules"))
    add("hidden")(work)


def hide_by_a_new_gitignore_at_the_top_of_src(work: Path) -> None:
    add("src/.gitignore", "*\n")(work)
    add("src/hidden")(work)


def hide_by_widening_the_tracked_gitignore(work: Path) -> None:
    add(".gitignore", "*\n")(work)
    add("hidden")(work)


def hide_in_a_nested_repository(work: Path) -> None:
    git_in(work, "init", "-q", "src")
    add("src/.git/hidden")(work)


def hide_in_a_new_repository(work: Path) -> None:
    git_in(work, "init", "-q", "fresh")
    add("fresh/hidden")(work)


def commit_something(work: Path) -> None:
    git_in(work, "commit", "-q", "--allow-empty", "-m", "more")


def commit_on_a_branch(work: Path) -> None:
    git_in(work, "checkout", "-q", "-b", "other")
    commit_something(work)


def commit_on_a_packed_branch(work: Path) -> None:
    commit_on_a_branch(work)
    git_in(work, "pack-refs", "--all")


def remove_git(work: Path) -> None:
    shutil.rmtree(work / ".git")


def replace_git(work: Path) -> None:
    (work / ".git").rename(work / "git.ignored")
    shutil.copytree(work / "git.ignored", work / ".git", symlinks=True)


def link_git(work: Path) -> None:
    (work / ".git").rename(work / "git.ignored")
    os.symlink("git.ignored", work / ".git")


def replace_head_by_a_pipe(work: Path) -> None:
    (work / ".git/HEAD").unlink()
    os.mkfifo(work / ".git/HEAD")


def replace_head_by_a_directory(work: Path) -> None:
    (work / ".git/HEAD").unlink()
    (work / ".git/HEAD").mkdir()


def remove_everything(work: Path) -> None:
    shutil.rmtree(work)


def plant_a_monitor_in_our_own_directory(work: Path) -> None:
    with (work.parent / "watch/config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {work}/.git/evil\n")


def plant_a_commondir_in_our_own_directory(work: Path) -> None:
    (work.parent / "watch/commondir").write_text(f"{work}/.git\n")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (edit, {"modified: src/one.txt"}),
        (edit_and_reset_the_times, {"modified: src/one.txt"}),
        (edit_under_assume_unchanged, {"modified: src/one.txt"}),
        (edit_under_skip_worktree, {"modified: src/one.txt"}),
        (edit_behind_a_filter, {"modified: src/one.txt"}),
        (edit_behind_a_monitor, {"modified: src/one.txt"}),
        (edit_only_the_line_ends, {"modified: auto.txt"}),
        (clear_a_mode_that_git_ignores, {"mode changed: src/deep/run.sh"}),
        (swap_a_file_for_a_link, {"replaced by a symbolic link: src/one.txt"}),
        (swap_a_link, {"modified: src/link"}),
        (swap_a_link_for_its_text, {"replaced by a file: src/link"}),
        (swap_a_directory_for_a_link, {"deleted: docs/page", "new file: docs"}),
        (swap_a_file_for_a_directory, {"replaced by a directory: docs/page"}),
        (swap_a_file_for_a_pipe, {"replaced by a special file: docs/page"}),
        (delete_and_forget, {"deleted: docs/page"}),
        (add("new"), {"new file: new"}),
        (add('docs/odd\n\x1b[31m"name'), {'new file: "docs/odd\\012\\033[31m\\042name"'}),
        (hide_by_info_exclude, {"new file: hidden"}),
        (hide_by_configured_excludes, {"new file: hidden"}),
        (hide_by_a_new_gitignore_at_the_top_of_src, {"new file: src/.gitignore"}),
        (hide_by_widening_the_tracked_gitignore, {"modified: .gitignore"}),
        (hide_in_a_nested_repository, {"new file: src/.git"}),
        (hide_in_a_new_repository, {"new file: fresh/"}),
        (remove_git, {".git was replaced or removed"}),
        (replace_git, {".git was replaced or removed"}),
        (link_git, {".git was replaced or removed"}),
        (replace_head_by_a_pipe, {"HEAD is unreadable"}),
        (replace_head_by_a_directory, {"HEAD is unreadable"}),
        (add(".git/HEAD", "ref: refs/heads/none\n"), {"HEAD is unreadable"}),
        (add(".git/HEAD", "ref: ../../elsewhere\n"), {"HEAD is unreadable"}),
        (remove_everything, {"the work tree was replaced or removed"}),
        (plant_a_monitor_in_our_own_directory, {"our own records beside the work tree were altered"}),
        (plant_a_commondir_in_our_own_directory, {"our own records beside the work tree were altered"}),
    ],
)
def test_whatever_a_check_changes_is_seen_however_it_hides(
    action: Callable[[Path], None],
    expected: set[str],
    a_scratch: Scratch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = baseline(a_scratch)
    action(Path(a_scratch.worktree))
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "evil"))
    found = changes(a_scratch, before)
    noise = {line for line in found if "git.ignored" in line}
    assert set(found) - noise == expected
    assert len(found) == len(set(found))
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("action", [commit_something, commit_on_a_branch, commit_on_a_packed_branch])
def test_a_moved_head_is_seen(action: Callable[[Path], None], a_scratch: Scratch) -> None:
    before = baseline(a_scratch)
    action(Path(a_scratch.worktree))
    now = subprocess.check_output(["git", "-C", a_scratch.worktree, "rev-parse", "HEAD"], text=True).strip()
    assert changes(a_scratch, before) == (f"HEAD moved to {now}",)


def touch_everything(work: Path) -> None:
    for path in work.rglob("*.txt"):
        os.utime(path, (1, 1))


def attach_a_branch(work: Path) -> None:
    git_in(work, "checkout", "-q", "-b", "here")


def make_a_cache_that_ignores_itself(work: Path) -> None:
    add(".pytest_cache/.gitignore", "*\n")(work)
    add(".pytest_cache/v/cache/lastfailed")(work)


@pytest.mark.parametrize(
    "action",
    [
        touch_everything,
        attach_a_branch,
        make_a_cache_that_ignores_itself,
        add("docs/x.ignored"),
        add("out/built"),
        add(".git/index", "broken"),
        lambda work: (work / "empty").mkdir(),
        lambda work: (work / "src/one.txt").chmod(0o600),
    ],
)
def test_what_leaves_the_source_as_it_was_is_no_change(action: Callable[[Path], object], a_scratch: Scratch) -> None:
    before = baseline(a_scratch)
    action(Path(a_scratch.worktree))
    assert changes(a_scratch, before) == ()


@pytest.mark.parametrize(
    ("new", "outputs", "left"),
    [
        ("build/deep/a.o", ["build/"], False),
        ("src/build/a.o", ["build/"], False),
        ("src/build/a.o", ["/build/"], True),
        ("src/__pycache__/a.pyc", ["**/__pycache__/"], False),
        ("src/a.log", ["*.log"], False),
        ("src/a.log", ["src/*.txt", "*.lo"], True),
        ("report.xml", ["*", "!report.xml"], True),
        ("src/.gitignore", ["*"], True),
        ("src/.gitignore", [".gitignore"], True),
    ],
)
def test_outputs_admit_new_files_as_ignore_patterns_do(
    new: str, outputs: list[str], left: bool, a_scratch: Scratch
) -> None:
    before = baseline(a_scratch)
    add(new)(Path(a_scratch.worktree))
    assert changes(a_scratch, before, outputs=outputs) == ((f"new file: {new}",) if left else ())


def test_outputs_never_admit_a_change_of_a_tracked_file(a_scratch: Scratch) -> None:
    before = baseline(a_scratch)
    edit(Path(a_scratch.worktree))
    assert changes(a_scratch, before, outputs=["*"]) == ("modified: src/one.txt",)


def test_the_baseline_is_what_stood_there_when_it_was_taken(a_scratch: Scratch) -> None:
    work = Path(a_scratch.worktree)
    edit(work)
    add("made/by-setup")(work)
    add("made/later-removed")(work)
    before = baseline(a_scratch)
    assert changes(a_scratch, before) == ()
    add("made/by-setup", "else\n")(work)
    (work / "made/later-removed").unlink()
    add("made/.gitignore", "*\n")(work)
    add("src/one.txt", "line\nline\n")(work)
    assert changes(a_scratch, before) == (
        "new file: made/.gitignore",
        "modified: made/by-setup",
        "deleted: made/later-removed",
        "modified: src/one.txt",
    )
    assert changes(a_scratch, before, outputs=["made/"]) == ("modified: src/one.txt",)


def widen(work: Path) -> None:
    add(".gitignore", "*.ignored\n/out/\n*\n")(work)


@pytest.mark.parametrize(
    ("before_the_baseline", "path"), [(add("src/.gitignore", "*\n"), "src/.gitignore"), (widen, ".gitignore")]
)
def test_ignore_rules_that_are_not_the_commits_are_told_each_time(
    before_the_baseline: Callable[[Path], None], path: str, a_scratch: Scratch
) -> None:
    before_the_baseline(Path(a_scratch.worktree))
    before = baseline(a_scratch)
    add("src/hidden")(Path(a_scratch.worktree))
    assert changes(a_scratch, before) == (f"ignore rules are not the commit's: {path}",)


def test_patterns_planted_beside_the_work_tree_admit_nothing(a_scratch: Scratch) -> None:
    before = baseline(a_scratch)
    for planted in ("empty/.gitignore", "outputs", "rules", "none/git/ignore"):
        add(f"../{planted}", "*\n")(Path(a_scratch.worktree))
    add("new")(Path(a_scratch.worktree))
    assert changes(a_scratch, before, outputs=["build/"]) == ("new file: new",)


def test_the_checkout_is_detached_and_equal_to_the_tree(a_scratch: Scratch, a_tree: Place) -> None:
    assert a_scratch.commit == a_tree.git("rev-parse", "HEAD")
    assert a_scratch.repo.text("status", "--porcelain", "--ignored") == ""
    assert (Path(a_scratch.worktree) / ".git/HEAD").read_text().strip() == a_scratch.commit
    assert os.readlink(Path(a_scratch.worktree) / "src/link") == "one.txt"
    assert os.access(Path(a_scratch.worktree) / "src/deep/run.sh", os.X_OK)


def test_content_that_breaks_its_own_attributes_still_checks_out(a_repo: Place) -> None:
    a_repo.commit({"id.txt": "$Id: stale $\n", "ok.bat": "a\nb\n"})
    a_repo.commit({".gitattributes": "crlf.txt text\nid.txt ident\n*.bat text eol=crlf\n"})
    blob = a_repo.git("hash-object", "-w", "--stdin", "--no-filters", stdin=b"a\r\nb\n")
    a_repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},crlf.txt")
    a_repo.git("commit", "-qm", "broken on purpose")
    head = a_repo.git("rev-parse", "HEAD")
    with scratch(repo_of(a_repo)) as made:
        made = checkout(made, head)
        assert (Path(made.worktree) / "crlf.txt").read_bytes() == b"a\r\nb\n"
        assert (Path(made.worktree) / "ok.bat").read_bytes() == b"a\r\nb\r\n"
        edit_unseen_by_git(Path(made.worktree), "crlf.txt", b"a\r\nB\n")
        with pytest.raises(CannotTell, match=r"differs from its tree: crlf\.txt"):
            checkout(made, head)


def edit_unseen_by_git(work: Path, name: str, content: bytes) -> None:
    """Content of the same length under the old time stamp, with an index so new that git trusts the stamp."""
    before = (work / name).stat()
    (work / name).write_bytes(content)
    os.utime(work / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    git_in(work, "config", "core.trustctime", "false")
    os.utime(work / ".git/index", (before.st_mtime + 100, before.st_mtime + 100))


def test_a_leftover_file_spoils_the_proof(a_scratch: Scratch) -> None:
    add("docs/left.ignored")(Path(a_scratch.worktree))
    with pytest.raises(CannotTell, match=r"differs from its tree: docs/left\.ignored"):
        checkout(a_scratch, a_scratch.commit)


def test_nothing_of_the_users_configuration_reaches_the_scratch(a_tree: Place, sealed: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.write_text(EVIL)
    evil.chmod(0o755)
    for key, value in {
        "core.autocrlf": "true",
        "core.hooksPath": str(tmp_path),
        "core.fsmonitor": str(evil),
        "init.templateDir": str(tmp_path),
        "commit.gpgSign": "true",
        "filter.x.smudge": "rev",
    }.items():
        a_tree.git("config", "--global", key, value)
    (tmp_path / "post-checkout").write_text(EVIL)
    (tmp_path / "post-checkout").chmod(0o755)
    (sealed / ".config/git").mkdir(parents=True)
    (sealed / ".config/git/attributes").write_text("* text eol=crlf filter=x\n")
    inherited = {**os.environ, "EVIL_MARK": str(tmp_path / "mark"), "GIT_CONFIG_PARAMETERS": "'core.eol'='crlf'"}
    with scratch(discover(str(a_tree.path), inherited)) as made:
        made = checkout(made, a_tree.git("rev-parse", "HEAD"))
        assert (Path(made.worktree) / "auto.txt").read_bytes() == b"a\nb\n"
        assert (Path(made.worktree) / "docs/page").read_bytes() == b"page\n"
        assert not (tmp_path / "mark").exists()
        assert not (Path(made.worktree) / ".git/post-checkout").exists()
        assert not (Path(made.worktree) / ".git/hooks").exists()
        assert made.repo.text("remote") == ""


def everything_in(place: Place) -> dict[str, str]:
    """Every file of a repository and its work tree with a digest, times left out, and so is where scratches stood."""
    return {
        str(path.relative_to(place.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.path.rglob("*"))
        if path.is_file() and path.name != "scratch-parents"
    }


def test_the_users_repository_is_left_exactly_as_it_was(a_tree: Place) -> None:
    base, head = two_branches(a_tree, {"base": "b\n"}, {"head": "h\n"})
    a_tree.write("uncommitted", "mine\n")
    before = everything_in(a_tree)
    with scratch(repo_of(a_tree)) as made:
        outcome = merge(made, base, head)
        assert outcome.commit
        made = checkout(made, outcome.commit)
        start = baseline(made)
        git_in(Path(made.worktree), "commit", "-q", "--allow-empty", "-m", "x")
        git_in(Path(made.worktree), "gc", "-q", "--prune=now")
        assert changes(made, start)
        root = Path(made.root)
    assert everything_in(a_tree) == before
    assert not root.exists()


def test_tags_and_history_serve_git_describe(a_tree: Place) -> None:
    a_tree.git("tag", "-a", "-m", "one", "v1.0")
    a_tree.git("pack-refs", "--all")
    a_tree.git("tag", "light/tag")
    head = a_tree.commit({"more": "x\n"})
    expected = a_tree.git("describe", "--long", head)
    with scratch(repo_of(a_tree)) as made:
        made = checkout(made, head)
        assert made.repo.text("describe", "--long") == expected
        assert made.repo.text("tag").splitlines() == ["light/tag", "v1.0"]
        git_in(Path(made.worktree), "tag", "new")
        git_in(Path(made.worktree), "fsck")
    assert a_tree.git("tag").splitlines() == ["light/tag", "v1.0"]


@pytest.fixture
def a_shallow_clone(a_tree: Place, tmp_path: Path) -> Place:
    """A clone of ``a_tree`` with a history of one commit."""
    a_tree.git("clone", "-q", "--depth=1", f"file://{a_tree.path}", str(tmp_path / "shallow"))
    return Place(tmp_path / "shallow")


def test_a_shallow_boundary_is_kept(a_shallow_clone: Place) -> None:
    with scratch(repo_of(a_shallow_clone)) as made:
        made = checkout(made, a_shallow_clone.git("rev-parse", "HEAD"))
        assert made.repo.text("rev-list", "--count", "HEAD") == "1"


def test_a_commit_that_is_not_here_names_the_way_to_get_it(a_tree: Place, a_shallow_clone: Place) -> None:
    with scratch(repo_of(a_shallow_clone)) as made:
        with pytest.raises(BadInput, match="is not in the repository") as caught:
            checkout(made, a_tree.git("rev-parse", "HEAD^"))
        assert "--unshallow" in caught.value.hint


def test_a_head_that_is_not_here_is_bad_input_for_a_merge_too(a_tree: Place, a_shallow_clone: Place) -> None:
    with scratch(repo_of(a_shallow_clone)) as made, pytest.raises(BadInput, match="is not in the repository"):
        merge(made, a_tree.git("rev-parse", "HEAD"), a_tree.git("rev-parse", "HEAD^"))


def test_missing_content_is_bad_input(a_tree: Place) -> None:
    blob = a_tree.git("rev-parse", "HEAD:docs/page")
    (a_tree.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with scratch(repo_of(a_tree)) as made, pytest.raises(BadInput, match="1 objects of commit"):
        checkout(made, a_tree.git("rev-parse", "HEAD"))


@pytest.mark.parametrize("object_format", ["sha256"], indirect=True)
def test_a_sha256_repository_works_the_same(a_tree: Place) -> None:
    base, head = two_branches(a_tree, {"base": "b\n"}, {"head": "h\n"})
    with scratch(repo_of(a_tree)) as made:
        outcome = merge(made, base, head)
        assert outcome.commit
        assert len(outcome.commit) == 64
        made = checkout(made, outcome.commit)
        before = baseline(made)
        commit_something(Path(made.worktree))
        assert changes(made, before)[0].startswith("HEAD moved to ")


def test_a_linked_worktree_and_borrowed_objects_are_followed(a_tree: Place, tmp_path: Path) -> None:
    a_tree.git("clone", "-q", "--shared", str(a_tree.path), str(tmp_path / "borrower"))
    borrower = Place(tmp_path / "borrower")
    borrower.git("worktree", "add", "-q", "--detach", str(tmp_path / 'wt: "odd"'))
    linked = Place(tmp_path / 'wt: "odd"')
    head = linked.commit({"linked": "x\n"})
    with scratch(repo_of(linked)) as made:
        made = checkout(made, head)
        assert (Path(made.worktree) / "docs/page").read_text() == "page\n"


@pytest.mark.parametrize("name", ["incoming", 'in:com"ing', "in\\com\ning\udcff"])
def test_objects_in_quarantine_are_read_and_the_refs_still_move(name: str, a_tree: Place, tmp_path: Path) -> None:
    incoming, normal = tmp_path / name, a_tree.path / ".git/objects"
    incoming.mkdir()
    strange = tmp_path / ("alternate " + name)
    strange.mkdir()
    listed = f"{c_quoted(str(strange))}:{normal}"
    env = {"GIT_OBJECT_DIRECTORY": str(incoming), "GIT_ALTERNATE_OBJECT_DIRECTORIES": listed}
    blob = a_tree.git("hash-object", "-w", "--stdin", stdin=b"q\n", env={"GIT_OBJECT_DIRECTORY": str(strange)})
    tree = a_tree.git("mktree", stdin=f"100644 blob {blob}\tfile\n".encode(), env=env)
    head = a_tree.git("commit-tree", "-m", "pushed", "-p", "HEAD", tree, env=env)
    quarantine = {**os.environ, **env, "GIT_QUARANTINE_PATH": str(incoming), "GIT_DIR": str(a_tree.path / ".git")}
    with scratch(discover(str(a_tree.path), quarantine)) as made:
        made = checkout(made, head)
        assert (Path(made.worktree) / "file").read_text() == "q\n"


def c_quoted(path: str) -> str:
    named = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{named}"'.replace("\udcff", "\\377")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("plain/näme.txt", "plain/näme.txt"),
        ("a b", "a b"),
        ("a\tb", '"a\\011b"'),
        ('a"\\b', '"a\\042\\134b"'),
        ("a\udcffb", '"a\\377b"'),
        ("a\u202eb", '"a\\342\\200\\256b"'),
    ],
)
def test_a_path_is_shown_without_what_could_mislead(path: str, shown: str) -> None:
    assert quoted(path) == shown


def test_a_scratch_directory_is_kept_only_on_request(a_tree: Place, tmp_path: Path) -> None:
    wanted: list[bool] = []
    with scratch(repo_of(a_tree), directory=str(tmp_path / "a/b"), keep=lambda: bool(wanted)) as made:
        assert Path(made.root).parent == tmp_path / "a/b"
        wanted.append(True)
    assert Path(made.worktree).is_dir()
    with pytest.raises(KeyError), scratch(repo_of(a_tree), directory=str(tmp_path / "a/b")) as made:
        raise KeyError
    assert os.listdir(tmp_path / "a/b") != []
    assert not Path(made.root).exists()


def test_tmpdir_is_the_default_place(a_tree: Place, tmp_path: Path) -> None:
    with scratch(discover(str(a_tree.path), {**os.environ, "TMPDIR": str(tmp_path / "tmp")})) as made:
        assert Path(made.root).parent == tmp_path / "tmp"


@pytest.mark.parametrize("inside", [".", "sub/dir", ".git", ".git/tmp"])
def test_no_scratch_below_a_work_tree(inside: str, a_tree: Place, tmp_path: Path) -> None:
    a_tree.git("init", "-q", "--bare", str(tmp_path / "bare"))
    bare = discover(str(tmp_path / "bare"))
    before = everything_in(a_tree)
    with (
        pytest.raises(BadInput, match="lies in the work tree") as caught,
        scratch(bare, directory=str(a_tree.path / inside)),
    ):
        pass
    assert "evals.scratchDir" in caught.value.hint
    assert everything_in(a_tree) == before


def test_no_scratch_below_a_linked_worktree_or_through_a_link(a_tree: Place, tmp_path: Path) -> None:
    a_tree.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    os.symlink(tmp_path / "linked/docs", tmp_path / "alias")
    with pytest.raises(BadInput), scratch(repo_of(a_tree), directory=str(tmp_path / "alias/x")):
        pass


def test_a_place_that_cannot_be_used_is_bad_input(a_tree: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot use"), scratch(repo_of(a_tree), directory=str(tmp_path / "file")):
        pass


REMOVAL = """
import os, sys
from gitevals.git.scratch import remove
root = sys.argv[1]
os.makedirs(root + "/work/locked/inner")
open(root + "/work/locked/inner/file", "w").close()
os.symlink(sys.argv[2], root + "/work/locked/outside")
os.chmod(root + "/work/locked/inner", 0)
os.chmod(root + "/work/locked", 0o500)
os.chmod(root + "/work", 0o500)
remove(root)
"""


def test_read_only_parts_are_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine\n")
    outside.chmod(0o550)
    command = [sys.executable, "-c", REMOVAL, str(tmp_path / "root"), str(outside)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root removes anything and setpriv is not here to take that power away")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    assert not (tmp_path / "root").exists()
    assert (outside / "file").read_text() == "mine\n"
    assert outside.stat().st_mode & 0o777 == 0o550


def test_the_whole_course_starts_few_processes(a_tree: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    start = subprocess.Popen.__init__

    def counting(self: "subprocess.Popen[bytes]", command: object, **options: object) -> None:
        started.append(command)
        start(self, command, **options)  # type: ignore[call-overload]

    repo = repo_of(a_tree)
    head = a_tree.git("rev-parse", "HEAD")
    monkeypatch.setattr(subprocess.Popen, "__init__", counting)
    with scratch(repo) as made:
        made = checkout(made, head)
        assert changes(made, baseline(made)) == ()
    assert len(started) <= 8


def two_branches(
    place: Place, ours: dict[str, str | bytes], theirs: dict[str, str | bytes], *, rename: tuple[str, str] | None = None
) -> tuple[str, str]:
    """``(base, head)``: two commits over the current one, the first on ``main``; ``rename`` happens in the base."""
    place.git("checkout", "-q", "-b", "topic")
    head = place.commit(theirs, "theirs")
    place.git("checkout", "-q", "main")
    if rename:
        place.git("mv", *rename)
    return place.commit(ours, "ours"), head


def merged(place: Place, base: str, head: str, read: str = "") -> tuple[MergeOutcome, bytes]:
    """The outcome and, if it is clean, the content of one file of the merged tree."""
    with scratch(repo_of(place)) as made:
        outcome = merge(made, base, head)
        if outcome.commit:
            made = checkout(made, outcome.commit)
        return outcome, (Path(made.worktree) / read).read_bytes() if read else b""


def test_a_clean_merge_is_gits_own_and_the_same_each_time(a_tree: Place) -> None:
    base, head = two_branches(a_tree, {"base": "b\n"}, {"head": "h\n"})
    first, content = merged(a_tree, base, head, "head")
    again, _ = merged(a_tree, base, head)
    a_tree.git("merge", "-q", "--no-ff", "--no-edit", head)
    assert first == again
    assert content == b"h\n"
    assert first.tree == a_tree.git("rev-parse", "HEAD^{tree}")
    assert first.base_tree == a_tree.git("rev-parse", f"{base}^{{tree}}")
    assert (first.conflicts, first.message, first.custom_drivers) == ((), "", ())


def test_the_merge_commit_depends_on_its_parents_alone(a_tree: Place) -> None:
    base, head = two_branches(a_tree, {"base": "b\n"}, {"head": "h\n"})
    with scratch(repo_of(a_tree)) as made:
        outcome = merge(made, base, head)
        shown = made.repo.text("show", "-s", "--format=%P%n%an <%ae> %at%n%ct%n%B", outcome.commit or "").splitlines()
    date = a_tree.git("show", "-s", "--format=%ct", head)
    assert shown[:2] == [f"{base} {head}", f"git-evals <scratch@git-evals.invalid> {date}"]
    assert shown[2:4] == [date, f"Merge {head} into {base}"]


def test_conflicts_name_every_path_as_it_is(a_repo: Place) -> None:
    names = ["plain", 'od\nd "na\tme"', "bytes-\udcff", "spa ce/ü"]
    a_repo.commit(dict.fromkeys(names, "0\n"))
    base, head = two_branches(a_repo, dict.fromkeys(names, "1\n"), dict.fromkeys(names, "2\n"))
    outcome, _ = merged(a_repo, base, head)
    assert outcome.conflicts == tuple(sorted(names))
    assert (outcome.commit, outcome.tree) == (None, None)


def test_a_scratch_is_good_for_a_checkout_after_a_conflict(a_tree: Place) -> None:
    base, head = two_branches(a_tree, {"docs/page": "1\n", "x": "file\n"}, {"docs/page": "2\n", "x/y": "directory\n"})
    with scratch(repo_of(a_tree)) as made:
        assert "docs/page" in merge(made, base, head).conflicts
        made = checkout(made, base)
        assert changes(made, baseline(made)) == ()
        assert made.repo.run("rev-parse", "-q", "--verify", "MERGE_HEAD", accept=(0, 1)).status == 1


def test_a_rename_is_followed(a_repo: Place) -> None:
    a_repo.commit({"old": "a\nb\nc\nd\ne\nf\n"})
    base, head = two_branches(a_repo, {}, {"old": "a\nb\nc\nd\ne\nF\n"}, rename=("old", "new"))
    outcome, content = merged(a_repo, base, head, "new")
    assert outcome.commit
    assert content.endswith(b"e\nF\n")


def test_a_file_added_to_a_renamed_directory_is_a_conflict_as_git_says(a_repo: Place) -> None:
    a_repo.commit({f"old/{name}": f"{name}\n" * 5 for name in "abc"})
    base, head = two_branches(a_repo, {}, {"old/added": "x\n"}, rename=("old", "new"))
    outcome, _ = merged(a_repo, base, head)
    assert outcome.commit is None
    assert outcome.conflicts == ("new/added",)


def test_the_union_driver_of_the_base_is_used(a_repo: Place) -> None:
    a_repo.commit({"log": "0\n", ".gitattributes": "log merge=union\n"})
    base, head = two_branches(a_repo, {"log": "0\n1\n"}, {"log": "0\n2\n"})
    outcome, content = merged(a_repo, base, head, "log")
    assert sorted(content.split()) == [b"0", b"1", b"2"]
    assert outcome.custom_drivers == ()


def test_the_attributes_are_those_of_the_base_not_of_the_head(a_repo: Place) -> None:
    a_repo.commit({"log": "0\n"})
    base, head = two_branches(a_repo, {"log": "0\n1\n"}, {"log": "0\n2\n", ".gitattributes": "log merge=union\n"})
    outcome, _ = merged(a_repo, base, head)
    assert outcome.conflicts == ("log",)


def test_a_custom_driver_is_named_and_not_run(a_repo: Place, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    a_repo.git("config", "--global", "merge.mine.driver", f"touch {mark}; exit 0")
    a_repo.git("config", "merge.mine.driver", f"touch {mark}; exit 0")
    a_repo.commit({"log": "0\n", ".gitattributes": "# x merge=no\nlog merge=mine\n*.png merge=binary -text\n"})
    a_repo.commit({"sub/.gitattributes": "[attr]macro merge=other\n", "sub/plain": "* merge=unread\n"})
    base, head = two_branches(a_repo, {"log": "1\n"}, {"log": "2\n"})
    outcome, _ = merged(a_repo, base, head)
    assert outcome.custom_drivers == ("mine", "other")
    assert outcome.conflicts == ("log",)
    assert not mark.exists()


def test_unrelated_histories_say_so(a_tree: Place) -> None:
    base = a_tree.git("rev-parse", "HEAD")
    head = a_tree.git("commit-tree", "-m", "alone", "HEAD^{tree}")
    outcome, _ = merged(a_tree, base, head)
    assert (outcome.commit, outcome.conflicts, outcome.message) == (None, (), "no common history")


def test_a_head_that_is_already_there_makes_no_commit(a_tree: Place) -> None:
    base, older = a_tree.git("rev-parse", "HEAD"), a_tree.git("rev-parse", "HEAD^")
    outcome, _ = merged(a_tree, base, older)
    assert (outcome.commit, outcome.message) == (None, "already merged")
