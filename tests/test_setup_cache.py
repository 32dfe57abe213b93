"""What set-up made is kept for as long as its key files are equal, and nothing else gets into it."""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gitevals import redact
from gitevals.evaluate import setup_cache, slots
from gitevals.evaluate.checks import Bench
from gitevals.evaluate.plan import Plan
from gitevals.git.repo import discover
from gitevals.git.scratch import checkout, scratch
from gitevals.model.contract import Cached, Command
from tests.conftest import Place
from tests.test_run import configure, run

# Builds like a package manager: only what is not there yet, and a count of how often it really builds.
INSTALL = """\
test -e modules/done && exit 0
echo >>"$BUILT"
mkdir -p modules/pkg/bin modules/empty
cp lock modules/pkg/index.js
printf '#!/bin/sh\\n' >modules/pkg/tool
chmod 755 modules/pkg/tool
chmod 555 modules/empty
ln -s ../pkg/tool modules/pkg/bin/tool
touch modules/done
"""


class Kept:
    """A repository with the set-up `INSTALL`, and a store for what it makes."""

    def __init__(self, place: Place, tmp_path: Path) -> None:
        self.place, self.top, self.store = place, tmp_path, tmp_path / "store"
        self.built = tmp_path / "built"
        self.seen: dict[str, object] = {}
        self.setup: list[tuple[str, str, str]] = []

    def run(
        self, files: Mapping[str, str | None] | None = None, *, script: str = INSTALL, path: str = "modules",
        key: tuple[str, ...] = ("lock",), spoil: str = "", spares: tuple[str, ...] = (),
    ) -> tuple[int, tuple[str, ...], str]:  # fmt: skip
        """Set up a checkout with ``files`` changed; how often it was built, the notes, and why it came to nothing."""
        before = self._builds()
        plan = Plan(
            setup=(Command(command=("sh", "-c", script), timeout_seconds=60, env={"BUILT": str(self.built)}),),
            verification=(), checks={}, cache=(Cached(path=path, key=key, spares=spares),),
        )  # fmt: skip
        bench = Bench(
            inherited=dict(os.environ), path=os.environ["PATH"], base="b", head="h", task="42",
            observer=lambda _: None, secrets=redact.secrets_in({}), stop=threading.Event(),
        )  # fmt: skip
        with scratch(discover(str(self.place.path)), directory=str(self.top / "scratch")) as made:
            place = checkout(made, self._commit(files or {}))
            slot = slots.prepare(bench, place, plan, folder=str(self.store))
            self.seen = _contents(Path(place.worktree, "modules"))
            self.setup = [(entry.id, entry.result, entry.reason) for entry in slot.setup]
            if spoil:
                command = Command(command=("sh", "-c", spoil), timeout_seconds=60)
                assert slots.check(bench, slot, plan, "check", command).run.reason == ""
        return self._builds() - before, slot.notes, slot.reason

    def entries(self) -> list[Path]:
        """The directories in the store, unfinished ones too."""
        return [entry for family in self.store.iterdir() for entry in family.iterdir()] if self.store.exists() else []

    def _builds(self) -> int:
        return len(self.built.read_text()) if self.built.exists() else 0

    def _commit(self, files: Mapping[str, str | None]) -> str:
        self.place.git("switch", "-q", "--detach", "main")
        for path, content in files.items():
            file = self.place.path / path
            file.unlink(missing_ok=True)
            if content is not None and content.startswith("-> "):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.symlink_to(content[3:])
            elif content is not None:
                self.place.write(path, content)
        self.place.git("add", "-A", "-f")
        self.place.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.place.git("rev-parse", "HEAD")


def _contents(top: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    waiting = [str(top)] if top.is_dir() else []
    while waiting:
        for entry in list(os.scandir(waiting.pop())):
            path = Path(entry.path)
            held: object = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[entry.path.removeprefix(f"{top}/")] = (path.lstat().st_mode, held)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


@pytest.fixture
def kept(a_repo: Place, tmp_path: Path) -> Iterator[Kept]:
    a_repo.commit({"lock": "one\n", ".gitignore": "modules\n"})
    yield Kept(a_repo, tmp_path)
    subprocess.run(["rm", "-rf", tmp_path / "scratch"], check=True)  # pytest cannot remove what is very deep


RESTORED = ("cache: modules restored",)


def test_set_up_builds_once_for_each_content_of_the_key_files_and_finds_all_of_it_again(kept: Kept) -> None:
    assert kept.run() == (1, (), "")
    built = kept.seen
    assert len(built) == 7
    assert kept.run({"README": "another change\n"}) == (0, RESTORED, "")
    assert kept.seen == built
    assert kept.run({"lock": "two\n"}) == (1, (), "")
    assert kept.seen != built
    assert kept.run() == (0, RESTORED, "")


def test_a_spared_command_runs_where_nothing_was_restored_and_there_alone(kept: Kept) -> None:
    anew = INSTALL.replace("test -e modules/done && exit 0", "rm -rf modules")
    assert kept.run(script=anew, spares=("setup-1",)) == (1, (), "")
    built = kept.seen
    assert kept.run(script=anew, spares=("setup-1",)) == (0, RESTORED, "")
    assert kept.setup == [("setup-1", "passed", "spared: modules was restored")]
    assert kept.seen == built
    assert kept.run({"lock": "two\n"}, script=anew, spares=("setup-1",)) == (1, (), "")
    assert kept.setup == [("setup-1", "passed", "")]


@pytest.mark.slow
def test_another_set_up_or_another_key_is_another_entry(kept: Kept) -> None:
    assert kept.run()[0] == 1
    assert kept.run(script=f"{INSTALL}\n# another command")[0] == 1
    assert kept.run(key=("lock", "README"))[0] == 1
    assert kept.run({"README": "keyed\n"}, key=("lock", "README"))[0] == 1
    assert kept.run(key=("lock", "README")) == (0, RESTORED, "")


@pytest.mark.slow
def test_entries_are_bounded_and_the_one_used_longest_ago_goes_first(kept: Kept) -> None:
    script = 'mkdir modules; cp lock modules/; echo >>"$BUILT"'
    again = f"test -e modules/lock || {{ {script}; }}"
    for number in range(setup_cache.ENTRIES_LIMIT):
        assert kept.run({"lock": f"{number}\n"}, script=again) == (1, (), "")
        for position, entry in enumerate(sorted(kept.entries(), key=lambda entry: (entry / "lock").read_text())):
            os.utime(entry, (position + 1, position + 1))
    left = next(iter(kept.store.iterdir())) / ".new-left"
    left.mkdir()
    os.utime(left, (0, 0))
    assert kept.run({"lock": "0\n"}, script=again) == (0, RESTORED, "")
    assert kept.run({"lock": "more\n"}, script=again) == (1, (), "")
    held = sorted((entry / "lock").read_text() for entry in kept.entries())
    assert held == ["0\n", "2\n", "3\n", "more\n"]


DEEP = "i=0; while [ $i -lt 1100 ]; do mkdir d; cd d; i=$((i + 1)); done"

# What is not kept: files of the change, set-up script → what is said and why the slot came to nothing.
PLAIN = 'mkdir -p modules; echo x >modules/x; echo >>"$BUILT"'
NOT_KEPT: dict[str, tuple[dict[str, str | None], str, tuple[str, ...], str]] = {
    "no key file": ({"lock": None}, PLAIN, ("its key file lock is absent or no plain file",), ""),
    "a link for a key file": ({"lock": "-> README"}, PLAIN, ("its key file lock is absent or no plain file",), ""),
    "a link in its place": (
        {"modules": "-> @OUTSIDE@"}, "echo x >modules/x; test ! -e modules/pkg",
        ("the commit has something of its own there",), "",
    ),
    "a file of the change in it": (
        {"modules/evil": "x"}, f"{PLAIN}; test ! -e modules/done", ("the commit has something of its own there",), "",
    ),
    "names its place": ({}, f"{PLAIN}; pwd >modules/activate", ("activate names the directory it was made in",), ""),
    "a link to its place": ({}, f'{PLAIN}; ln -s "$PWD" modules/l', ("l names the directory it was made in",), ""),
    "nothing made": ({}, 'echo >>"$BUILT"', ("set-up made no directory there",), ""),
    "a file made": ({}, 'echo x >modules; echo >>"$BUILT"', ("set-up made no directory there",), ""),
    "a pipe in it": ({}, f"{PLAIN}; mkfifo modules/pipe", ("pipe: ",), ""),
    "deeper than can be copied": ({}, f"{PLAIN}; cd modules; {DEEP}", ("it is too deep",), ""),
    "set-up fails": ({}, f"{PLAIN}; exit 1", (), "setup-1 did not succeed: exit 1"),
    "set-up changes the source": ({}, f"{PLAIN}; echo >>README", (), "the set-up commands changed the source: "),
}  # fmt: skip


@pytest.mark.slow
def test_what_another_run_must_not_find_is_not_kept_and_told(kept: Kept) -> None:
    outside = kept.top / "outside"
    outside.mkdir()
    for name, (files, script, faults, reason) in NOT_KEPT.items():
        given = {path: text and text.replace("@OUTSIDE@", str(outside)) for path, text in files.items()}
        _, notes, said = kept.run(given, script=script)
        assert (name, said.startswith(reason), bool(said)) == (name, True, bool(reason)), said
        assert [note.removeprefix("cache: modules not kept: ").startswith(fault)
                for note, fault in zip(notes, faults, strict=True)] == [True] * len(faults), (name, notes)  # fmt: skip
        assert (name, kept.entries()) == (name, [])
    assert [path.name for path in outside.iterdir()] == ["x"]


@pytest.mark.slow
def test_a_known_entry_goes_nowhere_but_into_real_directories_that_are_free(kept: Kept) -> None:
    outside = kept.top / "outside"
    outside.mkdir()
    script = 'test -e build/in/done || { mkdir -p build/in && touch build/in/done; echo >>"$BUILT"; } || true'
    assert kept.run(script=script, path="build/in")[0] == 1
    assert kept.run(script=script, path="build/in") == (0, ("cache: build/in restored",), "")
    for files in ({"build": f"-> {outside}"}, {"build": "a file"}, {"build/in": "-> nowhere"}, {"build/in/x": "x"}):
        _, notes, _ = kept.run(files, script=script, path="build/in")
        assert [note for note in notes if "restored" in note] == [], files
    assert len(kept.entries()) == 1
    assert [path.name for path in outside.iterdir()] in ([], ["in"])  # set-up itself may go there


OF_NO_USE = ("a file", "family is a file", "entry is a file")


@pytest.mark.parametrize(
    "store", ["entry cannot be copied", *(pytest.param(store, marks=pytest.mark.slow) for store in OF_NO_USE)]
)
def test_a_store_that_is_of_no_use_is_no_error(kept: Kept, store: str) -> None:
    assert kept.run()[0] == 1
    [entry] = kept.entries()
    place = {"a file": kept.store, "family is a file": entry.parent}.get(store, entry)
    if store == "entry cannot be copied":
        os.mkfifo(entry / "pipe")
    else:
        place.rename(kept.top / "moved")
        place.write_text("junk")
    builds, notes, reason = kept.run()
    assert (builds, reason) == (1, "")
    assert "cache: modules restored" not in notes
    assert "done" in kept.seen
    assert "pipe" not in kept.seen


def test_nothing_that_a_check_does_to_what_was_cached_is_there_for_the_next_run(kept: Kept) -> None:
    kept.run(spoil="echo evil >modules/pkg/index.js; rm modules/pkg/tool; touch modules/evil")
    built = kept.seen
    kept.run(spoil="echo evil >modules/pkg/index.js; rm modules/pkg/tool; touch modules/evil")
    assert kept.run() == (0, RESTORED, "")
    assert kept.seen == built
    assert b"evil" not in repr(kept.seen).encode()


def test_runs_side_by_side_leave_one_whole_entry(kept: Kept) -> None:
    commit = kept.place.git("rev-parse", "main")
    repo = discover(str(kept.place.path))
    plan = Plan(
        setup=(Command(command=("true",), timeout_seconds=60),), verification=(), checks={},
        cache=(Cached(path="modules", key=("lock",)),),
    )  # fmt: skip
    with scratch(repo) as one, scratch(repo) as other:
        places = [checkout(place, commit) for place in (one, other)]
        cached = [setup_cache.entries(str(kept.store), place, plan) for place in places]
        for place in places:
            Path(place.worktree, "modules").mkdir()
            Path(place.worktree, "modules", "x").write_text("x")
        threads = [
            threading.Thread(target=setup_cache.keep, args=(place, entries))
            for place, entries in zip(places, cached, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [setup_cache.keep(place, entries) for place, entries in zip(places, cached, strict=True)] == [(), ()]
    [entry] = kept.entries()
    assert [path.name for path in entry.iterdir()] == ["x"]


@pytest.mark.slow
def test_a_run_keeps_what_its_set_up_made_beside_the_repository_and_says_so(a_project: Place, tmp_path: Path) -> None:
    built = tmp_path / "built"
    a_project.commit({"lock": "one\n", ".gitignore": "modules/\n"})
    setup = [{"command": ["sh", "-c", INSTALL], "env": {"BUILT": str(built)}}]
    check = {"command": ["test", "-e", "modules/pkg/tool"], "at_base": "pass"}
    configure(a_project, {"uses": check}, setup=setup, cache=[{"path": "modules", "key": ["lock"]}])
    a_project.git("switch", "-q", "-c", "task/42")
    a_project.commit({"done": "x\n"})
    a_project.git("switch", "-q", "main")
    code, found = run(a_project, "42")
    assert (code, found["notes"], len(built.read_text())) == (0, [], 1)
    code, found = run(a_project, "42", "--force")
    assert (code, found["notes"], len(built.read_text())) == (0, ["cache: modules restored"], 1)
