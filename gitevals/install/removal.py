"""The hooks taken away, and everything put back as it was."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gitevals import cache, protection
from gitevals.errors import CannotTell
from gitevals.git.repo import Repo
from gitevals.install import configured, displaced, places, receipt, shims
from gitevals.install.receipt import Receipt


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken away, and the hooks of others that found no place to go back to."""

    hooks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def half_done(error: OSError) -> CannotTell:
    """What to say where the disk did not let an installation or its removal come to its end."""
    where = f' at "{error.filename}"' if error.filename else ""
    return CannotTell(f"the hooks could not be changed{where}: {error.strerror}", hint="git evals hooks uninstall")


def uninstall(repo: Repo, *, shared: bool = False) -> Removed:
    """Take away what is ours and put back what it displaced.

    A directory that serves other repositories, too, is left as it is unless ``shared``: without its receipt, this
    repository is passed over there.
    """
    try:
        return _uninstalled(repo, shared=shared)
    except OSError as error:
        raise half_done(error) from error


def _uninstalled(repo: Repo, *, shared: bool) -> Removed:
    kept = receipt.read(repo)
    named = sorted(name.removesuffix(".event") for name in configured.settings(repo) if name.endswith(".event"))
    if not receipt.restore(Path(repo.common_dir, "config"), kept.config):
        configured.take_away(repo)
        if kept.trust_branch and repo.setting("evals.trustBranch") == kept.trust_branch:
            repo.run("config", "--local", "--unset", "evals.trustBranch")
    removed = take_files_away(repo, directories(repo, kept, shared=shared))
    configured.take_scripts_away(repo)
    receipt.unexclude(repo, kept)
    side_files = cache.directory(repo.common_dir)
    for name in (protection.LIST, protection.STALE):
        Path(side_files, name).unlink(missing_ok=True)
    receipt.remove(repo)
    for folder in (*kept.made, os.fsencode(side_files)):
        _remove_if_empty(os.path.join(os.fsencode(repo.common_dir), folder))
    return Removed(hooks=(*named, *removed.hooks), left=removed.left)


def directories(repo: Repo, kept: Receipt, *, shared: bool = False) -> list[Path]:
    """Where files of ours may lie: where git looks now, where it looked once, where it looks by itself."""
    current = [place.directory for place in places.places(repo) if shared or not place.shared]
    earlier = [Path(os.path.normpath(os.path.join(repo.common_dir, os.fsdecode(name)))) for name in kept.directories]
    own = Path(repo.common_dir, "hooks")
    return list(dict.fromkeys((*current, *earlier, *([] if own.is_symlink() else [own]))))


def take_files_away(repo: Repo, folders: Sequence[Path]) -> Removed:
    """Take our files out of ``folders``, and put back those of others."""
    gone, left = [], []
    for directory in folders:
        for event in sorted(frozenset(shims.EVENTS) - places.tracked(repo, directory)):
            if shims.is_ours(directory / event):
                gone.append(str(directory / event))
            rest = displaced.take_away(directory, event)
            left += [str(rest)] if rest else []
        displaced.tidy(directory)
    return Removed(hooks=tuple(gone), left=tuple(left))


def _remove_if_empty(folder: bytes) -> None:
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)
