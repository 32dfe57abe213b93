"""What a throw-away repository is made of: a sealed environment, and the object stores of others."""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from gitevals.git.repo import Repo

_WHO = "git-evals"
_EMAIL = "scratch@git-evals.invalid"
_EPOCH = "@946684800 +0000"

# Outranks every configuration file, so that neither the user's defaults nor a file in the scratch steers our commands.
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.ignoreStat": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_SEALED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DEFAULT_REF_FORMAT": "files",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_AUTHOR_NAME": _WHO,
    "GIT_AUTHOR_EMAIL": _EMAIL,
    "GIT_AUTHOR_DATE": _EPOCH,
    "GIT_COMMITTER_NAME": _WHO,
    "GIT_COMMITTER_EMAIL": _EMAIL,
    "GIT_COMMITTER_DATE": _EPOCH,
    "XDG_CONFIG_HOME": "/dev/null",
    "LC_ALL": "C",
}


class Scratch(msgspec.Struct, frozen=True, kw_only=True):
    """A throw-away repository below ``root``; ``commit`` is what `checkout` put there ("" before).

    ``repo`` is the repository in ``worktree`` and is for use before foreign code ran in it; ``watch`` is our own git
    directory and index over the same work tree. Both use ``env``, which no configuration of the user's reaches.
    ``sources`` are the user's repositories whose objects it reads, the one that gives tags and settings first.
    ``filled`` are the tracked paths whose content is not their blob but what an LFS pointer in it stands for.
    ``inner`` are the submodules at every depth, each with its ``path`` from the top; one left empty has no commit.
    """

    root: str
    worktree: str
    watch_dir: str
    commit: str
    repo: Repo
    watch: Repo
    env: dict[str, str]
    sources: tuple[Repo, ...]
    path: str = ""
    filled: frozenset[str] = frozenset()
    inner: tuple["Scratch", ...] = ()

    def named(self, path: str) -> str:
        """A path of this work tree as it is called from the top of the outermost one, ready to be shown."""
        return quoted(os.path.join(self.path, path))


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment for git in a throw-away repository: no configuration but ours, a fixed identity and date."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name == "GIT_EXEC_PATH"}
    config = {"GIT_CONFIG_COUNT": str(len(_CONFIG))}
    for number, (key, value) in enumerate(_CONFIG.items()):
        config |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**kept, **_SEALED, **config}


def object_stores(repo: Repo) -> list[str]:
    """Absolute object directories of ``repo``; in a push's quarantine its own comes first."""
    here = repo.worktree or repo.git_dir
    quarantine = [path for path in (repo.env.get("GIT_OBJECT_DIRECTORY"),) if path]
    found = [*quarantine, *_alternates(repo.env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))]
    return list(dict.fromkeys(os.path.join(here, path) for path in [*found, os.path.join(repo.common_dir, "objects")]))


def _alternates(listed: str) -> list[str]:
    """The entries of GIT_ALTERNATE_OBJECT_DIRECTORIES: colon-separated, C-quoted if they start with a quote."""
    entries = re.findall(r'"(?:[^"\\]|\\.)*"|[^:]+', listed, re.DOTALL)
    return [unquoted(entry) if entry.startswith('"') else entry for entry in entries]


def unquoted(entry: str) -> str:
    """What git means by a C-quoted string, its quotes included."""
    named = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return os.fsdecode(bytes([int(code, 8) & 0xFF])) if code.isdigit() else named.get(code, code)

    return os.fsdecode(os.fsencode(re.sub(r"\\([0-7]{3}|.)", plain, entry[1:-1], flags=re.DOTALL)))


def quoted(path: str) -> str:
    """``path`` as git shows it: in quotes with C escapes if it holds anything that would not print as itself."""
    if path.isprintable() and not any(char in path for char in '"\\'):
        return path
    shown = (char if char.isprintable() and char not in '"\\' else _octal(char) for char in path)
    return f'"{"".join(shown)}"'


def seen_too(stores: Sequence[str], further: str) -> str:
    """``stores`` before what GIT_ALTERNATE_OBJECT_DIRECTORIES holds already, as a value of that variable."""
    named = (path if path.isprintable() and ":" not in path and not path.startswith('"') else _in_quotes(path)
             for path in stores)  # fmt: skip
    return ":".join(part for part in (*named, further) if part)


def _in_quotes(path: str) -> str:
    shown = quoted(path)
    return shown if shown.startswith('"') else f'"{shown}"'


def _octal(char: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def fields(output: bytes) -> list[str]:
    """The parts of a ``-z`` output, as text that goes back to the same bytes."""
    return [os.fsdecode(field) for field in output.split(b"\0") if field]


def borrow(git_dir: str, sources: Sequence[Repo]) -> list[str]:
    """Let the new repository ``git_dir`` read the objects of ``sources`` and end where they are shallow.

    The object directories it reads now.
    """
    stores = list(dict.fromkeys(store for source in sources for store in object_stores(source)))
    write(os.path.join(git_dir, "objects", "info", "alternates"), _lines(stores))
    ends: set[bytes] = set()
    for source in sources:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(source.common_dir, "shallow"), "rb") as file:
            ends.update(file)
    if ends:
        write(os.path.join(git_dir, "shallow"), b"".join(sorted(ends)))
    return stores


def make_watch(watch_dir: str, config: bytes, stores: list[str]) -> None:
    """A git directory of our own with an empty index, to look at a work tree through."""
    for name in ("refs", "objects/info", "empty"):
        os.makedirs(os.path.join(watch_dir, name))
    write(os.path.join(watch_dir, "config"), config)
    write(os.path.join(watch_dir, "HEAD"), b"ref: refs/heads/watch\n")
    write(os.path.join(watch_dir, "objects", "info", "alternates"), _lines(stores))


def tags(repo: Repo) -> bytes:
    """Every tag of ``repo``, as the text of a ``packed-refs`` file."""
    return repo.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/").stdout


def _lines(stores: list[str]) -> bytes:
    lines = (path if path.isprintable() and not path.startswith(('"', "#")) else quoted(path) for path in stores)
    return os.fsencode("".join(f"{line}\n" for line in lines))


def write(path: str, content: bytes) -> None:
    """Make or replace the file ``path``; its directory is made if there is none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
