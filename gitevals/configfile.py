"""``.gitevals.yaml`` and the files of bindings beside it: bytes → the values of `gitevals.config`."""

import re
from collections.abc import Mapping

from gitevals import commands, yamltree
from gitevals.config import (
    KEYS,
    LATER_KEYS,
    LIMIT_BYTES,
    NO_REPOSITORY,
    PATH,
    TASK_FIELD,
    VERSION,
    Config,
    Flaky,
    Untasked,
    Verification,
)
from gitevals.model import contract
from gitevals.model.contract import Cached, Mode
from gitevals.yamltree import Node

REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
NOT_IN_BRANCH = r"^$|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^/|/$|\.$|(^|/)\.|\.lock(/|$)|^-|^HEAD$|^refs/"
AGES_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def parse(content: bytes, *, name: str = PATH) -> Config:
    """The configuration in ``content``; anything unclear raises `ConfigInvalid` with ``name``, line and path."""
    start = "`version: 1` and `mode: observe`"
    root = yamltree.read(content, file=name, limit_bytes=LIMIT_BYTES, start=start)
    values = root.mapping(hint=f"start with {start}")
    _require_version(root, values)
    commands.refuse_later(values, LATER_KEYS)
    if "mode" not in values:
        raise root.error("mode is missing", hint="add `mode: observe` (or off, or enforce)")
    mode = values["mode"].choice(Mode)
    checks = commands.checks(values["checks"]) if "checks" in values else {}
    verify = commands.commands(values["verify"]) if "verify" in values else ()
    setup = commands.commands(values["setup"]) if "setup" in values else ()
    task_path, task_command = _tasks(values["tasks"]) if "tasks" in values else (None, ())
    return Config(
        version=VERSION,
        repository=_repository(values["repository"]) if "repository" in values else NO_REPOSITORY,
        mode=mode,
        untasked=_untasked(values.get("untasked"), mode),
        verification=_verification(values.get("verification"), mode),
        protect=_protect(values["protect"]) if "protect" in values else (),
        branches=_branches(values["branches"]) if "branches" in values else None,
        task_path=task_path,
        task_command=task_command,
        bindings_path=_bindings_path(values["bindings_path"]) if "bindings_path" in values else None,
        headings=values["headings"].texts(hint="write `headings: [Requirements]`") if "headings" in values else (),
        setup=setup,
        verify=verify,
        checks=checks,
        bindings=commands.bindings(values["bindings"], checks, len(verify)) if "bindings" in values else {},
        outputs=values["outputs"].texts(hint="write `outputs: [build/]`") if "outputs" in values else (),
        cache=_cache(values["cache"], len(setup)) if "cache" in values else (),
        flaky=values["flaky"].choice(Flaky) if "flaky" in values else Flaky.ALLOW,
        max_age_seconds=_max_age(values["max_age"]) if "max_age" in values else 0,
        max_tries=_max_tries(values["max_tries"]) if "max_tries" in values else 0,
        unknown=tuple(key for key in values if key not in (*KEYS, *LATER_KEYS) and not key.startswith("x-")),
    )


def _require_version(root: Node, values: Mapping[str, Node]) -> None:
    if "version" not in values:
        raise root.error("version is missing", hint="add `version: 1`")
    node = values["version"]
    if isinstance(node.value, bool) or node.value != VERSION:
        raise node.expected(str(VERSION), hint="write `version: 1`; a higher number needs a newer git-evals")


def _repository(node: Node) -> str:
    repository = node.text()
    if not re.fullmatch(REPOSITORY, repository):
        raise node.expected("a repository id", hint="use up to 64 letters, digits, `_`, `.` or `-`")
    return repository


def _untasked(node: Node | None, mode: Mode) -> Untasked:
    if node is not None:
        return node.choice(Untasked)
    return Untasked.REFUSE if mode is Mode.ENFORCE else Untasked.VERIFY


def _verification(node: Node | None, mode: Mode) -> Verification:
    if node is not None:
        return node.choice(Verification)
    return Verification.REQUIRED if mode is Mode.ENFORCE else Verification.WHEN_KNOWN


def _protect(node: Node) -> tuple[str, ...]:
    items = node.items(hint="write `protect: [main]`")
    for item in items:
        if re.search(NOT_IN_BRANCH, item.text().removesuffix("/*")):
            hint = "write a name as `git branch` shows it, like main, or one with a trailing /*, like release/*"
            raise item.expected("the name of a branch", hint=hint)
    return tuple(item.text() for item in items)


def _branches(node: Node) -> str:
    pattern = node.text()
    hint = 'write `branches: "task/{task}"`'
    _require_one_task(node, pattern, hint)
    if re.search(NOT_IN_BRANCH, pattern.replace(TASK_FIELD, "1")):
        raise node.expected("a pattern of branch names", hint=hint)
    return pattern


def _tasks(node: Node) -> tuple[str | None, tuple[str, ...]]:
    """Where task texts lie, or the command that prints one: exactly one of the two."""
    hint = 'write `tasks: {path: "tasks/{task}.md"}` or `tasks: {command: [gh, issue, view, "{task}"]}`'
    values = node.fields(("path", "command"), hint=hint)
    if len(values) != 1:
        raise node.error("one of path and command is needed" if not values else "path and command exclude each other",
                         hint=hint)  # fmt: skip
    if "path" in values:
        return _pattern(values["path"], hint), ()
    arguments = commands.arguments(values["command"])
    if TASK_FIELD in arguments[0] or sum(argument.count(TASK_FIELD) for argument in arguments[1:]) != 1:
        raise values["command"].error(f"{TASK_FIELD} must stand once in its arguments", hint=hint)
    return None, arguments


def _pattern(node: Node, hint: str) -> str:
    pattern = commands.relative_path(node)
    _require_one_task(node, pattern, hint)
    return pattern


def _bindings_path(node: Node) -> str:
    return _pattern(node, 'write `bindings_path: ".gitevals/bindings/{task}.yaml"`')


def _cache(node: Node, setup: int) -> tuple[Cached, ...]:
    """What is kept; ``setup`` is the number of set-up commands."""
    hint = "write `cache: [{path: node_modules, key: [package-lock.json]}]`"
    found: list[Cached] = []
    for item in node.items(hint=hint):
        values = item.fields(("path", "key", "spares"), hint=hint)
        if "path" not in values or "key" not in values:
            raise item.error("path and key are needed", hint=hint)
        path = commands.path_inside(values["path"])
        if any(f"{path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{path}/") for other in found):
            raise values["path"].error("lies in, or holds, another cached path", hint="name each path once")
        keys = tuple(commands.path_inside(key) for key in values["key"].items(hint=hint))
        if not keys:
            raise values["key"].error("no file is named", hint=hint)
        spares = _spares(values["spares"], setup) if "spares" in values else ()
        found.append(Cached(path=path, key=keys, spares=spares))
    return tuple(found)


def _spares(node: Node, setup: int) -> tuple[str, ...]:
    known = [contract.setup_id(number) for number in range(1, setup + 1)]
    for item in node.items(hint="write `spares: [setup-1]`"):
        if item.text() not in known:
            raise item.error(f"no set-up command is called {item.found()}", hint=f"known: {', '.join(known) or 'none'}")
    return node.texts(hint="write `spares: [setup-1]`")


def _max_age(node: Node) -> int:
    """Seconds; 0 for none."""
    if node.value == "none":
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", node.value) if isinstance(node.value, str) else None
    if found is None:
        raise node.expected("an age", hint="write `max_age: 30d` (h, d or w), or none")
    return int(found[1]) * AGES_SECONDS[found[2]]


def _max_tries(node: Node) -> int:
    """The limit; 0 for none."""
    return 0 if node.value == "none" else node.whole(1, 1000)


def _require_one_task(node: Node, pattern: str, hint: str) -> None:
    if pattern.count(TASK_FIELD) != 1 or re.search("[{}]", pattern.replace(TASK_FIELD, "")):
        raise node.expected(f"text with {TASK_FIELD} in it once and no other braces", hint=hint)


def parse_bindings(content: bytes, config: Config, *, name: str) -> dict[str, tuple[str, ...]]:
    """The bindings of one task in a file of its own: criterion or ``*`` → check ids; raises `ConfigInvalid`."""
    root = yamltree.read(content, file=name, limit_bytes=LIMIT_BYTES, start="`AC-1: [name-of-a-check]`")
    known = commands.bindable(config.checks, len(config.verify))
    return commands.criteria_bindings(root, known, "write `AC-1: [name-of-a-check]`")
