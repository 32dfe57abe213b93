"""Ledgers: append-only chains of commits under one ref each, written one after another and never lost."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from gitevals.errors import CannotTell, LedgerBusy
from gitevals.git import refs
from gitevals.git.objects import NewObject, Objects, read
from gitevals.git.repo import Repo

FIRST_LINE = "git-evals ledger v1"
IDENTITY = "git-evals <writer@git-evals.invalid>"
WRITTEN = "written"
WRITTEN_LIMIT_BYTES = 1 << 16
TRIES = 50
LONGEST_PAUSE_SECONDS = 0.05

Edit = Callable[[str | None], str | None]
KnowingEdit = Callable[[str | None, Mapping[str, str]], str | None]


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
    return advance_knowing(repo, objects, ref, repository=repository, others=(), edit=lambda tree, _: edit(tree))


def advance_knowing(
    repo: Repo, objects: Objects, ref: str, *, repository: str, others: Sequence[str], edit: KnowingEdit
) -> str:
    """Like `advance`; ``edit`` also gets the values of the refs that match ``others``, read together with the tip."""
    text = message(ref, repository)
    with locked(repo):
        return _move(repo, objects, ref, others, edit, lambda tree, tip: _commit(tree, tip, text))


def replace(repo: Repo, objects: Objects, ref: str, *, message: str, edit: Edit) -> str:
    """Like `advance`, but the new commit has no parent, so that what ``edit`` drops can be collected: no ledger."""
    with locked(repo):
        return _move(repo, objects, ref, (), lambda tree, _: edit(tree), lambda tree, _: _commit(tree, None, message))


def _move(
    repo: Repo,
    objects: Objects,
    ref: str,
    others: Sequence[str],
    edit: KnowingEdit,
    commit: Callable[[str, str | None], NewObject],
) -> str:
    for count in range(TRIES):
        values = refs.values(repo, ref, *others)
        tip = values.get(ref)
        tree = _tree_at(objects, tip, ref) if tip else None
        new_tree = edit(tree, values)
        if new_tree is None or new_tree == tree:
            return tip or repo.zero
        [new_tip] = objects.write_many([commit(new_tree, tip)])
        if refs.update(repo, ref, new_tip, tip or repo.zero):
            _remember(repo, new_tip)
            return new_tip
        _pause(count)
    raise _busy(repo, ref)


def _busy(repo: Repo, ref: str) -> LedgerBusy:
    lock = os.path.join(repo.common_dir, f"{ref}.lock")
    if os.path.lexists(lock):
        hint = "a git that was killed leaves such a file: delete it if none is at work"
        return LedgerBusy(f"{ref} is locked by {lock}", hint=hint)
    return LedgerBusy(f"others kept moving {ref} while it was to be written", hint="run the command again")


def written(repo: Repo) -> frozenset[str]:
    """The last tips that this clone gave its ledgers; a ledger that stands elsewhere was moved by something else."""
    try:
        with open(os.path.join(repo.common_dir, "git-evals", WRITTEN), encoding="ascii", errors="replace") as file:
            return frozenset(file.read().split())
    except OSError:
        return frozenset()


def _remember(repo: Repo, tip: str) -> None:
    """Keep ``tip`` for `written`; called under the lock, and a file that cannot be written is no error."""
    path = os.path.join(repo.common_dir, "git-evals", WRITTEN)
    with contextlib.suppress(OSError):
        if os.path.exists(path) and os.path.getsize(path) > WRITTEN_LIMIT_BYTES:
            with open(path, encoding="ascii", errors="replace") as file:
                kept = file.read().split()[-WRITTEN_LIMIT_BYTES // 256 :]
            with open(path, "w", encoding="ascii", errors="replace") as file:
                file.writelines(f"{entry}\n" for entry in kept)
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{tip}\n")


def _pause(count: int) -> None:
    longest = min(LONGEST_PAUSE_SECONDS, 0.001 * 2**count)
    time.sleep(longest * int.from_bytes(os.urandom(2), "big") / 0xFFFF)


def _tree_at(objects: Objects, tip: str, ref: str) -> str:
    root = read(objects, f"{tip}:")
    if root is None or root.kind != "tree":
        raise CannotTell(f"{ref} is not at a commit", hint=f"look at it: `git cat-file -p {ref}`")
    return root.id


def _commit(tree: str, parent: str | None, text: str) -> NewObject:
    person = f"{IDENTITY} {int(time.time())} +0000"
    parents = f"parent {parent}\n" if parent else ""
    head = f"tree {tree}\n{parents}author {person}\ncommitter {person}\n"
    return NewObject("commit", f"{head}\n{text}".encode())
