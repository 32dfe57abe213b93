"""Movements that bring nothing new: recomputed from trees, never read from a message."""

import re

from gitevals.config import PATH, Config
from gitevals.contracts.reading import BaseConfig
from gitevals.git import history
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo
from gitevals.model.movement import Commit, Span
from gitevals.model.task import TASK_ID

UNDO_LIMIT = 100  # first-parent steps of the target that are searched for the delivery a movement undoes


def exemption(repo: Repo, objects: Objects, base: BaseConfig, span: Span) -> str:
    """Why project verification alone is needed for ``span``, or "" where it is not so."""
    if span.old.tree == span.new.tree:
        return "the tree is unchanged"
    paths = history.changed_paths(repo, span.old.id, span.new.id)
    if paths and all(_is_of_examination(base.config, path, mode) for path, mode in paths.items()):
        return "only configuration and task files change"
    restored = _restored(repo, span)
    if restored:
        return f"the tree of {restored[:12]} is restored"
    undone = _undone(repo, span, frozenset(paths))
    return f"exactly {undone[:12]} is undone" if undone else ""


def _is_of_examination(config: Config, path: str, mode: str) -> bool:
    """Whether ``path``, a plain file or one that goes, is the configuration or can be a task's text."""
    if mode not in ("100644", "000000"):
        return False
    if path == PATH:
        return True
    if config.task_path is None:
        return False
    before, after = config.task_path.split("{task}")
    middle = path[len(before) : len(path) - len(after)]
    return path == f"{before}{middle}{after}" and re.fullmatch(TASK_ID, middle) is not None


def _restored(repo: Repo, span: Span) -> str:
    """The first-parent ancestor of old whose tree the movement restores, or ""."""
    for line in repo.text("log", "--first-parent", "--format=%H %T", span.old.id, "--").splitlines():
        commit, tree = line.split()
        if tree == span.new.tree:
            return commit
    return ""


def _undone(repo: Repo, span: Span, paths: frozenset[str]) -> str:
    """The one recent delivery whose removal from old yields new's tree, or ""."""
    entries = history.log(repo, "--first-parent", f"-{UNDO_LIMIT}", span.old.id, trailer="Task")
    for entry in entries:
        if not entry.parents or frozenset(history.changed_paths(repo, entry.parents[0], entry.id)) != paths:
            continue
        delivery = Commit(id=entry.id, tree=entry.tree, parents=entry.parents)
        if _without(repo, span.old.id, delivery) == span.new.tree:
            return entry.id
    return ""


def _without(repo: Repo, tip: str, delivery: Commit) -> str | None:
    """The tree of ``tip`` less ``delivery``: a three-way merge in a git directory that is thrown away.

    No configuration, attributes or merge driver of anybody's reaches it, and no object of it stays.
    """
    import tempfile  # only here: the hook pays for every import

    from gitevals.git import scratch

    before = history.tree_of(repo, delivery.parents[0])
    with tempfile.TemporaryDirectory(prefix="git-evals-undo-") as place:
        apart = scratch.apart(repo, place)
        made = apart.run("commit-tree", before, "-p", delivery.id, "-m", "before").stdout.decode().strip()
        merged = apart.run("merge-tree", "--write-tree", tip, made, accept=(0, 1))
        return merged.stdout.decode().split("\n", 1)[0] if merged.status == 0 else None
