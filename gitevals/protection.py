"""Which branches are protected: the trust branch says, and a side file keeps the list for the hooks."""

import contextlib
import os
from collections.abc import Iterable, Sequence

from gitevals import authority, cache
from gitevals.config import Config
from gitevals.contracts.reading import config_at
from gitevals.errors import ConfigInvalid
from gitevals.git import refs
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo

HEADS = "refs/heads/"
LIST = "protected"
STALE = "protected.stale"


def trust_branch(repo: Repo) -> str | None:
    """The full name of the branch whose configuration names the protected ones: ``evals.trustBranch``, or None."""
    name = repo.text("config", "--local", "--get", "evals.trustBranch", accept=(0, 1))
    if not name or name.endswith("/*"):
        return None
    return name if name.startswith("refs/") else HEADS + name


def patterns_of(trust: str, config: Config | None) -> tuple[str, ...]:
    """Full ref patterns (exact names, or one trailing ``/*``), the trust branch first."""
    named = [HEADS + name for name in (config.protect if config else ())]
    return tuple(dict.fromkeys([trust, *named]))


def matches(patterns: Sequence[str], ref: str) -> bool:
    """Whether ``ref`` is protected by one of ``patterns``."""
    if _folds(patterns):
        return _covered([_folded(pattern) for pattern in plain(patterns)], _folded(ref))
    return _covered(patterns, ref)


def _covered(patterns: Sequence[str], ref: str) -> bool:
    return any(ref.startswith(p[:-1]) and len(ref) > len(p) - 1 if p.endswith("/*") else ref == p for p in patterns)


def _folds(patterns: Sequence[str]) -> bool:
    return any(pattern.startswith("[") for pattern in patterns)


def _folded(name: str) -> str:
    """``name`` as a file system compares it that takes no notice of case."""
    if name.isascii():
        return name.lower()
    import unicodedata

    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def plain(patterns: Sequence[str]) -> tuple[str, ...]:
    """``patterns`` without those in brackets, which say the same once more for a shell."""
    return tuple(pattern for pattern in patterns if not pattern.startswith("["))


def with_folds(patterns: Sequence[str]) -> tuple[str, ...]:
    """``patterns``, and each once more in brackets, by which a shell finds any spelling of it.

    What is not ASCII becomes a star: shells do not agree on what a character is, and the gate decides in the end.
    """
    return (*patterns, *("".join(map(_either_case, pattern)) for pattern in patterns))


def _either_case(char: str) -> str:
    if not char.isascii():
        return "*"
    return f"[{char.upper()}{char.lower()}]" if char.isalpha() else char


def spelled(patterns: Sequence[str], ref: str, known: Iterable[str] = ()) -> str:
    """``ref`` as a pattern or a ``known`` ref spells it, where case makes no difference."""
    if not _folds(patterns):
        return ref
    return next((name for name in (*plain(patterns), *known) if _folded(name) == _folded(ref)), ref)


def prefixes(patterns: Sequence[str]) -> tuple[str, ...]:
    """``patterns`` as `for-each-ref` takes them: a full name, or a prefix that ends in a slash."""
    return tuple(p[:-1] if p.endswith("/*") else p for p in plain(patterns))


def patterns(repo: Repo, objects: Objects) -> tuple[str, ...]:
    """The protected patterns as the trust branch's tip says now; a broken configuration protects the branch itself."""
    trust = trust_branch(repo)
    if trust is None:
        return ()
    tip = refs.values(repo, trust).get(trust) or authority.copies(repo, [trust]).get(trust)
    try:
        found = config_at(repo, objects, tip) if tip else None
        named = patterns_of(trust, found.config if found else None)
    except ConfigInvalid:
        named = tuple(dict.fromkeys([trust, *plain(read_list(repo) or ())]))
    # Of a symbolic ref that is followed, recent git tells the hook nothing but what it stands for.
    named = tuple(dict.fromkeys([*named, *refs.targets(repo, *prefixes(named)).values()]))
    return with_folds(named) if _ignores_case(repo) else named


def _ignores_case(repo: Repo) -> bool:
    """Whether refs are files of a file system to which ``MAIN`` and ``main`` are one."""
    asked = ("config", "--get-regexp", r"^(core\.ignorecase|extensions\.refstorage)$")
    rows = dict(row.partition(" ")[::2] for row in repo.text(*asked, accept=(0, 1)).lower().splitlines())
    files = rows.get("extensions.refstorage", "files") == "files"
    return files and rows.get("core.ignorecase", "false") in ("true", "yes", "on", "1", "")


def read_list(repo: Repo) -> tuple[str, ...] | None:
    """The patterns of the side file, or None where it is absent, empty or incomplete."""
    try:
        with open(os.path.join(cache.directory(repo.common_dir), LIST), encoding="utf-8") as file:
            lines = file.read().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    named = tuple(line for line in lines if line and not line.startswith("#"))
    return named if named and lines[-1] == f"# end {len(named)}" else None


def write_list(repo: Repo, named: Sequence[str]) -> None:
    """Replace the side file that the hooks read; its last line counts the patterns."""
    content = "".join(f"{pattern}\n" for pattern in named) + f"# end {len(named)}\n"
    cache.replace(cache.directory(repo.common_dir), LIST, content.encode())


def refresh_list(repo: Repo, objects: Objects) -> tuple[str, ...]:
    """Write the side file anew from the trust branch's tip."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(cache.directory(repo.common_dir), STALE))
    named = patterns(repo, objects)
    with contextlib.suppress(OSError):  # a list that is not there is made anew each time: slow, and never open
        write_list(repo, named)
    return named


def mark_stale(repo: Repo) -> None:
    """Tell the hooks to refresh the list once the transaction in hand is over."""
    with contextlib.suppress(OSError):
        cache.replace(cache.directory(repo.common_dir), STALE, b"")
