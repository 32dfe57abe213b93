"""A record as it is stored: one immutable line of JSON whose SHA-256 is its id."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

SCHEMA = 1
LINE_LIMIT_BYTES = 64 * 1024


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every stored record; readers ignore fields that they do not know."""


class Header(Record, frozen=True, kw_only=True):
    """The two fields that say how to read the rest of a line."""

    schema: int
    kind: str


class Fault(StrEnum):
    """Why a stored line is not read."""

    TOO_LONG = "too_long"
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    MALFORMED = "malformed"


class Line(Record, frozen=True, kw_only=True):
    """A stored line: its ``id``, its ``raw`` bytes without line end and its header, or the fault that hides both."""

    id: str
    raw: bytes = b""
    header: Header | None = None
    fault: Fault | None = None


R = TypeVar("R", bound=Record)


def encode(record: Record) -> bytes:
    """``record`` as the bytes of one line, without line end; text that is no Unicode (a name of git's) is escaped."""
    try:
        return _ENCODER.encode(record)
    except UnicodeEncodeError:
        return _ENCODER.encode(_escaped(msgspec.to_builtins(record)))


def identify(raw: bytes | memoryview) -> str:
    """The id of a stored record: SHA-256 (hex) of its line's bytes."""
    return hashlib.sha256(raw).hexdigest()


def lines(note: bytes) -> Iterator[Line]:
    """Each line of a note; one that cannot be read bears its fault and hides no other."""
    for start, end in _spans(note):
        yield _line(note, start, end)


def join(notes: Iterable[bytes]) -> bytes:
    """One note with every line of ``notes`` once, sorted bytewise, each ended: equal whatever the order of joining."""
    kept = {note[start:end] for note in notes for start, end in _spans(note)}
    return b"".join(raw + b"\n" for raw in sorted(kept))


def decode(line: Line, as_type: type[R]) -> R | None:
    """The record in ``line``, or None where its fields do not fit ``as_type``."""
    try:
        return msgspec.json.decode(line.raw, type=as_type)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(key): _escaped(entry) for key, entry in value.items()}
    return [_escaped(entry) for entry in value] if isinstance(value, list | tuple) else value


def _spans(note: bytes) -> Iterator[tuple[int, int]]:
    """Where each line starts and ends that is not blank; nothing of a note, which may be large, is copied."""
    end = 0
    while (blank := _BLANK.match(note, end)) and (first := blank.end()) < len(note):
        start = note.rfind(b"\n", end, first) + 1 or end
        end = note.find(b"\n", first)
        if end < 0:
            end = len(note)
        yield start, end


def _line(note: bytes, start: int, end: int) -> Line:
    if end - start > LINE_LIMIT_BYTES:
        return Line(id=identify(memoryview(note)[start:end]), fault=Fault.TOO_LONG)
    raw = note[start:end]
    try:
        header = _HEADER.decode(raw)
    except msgspec.ValidationError:
        return Line(id=identify(raw), fault=Fault.MALFORMED)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return Line(id=identify(raw), fault=Fault.NOT_JSON)
    return Line(id=identify(raw), raw=raw, header=header)


_BLANK = re.compile(rb"\s*")


_ENCODER = msgspec.json.Encoder()
_HEADER = msgspec.json.Decoder(Header)
