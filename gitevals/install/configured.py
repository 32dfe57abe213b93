"""Hooks that git's own configuration names: git 2.54 and newer run them beside whatever files there are."""

import os
from collections.abc import Container
from pathlib import Path

from gitevals import cache
from gitevals.git.repo import Repo
from gitevals.install import shims

_SECTION = "hook.git-evals-"


def known(repo: Repo) -> bool:
    """Whether the installed git runs hooks that its configuration names; one that does not cannot list them."""
    return repo.run("hook", "list", shims.GATE, accept=range(256)).status in (0, 1)


def script(repo: Repo, event: str) -> Path:
    """The script of ``event`` that a configured hook, or a hook of somebody else, runs."""
    return Path(repo.common_dir, shims.SCRIPTS, event)


def put_script(repo: Repo, event: str) -> None:
    """Write the script of ``event``."""
    path = script(repo, event)
    cache.replace(str(path.parent), event, shims.source(event, shims.Kind.SCRIPT).encode())


def settings(repo: Repo) -> dict[str, str]:
    """What the repository's own configuration says of our hooks, by name of the setting."""
    told = repo.run("config", "--local", "-z", "--get-regexp", r"^hook\.git-evals-", accept=(0, 1)).stdout
    rows = [row.partition("\n") for row in told.decode("utf-8", "surrogateescape").split("\0") if row]
    return {name: value for name, _, value in rows}


def wanted(event: str) -> dict[str, str]:
    """The settings of one hook. A hook with an event and no command would stop every git: the command comes first."""
    return {f"{_SECTION}{event}.command": shims.command(event), f"{_SECTION}{event}.event": event}


def put(repo: Repo) -> None:
    """Write the scripts, then name them in the repository's own configuration."""
    found = settings(repo)
    for event in shims.EVENTS:
        put_script(repo, event)
        for name, value in wanted(event).items():
            if found.get(name) != value:
                repo.run("config", "--local", "--replace-all", name, value)


def take_away(repo: Repo) -> list[str]:
    """Remove the settings; the names of the hooks that were there."""
    names = sorted({name.rpartition(".")[0] for name in settings(repo)})
    for name in names:
        repo.run("config", "--local", "--remove-section", name)
    return names


def take_scripts_away(repo: Repo, *, kept: Container[str] = ()) -> None:
    """Remove the scripts, but those of the events in ``kept``, and their folder if it is empty then."""
    for event in shims.EVENTS:
        if event not in kept:
            script(repo, event).unlink(missing_ok=True)
    folder = script(repo, shims.GATE).parent
    if folder.is_dir() and not os.listdir(folder):
        folder.rmdir()


def disabled(repo: Repo, event: str) -> str:
    """The setting that silences our hook of ``event``, at whichever scope, or ""."""
    for name in (f"{_SECTION}{event}.enabled", f"hook.{event}.enabled"):
        if repo.text("config", "--type=bool", "--get", name, accept=(0, 1, 128)) == "false":
            return name
    return ""


def state(repo: Repo, event: str, found: dict[str, str]) -> str:
    """``installed``, ``outdated``, ``disabled`` or ``absent``."""
    expected = wanted(event)
    if not any(name in found for name in expected):
        return "absent"
    if disabled(repo, event):
        return "disabled"
    whole = all(found.get(name) == value for name, value in expected.items())
    path = script(repo, event)
    same = path.is_file() and path.read_text(errors="replace") == shims.source(event, shims.Kind.SCRIPT)
    return "installed" if whole and same else "outdated"
