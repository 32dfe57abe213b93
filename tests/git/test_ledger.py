import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitevals.errors import CannotTell, LedgerBusy
from gitevals.git import form, ledger, locks, pruning, refs, trees
from gitevals.git.form import Fault
from gitevals.git.ledger import IDENTITY
from gitevals.git.objects import NewObject, Objects
from gitevals.git.packs import KEEP_PACK_FROM
from gitevals.git.repo import Repo
from gitevals.git.store import Implementation, opened
from tests.conftest import Place
from tests.git import EVERY_STORE, assert_sound, repo_of

REF = "refs/notes/evals/writer"
ROOT = Path(__file__).parents[2]

# What each of many processes runs once its standard input is closed: it adds one entry and tells the new tip.
WRITER = f"""
import sys
sys.path[:] = {[str(ROOT), *sys.path]!r}
from gitevals.git import ledger, objects, repo, store, trees
using, name = sys.argv[1:]
def edit(tree):
    [blob] = opened.write_many([objects.NewObject("blob", name.encode())])
    return trees.edit(opened, tree, {{name[:2] + "/" + name: blob}})
here = repo.discover()
with store.opened(here, using) as opened:
    sys.stdin.read()
    print(ledger.advance(here, opened, {REF!r}, repository="none", edit=edit))
"""
HOLDER = f"""
import sys
sys.path[:] = {[str(ROOT), *sys.path]!r}
from gitevals.git import ledger, repo
with ledger.locked(repo.discover()):
    print("held", flush=True)
    sys.stdin.read()
"""

Adding = Callable[[str | None], str]


def adding(objects: Objects, name: str) -> Adding:
    """An edit that adds a file called ``name``."""

    def edit(tree: str | None) -> str:
        [blob] = objects.write_many([NewObject("blob", name.encode())])
        return trees.edit(objects, tree, {f"{name[:2]}/{name}": blob})

    return edit


def append(repo: Repo, objects: Objects, name: str, ref: str = REF) -> str:
    return ledger.advance(repo, objects, ref, repository="none", edit=adding(objects, name))


def fits(path: str) -> bool:
    return re.fullmatch(r"[a-z0-9]{2}/[a-z0-9]+", path) is not None


def names_in(place: Place, ref: str = REF) -> list[str]:
    return [path.split("/")[1] for path in place.git("ls-tree", "-r", "--name-only", ref).split("\n")]


def faults_of(place: Place, tip: str, using: Implementation | None = None) -> list[Fault]:
    with opened(repo_of(place), using) as objects:
        return form.faults(objects, tip, REF, fits)


@EVERY_STORE
def test_a_ledger_grows_by_commits_that_say_what_they_are(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    with opened(repo, using) as objects:
        first = append(repo, objects, "aa1")
        second = ledger.advance(repo, objects, REF, repository="5f0c", edit=adding(objects, "bb2"))
    assert a_repo.git("rev-parse", REF) == second
    assert a_repo.git("rev-list", "--parents", REF) == f"{second} {first}\n{first}"
    assert sorted(names_in(a_repo)) == ["aa1", "bb2"]
    raw = a_repo.git("cat-file", "commit", second)
    person = r"git-evals <writer@git-evals\.invalid> \d+ \+0000"
    assert re.fullmatch(
        rf"tree {a_repo.git('rev-parse', second + '^{tree}')}\nparent {first}\nauthor {person}\ncommitter {person}\n\n"
        rf"git-evals ledger v1\n\nLedger: {REF}\nRepository: 5f0c",
        raw,
    )
    assert a_repo.git("cat-file", "commit", first).endswith("\nRepository: none")
    assert faults_of(a_repo, second, using) == []
    assert_sound(a_repo)


def test_the_message_is_exact() -> None:
    assert ledger.message("refs/x/y", "none") == "git-evals ledger v1\n\nLedger: refs/x/y\nRepository: none\n"


@EVERY_STORE
def test_an_edit_that_changes_nothing_writes_nothing(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    with opened(repo, using) as objects:
        assert ledger.advance(repo, objects, REF, repository="none", edit=lambda _: None) == repo.zero
        assert refs.values(repo, REF) == {}
        tip = append(repo, objects, "aa1")
        assert ledger.advance(repo, objects, REF, repository="none", edit=lambda _: None) == tip
        assert append(repo, objects, "aa1") == tip


@pytest.mark.slow
@pytest.mark.parametrize("using", ["libgit2", "plumbing"])
def test_forty_processes_at_once_lose_nothing(a_repo: Place, using: Implementation) -> None:
    gate_out, gate_in = os.pipe()
    command = [sys.executable, "-S", "-c", WRITER, using]
    writers = [
        subprocess.Popen([*command, f"{number:02}x"], stdin=gate_out, stdout=subprocess.PIPE, cwd=a_repo.path)
        for number in range(40)
    ]
    os.close(gate_out)
    os.close(gate_in)
    tips = {writer.communicate()[0].decode().strip() for writer in writers}
    assert [writer.returncode for writer in writers] == [0] * 40
    assert sorted(names_in(a_repo)) == [f"{number:02}x" for number in range(40)]
    assert set(a_repo.git("rev-list", REF).split("\n")) == tips
    assert faults_of(a_repo, a_repo.git("rev-parse", REF), using) == []
    assert_sound(a_repo)


@EVERY_STORE
def test_a_writer_that_takes_no_lock_costs_another_try_and_no_entry(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    calls: list[str | None] = []
    with opened(repo, using) as objects:

        def edit(tree: str | None) -> str:
            calls.append(tree)
            new = adding(objects, "aa1")(tree)
            if len(calls) <= 3:
                move_foreign(a_repo, adding(objects, f"ff{len(calls)}"))
            return new

        ledger.advance(repo, objects, REF, repository="none", edit=edit)
    assert sorted(names_in(a_repo)) == ["aa1", "ff1", "ff2", "ff3"]
    assert len(set(calls)) == 4
    assert calls[0] is None


def move_foreign(place: Place, edit: Adding) -> None:
    """What another program may do between our reading and our writing."""
    old = place.attempt("git", "rev-parse", "-q", "--verify", REF).stdout.decode().strip()
    tree = edit(place.git("rev-parse", f"{old}^{{tree}}") if old else None)
    parents = ["-p", old] if old else []
    place.git("update-ref", REF, place.git("commit-tree", "-m", "foreign", *parents, tree), old)


@EVERY_STORE
@pytest.mark.slow
def test_foreign_processes_racing_for_the_ref_lose_us_nothing(a_repo: Place, using: Implementation) -> None:
    # The other program swaps with the old value as we do, and knows of no lock.
    foreign = r"""
        for number in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
            until old=$(git rev-parse REF) && blob=$(echo $number | git hash-object -w --stdin) &&
                new=$( (git ls-tree REF; printf '100644 blob %s\tforeign%s\n' $blob $number) | git mktree) &&
                git update-ref REF $(git commit-tree -m foreign -p $old $new) $old 2>/dev/null
            do :; done
        done""".replace("REF", REF)
    repo = repo_of(a_repo)
    names = [f"{number:02}x" for number in range(20)]
    with opened(repo, using) as objects:
        append(repo, objects, "zz0")
        racer = subprocess.Popen(["sh", "-c", foreign], cwd=a_repo.path)
        for name in names:
            append(repo, objects, name)
    assert racer.wait() == 0
    present = a_repo.git("ls-tree", "-r", "--name-only", REF).split("\n")
    assert {f"{name[:2]}/{name}" for name in names} <= set(present)
    assert a_repo.git("rev-list", "--merges", REF) == ""


def locked_by(place: Place, content: str, name: str = f"{REF}.lock") -> Path:
    return place.write(f".git/{name}", content)


def test_a_lock_that_a_killed_git_of_ours_left_is_removed_at_once(
    a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STILL_SECONDS", float("inf"))
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        locked_by(a_repo, append(repo, objects, "aa1") + "\n")
        append(repo, objects, "aa2")
    assert sorted(names_in(a_repo)) == ["aa1", "aa2"]


@pytest.mark.parametrize("content", ["", "f" * 40 + "\n", "5f0c"])
def test_a_lock_that_is_anothers_is_given_up_once_it_has_been_still(
    content: str, a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STILL_SECONDS", 0.05)
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        append(repo, objects, "aa1")
        locked_by(a_repo, content)
        append(repo, objects, "aa2")
    assert sorted(names_in(a_repo)) == ["aa1", "aa2"]


def touched(lock: Path, ended: threading.Event) -> None:
    while not ended.is_set():
        os.utime(lock)


@pytest.mark.slow
def test_a_lock_that_changes_all_the_time_is_left_alone_and_named(
    a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "TRIES", 2)
    monkeypatch.setattr(locks, "STILL_SECONDS", 0.3)
    monkeypatch.setattr(locks, "LONGEST_SECONDS", 0.6)
    monkeypatch.setattr(locks, "POLL_SECONDS", 0)
    repo = repo_of(a_repo)
    ended = threading.Event()
    with opened(repo) as objects:
        append(repo, objects, "aa1")
        lock = locked_by(a_repo, "")
        busy = threading.Thread(target=touched, args=(lock, ended))
        busy.start()
        try:
            with pytest.raises(LedgerBusy, match="is locked by") as caught:
                append(repo, objects, "aa2")
        finally:
            ended.set()
            busy.join()
    assert lock.exists()
    assert str(lock) in caught.value.message
    assert "delete it" in caught.value.hint


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes cannot be looked at here")
@pytest.mark.parametrize("where", ["within", "by its option", "below a link"])
def test_a_lock_that_a_git_at_work_may_hold_is_left_to_it(
    where: str, a_repo: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "TRIES", 1)
    monkeypatch.setattr(locks, "STILL_SECONDS", 0)
    monkeypatch.setattr(locks, "LONGEST_SECONDS", 0.1)
    monkeypatch.setattr(locks, "POLL_SECONDS", 0)
    if where == "below a link":
        a_repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    places = {"within": a_repo.path, "by its option": tmp_path, "below a link": tmp_path / "linked"}
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        append(repo, objects, "aa1")
        lock = locked_by(a_repo, "")
        command = ["git", *([f"--git-dir={repo.git_dir}"] if where == "by its option" else []), "update-ref", "--stdin"]
        with subprocess.Popen(command, cwd=places[where], stdin=subprocess.PIPE) as at_work:
            with pytest.raises(LedgerBusy, match="is locked by"):
                append(repo, objects, "aa2")
            assert lock.exists()
            at_work.communicate()
        append(repo, objects, "aa2")
    assert sorted(names_in(a_repo)) == ["aa1", "aa2"]


def test_a_lock_that_cannot_be_removed_is_named(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STILL_SECONDS", 0)
    repo = repo_of(a_repo)
    locked_by(a_repo, "", f"{REF}.lock/in-it")
    with opened(repo) as objects, pytest.raises(LedgerBusy, match=r"writer\.lock stands in the way"):
        append(repo, objects, "aa1")


def test_at_a_pipe_in_the_place_of_a_file_nobody_waits(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STILL_SECONDS", 0)
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        append(repo, objects, "aa1")
        written = a_repo.path / ".git" / "git-evals" / ledger.WRITTEN
        written.unlink()
        os.mkfifo(written)
        os.mkfifo(a_repo.path / ".git" / f"{REF}.lock")
        append(repo, objects, "aa2")
    assert sorted(names_in(a_repo)) == ["aa1", "aa2"]


# Git has seen that the new commit is there, and no ref names it yet.
PRUNING_HOOK = """#!/bin/sh
[ "$1" = prepared ] || exit 0
unset GIT_QUARANTINE_PATH
git prune --expire=now
"""


@EVERY_STORE
@pytest.mark.parametrize("count", [1, KEEP_PACK_FROM])
def test_what_another_git_prunes_before_a_ref_names_it_comes_back(
    count: int, a_repo: Place, using: Implementation
) -> None:
    repo = repo_of(a_repo)
    names = [f"aa{number}" for number in range(count)]
    with opened(repo, using) as objects:
        append(repo, objects, "first")
        slow_hook(a_repo, PRUNING_HOOK)

        def edit(tree: str | None) -> str:
            blobs = objects.write_many([NewObject("blob", name.encode()) for name in names])
            return trees.edit(objects, tree, {f"aa/{name}": blob for name, blob in zip(names, blobs, strict=True)})

        ledger.advance(repo, objects, REF, repository="none", edit=edit)
    assert set(names_in(a_repo)) == {"first", *names}
    assert_sound(a_repo)


@contextlib.contextmanager
def at_work(place: Place, *command: str) -> Iterator[None]:
    """A process that looks like a git with this command, and does nothing: a shell that reads a file of that name."""
    place.write(command[0], "read -r _")
    with subprocess.Popen(["git", *command], executable="/bin/sh", cwd=place.path, stdin=subprocess.PIPE) as standing:
        try:
            yield
        finally:
            standing.kill()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes cannot be looked at here")
@pytest.mark.parametrize(
    ("command", "outlasted"),
    [
        (("prune",), True),
        (("prune", "--expire", "now"), True),
        (("repack", "-a", "-d"), True),
        (("prune", "--expire", "2.weeks.ago"), False),
        (("repack", "-d", "--cruft", "--cruft-expiration=2.weeks.ago"), False),
        (("log", "prune"), False),
    ],
)
def test_a_git_that_prunes_while_a_ref_is_moved_is_outlasted(
    command: tuple[str, ...], outlasted: bool, a_repo: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "LONGEST_SECONDS", -1)
    repo = repo_of(a_repo)
    with opened(repo) as objects, at_work(a_repo, *command):
        if outlasted:
            with pytest.raises(CannotTell, match="prunes"):
                append(repo, objects, "aa1")
        else:
            append(repo, objects, "aa1")
    assert names_in(a_repo) == ["aa1"]


@pytest.mark.parametrize("name", ["HEAD.lock", "packed-refs.lock", "config.lock", "refs/heads/main.lock"])
def test_locks_of_what_is_not_ours_are_neither_waited_for_nor_touched(name: str, a_repo: Place) -> None:
    repo = repo_of(a_repo)
    lock = locked_by(a_repo, "", name)
    with opened(repo) as objects:
        append(repo, objects, "aa1")
    assert lock.exists()


# The hook tells that it has begun, and waits until it may end.
SLOW_HOOK = """#!/bin/sh
[ "$1" = prepared ] || exit 0
echo begun >begun
read -r _ <gate
"""


def slow_hook(place: Place, text: str) -> None:
    place.write(".git/hooks/reference-transaction", text).chmod(0o755)


def test_a_git_that_outlives_its_killed_writer_keeps_the_turn_until_the_ref_has_moved(a_repo: Place) -> None:
    slow_hook(a_repo, SLOW_HOOK)
    os.mkfifo(a_repo.path / "gate")
    os.mkfifo(a_repo.path / "begun")
    with subprocess.Popen(
        [sys.executable, "-S", "-c", WRITER, "plumbing", "aa1"], stdin=subprocess.DEVNULL, cwd=a_repo.path
    ) as writer:
        assert (a_repo.path / "begun").read_text() == "begun\n"
        writer.kill()
    assert is_held(a_repo)
    (a_repo.path / "gate").write_text("\n")
    repo = repo_of(a_repo)
    with ledger.locked(repo):
        assert names_in(a_repo) == ["aa1"]
    assert not (a_repo.path / f".git/{REF}.lock").exists()


def test_what_a_hook_leaves_running_does_not_keep_the_turn(a_repo: Place) -> None:
    slow_hook(a_repo, "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\necho $! >>running\n")
    repo = repo_of(a_repo)
    try:
        with opened(repo) as objects:
            append(repo, objects, "aa1")
        assert not is_held(a_repo)
    finally:
        for number in (a_repo.path / "running").read_text().split():
            os.kill(int(number), signal.SIGKILL)


def test_a_turn_that_never_comes_is_told(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "TURN_SECONDS", 0)
    repo = repo_of(a_repo)
    with (
        ledger.locked(repo),
        pytest.raises(LedgerBusy, match="another git-evals has been writing"),
        ledger.locked(repo),
    ):
        pass


def test_half_a_line_that_a_killed_writer_left_spoils_no_other(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    a_repo.write(f".git/git-evals/{ledger.WRITTEN}", "f" * 40 + "\nabc123")
    with opened(repo) as objects:
        tip = append(repo, objects, "aa1")
    assert {tip, "f" * 40} <= ledger.written(repo)


@pytest.mark.slow
def test_a_race_that_is_never_won_ends(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    calls: list[str | None] = []
    with opened(repo) as objects:

        def edit(tree: str | None) -> str:
            calls.append(tree)
            move_foreign(a_repo, adding(objects, f"ff{len(calls)}"))
            return adding(objects, "aa1")(tree)

        with pytest.raises(LedgerBusy, match=REF) as raised:
            ledger.advance(repo, objects, REF, repository="none", edit=edit)
    assert len(calls) == ledger.TRIES
    assert raised.value.hint
    assert "aa1" not in names_in(a_repo)


def test_a_writer_needs_no_identity_of_its_own(a_repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL", "AUTHOR_DATE", "COMMITTER_DATE"):
        monkeypatch.delenv(f"GIT_{name}")
    a_repo.git("config", "user.useConfigOnly", "true")
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        append(repo, objects, "aa1")
    assert names_in(a_repo) == ["aa1"]


def test_a_ledger_whose_ref_is_at_no_commit_is_left_alone(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    a_repo.git("update-ref", REF, a_repo.git("rev-parse", "HEAD:README"))
    with opened(repo) as objects, pytest.raises(CannotTell, match="not at a commit"):
        append(repo, objects, "aa1")


def test_the_lock_is_shared_by_all_worktrees_and_freed_when_its_holder_dies(a_repo: Place, tmp_path: Path) -> None:
    a_repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    command = [sys.executable, "-S", "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path / "linked") as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert is_held(a_repo)
        holder.kill()
        with ledger.locked(repo_of(a_repo)):
            assert is_held(a_repo)
    assert not is_held(a_repo)


def is_held(place: Place) -> bool:
    with (place.path / ".git/git-evals/lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_place_that_cannot_be_locked_is_named(a_repo: Place) -> None:
    a_repo.write(".git/git-evals", "a file")
    with pytest.raises(CannotTell, match="cannot lock"), ledger.locked(repo_of(a_repo)):
        pass


@EVERY_STORE
def test_a_replaced_ref_keeps_only_what_is_there_now(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    ref = "refs/evals/logs/writer/2030-01"
    with opened(repo, using) as objects:
        first = ledger.replace(repo, objects, ref, message="logs\n", edit=adding(objects, "aa1"))
        second = ledger.replace(repo, objects, ref, message="logs\n", edit=adding(objects, "bb2"))
        third = ledger.replace(
            repo, objects, ref, message="logs\n", edit=lambda t: trees.edit(objects, t, {"aa": None})
        )
        assert ledger.replace(repo, objects, ref, message="logs\n", edit=lambda _: None) == third
    assert len({first, second, third}) == 3
    assert a_repo.git("rev-list", ref) == third
    assert a_repo.git("log", "-1", "--format=%B%an <%ae>", ref) == f"logs\n{IDENTITY}"
    assert names_in(a_repo, ref) == ["bb2"]
    assert_sound(a_repo)


SIGNATURE = "gpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n \n -----END SSH SIGNATURE-----\n"


def replacing(old: str, new: str) -> Callable[[str], str]:
    return lambda raw: raw.replace(old, new)


def with_header(text: str) -> Callable[[str], str]:
    return lambda raw: raw.replace("\n\n", f"\n{text}\n", 1)


# What may be done to a ledger commit's text, and what is said of it.
FORMS: dict[str, tuple[Callable[[str], str], str]] = {
    "nothing": (replacing("", ""), ""),
    "a signature": (with_header(SIGNATURE), ""),
    "a sha256 signature": (with_header(SIGNATURE.replace("gpgsig", "gpgsig-sha256")), ""),
    "another repository": (replacing("Repository: none", "Repository: other-id"), ""),
    "another ledger": (replacing(f"Ledger: {REF}", "Ledger: refs/notes/evals/other"), "belongs to"),
    "a first line": (replacing("ledger v1", "ledger v2"), "message"),
    "more text": (replacing("none\n", "none\nmore\n"), "message"),
    "no last line end": (replacing("none\n", "none"), "message"),
    "no repository": (replacing("Repository: none\n", ""), "message"),
    "a spaced repository": (replacing("Repository: none", "Repository: a b"), "message"),
    "a foreign author": (replacing(f"author {IDENTITY}", "author A <a@b.c>"), "author"),
    "a foreign committer": (replacing(f"committer {IDENTITY}", "committer A <a@b.c>"), "author"),
    "a local time": (replacing(" +0000\n\n", " +0100\n\n"), "author"),
    "an encoding": (with_header("encoding latin1\n"), "header"),
    "a header after a signature": (with_header(f"{SIGNATURE}mergetag x\n"), "header"),
    "a missing tree": (lambda raw: re.sub("(?<=^tree )[0-9a-f]+", lambda m: "1" * len(m[0]), raw), "missing"),
}


@pytest.mark.parametrize("done", FORMS)
def test_a_commit_is_of_a_ledger_only_in_the_exact_form(a_repo: Place, done: str) -> None:
    change, said = FORMS[done]
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        first = append(repo, objects, "aa1")
        altered = change(a_repo.git("cat-file", "commit", first) + "\n")
        [tip] = objects.write_many([NewObject("commit", altered.encode())])
        a_repo.git("update-ref", REF, tip)
        after = append(repo, objects, "bb2") if "missing" not in said else tip
        found = form.faults(objects, after, REF, fits)
    assert [fault.commit for fault in found] == ([tip] if said else [])
    assert all(said in fault.reason for fault in found)


@pytest.mark.parametrize(
    "listed",
    [
        "100644 blob BLOB\toutside",
        "040000 tree SUB\taa\n100644 blob BLOB\taa.b",
        "100755 blob BLOB\taa",
        "120000 blob BLOB\taa",
        "040000 tree EXECUTABLE\taa",
        "040000 tree EMPTY\taa",
        "040000 tree SUB\tlonger",
        "040000 tree DEEP\taa",
    ],
)
def test_a_tree_of_a_ledger_holds_nothing_but_its_layout(a_repo: Place, listed: str) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    sub = a_repo.git("mktree", stdin=f"100644 blob {blob}\tx\n".encode())
    known = {
        "BLOB": blob,
        "SUB": sub,
        "EMPTY": a_repo.git("mktree"),
        "EXECUTABLE": a_repo.git("mktree", stdin=f"100755 blob {blob}\tx\n".encode()),
        "DEEP": a_repo.git("mktree", stdin=f"040000 tree {sub}\tx\n".encode()),
    }
    for word, object_id in known.items():
        listed = listed.replace(word, object_id)
    bad_tree = a_repo.git("mktree", stdin=(listed + "\n").encode())
    repo = repo_of(a_repo)
    with opened(repo) as objects:
        good = append(repo, objects, "aa1")
        bad = ledger.advance(repo, objects, REF, repository="none", edit=lambda _: bad_tree)
        mended = ledger.advance(
            repo, objects, REF, repository="none", edit=lambda _: trees.edit(objects, None, {"aa/x": blob})
        )
        worse = ledger.advance(repo, objects, REF, repository="none", edit=lambda _: bad_tree)
        assert [fault.commit for fault in form.faults(objects, worse, REF, fits)] == [worse, bad]
        assert form.faults(objects, worse, REF, fits, believed={mended})[0].commit == worse
        assert form.faults(objects, worse, REF, fits, believed={worse}) == []
        assert form.faults(objects, good, REF, fits) == []


@EVERY_STORE
def test_a_code_commit_in_a_chain_is_found_and_so_is_a_gap(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    head = a_repo.git("rev-parse", "HEAD")
    a_repo.git("update-ref", REF, head)
    with opened(repo, using) as objects:
        tip = ledger.advance(repo, objects, REF, repository="none", edit=lambda _: trees.edit(objects, None, {}))
        assert [fault.commit for fault in form.faults(objects, tip, REF, fits)] == [head]
        absent = "1" * len(head)
        raw = a_repo.git("cat-file", "commit", tip).replace(head, absent) + "\n"
        [gap] = objects.write_many([NewObject("commit", raw.encode())])
        assert [fault.commit for fault in form.faults(objects, gap, REF, fits)] == [absent]
        blob = a_repo.git("rev-parse", "HEAD:README")
        assert [fault.commit for fault in form.faults(objects, blob, REF, fits)] == [blob]


@EVERY_STORE
def test_two_chains_joined_are_both_looked_at(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    with opened(repo, using) as objects:
        base = append(repo, objects, "aa1")
        left = append(repo, objects, "bb2")
        a_repo.git("update-ref", REF, base)
        right = append(repo, objects, "cc3")
        raw = (
            a_repo.git("cat-file", "commit", right).replace(f"parent {base}\n", f"parent {left}\nparent {right}\n")
            + "\n"
        )
        [joined] = objects.write_many([NewObject("commit", raw.encode())])
        assert form.faults(objects, joined, REF, fits) == []
        bad = raw.replace(f"parent {right}", f"parent {a_repo.git('rev-parse', 'HEAD')}")
        [joined] = objects.write_many([NewObject("commit", bad.encode())])
        assert [fault.commit for fault in form.faults(objects, joined, REF, fits)] == [a_repo.git("rev-parse", "HEAD")]


@EVERY_STORE
def test_a_chain_longer_than_any_stack_is_looked_at_to_its_end(a_repo: Place, using: Implementation) -> None:
    person = f"{IDENTITY} 1 +0000"
    text = ledger.message(REF, "none")
    commits = [
        f"commit {REF}\nauthor {person}\ncommitter {person}\ndata {len(words)}\n{words}\n"
        for words in ("odd\n", *[text] * 3_000)
    ]
    a_repo.git("fast-import", "--quiet", stdin="".join(commits).encode())
    oldest = a_repo.git("rev-list", "--max-parents=0", REF)
    found = faults_of(a_repo, a_repo.git("rev-parse", REF), using)
    assert [fault.commit for fault in found] == [oldest]
