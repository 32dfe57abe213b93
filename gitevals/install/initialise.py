"""`git evals init`: what one clone needs, and the commented configuration it starts from."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from gitevals.config import PATH, parse
from gitevals.errors import BadInput
from gitevals.git import refs
from gitevals.install import hooks
from gitevals.model.contract import Mode
from gitevals.session import Session

_TEMPLATE = """\
# git-evals: which evidence a change needs before it may enter a protected branch.
# The version of this file on the protected branch counts, never the one in a change.
version: 1
# Evidence of another repository never counts. Keep this id for the life of the project.
repository: {repository}
# off: only `verify` counts; observe: criteria are shown, never in the way; enforce: they are required.
mode: {mode}
protect: [{protect}]
# The branch of a task, and where its text lies; its checklist under "## Acceptance Criteria" is what must hold.
branches: "task/{{task}}"
tasks: {{path: "tasks/{{task}}.md"}}
# Argument arrays that must succeed for every change; no shell, unless you name one.
verify: []
#  - [pytest, -q]
# Checks, and the criteria they prove.
checks: {{}}
#  registration:
#    command: [pytest, -q, tests/acceptance/test_registration.py]
#    timeout_seconds: 60
bindings: {{}}
#  "42": {{AC-1: [registration], AC-2: [registration, verify-1]}}
"""


def initialise(session: Session, protect: Sequence[str], mode: Mode, *, with_hooks: bool) -> list[str]:
    """Prepare a clone and say what was done; nothing that exists is changed."""
    repo = session.repo
    refuse_way(session)
    said = []
    branches = [_checked(session, name) for name in protect] or [_current(session)]
    if repo.worktree is not None:
        said.append(_configure(Path(repo.worktree, PATH), branches, mode))
    if not repo.text("config", "--get", "evals.trustBranch", accept=(0, 1)):
        hooks.set_trust_branch(repo, next((name for name in protect if not name.endswith("/*")), ""))
    said.append(f"trusted branch: {repo.text('config', '--get', 'evals.trustBranch')}")
    store = session.store("none")
    said.append(f"writer: {store.writer}")
    if with_hooks:
        said += [f"hook {entry.event}: {entry.state}" for entry in hooks.install(repo, session.objects)]
    return said


def refuse_way(session: Session) -> None:
    """A ref that stands where ledgers need a folder is no place to begin."""
    for name in ("refs/notes/evals", "refs/evals"):
        if name in refs.values(session.repo, name):
            raise BadInput(
                f"ref {name} is in the way of the evidence refs below it",
                hint=f"keep it elsewhere (`git update-ref {name}-old {name}`), then `git update-ref -d {name}`",
            )


def _checked(session: Session, name: str) -> str:
    """``name`` itself if it can be in ``protect``: a branch, or a folder of branches with one trailing ``/*``."""
    plain = name.removesuffix("/*")
    if session.repo.run("check-ref-format", "--branch", plain, accept=range(256)).status or plain.startswith("-"):
        raise BadInput(
            f'"{name}" is no branch that could be protected', hint="--protect main, or --protect 'release/*'"
        )
    return name


def _current(session: Session) -> str:
    name = session.repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128))
    if not name:
        raise BadInput("no branch is checked out", hint="name the branch to protect with `--protect BRANCH`")
    return name.removeprefix("refs/heads/")


def _configure(file: Path, branches: Sequence[str], mode: Mode) -> str:
    if file.exists():
        config = parse(file.read_bytes())
        if config.repository == "none":
            return f"{PATH} is there; add this line to it: repository: r{secrets.token_hex(8)}"
        return f"{PATH} is there and was left as it is"
    text = _TEMPLATE.format(
        repository=f"r{secrets.token_hex(8)}", mode=mode, protect=", ".join(f'"{name}"' for name in branches)
    )
    parse(text.encode())
    file.write_text(text)
    return f"wrote {PATH}; look it over, then commit it"
