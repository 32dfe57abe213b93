"""Records and contracts as bytes: whatever they say is read as it was written, by older and newer readers too."""

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from gitevals.model import contract as contracts
from gitevals.model import record
from gitevals.model.contract import AtBase, Cached, Command, Contract, Criterion, Mode
from gitevals.model.evaluation import Evaluation, Freeze, Reopen
from gitevals.model.record import Fault, Line, Record
from gitevals.model.result import Result
from tests.model import an_evaluation
from tests.properties import FEW_AND_MANY, JSON, damaged, holds

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
NAMED = st.dictionaries(TEXT, TEXT, max_size=2)
FREEZES = st.builds(
    Freeze, task=TEXT, digest=TEXT, repository=TEXT, base=TEXT, supersedes=TEXTS, reason=TEXT, actor=TEXT,
    writer=TEXT, tool=TEXT, created=TEXT, nonce=TEXT,
)  # fmt: skip
REOPENS = st.builds(
    Reopen, task=TEXT, repository=TEXT, deliveries=TEXTS, reason=TEXT, actor=TEXT, writer=TEXT, created=TEXT, nonce=TEXT
)
COMMANDS = st.builds(
    Command, command=TEXTS, timeout_seconds=st.integers(0, 2**40), cwd=TEXT, env=NAMED, pass_env=TEXTS,
    exit_codes=st.dictionaries(st.integers(0, 255).map(str), st.sampled_from(Result), max_size=2), graders=TEXTS,
    at_base=st.sampled_from(AtBase), covers=TEXTS,
)  # fmt: skip
CONTRACTS = st.builds(
    Contract, schema=st.just(1), task=TEXT, mode=st.sampled_from(Mode),
    criteria=st.lists(st.builds(Criterion, id=TEXT, description=TEXT, checks=TEXTS), max_size=3).map(tuple),
    checks=st.dictionaries(TEXT, COMMANDS, max_size=2), verification=st.lists(COMMANDS, max_size=2).map(tuple),
    setup=st.lists(COMMANDS, max_size=1).map(tuple), outputs=TEXTS,
    cache=st.lists(st.builds(Cached, path=TEXT, key=TEXTS, spares=TEXTS), max_size=1).map(tuple), graders=TEXT,
)  # fmt: skip
REOPEN = Reopen(
    task="42", repository="r1", deliveries=("m1",), reason="more", writer="tester", created="2030-01-02", nonce="00"
)
FREEZE = Freeze(
    task="42", digest="c0ffee", repository="r1", base="b0", writer="tester", tool="t", created="2030-01-02", nonce="0"
)
KINDS: dict[str, Record] = {"evaluation": an_evaluation(), "freeze": FREEZE, "reopen": REOPEN}
EVERY_KIND = pytest.mark.parametrize("kind", sorted(KINDS))


@FEW_AND_MANY
def test_a_freeze_and_a_reopening_are_one_line_that_is_read_as_it_was_written(examples: int) -> None:
    def law(written: Freeze | Reopen) -> None:
        raw = record.encode(written)
        assert b"\n" not in raw
        (line,) = record.lines(b"\n \n" + raw + b"\n")
        assert (line.raw, line.id) == (raw, hashlib.sha256(raw).hexdigest())
        assert line.header is not None
        assert line.header.kind == written.kind
        assert record.decode(line, type(written)) == written

    holds(law, FREEZES | REOPENS, examples=examples)


@FEW_AND_MANY
def test_equal_contracts_have_equal_bytes_and_these_are_read_as_they_were_written(examples: int) -> None:
    def law(written: Contract) -> None:
        raw = contracts.canonical(written)
        assert contracts.decode(raw) == written
        assert contracts.canonical(contracts.decode(raw)) == raw
        assert contracts.digest(written) == hashlib.sha256(raw).hexdigest()
        turned = {name: written.checks[name] for name in reversed(written.checks)}
        assert contracts.canonical(msgspec.structs.replace(written, checks=turned)) == raw
        by_hand = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert raw == by_hand.encode()

    holds(law, CONTRACTS, examples=examples)


@EVERY_KIND
@FEW_AND_MANY
def test_what_a_later_writer_adds_to_a_record_changes_nothing_for_this_reader(kind: str, examples: int) -> None:
    written = KINDS[kind]
    own = set(msgspec.structs.asdict(written))

    def law(added: dict[str, Any], at: int, others: list[bytes]) -> None:
        fields = list(msgspec.to_builtins(written).items())
        fields[at:at] = [(name, value) for name, value in added.items() if name not in own]
        raw = json.dumps(dict(fields)).encode()
        joined = record.join([b"\n".join(others), raw])
        line = next(line for line in record.lines(joined) if line.id == record.identify(raw))
        assert line.raw == raw
        assert record.decode(line, type(written)) == written

    added = st.dictionaries(st.text(min_size=1, max_size=6), JSON, max_size=3)
    others = st.lists(st.binary(max_size=5).map(lambda raw: raw.replace(b"\n", b"")), max_size=3)
    holds(law, added, st.integers(0, 6), others, examples=examples)


@EVERY_KIND
def test_a_field_that_comes_later_has_its_default_in_a_record_of_today(kind: str) -> None:
    today = type(KINDS[kind])
    later = msgspec.defstruct(
        "Later", [("later", tuple[str, ...], ("none",))], bases=(today,), frozen=True, kw_only=True
    )
    (line,) = record.lines(record.encode(KINDS[kind]))
    read: Any = record.decode(line, later)
    assert read is not None
    assert read.later == ("none",)
    assert msgspec.structs.asdict(KINDS[kind]).items() <= msgspec.structs.asdict(read).items()


@EVERY_KIND
@FEW_AND_MANY
def test_damaged_bytes_are_a_record_or_a_fault_and_nothing_worse(kind: str, examples: int) -> None:
    raw = record.encode(KINDS[kind])

    def law(note: bytes) -> None:
        for line in record.lines(note):
            assert (line.header is None) == (line.fault is not None) == (line.raw == b"")
            for as_type in (Evaluation, Freeze, Reopen):
                read = record.decode(line, as_type)
                assert read is None or record.encode(read)
        try:
            contracts.decode(note)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return

    holds(law, damaged(st.just(raw + b"\n" + raw)) | st.binary(max_size=60), examples=examples)


def _lines_by_hand(note: bytes) -> list[tuple[str, int]]:
    return [(hashlib.sha256(raw).hexdigest(), len(raw)) for raw in note.split(b"\n") if raw.strip()]


@FEW_AND_MANY
def test_the_lines_of_any_note_are_those_between_its_line_ends(examples: int) -> None:
    def law(note: bytes) -> None:
        assert [line.id for line in record.lines(note)] == [name for name, _ in _lines_by_hand(note)]
        assert {line.id for line in record.lines(record.join([note]))} == {name for name, _ in _lines_by_hand(note)}

    pieces = st.sampled_from([b"\n", b"\n\n", b" ", b"\r", b"\x0b", b"\x1c", b"\x85", b"\xa0", b"\0", b"a", b"{}"])
    holds(law, st.lists(pieces | st.binary(max_size=3), max_size=12).map(b"".join), examples=examples)


@pytest.mark.parametrize("size", [record.LINE_LIMIT_BYTES, record.LINE_LIMIT_BYTES + 1])
def test_a_line_of_the_limit_is_the_longest_that_is_looked_into(size: int) -> None:
    raw = b'{"schema":1,"kind":"a"}'.ljust(size)
    (line,) = record.lines(b"\n" + raw + b"\n")
    fits = Line(id=record.identify(raw), raw=raw, header=record.Header(schema=1, kind="a"))
    too_long = Line(id=record.identify(raw), fault=Fault.TOO_LONG)
    assert line == (fits if size == record.LINE_LIMIT_BYTES else too_long)
