"""What a commit's ``.gitmodules`` and the user's configuration say about its submodules; the former may be hostile."""

import os
import re
from collections.abc import Collection

import msgspec

from gitevals.errors import BadInput
from gitevals.git.sealed import Scratch, fields, quoted

_FALSE = ("false", "no", "off", "0")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Path → name of each submodule that is there and named, and name → ``update`` where that is set."""

    names: dict[str, str]
    update: dict[str, str]


def read(outer: Scratch, paths: Collection[str]) -> Known:
    """What the ``.gitmodules`` of the commit checked out in ``outer`` says about the gitlinks at ``paths``.

    A name that leads out of its directory, and two that claim one path or directory, raise `BadInput`. Of two values
    the first counts and a path like an option names nothing, as for git.
    """
    settings: dict[tuple[str, str], str] = {}
    for key, value in _pairs(_asked(outer)):
        name, _, variable = key.removeprefix("submodule.").rpartition(".")
        settings.setdefault((name, variable), value)
    names: dict[str, str] = {}
    for (name, variable), path in settings.items():
        if variable != "path" or path not in paths or path.startswith("-"):
            continue
        if path in names:
            raise BadInput(f".gitmodules gives {outer.named(path)} two names: {quoted(names[path])}, {quoted(name)}")
        names[path] = _sound(name)
    _refuse_names_within_names(list(names.values()))
    update = {name: value for (name, variable), value in settings.items() if variable == "update"}
    return Known(names=names, update=update)


def _asked(outer: Scratch) -> bytes:
    if not os.path.lexists(os.path.join(outer.worktree, ".gitmodules")):
        return b""
    asked = ("config", "-z", "--blob", f"{outer.commit}:.gitmodules", "--get-regexp", r"^submodule\..*\.(path|update)$")
    done = outer.watch.run(*asked, accept=range(256))
    if done.stderr.strip():  # with the status of "no such key"
        reason = done.stderr.strip().splitlines()[-1]
        raise BadInput(f"{outer.named('.gitmodules')} of {outer.commit} does not parse: {reason}")
    return done.stdout


def _pairs(told: bytes) -> list[tuple[str, str]]:
    return [(entry.partition("\n")[0], entry.partition("\n")[2]) for entry in fields(told)]


def _sound(name: str) -> str:
    parts = re.split(r"[/\\]", name)
    strange = name.startswith("-") or not all(parts) or any(char < " " for char in name)
    if strange or {".", "..", ".git"} & {part.lower() for part in parts}:
        raise BadInput(
            f".gitmodules names a submodule {quoted(name)!r}, which would lead elsewhere",
            hint="give it a name without `..`, `.git`, a leading `/` or `-`",
        )
    return name


def _refuse_names_within_names(names: list[str]) -> None:
    folded = {name.lower(): name for name in names}
    for name in names:
        parts = name.lower().split("/")
        above = next((up for n in range(1, len(parts)) if (up := "/".join(parts[:n])) in folded), None)
        if above or folded[name.lower()] != name:
            other = folded[above or name.lower()]
            raise BadInput(f"submodules {quoted(other)!r} and {quoted(name)!r} of .gitmodules claim one directory")


def switched_off(outer: Scratch, known: Known) -> frozenset[str]:
    """Paths of the submodules that the user's configuration, or ``update = none`` of the commit, leaves out."""
    if not known.names:
        return frozenset()
    pairs = _pairs(outer.sources[0].run("config", "-z", "--get-regexp", r"^submodule\.", accept=(0, 1)).stdout)
    users = dict(pairs)
    specs = [value for key, value in pairs if key == "submodule.active"]
    active = frozenset(fields(outer.watch.run("ls-files", "-z", "--", *specs).stdout)) if specs else None
    off = set()
    for path, name in known.names.items():
        said = users.get(f"submodule.{name}.active")
        inactive = said.lower() in _FALSE if said is not None else active is not None and path not in active
        if inactive or users.get(f"submodule.{name}.update", known.update.get(name)) == "none":
            off.add(path)
    return frozenset(off)
