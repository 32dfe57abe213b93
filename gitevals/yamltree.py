"""Strict YAML as a tree of values that know their line and path; imports yaml, so import this module late."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec
import yaml

from gitevals.errors import ConfigInvalid

DEPTH_LIMIT = 32
SHOWN_LIMIT = 60
PATH_LIMIT = 200
INTEGER_DIGITS_LIMIT = 18

E = TypeVar("E", bound=StrEnum)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a file: its line (1-based; the key's in a mapping), its path, and what was written there."""

    file: str
    line: int
    path: str
    value: "str | int | bool | tuple[Node, ...] | dict[str, Node] | None"

    def error(self, problem: str, *, hint: str) -> ConfigInvalid:
        """The error to raise about this value."""
        where = f"{self.path[-PATH_LIMIT:]}: " if self.path else ""
        return ConfigInvalid(f"{self.file}:{self.line}: {where}{problem}", hint=hint)

    def expected(self, what: str, *, hint: str) -> ConfigInvalid:
        """The error for a value of another kind than ``what``."""
        return self.error(f"expected {what}, found {self.found()}", hint=hint)

    def text(self) -> str:
        """Text that is not empty."""
        if isinstance(self.value, (bool, int)):
            raise self.expected("text", hint=f'put it in quotes if text is meant: "{self.json()}"')
        if not isinstance(self.value, str) or not self.value:
            raise self.expected("text", hint="write a word, or text in quotes")
        return self.value

    def whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self.value
        hint = f"write a number from {low} to {high}, without quotes"
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.expected("a whole number", hint=hint)
        if not low <= value <= high:
            raise self.expected(f"a number from {low} to {high}", hint=hint)
        return value

    def choice(self, kind: type[E]) -> E:
        """One word of an enumeration."""
        words = [str(member) for member in kind]
        if not isinstance(self.value, str) or self.value not in words:
            raise self.expected(f"{', '.join(words[:-1])} or {words[-1]}", hint=f"write one of: {', '.join(words)}")
        return kind(self.value)

    def items(self, *, hint: str) -> tuple["Node", ...]:
        """The items of a list; ``hint`` shows how this list is written."""
        if not isinstance(self.value, tuple):
            raise self.expected("a list", hint=hint)
        return self.value

    def texts(self, *, hint: str) -> tuple[str, ...]:
        """The items of a list of texts."""
        return tuple(item.text() for item in self.items(hint=hint))

    def mapping(self, *, hint: str) -> dict[str, "Node"]:
        """The values of a mapping by key; ``hint`` shows how this mapping is written."""
        if not isinstance(self.value, dict):
            raise self.expected("a mapping", hint=hint)
        return self.value

    def fields(self, known: Sequence[str], *, hint: str) -> dict[str, "Node"]:
        """The values of a mapping that has no keys but the ``known`` ones."""
        values = self.mapping(hint=hint)
        for key, node in values.items():
            if key not in known:
                raise node.error("unknown key", hint=f"known here: {', '.join(known)}")
        return values

    def found(self) -> str:
        """What stands here, for a message."""
        if isinstance(self.value, tuple):
            return "a list"
        if isinstance(self.value, dict):
            return "a mapping"
        return "nothing" if self.value is None else shortened(self.json())

    def json(self) -> str:
        """The value as compact JSON, which is YAML too."""
        return msgspec.json.encode(self.plain()).decode()

    def plain(self) -> object:
        """The value without lines and paths."""
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value


def shortened(text: str) -> str:
    """``text`` cut to what a message can bear."""
    return text if len(text) <= SHOWN_LIMIT else text[: SHOWN_LIMIT - 1] + "…"


def read(content: bytes, *, file: str, limit_bytes: int, start: str = "a key and a value") -> Node:
    """The one document in ``content``; anything that two readers might read differently is `ConfigInvalid`.

    ``start`` is how such a file begins, for the hint about an empty one.
    """
    place = Node(file=file, line=1, path="", value=None)
    if len(content) > limit_bytes:
        raise place.error(f"larger than {limit_bytes} bytes", hint="move long lists into scripts that a check runs")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _at(place, line).error("not UTF-8", hint="save the file as UTF-8") from error
    try:
        return _document(place, yaml.parse(text, Loader=yaml.SafeLoader), start)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _not_yaml(_at(place, line), error.problem or "unreadable") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _not_yaml(_at(place, line), f"the character U+{ord(text[error.position]):04X} is not allowed") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _not_yaml(place, "a number or an escape is out of range") from error


def _not_yaml(place: Node, problem: str) -> ConfigInvalid:
    return place.error(f"not YAML: {problem}", hint="check indentation and quotes around that line")


def _document(place: Node, events: Iterator[yaml.Event], start: str) -> Node:
    root: Node | None = None
    for event in events:
        if not isinstance(event, yaml.DocumentStartEvent):
            continue
        if root is not None:
            raise _at(place, _line(event)).error(
                "a second document starts here", hint="keep one document; remove this `---`"
            )
        first = next(events)
        root = _node(_at(place, _line(first)), first, events, depth=0)
    if root is None:
        raise place.error("the file is empty", hint=f"start with {start}")
    return root


def _node(place: Node, event: yaml.Event, events: Iterator[yaml.Event], *, depth: int) -> Node:
    """The value that starts with ``event``, put into ``place``, which has its line and path already."""
    if depth > DEPTH_LIMIT:
        raise place.error(f"nested deeper than {DEPTH_LIMIT} levels", hint="flatten the file")
    _refuse_references(place, event)
    value: str | int | bool | tuple[Node, ...] | dict[str, Node] | None
    if isinstance(event, yaml.SequenceStartEvent):
        value = tuple(_items(place, events, depth=depth + 1))
    elif isinstance(event, yaml.MappingStartEvent):
        value = _entries(place, events, depth=depth + 1)
    else:
        value = _scalar(place, event)
    return msgspec.structs.replace(place, value=value)


def _refuse_references(place: Node, event: yaml.Event) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise place.error(f"aliases are not read, found *{shortened(event.anchor or '')}", hint="write the value out")
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        raise place.error(
            f"anchors are not read, found &{shortened(event.anchor)}", hint="remove it; write each value out"
        )
    if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
        raise place.error(
            f"tags are not read, found {shortened(event.tag)}", hint="remove it; put a value in quotes if text is meant"
        )


def _items(place: Node, events: Iterator[yaml.Event], *, depth: int) -> Iterator[Node]:
    position = 0
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        position += 1
        yield _node(_at(place, _line(event), path=f"{place.path}[{position}]"), event, events, depth=depth)


def _entries(place: Node, events: Iterator[yaml.Event], *, depth: int) -> dict[str, Node]:
    values: dict[str, Node] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _key(_at(place, _line(event)), event)
        entry = _at(place, _line(event), path=_joined(place.path, key))
        if key in values:
            raise entry.error(f"the key stands twice, first on line {values[key].line}", hint="keep one of the two")
        values[key] = _node(entry, next(events), events, depth=depth)
    return values


def _key(place: Node, event: yaml.Event) -> str:
    _refuse_references(place, event)
    if not isinstance(event, yaml.ScalarEvent):
        raise place.error("a key must be text", hint="write keys as words")
    if event.value == "<<" and not event.style:
        raise place.error("merge keys are not read, found <<", hint="write the values out")
    return _sound(place, event.value)


def _scalar(place: Node, event: yaml.Event) -> str | int | bool | None:
    """What a scalar means: quotes and blocks are text; plain words are true, false, null, a whole number, or text."""
    if not isinstance(event, yaml.ScalarEvent):
        raise _not_yaml(place, "unreadable")
    text = _sound(place, event.value)
    if event.style:
        return text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if len(text) <= INTEGER_DIGITS_LIMIT and re.fullmatch("-?(0|[1-9][0-9]*)", text):
        return int(text)
    return text


def _sound(place: Node, text: str) -> str:
    """``text``, if it can be an argument of a program and be stored as UTF-8."""
    if re.search(r"[\0\ud800-\udfff]", text):
        raise place.error("text with a NUL or half a surrogate pair in it", hint="remove that escape")
    return text


def _joined(path: str, key: str) -> str:
    shown = key if re.fullmatch(r"[\w.*/-]{1,64}", key) else shortened(msgspec.json.encode(key).decode())
    return f"{path}.{shown}" if path else shown


def _at(place: Node, line: int, *, path: str | None = None) -> Node:
    return msgspec.structs.replace(place, line=line, path=place.path if path is None else path)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
