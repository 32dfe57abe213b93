"""The hooks in a repository: put in place beside whatever is there, and looked at."""

import os
from pathlib import Path

import msgspec

from gitevals import authority, protection
from gitevals.errors import BadInput
from gitevals.git.objects import Objects
from gitevals.git.repo import Repo
from gitevals.install import configured, displaced, places, receipt, removal, shims
from gitevals.install.managers import manager
from gitevals.install.places import Place
from gitevals.install.receipt import Receipt

EVENTS = shims.EVENTS
FINE = ("installed", "left")


class HookStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of one directory.

    ``state`` is ``installed``, ``outdated``, ``absent``, ``foreign`` (somebody else's alone), ``left`` (to a file that
    git tracks) or ``disabled``; ``way`` is ``configured`` or ``file``; ``beside`` names whose hook runs, too.
    """

    event: str
    path: str
    state: str
    way: str
    beside: str = ""


def status(repo: Repo) -> list[HookStatus]:
    """How each hook stands, in each directory where git looks."""
    known, found = configured.known(repo), configured.settings(repo)
    files = [entry for place in places.places(repo) for entry in _of_place(repo, place)]
    ours = any(entry.state in ("installed", "outdated") for entry in files)
    return files if not known or (ours and not found) else [_of_configured(repo, event, found) for event in EVENTS]


def _of_configured(repo: Repo, event: str, found: dict[str, str]) -> HookStatus:
    state = configured.state(repo, event, found)
    return HookStatus(event=event, path=str(configured.script(repo, event)), state=state, way="configured")


def _of_place(repo: Repo, place: Place) -> list[HookStatus]:
    tracked = places.tracked(repo, place.directory)
    return [_of_file(repo, place, event, tracked=event in tracked) for event in EVENTS]


def _of_file(repo: Repo, place: Place, event: str, *, tracked: bool) -> HookStatus:
    path = place.directory / event
    kept = displaced.displaced(place.directory, event)
    state, who = _state(repo, place, event), manager(kept) if kept else ""
    if state == "foreign":
        state, who = "left" if tracked and event != shims.GATE else "foreign", manager(path)
    return HookStatus(event=event, path=str(path), state=state, way="file", beside=who)


def _state(repo: Repo, place: Place, event: str) -> str:
    path = place.directory / event
    if not os.path.lexists(path):
        return "absent"
    if shims.is_ours(path):
        kind = shims.Kind.SHARED if place.shared else shims.Kind.HOOK
        whole = path.read_text(errors="replace") == shims.source(event, kind) and os.access(path, os.X_OK)
        return "installed" if whole else "outdated"
    if not places.calls_ours(path, event):
        return "foreign"
    script = configured.script(repo, event)
    whole = script.is_file() and script.read_text(errors="replace") == shims.source(event, shims.Kind.SCRIPT)
    return "installed" if whole else "outdated"


def install(repo: Repo, objects: Objects, *, shared: bool = False, files: bool = False) -> list[HookStatus]:
    """Put every hook in place, or none: what stands in the way raises `BadInput` before anything is written.

    Where git knows configured hooks these are used, unless ``files`` wants hook files nonetheless; ``shared`` allows
    them in a directory that serves other repositories, too.
    """
    found = require_possible(repo, shared=shared, files=files)
    trust = _trust_to_be(repo)
    try:
        _put(repo, found, trust)
    except OSError as error:
        raise removal.half_done(error) from error
    protection.refresh_list(repo, objects)
    return status(repo)


def require_possible(repo: Repo, *, shared: bool = False, files: bool = False) -> list[Place]:
    """The directories for hook files, none where git knows others; what makes it impossible raises `BadInput`."""
    found = places.places(repo) if files or not configured.known(repo) else []
    for place in found:
        places.refuse(repo, place, shared=shared)
    shims.source(shims.GATE, shims.Kind.HOOK)
    return found


def _put(repo: Repo, found: list[Place], trust: str) -> None:
    """Write all there is to write; what becomes superfluous goes last, so that the gate stands at every moment."""
    config = Path(repo.common_dir, "config")
    before, kept = receipt.content(config), receipt.read(repo)
    earlier = removal.directories(repo, kept)
    kept = msgspec.structs.replace(
        kept,
        made=_to_make(repo, kept, found),
        trust_branch=trust or kept.trust_branch,
        directories=tuple(os.fsencode(os.path.relpath(p.directory, repo.common_dir)) for p in found if not p.shared),
    )
    receipt.write(repo, kept)
    if trust:
        repo.run("config", "--local", "evals.trustBranch", trust)
    kept = receipt.exclude(repo, kept, _overlooked(found))
    if found:
        called = [event for place in found for event in _put_files(repo, place)]
        configured.take_away(repo)
        configured.take_scripts_away(repo, kept=called)
    else:
        configured.put(repo)
    here = {place.directory for place in found}
    removal.take_files_away(repo, [directory for directory in earlier if directory not in here])
    after = receipt.content(config)
    receipt.write(repo, msgspec.structs.replace(kept, config=receipt.edited(kept.config, before, after)))


def _put_files(repo: Repo, place: Place) -> list[str]:
    """Write our hooks into one directory; the events whose hook there is another's that calls our script."""
    called = []
    tracked = places.tracked(repo, place.directory)
    kind = shims.Kind.SHARED if place.shared else shims.Kind.HOOK
    for event in EVENTS:
        path = place.directory / event
        if places.calls_ours(path, event) and not shims.is_ours(path):
            configured.put_script(repo, event)
            called.append(event)
        elif event not in tracked:
            displaced.put(place.directory, event, shims.source(event, kind))
    displaced.tidy(place.directory)
    return called


def _to_make(repo: Repo, kept: Receipt, found: list[Place]) -> tuple[bytes, ...]:
    """The directories that will be made for our files, the deepest first."""
    missing = {
        folder
        for place in found
        for folder in (place.directory, *place.directory.parents)
        if not os.path.lexists(folder)
    }
    relative = [os.fsencode(os.path.relpath(folder, repo.common_dir)) for folder in sorted(missing, reverse=True)]
    return tuple(dict.fromkeys((*relative, *kept.made)))


def _overlooked(found: list[Place]) -> list[bytes]:
    """The lines of ``info/exclude`` for our files in work trees."""
    lines: list[bytes] = []
    for place in found:
        if place.tracked_root and ".git" not in place.directory.relative_to(place.root).parts:
            folder = os.fsencode(place.directory.relative_to(place.root).as_posix())
            named = b"".join(b"\\" + bytes((char,)) if char in b"\\*?[ " else bytes((char,)) for char in folder)
            lines += [b"/" + named + b"/" + event.encode() for event in EVENTS]
            lines.append(b"/" + named + b".git-evals/")
    return list(dict.fromkeys(lines))


def _trust_to_be(repo: Repo, named: str = "") -> str:
    """The branch to trust from now on: ``named``, the remote's HEAD, the current; "" where one is chosen already."""
    if repo.setting("evals.trustBranch"):
        return ""
    current = repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128))
    name = named or (authority.head(repo) or current).removeprefix(protection.HEADS)
    if not name:
        raise BadInput("no branch is checked out", hint="`git config evals.trustBranch BRANCH` names the one to trust")
    return name


def set_trust_branch(repo: Repo, named: str = "") -> None:
    """Remember which branch's configuration is trusted, if none is yet."""
    name = _trust_to_be(repo, named)
    if name:
        repo.run("config", "--local", "evals.trustBranch", name)
