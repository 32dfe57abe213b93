"""What a person named, as exact commits: the target branch and the change that is to enter it."""

import msgspec

from gitevals import authority, protection
from gitevals.authority import copies, remote_of
from gitevals.config import PATH
from gitevals.contracts.reading import BaseConfig, config_at
from gitevals.errors import BadInput
from gitevals.git import history, refs
from gitevals.git.objects import Objects, read
from gitevals.git.repo import Repo

HEADS = "refs/heads/"
REMOTES = "refs/remotes/"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that changes enter: full name, the ``tip`` it is judged from, its configuration, things worth saying."""

    ref: str
    tip: str
    base: BaseConfig
    option: str
    notices: tuple[str, ...] = ()


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A change: its commit, and the branch it was named by (None for a bare commit)."""

    commit: str
    branch: str | None


def target(repo: Repo, objects: Objects, into: str | None) -> Target:
    """The target that ``into`` names, or the default one; a target without configuration raises `BadInput`."""
    ref, explicit = (_named(repo, into), True) if into else (_default(repo, objects), False)
    tip, notices = _tip(repo, ref, into)
    base = config_at(repo, objects, tip)
    if base is None:
        raise BadInput(
            f"{_short(ref)} at {tip[:12]} has no {PATH}",
            hint=f"run `git evals init`, then commit {PATH} to {_short(ref)}",
        )
    option = f" --into {_short(ref)}" if explicit and ref != _default_or_none(repo, objects) else ""
    return Target(ref=ref, tip=tip, base=base, option=option, notices=(*notices, *_differing_copy(repo, objects, base)))


def branch_tip(repo: Repo, objects: Objects, into: str | None) -> tuple[str, str]:
    """The target's full name and tip, whether it bears a configuration (still) or not."""
    ref = _named(repo, into) if into else _default(repo, objects)
    return ref, _tip(repo, ref, into)[0]


def _short(ref: str) -> str:
    return ref.removeprefix(HEADS)


def _named(repo: Repo, into: str) -> str:
    """The full name of the branch that ``--into`` means; a tracking branch means the local branch of its name."""
    name = into.removeprefix(HEADS).removeprefix(REMOTES)
    local, tracking = HEADS + name, REMOTES + name
    known = refs.values(repo, local, tracking)
    if local in known or tracking not in known:
        return local
    return HEADS + name.partition("/")[2]


def _default(repo: Repo, objects: Objects) -> str:
    found = _default_or_none(repo, objects)
    if found is None:
        raise BadInput("no target branch is known", hint="run `git evals init`, or name one with `--into BRANCH`")
    return found


def _default_or_none(repo: Repo, objects: Objects) -> str | None:
    trust = protection.trust_branch(repo) or _remote_head(repo)
    if trust is None:
        return None
    tip = _tip_or_none(repo, trust)
    base = config_at(repo, objects, tip) if tip else None
    named = [name for name in (base.config.protect if base else ()) if not name.endswith("/*")]
    return HEADS + named[0] if len(named) == 1 else trust


def _remote_head(repo: Repo) -> str | None:
    """The branch that a clone's remote calls its HEAD; in a bare repository, HEAD's own."""
    named = authority.head(repo)
    if named:
        return named
    bare = repo.worktree is None and repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128))
    return bare or None


def _tip_or_none(repo: Repo, ref: str) -> str | None:
    return refs.values(repo, ref).get(ref) or copies(repo, [ref]).get(ref)


def _tip(repo: Repo, ref: str, into: str | None) -> tuple[str, tuple[str, ...]]:
    local, copy = refs.values(repo, ref).get(ref), copies(repo, [ref]).get(ref)
    if into and into.removeprefix(REMOTES) == f"{remote_of(repo, ref)}/{_short(ref)}" and copy and local != copy:
        return copy, (f"judged from {into}, not from the local branch",)
    if local is None:
        if copy is None and not into and not history.is_shallow(repo):
            hint = f"commit .gitevals.yaml to {_short(ref)} first"
            raise BadInput(f'there is no commit on "{_short(ref)}" yet', hint=hint)
        if copy is None:
            raise _no_branch(repo, _short(ref))
        return copy, ()
    if copy is not None and copy != local and history.is_ancestor(repo, local, copy):
        tracking = f"{remote_of(repo, ref)}/{_short(ref)}"
        return local, (f"{tracking} is ahead of {_short(ref)}; `--into {tracking}` judges from there",)
    return local, ()


def _no_branch(repo: Repo, name: str) -> BadInput:
    tag = f"refs/tags/{name}"
    if tag in refs.values(repo, tag):
        return BadInput(f'"{name}" is a tag, not a branch', hint="name a branch, or the commit with `--commit`")
    if history.is_shallow(repo):
        return BadInput(f'there is no branch "{name}" in this shallow clone', hint="git fetch --unshallow")
    return BadInput(f'there is no branch "{name}"', hint="`git branch --all` lists what can be named")


def _differing_copy(repo: Repo, objects: Objects, base: BaseConfig) -> tuple[str, ...]:
    if repo.worktree is None:
        return ()
    try:
        with open(f"{repo.worktree}/{PATH}", "rb") as file:
            here = file.read()
    except OSError:
        return ()
    judged = read(objects, base.blob)
    if judged is None or judged.body == here:
        return ()
    return (f"{PATH} in the work tree differs; judged by the one in {base.commit[:12]}",)


def branch_head(repo: Repo, branch: str) -> Head:
    """The tip of a branch, local or tracking; anything else raises `BadInput`."""
    name = branch.removeprefix(HEADS).removeprefix(REMOTES)
    known = refs.values(repo, HEADS + name, REMOTES + name)
    for ref in (HEADS + name, REMOTES + name):
        if ref in known:
            return Head(commit=known[ref], branch=name)
    raise _no_branch(repo, branch)


def commit_head(repo: Repo, name: str) -> Head:
    """A commit by any name git knows; anything else raises `BadInput`."""
    found = history.commit_of(repo, name)
    if found is None or not found.isalnum():  # a range is several ids, one of them with a caret
        hint = "git fetch --unshallow" if history.is_shallow(repo) else "`git log` shows what is here"
        raise BadInput(f'"{name}" is no commit in this repository', hint=hint)
    return Head(commit=found, branch=None)
