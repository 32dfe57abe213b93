"""`git evals init`: what one clone needs, and the commented configuration it starts from."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from gitevals import cache
from gitevals.config import PATH
from gitevals.configfile import parse
from gitevals.errors import BadInput
from gitevals.git import refs
from gitevals.install import hooks, yard, yardfile
from gitevals.install.yamltext import quoted
from gitevals.model.contract import Mode
from gitevals.session import Session

_HEAD = """\
# git-evals: which evidence a change needs before it may enter a protected branch.
# The version of this file on the protected branch counts, never the one in a change.
version: 1
# Evidence of another repository never counts. Keep this id for the life of the project.
repository: {repository}
# off: only `verify` counts; observe: criteria are shown, never in the way; enforce: they are required.
mode: {mode}
protect: [{protect}]
"""
_BODY = """\
# The branch of a task, and where its text lies; its checklist under "## Acceptance Criteria" is what must hold.
branches: "task/{task}"
tasks: {path: "tasks/{task}.md"}
# Argument arrays that must succeed for every change; no shell, unless you name one.
verify: []
#  - [pytest, -q]
# Checks, and the criteria they prove.
checks: {}
#  registration:
#    command: [pytest, -q, tests/acceptance/test_registration.py]
#    timeout_seconds: 60
bindings: {}
#  "42": {AC-1: [registration], AC-2: [registration, verify-1]}
"""


def initialise(
    session: Session, protect: Sequence[str], mode: Mode | None, *, with_hooks: bool, from_yard: str | None = None
) -> list[str]:
    """Prepare a clone and say what was done; nothing that exists is changed.

    ``from_yard`` names a configuration of Yard to start from; "" stands for the one in the work tree.
    """
    repo = session.repo
    _refuse_way(session)
    if with_hooks:
        hooks.require_possible(repo)
    said = []
    branches = [_checked(session, name) for name in protect] or [_current(session)]
    if from_yard is not None:
        said += _translate(repo.worktree, branches, mode, from_yard)
    elif repo.worktree is not None:
        said.append(_configure(Path(repo.worktree, PATH), branches, mode or Mode.OBSERVE))
    hooks.set_trust_branch(repo, next((name for name in protect if not name.endswith("/*")), ""))
    said.append(f"trusted branch: {repo.text('config', '--get', 'evals.trustBranch')}")
    store = session.store("none")
    said.append(f"writer: {store.writer}")
    if with_hooks:
        said += [f"hook {entry.event}: {entry.state}" for entry in hooks.install(repo, session.objects)]
    return said


def _refuse_way(session: Session) -> None:
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
    content = (_head(branches, mode) + _BODY).encode()
    parse(content)
    return _write(file, content)


def _translate(worktree: str | None, branches: Sequence[str], mode: Mode | None, named: str) -> list[str]:
    """Write what a configuration of Yard becomes, and say what became of it."""
    if worktree is None:
        raise BadInput(f"there is no work tree here to write {PATH} into", hint="run the command in a clone")
    file = Path(worktree, PATH)
    if os.path.lexists(file):
        hint = f"move it away (`mv {PATH} {PATH}.old`), run the command again, and compare the two"
        raise BadInput(f"{PATH} is there already, and nothing is translated over it", hint=hint)
    found = yardfile.Found(path=Path(named), name=named) if named else yardfile.find(Path(worktree))
    source = yardfile.read(found.path, found.name)
    translation = yard.translated(source, mode)
    text = f"# Translated from {quoted(found.name)}.\n{_head(branches, translation.mode)}{translation.body}"
    yard.require_valid(source, text)
    notices = [*found.notices, *translation.notices]
    return [*notices, f"translated {found.name}", _write(file, text.encode())]


def _head(branches: Sequence[str], mode: Mode) -> str:
    protect = ", ".join(f'"{name}"' for name in branches)
    return _HEAD.format(repository=f"r{secrets.token_hex(8)}", mode=mode, protect=protect)


def _write(file: Path, content: bytes) -> str:
    cache.replace(str(file.parent), file.name, content)
    return f"wrote {PATH}; look it over, then commit it"
