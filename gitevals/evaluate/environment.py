"""The environment a check gets: built from a few names, never inherited."""

import platform
from collections.abc import Mapping

from gitevals import __version__
from gitevals.git import run
from gitevals.git.repo import Repo
from gitevals.model.contract import Command
from gitevals.model.evaluation import Environment


def built(
    inherited: Mapping[str, str], command: Command, *, base: str, head: str, task: str, root: str, temporary: str
) -> dict[str, str]:
    """The variables of one check; ``root`` is the scratch directory that git must not look above."""
    env = {
        "PATH": inherited.get("PATH", "/usr/bin:/bin"),
        "HOME": inherited.get("HOME", "/"),
        "LANG": inherited.get("LANG", "C.UTF-8"),
        "TMPDIR": temporary,
        "GIT_CEILING_DIRECTORIES": root,
        "GIT_TERMINAL_PROMPT": "0",
        "GITEVALS_BASE": base,
        "GITEVALS_HEAD": head,
        "GITEVALS_TASK": task,
    }
    passed = {name: inherited[name] for name in command.pass_env if name in inherited}
    return {**env, **passed, **command.env}


def described(repo: Repo) -> Environment:
    """Where this machine's checks run, as records tell it."""
    git = run.run(["version"], env=repo.env).stdout.decode().split()[2]
    return Environment(
        git=git,
        os=f"{platform.system()} {platform.release()}",
        arch=platform.machine(),
        tools={"git-evals": __version__, "python": platform.python_version()},
    )
