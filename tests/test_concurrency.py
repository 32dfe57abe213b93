"""Many writers at once, in one clone and as one writer: no record is ever lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitevals.evidence.reading import NOTES, gathered
from gitevals.git.repo import discover
from gitevals.git.store import Implementation, opened
from gitevals.model.evaluation import Stored
from gitevals.model.movement import deciding
from tests.conftest import Place

ROOT = Path(__file__).parents[1]
WRITERS, TOGETHER = 40, 5

# Forks, which saves most of the imports; each child, once its standard input is closed, adds one evaluation.
WRITER = f"""
import os, sys
sys.path[:] = {[str(ROOT), *sys.path]!r}
from gitevals.evidence import writing
from gitevals.git import repo
from gitevals.git import store as stores
from gitevals.model.evaluation import Environment, Evaluation, Merge, Subject
from gitevals.model.result import Result
using, first, count, base, head, tree = sys.argv[1:]
number = next((n for n in range(int(first), int(first) + int(count)) if os.fork() == 0), None)
if number is None:
    sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(int(count))))
evaluation = Evaluation(
    task="42", contract="c" * 64, result=Result.FAILED, verification_digest="d" * 64, evaluator="test",
    subject=Subject(ref="refs/heads/main", source=None, repository="r1", base=base, base_tree=tree, head=head,
                    heads=(head,), tree=tree),
    writer="shared", started="", finished="", environment=Environment(git="", os="", arch=""),
    merge=Merge(strategy="none", git=""), nonce=f"{{number:02}}",
)
here = repo.discover()
with stores.opened(here, using) as opened:
    store = writing.Store(repo=here, objects=opened, writer="shared", repository="r1")
    sys.stdin.read()
    [stored] = writing.append_evaluations(store, [evaluation])
    print(stored.id)
"""


def evaluations_on(place: Place, name: str) -> list[Stored]:
    repo = discover(str(place.path))
    with opened(repo) as objects:
        evidence = gathered(repo, objects)
        found = evidence.evaluations([name])
        assert evidence.faults == []
        return found


# What others do to the same repository meanwhile, again and again until a file says that it is enough.
OTHERS = r"""
until [ -e enough ]; do
    git notes --ref=other add -f -m added HEAD
    git notes --ref=other append -m appended HEAD
    git notes --ref=other remove HEAD
    {housekeeping}
done >/dev/null 2>&1
"""
HOUSEKEEPING = ("git pack-refs --all --prune", "git gc -q")


@pytest.fixture(params=["sha1-libgit2", "sha1-plumbing", "sha256-plumbing", "reftable-plumbing"])
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Place, Implementation]:
    """A repository of some format with one commit, and what reads and writes its objects."""
    kind, using = str(request.param).split("-")
    option = "--ref-format=reftable" if kind == "reftable" else f"--object-format={kind}"
    place = Place(tmp_path)
    if place.attempt("git", "init", "-q", option).returncode != 0:
        pytest.skip(f"this git has no {option}")
    place.commit({"README": "hello\n"})
    return place, "libgit2" if using == "libgit2" else "plumbing"


@pytest.mark.slow
def test_forty_processes_that_are_one_writer_lose_no_record_of_one_tree(
    crowded: tuple[Place, Implementation],
) -> None:
    place, using = crowded
    base, head = place.git("rev-parse", "HEAD"), place.commit({"change": "1\n"})
    tree = place.git("rev-parse", "HEAD^{tree}")
    others = [
        subprocess.Popen(["sh", "-c", OTHERS.format(housekeeping=command)], cwd=place.path) for command in HOUSEKEEPING
    ]
    try:
        told = told_by_writers(place, using, base, head, tree)
    finally:
        place.write("enough", "")
        for other in others:
            other.wait()
    assert len(told) == WRITERS
    for collected in (False, True):
        if collected:
            place.git("gc", "--prune=now", "-q")
        for name in (head, tree):
            found = evaluations_on(place, name)
            assert {stored.id for stored in found} == told
            assert sorted(stored.evaluation.nonce for stored in found) == [f"{number:02}" for number in range(WRITERS)]
    # Each was written with all the earlier ones in view, so that one alone decides and there is no dispute.
    assert len(deciding(found, found)) == 1
    assert place.git("rev-list", "--count", f"{NOTES}shared") == str(WRITERS)
    assert place.git("fsck", "--strict", "--no-dangling") == ""


def told_by_writers(place: Place, using: Implementation, base: str, head: str, tree: str) -> set[str]:
    """The ids that so many writers tell, which all begin at one moment."""
    gate_out, gate_in = os.pipe()
    command = [sys.executable, "-S", "-c", WRITER, using]
    writers = [
        subprocess.Popen(
            [*command, str(first), str(TOGETHER), base, head, tree],
            stdin=gate_out,
            stdout=subprocess.PIPE,
            cwd=place.path,
        )
        for first in range(0, WRITERS, TOGETHER)
    ]
    os.close(gate_out)
    os.close(gate_in)
    told = {name for writer in writers for name in writer.communicate()[0].decode().split()}
    assert {writer.returncode for writer in writers} == {0}
    return told
