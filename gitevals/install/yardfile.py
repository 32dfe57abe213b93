"""Yard's configuration of a project: where it lies, and its JSON as values that know their path."""

import json
import math
import re
from pathlib import Path

import msgspec

from gitevals.errors import BadInput
from gitevals.model.task import quoted

PLACES = (".yard/configs", ".claude/yard-board/configs")
LIMIT_BYTES = 1024 * 1024
PATH_LIMIT = 200
LISTED_LIMIT = 10

Json = str | int | float | bool | list["Json"] | dict[str, "Json"] | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a file, and its path there: keys joined by dots, items counted from 1."""

    file: str
    path: str
    value: Json

    def error(self, problem: str, *, hint: str) -> BadInput:
        """The error to raise about this value."""
        where = f"{self.path[-PATH_LIMIT:]}: " if self.path else ""
        return BadInput(f"{self.file}: {where}{problem}", hint=hint)

    def expected(self, what: str, *, hint: str) -> BadInput:
        """The error for a value of another kind than ``what``."""
        return self.error(f"expected {what}, found {_shown(self.value)}", hint=hint)

    def mapping(self) -> dict[str, "Part"]:
        """The values of an object by key."""
        if not isinstance(self.value, dict):
            raise self.expected(
                "an object", hint="correct the file, or take this part out of a copy and translate that"
            )
        return {key: self._inner(key, value) for key, value in self.value.items()}

    def given(self) -> dict[str, "Part"]:
        """The values of an object by key, less those that are null."""
        return {key: part for key, part in self.mapping().items() if part.value is not None}

    def items(self) -> tuple["Part", ...]:
        """The items of an array."""
        if not isinstance(self.value, list):
            raise self.expected("an array", hint="correct the file, or take this part out of a copy and translate that")
        inner = enumerate(self.value, 1)
        return tuple(Part(file=self.file, path=f"{self.path}[{place}]", value=value) for place, value in inner)

    def text(self) -> str:
        """Text that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self.expected("text", hint="write it as a JSON string that is not empty")
        return self.value

    def _inner(self, key: str, value: Json) -> "Part":
        return Part(file=self.file, path=_joined(self.path, key), value=value)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The file to translate, its name for people, and what to say about the choice."""

    path: Path
    name: str
    notices: tuple[str, ...] = ()


def find(worktree: Path) -> Found:
    """The one configuration of Yard in a work tree; of two with one name, the one in the newer place."""
    by_stem: dict[str, list[str]] = {}
    for place in PLACES:
        for file in sorted((worktree / place).glob("*.json")):
            if file.is_file():
                by_stem.setdefault(file.stem, []).append(f"{place}/{file.name}")
    names = [files[0] for files in by_stem.values()]
    if len(names) > 1:
        more = ", …" if len(names) > LISTED_LIMIT else ""
        raise BadInput(
            f"several configurations of Yard are here: {', '.join(names[:LISTED_LIMIT])}{more}",
            hint=f"name one: `git evals init --from-yard {names[0]}`",
        )
    for name, *older in by_stem.values():
        notices = tuple(f"took {name}; {other} has the same name and was not read" for other in older)
        return Found(path=worktree / name, name=name, notices=notices)
    raise BadInput(
        f"no configuration of Yard is here: nothing matches {' or '.join(f'{place}/*.json' for place in PLACES)}",
        hint="name the file: `git evals init --from-yard FILE`",
    )


def read(path: Path, name: str) -> Part:
    """The JSON object in a file; anything that two readers might read differently is `BadInput`."""
    content = _content(path, name)
    try:
        raw = json.loads(content.decode("utf-8-sig"), object_pairs_hook=tuple)
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not UTF-8", hint="save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        raise BadInput(
            f"{name}:{error.lineno}: not JSON: {problem}", hint=f"correct line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise BadInput(f"{name}: nested too deep", hint=_FLATTEN) from error
    except ValueError as error:
        raise BadInput(f"{name}: a number has too many digits", hint="write it as text") from error
    place = Part(file=name, path="", value=None)
    return msgspec.structs.replace(place, value=_sound(place, raw, depth=0))


_FLATTEN = "take the deep part out of a copy of the file and translate that"


def _content(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(LIMIT_BYTES + 1)
    except OSError as error:
        hint = "name the JSON file that holds the project's Yard configuration"
        raise BadInput(f"cannot read {quoted(name)}: {error.strerror}", hint=hint) from error
    if len(content) > LIMIT_BYTES:
        raise BadInput(f"{name}: larger than {LIMIT_BYTES} bytes", hint="is this the configuration of a project?")
    return content


def _sound(place: Part, raw: object, *, depth: int) -> Json:
    """``raw`` as plain values, if YAML can hold it at that depth; objects come as tuples of pairs."""
    from gitevals import yamltree  # imports yaml

    if depth >= yamltree.DEPTH_LIMIT:  # below `x-yard` it stands one level deeper
        raise place.error(f"nested deeper than {yamltree.DEPTH_LIMIT - 1} levels", hint=_FLATTEN)
    match raw:
        case tuple():
            return _object(place, raw, depth=depth)
        case list():
            return [
                _sound(msgspec.structs.replace(place, path=f"{place.path}[{position}]"), item, depth=depth + 1)
                for position, item in enumerate(raw, 1)
            ]
        case str():
            return _text(place, raw)
        case float() if not math.isfinite(raw):
            raise place.error("a number that is out of range or none", hint="write it as text")
        case None | bool() | int() | float():
            return raw
        case _:
            raise place.expected("JSON", hint="correct the file")


def _object(place: Part, pairs: tuple[tuple[str, object], ...], *, depth: int) -> dict[str, Json]:
    values: dict[str, Json] = {}
    for key, raw in pairs:
        inner = msgspec.structs.replace(place, path=_joined(place.path, key))
        if key in values:
            raise inner.error("the key stands twice", hint="keep one of the two")
        values[_text(inner, key)] = _sound(inner, raw, depth=depth + 1)
    return values


def _text(place: Part, text: str) -> str:
    if re.search(r"[\0\ud800-\udfff]", text):
        raise place.error("text with a NUL or half a surrogate pair in it", hint="remove that escape")
    return text


def _joined(path: str, key: str) -> str:
    shown = key if re.fullmatch(r"[\w.*/-]{1,64}", key) else quoted(key)
    return f"{path}.{shown}" if path else shown


def _shown(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case list():
            return "an array"
        case dict():
            return "an object"
        case str():
            return quoted(value)
        case _:
            return json.dumps(value)[:60]
