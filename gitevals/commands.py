"""Commands in a configuration, and what criteria are bound to them: nodes of YAML → values."""

import re
from collections.abc import Mapping

import msgspec

from gitevals.errors import BadInput
from gitevals.model import contract
from gitevals.model.contract import AtBase, Command
from gitevals.model.result import Result
from gitevals.model.task import check_task_id
from gitevals.yamltree import Node

TIMEOUT_LIMIT_SECONDS = 86400
ANY_ID = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
COMMAND_KEYS = ("command", "timeout_seconds", "cwd", "env", "pass_env", "exit_codes")
CHECK_KEYS = ("graders", "at_base", "covers")
LATER_COMMAND_KEYS = {"isolation": '"none"'}

Bindings = dict[str, tuple[str, ...]]


def checks(node: Node) -> dict[str, Command]:
    """The checks by id."""
    named = node.mapping(hint="write `checks: {name: {command: [pytest, -q]}}`")
    if len(named) > contract.CHECKS_LIMIT:
        raise node.error(f"more than {contract.CHECKS_LIMIT} checks", hint="let one check run several tests")
    for check, entry in named.items():
        if not re.fullmatch(ANY_ID, check):
            hint = "start with a letter; then up to 63 letters, digits, `_`, `.` or `-`"
            raise entry.error("not the id of a check", hint=hint)
        if re.fullmatch(r"verify-\d+", check, re.IGNORECASE):
            raise entry.error("this id means an entry of `verify`", hint="give the check another id")
    seconds = contract.CHECK_TIMEOUT_SECONDS
    return {check: _command(entry, timeout_seconds=seconds, further=CHECK_KEYS) for check, entry in named.items()}


def commands(node: Node) -> tuple[Command, ...]:
    """The entries of ``verify`` or ``setup``: each an array of arguments, or a mapping with a check's keys."""
    hint = f"write `{node.path}: [[pytest, -q]]`, a list of commands that are lists of arguments"
    entries = node.items(hint=hint)
    if entries and all(isinstance(entry.value, str) and " " not in entry.value for entry in entries):
        raise node.expected("a list of commands", hint=f"write `{node.path}: [{_array(node)}]`")
    return tuple(_entry(entry) for entry in entries)


def _entry(node: Node) -> Command:
    seconds = contract.VERIFICATION_TIMEOUT_SECONDS
    if isinstance(node.value, dict):
        return _command(node, timeout_seconds=seconds)
    return Command(command=arguments(node), timeout_seconds=seconds)


def _command(node: Node, *, timeout_seconds: int, further: tuple[str, ...] = ()) -> Command:
    """A command with a check's keys; ``timeout_seconds`` holds where none is written."""
    hint = f"write `command: {_array(node)}` below {node.path}"
    for key in CHECK_KEYS:
        if key not in further and isinstance(node.value, dict) and key in node.value:
            raise node.value[key].error("belongs to a check", hint="make it a check, and bind a criterion to it")
    values = node.fields((*COMMAND_KEYS, *further, *LATER_COMMAND_KEYS), hint=hint)
    refuse_later(values, LATER_COMMAND_KEYS)
    if "command" not in values:
        raise node.error("command is missing", hint=hint)
    seconds = values["timeout_seconds"].whole(1, TIMEOUT_LIMIT_SECONDS) if "timeout_seconds" in values else None
    return Command(
        command=arguments(values["command"]),
        timeout_seconds=seconds or timeout_seconds,
        cwd=relative_path(values["cwd"]) if "cwd" in values else ".",
        env=_env(values["env"]) if "env" in values else {},
        pass_env=_pass_env(values["pass_env"]) if "pass_env" in values else (),
        exit_codes=_exit_codes(values["exit_codes"]) if "exit_codes" in values else {},
        graders=_graders(values["graders"]) if "graders" in values else (),
        at_base=values["at_base"].choice(AtBase) if "at_base" in values else AtBase.ANY,
        covers=values["covers"].texts(hint="write `covers: [sign-up]`") if "covers" in values else (),
    )


def _graders(node: Node) -> tuple[str, ...]:
    paths = tuple(path_inside(item) for item in node.items(hint="write `graders: [tests/acceptance]`"))
    if not paths:
        raise node.error("the list is empty", hint="name files or directories, or remove graders")
    return tuple(sorted(set(paths)))


def arguments(node: Node) -> tuple[str, ...]:
    """An argument array, never empty."""
    found = node.texts(hint=f"write `{_array(node)}`; no shell reads it")
    if not found:
        raise node.error("the command is empty", hint="write `[pytest, -q]`")
    return found


def _array(node: Node) -> str:
    """How a command that was given as ``node`` is written as an array."""
    if isinstance(node.value, tuple) and node.value:
        words = [item.value for item in node.value if isinstance(item.value, str)]
    else:
        words = _words(node.value) if isinstance(node.value, str) else []
    plain = [word if re.fullmatch(r"[\w./=-]+", word) else msgspec.json.encode(word).decode() for word in words]
    return f"[{', '.join(plain or ['pytest', '-q'])}]"


def _words(text: str) -> list[str]:
    import shlex  # a hook finds the configuration parsed

    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _env(node: Node) -> dict[str, str]:
    values = node.mapping(hint='write `env: {NAME: "value"}`')
    for name, value in values.items():
        if not re.fullmatch(VARIABLE, name):
            raise value.error("not the name of a variable", hint="use letters, digits and `_`")
    return {name: "" if value.value == "" else value.text() for name, value in values.items()}


def _pass_env(node: Node) -> tuple[str, ...]:
    names = node.texts(hint="write `pass_env: [NAME]`")
    for item in node.items(hint=""):
        if not re.fullmatch(VARIABLE, item.text()):
            raise item.expected("the name of a variable", hint="use letters, digits and `_`")
    return names


def _exit_codes(node: Node) -> dict[str, Result]:
    hint = "write `exit_codes: {inconclusive: [4, 5]}`"
    words = [str(result) for result in Result if result is not Result.NOT_RUN]
    results: dict[str, Result] = {}
    for word, statuses in node.fields(words, hint=hint).items():
        for item in statuses.items(hint=hint):
            status = str(item.whole(1, 255))
            if status in results:
                raise item.error(f"exit status {status} stands twice", hint="keep one of the two")
            results[status] = Result(word)
    return results


def refuse_later(values: Mapping[str, Node], later: Mapping[str, str]) -> None:
    """Refuse the keys of ``later`` that do not stand at the one value, as JSON, that means "not used"."""
    for key, default in later.items():
        if key in values and values[key].json() != default:
            accepted = f"only its default, {default}, is accepted" if default else "by default it is absent"
            raise values[key].error(f"not built yet; {accepted}", hint=f"remove {key}")


def path_inside(node: Node) -> str:
    """The plain path of something in the repository: without a slash at its end, and not the top itself."""
    path = relative_path(node).rstrip("/")
    parts = path.split("/")
    if any(part in ("", ".") or part.casefold() == ".git" for part in parts) or "\0" in path:
        raise node.expected("the path of a file or directory in the repository", hint="write it like tests/acceptance")
    return path


def relative_path(node: Node) -> str:
    """A path that leads to no place above the top directory."""
    path = node.text()
    if path.startswith("/") or ".." in path.split("/"):
        raise node.expected('a path inside the repository without ".."', hint="write it relative to the top directory")
    return path


def bindable(checks: Mapping[str, Command], verify: int) -> set[str]:
    """What criteria may be bound to: ``checks``, and ``verify`` entries of project verification."""
    return {*checks, *(contract.verification_id(position) for position in range(1, verify + 1))}


def bindings(node: Node, checks: Mapping[str, Command], verify: int) -> dict[str, Bindings]:
    """The bindings by task or ``*``."""
    known = bindable(checks, verify)
    hint = 'write `bindings: {"42": {AC-1: [name-of-a-check]}}`'
    return {task: _task_bindings(task, entry, known, hint) for task, entry in node.mapping(hint=hint).items()}


def _task_bindings(task: str, node: Node, known: set[str], hint: str) -> Bindings:
    if task != "*":
        try:
            check_task_id(task)
        except BadInput as error:
            raise node.error(error.message, hint=error.hint) from error
    return criteria_bindings(node, known, hint)


def criteria_bindings(node: Node, known: set[str], hint: str) -> Bindings:
    """One task's bindings, to ids that are ``known``."""
    for criterion, entry in node.mapping(hint=hint).items():
        if criterion != "*" and not re.fullmatch(ANY_ID, criterion):
            raise entry.error("not the id of a criterion", hint='write an id like AC-1, or "*" for all others')
    return {criterion: _bound(entry, known) for criterion, entry in node.mapping(hint=hint).items()}


def _bound(node: Node, known: set[str]) -> tuple[str, ...]:
    bound = node.texts(hint="write a list of check ids, like `[registration, verify-1]`")
    for position, item in enumerate(node.items(hint="")):
        if item.text() not in known:
            raise item.error(f"no check is called {item.found()}", hint=_known_checks(known))
        if item.text() in bound[:position]:
            raise item.error(f"the check {item.found()} stands twice", hint="keep one of the two")
    return bound


def _known_checks(known: set[str]) -> str:
    if not known:
        return "add it below `checks:`"
    return f"known: {', '.join(sorted(known)[:10])}{', …' if len(known) > 10 else ''}"
