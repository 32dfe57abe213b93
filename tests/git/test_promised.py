import shutil
import subprocess
from pathlib import Path

import pytest

from gitevals.errors import BadInput, CannotTell
from gitevals.git.repo import discover
from gitevals.git.scratch import checkout, scratch
from gitevals.git.scratch_merge import merge
from gitevals.git.watch import baseline, changes
from tests.conftest import Place


@pytest.fixture
def an_origin(a_repo: Place) -> Place:
    """A repository that serves partial clones, with branches ``main`` and ``topic`` that diverged after files moved."""
    a_repo.git("config", "uploadpack.allowFilter", "true")
    a_repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    a_repo.git("tag", "past", a_repo.commit({"gone": "past\n"}))
    a_repo.git("rm", "-q", "gone")
    a_repo.commit({f"dir/deep/{n}": f"{n}\n" * 20 for n in range(4)} | {"old": "0\n"})
    a_repo.git("switch", "-q", "-c", "topic")
    a_repo.commit({"dir/deep/1": "1\n" * 20 + "topic\n", "added": "x\n"})
    a_repo.git("switch", "-q", "main")
    a_repo.commit({"dir/deep/1": "main\n" + "1\n" * 20, "old": "1\n"})
    return a_repo


def partial_clone(origin: Place, spec: str) -> Place:
    path = origin.path.parent / "partial"
    origin.git("clone", "-q", "--no-checkout", f"--filter={spec}", f"file://{origin.path}", str(path))
    return Place(path)


def missing_of(place: Place, *commits: str) -> int:
    listed = place.git("rev-list", "--objects", "--no-walk", "--missing=print", *commits)
    return sum(line.startswith("?") for line in listed.splitlines())


class Log:
    """The git commands that were started, and which of them ran in the user's repository."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        start = subprocess.Popen.__init__

        def counting(process: "subprocess.Popen[bytes]", command: list[str], **options: object) -> None:
            self.commands.append(command)
            start(process, command, **options)  # type: ignore[call-overload]

        monkeypatch.setattr(subprocess.Popen, "__init__", counting)

    def count(self, verb: str) -> int:
        return sum(verb in command for command in self.commands)


@pytest.mark.parametrize(
    ("spec", "fetches"), [("blob:none", 1), ("tree:0", 2), pytest.param("blob:limit=1", 1, marks=pytest.mark.slow)]
)
def test_what_a_checkout_and_a_merge_need_is_fetched_at_once_and_the_rest_is_not(
    spec: str, fetches: int, an_origin: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = partial_clone(an_origin, spec)
    base, head = clone.git("rev-parse", "origin/main"), clone.git("rev-parse", "origin/topic")
    refs = clone.git("for-each-ref")
    with scratch(discover(str(clone.path))) as made:
        log = Log(monkeypatch)
        outcome = merge(made, base, head)
        assert log.count("fetch") == fetches
        assert outcome.commit
        made = checkout(made, outcome.commit)
        assert log.count("fetch") == fetches
        assert Path(made.worktree, "dir/deep/1").read_text() == "main\n" + "1\n" * 20 + "topic\n"
        assert changes(made, baseline(made)) == ()
        assert made.repo.text("remote") == ""
    assert clone.git("for-each-ref") == refs
    assert not (clone.path / ".git/FETCH_HEAD").exists()
    assert missing_of(clone, base, head) == 0
    assert missing_of(clone, "past") == 1


@pytest.mark.parametrize("spec", ["blob:none", pytest.param("tree:0", marks=pytest.mark.slow)])
def test_a_remote_that_does_not_answer_is_told_with_gits_reason(spec: str, an_origin: Place) -> None:
    clone = partial_clone(an_origin, spec)
    tip = clone.git("rev-parse", "origin/topic")
    an_origin.path.rename(an_origin.path.parent / "gone")
    with scratch(discover(str(clone.path))) as made, pytest.raises(CannotTell) as caught:
        checkout(made, tip)
    assert "could not be fetched from origin: fatal: " in caught.value.message
    assert "does not appear to be a git repository" in caught.value.message
    assert "`git fetch --refetch --no-filter origin`" in caught.value.hint


@pytest.mark.slow
def test_the_hint_for_a_partial_clone_brings_what_is_missing(an_origin: Place) -> None:
    clone = partial_clone(an_origin, "tree:0")
    tip = clone.git("rev-parse", "origin/topic")
    clone.git("fetch", "-q", "--refetch", "--no-filter", "origin")
    assert missing_of(clone, tip) == 0


def test_a_promise_that_the_remote_breaks_is_told(an_origin: Place) -> None:
    clone = partial_clone(an_origin, "blob:none")
    blob = an_origin.git("rev-parse", "topic:added")
    (an_origin.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with (
        scratch(discover(str(clone.path))) as made,
        pytest.raises(CannotTell, match="could not be fetched from origin"),
    ):
        checkout(made, clone.git("rev-parse", "origin/topic"))


@pytest.mark.slow
def test_a_partial_clone_without_its_remote_names_none(an_origin: Place) -> None:
    clone = partial_clone(an_origin, "blob:none")
    tip = clone.git("rev-parse", "origin/topic")
    clone.git("remote", "remove", "origin")
    with scratch(discover(str(clone.path))) as made, pytest.raises(CannotTell, match="no remote is a promisor"):
        checkout(made, tip)


@pytest.mark.slow
def test_a_partial_submodule_fetches_from_its_own_remote(an_origin: Place, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    an_origin.git("init", "-q", str(outer))
    allowed = ("-c", "protocol.file.allow=always", "-C", str(outer))
    an_origin.git(*allowed, "submodule", "-q", "add", f"file://{an_origin.path}", "mod")
    tip = Place(outer).commit({})
    shutil.rmtree(outer / ".git/modules/mod")
    an_origin.git(
        "clone", "-q", "--bare", "--filter=blob:none", f"file://{an_origin.path}", f"{outer}/.git/modules/mod"
    )
    shutil.rmtree(outer / "mod")
    with scratch(discover(str(outer))) as made:
        made = checkout(made, tip)
        assert Path(made.worktree, "mod/old").read_text() == "1\n"


def test_a_full_clone_asks_nothing_more_and_its_missing_blob_has_another_hint(
    an_origin: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, tip = discover(str(an_origin.path)), an_origin.git("rev-parse", "HEAD")
    log = Log(monkeypatch)
    with scratch(repo) as made:
        checkout(made, tip)
    verbs = [next(word for word in command[1:] if not word.startswith("-")) for command in log.commands]
    assert verbs == ["init", "for-each-ref", "checkout", "read-tree", "ls-files"]
    blob = an_origin.git("rev-parse", "HEAD:old")
    (an_origin.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with scratch(repo) as made, pytest.raises(BadInput, match="1 objects of commit") as caught:
        checkout(made, tip)
    assert caught.value.hint.endswith("`git fetch --refetch`")
