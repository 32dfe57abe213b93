"""A real merge in a scratch repository: by git's default rules, with built-in drivers and the base's attributes."""

import os

import msgspec

from gitevals.errors import GitFailed
from gitevals.git import promised, run, submodules
from gitevals.git.scratch import Scratch, explained, fields, switch, told

_BUILT_IN_DRIVERS = frozenset({"text", "binary", "union"})


class MergeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a real merge gave: a commit and its tree, or the conflicting paths, or a ``message`` why there is neither.

    ``custom_drivers`` are merge drivers that the base's attributes name and that were not used.
    """

    base_tree: str
    commit: str | None = None
    tree: str | None = None
    conflicts: tuple[str, ...] = ()
    strategy: str = "ort"
    message: str = ""
    custom_drivers: tuple[str, ...] = ()


def merge(scratch: Scratch, base: str, head: str) -> MergeOutcome:
    """Merge ``head`` into a checkout of ``base`` as git does by default; the same two commits give the same commit.

    Only built-in merge drivers exist there and the attributes are those of ``base``. The merge commit carries the later
    of its parents' dates. A partial clone fetches what it lacks of them first.
    """
    with told(scratch.root):
        return _merged(scratch, base, head)


def _merged(scratch: Scratch, base: str, head: str) -> MergeOutcome:
    if any(promised.is_partial(source) for source in scratch.sources):
        promised.bring(scratch.repo, scratch.sources, [base, head, *_bases(scratch, base, head)])
    switch(scratch, base)
    asked = _trees_and_dates(scratch, base, head)
    base_tree = asked[0].split()[0]
    seconds = max(int(line.split()[1]) for line in asked)
    done = _merge(scratch, base, head, seconds)
    if done.status == 1 and _submodules_conflict(scratch):
        switch(scratch, base)
        with submodules.lent(msgspec.structs.replace(scratch, commit=base)):
            done = _merge(scratch, base, head, seconds)
    found = MergeOutcome(base_tree=base_tree, custom_drivers=_custom_drivers(scratch, base))
    if done.status == 1:
        return msgspec.structs.replace(found, conflicts=_unmerged(scratch), message="the merge has conflicts")
    if done.status:
        return msgspec.structs.replace(found, message=_unrelated(scratch, base, head, done))
    commit, tree = scratch.repo.text("rev-parse", "HEAD", "HEAD^{tree}").splitlines()
    if commit == base:
        return msgspec.structs.replace(found, message="already merged")
    return msgspec.structs.replace(found, commit=commit, tree=tree)


def _bases(scratch: Scratch, base: str, head: str) -> list[str]:
    """The merge bases, and theirs in turn where there are several, for the merge then merges these first."""
    found: list[str] = []
    level = [base, head]
    while len(level) > 1:
        level = scratch.repo.text("merge-base", "--all", *level, accept=range(256)).split()
        found += level
    return found


def _trees_and_dates(scratch: Scratch, base: str, head: str) -> list[str]:
    try:
        return scratch.repo.text("log", "--no-walk=unsorted", "--format=%T %ct", base, head, "--").splitlines()
    except GitFailed as error:
        raise explained(scratch, head, error) from error


def _merge(scratch: Scratch, base: str, head: str, seconds: int) -> run.Completed:
    message = f"Merge {head} into {base}"
    dates = {"GIT_AUTHOR_DATE": f"@{seconds} +0000", "GIT_COMMITTER_DATE": f"@{seconds} +0000"}
    options = ("-q", "-s", "ort", "--no-ff", "--no-edit", "--no-verify", "--no-stat", "--no-gpg-sign", "-m", message)
    return scratch.repo.run("merge", *options, head, env=dates, accept=range(256))


def _submodules_conflict(scratch: Scratch) -> bool:
    return any(entry.startswith("160000 ") for entry in fields(scratch.repo.run("ls-files", "-u", "-z").stdout))


def _unmerged(scratch: Scratch) -> tuple[str, ...]:
    entries = fields(scratch.repo.run("ls-files", "-u", "-z").stdout)
    return tuple(sorted({entry.partition("\t")[2] for entry in entries}))


def _unrelated(scratch: Scratch, base: str, head: str, done: run.Completed) -> str:
    if scratch.repo.run("merge-base", base, head, accept=(0, 1)).status == 0:
        raise explained(scratch, head, run.failed(["merge", head], done.status, done.stderr))
    shallow = os.path.exists(os.path.join(scratch.repo.git_dir, "shallow"))
    return "no common history" + (" within what a shallow clone holds" if shallow else "")


def _custom_drivers(scratch: Scratch, base: str) -> tuple[str, ...]:
    asked = ("-a", "-h", "-F", "-e", "merge=", base, "--", ":(glob)**/.gitattributes")
    lines = os.fsdecode(scratch.repo.run("grep", *asked, accept=(0, 1)).stdout).splitlines()
    words = {word for line in lines if not line.lstrip().startswith("#") for word in line.split()[1:]}
    named = {word.partition("=")[2] for word in words if word.startswith("merge=")}
    return tuple(sorted(named - _BUILT_IN_DRIVERS))
