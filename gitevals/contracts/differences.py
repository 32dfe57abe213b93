"""How two contents of a contract differ, in words."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from gitevals.model.contract import Cached, Command, Contract, Criterion

_SHOWN = 80  # characters of a text
_LEAD = 30  # characters before the place where two texts part
_NONE = "none"
_QUOTE = '"'
_FIELDS = {
    "command": "command", "timeout_seconds": "timeout", "cwd": "cwd", "env": "env", "pass_env": "pass_env",
    "exit_codes": "exit_codes", "graders": "graders", "at_base": "at_base", "covers": "covers",
}  # fmt: skip


def differences(old: Contract, new: Contract) -> tuple[str, ...]:
    """One line for each difference, such as "check `registration`: timeout 60 → 120"; none for equal contents."""
    return tuple(_differences(old, new))


def _differences(old: Contract, new: Contract) -> Iterator[str]:
    if old.mode != new.mode:
        yield f"mode: {old.mode} → {new.mode}"
    yield from _criteria(old.criteria, new.criteria)
    yield from _commands("check ", old.checks, new.checks)
    yield from _commands("", _numbered("verify", old.verification), _numbered("verify", new.verification))
    yield from _commands("", _numbered("setup", old.setup), _numbered("setup", new.setup))
    if old.outputs != new.outputs:
        yield f"outputs: {_apart(_listed(old.outputs), _listed(new.outputs))}"
    if old.cache != new.cache:
        yield f"cache: {_apart(_cached(old.cache), _cached(new.cache))}"
    if old.graders != new.graders and old.graded == new.graded:
        yield f"graders: the files at {_cut(_listed(old.graded))} are others"


def _criteria(old: Sequence[Criterion], new: Sequence[Criterion]) -> Iterator[str]:
    before, after = ({criterion.id: criterion for criterion in group} for group in (old, new))
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if one is None and other is not None:
            yield f'criterion `{name}`: added: "{_cut(other.description)}"'
        elif one is not None and other is None:
            yield f'criterion `{name}`: removed: "{_cut(one.description)}"'
        elif one is not None and other is not None:
            if one.description != other.description:
                yield f"criterion `{name}`: text {_apart(one.description, other.description, quote=_QUOTE)}"
            if one.checks != other.checks:
                yield f"criterion `{name}`: checks {_apart(_listed(one.checks), _listed(other.checks))}"
    kept = [[name for name in group if name in before and name in after] for group in (before, after)]
    if kept[0] != kept[1]:
        yield f"criteria: order {_apart(_listed(kept[0]), _listed(kept[1]))}"


def _commands(kind: str, old: Mapping[str, Command], new: Mapping[str, Command]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        label = f"{kind}`{name}`"
        one, other = old.get(name), new.get(name)
        if one is None and other is not None:
            yield f"{label}: added: {_cut(shlex.join(other.command))}"
        elif one is not None and other is None:
            yield f"{label}: removed: {_cut(shlex.join(one.command))}"
        elif one is not None and other is not None:
            for field, word in _FIELDS.items():
                values = getattr(one, field), getattr(other, field)
                if values[0] != values[1]:
                    yield f"{label}: {word} {_apart(*(_value(field, value) for value in values))}"


def _numbered(name: str, commands: Sequence[Command]) -> dict[str, Command]:
    return {f"{name}-{number}": command for number, command in enumerate(commands, 1)}


def _value(field: str, value: object) -> str:
    if field == "command" and isinstance(value, tuple):
        return shlex.join(value)
    if isinstance(value, tuple):
        return _listed(value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_item(str(value[key]))}" for key in sorted(value)) or _NONE
    return str(value)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(_item(value) for value in values) or _NONE


def _item(text: str) -> str:
    """``text`` as one of several: in quotes where it could be taken for two, or for none."""
    return f'"{text}"' if text in ("", _NONE) or "," in text or text.startswith('"') else text


def _cached(entries: Sequence[Cached]) -> str:
    return "; ".join(f"{entry.path} by {_listed(entry.key)}{_sparing(entry)}" for entry in entries) or _NONE


def _sparing(entry: Cached) -> str:
    return f", spares {_listed(entry.spares)}" if entry.spares else ""


def _apart(one: str, other: str, *, quote: str = "") -> str:
    """Both texts, long ones from a little before the place where they part; they never look alike."""
    if " ".join(one.split()) == " ".join(other.split()):
        one, other = (text.encode("unicode_escape").decode() for text in (one, other))
    same = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
                min(len(one), len(other)))  # fmt: skip
    start = same - _LEAD if same > _SHOWN // 2 else 0
    start = (one.find(" ", start, same) + 1 or start) if start else 0
    lead = "…" if start else ""
    return " → ".join(f"{quote}{lead}{_cut(text[start:])}{quote}" for text in (one, other))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
