import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitevals.errors import CannotTell
from gitevals.git.lfs import parsed
from gitevals.git.repo import discover
from gitevals.git.scratch import checkout, scratch
from gitevals.git.watch import baseline, changes
from tests.conftest import Place

BIG = b"big\r\n\0" * 3000
OTHER = b"#!/bin/sh\n"
VERSION = "version https://git-lfs.github.com/spec/v1\n"


def oid_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pointer(content: bytes) -> str:
    return f"{VERSION}oid sha256:{oid_of(content)}\nsize {len(content)}\n"


def store(place: Path, content: bytes) -> Path:
    oid = oid_of(content)
    file = place / "objects" / oid[:2] / oid[2:4] / oid
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.fixture
def an_lfs_repo(a_repo: Place) -> Place:
    """A repository whose tagged commit has LFS files, of odd names and modes, beside pointers that are none of LFS."""
    a_repo.write("sub/to ol's.run", pointer(OTHER)).chmod(0o755)
    a_repo.commit(
        {
            ".gitattributes": "[attr]big filter=lfs diff=lfs merge=lfs -text\n*.bin big\n",
            "sub/.gitattributes": "*.run filter=lfs -text\nplain.bin !filter\n",
            "a.bin": pointer(BIG),
            "not-a-pointer.bin": "once committed as it is\n",
            "sub/plain.bin": pointer(BIG),
            "notes.txt": pointer(BIG),
        },
        "with big files",
    )
    a_repo.git("tag", "v1")
    store(a_repo.path / ".git/lfs", BIG)
    store(a_repo.path / ".git/lfs", OTHER)
    return a_repo


def git_in(work: str, *arguments: str) -> str:
    return subprocess.check_output(["git", "-C", work, *arguments], text=True).rstrip("\n")


def test_pointers_become_their_content_and_to_git_nothing_is_modified(an_lfs_repo: Place) -> None:
    tip = an_lfs_repo.git("rev-parse", "HEAD")
    with scratch(discover(str(an_lfs_repo.path))) as made:
        for _ in range(2):
            made = checkout(made, tip)
            work = Path(made.worktree)
            assert (work / "a.bin").read_bytes() == BIG
            assert (work / "sub/to ol's.run").read_bytes() == OTHER
            assert os.access(work / "sub/to ol's.run", os.X_OK)
            assert not os.access(work / "a.bin", os.X_OK)
            assert (work / "not-a-pointer.bin").read_text() == "once committed as it is\n"
            assert (work / "notes.txt").read_text() == (work / "sub/plain.bin").read_text() == pointer(BIG)
            assert git_in(made.worktree, "status", "--porcelain") == ""
            assert git_in(made.worktree, "describe", "--dirty", "--tags") == "v1"
        before = baseline(made)
        (work / "a.bin").write_bytes(BIG.replace(b"i", b"I", 1))
        (work / "sub/to ol's.run").write_text(pointer(OTHER))
        assert changes(made, before) == ("modified: a.bin", "modified: sub/to ol's.run")
        assert "filter" not in (work / ".git/config").read_text()
        made = checkout(made, an_lfs_repo.git("rev-parse", "HEAD^"))
        assert made.filled == frozenset()
        assert sorted(os.listdir(work)) == [".git", "README"]


def test_the_local_store_is_found_where_git_lfs_keeps_it(an_lfs_repo: Place, tmp_path: Path) -> None:
    tip = an_lfs_repo.commit({"empty.bin": pointer(b"")})
    an_lfs_repo.git("init", "-q", str(tmp_path / "other"))
    configured, own, borrowed = tmp_path / "store 1", an_lfs_repo.path / ".git/lfs", tmp_path / "other/.git/lfs"
    an_lfs_repo.git("config", "lfs.storage", "../../store 1")
    own.rename(configured)
    with scratch(discover(str(an_lfs_repo.path)), directory=str(tmp_path / "100%f o'dd")) as made:
        made = checkout(made, an_lfs_repo.git("rev-parse", "HEAD^"))
        assert git_in(made.worktree, "status", "--porcelain") == ""
        configured.rename(borrowed)
        (an_lfs_repo.path / ".git/objects/info/alternates").write_text(f"{tmp_path}/other/.git/objects\n")
        made = checkout(made, tip)
        assert Path(made.worktree, "a.bin").read_bytes() == BIG
        assert Path(made.worktree, "empty.bin").read_bytes() == b""


def test_content_that_cannot_be_had_is_told(an_lfs_repo: Place) -> None:
    tip, there = an_lfs_repo.git("rev-parse", "HEAD"), stored(an_lfs_repo)
    extended = f"{VERSION}ext-0-zip sha256:{'cd' * 32}\n{OID}size 3\n"
    with scratch(discover(str(an_lfs_repo.path))) as made:
        for content in (BIG[:-1], BIG[:-1] + b"x"):
            there.write_bytes(content)
            with pytest.raises(CannotTell, match=r"content of a\.bin .* is damaged: ") as caught:
                checkout(made, tip)
            assert "delete that file" in caught.value.hint
            shutil.rmtree(made.worktree + "/sub")
        there.unlink()
        with pytest.raises(CannotTell, match=r"^the content of a\.bin is not in the local LFS store") as caught:
            checkout(made, tip)
        assert "`git lfs fetch`" in caught.value.hint
        tip = an_lfs_repo.commit({"ext.bin": extended})
        with pytest.raises(CannotTell, match=r"ext\.bin: .*extensions"):
            checkout(made, tip)


def stored(place: Place) -> Path:
    oid = oid_of(BIG)
    return place.path / ".git/lfs/objects" / oid[:2] / oid[2:4] / oid


OID = f"oid sha256:{'ab' * 32}\n"


def test_a_pointer_is_read_strictly() -> None:
    for text, size_bytes in (
        (f"{VERSION}{OID}size 12345\n", 12345),
        (f"{VERSION}{OID}size 0\n", 0),
        (f"{VERSION}{OID}size 1\n".replace("\n", "\r\n"), 1),
        (f"{VERSION}{OID}size 12345", None),
        (f"{VERSION}{OID}size -1\n", None),
        (f"{VERSION}{OID}size 012\n", None),
        (f"{VERSION}{OID}size 1\nx y\n", None),
        (f"{VERSION}size 1\n{OID}", None),
        (f"{VERSION}oid sha256:{'AB' * 32}\nsize 1\n", None),
        (f"{VERSION}oid md5:{'ab' * 32}\nsize 1\n", None),
        (f"{VERSION}oid sha256:../../../../../../etc/passwd\nsize 1\n", None),
        (f"version https://hawser.github.com/spec/v1\n{OID}size 1\n", None),
        ("", None),
    ):
        found = parsed(text.encode())
        assert (found.size_bytes if found else None) == size_bytes, text


def test_a_submodule_has_an_lfs_store_of_its_own(an_lfs_repo: Place, tmp_path: Path) -> None:
    outer = Place(tmp_path / "outer")
    outer.path.mkdir()
    outer.git("init", "-q")
    outer.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", f"file://{an_lfs_repo.path}", "mod")
    tip = outer.commit({})
    with (
        scratch(discover(str(outer.path))) as made,
        pytest.raises(CannotTell, match=r"content of mod/a\.bin") as caught,
    ):
        checkout(made, tip)
    assert "`git -C mod lfs fetch`" in caught.value.hint
    store(outer.path / ".git/modules/mod/lfs", BIG)
    store(outer.path / ".git/modules/mod/lfs", OTHER)
    with scratch(discover(str(outer.path))) as made:
        made = checkout(made, tip)
        assert Path(made.worktree, "mod/a.bin").read_bytes() == BIG
        assert git_in(made.worktree, "status", "--porcelain") == ""
        before = baseline(made)
        Path(made.worktree, "mod/a.bin").write_text(pointer(BIG))
        assert changes(made, before) == ("modified: mod/a.bin",)
