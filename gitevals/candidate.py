"""The commit that git is about to make, as an object that no ref names: what early hooks judge."""

import os
from collections.abc import Mapping, Sequence

from gitevals import running
from gitevals.git.repo import Repo

# Fixed, so that judging the same change twice makes one object.
_IDENTITY = {
    "GIT_AUTHOR_NAME": "git-evals",
    "GIT_AUTHOR_EMAIL": "candidate@git-evals.invalid",
    "GIT_AUTHOR_DATE": "@946684800 +0000",
    "GIT_COMMITTER_NAME": "git-evals",
    "GIT_COMMITTER_EMAIL": "candidate@git-evals.invalid",
    "GIT_COMMITTER_DATE": "@946684800 +0000",
}


def typed() -> tuple[str, ...]:
    """The git command that runs this hook, from its sub-command on; nothing if it is unseen."""
    return running.running_command(os.getppid()).words


def heads_under_way(repo: Repo) -> list[str]:
    """The commits that a merge in progress brings in."""
    merging = os.path.join(repo.git_dir, "MERGE_HEAD")
    if not os.path.exists(merging):
        return []
    with open(merging) as file:
        return file.read().split()


def heads_named(inherited: Mapping[str, str]) -> list[str] | None:
    """The commits that git says it is merging, in the order in which they will be parents; None if it is unseen."""
    prefix = "GITHEAD_"
    names = {name.removeprefix(prefix): value for name, value in inherited.items() if name.startswith(prefix)}
    if len(names) < 2:
        return list(names)
    words = typed()  # an environment has no order
    if not all(name in words for name in names.values()):
        return None
    return sorted(names, key=lambda head: words.index(names[head]))


def made(repo: Repo, parents: Sequence[str]) -> str:
    """The id of a commit of the index with these parents."""
    index = {"GIT_INDEX_FILE": os.path.abspath(os.environ["GIT_INDEX_FILE"])} if "GIT_INDEX_FILE" in os.environ else {}
    tree = repo.run("write-tree", env=index).stdout.decode().strip()
    options = [option for parent in parents for option in ("-p", parent)]
    done = repo.run("commit-tree", tree, *options, "-m", "candidate judged by git-evals", env=_IDENTITY)
    return done.stdout.decode().strip()
