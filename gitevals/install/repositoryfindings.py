"""What the doctor says of the repository itself: its formats, and what of it is elsewhere, hidden or out of reach."""

import contextlib
import os
from collections.abc import Iterator

from gitevals.git import history, promised, refs
from gitevals.git.repo import Repo
from gitevals.git.sealed import unquoted
from gitevals.install.finding import Finding, State
from gitevals.session import Session

_NAME = "repository"
_REPLACEMENTS = "refs/replace/"


def repository(session: Session) -> list[Finding]:
    """Every finding about the repository itself."""
    repo = session.repo
    found = [*_history(repo), *_borrowed(repo), *_replaced(repo), *_access(repo)]
    if found:
        return found
    storage = repo.setting("extensions.refStorage")
    bare = ["bare"] if repo.worktree is None and repo.text("rev-parse", "--is-bare-repository") == "true" else []
    kind = ", ".join(["complete", repo.object_format, *([storage] if storage else []), *bare])
    return [Finding(name=_NAME, state=State.OK, text=kind)]


def is_writable(repo: Repo) -> bool:
    """Whether refs, objects and side files can be made in ``repo`` at all."""
    return os.access(repo.common_dir, os.W_OK)


def _history(repo: Repo) -> Iterator[Finding]:
    if history.is_shallow(repo):
        text = "shallow: deliveries and audits cannot look further back than it does"
        yield Finding(name=_NAME, state=State.NOTE, text=text, repair="git fetch --unshallow")
    if promised.remotes(repo):
        text = "a partial clone: objects are fetched when they are needed, also before checks run"
        yield Finding(name=_NAME, state=State.NOTE, text=text)
    if repo.text("config", "--type=bool", "--get", "core.sparseCheckout", accept=(0, 1)) == "true":
        yield Finding(name=_NAME, state=State.NOTE, text="a sparse checkout: checks run in a full one all the same")


def _borrowed(repo: Repo) -> Iterator[Finding]:
    store = os.path.join(repo.common_dir, "objects")
    for entry in _alternates(os.path.join(store, "info", "alternates")):
        place = os.path.join(store, entry)
        if not os.path.isdir(place):
            text = f"objects are borrowed from {place}, which is not there: what it held is missing here"
            repair = "bring it back, or clone anew"
            yield Finding(name=_NAME, state=State.PROBLEM, text=text, repair=repair)
        else:
            text = f"objects are borrowed from {place}: without it, nothing here can be judged"
            repair = "`git repack -a -d`, then remove objects/info/alternates, if it may go away"
            yield Finding(name=_NAME, state=State.NOTE, text=text, repair=repair)


def _alternates(file: str) -> list[str]:
    with contextlib.suppress(OSError), open(file, "rb") as opened:
        lines = [os.fsdecode(line) for line in opened.read().split(b"\n")]
        return [unquoted(line) if line.startswith('"') else line for line in lines if line and not line.startswith("#")]
    return []


def _replaced(repo: Repo) -> Iterator[Finding]:
    count = len(refs.values(repo, _REPLACEMENTS))
    if count:
        text = f"{count} objects are replaced in what git shows here; the gate judges what is really there"
        yield Finding(name=_NAME, state=State.NOTE, text=text, repair="`git replace --list` names them")
    with contextlib.suppress(OSError):
        if os.path.getsize(os.path.join(repo.common_dir, "info", "grafts")):
            text = "info/grafts changes the history that git shows here; the gate judges what is really there"
            yield Finding(name=_NAME, state=State.NOTE, text=text, repair="remove the file")


def _access(repo: Repo) -> Iterator[Finding]:
    if not is_writable(repo):
        text = f"{repo.common_dir} cannot be written: evidence can be read here, and none can be stored"
        yield Finding(name=_NAME, state=State.NOTE, text=text, repair="look at its permissions")
