from collections.abc import Callable
from pathlib import Path

import pytest

from gitevals.git.repo import discover
from gitevals.git.scratch import checkout, scratch
from tests.conftest import Place

QUESTIONS = (
    ("describe", "--tags"),
    ("describe", "--dirty", "--tags", "--long"),
    ("describe", "--dirty", "--tags", "--long", "--match", "*[0-9]*"),
    ("describe", "--tags", "--always", "--exclude", "v1*"),
    ("log", "--format=%H %P %D", "--decorate-refs=refs/tags"),
    ("rev-list", "--count", "HEAD"),
    ("rev-parse", "--is-shallow-repository"),
    ("status", "--porcelain", "--untracked-files=no"),
    ("tag", "--points-at", "HEAD^{}"),
)


@pytest.fixture
def a_history(a_repo: Place) -> Place:
    """Five commits with a merge; an annotated tag on the second, a light one on a side branch."""
    a_repo.git("tag", "-a", "-m", "one", "v1.0.0", a_repo.commit({"a": "1\n"}))
    a_repo.git("switch", "-q", "-c", "side")
    a_repo.git("tag", "side-2", a_repo.commit({"b": "2\n"}))
    a_repo.git("switch", "-q", "main")
    a_repo.commit({"c": "3\n"})
    a_repo.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    a_repo.commit({".gitattributes": "*.crlf text eol=crlf\n", "d.crlf": "x\n"})
    return a_repo


def full(place: Place) -> Place:
    return place


def packed(place: Place) -> Place:
    place.git("pack-refs", "--all")
    place.git("repack", "-q", "-a", "-d")
    return place


def shallow(depth: int, *options: str) -> Callable[[Place], Place]:
    def clone(place: Place) -> Place:
        path = place.path.parent / "clone"
        place.git("clone", "-q", f"--depth={depth}", *options, f"file://{place.path}", str(path))
        return Place(path)

    return clone


def without_tags(place: Place) -> Place:
    path = place.path.parent / "clone"
    place.git("clone", "-q", "--no-tags", f"file://{place.path}", str(path))
    return Place(path)


@pytest.mark.parametrize(
    "kind",
    [
        full,
        shallow(2),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in (packed, shallow(1), shallow(3), shallow(2, "--no-tags"), without_tags)
        ),
    ],
)
def test_versions_and_history_are_those_of_the_users_clone(kind: Callable[[Place], Place], a_history: Place) -> None:
    clone = kind(a_history)
    with scratch(discover(str(clone.path))) as made:
        made = checkout(made, clone.git("rev-parse", "HEAD"))
        inside = Place(Path(made.worktree))
        for question in QUESTIONS:
            there, here = clone.attempt("git", *question), inside.attempt("git", *question)
            assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr), (
                question
            )
        inside.write("d.crlf", "other\n")
        described = inside.attempt("git", *QUESTIONS[1])
        assert described.returncode or described.stdout.endswith(b"-dirty\n")
