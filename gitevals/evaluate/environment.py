"""The environment a check gets: built from a few names, never inherited."""

import platform
from collections.abc import Mapping

from gitevals import __version__
from gitevals.git import run
from gitevals.git.repo import Repo
from gitevals.model.contract import Command
from gitevals.model.evaluation import Environment

DEFAULT_PATH = "/usr/bin:/bin"
# What every command gets in any case; naming it in `pass_env` brings no other value.
GIVEN = ("PATH", "HOME", "LANG")
# Where keys are, what steers git, and what steers us: not even `pass_env` hands these on.
_WITHHELD = ("SSH_AUTH_SOCK", "SSH_AGENT_PID")
_WITHHELD_PREFIXES = ("GIT_", "GITEVALS_")


def built(
    inherited: Mapping[str, str],
    command: Command,
    *,
    path: str,
    base: str,
    head: str,
    task: str,
    root: str,
    temporary: str,
) -> dict[str, str]:
    """The variables of one check; ``root`` is the scratch directory that git must not look above."""
    env = {
        "PATH": path,
        "HOME": inherited.get("HOME", "/"),
        "LANG": inherited.get("LANG", "C.UTF-8"),
        "TMPDIR": temporary,
        "GIT_CEILING_DIRECTORIES": root,
        "GIT_TERMINAL_PROMPT": "0",
        "GITEVALS_BASE": base,
        "GITEVALS_HEAD": head,
        "GITEVALS_TASK": task,
    }
    return {**env, **passed(inherited, command), **command.env}


def passed(inherited: Mapping[str, str], command: Command) -> dict[str, str]:
    """What ``pass_env`` really hands on of the caller's variables."""
    return {
        name: inherited[name]
        for name in command.pass_env
        if name in inherited and name not in (*GIVEN, *_WITHHELD) and not name.startswith(_WITHHELD_PREFIXES)
    }


def described(repo: Repo) -> Environment:
    """Where this machine's checks run, as records tell it."""
    git = run.run(["version"], env=repo.env).stdout.decode().split()[2]
    return Environment(
        git=git,
        os=f"{platform.system()} {platform.release()}",
        arch=platform.machine(),
        tools={"git-evals": __version__, "python": platform.python_version()},
    )
