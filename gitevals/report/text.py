"""Text as a terminal may safely show it."""

_KEPT = "\n\t"


def plain(text: str) -> str:
    """``text`` with every control, format and undecodable character shown as an escape instead of acting."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else _escaped(char) for char in text)


def line(text: str) -> str:
    """``text`` on one line: as `plain`, line ends and tabs folded into spaces."""
    return plain(" ".join(text.split()))


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def short(object_id: str) -> str:
    """The first twelve characters of an id."""
    return plain(object_id[:12])


def words(value: str) -> str:
    """An enumeration's value as prose."""
    return value.replace("_", " ")
