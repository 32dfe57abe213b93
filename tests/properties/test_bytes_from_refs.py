"""Whatever bytes a ref leads to, reading them ends in what can be read and in faults, and opens no gate."""

import hashlib
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from gitevals import hook
from gitevals.errors import EvalsError
from gitevals.evidence import filed
from gitevals.evidence.reading import Evidence, ledgers
from gitevals.git import form
from gitevals.git.repo import discover
from gitevals.git.store import Implementation, opened
from gitevals.model import record
from gitevals.model.contract import Contract, Criterion, Mode, canonical
from gitevals.model.evaluation import Freeze
from tests.conftest import Place, evals
from tests.model import an_evaluation
from tests.properties import FEW_AND_MANY, damaged, holds
from tests.properties.test_record_codec import FREEZE, REOPEN

EVIL = {"notes": "refs/notes/evals/evil", "contracts": "refs/evals/contracts/evil", "events": "refs/evals/events/evil"}
MODES = st.sampled_from([b"100644", b"40000", b"120000", b"160000", b"0", b"100755", b"777777777777"])
NAMES = st.sampled_from(
    [b"42", b"43", b"freezes", b"contract.json", b"task.md", b"a.json", b"..", b".git", b"\xff", b"a\nb", b"-", b"refs"]
)


class Store:
    """Objects and refs written as plain files: no program asks whether they make sense."""

    def __init__(self, place: Place) -> None:
        self.git_dir = place.path / ".git"

    def add(self, kind: str, body: bytes) -> str:
        """An object of any kind and body; its id."""
        whole = b"%s %d\0" % (kind.encode(), len(body)) + body
        name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        file = self.git_dir / "objects" / name[:2] / name[2:]
        file.parent.mkdir(exist_ok=True)
        if not file.exists():
            file.write_bytes(zlib.compress(whole, 1))
        return name

    def tree(self, *entries: tuple[bytes, bytes, str]) -> str:
        """A tree of mode, name and id, in the order given."""
        return self.add("tree", b"".join(b"%s %s\0%s" % (m, n, bytes.fromhex(i)) for m, n, i in entries))

    def at(self, ref: str, tree: str, text: bytes = b"git-evals ledger v1\n\nLedger: x\nRepository: r1\n") -> str:
        """A commit of ``tree`` that ``ref`` is at."""
        person = b"a <a@b> 1 +0000"
        commit = self.add("commit", b"tree %s\nauthor %s\ncommitter %s\n\n%s" % (tree.encode(), person, person, text))
        self.point(ref, commit)
        return commit

    def point(self, ref: str, name: str) -> None:
        """A loose ref."""
        file = self.git_dir / ref
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{name}\n")


@pytest.fixture
def evidenced(with_evil: Place) -> Place:
    """A project whose task 42 passed on its branch, and a branch ``evil`` that nobody evaluated."""
    assert evals(with_evil, "run", "42").code == 0
    return with_evil


CONTRACT = Contract(schema=1, task="43", mode=Mode.ENFORCE, criteria=(Criterion(id="AC-1", description="it is there"),))
LINE = record.encode(an_evaluation(ref="refs/heads/main", repository="r1"))
VALID = st.sampled_from(
    [LINE, LINE + b"\n" + LINE[:-1] + b',"later":[1]}\n', record.encode(FREEZE), record.encode(REOPEN),
     canonical(CONTRACT), b"# T\n\n## Acceptance Criteria\n\n- [ ] a\n", b""]
)  # fmt: skip


def _odd_record(content: bytes, changes: dict[str, Any]) -> bytes:
    """A freeze or reopening of task 43 with fields that nobody would write."""
    fields = {**msgspec.to_builtins(FREEZE), "task": "43", "digest": hashlib.sha256(content).hexdigest(), **changes}
    return json.dumps({**fields, "deliveries": ["x"]}).encode()


EITHER: tuple[Implementation, ...] = ("libgit2", "plumbing")
FIELDS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["task", "digest", "base", "supersedes", "repository", "kind", "schema", "created", "writer"]),
    st.sampled_from(
        ["", "..", "a/b", "\0", "\n", "\ud800", "é", "43", "r1", "reopen", "0" * 40, "f" * 64, "-x", "0" * 40 + ":a", 7,
         ["x"], {}, None, 10**400, "x" * 70000, "HEAD"]
    ),
    max_size=3,
)  # fmt: skip


@st.composite
def _hostile(draw: st.DrawFn, place: Place, ids: tuple[str, str]) -> dict[str, str]:
    """Ledgers of ``evil`` in which anything may be anything; their tips by family."""
    store = Store(place)
    head, tree = ids
    contents = VALID | damaged(VALID) | st.binary(max_size=30)
    blob = store.add("blob", draw(contents))
    content = draw(contents)
    odd = store.add("blob", _odd_record(content, draw(FIELDS)))
    inner = store.tree((b"100644", b"contract.json", store.add("blob", content)), (draw(MODES), b"task.md", blob))
    freezes = store.tree((draw(MODES), b"a.json", blob), (b"100644", b"b.json", odd))
    digest = hashlib.sha256(content).hexdigest().encode()
    below = draw(st.sampled_from([blob, inner, freezes, head, "1" * 40]))
    task = store.tree((b"40000", digest, inner), (b"40000", b"freezes", freezes), (draw(MODES), draw(NAMES), below))
    note = store.tree((draw(MODES), tree[2:].encode(), blob), (draw(MODES), head[2:].encode(), blob))
    root = {
        "notes": [(draw(MODES), name[:2].encode(), note) for name in (head, tree)],
        "contracts": [(b"40000", b"42", task), (b"40000", b"43", task), (draw(MODES), draw(NAMES), below)],
        "events": [(b"40000", draw(NAMES), freezes), (draw(MODES), b"43", freezes)],
    }
    tips = {}
    for family, entries in root.items():
        top = store.tree(*entries)
        if draw(st.integers(0, 9)) == 0:
            top = store.add("tree", draw(damaged(st.just(b"100644 a\0" + b"i" * 20))))
        text = draw(st.sampled_from([b"git-evals ledger v1\n", b"Notes added by 'git notes add'\n", b"\xff"]))
        tips[family] = store.at(EVIL[family], top, text)
        if draw(st.integers(0, 9)) == 0:
            kind = draw(st.sampled_from(["commit", "tag"]))
            broken = draw(damaged(st.just(b"tree %s\nparent x\nauthor a\n\n" % top.encode())))
            tips[family] = draw(st.sampled_from([blob, top, "2" * 40, store.add(kind, broken)]))
            store.point(EVIL[family], tips[family])
    return tips


def _ids(place: Place) -> tuple[str, str]:
    """The evaluated commit and its tree."""
    return place.git("rev-parse", "task/42"), place.git("rev-parse", "task/42^{tree}")


def _everything(evidence: Evidence, subjects: tuple[str, ...]) -> Iterator[Callable[[], object]]:
    yield lambda: evidence.evaluations(subjects)
    yield evidence.every_evaluation
    yield evidence.tasks
    yield lambda: filed.freezes(evidence)
    yield lambda: filed.events(evidence)
    for task in ("42", "43", "..", "a/b", "\udcff"):
        yield partial(evidence.reopens, task)
        yield partial(_of_task, evidence, task)


def _of_task(evidence: Evidence, task: str) -> None:
    for entry in evidence.freezes(task):
        evidence.contract(task, entry.freeze.digest)
        evidence.text(task, entry.freeze.digest)


@FEW_AND_MANY
def test_reading_any_ledger_gives_what_can_be_read_and_nothing_but_our_own_errors(a_repo: Place, examples: int) -> None:
    place, here = a_repo, discover(str(a_repo.path))
    ids = place.git("rev-parse", "HEAD"), place.git("rev-parse", "HEAD^{tree}")

    def law(tips: dict[str, str]) -> None:
        for using in EITHER:
            with opened(here, using) as objects:
                found = ledgers({EVIL[family]: name for family, name in tips.items()})
                evidence = Evidence(objects, found, here.common_dir)
                for read in _everything(evidence, ids):
                    try:
                        read()
                    except EvalsError:
                        continue
                for family, name in tips.items():
                    form.faults(objects, name, EVIL[family], lambda path: len(path) < 50)
                assert all(isinstance(entry.freeze, Freeze) for entry in evidence._freezes.get("43", ()))

    holds(law, _hostile(place, ids), examples=examples)


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",), ("status", "42"), ("status", "43"), ("tasks",), ("log",), ("log", "--json"), ("report", "42"),
    ("show", "task/42"), ("verify", "--branch", "task/42"), ("verify", "--branch", "evil"), ("audit",), ("doctor",),
    ("contract", "42"), ("contract", "43"), ("merge", "evil", "--dry-run"),
)  # fmt: skip


def _hook(place: Place, branch: str, monkeypatch: pytest.MonkeyPatch) -> int:
    line = f"{place.git('rev-parse', 'main')} {place.git('rev-parse', branch)} refs/heads/main\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    return hook.answer(["reference-transaction"])


def _judged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command and the hook, over whatever the refs hold now."""
    for command in COMMANDS:
        answer = evals(place, *command)
        assert answer.code in (0, 1, 2, 3), (command, answer)
        assert "Traceback" not in answer.err
        assert "\x1b" not in answer.out + answer.err
        if "evil" in command:
            assert answer.code != 0, (command, answer)
    assert _hook(place, "evil", monkeypatch) == 1
    assert _hook(place, "task/42", monkeypatch) in (0, 1)


@pytest.mark.slow
def test_over_any_ledger_every_command_ends_with_a_documented_exit_and_the_gate_stays_shut(
    evidenced: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, ids = evidenced, _ids(evidenced)
    holds(lambda tips: _judged(place, monkeypatch), _hostile(place, ids), examples=40)


@pytest.mark.slow
def test_over_lines_that_are_no_records_the_gate_and_the_commands_say_what_they_said(
    evidenced: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, store = evidenced, Store(evidenced)
    head, tree = _ids(place)
    odd = [b"\xff", b"[" * 70000, b'{"schema":1,"kind":"evaluation","task":"42"}', b"{" * 500, b"\0", b"9" * 5000]
    blob = store.add("blob", b"\n".join(odd))
    notes = [store.tree((b"100644", name[2:].encode(), blob)) for name in (head, tree)]
    store.at(
        EVIL["notes"],
        store.tree(*sorted((b"40000", n[:2].encode(), t) for n, t in zip((head, tree), notes, strict=True))),
    )
    freezes = store.tree(*((b"100644", b"%d.json" % n, store.add("blob", raw)) for n, raw in enumerate(odd)))
    task = store.tree((b"40000", b"freezes", freezes))
    store.at(EVIL["contracts"], store.tree((b"40000", b"42", task), (b"40000", b"\xff", task)))
    store.at(EVIL["events"], store.tree((b"40000", b"42", freezes)))
    assert _hook(place, "task/42", monkeypatch) == 0
    assert _hook(place, "evil", monkeypatch) == 1
    for command, code in ((("show", head), 0), (("log",), 0), (("tasks",), 0), (("verify", "--branch", "task/42"), 0)):
        answer = evals(place, *command)
        assert (answer.code, "Traceback" in answer.err) == (code, False), answer
    assert "is skipped: malformed" in evals(place, "show", head).err
