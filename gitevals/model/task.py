"""What can name a task."""

import re

import msgspec

from gitevals.errors import BadInput

TASK_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def check_task_id(text: str) -> str:
    """``text``, if it can name a task in refs, paths and trailers."""
    if re.fullmatch(TASK_ID, text) and ".." not in text and not text.endswith(".lock"):
        return text
    hint = (
        "start with a letter or digit; then up to 63 letters, digits, `.`, `_` or `-`; no `..`, no `.lock` at the end"
    )
    raise BadInput(f"not a task id: {quoted(text)}", hint=hint)


def quoted(text: str) -> str:
    """What a person typed, in quotes: at most 60 characters, whatever is no text as an escape."""
    shown = text if len(text) <= 60 else text[:59] + "…"
    return msgspec.json.encode(shown.encode("utf-8", "backslashreplace").decode()).decode()
