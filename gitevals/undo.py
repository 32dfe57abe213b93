"""Movements that bring nothing new: recomputed from trees, never read from a message."""

import os
from collections.abc import Mapping

from gitevals.config import PATH, Config
from gitevals.contracts.reading import BaseConfig
from gitevals.git import history
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo
from gitevals.model.movement import Commit, Span

UNDO_LIMIT = 100  # first-parent steps of the target that are searched for the delivery a movement undoes


def exemption(repo: Repo, objects: Objects, base: BaseConfig, span: Span) -> str:
    """Why project verification alone is needed for ``span``, or "" where it is not so."""
    if span.old.tree == span.new.tree:
        return "the tree is unchanged"
    paths = history.changed_paths(repo, span.old.id, span.new.id)
    if all(_is_of_examination(base.config, path) for path in paths):
        return "only configuration and task files change"
    restored = _restored(repo, span)
    if restored:
        return f"the tree of {restored[:12]} is restored"
    undone = _undone(repo, span, frozenset(paths))
    return f"exactly {undone[:12]} is undone" if undone else ""


def _is_of_examination(config: Config, path: str) -> bool:
    if path == PATH:
        return True
    if config.task_path is None:
        return False
    before, after = config.task_path.split("{task}")
    middle = path[len(before) : len(path) - len(after)]
    return path.startswith(before) and path.endswith(after) and bool(middle) and "/" not in middle


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
    """The tree of ``tip`` less ``delivery``: a three-way merge whose result is thrown away with its objects."""
    import tempfile  # only here: the hook pays for every import

    with tempfile.TemporaryDirectory(prefix="git-evals-undo-") as place:
        env = _borrowing(repo, place)
        before = history.tree_of(repo, delivery.parents[0])
        made = repo.run("commit-tree", before, "-p", delivery.id, "-m", "before", env=env)
        merged = repo.run("merge-tree", "--write-tree", tip, made.stdout.decode().strip(), env=env, accept=(0, 1))
        return merged.stdout.decode().split("\n", 1)[0] if merged.status == 0 else None


def _borrowing(repo: Repo, place: str) -> Mapping[str, str]:
    """An environment in which git writes objects to ``place`` and still sees the repository's."""
    own = repo.env.get("GIT_OBJECT_DIRECTORY", os.path.join(repo.common_dir, "objects"))
    further = repo.env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
    return {
        "GIT_OBJECT_DIRECTORY": place,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(part for part in (own, further) if part),
        "GIT_AUTHOR_NAME": "git-evals",
        "GIT_AUTHOR_EMAIL": "writer@git-evals.invalid",
        "GIT_COMMITTER_NAME": "git-evals",
        "GIT_COMMITTER_EMAIL": "writer@git-evals.invalid",
    }
