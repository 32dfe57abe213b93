"""Text in lines of a width; apart from `text`, which hooks import too."""

import textwrap


def cut(text: str, limit: int) -> str:
    """``text``, or its beginning and an ellipsis where it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def wrapped(label: str, text: str, width: int, lines: int | None = None) -> list[str]:
    """``text`` behind ``label`` in lines of ``width``, later ones indented as far; at most ``lines`` of them."""
    indent, room = " " * len(label), max(width, len(label) + 24)
    found = textwrap.wrap(text, room, initial_indent=label, subsequent_indent=indent, max_lines=lines, placeholder=" …")
    return found or [label]
