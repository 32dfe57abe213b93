"""What foreign code changed in a scratch repository, judged by records it had no hand in."""

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from gitevals.git.scratch import Scratch, different, quoted

_PIECE_BYTES = 1 << 18
_HEAD_LIMIT_BYTES = 4096
_PACKED_REFS_LIMIT_BYTES = 1 << 28
_DEEPEST_SYMREF = 5

Kind = Literal["absent", "file", "link", "directory", "other", "unreadable"]
_BECAME: dict[Kind, str] = {
    "file": "replaced by a file",
    "link": "replaced by a symbolic link",
    "directory": "replaced by a directory",
    "other": "replaced by a special file",
    "unreadable": "made unreadable",
}


class Seen(msgspec.Struct, frozen=True):
    """What stands at a path: ``digest`` is the SHA-256 of a file's bytes, or a link's target."""

    kind: Kind
    executable: bool = False
    digest: bytes = b""


_Names = Mapping[str, os.DirEntry[str]] | None
_ABSENT = Seen("absent")
_UNREADABLE = Seen("unreadable")


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The state that later changes are measured against; paths are relative to the work tree.

    ``seen`` holds tracked and unignored untracked paths and, in each directory that holds one of these, the names
    ``.git`` and ``.gitignore`` whether they exist or not: a file of that name would change what git shows. ``rules``
    tells which ignore rules were not the commit's even then; `changes` repeats it, for what they hide is not known.
    """

    head: str | None
    identities: tuple[str, str]
    watch: dict[str, Seen]
    ours: frozenset[str]
    seen: dict[str, Seen]
    rules: tuple[str, ...]
    warnings: frozenset[str]


class _Listing(msgspec.Struct, frozen=True, kw_only=True):
    tracked: frozenset[str]
    untracked: frozenset[str]
    warnings: frozenset[str]


def baseline(scratch: Scratch) -> Baseline:
    """The state of a checked-out scratch as it is now, kept where the code that runs next cannot reach it."""
    listing = _list(scratch)
    ours = listing.tracked | _telling(listing.tracked)
    seen = _look(scratch.worktree, ours | listing.untracked | _telling(listing.untracked))
    return Baseline(
        head=_head(scratch),
        identities=_identities(scratch),
        watch=_watch_files(scratch),
        ours=ours,
        seen=seen,
        rules=_strange_rules(scratch, listing, [path for path in ours if seen[path] != _ABSENT]),
        warnings=listing.warnings,
    )


def changes(scratch: Scratch, baseline: Baseline, *, outputs: Sequence[str] = ()) -> tuple[str, ...]:
    """What changed since ``baseline``, one line each; nothing that runs here reads the scratch's own configuration.

    The ignore rules are the ``.gitignore`` files of the work tree alone. ``outputs`` are further patterns in the
    ``.gitignore`` syntax, relative to the top (``build/``, ``__pycache__/``, ``*.log``): untracked files that match
    may come, change and go. Content of submodules is not looked at.
    """
    if _identities(scratch)[0] != baseline.identities[0]:
        return ("the work tree was replaced or removed",)
    if _watch_files(scratch) != baseline.watch:
        return ("our own records beside the work tree were altered",)
    listing = _list(scratch)
    now = _look(scratch.worktree, baseline.seen)
    changed = {path: line for path, was in baseline.seen.items() if (line := _told(path, was, now[path]))}
    new = {path: f"new file: {quoted(path)}" for path in listing.untracked if path not in baseline.seen}
    found = {**changed, **new}
    admitted = _admitted(scratch, [path for path in found if path not in baseline.ours], outputs)
    lines = [found[path] for path in sorted(found) if path not in admitted]
    unseen = sorted(f"cannot look everywhere: {quoted(line)}" for line in listing.warnings - baseline.warnings)
    return (*_head_changes(scratch, baseline), *baseline.rules, *lines, *unseen)


def _head_changes(scratch: Scratch, baseline: Baseline) -> list[str]:
    if _identities(scratch) != baseline.identities:
        return [".git was replaced or removed"]
    head = _head(scratch)
    if head is None:
        return ["HEAD is unreadable"]
    return [] if head == baseline.head else [f"HEAD moved to {head}"]


def _told(path: str, was: Seen, now: Seen) -> str:
    if was == now:
        return ""
    name = quoted(path)
    if was.kind == "absent":
        return f"new file: {name}"
    if now.kind == "absent":
        return f"deleted: {name}"
    if was.kind != now.kind:
        return f"{_BECAME[now.kind]}: {name}"
    return f"modified: {name}" if was.digest != now.digest else f"mode changed: {name}"


def _list(scratch: Scratch) -> _Listing:
    done = scratch.watch.run("ls-files", "-z", "-t", "-c", "-o", "--exclude-per-directory=.gitignore")
    entries = [os.fsdecode(entry) for entry in done.stdout.split(b"\0") if entry]
    return _Listing(
        tracked=frozenset(entry[2:] for entry in entries if not entry.startswith("? ")),
        untracked=frozenset(entry[2:] for entry in entries if entry.startswith("? ")),
        warnings=frozenset(done.stderr.splitlines()),
    )


def _telling(paths: Iterable[str]) -> frozenset[str]:
    """``.git`` and ``.gitignore`` in every directory above ``paths``, but the scratch's own ``.git``."""
    directories: set[str] = set()
    for path in paths:
        directory = path.rstrip("/").rpartition("/")[0]
        while directory not in directories:
            directories.add(directory)
            directory = directory.rpartition("/")[0]
    names = {os.path.join(directory, name) for directory in directories for name in (".git", ".gitignore")}
    return frozenset(names - {".git"})


def _strange_rules(scratch: Scratch, listing: _Listing, telling: Iterable[str]) -> tuple[str, ...]:
    tracked = any(os.path.basename(path) == ".gitignore" for path in listing.tracked)
    altered = different(scratch, "-d", "-m", "--", ":(glob)**/.gitignore") if tracked else []
    added = [path for path in telling if path not in listing.tracked and os.path.basename(path) == ".gitignore"]
    return tuple(f"ignore rules are not the commit's: {quoted(path)}" for path in sorted([*altered, *added]))


def _look(top: str, paths: Iterable[str]) -> dict[str, Seen]:
    """What stands at each path below ``top``; content is read each time, for a time stamp proves nothing."""
    known: dict[str, _Names] = {}
    return {path: _look_at(top, path, known) for path in paths}


def _look_at(top: str, path: str, known: dict[str, _Names]) -> Seen:
    directory, _, name = path.rstrip("/").rpartition("/")
    names = _names(top, directory, known)
    if names is None:
        return _UNREADABLE
    entry = names.get(name)
    return _seen(entry) if entry else _ABSENT


def _names(top: str, directory: str, known: dict[str, _Names]) -> _Names:
    """The entries of a directory, none if a link or anything else took its place; None if it cannot be read."""
    if directory not in known:
        known[directory] = _scan(os.path.join(top, directory)) if _is_real(top, directory, known) else {}
    return known[directory]


def _is_real(top: str, directory: str, known: dict[str, _Names]) -> bool:
    if not directory:
        return True
    above, _, name = directory.rpartition("/")
    names = _names(top, above, known)
    return names is None or (name in names and names[name].is_dir(follow_symlinks=False))


def _scan(directory: str) -> _Names:
    try:
        with os.scandir(directory) as entries:
            return {entry.name: entry for entry in entries}
    except OSError:
        return None


def _seen(entry: os.DirEntry[str]) -> Seen:
    try:
        if entry.is_symlink():
            return Seen("link", digest=os.fsencode(os.readlink(entry.path)))
        if entry.is_file(follow_symlinks=False):
            return _seen_file(entry.path)
    except OSError:
        return _UNREADABLE
    return Seen("directory" if entry.is_dir(follow_symlinks=False) else "other")


def _seen_file(path: str) -> Seen:
    file = _open(path)
    try:
        hasher = hashlib.sha256()
        while piece := os.read(file, _PIECE_BYTES):
            hasher.update(piece)
        return Seen("file", bool(os.fstat(file).st_mode & stat.S_IXUSR), hasher.digest())
    finally:
        os.close(file)


def _open(path: str) -> int:
    """Open for reading; a link is refused and a pipe does not block."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _watch_files(scratch: Scratch) -> dict[str, Seen]:
    """Every entry of our own git directory: a config or ``commondir`` planted there would steer the next command."""
    found: dict[str, Seen] = {}
    waiting = [scratch.watch_dir]
    while waiting:
        for entry in (_scan(waiting.pop()) or {}).values():
            found[entry.path] = _seen(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


def _identities(scratch: Scratch) -> tuple[str, str]:
    return _identity(scratch.worktree), _identity(scratch.repo.git_dir)


def _identity(directory: str) -> str:
    with contextlib.suppress(OSError):
        status = os.lstat(directory)
        if stat.S_ISDIR(status.st_mode):
            return f"{status.st_dev}:{status.st_ino}"
    return ""


def _head(scratch: Scratch) -> str | None:
    """The commit that HEAD of the scratch resolves to, read by hand; None if nothing sound stands there."""
    name = "HEAD"
    for _ in range(_DEEPEST_SYMREF):
        text = _small_file(os.path.join(scratch.repo.git_dir, name), _HEAD_LIMIT_BYTES)
        if text is None:
            return _packed(scratch, name)
        if not text.startswith("ref:"):
            return text.strip() if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text.strip()) else None
        name = text[4:].strip()
        if not name.startswith("refs/") or ".." in name or "\0" in name:
            return None
    return None


def _packed(scratch: Scratch, name: str) -> str | None:
    text = _small_file(os.path.join(scratch.repo.git_dir, "packed-refs"), _PACKED_REFS_LIMIT_BYTES) or ""
    found = re.search(rf"^([0-9a-f]{{40}}|[0-9a-f]{{64}}) {re.escape(name)}$", text, re.MULTILINE)
    return found[1] if found else None


def _small_file(path: str, limit_bytes: int) -> str | None:
    with contextlib.suppress(OSError):
        file = _open(path)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)
            return _read(file, limit_bytes) if regular else None
        finally:
            os.close(file)
    return None


def _read(file: int, limit_bytes: int) -> str:
    with os.fdopen(os.dup(file), "rb") as opened:
        return os.fsdecode(opened.read(limit_bytes))


def _admitted(scratch: Scratch, paths: Sequence[str], outputs: Sequence[str]) -> set[str]:
    """Those of ``paths`` that match ``outputs``; git decides, in an empty directory where no other rule exists."""
    if not paths or not outputs:
        return set()
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    with tempfile.TemporaryDirectory(dir=scratch.root) as own:
        empty, rules = os.path.join(own, "empty"), os.path.join(own, "rules")
        os.mkdir(empty)
        with open(rules, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{pattern}\n" for pattern in outputs)
        options = ("-c", f"core.excludesFile={rules}", "check-ignore", "--no-index", "-z", "--stdin")
        done = scratch.watch.run(*options, stdin=asked, accept=(0, 1), cwd=empty)
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}
