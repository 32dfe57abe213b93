"""Whether a chain of commits is a ledger: every commit says so, in full, and holds nothing but the layout."""

import re
from collections.abc import Callable, Container

import msgspec

from gitevals.errors import CannotTell
from gitevals.git import trees
from gitevals.git.ledger import FIRST_LINE, IDENTITY
from gitevals.git.objects import GitObject, Objects, read

_ID = rb"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_HEAD = re.compile(
    rb"tree (?P<tree>%s)\n(?P<parents>(?:parent %s\n)*)author (?P<author>[^\n]*)\ncommitter (?P<committer>[^\n]*)"
    rb"(?P<more>(?:\n[^\n]+)*)" % (_ID, _ID)
)
_PERSON = re.compile(re.escape(IDENTITY).encode() + rb" [0-9]+ \+0000")
_SIGNATURES = re.compile(rb"(?:\ngpgsig(?:-sha256)? [^\n]*(?:\n [^\n]*)*)*")
_MESSAGE = re.compile(FIRST_LINE.encode() + rb"\n\nLedger: (refs/[^\x00-\x20\x7f]+)\nRepository: [^\x00-\x20\x7f]+\n")

DIRECTORIES_LIMIT = 100_000  # of one commit: few trees can stand for very many paths


class Fault(msgspec.Struct, frozen=True):
    """Why ``commit`` is no part of a ledger."""

    commit: str
    reason: str


class _Commit(msgspec.Struct, frozen=True):
    tree: str
    parents: list[str]
    author: bytes
    committer: bytes
    more: bytes
    text: bytes


def faults(
    objects: Objects, tip: str, ref: str, fits: Callable[[str], bool], believed: Container[str] = ()
) -> list[Fault]:
    """What keeps the commits from ``tip`` down to the ``believed`` ones from being the ledger ``ref``, newest first.

    ``ref`` is the name its writer gave it; ``fits`` says whether a file's path is of the ledger's layout.
    """
    found: list[Fault] = []
    known: dict[str, set[bytes]] = {}
    pending = [tip]
    seen = {tip}
    while pending:
        commit_id = pending.pop()
        if commit_id in believed:
            continue
        commit = _parsed(read(objects, commit_id))
        if commit is None:
            found.append(Fault(commit_id, "it is missing or no commit"))
            continue
        reason = _form_fault(commit, ref) or _layout_fault(objects, commit.tree, fits, known)
        if reason:
            found.append(Fault(commit_id, reason))
        parents = [parent for parent in commit.parents if parent not in seen]
        seen.update(parents)
        pending.extend(parents)
    return found


def _parsed(found: GitObject | None) -> _Commit | None:
    if found is None or found.kind != "commit":
        return None
    head, _, text = found.body.partition(b"\n\n")
    seen = _HEAD.fullmatch(head)
    if seen is None:
        return None
    parents = seen["parents"].decode().split()[1::2]
    return _Commit(seen["tree"].decode(), parents, seen["author"], seen["committer"], seen["more"], text)


def _form_fault(commit: _Commit, ref: str) -> str:
    if not _PERSON.fullmatch(commit.author) or not _PERSON.fullmatch(commit.committer):
        return f"its author and committer are not {IDENTITY} at UTC"
    if not _SIGNATURES.fullmatch(commit.more):
        return "it has a header that is no signature"
    said = _MESSAGE.fullmatch(commit.text)
    if said is None:
        return "its message is not that of a ledger"
    named = said[1].decode("utf-8", "surrogateescape")
    return "" if named == ref else f"it belongs to the ledger {named}"


def _layout_fault(objects: Objects, root: str, fits: Callable[[str], bool], known: dict[str, set[bytes]]) -> str:
    # Looks only at entries not ``known`` to be in order, and adds to them: a chain repeats nearly all of its trees.
    learnt: dict[str, set[bytes]] = {}
    pending = [("", root)]
    while pending:
        directory, tree_id = pending.pop()
        fresh = _fresh(objects, directory, tree_id, known.get(directory, frozenset()))
        if fresh is None:
            return f"directory {directory!r} is empty, missing or damaged"
        learnt[directory] = fresh
        if len(learnt) + len(pending) > DIRECTORIES_LIMIT:
            return f"it has more than {DIRECTORIES_LIMIT} new directories"
        for entry in fresh:
            mode, name, binary = next(trees.raw_entries(entry, trees.id_length_bytes(objects.object_format)))
            path = directory + name.decode("utf-8", "surrogateescape")
            if mode == trees.DIRECTORY.encode():
                pending.append((f"{path}/", binary.hex()))
            elif mode != trees.FILE.encode() or not fits(path):
                return f"{path!r} is not of the ledger's layout"
    for directory, fresh in learnt.items():
        known.setdefault(directory, set()).update(fresh)
    return ""


def _fresh(objects: Objects, directory: str, tree_id: str, known: Container[bytes]) -> set[bytes] | None:
    """The entries, each as its bytes, that are not ``known``; None of what is empty, missing or damaged."""
    tree = read(objects, tree_id)
    if tree is None or tree.kind != "tree" or (directory and not tree.body):
        return None
    length = trees.id_length_bytes(objects.object_format)
    try:
        return {raw for entry in trees.raw_entries(tree.body, length) if (raw := b"%s %s\0%s" % entry) not in known}
    except CannotTell:
        return None
