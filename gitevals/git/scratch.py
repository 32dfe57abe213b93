"""Throw-away repositories beside the user's: they read its objects and can touch nothing of it."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator

import msgspec

from gitevals.errors import BadInput, CannotTell
from gitevals.git import checkedout, kept, lfs, run, submodules
from gitevals.git.checkedout import NO_ROOM, different, explained, switch, told
from gitevals.git.kept import Left, left_behind, remove
from gitevals.git.repo import Repo
from gitevals.git.sealed import Scratch, borrow, environment, fields, make_watch, quoted, seen_too, tags, write

__all__ = [
    "Left",
    "Scratch",
    "apart",
    "checkout",
    "different",
    "explained",
    "fields",
    "left_behind",
    "quoted",
    "remove",
    "scratch",
    "seen_too",
    "switch",
    "told",
]


def _never() -> bool:
    return False


@contextlib.contextmanager
def scratch(repo: Repo, *, directory: str | None = None, keep: Callable[[], bool] = _never) -> Iterator[Scratch]:
    """An empty scratch repository over the objects of ``repo``, removed afterwards unless ``keep()`` then says so.

    It stands in ``directory``, else in TMPDIR, and never below the work tree of a repository; a place without room
    raises `CannotTell`. What a killed command leaves there is found by `left_behind`.
    """
    root = _place(repo, directory)
    try:
        with contextlib.ExitStack() as stack:
            with told(root):
                stack.enter_context(kept.marked(repo, root))
                made = _make(repo, root)
            yield made
    finally:
        if not keep():
            kept.delete(root)


def _place(repo: Repo, directory: str | None) -> str:
    parent = os.path.realpath(directory or repo.env.get("TMPDIR") or tempfile.gettempdir())
    hint = "name a directory outside of every work tree: `git config evals.scratchDir DIRECTORY`"
    above = _worktree_above(parent, repo.worktree)
    if above:
        raise BadInput(f"scratch directory {quoted(parent)} lies in the work tree {quoted(above)}", hint=hint)
    try:
        os.makedirs(parent, exist_ok=True)
        return tempfile.mkdtemp(prefix=kept.PREFIX, dir=parent)
    except OSError as error:
        kind = CannotTell if error.errno in NO_ROOM else BadInput
        raise kind(f"cannot use {quoted(parent)} for scratch directories: {error.strerror}", hint=hint) from error


def _worktree_above(path: str, known: str | None) -> str | None:
    known = known and os.path.realpath(known)
    while True:
        git = os.path.join(path, ".git")
        if path == known or os.path.isfile(git) or os.path.exists(os.path.join(git, "HEAD")):
            return path
        if path == (path := os.path.dirname(path)):
            return None


def _make(repo: Repo, root: str) -> Scratch:
    worktree, watch_dir = os.path.join(root, "work"), os.path.join(root, "watch")
    env = environment(repo.env)
    arguments = ("--template=", "--initial-branch=scratch", f"--object-format={repo.object_format}", worktree)
    run.run(["init", "-q", *arguments], env=env, cwd=root)
    git_dir = os.path.join(worktree, ".git")
    stores = borrow(git_dir, [repo])
    write(os.path.join(git_dir, "packed-refs"), tags(repo))
    with open(os.path.join(git_dir, "config"), "rb") as config:
        make_watch(watch_dir, config.read(), [*stores, os.path.join(git_dir, "objects")])
    own = Repo(git_dir=git_dir, common_dir=git_dir, worktree=worktree, object_format=repo.object_format, env=env)
    watch = msgspec.structs.replace(own, git_dir=watch_dir, common_dir=watch_dir)
    return Scratch(
        root=root, worktree=worktree, watch_dir=watch_dir, commit="", repo=own, watch=watch, env=env, sources=(repo,)
    )


def apart(repo: Repo, place: str) -> Repo:
    """A git directory in the empty ``place`` that reads the objects of ``repo`` and knows nothing else of it."""
    root = os.path.join(place, "apart")
    env = environment(repo.env)
    run.run(["init", "-q", "--bare", "--template=", f"--object-format={repo.object_format}", root], env=env, cwd=place)
    borrow(root, [repo])
    return Repo(git_dir=root, common_dir=root, worktree=None, object_format=repo.object_format, env=env)


def checkout(scratch: Scratch, commit: str) -> Scratch:
    """The scratch with ``commit`` checked out, detached, and the work tree proven equal to the commit's tree.

    Submodules are populated and LFS pointers filled in from what the user's clone has; promised blobs are fetched
    into it first. What is not to be had raises `BadInput` or `CannotTell` with the command that brings it, and a place
    without room `CannotTell`.
    """
    with told(scratch.root):
        submodules.clear(scratch)
        lfs.clear(scratch)
        done, tracked = checkedout.put(scratch, commit)
        return submodules.populate(done, tracked)
