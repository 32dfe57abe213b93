"""Files that a commit holds as LFS pointers, filled in from the local LFS store: no git-lfs, no network."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gitevals.errors import CannotTell
from gitevals.git.repo import Repo
from gitevals.git.sealed import Scratch, quoted, unquoted, write

_POINTER_LIMIT_BYTES = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n"
    rb"(?P<extensions>(?:ext-[0-9]-[^ \n]+ sha256:[0-9a-f]{64}\n)*)"
    rb"oid sha256:(?P<oid>[0-9a-f]{64})\n"
    rb"size (?P<size>0|[1-9][0-9]{0,18})\n"
)
# So much older than the index that git believes its time stamp and never compares content.
_AGE_SECONDS = 60
_SHOWN = 5


class Pointer(msgspec.Struct, frozen=True):
    """What an LFS pointer stands for: the SHA-256 of the content, its length, and the pointer's own bytes."""

    oid: str
    size_bytes: int
    raw: bytes


def parsed(raw: bytes) -> Pointer | None:
    """The pointer that ``raw`` is by version 1 of the specification, else None; extensions raise `CannotTell`."""
    found = _POINTER.fullmatch(raw.replace(b"\r\n", b"\n"))
    if found is None:
        return None
    if found["extensions"]:
        raise CannotTell("the LFS pointer names extensions, which are programs that only git-lfs runs")
    return Pointer(found["oid"].decode(), int(found["size"]), raw)


def fill(scratch: Scratch, attributes: Sequence[str]) -> frozenset[str]:
    """Replace each pointer in the fresh checkout by its content; the paths that are no longer their blob.

    ``attributes`` are the tracked ``.gitattributes``. Content that is not in a local store, or is not what the
    pointer says, raises `CannotTell`. To git all of them stay unmodified, with no filter configured.
    """
    pointers = dict(_pointers(scratch)) if _speak_of_lfs(scratch, attributes) else {}
    if not pointers:
        return frozenset()
    places = _places(scratch.sources)
    found = {path: _stored(places, pointer) for path, pointer in pointers.items()}
    missing = [path for path, place in found.items() if place is None]
    if missing:
        raise _missing(scratch, missing)
    for path, place in found.items():
        _replace(scratch, path, pointers[path], place or os.devnull)
    _settle(scratch, pointers)
    return frozenset(pointers)


def _speak_of_lfs(scratch: Scratch, attributes: Sequence[str]) -> bool:
    return any(b"filter=lfs" in _content(os.path.join(scratch.worktree, path), None) for path in attributes)


def _content(path: str, limit_bytes: int | None) -> bytes:
    """A regular file's bytes; nothing for any other kind, or one that is longer than the limit."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or (limit_bytes is not None and status.st_size > limit_bytes):
        return b""
    with open(path, "rb") as file:
        return file.read()


def _pointers(scratch: Scratch) -> Iterator[tuple[str, Pointer]]:
    """The checked-out files that are pointers and that the commit's own attributes give to LFS."""
    tracked = scratch.watch.run("ls-files", "-z").stdout
    asked = ("check-attr", "--cached", "-z", "--stdin", "filter")
    told = scratch.watch.run(*asked, stdin=tracked).stdout.split(b"\0")
    for raw, value in zip(told[0::3], told[2::3], strict=False):
        if value != b"lfs":
            continue
        path = os.fsdecode(raw)
        try:
            pointer = parsed(_content(os.path.join(scratch.worktree, path), _POINTER_LIMIT_BYTES))
        except CannotTell as error:
            raise CannotTell(f"{scratch.named(path)}: {error.message}") from error
        if pointer:
            yield path, pointer


def _places(sources: Sequence[Repo]) -> list[str]:
    """Where content may lie: the LFS directories of ``sources``, and of the repositories that they borrow from."""
    found: list[str] = []
    for source in sources:
        set_to = os.fsdecode(source.run("config", "--type=path", "--get", "lfs.storage", accept=(0, 1)).stdout)
        found.append(os.path.join(source.common_dir, set_to.removesuffix("\n") or "lfs", "objects"))
        found += _borrowed(os.path.join(source.common_dir, "objects"))
    return found


def _borrowed(store: str) -> list[str]:
    try:
        with open(os.path.join(store, "info", "alternates"), encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    except OSError:
        return []
    named = (unquoted(line) if line.startswith('"') else line for line in lines)
    return [os.path.join(os.path.dirname(os.path.join(store, line)), "lfs", "objects") for line in named]


def _stored(places: Sequence[str], pointer: Pointer) -> str | None:
    if not pointer.size_bytes:
        return os.devnull
    inside = os.path.join(pointer.oid[:2], pointer.oid[2:4], pointer.oid)
    return next((path for place in places if os.path.isfile(path := os.path.join(place, inside))), None)


def _missing(scratch: Scratch, paths: Sequence[str]) -> CannotTell:
    shown = ", ".join(scratch.named(path) for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return CannotTell(
        f"the content of {shown}{more} is not in the local LFS store",
        hint=f"fetch it first: `git {_inside(scratch)}lfs fetch`, with remote and branch for what is not checked out",
    )


def _inside(scratch: Scratch) -> str:
    return f"-C {shlex.quote(scratch.path)} " if scratch.path else ""


def _replace(scratch: Scratch, path: str, pointer: Pointer, stored: str) -> None:
    """Put content in place of the pointer, mode kept, and prove by reading it back that it is what was promised."""
    target = os.path.join(scratch.worktree, path)
    shutil.copyfile(stored, target)
    with open(target, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if (digest, os.path.getsize(target)) != (pointer.oid, pointer.size_bytes):
        raise CannotTell(
            f"the content of {scratch.named(path)} in the local LFS store is damaged: {quoted(stored)}",
            hint=f"delete that file and fetch it again: `git {_inside(scratch)}lfs fetch`",
        )
    past = time.time() - _AGE_SECONDS
    os.utime(target, (past, past))


def _settle(scratch: Scratch, pointers: Mapping[str, Pointer]) -> None:
    """Let the scratch's index learn the new time stamps, by a filter that answers with the pointers, this once."""
    with tempfile.TemporaryDirectory(dir=scratch.root) as place:
        for path, pointer in pointers.items():
            write(os.path.join(place, path), pointer.raw)
        answer = f"{shlex.quote(place.replace('%', '%%'))}/%f"
        command = f"if test -f {answer}; then cat {answer}; else cat; fi"  # git may ask for others that LFS has
        filtered = ("-c", f"filter.lfs.clean={command}", "-c", "filter.lfs.required=true")
        paths = b"".join(os.fsencode(path) + b"\0" for path in pointers)
        scratch.repo.run(*filtered, "update-index", "-z", "--stdin", stdin=paths)


def clear(scratch: Scratch) -> None:
    """Take away what `fill` filled in, so that the next checkout writes these files anew."""
    for path in scratch.filled:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(scratch.worktree, path))
