"""Records as lines: hostile ones hide nothing, joins converge, and the stored form never changes."""

import hashlib
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals.model import record
from gitevals.model.evaluation import (
    CheckRun,
    Correlation,
    Environment,
    Evaluation,
    Finding,
    Freeze,
    Merge,
    Reopen,
    Stream,
    Subject,
)
from gitevals.model.record import Fault, Header, Line
from gitevals.model.result import Result
from tests.model import an_evaluation

GOOD = b'{"schema":1,"kind":"evaluation"}'
HEADER = Header(schema=1, kind="evaluation")

HOSTILE: list[tuple[str, bytes, Fault]] = [
    ("words", b"not json", Fault.NOT_JSON),
    ("half an object", b'{"schema":1,"kind":"evaluation"', Fault.NOT_JSON),
    ("two objects", GOOD + GOOD, Fault.NOT_JSON),
    ("a byte order mark", b"\xef\xbb\xbf" + GOOD, Fault.NOT_JSON),
    ("UTF-16", GOOD.decode().encode("utf-16").replace(b"\n", b""), Fault.NOT_JSON),
    ("a NUL alone", b"\0", Fault.NOT_JSON),
    ("a NUL behind it", GOOD + b"\0", Fault.NOT_JSON),
    ("a NUL in text", b'{"schema":1,"kind":"a\0"}', Fault.NOT_JSON),
    ("a control character in text", b'{"schema":1,"kind":"a\x1b[2J"}', Fault.NOT_JSON),
    ("binary", bytes(byte for byte in range(256) if byte != 10), Fault.NOT_JSON),
    ("no UTF-8 in its kind", b'{"schema":1,"kind":"\xff"}', Fault.NOT_JSON),
    ("half a surrogate pair", b'{"schema":1,"kind":"\\ud800"}', Fault.NOT_JSON),
    ("half a pair in an unknown field", b'{"schema":1,"kind":"a","x":"\\udfff"}', Fault.NOT_JSON),
    ("NaN", b'{"schema":NaN,"kind":"a"}', Fault.NOT_JSON),
    ("NaN in an unknown field", b'{"schema":1,"kind":"a","x":NaN}', Fault.NOT_JSON),
    ("Infinity in an unknown field", b'{"schema":1,"kind":"a","x":-Infinity}', Fault.NOT_JSON),
    (
        "deep nesting in an unknown field",
        b'{"schema":1,"kind":"a","x":%s}' % (b"[" * 30000 + b"]" * 30000),
        Fault.NOT_JSON,
    ),
    ("deep nesting", b"[" * 60000, Fault.MALFORMED),
    ("a list", b"[]", Fault.MALFORMED),
    ("a number", b"1", Fault.MALFORMED),
    ("null", b"null", Fault.MALFORMED),
    ("no kind", b'{"schema":1}', Fault.MALFORMED),
    ("no schema", b'{"kind":"evaluation"}', Fault.MALFORMED),
    ("a schema that is text", b'{"schema":"1","kind":"a"}', Fault.MALFORMED),
    ("a schema that is true", b'{"schema":true,"kind":"a"}', Fault.MALFORMED),
    ("a schema that is 1.0", b'{"schema":1.0,"kind":"a"}', Fault.MALFORMED),
    ("a schema of 5000 digits", b'{"schema":%s,"kind":"a"}' % (b"9" * 5000), Fault.MALFORMED),
    ("a kind that is null", b'{"schema":1,"kind":null}', Fault.MALFORMED),
    ("one byte too many", GOOD + b" " * (record.LINE_LIMIT_BYTES + 1 - len(GOOD)), Fault.TOO_LONG),
    ("10 MiB", b"x" * (10 * 1024 * 1024), Fault.TOO_LONG),
    ("10 MiB of good JSON", b'{"schema":1,"kind":"a","x":"%s"}' % (b"x" * (10 * 1024 * 1024)), Fault.TOO_LONG),
]


@pytest.mark.parametrize(("raw", "fault"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_a_hostile_line_bears_its_fault_and_hides_no_other(raw: bytes, fault: Fault) -> None:
    before, line, after = record.lines(b"\n".join([GOOD, raw, GOOD[:-1] + b',"nonce":"2"}', b""]))
    assert (before.header, after.header) == (HEADER, HEADER)
    assert (line.header, line.fault) == (None, fault)
    assert line.id == hashlib.sha256(raw).hexdigest()
    assert len(line.raw) <= record.LINE_LIMIT_BYTES


@pytest.mark.parametrize("raw", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_a_hostile_line_is_kept_by_a_join_and_never_becomes_a_record(raw: bytes) -> None:
    assert raw in record.join([GOOD + b"\n", raw]).split(b"\n")
    for as_type in (Evaluation, Freeze, Reopen):
        assert record.decode(Line(id="", raw=raw[: record.LINE_LIMIT_BYTES]), as_type) is None


def test_a_line_of_just_the_limit_is_read() -> None:
    (line,) = record.lines(GOOD + b" " * (record.LINE_LIMIT_BYTES - len(GOOD)))
    assert line.header == HEADER


@pytest.mark.parametrize("note", [b"", b"\n", b"\n\n\n", b"  \t\n", b"\r\n\r\n", b"\x0b\n\x0c"])
def test_blank_lines_are_no_lines(note: bytes) -> None:
    assert list(record.lines(note)) == []
    assert record.join([note]) == b""
    assert record.join([note, GOOD, note]) == GOOD + b"\n"


def test_of_a_key_that_stands_twice_the_last_one_counts_for_header_and_record_alike() -> None:
    raw = record.encode(REOPEN).replace(b'"kind":"reopen"', b'"kind":"freeze","kind":"reopen","task":"41"', 1)
    (line,) = record.lines(raw)
    assert line.header == Header(schema=1, kind="reopen")
    assert record.decode(line, Reopen) == REOPEN


def test_an_unknown_kind_and_a_later_schema_are_read_as_what_they_are() -> None:
    (line,) = record.lines(b'{"kind":"wish","schema":7,"of":["a",{"later":1.5}]}')
    assert (line.header, line.fault) == (Header(schema=7, kind="wish"), None)


def test_unknown_fields_are_ignored_by_readers_and_survive_a_join_untouched() -> None:
    strange = record.encode(REOPEN)[:-1] + b', "later" : {"b":1,"a":[1.50,1e2]},"\\u0061":"\\/"}'
    other = b'{"kind":"wish","schema":7,"x":0.10}'
    assert record.join([strange, other]) == b"".join(raw + b"\n" for raw in sorted([strange, other]))
    (line,) = record.lines(strange)
    assert record.decode(line, Reopen) == REOPEN
    assert line.raw == strange


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"task":"42"', b'"task":42'),
        (b'"task":"42"', b'"job":"42"'),
        (b'"deliveries":["m1"]', b'"deliveries":"m1"'),
        (b'"deliveries":["m1"]', b'"deliveries":[null]'),
        (b'"reason":"more to do"', b'"reason":null'),
    ],
)
def test_a_record_whose_fields_do_not_fit_is_none(before: bytes, after: bytes) -> None:
    raw = record.encode(REOPEN)
    assert before in raw
    (line,) = record.lines(raw.replace(before, after))
    assert line.header is not None
    assert record.decode(line, Reopen) is None


def test_a_result_that_is_none_of_the_four_is_no_evaluation() -> None:
    raw = record.encode(an_evaluation()).replace(b'"result":"passed"', b'"result":"approved"')
    (line,) = record.lines(raw)
    assert record.decode(line, Evaluation) is None


def test_a_name_of_git_that_is_no_unicode_is_stored_escaped() -> None:
    odd = an_evaluation(source="caf\udce9", reason="conflicts in \udc80\udcff, Größe 🙂")
    raw = record.encode(odd)
    assert raw.decode().count("caf\\\\udce9") == 1
    (line,) = record.lines(raw)
    read = record.decode(line, Evaluation)
    assert read is not None
    assert read.subject.source == "caf\\udce9"
    assert read.reason == "conflicts in \\udc80\\udcff, Größe 🙂"
    plain = msgspec.structs.replace(
        odd, subject=msgspec.structs.replace(odd.subject, source="caf\\udce9"), reason=read.reason
    )
    assert raw == record.encode(plain)


_BYTES = st.binary(max_size=6) | st.sampled_from([GOOD, b"a", b"a\r", b" a", b"", b" ", b"\n", b"a\nb", b"b\n\na\n"])
_NOTES = st.lists(_BYTES, max_size=4).map(b"\n".join)


def _kept(*notes: bytes) -> set[bytes]:
    return {raw for note in notes for raw in note.split(b"\n") if raw.strip()}


@settings(max_examples=100, deadline=None, database=None)
@given(_NOTES, _NOTES, _NOTES)
def test_joins_converge_whatever_their_order_and_lose_no_line(one: bytes, two: bytes, three: bytes) -> None:
    join = record.join
    assert join([one, two]) == join([two, one])
    assert join([join([one, two]), three]) == join([one, join([two, three])]) == join([one, two, three])
    assert join([join([one])]) == join([one, one]) == join([one])
    joined = join([one, two, three])
    assert _kept(joined) == _kept(one, two, three)
    assert joined.count(b"\n") == len(_kept(joined))
    assert joined.split(b"\n")[:-1] == sorted(_kept(joined))
    assert {line.id for line in record.lines(joined)} == {
        line.id for note in (one, two, three) for line in record.lines(note)
    }


_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_NUMBER = st.integers(0, 2**53)
_RESULT = st.sampled_from(Result)
_STREAM = st.builds(Stream, sha256=_TEXT, bytes=_NUMBER, truncated=st.booleans(), blob=_TEXT, excerpt=_TEXT)
_CHECK_RUN = st.builds(
    CheckRun,
    id=_TEXT,
    result=_RESULT,
    reason=_TEXT,
    exit_code=st.none() | st.integers(0, 255),
    duration_ms=_NUMBER,
    stdout=st.none() | _STREAM,
    stderr=st.none() | _STREAM,
)
_RUNS = st.lists(_CHECK_RUN, max_size=2).map(tuple)
_FINDING = st.builds(Finding, criterion=_TEXT, result=_RESULT, description=_TEXT, checks=_TEXTS, reason=_TEXT)
_SUBJECT = st.builds(
    Subject,
    ref=_TEXT,
    source=st.none() | _TEXT,
    repository=_TEXT,
    base=_TEXT,
    base_tree=_TEXT,
    head=_TEXT,
    heads=_TEXTS,
    tree=_TEXT,
)
_EVALUATION = st.builds(
    Evaluation,
    task=_TEXT,
    contract=_TEXT,
    subject=_SUBJECT,
    result=_RESULT,
    reason=_TEXT,
    findings=st.lists(_FINDING, max_size=3).map(tuple),
    checks=_RUNS,
    verification=_RUNS,
    verification_digest=_TEXT,
    setup=_RUNS,
    evaluator=_TEXT,
    writer=_TEXT,
    started=_TEXT,
    finished=_TEXT,
    environment=st.builds(
        Environment, git=_TEXT, os=_TEXT, arch=_TEXT, tools=st.dictionaries(_TEXT, _TEXT, max_size=2)
    ),
    isolation=_TEXT,
    notes=_TEXTS,
    merge=st.builds(Merge, strategy=_TEXT, git=_TEXT),
    after=_TEXTS,
    nonce=_TEXT,
    correlation=st.builds(Correlation, run=_TEXT, task=_TEXT, attempt=_TEXT, stage=_TEXT),
)


@settings(max_examples=100, deadline=None, database=None)
@given(_EVALUATION)
def test_whatever_an_evaluation_says_it_is_one_line_that_is_read_as_it_was_written(evaluation: Evaluation) -> None:
    raw = record.encode(evaluation)
    assert b"\n" not in raw
    assert b"\r" not in raw
    (line,) = record.lines(raw + b"\n")
    assert line == Line(id=record.identify(raw), raw=raw, header=HEADER)
    read = record.decode(line, Evaluation)
    assert read == evaluation
    assert read is not None
    assert record.encode(read) == raw
    assert "id" not in json.loads(raw)


FULL = Evaluation(
    task="42",
    contract="c0ffee",
    subject=Subject(
        ref="refs/heads/main",
        source="task/42",
        repository="r1",
        base="b0",
        base_tree="b0-tree",
        head="h1",
        heads=("h1", "h2"),
        tree="t1",
    ),
    result=Result.FAILED,
    reason="good failed: exit 1",
    findings=(
        Finding(
            criterion="AC-1",
            result=Result.FAILED,
            description='Größe ≥ 1 🙂 \\ " \x1b / \u2028',
            checks=("good",),
            reason="good: exit 1",
        ),
        Finding(criterion="AC-2", result=Result.NOT_RUN),
    ),
    checks=(
        CheckRun(
            id="good",
            result=Result.FAILED,
            reason="exit 1",
            exit_code=1,
            duration_ms=12,
            stdout=Stream(sha256="aa", bytes=0),
            stderr=Stream(sha256="bb", bytes=2_000_000, truncated=True, blob="b10b", excerpt="boom\n"),
        ),
        CheckRun(id="spare", result=Result.NOT_RUN),
    ),
    verification=(CheckRun(id="verify-1", result=Result.PASSED, exit_code=0),),
    verification_digest="d1",
    setup=(CheckRun(id="setup-1", result=Result.PASSED, exit_code=0, duration_ms=1),),
    evaluator="git-evals 0.1.0",
    writer="tester",
    started="2030-01-02T03:04:05.000Z",
    finished="2030-01-02T03:04:06.789Z",
    environment=Environment(git="2.45.0", os="Linux", arch="x86_64", tools={"python": "3.11.7"}),
    isolation="none",
    merge=Merge(strategy="ort", git="2.45.0"),
    after=("e1", "e2"),
    nonce="0011223344556677",
    correlation=Correlation(run="r-1", task="T-42", attempt="2", stage="qa"),
)
FREEZE = Freeze(
    task="42",
    digest="c0ffee",
    repository="r1",
    base="b0",
    supersedes=("f1",),
    reason="first run",
    actor="A U Thor <author@example.org>",
    writer="tester",
    tool="git-evals 0.1.0",
    created="2030-01-02T03:04:05.000Z",
    nonce="0011223344556677",
)
REOPEN = Reopen(
    task="42",
    repository="r1",
    deliveries=("m1",),
    reason="more to do",
    actor="A U Thor <author@example.org>",
    writer="tester",
    created="2030-01-02T03:04:05.000Z",
    nonce="0011223344556677",
)

# Frozen for ever: ledgers hold such lines, and their ids are the digests of exactly these bytes.
FULL_LINE = (
    '{"schema":1,"kind":"evaluation","task":"42","contract":"c0ffee",'
    '"subject":{"ref":"refs/heads/main","source":"task/42","repository":"r1","base":"b0","base_tree":"b0-tree",'
    '"head":"h1","heads":["h1","h2"],"tree":"t1"},'
    '"result":"failed","reason":"good failed: exit 1",'
    '"findings":[{"criterion":"AC-1","result":"failed","description":"Größe ≥ 1 🙂 \\\\ \\" \\u001b / \u2028",'
    '"checks":["good"],"reason":"good: exit 1"},{"criterion":"AC-2","result":"not_run"}],'
    '"checks":[{"id":"good","result":"failed","reason":"exit 1","exit_code":1,"duration_ms":12,'
    '"stdout":{"sha256":"aa","bytes":0},'
    '"stderr":{"sha256":"bb","bytes":2000000,"truncated":true,"blob":"b10b","excerpt":"boom\\n"}},'
    '{"id":"spare","result":"not_run"}],'
    '"verification":[{"id":"verify-1","result":"passed","exit_code":0}],"verification_digest":"d1",'
    '"setup":[{"id":"setup-1","result":"passed","exit_code":0,"duration_ms":1}],'
    '"evaluator":"git-evals 0.1.0","writer":"tester",'
    '"started":"2030-01-02T03:04:05.000Z","finished":"2030-01-02T03:04:06.789Z",'
    '"environment":{"git":"2.45.0","os":"Linux","arch":"x86_64","tools":{"python":"3.11.7"}},"isolation":"none","notes":[],'
    '"merge":{"strategy":"ort","git":"2.45.0"},"after":["e1","e2"],"nonce":"0011223344556677",'
    '"correlation":{"run":"r-1","task":"T-42","attempt":"2","stage":"qa"}}'
).encode()
FREEZE_LINE = (
    b'{"schema":1,"kind":"freeze","task":"42","digest":"c0ffee","repository":"r1","base":"b0","supersedes":["f1"],'
    b'"reason":"first run","actor":"A U Thor <author@example.org>","writer":"tester","tool":"git-evals 0.1.0",'
    b'"created":"2030-01-02T03:04:05.000Z","nonce":"0011223344556677"}'
)
REOPEN_LINE = (
    b'{"schema":1,"kind":"reopen","task":"42","repository":"r1","deliveries":["m1"],"reason":"more to do",'
    b'"actor":"A U Thor <author@example.org>","writer":"tester","created":"2030-01-02T03:04:05.000Z",'
    b'"nonce":"0011223344556677"}'
)
GOLDEN: list[tuple[record.Record, bytes, str]] = [
    (FULL, FULL_LINE, "evaluation"),
    (FREEZE, FREEZE_LINE, "freeze"),
    (REOPEN, REOPEN_LINE, "reopen"),
]


@pytest.mark.parametrize(("written", "raw", "kind"), GOLDEN, ids=[row[2] for row in GOLDEN])
def test_the_stored_line_of_a_record_never_changes(written: record.Record, raw: bytes, kind: str) -> None:
    assert record.encode(written) == raw
    (line,) = record.lines(raw)
    assert line == Line(id=hashlib.sha256(raw).hexdigest(), raw=raw, header=Header(schema=1, kind=kind))
    assert record.decode(line, type(written)) == written


def test_a_line_of_an_earlier_writer_that_lacks_every_optional_field_is_still_read() -> None:
    raw = (
        b'{"schema":1,"kind":"evaluation","task":"42","contract":"c","subject":{"ref":"r","source":null,'
        b'"repository":"r1","base":"b","base_tree":"bt","head":"h","heads":["h"],"tree":"t"},"result":"passed",'
        b'"verification_digest":"v","evaluator":"e","writer":"w","started":"s","finished":"f",'
        b'"environment":{"git":"g","os":"o","arch":"a"},"merge":{"strategy":"none","git":"g"},"nonce":"n"}'
    )
    (line,) = record.lines(raw)
    read = record.decode(line, Evaluation)
    assert read is not None
    assert (read.findings, read.after, read.isolation, read.verification_result) == ((), (), "none", Result.PASSED)
