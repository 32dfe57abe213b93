"""What the installation of the hooks changed outside its own files, so that taking them away leaves no trace."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gitevals import cache
from gitevals.git.repo import Repo

NAME = "installed"


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was (None: absent) and as we left it."""

    before: bytes | None
    after: bytes


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """``directories`` had our files, ``made`` was made for them; both are relative to the common git directory."""

    schema: int = 1
    config: Edited | None = None
    exclude: Edited | None = None
    trust_branch: str = ""
    excluded: tuple[bytes, ...] = ()
    directories: tuple[bytes, ...] = ()
    made: tuple[bytes, ...] = ()


def read(repo: Repo) -> Receipt:
    """The receipt; an empty one where there is none that can be read."""
    try:
        return msgspec.json.decode(_path(repo).read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError):
        return Receipt()


def write(repo: Repo, receipt: Receipt) -> None:
    """Keep the receipt; the hooks of a shared directory ask whether it is there."""
    cache.replace(cache.directory(repo.common_dir), NAME, msgspec.json.encode(receipt))


def remove(repo: Repo) -> None:
    """Remove the receipt."""
    _path(repo).unlink(missing_ok=True)


def _path(repo: Repo) -> Path:
    return Path(cache.directory(repo.common_dir), NAME)


def content(path: Path) -> bytes | None:
    """The bytes of a file, None where it is absent."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def edited(known: Edited | None, before: bytes | None, after: bytes | None) -> Edited | None:
    """What is known of a file after one more change of ours; somebody's change in between makes it unknowable."""
    if after is None or before == after:
        return known
    if known is None:
        return Edited(before=before, after=after)
    return Edited(before=known.before, after=after) if known.after == before else known


def restore(path: Path, known: Edited | None) -> bool:
    """Put a file back as it was, if nobody but us has changed it."""
    if known is None or content(path) != known.after:
        return False
    if known.before is None:
        path.unlink()
        return True
    mode = path.stat().st_mode & 0o7777
    lock = path.with_name(f"{path.name}.lock")  # as git names it: while it is there, git does not write
    try:
        with open(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(known.before)
    except FileExistsError:
        return False
    lock.replace(path)
    return True


def exclude(repo: Repo, receipt: Receipt, wanted: Sequence[bytes]) -> Receipt:
    """Have git overlook files of ours in work trees."""
    path = Path(repo.common_dir, "info", "exclude")
    before = content(path)
    missing = [line for line in wanted if line not in (before or b"").split(b"\n")]
    if not missing:
        return receipt
    start = (before or b"") + (b"\n" if before and not before.endswith(b"\n") else b"")
    after = start + b"".join(line + b"\n" for line in missing)
    cache.replace(str(path.parent), path.name, after)
    lines = tuple(dict.fromkeys((*receipt.excluded, *missing)))
    return msgspec.structs.replace(receipt, excluded=lines, exclude=edited(receipt.exclude, before, after))


def unexclude(repo: Repo, receipt: Receipt) -> None:
    """Take our lines out of ``info/exclude``."""
    path = Path(repo.common_dir, "info", "exclude")
    if not receipt.excluded or restore(path, receipt.exclude):
        return
    found = content(path)
    if found is not None:
        kept = [line for line in found.split(b"\n") if line not in receipt.excluded]
        cache.replace(str(path.parent), path.name, b"\n".join(kept))
