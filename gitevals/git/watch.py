"""What foreign code changed in a scratch repository, judged by records it had no hand in."""

import os
import re
import tempfile
from collections.abc import Iterable, Sequence

import msgspec

from gitevals.errors import GitFailed
from gitevals.git.scratch import Scratch, different, quoted, told
from gitevals.git.seen import ABSENT, Kind, Seen, identity, look, look_at, scan, seen_entry, small_file

_HEAD_LIMIT_BYTES = 4096
_PACKED_REFS_LIMIT_BYTES = 1 << 28
_DEEPEST_SYMREF = 5

_BECAME: dict[Kind, str] = {
    "file": "replaced by a file",
    "link": "replaced by a symbolic link",
    "directory": "replaced by a directory",
    "other": "replaced by a special file",
    "unreadable": "made unreadable",
}


class _Identities(msgspec.Struct, frozen=True, kw_only=True):
    """Which directories these are, and what ``.git`` in the work tree is: a submodule's names another place."""

    worktree: str
    git_dir: str
    link: Seen


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be told of one work tree; ``lines`` by path from the top, ``ours`` are paths no output may be."""

    first: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    lines: dict[str, str] = {}
    ours: frozenset[str] = frozenset()
    unseen: tuple[str, ...] = ()


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The state that later changes are measured against; paths are relative to the work tree.

    ``seen`` holds tracked and unignored untracked paths and, in each directory that holds one of these, the names
    ``.git`` and ``.gitignore`` whether they exist or not: a file of that name would change what git shows. ``rules``
    tells which ignore rules were not the commit's even then; `changes` repeats it, for what they hide is not known.
    """

    head: str | None
    identities: _Identities
    watch: dict[str, Seen]
    ours: frozenset[str]
    seen: dict[str, Seen]
    rules: tuple[str, ...]
    warnings: frozenset[str]
    inner: dict[str, "Baseline"] = {}


class _Listing(msgspec.Struct, frozen=True, kw_only=True):
    tracked: frozenset[str]
    untracked: frozenset[str]
    warnings: frozenset[str]


def baseline(scratch: Scratch) -> Baseline:
    """The state of a checked-out scratch as it is now, kept where the code that runs next cannot reach it.

    Submodules are part of it. `CannotTell` if there is no room to compare, or git cannot look.
    """
    with told(scratch.root):
        inner = {module.path: _baseline(module) for module in scratch.inner}
        return msgspec.structs.replace(_baseline(scratch), inner=inner)


def _baseline(scratch: Scratch) -> Baseline:
    listing = _list(scratch)
    ours = listing.tracked | _telling(listing.tracked)
    seen = look(scratch.worktree, ours | listing.untracked | _telling(listing.untracked))
    return Baseline(
        head=_head(scratch),
        identities=_identities(scratch),
        watch=_watch_files(scratch),
        ours=ours,
        seen=seen,
        rules=_strange_rules(scratch, listing, [path for path in ours if seen[path] != ABSENT]),
        warnings=listing.warnings,
    )


def changes(scratch: Scratch, baseline: Baseline, *, outputs: Sequence[str] = ()) -> tuple[str, ...]:
    """What changed since ``baseline``, one line each; nothing that runs here reads the scratch's own configuration.

    The ignore rules are the ``.gitignore`` files of the work tree alone, in a submodule its own. ``outputs`` are
    further patterns in the ``.gitignore`` syntax, relative to the top (``build/``, ``__pycache__/``, ``*.log``):
    untracked files that match may come, change and go. Nothing is written but the patterns; where even they find no
    room, a line says that outputs could not be told from other files. `CannotTell` if git itself cannot look.
    """
    if _identities(scratch).worktree != baseline.identities.worktree:
        return ("the work tree was replaced or removed",)
    pairs = [(scratch, baseline), *((module, baseline.inner[module.path]) for module in scratch.inner)]
    if any(_watch_files(part) != was.watch for part, was in pairs):
        return ("our own records beside the work tree were altered",)
    with told(scratch.root):
        found = [_found(part, was) for part, was in pairs]
    lines = {path: line for each in reversed(found) for path, line in each.lines.items()}
    ours = frozenset[str]().union(*(each.ours for each in found))
    admitted, unknown = _admitted(scratch, [path for path in lines if path not in ours], outputs)
    return (
        *(line for each in found for line in each.first),
        *(line for each in found for line in each.rules),
        *(lines[path] for path in sorted(lines) if path not in admitted),
        *(line for each in found for line in each.unseen),
        *unknown,
    )


def _found(scratch: Scratch, was: Baseline) -> _Found:
    if scratch.path and _identities(scratch).worktree != was.identities.worktree:
        return _Found(
            lines={scratch.path: f"replaced or removed: {quoted(scratch.path)}"}, ours=frozenset((scratch.path,))
        )
    listing = _list(scratch)
    at = f" in {quoted(scratch.path)}" if scratch.path else ""
    now = look(scratch.worktree, was.seen)
    changed = {
        path: line for path, before in was.seen.items() if (line := _line(scratch.named(path), before, now[path]))
    }
    new = {path: f"new file: {scratch.named(path)}" for path in listing.untracked if path not in was.seen}
    found = {**changed, **new}
    return _Found(
        first=_head_changes(scratch, was),
        rules=was.rules,
        lines={os.path.join(scratch.path, path): line for path, line in found.items()},
        ours=frozenset(os.path.join(scratch.path, path) for path in found if path in was.ours),
        unseen=tuple(sorted(f"cannot look everywhere{at}: {quoted(w)}" for w in listing.warnings - was.warnings)),
    )


def _head_changes(scratch: Scratch, baseline: Baseline) -> tuple[str, ...]:
    if _identities(scratch) != baseline.identities:
        done = "made" if baseline.identities.link == ABSENT else "replaced or removed"
        return (f"{scratch.named('.git')} was {done}",)
    head, of = _head(scratch), f" of submodule {quoted(scratch.path)}" if scratch.path else ""
    if head == baseline.head:
        return ()
    return (f"HEAD{of} moved to {head}",) if head else (f"HEAD{of} is unreadable",)


def _line(name: str, was: Seen, now: Seen) -> str:
    if was == now:
        return ""
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
    return tuple(f"ignore rules are not the commit's: {scratch.named(path)}" for path in sorted([*altered, *added]))


def _watch_files(scratch: Scratch) -> dict[str, Seen]:
    """Every entry of our own git directory: a config or ``commondir`` planted there would steer the next command."""
    found: dict[str, Seen] = {}
    waiting = [scratch.watch_dir]
    while waiting:
        for entry in (scan(waiting.pop()) or {}).values():
            found[entry.path] = seen_entry(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


def _identities(scratch: Scratch) -> _Identities:
    return _Identities(
        worktree=identity(scratch.worktree),
        git_dir=identity(scratch.repo.git_dir),
        link=look_at(scratch.worktree, ".git", {}),
    )


def _head(scratch: Scratch) -> str | None:
    """The commit that HEAD of the scratch resolves to, read by hand; None if nothing sound stands there."""
    name = "HEAD"
    for _ in range(_DEEPEST_SYMREF):
        text = small_file(os.path.join(scratch.repo.git_dir, name), _HEAD_LIMIT_BYTES)
        if text is None:
            return _packed(scratch, name)
        if not text.startswith("ref:"):
            return text.strip() if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text.strip()) else None
        name = text[4:].strip()
        if not name.startswith("refs/") or ".." in name or "\0" in name:
            return None
    return None


def _packed(scratch: Scratch, name: str) -> str | None:
    text = small_file(os.path.join(scratch.repo.git_dir, "packed-refs"), _PACKED_REFS_LIMIT_BYTES) or ""
    found = re.search(rf"^([0-9a-f]{{40}}|[0-9a-f]{{64}}) {re.escape(name)}$", text, re.MULTILINE)
    return found[1] if found else None


def _admitted(scratch: Scratch, paths: Sequence[str], outputs: Sequence[str]) -> tuple[set[str], tuple[str, ...]]:
    """Those of ``paths`` that match ``outputs``; git decides, in an empty directory where no other rule exists.

    Where that cannot be asked all of them, with a line that says so.
    """
    if not paths or not outputs:
        return set(), ()
    try:
        return _matching(scratch, paths, outputs), ()
    except (OSError, GitFailed) as error:
        reason = error.message if isinstance(error, GitFailed) else error.strerror
        return set(paths), (f"cannot tell outputs from other files: {reason}",)


def _matching(scratch: Scratch, paths: Sequence[str], outputs: Sequence[str]) -> set[str]:
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    with tempfile.NamedTemporaryFile(dir=scratch.root, prefix="rules-") as rules:
        rules.writelines(os.fsencode(f"{pattern}\n") for pattern in outputs)
        rules.flush()
        options = ("-c", f"core.excludesFile={rules.name}", "check-ignore", "--no-index", "-z", "--stdin")
        empty = os.path.join(scratch.watch_dir, "empty")
        done = scratch.watch.run(*options, stdin=asked, accept=(0, 1), cwd=empty)
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}
