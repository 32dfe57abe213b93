"""Questions about the commit graph, each answered by one git command."""

from collections.abc import Sequence

import msgspec

from gitevals.errors import GitFailed
from gitevals.git.repo import Repo
from gitevals.git.run import Started

_UNREADABLE = "`git fetch` brings what is missing, `git fsck` finds damage"
# What counts as a trailer must not hang on anybody's configuration.
SETTLED = ("-c", "trailer.separators=:", "-c", "core.commentChar=#")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a log; ``trailers`` are the values of the trailer that was asked for, in order."""

    id: str
    tree: str
    parents: tuple[str, ...]
    trailers: tuple[str, ...]


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """What two commits have apart: commits only ``behind`` (in the old one) and only ``ahead``, newest first."""

    behind: tuple[Entry, ...]
    ahead: tuple[Entry, ...]


def log_arguments(*ranges: str, trailer: str) -> tuple[str, ...]:
    """The arguments of the `git log` whose output `parse_log` reads."""
    fields = f"%m%H%x00%T%x00%P%x00%(trailers:key={trailer},valueonly,unfold,separator=%x01)"
    return (*SETTLED, "log", "-z", "--no-show-signature", "--no-color", "--encoding=UTF-8", f"--format={fields}",
            *ranges, "--")  # fmt: skip


def start_divergence(repo: Repo, old: str, new: str, *, trailer: str) -> Started:
    """Start asking what ``old`` and ``new`` have apart; read the answer with `divergence`."""
    return repo.start(*log_arguments("--left-right", f"{old}...{new}", trailer=trailer))


def divergence(repo: Repo, old: str, new: str, *, trailer: str) -> Divergence:
    """What ``old`` and ``new`` have apart."""
    arguments = log_arguments("--left-right", f"{old}...{new}", trailer=trailer)
    return parse_divergence(repo.run(*arguments).stdout)


def finish_divergence(started: Started) -> Divergence:
    """The answer of a question that was started; raises `GitFailed` if git could not tell."""
    output, _ = started.communicate()
    if started.returncode != 0:
        said = "git log failed: a commit of the movement cannot be read"
        raise GitFailed(said, status=started.returncode, hint=_UNREADABLE)
    return parse_divergence(output)


def parse_divergence(output: bytes) -> Divergence:
    """The commits of a ``--left-right`` log by side."""
    marked = _marked(output)
    return Divergence(
        behind=tuple(entry for mark, entry in marked if mark == "<"),
        ahead=tuple(entry for mark, entry in marked if mark != "<"),
    )


def log(repo: Repo, *arguments: str, trailer: str) -> tuple[Entry, ...]:
    """The commits of ``git log <arguments>``, newest first."""
    return tuple(entry for _, entry in _marked(repo.run(*log_arguments(*arguments, trailer=trailer)).stdout))


def _marked(output: bytes) -> list[tuple[str, Entry]]:
    fields = output.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for start in range(0, len(fields) - 3, 4):
        marked, tree, parents, trailers = fields[start : start + 4]
        values = tuple(value.strip() for value in trailers.split("\x01") if value.strip())
        entry = Entry(id=marked[1:], tree=tree, parents=tuple(parents.split()), trailers=values)
        found.append((marked[:1], entry))
    return found


def is_ancestor(repo: Repo, older: str, newer: str) -> bool:
    """Whether ``older`` is reachable from ``newer`` (or equal)."""
    if older == newer:
        return True
    return repo.run("merge-base", "--is-ancestor", older, newer, accept=(0, 1)).status == 0


def merge_base(repo: Repo, one: str, other: str) -> str | None:
    """A best common ancestor, or None for unrelated histories."""
    return repo.text("merge-base", one, other, accept=(0, 1)) or None


def not_contained(repo: Repo, new: str, excluded: Sequence[str]) -> frozenset[str]:
    """The commits reachable from ``new`` and from none of ``excluded``."""
    return frozenset(repo.text("rev-list", new, "--not", *excluded, "--").split())


def changed_paths(repo: Repo, old: str, new: str) -> dict[str, str]:
    """The paths in which the trees of two commits differ, submodules too, each with its new mode (zeros: removed)."""
    asked = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=none", old, new)
    try:
        fields = repo.run(*asked).stdout.decode("utf-8", "surrogateescape").split("\0")
    except GitFailed as error:
        raise GitFailed(error.message, status=error.status, stderr=error.stderr, hint=_UNREADABLE) from error
    return {path: told.split()[1] for told, path in zip(fields[::2], fields[1::2], strict=False) if path}


def commit_of(repo: Repo, name: str) -> str | None:
    """The full id of the commit that ``name`` stands for, or None."""
    return (
        repo.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", accept=(0, 1, 128))
        or None
    )


def tree_of(repo: Repo, commit: str) -> str:
    """The id of a commit's tree."""
    return repo.text("rev-parse", "--verify", f"{commit}^{{tree}}")


def is_shallow(repo: Repo) -> bool:
    """Whether older history was left behind when this repository was cloned."""
    return repo.text("rev-parse", "--is-shallow-repository") == "true"
