"""What the doctor says of locks and files that killed commands left behind, and what it removes."""

import os
from pathlib import Path

import pytest

from gitevals.git.ledger import locked
from gitevals.install.leftovers import age, locks, unfinished
from gitevals.session import session
from tests.conftest import Place
from tests.git import repo_of

LONG_AGO = 946684800


def aged(file: Path) -> Path:
    os.utime(file, (LONG_AGO, LONG_AGO))
    return file


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("refs/notes/evals/w.lock", True),
        ("refs/evals/contracts/w.lock", True),
        ("refs/evals/logs/w/2030-01.lock", True),
        ("refs/heads/main.lock", False),
        ("refs/notes/commits.lock", False),
        ("packed-refs.lock", False),
        ("config.lock", False),
        ("HEAD.lock", False),
        ("worktrees/linked/index.lock", False),
        ("reftable/tables.list.lock", False),
    ],
)
def test_a_lock_left_behind_is_listed_and_only_ours_is_removed(
    name: str, ours: bool, a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(a_repo.path)
    monkeypatch.setattr("gitevals.git.locks.STILL_SECONDS", 0)
    lock = aged(a_repo.write(f".git/{name}", ""))
    with session() as here:
        [told] = locks(here, clean=False)
        assert lock.exists()
        assert str(lock) in told.text
        assert " days" in told.text
        assert told.state == "note"
        assert ("doctor --clean" in told.repair) == ours
        locks(here, clean=True)
        assert lock.exists() != ours


def test_a_directory_in_the_place_of_a_lock_is_listed_and_named_where_it_cannot_be_removed(
    a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(a_repo.path)
    monkeypatch.setattr("gitevals.git.locks.STILL_SECONDS", 0)
    lock = aged(a_repo.write(".git/refs/notes/evals/w.lock/within", "").parent)
    with session() as here:
        [told] = locks(here, clean=False)
        assert str(lock) in told.text
        [told] = locks(here, clean=True)
    assert told.state == "problem"
    assert "cannot be removed" in told.text


def test_a_lock_of_this_moment_is_no_finding(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(a_repo.path)
    lock = a_repo.write(".git/refs/notes/evals/w.lock", "")
    with session() as here:
        [told] = locks(here, clean=True)
    assert told.state == "ok"
    assert lock.exists()


def test_a_lock_is_not_removed_while_another_has_the_turn(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(a_repo.path)
    monkeypatch.setattr("gitevals.git.ledger.TURN_SECONDS", 0)
    lock = aged(a_repo.write(".git/refs/notes/evals/w.lock", ""))
    with locked(repo_of(a_repo)), session() as here:
        [told] = locks(here, clean=True)
    assert told.state == "problem"
    assert lock.exists()


def test_files_that_were_being_written_are_listed_and_removed_and_nothing_else(
    a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(a_repo.path)
    place = ".git/git-evals"
    left = [
        aged(a_repo.write(f"{place}/{name}", "x"))
        for name in (".protected.123", "written.new", "scratch-parents.5", "cache/config/.0a1b.77")
    ]
    kept = [
        aged(a_repo.write(f"{place}/{name}", "x"))
        for name in ("protected", "written", "cache/config/0a1b", "cache/setup/.lib.1", "cache/setup/lib/.so.1")
    ]
    kept.append(a_repo.write(f"{place}/.protected.124", "x"))
    with session() as here:
        [told] = unfinished(here, clean=False)
        assert told.text.startswith("4 of commands that were killed")
        assert all(file.exists() for file in left)
        [told] = unfinished(here, clean=True)
        assert told.state == "ok"
        assert unfinished(here, clean=False) == []
    assert [file for file in left if file.exists()] == []
    assert [file for file in kept if not file.exists()] == []


@pytest.mark.parametrize(
    ("seconds", "said"), [(61, "61 seconds"), (180, "3 minutes"), (7300, "2 hours"), (10**6, "11 days")]
)
def test_an_age_is_told_in_one_unit(seconds: float, said: str) -> None:
    assert age(seconds) == said
