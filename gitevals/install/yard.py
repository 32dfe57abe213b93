"""A Yard project configuration as a git-evals configuration; what has no counterpart is kept under ``x-yard``."""

import re
from collections.abc import Sequence

import msgspec

from gitevals.commands import ANY_ID, TIMEOUT_LIMIT_SECONDS
from gitevals.config import LIMIT_BYTES, PATH
from gitevals.configfile import parse
from gitevals.errors import BadInput, ConfigInvalid
from gitevals.install.yamltext import block, flow, word
from gitevals.install.yardfile import Json, Part
from gitevals.model.contract import CHECKS_LIMIT, Mode, verification_id
from gitevals.model.task import check_task_id
from gitevals.model.task import quoted as shown

KEYS = ("verify_commands", "evaluations")
EVALUATION_KEYS = ("mode", "checks", "bindings")
CHECK_KEYS = ("command", "timeout_seconds")
TOLD_LIMIT = 20

_BODY = """\
# How a task's branch is called. Write what your board calls it, with {{task}} once; `git evals run TASK --branch NAME`
# takes any other.
branches: "loop/issue-{{task}}"
# Where a task's text lies, in the repository; its checklist under "## Acceptance Criteria" or
# "## Criterios de aceptación" is what must hold.
tasks: {{path: "tasks/{{task}}.md"}}
# Argument arrays that must succeed for every change; no shell reads them, unless it is named.
{verify}
# Checks, and the criteria they prove.
{checks}
{bindings}
"""
_REST = """\
# What has no counterpart here, as it was. It changes nothing.
{rest}
"""


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """The mode, the lines below ``protect``, and what to tell about both."""

    mode: Mode
    body: str
    notices: tuple[str, ...]


class _Command(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments, and the string they came from where a shell is to read it."""

    arguments: tuple[str, ...]
    shell: str = ""
    timeout_seconds: int | None = None


def translated(source: Part, asked: Mode | None) -> Translation:
    """``source`` in our terms; the mode is the one ``asked`` for, else Yard's, else off, as Yard has it."""
    top = source.given()
    evaluations = top["evaluations"].given() if "evaluations" in top else {}
    found = _mode(evaluations.get("mode"))
    entries = top["verify_commands"].items() if "verify_commands" in top else ()
    verify = tuple(_command(entry) for entry in entries if not _is_blank(entry))
    checks = _checks(evaluations["checks"]) if "checks" in evaluations else {}
    bindings = _bindings(evaluations["bindings"], tuple(checks), len(verify)) if "bindings" in evaluations else {}
    rest = _rest(source)
    named = {verification_id(position): command for position, command in enumerate(verify, 1)} | checks
    notices = (
        *_mode_told(asked, found),
        *_dropped(entries),
        *(f"{name}: a shell reads {shown(command.shell)}" for name, command in named.items() if command.shell),
        *_kept(rest, evaluations.get("judge")),
    )
    return Translation(mode=asked or found or Mode.OFF, body=_body(verify, checks, bindings, rest), notices=notices)


def require_valid(source: Part, text: str) -> None:
    """Raise unless the whole ``text`` that ``source`` became can be used as configuration."""
    size = len(text.encode())
    if size > LIMIT_BYTES:
        large = max(source.mapping().values(), key=lambda part: len(flow(part.value)), default=source)
        problem = f"makes most of a translation of {size} bytes; {PATH} may have {LIMIT_BYTES}"
        raise large.error(problem, hint="take what is not needed out of a copy of the file and translate that")
    try:
        parse(text.encode())
    except ConfigInvalid as error:
        raise source.error(f"cannot be translated: {error.message}", hint=error.hint) from error


def _mode(part: Part | None) -> Mode | None:
    if part is None:
        return None
    if part.value not in tuple(Mode):
        raise part.expected("off, observe or enforce", hint="write one of: off, observe, enforce")
    return Mode(part.text())


def _mode_told(asked: Mode | None, found: Mode | None) -> list[str]:
    if asked and found and asked != found:
        return [f"the mode is {asked}, as asked; Yard has {found}"]
    return [] if asked or found else ["the mode is off, because Yard's configuration names none"]


def _is_blank(part: Part) -> bool:
    """Whether Yard passes over an entry of ``verify_commands``: blank text, or an array of nothing else."""
    if isinstance(part.value, list):
        return all(isinstance(item, str) and not item.strip() for item in part.value)
    return isinstance(part.value, str) and not part.value.strip()


def _command(part: Part) -> _Command:
    if _is_blank(part):
        raise part.error("the command is empty", hint='write `["php", "artisan", "test"]`')
    if isinstance(part.value, str):
        return _Command(arguments=("sh", "-c", _printable(part)), shell=part.value)
    if not isinstance(part.value, list):
        raise part.expected("text or an array of texts", hint='write `["php", "artisan", "test"]`')
    return _Command(arguments=tuple(_printable(item) for item in part.items()))


def _printable(part: Part) -> str:
    """Text without control characters other than line ends and tabs: nobody means them, and nobody sees them."""
    text = part.text()
    hidden = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    if hidden:
        raise part.error(f"the control character U+{ord(hidden[0]):04X}", hint="remove it, or let a script print it")
    return text


def _checks(part: Part) -> dict[str, _Command]:
    checks = part.mapping()
    if len(checks) > CHECKS_LIMIT:
        raise part.error(f"more than {CHECKS_LIMIT} checks", hint="let one check run several tests")
    for check, entry in checks.items():
        if not re.fullmatch(ANY_ID, check):
            hint = "start with a letter; then up to 63 letters, digits, `_`, `.` or `-`"
            raise entry.error("not the id of a check", hint=hint)
        if re.fullmatch(r"verify-\d+", check, re.IGNORECASE):
            raise entry.error("this id means an entry of verify_commands", hint="give the check another id")
    return {check: _check(entry) for check, entry in checks.items()}


def _check(part: Part) -> _Command:
    values = part.given()
    if "command" not in values:
        raise part.error("command is missing", hint='add `"command": ["php", "artisan", "test"]`')
    command = _command(values["command"])
    seconds = _seconds(values["timeout_seconds"]) if "timeout_seconds" in values else None
    return msgspec.structs.replace(command, timeout_seconds=seconds)


def _seconds(part: Part) -> int:
    value = part.value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= TIMEOUT_LIMIT_SECONDS:
        hint = f"write whole seconds, from 1 to {TIMEOUT_LIMIT_SECONDS}, without quotes"
        raise part.expected("a whole number of seconds", hint=hint)
    return value


def _bindings(part: Part, checks: Sequence[str], verify: int) -> dict[str, Json]:
    known = (*checks, *(verification_id(position) for position in range(1, verify + 1)))
    bindings: dict[str, Json] = {}
    for task, entry in part.mapping().items():
        if task != "*":
            _require_task_id(entry, task)
        for criterion, bound in entry.mapping().items():
            if criterion != "*" and not re.fullmatch(ANY_ID, criterion):
                raise bound.error("not the id of a criterion", hint="write an id like AC-1")
            _require_known(bound, known, verify)
        bindings[task] = entry.value
    return bindings


def _require_task_id(part: Part, task: str) -> None:
    try:
        check_task_id(task)
    except BadInput as error:
        raise part.error(error.message, hint=error.hint) from error


def _require_known(part: Part, known: Sequence[str], verify: int) -> None:
    names: list[str] = []
    for item in part.items():
        name = item.text()
        if re.fullmatch(r"verify-\d+", name) and name not in known:
            problem = f"no check is called {shown(name)}: verify_commands has {verify} that are not empty"
            raise item.error(problem, hint="empty entries of verify_commands are not counted")
        if name not in known:
            hint = f"known: {', '.join(known[:10])}" if known else "add it to evaluations.checks"
            raise item.error(f"no check is called {shown(name)}", hint=hint)
        if name in names:
            raise item.error(f"the check {shown(name)} stands twice", hint="keep one of the two")
        names.append(name)


def _rest(source: Part) -> dict[str, Json]:
    """What has no counterpart, at the places where it stood."""
    top = _without(source.value, KEYS)
    evaluations = source.given().get("evaluations")
    if evaluations is None:
        return top
    inner = _without(evaluations.value, EVALUATION_KEYS)
    if inner.get("judge") in (None, {"enabled": False}):
        inner.pop("judge", None)
    checks = evaluations.given().get("checks")
    further = {check: _without(part.value, CHECK_KEYS) for check, part in checks.mapping().items()} if checks else {}
    kept: dict[str, Json] = {check: keys for check, keys in further.items() if keys}
    inner |= {"checks": kept} if kept else {}
    return top | ({"evaluations": inner} if inner else {})


def _without(value: Json, known: Sequence[str]) -> dict[str, Json]:
    return {key: inner for key, inner in value.items() if key not in known} if isinstance(value, dict) else {}


def _dropped(entries: Sequence[Part]) -> list[str]:
    dropped = [entry.path for entry in entries if _is_blank(entry)]
    return [f"dropped, because empty: {', '.join(dropped)}; verify-1, verify-2, … count the others"] if dropped else []


def _kept(rest: dict[str, Json], judge: Part | None) -> list[str]:
    """What to tell about ``rest``: where each part of it stood, and that no judge is run where one was wanted."""
    names = _names(Part(file="", path="", value=rest))
    more = f" and {len(names) - TOLD_LIMIT} more" if len(names) > TOLD_LIMIT else ""
    told = [f"kept under x-yard, without effect: {', '.join(names[:TOLD_LIMIT])}{more}"] if names else []
    if judge is not None and (not isinstance(judge.value, dict) or judge.value.get("enabled") is not False):
        told.append("no judge is run: evaluations.judge is only kept")
    return told


def _names(rest: Part) -> list[str]:
    opened = {"": ("evaluations",), "evaluations": ("checks",)}.get(rest.path, ())
    names: list[str] = []
    for key, part in rest.mapping().items():
        is_check = rest.path == "evaluations.checks"
        names += _names(part) if is_check or key in opened else [part.path]
    return names


def _body(
    verify: Sequence[_Command], checks: dict[str, _Command], bindings: dict[str, Json], rest: dict[str, Json]
) -> str:
    body = _BODY.format(
        verify="\n".join(["verify:", *_verify_lines(verify)] if verify else ["verify: []"]),
        checks="\n".join(["checks:", *_check_lines(checks)] if checks else ["checks: {}"]),
        bindings="\n".join(["bindings:", *block(bindings, indent=2)] if bindings else ["bindings: {}"]),
    )
    return body + (_REST.format(rest="\n".join(["x-yard:", *block(rest, indent=2)])) if rest else "")


def _verify_lines(verify: Sequence[_Command]) -> list[str]:
    lines: list[str] = []
    for position, command in enumerate(verify, 1):
        how = "; a shell reads the string" if command.shell else ""
        lines.append(f"  - {flow(list(command.arguments))}  # {verification_id(position)}{how}")
    return lines


def _check_lines(checks: dict[str, _Command]) -> list[str]:
    lines: list[str] = []
    for check, command in checks.items():
        how = "  # a shell reads the string" if command.shell else ""
        lines += [f"  {word(check)}:", f"    command: {flow(list(command.arguments))}{how}"]
        if command.timeout_seconds is not None:
            lines.append(f"    timeout_seconds: {command.timeout_seconds}")
    return lines
