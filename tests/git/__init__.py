"""The storage layer, judged by real git."""

import pytest

from gitevals.git.repo import Repo, discover
from tests.conftest import Place

EVERY_STORE = pytest.mark.parametrize(
    ("object_format", "using"),
    [("sha1", "libgit2"), ("sha1", "plumbing"), ("sha256", "plumbing")],
    indirect=["object_format"],
)
BOTH_FORMATS = pytest.mark.parametrize("object_format", ["sha1", "sha256"], indirect=True)


def repo_of(place: Place) -> Repo:
    """The repository of a work tree, as a command started there finds it."""
    return discover(str(place.path))


def assert_sound(place: Place) -> None:
    """Git finds nothing wrong, not even what it would only warn about."""
    done = place.attempt("git", "fsck", "--strict", "--no-dangling", "--no-progress")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
