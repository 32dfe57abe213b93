"""Ledgers: append-only chains of commits under one ref each, written one after another and never lost."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from gitevals.errors import CannotTell, GitFailed, LedgerBusy
from gitevals.git import refs
from gitevals.git.objects import NewObject, Objects, read
from gitevals.git.repo import Repo

FIRST_LINE = "git-evals ledger v1"
IDENTITY = "git-evals <writer@git-evals.invalid>"
WRITTEN = "written"
WRITTEN_LIMIT_BYTES = 1 << 16
TRIES = 50
LONGEST_PAUSE_SECONDS = 0.05
TURN_SECONDS = 60
TURN_POLL_SECONDS = 0.02

Edit = Callable[[str | None], str | None]
KnowingEdit = Callable[[str | None, Mapping[str, str]], str | None]


def message(ref: str, repository: str) -> str:
    """The text of a commit of the ledger ``ref``; ``repository`` is the repository's id or ``none``."""
    return f"{FIRST_LINE}\n\nLedger: {ref}\nRepository: {repository}\n"


@contextlib.contextmanager
def locked(repo: Repo) -> Iterator[int]:
    """This clone's turn to write ledgers, waited for; the kernel ends it with the process. Not to be nested.

    What is given is the open lock: a program that inherits it keeps the turn for as long as it runs, should we be
    killed; when we leave, the turn ends whoever has inherited it.
    """
    directory = os.path.join(repo.common_dir, "git-evals")
    path = os.path.join(directory, "lock")
    try:
        os.makedirs(directory, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _no_lock(directory, error) from error
    try:
        _take_turn(lock, path)
        try:
            yield lock
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


def _take_turn(lock: int, path: str) -> None:
    until = time.monotonic() + TURN_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise LedgerBusy(
                    f"another git-evals has been writing for {TURN_SECONDS} seconds", hint=f"look which: `fuser {path}`"
                ) from None
            time.sleep(_random(TURN_POLL_SECONDS))
        except OSError as error:
            raise _no_lock(os.path.dirname(path), error) from error
        else:
            return


def _no_lock(directory: str, error: OSError) -> CannotTell:
    return CannotTell(
        f"cannot lock the ledgers in {directory!r}: {error.strerror}",
        hint="records are written in this repository: look at its permissions and the space there",
    )


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
    with locked(repo) as turn:
        return _move(repo, objects, ref, others, edit, lambda tree, tip: _commit(tree, tip, text), turn)


def replace(repo: Repo, objects: Objects, ref: str, *, message: str, edit: Edit) -> str:
    """Like `advance`, but the new commit has no parent, so that what ``edit`` drops can be collected: no ledger."""
    with locked(repo) as turn:
        return _move(
            repo, objects, ref, (), lambda tree, _: edit(tree), lambda tree, _: _commit(tree, None, message), turn
        )


def _move(
    repo: Repo,
    objects: Objects,
    ref: str,
    others: Sequence[str],
    edit: KnowingEdit,
    commit: Callable[[str, str | None], NewObject],
    turn: int,
) -> str:
    """One write: objects, then the note of what we set out to do, then the ref; each on disk before the next."""
    from gitevals.git import locks  # a hook, which reads what a ledger is, writes none

    for count in range(TRIES):
        values = refs.values(repo, ref, *others)
        tip = values.get(ref)
        tree = _tree_at(objects, tip, ref) if tip else None
        new_tree = edit(tree, values)
        if new_tree is None or new_tree == tree:
            return tip or repo.zero
        [new_tip] = objects.write_many([commit(new_tree, tip)])
        objects.settle()
        if locks.make_way(repo, ref, lambda: written(repo)):
            _remember(repo, new_tip)
            if _named(repo, objects, ref, new_tip, tip or repo.zero, turn):
                return new_tip
        _pause(count)
    raise _busy(repo, ref)


def _named(repo: Repo, objects: Objects, ref: str, new: str, old: str, turn: int) -> bool:
    """Move the ref, and stay until no git is left that may take for unnamed what it names now."""
    from gitevals.git import durable, pruning

    try:
        moved = refs.update(repo, ref, new, old, held=(turn,))
    except GitFailed:
        if not durable.absent(repo, [new]):
            raise
        return False
    if moved:
        pruning.outlast(repo)
        objects.settle()
        objects.release()
    return moved


def _busy(repo: Repo, ref: str) -> LedgerBusy:
    from gitevals.git import locks

    if lock := locks.in_the_way(repo, ref):
        return LedgerBusy(f"{ref} is locked by {lock}", hint=locks.HINT)
    return LedgerBusy(f"others kept moving {ref} while it was to be written", hint="run the command again")


def written(repo: Repo) -> frozenset[str]:
    """The last tips that this clone gave its ledgers or was about to; one elsewhere was moved by something else."""
    path = os.path.join(repo.common_dir, "git-evals", WRITTEN)
    try:
        if os.path.isfile(path):  # nobody would ever answer at a pipe
            with open(path, encoding="ascii", errors="replace") as file:
                return frozenset(file.read().split())
    except OSError:
        pass
    return frozenset()


def _remember(repo: Repo, tip: str) -> None:
    """Keep ``tip`` for `written`; called under the lock, and a file that cannot be written is no error."""
    path = os.path.join(repo.common_dir, "git-evals", WRITTEN)
    with contextlib.suppress(OSError):
        if os.path.exists(path) and not os.path.isfile(path):
            return
        if os.path.exists(path) and os.path.getsize(path) > WRITTEN_LIMIT_BYTES:
            with open(path, encoding="ascii", errors="replace") as file:
                kept = file.read().split()[-WRITTEN_LIMIT_BYTES // 256 :]
            with open(f"{path}.new", "w", encoding="ascii", errors="replace") as file:
                file.writelines(f"{entry}\n" for entry in kept)
            os.replace(f"{path}.new", path)
        with open(path, "a", encoding="ascii") as file:
            file.write(f"\n{tip}\n")  # whoever was killed here may have left half a line


def _pause(count: int) -> None:
    time.sleep(_random(min(LONGEST_PAUSE_SECONDS, 0.001 * 2**count)))


def _random(longest_seconds: float) -> float:
    return longest_seconds * int.from_bytes(os.urandom(2), "big") / 0xFFFF


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
