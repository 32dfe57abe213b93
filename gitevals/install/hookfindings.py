"""What the doctor says of the hooks: how each stands, who else has some, and what keeps ours from being run."""

import os
from collections.abc import Callable
from pathlib import Path

from gitevals.git.repo import Repo
from gitevals.install import configured, displaced, hooks, places, shims
from gitevals.install.finding import Finding, State
from gitevals.install.managers import OTHER, manager
from gitevals.install.places import Place
from gitevals.session import Session

_INSTALL = "git evals hooks install"
_TEXTS = {
    "installed": "installed",
    "left": "left to hooks that git tracks",
    "outdated": "of another version or installation",
    "absent": "absent",
    "foreign": "somebody else's",
    "disabled": "switched off by a setting",
}


def examine(session: Session) -> list[Finding]:
    """Every finding about the hooks of one repository."""
    repo = session.repo
    found = _of_states(repo)
    for look in _LOOKS:
        found += look(repo)
    for place in places.places(repo):
        found += [finding for of_place in _PLACE_LOOKS for finding in of_place(repo, place)]
    return found


def _problem(text: str, repair: str = _INSTALL) -> Finding:
    return Finding(name="hooks", state=State.PROBLEM, text=text, repair=repair)


def _note(text: str, repair: str = "") -> Finding:
    return Finding(name="hooks", state=State.NOTE, text=text, repair=repair)


def _of_states(repo: Repo) -> list[Finding]:
    by_state: dict[tuple[str, str], list[str]] = {}
    for entry in hooks.status(repo):
        where = "" if entry.state == "absent" else os.path.dirname(entry.path)
        by_state.setdefault((entry.state, where), []).append(entry.event)
    return [_of_state(state, where, ", ".join(events)) for (state, where), events in by_state.items()]


def _of_state(state: str, where: str, events: str) -> Finding:
    text = f"{_TEXTS[state]}: {events}" + (f" (in {where})" if where else "")
    if state in hooks.FINE:
        return Finding(name="hooks", state=State.OK, text=text)
    return _problem(text, "" if state == "disabled" else _INSTALL)


def _silenced(repo: Repo) -> list[Finding]:
    found = configured.settings(repo)
    named = [event for event in shims.EVENTS if f"hook.git-evals-{event}.event" in found]
    off = dict.fromkeys(name for name in (configured.disabled(repo, event) for event in named) if name)
    return [_problem(f"{name} is false, so git does not run the hook", f"git config --unset {name}") for name in off]


def _unknown(repo: Repo) -> list[Finding]:
    if not configured.settings(repo) or configured.known(repo):
        return []
    return [_problem("they are in git's configuration, which the git on PATH is too old to look at for hooks")]


def _twice(repo: Repo) -> list[Finding]:
    if not configured.settings(repo) or not configured.known(repo):
        return []
    paths = [place.directory / shims.GATE for place in places.places(repo)]
    twice = [str(path) for path in paths if shims.is_ours(path) and os.access(path, os.X_OK)]
    return [_note(f"installed both ways, so each movement is judged twice: {path}", _INSTALL) for path in twice]


def _interpreters(repo: Repo) -> list[Finding]:
    files = [place.directory / event for place in places.places(repo) for event in shims.EVENTS]
    files = [path for path in files if shims.is_ours(path)]
    files += [path for path in (configured.script(repo, event) for event in shims.EVENTS) if path.is_file()]
    gone = {name for name in map(shims.interpreter, files) if name and not os.access(name, os.X_OK)}
    return [_problem(f"they were made for {name}, which is gone") for name in sorted(gone)]


def _beside(_: Repo, place: Place) -> list[Finding]:
    """Whose hooks run, too, and how."""
    names: dict[str, list[str]] = {}
    for event in shims.EVENTS:
        kept = displaced.displaced(place.directory, event)
        path = kept or place.directory / event
        who = "" if shims.is_ours(path) or not os.path.lexists(path) else manager(path)
        names.setdefault(who, []).append(event)
    where = f"core.hooksPath, {place.scope}: {place.setting}" if place.setting else str(place.directory)
    told = [f"hooks of {who} run, too ({where}): {', '.join(events)}" for who, events in names.items() if who]
    return [Finding(name="hooks", state=State.OK, text=text) for text in told]


def _nowhere(repo: Repo, place: Place) -> list[Finding]:
    """A core.hooksPath that its tool left behind."""
    if not place.setting:
        return []
    if not place.directory.is_dir():
        return [
            _problem(f'core.hooksPath is "{place.setting}", and there is no such directory', places.unset(place.scope))
        ]
    own = Path(repo.common_dir, "hooks")
    if own == place.directory or not own.is_dir():
        return []
    idle = sorted(path.name for path in own.iterdir() if path.suffix != ".sample" and os.access(path, os.X_OK))
    text = f'core.hooksPath is "{place.setting}", so these are never run: {", ".join(idle)} in {own}'
    return [_note(text, places.unset(place.scope))] if idle else []


def _put_aside(_: Repo, place: Place) -> list[Finding]:
    """Ours that a tool has installed itself over."""
    found = []
    for event in shims.EVENTS:
        for path in displaced.put_aside(place.directory, event):
            who = manager(place.directory / event)
            found.append(_problem(f"{who if who != OTHER else 'a tool'} put ours aside as {path}"))
    return found


def _not_executable(_: Repo, place: Place) -> list[Finding]:
    ours = [place.directory / event for event in shims.EVENTS if shims.is_ours(place.directory / event)]
    mute = [path for path in ours if not os.access(path, os.X_OK)]
    return [_problem(f"{path} is not executable, so git does not run it") for path in mute]


_LOOKS: tuple[Callable[[Repo], list[Finding]], ...] = (_silenced, _unknown, _twice, _interpreters)
_PLACE_LOOKS: tuple[Callable[[Repo, Place], list[Finding]], ...] = (_beside, _nowhere, _put_aside, _not_executable)
