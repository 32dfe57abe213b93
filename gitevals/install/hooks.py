"""The hooks in a repository: put in place, taken away, looked at."""

import os
import sys
from pathlib import Path

import msgspec

import gitevals
from gitevals import protection
from gitevals.errors import BadInput
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo

EVENTS = ("reference-transaction", "pre-commit", "pre-merge-commit", "pre-push")
MARK = "# Installed by `git evals hooks install`"


class HookStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One hook: ``installed``, ``outdated``, ``absent``, ``foreign``; ``elsewhere``: git looks in core.hooksPath."""

    event: str
    path: str
    state: str


def shims() -> Path:
    """The folder of the hooks' sources: inside an installed package, beside it in a checkout."""
    package = Path(gitevals.__file__).parent
    for place in (package / "install" / "shims", package.parent / "hooks"):
        if (place / "prelude.sh").is_file():
            return place
    raise BadInput("the hooks of git-evals are missing from its installation", hint="install git-evals again")


def source(event: str) -> str:
    """The whole text of one hook for this interpreter."""
    prelude = (shims() / "prelude.sh").read_text()
    body = (shims() / event).read_text()
    values = {"@PYTHON@": _quoted(sys.executable), "@MODULES@": _quoted(os.pathsep.join(_modules()))}
    for name, value in values.items():
        prelude = prelude.replace(name, value)
    return prelude + "\n" + body


def _modules() -> list[str]:
    """The folders from which an interpreter without site-packages imports us and msgspec."""
    ours, needed = Path(gitevals.__file__).parents[1], Path(str(msgspec.__file__)).parents[1]
    return list(dict.fromkeys(str(place) for place in (ours, needed)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _configured(repo: Repo) -> str:
    return repo.setting("core.hooksPath")


def refuse_elsewhere(repo: Repo) -> None:
    """Raise `BadInput` where ``core.hooksPath`` sends git to the hooks of somebody else."""
    configured = _configured(repo)
    if configured:
        raise BadInput(
            f'core.hooksPath is set to "{configured}": the hooks there belong to another tool',
            hint="git config --unset core.hooksPath",
        )


def status(repo: Repo) -> list[HookStatus]:
    """How each hook stands."""
    place = Path(repo.common_dir, "hooks")
    elsewhere = _configured(repo)
    return [
        HookStatus(
            event=event, path=str(place / event), state="elsewhere" if elsewhere else _state(place / event, event)
        )
        for event in EVENTS
    ]


def _state(path: Path, event: str) -> str:
    if not os.path.lexists(path):
        return "absent"
    text = path.read_text(errors="replace") if path.is_file() else ""
    if MARK not in text:
        return "foreign"
    return "installed" if text == source(event) and os.access(path, os.X_OK) else "outdated"


def install(repo: Repo, objects: Objects) -> list[HookStatus]:
    """Put every hook in place, or none: a hook of somebody else raises `BadInput` first."""
    refuse_elsewhere(repo)
    found = status(repo)
    foreign = [entry.path for entry in found if entry.state == "foreign"]
    if foreign:
        raise BadInput(
            f"there is a hook already: {', '.join(foreign)}",
            hint="move it away, or keep it and use `git evals verify` and `git evals merge` by hand",
        )
    set_trust_branch(repo)
    protection.refresh_list(repo, objects)
    for entry in found:
        _write(Path(entry.path), source(entry.event))
    return status(repo)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def set_trust_branch(repo: Repo, named: str = "") -> None:
    """Remember which branch's configuration is trusted, if none is yet: ``named``, the remote's HEAD, the current."""
    if repo.setting("evals.trustBranch"):
        return
    remote = repo.text("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD", accept=(0, 1, 128))
    current = repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128))
    name = named or remote.removeprefix("refs/remotes/origin/") or current.removeprefix(protection.HEADS)
    if not name:
        raise BadInput("no branch is checked out", hint="`git config evals.trustBranch BRANCH` names the one to trust")
    repo.run("config", "--local", "evals.trustBranch", name)


def uninstall(repo: Repo) -> list[str]:
    """Take away the hooks that are ours and their list; the paths that were removed."""
    ours = [entry.path for entry in status(repo) if _state(Path(entry.path), entry.event) in ("installed", "outdated")]
    for path in ours:
        Path(path).unlink()
    for name in (protection.LIST, protection.STALE):
        (Path(repo.common_dir) / "git-evals" / name).unlink(missing_ok=True)
    return ours
