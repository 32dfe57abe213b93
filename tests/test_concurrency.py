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


@pytest.mark.slow
@pytest.mark.parametrize("using", ["libgit2", "plumbing"])
def test_forty_processes_that_are_one_writer_lose_no_record_of_one_tree(a_repo: Place, using: Implementation) -> None:
    base, head = a_repo.git("rev-parse", "HEAD"), a_repo.commit({"change": "1\n"})
    tree = a_repo.git("rev-parse", "HEAD^{tree}")
    gate_out, gate_in = os.pipe()
    command = [sys.executable, "-S", "-c", WRITER, using]
    writers = [
        subprocess.Popen(
            [*command, str(first), str(TOGETHER), base, head, tree],
            stdin=gate_out,
            stdout=subprocess.PIPE,
            cwd=a_repo.path,
        )
        for first in range(0, WRITERS, TOGETHER)
    ]
    os.close(gate_out)
    os.close(gate_in)
    told = {name for writer in writers for name in writer.communicate()[0].decode().split()}
    assert {writer.returncode for writer in writers} == {0}
    assert len(told) == WRITERS
    for collected in (False, True):
        if collected:
            a_repo.git("gc", "--prune=now", "-q")
        for name in (head, tree):
            found = evaluations_on(a_repo, name)
            assert {stored.id for stored in found} == told
            assert sorted(stored.evaluation.nonce for stored in found) == [f"{number:02}" for number in range(WRITERS)]
    # Each was written with all the earlier ones in view, so that one alone decides and there is no dispute.
    assert len(deciding(found, found)) == 1
    assert a_repo.git("rev-list", "--count", f"{NOTES}shared") == str(WRITERS)
    assert a_repo.git("fsck", "--strict") == ""
