"""Where git looks for hook files in each work tree, who said so, and whose files lie there."""

import os
from pathlib import Path

import msgspec

from gitevals.errors import BadInput, CannotTell
from gitevals.git import run
from gitevals.git.repo import Repo
from gitevals.git.worktrees import worktrees
from gitevals.install import shims


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One directory in which git looks, and the work tree from which it does.

    ``setting`` is core.hooksPath as it is written, "" where it is not set; ``scope`` is git's word for where it is.
    ``shared`` says that the directory lies outside the repository: other repositories may use it.
    """

    directory: Path
    root: str
    setting: str = ""
    scope: str = ""
    shared: bool = False

    @property
    def tracked_root(self) -> str:
        """The work tree that holds the directory, "" where none does: git may track what lies there."""
        return "" if self.shared or not _within(self.directory, self.root) else self.root


def places(repo: Repo) -> list[Place]:
    """Each directory once, the main work tree's first; work trees that are gone are passed over."""
    found: dict[Path, Place] = {}
    known = roots(repo)
    for root in filter(os.path.isdir, known):
        place = _of_root(repo, root, known)
        found.setdefault(place.directory, place)
    return list(found.values())


def roots(repo: Repo) -> list[str]:
    """The work trees, gone or not; for a repository without one of its own, its git directory."""
    first, *linked = worktrees(repo)
    main = first.path
    if repo.worktree and repo.git_dir == repo.common_dir:
        main = repo.worktree
    elif main == repo.common_dir and not first.bare:
        main = os.path.normpath(os.path.join(main, repo.setting("core.worktree")))
    return [main, *(tree.path for tree in linked)]


def _of_root(repo: Repo, root: str, known: list[str]) -> Place:
    scope, setting, written = "", "", False
    asked = ("config", "--show-scope", "-z", "--type=path", "--get", "core.hooksPath")
    done = run.run([f"--git-dir={_git_dir(repo, root)}", *asked], env=repo.env, cwd=root, accept=(0, 1))
    if done.status == 0:
        scope, setting, *_ = done.stdout.decode("utf-8", "surrogateescape").split("\0")
        written = True
    if written and not setting:
        setting = "/"  # git puts a slash and the hook's name after nothing
    directory = Path(os.path.normpath(os.path.join(root, setting))) if setting else Path(repo.common_dir, "hooks")
    if directory.is_symlink():
        directory = directory.resolve()  # what ours displace lies beside the one directory, by whichever name it is met
    own = any(_within(directory, place) for place in (repo.common_dir, *known))
    return Place(directory=directory, root=root, setting=setting, scope=scope, shared=not own)


def _git_dir(repo: Repo, root: str) -> str:
    """What says which configuration holds in the work tree at ``root``."""
    if root == repo.worktree:
        return repo.git_dir
    own = os.path.join(root, ".git")
    return own if os.path.lexists(own) else repo.common_dir


def _within(directory: Path, root: str) -> bool:
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(root))


def tracked(repo: Repo, directory: Path) -> frozenset[str]:
    """The events whose file in ``directory`` git tracks, in whichever repository: such a file is never changed."""
    if not directory.is_dir():
        return frozenset()
    asked = ["ls-files", "-z", "--", *shims.EVENTS]
    done = run.run(asked, env=repo.env, cwd=str(directory), accept=range(256))
    return frozenset(done.stdout.decode("utf-8", "surrogateescape").split("\0")) & frozenset(shims.EVENTS)


def calls_ours(path: Path, event: str) -> bool:
    """Whether a hook that is not ours says that it calls the script of ``event``."""
    try:
        return path.is_file() and f"{shims.SCRIPTS}/{event}" in path.read_text(errors="replace")
    except OSError:
        return False


def refuse(repo: Repo, place: Place, *, shared: bool) -> None:
    """Raise `BadInput` where hooks cannot be put into ``place``; nothing is written."""
    if place.setting == "/":
        raise BadInput("core.hooksPath is set to nothing, so git finds no hooks", hint=unset(place.scope))
    where = f'core.hooksPath is set to "{place.setting}"'
    if place.scope == "command":
        raise BadInput(f"{where} for this command alone", hint="run it without `git -c core.hooksPath=…`")
    _refuse_directory(place, where if place.setting else f'hooks are looked for in "{place.directory}"')
    if place.shared and not shared:
        said = f"{where} by {place.scope} configuration" if place.setting else f'hooks lie in "{place.directory}"'
        hint = "git evals hooks install --shared"
        raise BadInput(f"{said}: the hooks there serve other repositories, too", hint=hint)
    if shims.GATE in tracked(repo, place.directory):
        path = place.directory / shims.GATE
        if not shims.is_ours(path) and not calls_ours(path, shims.GATE):
            raise BadInput(
                f"{path} is tracked by git, and is not changed: it must call the gate", hint=lines(shims.GATE)
            )


def _refuse_directory(place: Place, where: str) -> None:
    directory = place.directory
    above = next(folder for folder in (directory, *directory.parents) if os.path.lexists(folder))
    if not above.is_dir():
        hint = unset(place.scope) if place.setting else "move it away"
        raise BadInput(f'{where}, and "{above}" is no directory', hint=hint)
    for folder in dict.fromkeys((above, directory.parent if above == directory else above)):
        if not os.access(folder, os.W_OK | os.X_OK):
            said = f'hooks cannot be put into "{directory}": "{folder}" may not be written to'
            raise CannotTell(said, hint=f"ls -ld {folder}")
    for event in shims.EVENTS:
        path = directory / event
        if path.exists() and not path.is_file():
            what = "a directory" if path.is_dir() else "no file"
            raise BadInput(f'"{path}" is {what}', hint="move it away")


def lines(event: str) -> str:
    """What a hook of somebody else has to have in it, so that it asks the gate where git-evals is installed."""
    call = "input=$(cat); printf '%s\\n' \"$input\" | sh" if event in shims.FED else "sh"
    found = f"evals=$(git rev-parse --git-common-dir)/{shims.SCRIPTS}/{event}"
    return f'add to it: {found}; if [ -e "$evals" ]; then {call} "$evals" "$@" || exit 1; fi'


def unset(scope: str) -> str:
    """The command that removes core.hooksPath where it is set."""
    where = f"--{scope} " if scope in ("global", "system", "worktree") else ""
    return f"git config {where}--unset core.hooksPath"
