"""Plain values as YAML text that a person likes to read and that every reader reads alike."""

import json
import re

from gitevals.install.yardfile import Json

WIDTH = 100
# What YAML 1.1 takes for something else than text.
NO_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
# A key that is longer than 1024 characters must be marked as one.
KEY_LIMIT = 1000


def word(text: str) -> str:
    """``text`` as one scalar on one line: bare where that is safe, else in double quotes with escapes."""
    if re.fullmatch(r"-{0,2}[A-Za-z][A-Za-z0-9_./=-]{0,99}", text) and text.lower() not in NO_TEXT:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """``text`` in double quotes; whatever a reader could not see is an escape."""
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(map(_escaped, written))


def flow(value: Json) -> str:
    """``value`` on one line."""
    match value:
        case dict():
            return f"{{{', '.join(_pair(key, inner) for key, inner in value.items())}}}"
        case list():
            return f"[{', '.join(map(flow, value))}]"
        case str():
            return word(value)
        case float():
            return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
        case _:
            return json.dumps(value)


def block(values: dict[str, Json], *, indent: int = 0) -> list[str]:
    """The lines of a mapping that is not empty; what fits on a line stays on it."""
    lines: list[str] = []
    for key, value in values.items():
        name = word(key)
        if len(name) > KEY_LIMIT:
            lines += _set_in([f"? {name}", f": {flow(value)}"], indent)
        else:
            lines += _entry(f"{' ' * indent}{name}:", value, indent=indent)
    return lines


def _entry(head: str, value: Json, *, indent: int) -> list[str]:
    """``value`` after ``head``: on its line, or in lines of its own below."""
    line = f"{head} {flow(value)}"
    if len(line) <= WIDTH or not value or not isinstance(value, (dict, list)):
        return [line]
    if isinstance(value, dict):
        return [head, *block(value, indent=indent + 2)]
    below = " " * (indent + 2)
    return [head, *(text for item in value for text in _entry(f"{below}-", item, indent=indent + 2))]


def _pair(key: str, value: Json) -> str:
    name = word(key)
    return f"? {name} : {flow(value)}" if len(name) > KEY_LIMIT else f"{name}: {flow(value)}"


def _set_in(lines: list[str], indent: int) -> list[str]:
    return [f"{' ' * indent}{line}" for line in lines]


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
