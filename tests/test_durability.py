"""What was acknowledged is on disk, in the order that a loss of power asks for; a disk that takes nothing is told."""

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitevals.git import ledger, trees
from gitevals.git.objects import NewObject
from gitevals.git.packs import KEEP_PACK_FROM
from gitevals.git.store import Implementation, opened
from tests.conftest import Place, evals, with_task_branch
from tests.git import EVERY_STORE, assert_sound, repo_of
from tests.test_crash import assert_whole

ROOT = Path(__file__).parents[1]
REF = "refs/notes/evals/writer"
SYNCED = ("fsync", "fdatasync")
SMALL_DISK_KIB = 6144

# Adds files to a ledger, as many as are asked for, and tells the new tip.
WRITER = f"""
import sys
sys.path[:] = {[str(ROOT), *sys.path]!r}
from gitevals.git import ledger, objects, repo, store, trees
using, count = sys.argv[1:]
here = repo.discover()
with store.opened(here, using) as opened:
    def edit(tree):
        names = [f"{{number:040x}}" for number in range(int(count))]
        blobs = opened.write_many([objects.NewObject("blob", name.encode()) for name in names])
        return trees.edit(opened, tree, dict(zip(names, blobs)))
    print(ledger.advance(here, opened, {REF!r}, repository="none", edit=edit))
"""


def traced(place: Place, *arguments: str) -> list[tuple[str, str]]:
    """What a writer had the system do, in the order in which it was done: (call, the rest of the line)."""
    log = place.path.with_name("trace")
    calls = "trace=fsync,fdatasync,rename,renameat,renameat2"
    done = place.attempt(
        "strace", "-f", "-y", "-qq", "-e", calls, "-o", str(log), sys.executable, "-S", "-c", WRITER, *arguments
    )
    if not log.exists() or b"PTRACE" in done.stderr:
        pytest.skip(f"nothing can be traced here: {done.stderr.decode().strip()}")
    assert done.returncode == 0, done.stderr.decode()
    begun: dict[str, tuple[str, str]] = {}
    found = []
    for row in log.read_text().splitlines():
        process, _, rest = row.partition(" ")
        rest = rest.strip()
        if rest.startswith("<..."):
            found.append(begun.pop(process))
        elif "(" in rest:
            name, _, said = rest.partition("(")
            if rest.endswith("<unfinished ...>"):
                begun[process] = (name, said)
            else:
                found.append((name, said))
    return found


def index_of(calls: list[tuple[str, str]], names: tuple[str, ...], pattern: str) -> int:
    found = [number for number, (name, said) in enumerate(calls) if name in names and re.search(pattern, said)]
    assert found, f"no {names} of {pattern} in {calls}"
    return found[-1]


def test_where_no_thread_can_be_had_a_write_goes_on_without(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    repo = repo_of(a_repo)
    monkeypatch.setattr(threading.Thread, "start", refused)
    with opened(repo) as objects:
        names = [f"{number:040x}" for number in range(3)]

        def edit(tree: str | None) -> str:
            blobs = objects.write_many([NewObject("blob", name.encode()) for name in names])
            return trees.edit(objects, tree, dict(zip(names, blobs, strict=True)))

        tip = ledger.advance(repo, objects, REF, repository="none", edit=edit)
    assert a_repo.git("rev-parse", REF) == tip


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("setting", ["", "none"])
@EVERY_STORE
def test_objects_are_on_disk_before_the_ref_moves_and_the_move_before_it_is_told(
    a_repo: Place, using: Implementation, setting: str
) -> None:
    if setting:
        a_repo.git("config", "core.fsync", setting)
    for count in (3, KEEP_PACK_FROM):
        calls = traced(a_repo, using, str(count))
        moved = index_of(calls, ("rename", "renameat", "renameat2"), rf'{REF}\.lock"')
        assert index_of(calls, SYNCED, rf"{REF}\.lock>") < moved
        assert moved < index_of(calls, SYNCED, f"{os.path.dirname(REF)}>")
        new = a_repo.git("rev-list", "--objects", REF, *(["--not", f"{REF}~1"] if count > 3 else []))
        files = [a_repo.path / ".git/objects" / line[:2] / line[2:].split(" ")[0] for line in new.split("\n")]
        for file in files:
            if file.exists():
                assert index_of(calls, SYNCED, f"objects/{file.parent.name}/{file.name}>") < moved
        if count >= KEEP_PACK_FROM:
            assert index_of(calls, SYNCED, "pack/tmp_pack_") < moved
            assert index_of(calls, SYNCED, "pack/tmp_idx_") < moved
        else:
            assert all(file.exists() for file in files)


def as_root(*command: str) -> None:
    """A command that only a privileged user may give; who may not skips the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{command[0]}: {done.stderr.decode().strip()}")


@pytest.fixture
def a_small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    as_root("mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_KIB}k", "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def filled(disk: Path, left_kib: int) -> None:
    """Fill the disk up to so much."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            file.truncate(file.tell() // 4096 * 4096 - left_kib * 1024)


WRITING = [
    ("freeze", "42"),
    ("run", "42", "--branch", "task/42", "--quiet"),
    ("merge", "task/42", "--quiet"),
    ("hooks", "install"),
    ("init",),
]
EVERY_WRITING = pytest.mark.parametrize("command", WRITING, ids=lambda command: command[0])


def assert_told(code: int, out: str, err: str) -> None:
    assert code == 3, (out, err)
    assert "Traceback" not in out + err
    assert err.count("git-evals: ") == 1, err
    assert "hint: " in err, err


@pytest.mark.slow
@EVERY_WRITING
@pytest.mark.parametrize("scratch", ["elsewhere", "there too"])
def test_a_full_disk_is_told_in_one_message_and_leaves_nothing_half_done(
    command: tuple[str, ...], scratch: str, a_project: Place, a_small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scratch == "there too":
        monkeypatch.setenv("TMPDIR", str(a_small_disk))
        monkeypatch.setattr("tempfile.tempdir", None)
    with_task_branch(a_project)
    if command == ("init",):
        a_project.git("rm", "-q", ".gitevals.yaml")
        a_project.commit()
    place = Place(a_small_disk / "project")
    codes = []
    for left_kib in (0, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512):
        shutil.rmtree(place.path, ignore_errors=True)
        shutil.copytree(a_project.path, place.path, symlinks=True)
        filled(a_small_disk, left_kib)
        answer = evals(place, *command)
        (a_small_disk / "filler").unlink()
        assert_sound(place)
        assert_whole(place)
        codes.append(answer.code)
        if answer.code != 0:
            assert_told(answer.code, answer.out, answer.err)
            again = evals(place, *command)
            assert again.code == 0, (left_kib, answer, again)
    assert codes[0] == 3


@pytest.mark.slow
@EVERY_WRITING
def test_a_file_system_that_is_read_only_is_told_in_one_message(
    command: tuple[str, ...], a_project: Place, a_small_disk: Path
) -> None:
    with_task_branch(a_project)
    if command == ("init",):
        a_project.git("rm", "-q", ".gitevals.yaml")
        a_project.commit()
    place = Place(a_small_disk / "project")
    shutil.copytree(a_project.path, place.path, symlinks=True)
    as_root("mount", "-o", "remount,ro", str(a_small_disk))
    answer = evals(place, *command)
    assert_told(answer.code, answer.out, answer.err)


@pytest.mark.parametrize("blocks", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_limit_on_what_may_be_written_is_told_in_one_message(blocks: int, a_project: Place) -> None:
    limited = f'ulimit -f {blocks}; exec "$0" -m gitevals freeze 42'
    done = a_project.attempt("sh", "-c", limited, sys.executable, env={"PYTHONPATH": str(ROOT)})
    if done.returncode == 0:
        assert blocks
    else:
        assert_told(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert_whole(a_project)


def test_a_device_that_fails_is_told_and_no_ref_moves(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    answer = evals(a_project, "freeze", "42")
    assert_told(answer.code, answer.out, answer.err)
    assert "Input/output error" in answer.err
    assert a_project.git("for-each-ref", "refs/evals") == ""


def test_a_reader_needs_no_turn_to_write(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with_task_branch(a_project)
    assert evals(a_project, "run", "42", "--branch", "task/42", "--quiet").code == 0
    monkeypatch.setattr(ledger, "TURN_SECONDS", 0)
    with ledger.locked(repo_of(a_project)):
        for command in ("status 42", "tasks", "log", "report 42", "show task/42", "contract 42", "verify --task 42"):
            answer = evals(a_project, *command.split(), *(["--branch", "task/42"] if "verify" in command else []))
            assert answer.code == 0, answer
        assert evals(a_project, "freeze", "43").code == 3
