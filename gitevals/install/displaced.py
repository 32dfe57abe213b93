"""Hooks of others that ours took the place of: kept beside their directory, run by ours, put back.

``hooks/pre-commit`` of somebody else becomes ``hooks.git-evals/pre-commit``. Every other name of the directory is a
link there, for a hook looks for its helpers by its own path; and relative links keep their meaning at the same depth.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gitevals.install import shims
from gitevals.install.managers import same


def beside(directory: Path) -> Path:
    """Where the displaced hooks of ``directory`` are kept."""
    return directory.with_name(f"{directory.name}.git-evals")


def displaced(directory: Path, event: str) -> Path | None:
    """The hook of somebody else that ours runs first, if there is one."""
    place = beside(directory) / event
    return place if os.path.lexists(place) else None


def put(directory: Path, event: str, text: str) -> None:
    """Make ``text`` the hook of ``event``; a hook of somebody else is kept beside it, whole before ours is there."""
    path = directory / event
    settle(directory, event)
    if os.path.lexists(path) and not shims.is_ours(path):
        _keep(path, beside(directory) / event)
        _link_others(directory)
    directory.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{event}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def take_away(directory: Path, event: str) -> Path | None:
    """Remove our hook of ``event`` and put back what stood there; a displaced hook that has no place any more."""
    settle(directory, event)
    path = directory / event
    kept = displaced(directory, event)
    ours = shims.is_ours(path)
    if kept and (ours or (directory.is_dir() and not os.path.lexists(path))):
        kept.replace(path)
        kept = None
    elif ours:
        path.unlink()
    replaced = beside(directory) / f"{event}.replaced"
    return kept or (replaced if os.path.lexists(replaced) else None)


def tidy(directory: Path) -> None:
    """Remove our links beside ``directory`` if no hook needs them, and what is empty then."""
    place = beside(directory)
    if any(displaced(directory, event) for event in shims.EVENTS) or not place.is_dir():
        return
    for entry in list(place.iterdir()):
        if entry.is_symlink() and os.readlink(entry) == _link(directory, entry.name):
            entry.unlink()
    with contextlib.suppress(OSError):
        place.rmdir()


def settle(directory: Path, event: str) -> None:
    """Put in order what a tool that installed itself over our hook left, as if ours had never been there.

    Ours that it put aside gives way to the hook that ours had displaced, unless that was the same tool's.
    """
    path, kept = directory / event, displaced(directory, event)
    aside = list(put_aside(directory, event))
    if os.path.lexists(path) and not shims.is_ours(path) and kept:
        if same(path, kept):
            kept.unlink()
        elif aside:
            kept.replace(aside.pop())
        else:
            kept.replace(kept.with_name(f"{event}.replaced"))
    for ours in aside:
        ours.unlink()


def put_aside(directory: Path, event: str) -> Iterator[Path]:
    """Our own hook of ``event`` under names that a tool gave it: ``pre-commit.legacy``, ``pre-commit.old``."""
    with contextlib.suppress(OSError):
        for entry in sorted(directory.iterdir()):
            if entry.name.startswith(f"{event}.") and shims.is_ours(entry):
                yield entry


def _keep(path: Path, kept: Path) -> None:
    kept.parent.mkdir(exist_ok=True)
    temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
    try:
        os.link(path, temporary, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(path, temporary, follow_symlinks=False)
    temporary.replace(kept)


def _link_others(directory: Path) -> None:
    place = beside(directory)
    for entry in directory.iterdir():
        link = place / entry.name
        if entry.name in shims.EVENTS or entry.name.endswith(".sample") or os.path.lexists(link):
            continue
        if not shims.is_ours(entry):
            link.symlink_to(_link(directory, entry.name))


def _link(directory: Path, name: str) -> str:
    return os.path.join("..", directory.name, name)
