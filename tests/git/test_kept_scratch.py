import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitevals.errors import CannotTell
from gitevals.git.repo import Repo, discover
from gitevals.git.scratch import Scratch, checkout, left_behind, remove, scratch
from gitevals.git.scratch_merge import merge
from gitevals.git.watch import baseline, changes
from tests.conftest import Place

KILLED = """
import os, sys
from gitevals.git.repo import discover
from gitevals.git.scratch import scratch
with scratch(discover(sys.argv[1]), directory=sys.argv[2]) as made:
    print(made.root, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), 9)
"""


def start(place: Place, directory: Path) -> "tuple[subprocess.Popen[str], str]":
    """A process in the middle of a scratch, which is killed when its input ends; and the root of the scratch."""
    command = [sys.executable, "-c", KILLED, str(place.path), str(directory)]
    there = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=there)
    assert process.stdout
    return process, process.stdout.readline().strip()


@pytest.fixture
def here(a_repo: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose TMPDIR is its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return discover(str(a_repo.path))


def test_what_a_killed_command_leaves_is_found_and_removed_and_what_runs_is_neither(
    here: Repo, a_repo: Place, tmp_path: Path
) -> None:
    process, root = start(a_repo, tmp_path / "place")
    (running,) = left_behind(here, None)
    assert (running.path, running.running) == (root, True)
    remove(root)
    assert Path(root, "work").is_dir()
    process.communicate()
    (left,) = left_behind(here, None)
    assert (left.path, left.running, left.started) == (root, False, running.started)
    size = sum(file.lstat().st_blocks * 512 for file in Path(root).rglob("*") if not file.is_dir())
    assert left.size_bytes == size > 0
    remove(root)
    assert left_behind(here, None) == ()
    assert os.listdir(tmp_path / "place") == []


def test_a_kept_scratch_is_found_from_every_work_tree_and_by_no_other_repository(here: Repo, tmp_path: Path) -> None:
    with scratch(here, directory=str(tmp_path / "first"), keep=lambda: True) as one:
        pass
    with scratch(here, keep=lambda: True) as two:
        assert [left.running for left in left_behind(here, None)] == [False, True]
    Place(Path(here.worktree or "")).git("worktree", "add", "-q", str(tmp_path / "linked"))
    for repo in (here, discover(str(tmp_path / "linked"))):
        assert [left.path for left in left_behind(repo, str(tmp_path / "unused"))] == [one.root, two.root]
    Place(tmp_path).git("init", "-q", "other")
    assert left_behind(discover(str(tmp_path / "other")), str(tmp_path / "first")) == ()
    memory = Path(here.common_dir, "git-evals/scratch-parents")
    assert memory.read_bytes().split(b"\0") == [str(tmp_path / n).encode() for n in ("first", "tmp")] + [b""]
    memory.unlink()
    assert [left.path for left in left_behind(here, None)] == [two.root]
    assert [left.path for left in left_behind(here, str(tmp_path / "first"))] == [one.root, two.root]


def elsewhere(root: Path) -> None:
    root.rename(root.parent / "precious")


def behind_a_link(root: Path) -> None:
    root.rename(root.parent.parent / "git-evals-precious")
    os.symlink(root.parent.parent / "git-evals-precious", root)


def deeper(root: Path) -> None:
    (root.parent / "git-evals-dir").mkdir()
    root.rename(root.parent / "git-evals-dir" / root.name)


def of_another_user(root: Path) -> None:
    if os.geteuid():  # only root gives a directory away
        shutil.rmtree(root)
    else:
        os.chown(root, 12345, -1)


def marker(content: str | None) -> Callable[[Path], None]:
    def action(root: Path) -> None:
        (root / "scratch.json").unlink()
        if content is not None:
            (root / "scratch.json").write_text(content)

    return action


def marker_behind_a_link(root: Path) -> None:
    (root / "scratch.json").rename(root.parent / "marker")
    os.symlink(root.parent / "marker", root / "scratch.json")


def marker_as_a_pipe(root: Path) -> None:
    (root / "scratch.json").unlink()
    os.mkfifo(root / "scratch.json")


FORGERIES = (
    elsewhere,
    behind_a_link,
    deeper,
    of_another_user,
    marker(None),
    marker(""),
    marker("[]"),
    marker("\0"),
    marker('{"repository": "..", "pid": 1}'),
    marker_behind_a_link,
    marker_as_a_pipe,
)


def test_what_is_no_scratch_of_ours_in_the_place_for_them_is_not_listed(here: Repo, tmp_path: Path) -> None:
    for number, forge in enumerate(FORGERIES):
        place = tmp_path / f"place-{number}/inner"
        with scratch(here, directory=str(place), keep=lambda: True) as made:
            pass
        assert [left.path for left in left_behind(here, str(place))] == [made.root]
        forge(Path(made.root))
        assert left_behind(here, str(place)) == (), forge


def test_what_is_deeper_than_any_stack_is_measured_and_removed(here: Repo) -> None:
    with scratch(here, keep=lambda: True) as kept:
        make_deep(Path(kept.worktree))
    try:
        (left,) = left_behind(here, None)
        assert left.size_bytes > 0
        remove(left.path)
        assert not Path(kept.root).exists()
    finally:  # pytest cannot remove it either
        subprocess.run(["rm", "-rf", kept.root], check=True)


def make_deep(directory: Path) -> None:
    """Directories in one another, more than calls may be."""
    at = os.open(directory, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


def test_without_locks_the_process_and_its_start_decide(here: Repo) -> None:
    with scratch(here, keep=lambda: True) as made:
        pass
    file = Path(made.root, "scratch.json")
    said = json.loads(file.read_text()) | {"locked": False}
    for changed, running in (
        ({}, True),
        ({"process_started": "1"}, False),
        ({"pid": 2**30}, False),
    ):
        file.write_text(json.dumps(said | changed))
        assert [left.running for left in left_behind(here, None)] == [running], changed


@pytest.fixture
def a_small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "false", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system, where it may")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, *, leave_bytes: int) -> Path:
    filler = disk / "filler"
    with filler.open("ab") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - leave_bytes
        file.write(b"\0" * max(free, 0))
    return filler


def put_a_file(scratch: Scratch, tip: str) -> None:
    checkout(scratch, tip)


def merge_it(scratch: Scratch, tip: str) -> None:
    merge(scratch, f"{tip}^", tip)


@pytest.mark.parametrize(
    ("leave_bytes", "sizes", "use"),
    [
        (0, [10], put_a_file),
        pytest.param(8 << 10, [10], put_a_file, marks=pytest.mark.slow),
        (1 << 20, [3 << 20], put_a_file),
        (1 << 20, [3 << 20], merge_it),
        pytest.param(1 << 20, [6000] * 200, put_a_file, marks=pytest.mark.slow),
    ],
)
def test_a_full_disk_is_told_and_leaves_nothing_there(
    leave_bytes: int, sizes: list[int], use: Callable[[Scratch, str], None], a_repo: Place, a_small_disk: Path
) -> None:
    a_repo.commit({str(n): os.urandom(size) for n, size in enumerate(sizes)})
    tip = a_repo.commit({"README": "other\n"})
    filler = fill(a_small_disk, leave_bytes=leave_bytes)
    repo = discover(str(a_repo.path))
    with pytest.raises(CannotTell) as caught, scratch(repo, directory=str(a_small_disk)) as made:
        use(made, tip)
    assert os.strerror(28) in caught.value.message
    assert "evals.scratchDir" in caught.value.hint
    assert os.listdir(a_small_disk) == ([filler.name] if filler.exists() else [])


def test_lfs_content_that_finds_no_room_is_told(a_repo: Place, a_small_disk: Path) -> None:
    content = os.urandom(3 << 20)
    oid = hashlib.sha256(content).hexdigest()
    a_repo.write(f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}", content)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    tip = a_repo.commit({".gitattributes": "big filter=lfs\n", "big": pointer})
    repo = discover(str(a_repo.path))
    with pytest.raises(CannotTell, match=os.strerror(28)), scratch(repo, directory=str(a_small_disk)) as made:
        checkout(made, tip)
    assert os.listdir(a_small_disk) == []


def test_changes_are_judged_on_a_full_disk_and_outputs_that_cannot_be_told_are_named(
    a_repo: Place, a_small_disk: Path
) -> None:
    with scratch(discover(str(a_repo.path)), directory=str(a_small_disk)) as made:
        made = checkout(made, a_repo.git("rev-parse", "HEAD"))
        before = baseline(made)
        work = Path(made.worktree)
        fill(work, leave_bytes=0)
        assert changes(made, before) == ("new file: filler",)
        assert changes(made, before, outputs=["filler"]) == (
            f"cannot tell outputs from other files: {os.strerror(28)}",
        )
        (work / "README").unlink()
        fill(work, leave_bytes=0)
        assert changes(made, before, outputs=["filler"])[0] == "deleted: README"
