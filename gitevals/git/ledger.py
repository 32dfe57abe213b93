"""Ledgers: append-only chains of commits under one ref each, written one after another and never lost."""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Container, Iterator

import msgspec

from gitevals.errors import CannotTell, LedgerBusy
from gitevals.git import refs, trees
from gitevals.git.objects import GitObject, NewObject, Objects, read, require
from gitevals.git.repo import Repo

FIRST_LINE = "git-evals ledger v1"
IDENTITY = "git-evals <writer@git-evals.invalid>"
TRIES = 50
LONGEST_PAUSE_SECONDS = 0.05

Edit = Callable[[str | None], str | None]

_ID = rb"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_HEAD = re.compile(
    rb"tree (?P<tree>%s)\n(?P<parents>(?:parent %s\n)*)author (?P<author>[^\n]*)\ncommitter (?P<committer>[^\n]*)"
    rb"(?P<more>(?:\n[^\n]+)*)" % (_ID, _ID)
)
_PERSON = re.compile(re.escape(IDENTITY).encode() + rb" [0-9]+ \+0000")
_SIGNATURES = re.compile(rb"(?:\ngpgsig(?:-sha256)? [^\n]*(?:\n [^\n]*)*)*")
_MESSAGE = re.compile(FIRST_LINE.encode() + rb"\n\nLedger: (refs/[^\x00-\x20\x7f]+)\nRepository: [^\x00-\x20\x7f]+\n")

RawEntry = tuple[bytes, bytes, bytes]


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


def message(ref: str, repository: str) -> str:
    """The text of a commit of the ledger ``ref``; ``repository`` is the repository's id or ``none``."""
    return f"{FIRST_LINE}\n\nLedger: {ref}\nRepository: {repository}\n"


@contextlib.contextmanager
def locked(repo: Repo) -> Iterator[None]:
    """This clone's turn to write ledgers, waited for; the kernel ends it with the process. Not to be nested."""
    directory = os.path.join(repo.common_dir, "git-evals")
    try:
        os.makedirs(directory, exist_ok=True)
        lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise CannotTell(f"cannot lock the ledgers in {directory!r}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def advance(repo: Repo, objects: Objects, ref: str, *, repository: str, edit: Edit) -> str:
    """Append to the ledger ``ref`` the tree that ``edit`` makes of its present one; the new tip, once the ref is moved.

    ``edit`` gets and gives the id of a tree (None: no ledger yet; nothing to write) and may be called many times.
    Where nothing was written the present tip is returned, `Repo.zero` if there is none.
    """
    text = message(ref, repository)
    with locked(repo):
        return _move(repo, objects, ref, edit, lambda tree, tip: _commit(tree, tip, text))


def replace(repo: Repo, objects: Objects, ref: str, *, message: str, edit: Edit) -> str:
    """Like `advance`, but the new commit has no parent, so that what ``edit`` drops can be collected: no ledger."""
    with locked(repo):
        return _move(repo, objects, ref, edit, lambda tree, _: _commit(tree, None, message))


def faults(
    objects: Objects, tip: str, ref: str, fits: Callable[[str], bool], believed: Container[str] = ()
) -> list[Fault]:
    """What keeps the commits from ``tip`` down to the ``believed`` ones from being the ledger ``ref``, newest first.

    ``ref`` is the name its writer gave it; ``fits`` says whether a file's path is of the ledger's layout.
    """
    found: list[Fault] = []
    known: dict[str, set[RawEntry]] = {}
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


def _move(repo: Repo, objects: Objects, ref: str, edit: Edit, commit: Callable[[str, str | None], NewObject]) -> str:
    for count in range(TRIES):
        tip = refs.values(repo, ref).get(ref)
        tree = _tree_at(objects, tip, ref) if tip else None
        new_tree = edit(tree)
        if new_tree is None or new_tree == tree:
            return tip or repo.zero
        [new_tip] = objects.write_many([commit(new_tree, tip)])
        if refs.update(repo, ref, new_tip, tip or repo.zero):
            return new_tip
        _pause(count)
    raise LedgerBusy(f"others kept moving {ref} while it was to be written", hint="run the command again")


def _pause(count: int) -> None:
    longest = min(LONGEST_PAUSE_SECONDS, 0.001 * 2**count)
    time.sleep(longest * int.from_bytes(os.urandom(2), "big") / 0xFFFF)


def _tree_at(objects: Objects, tip: str, ref: str) -> str:
    commit = _parsed(require(objects, tip))
    if commit is None:
        raise CannotTell(f"{ref} is not at a commit", hint=f"look at it: `git cat-file -p {ref}`")
    return commit.tree


def _commit(tree: str, parent: str | None, text: str) -> NewObject:
    person = f"{IDENTITY} {int(time.time())} +0000"
    parents = f"parent {parent}\n" if parent else ""
    head = f"tree {tree}\n{parents}author {person}\ncommitter {person}\n"
    return NewObject("commit", f"{head}\n{text}".encode())


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


def _layout_fault(objects: Objects, root: str, fits: Callable[[str], bool], known: dict[str, set[RawEntry]]) -> str:
    # Looks only at entries not ``known`` to be in order, and adds to them: a chain repeats nearly all of its trees.
    learnt: dict[str, set[RawEntry]] = {}
    pending = [("", root)]
    while pending:
        directory, tree_id = pending.pop()
        entries = _tree_entries(objects, tree_id)
        if not entries and (directory or entries is None):
            return f"directory {directory!r} is empty, missing or damaged"
        fresh = learnt[directory] = set(entries or ()).difference(known.get(directory, ()))
        for mode, name, binary in fresh:
            path = directory + name.decode("utf-8", "surrogateescape")
            if mode == trees.DIRECTORY.encode():
                pending.append((f"{path}/", binary.hex()))
            elif mode != trees.FILE.encode() or not fits(path):
                return f"{path!r} is not of the ledger's layout"
    for directory, fresh in learnt.items():
        known.setdefault(directory, set()).update(fresh)
    return ""


def _tree_entries(objects: Objects, tree_id: str) -> list[RawEntry] | None:
    tree = read(objects, tree_id)
    if tree is None or tree.kind != "tree":
        return None
    try:
        return trees.raw_entries(tree.body, trees.id_length_bytes(objects.object_format))
    except CannotTell:
        return None
