"""``.gitevals.yaml`` as typed values. Importing this module reads no YAML library; parsing does."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from gitevals.errors import BadInput
from gitevals.model import contract
from gitevals.model.contract import Command, Mode
from gitevals.model.result import Result
from gitevals.model.task import check_task_id

if TYPE_CHECKING:
    from gitevals.yamltree import Node

PATH = ".gitevals.yaml"
LIMIT_BYTES = 64 * 1024
VERSION = 1
NO_REPOSITORY = "none"
TASK_FIELD = "{task}"
TIMEOUT_LIMIT_SECONDS = 86400

ANY_ID = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
NOT_IN_BRANCH = r"^$|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^/|/$|\.$|(^|/)\.|\.lock(/|$)|^-|^HEAD$|^refs/"

KEYS = ("version", "repository", "mode", "protect", "branches", "tasks", "headings", "setup", "verify", "checks",
        "bindings", "outputs", "untasked", "verification")  # fmt: skip
COMMAND_KEYS = ("command", "timeout_seconds", "cwd", "env", "pass_env", "exit_codes")
# Keys of later issues: the only value that is accepted until they are built, as JSON; empty where none is.
LATER_KEYS = {"flaky": '"allow"', "max_age": '"none"', "max_tries": '"none"', "approvals": "0", "home": '"user"',
              "judge": '{"enabled":false}', "trust": "", "bindings_path": "", "cache": ""}  # fmt: skip
LATER_COMMAND_KEYS = {"at_base": '"any"', "covers": "[]", "isolation": '"none"', "graders": "", "cache": ""}
LATER_TASKS_KEYS = {"command": ""}


class Untasked(StrEnum):
    """What the gate does with a movement that names no task."""

    VERIFY = "verify"
    REFUSE = "refuse"
    ALLOW = "allow"


class Verification(StrEnum):
    """Whether a hook refuses a movement whose project verification nobody ran."""

    REQUIRED = "required"
    WHEN_KNOWN = "when_known"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A whole configuration with its defaults filled in; it survives msgspec's JSON.

    ``protect`` holds branch names, each exact or with one trailing ``/*``; ``bindings`` maps a task or ``*`` to a
    criterion or ``*`` to check ids; ``unknown`` names the top-level keys to warn about.
    """

    version: int
    repository: str
    mode: Mode
    untasked: Untasked
    verification: Verification
    protect: tuple[str, ...] = ()
    branches: str | None = None
    task_path: str | None = None
    headings: tuple[str, ...] = ()
    setup: tuple[Command, ...] = ()
    verify: tuple[Command, ...] = ()
    checks: dict[str, Command] = {}
    bindings: dict[str, dict[str, tuple[str, ...]]] = {}
    outputs: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def verification_digest(self) -> str:
        """What project verification under this configuration is keyed by."""
        return contract.verification_digest(self.verify, self.setup)


def parse(content: bytes, *, name: str = PATH) -> Config:
    """The configuration in ``content``; anything unclear raises `ConfigInvalid` with ``name``, line and path."""
    from gitevals import yamltree

    root = yamltree.read(content, file=name, limit_bytes=LIMIT_BYTES)
    values = root.mapping(hint="start with `version: 1` and `mode: observe`")
    _require_version(root, values)
    _refuse_later(values, LATER_KEYS)
    if "mode" not in values:
        raise root.error("mode is missing", hint="add `mode: observe` (or off, or enforce)")
    mode = values["mode"].choice(Mode)
    checks = _checks(values["checks"]) if "checks" in values else {}
    verify = _commands(values["verify"]) if "verify" in values else ()
    return Config(
        version=VERSION,
        repository=_repository(values["repository"]) if "repository" in values else NO_REPOSITORY,
        mode=mode,
        untasked=_untasked(values.get("untasked"), mode),
        verification=_verification(values.get("verification"), mode),
        protect=_protect(values["protect"]) if "protect" in values else (),
        branches=_branches(values["branches"]) if "branches" in values else None,
        task_path=_task_path(values["tasks"]) if "tasks" in values else None,
        headings=values["headings"].texts(hint="write `headings: [Requirements]`") if "headings" in values else (),
        setup=_commands(values["setup"]) if "setup" in values else (),
        verify=verify,
        checks=checks,
        bindings=_bindings(values["bindings"], checks, len(verify)) if "bindings" in values else {},
        outputs=values["outputs"].texts(hint="write `outputs: [build/]`") if "outputs" in values else (),
        unknown=tuple(key for key in values if key not in (*KEYS, *LATER_KEYS) and not key.startswith("x-")),
    )


def _require_version(root: "Node", values: Mapping[str, "Node"]) -> None:
    if "version" not in values:
        raise root.error("version is missing", hint="add `version: 1`")
    node = values["version"]
    if isinstance(node.value, bool) or node.value != VERSION:
        raise node.expected(str(VERSION), hint="write `version: 1`; a higher number needs a newer git-evals")


def _refuse_later(values: Mapping[str, "Node"], later: Mapping[str, str]) -> None:
    for key, default in later.items():
        if key in values and values[key].json() != default:
            accepted = f"only its default, {default}, is accepted" if default else "by default it is absent"
            raise values[key].error(f"not built yet; {accepted}", hint=f"remove {key}")


def _repository(node: "Node") -> str:
    repository = node.text()
    if not re.fullmatch(REPOSITORY, repository):
        raise node.expected("a repository id", hint="use up to 64 letters, digits, `_`, `.` or `-`")
    return repository


def _untasked(node: "Node | None", mode: Mode) -> Untasked:
    if node is not None:
        return node.choice(Untasked)
    return Untasked.REFUSE if mode is Mode.ENFORCE else Untasked.VERIFY


def _verification(node: "Node | None", mode: Mode) -> Verification:
    if node is not None:
        return node.choice(Verification)
    return Verification.REQUIRED if mode is Mode.ENFORCE else Verification.WHEN_KNOWN


def _protect(node: "Node") -> tuple[str, ...]:
    items = node.items(hint="write `protect: [main]`")
    for item in items:
        if re.search(NOT_IN_BRANCH, item.text().removesuffix("/*")):
            hint = "write a name as `git branch` shows it, like main, or one with a trailing /*, like release/*"
            raise item.expected("the name of a branch", hint=hint)
    return tuple(item.text() for item in items)


def _branches(node: "Node") -> str:
    pattern = node.text()
    hint = 'write `branches: "task/{task}"`'
    _require_one_task(node, pattern, hint)
    if re.search(NOT_IN_BRANCH, pattern.replace(TASK_FIELD, "1")):
        raise node.expected("a pattern of branch names", hint=hint)
    return pattern


def _task_path(node: "Node") -> str:
    hint = 'write `tasks: {path: "tasks/{task}.md"}`'
    values = node.fields(("path", *LATER_TASKS_KEYS), hint=hint)
    _refuse_later(values, LATER_TASKS_KEYS)
    if "path" not in values:
        raise node.error("path is missing", hint=hint)
    pattern = _relative(values["path"])
    _require_one_task(values["path"], pattern, hint)
    return pattern


def _require_one_task(node: "Node", pattern: str, hint: str) -> None:
    if pattern.count(TASK_FIELD) != 1 or re.search("[{}]", pattern.replace(TASK_FIELD, "")):
        raise node.expected(f"text with {TASK_FIELD} in it once and no other braces", hint=hint)


def _relative(node: "Node") -> str:
    path = node.text()
    if path.startswith("/") or ".." in path.split("/"):
        raise node.expected('a path inside the repository without ".."', hint="write it relative to the top directory")
    return path


def _checks(node: "Node") -> dict[str, Command]:
    checks = node.mapping(hint="write `checks: {name: {command: [pytest, -q]}}`")
    if len(checks) > contract.CHECKS_LIMIT:
        raise node.error(f"more than {contract.CHECKS_LIMIT} checks", hint="let one check run several tests")
    for check, entry in checks.items():
        if not re.fullmatch(ANY_ID, check):
            hint = "start with a letter; then up to 63 letters, digits, `_`, `.` or `-`"
            raise entry.error("not the id of a check", hint=hint)
        if re.fullmatch(r"verify-\d+", check, re.IGNORECASE):
            raise entry.error("this id means an entry of `verify`", hint="give the check another id")
    seconds = contract.CHECK_TIMEOUT_SECONDS
    return {check: _command(entry, timeout_seconds=seconds) for check, entry in checks.items()}


def _commands(node: "Node") -> tuple[Command, ...]:
    """The entries of ``verify`` or ``setup``: each an array of arguments, or a mapping with a check's keys."""
    hint = f"write `{node.path}: [[pytest, -q]]`, a list of commands that are lists of arguments"
    entries = node.items(hint=hint)
    if entries and all(isinstance(entry.value, str) and " " not in entry.value for entry in entries):
        raise node.expected("a list of commands", hint=f"write `{node.path}: [{_array(node)}]`")
    return tuple(_entry(entry) for entry in entries)


def _entry(node: "Node") -> Command:
    seconds = contract.VERIFICATION_TIMEOUT_SECONDS
    if isinstance(node.value, dict):
        return _command(node, timeout_seconds=seconds)
    return Command(command=_arguments(node), timeout_seconds=seconds)


def _command(node: "Node", *, timeout_seconds: int) -> Command:
    """A command with a check's keys; ``timeout_seconds`` holds where none is written."""
    hint = f"write `command: {_array(node)}` below {node.path}"
    values = node.fields((*COMMAND_KEYS, *LATER_COMMAND_KEYS), hint=hint)
    _refuse_later(values, LATER_COMMAND_KEYS)
    if "command" not in values:
        raise node.error("command is missing", hint=hint)
    seconds = values["timeout_seconds"].whole(1, TIMEOUT_LIMIT_SECONDS) if "timeout_seconds" in values else None
    return Command(
        command=_arguments(values["command"]),
        timeout_seconds=seconds or timeout_seconds,
        cwd=_relative(values["cwd"]) if "cwd" in values else ".",
        env=_env(values["env"]) if "env" in values else {},
        pass_env=_pass_env(values["pass_env"]) if "pass_env" in values else (),
        exit_codes=_exit_codes(values["exit_codes"]) if "exit_codes" in values else {},
    )


def _arguments(node: "Node") -> tuple[str, ...]:
    arguments = node.texts(hint=f"write `{_array(node)}`; no shell reads it")
    if not arguments:
        raise node.error("the command is empty", hint="write `[pytest, -q]`")
    return arguments


def _array(node: "Node") -> str:
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


def _env(node: "Node") -> dict[str, str]:
    values = node.mapping(hint='write `env: {NAME: "value"}`')
    for name, value in values.items():
        if not re.fullmatch(VARIABLE, name):
            raise value.error("not the name of a variable", hint="use letters, digits and `_`")
    return {name: "" if value.value == "" else value.text() for name, value in values.items()}


def _pass_env(node: "Node") -> tuple[str, ...]:
    names = node.texts(hint="write `pass_env: [NAME]`")
    for item in node.items(hint=""):
        if not re.fullmatch(VARIABLE, item.text()):
            raise item.expected("the name of a variable", hint="use letters, digits and `_`")
    return names


def _exit_codes(node: "Node") -> dict[str, Result]:
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


def _bindings(node: "Node", checks: Mapping[str, Command], verify: int) -> dict[str, dict[str, tuple[str, ...]]]:
    known = {*checks, *(contract.verification_id(position) for position in range(1, verify + 1))}
    hint = 'write `bindings: {"42": {AC-1: [name-of-a-check]}}`'
    return {task: _task_bindings(task, entry, known, hint) for task, entry in node.mapping(hint=hint).items()}


def _task_bindings(task: str, node: "Node", known: set[str], hint: str) -> dict[str, tuple[str, ...]]:
    if task != "*":
        try:
            check_task_id(task)
        except BadInput as error:
            raise node.error(error.message, hint=error.hint) from error
    for criterion, entry in node.mapping(hint=hint).items():
        if criterion != "*" and not re.fullmatch(ANY_ID, criterion):
            raise entry.error("not the id of a criterion", hint='write an id like AC-1, or "*" for all others')
    return {criterion: _bound(entry, known) for criterion, entry in node.mapping(hint=hint).items()}


def _bound(node: "Node", known: set[str]) -> tuple[str, ...]:
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
