"""Movements that bring nothing new: recomputed from trees, never read from a message."""

import contextlib
import re
from collections.abc import Iterator

from gitevals.config import PATH, Config
from gitevals.contracts.reading import BaseConfig
from gitevals.git import history
from gitevals.git.repo import Repo
from gitevals.model.movement import Span
from gitevals.model.task import TASK_ID

UNDO_LIMIT = 100  # first-parent steps of the target that are searched for the delivery a movement undoes


def exemption(repo: Repo, base: BaseConfig, span: Span) -> str:
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
    """Whether ``path``, a plain file or one that goes, is the configuration or can be a task's text or bindings."""
    if mode not in ("100644", "000000"):
        return False
    if path == PATH:
        return True
    return any(_fits(pattern, path) for pattern in (config.task_path, config.bindings_path) if pattern)


def _fits(pattern: str, path: str) -> bool:
    before, after = pattern.split("{task}")
    middle = path[len(before) : len(path) - len(after)]
    return path == f"{before}{middle}{after}" and re.fullmatch(TASK_ID, middle) is not None


def _restored(repo: Repo, span: Span) -> str:
    """The first-parent ancestor of old whose tree the movement restores, or ""."""
    entries = history.log(repo, "--first-parent", span.old.id, trailer="Task")
    return next((entry.id for entry in entries if entry.tree == span.new.tree), "")


def _undone(repo: Repo, span: Span, paths: frozenset[str]) -> str:
    """The one recent delivery whose removal from old yields new's tree, or "".

    Each is tried by a three-way merge in a git directory that is thrown away: no configuration, attributes or merge
    driver of anybody's reaches it, and no object of it stays.
    """
    alike = _deliveries_of(repo, span.old.id, paths)
    if not alike:
        return ""
    with _apart(repo) as apart:
        return next((name for name in alike if _without(apart, span.old.id, name) == span.new.tree), "")


def is_plain_merge(repo: Repo, span: Span) -> bool:
    """Whether the new commit has the tree that git gives a merge of its second parent; a person's choice is none."""
    if len(span.new.parents) != 2:
        return False
    with _apart(repo) as apart:
        return _merged(apart, span.old.id, span.new.parents[1]) == span.new.tree


@contextlib.contextmanager
def _apart(repo: Repo) -> Iterator[Repo]:
    import tempfile  # only here: the hook pays for every import

    from gitevals.git import scratch

    with tempfile.TemporaryDirectory(prefix="git-evals-undo-") as place:
        yield scratch.apart(repo, place)


def _deliveries_of(repo: Repo, tip: str, paths: frozenset[str]) -> list[str]:
    """The recent first-parent steps of ``tip`` that changed exactly ``paths``, newest first."""
    asked = ("log", "-z", "--first-parent", "--min-parents=1", f"-{UNDO_LIMIT}", "--format=%x00%H", "--name-only",
             "--no-renames", "-m", "--ignore-submodules=none", "--no-show-signature", tip, "--")  # fmt: skip
    listed = repo.run(*asked).stdout.decode("utf-8", "surrogateescape")
    found = []
    for block in listed.split("\0\0"):
        name, _, rest = block.lstrip("\0").partition("\0")
        if frozenset(path.lstrip("\n") for path in rest.split("\0") if path.strip("\n")) == paths:
            found.append(name.strip("\n"))
    return found


def _without(apart: Repo, tip: str, delivery: str) -> str | None:
    """The tree of ``tip`` less ``delivery``, or None where that has conflicts."""
    made = apart.run("commit-tree", f"{delivery}^1^{{tree}}", "-p", delivery, "-m", "before").stdout.decode().strip()
    return _merged(apart, tip, made)


def _merged(apart: Repo, tip: str, head: str) -> str | None:
    """The tree of a merge of ``head`` into ``tip``, or None where that has conflicts."""
    merged = apart.run("merge-tree", "--write-tree", tip, head, accept=(0, 1))
    return merged.stdout.decode().split("\n", 1)[0] if merged.status == 0 else None
