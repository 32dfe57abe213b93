"""`git evals doctor`: whether this clone is set up so that the gate stands, and what lies about in it."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping

from gitevals import authority, cache, protection
from gitevals.config import NO_REPOSITORY, PATH
from gitevals.contracts.reading import BaseConfig, config_at
from gitevals.contracts.stating import Source, content, stated
from gitevals.errors import ConfigInvalid, EvalsError
from gitevals.evidence.reading import LEDGER_PATTERNS, LOGS
from gitevals.git import refs, repo, scratch
from gitevals.install import hookfindings, places
from gitevals.install.finding import Finding, State
from gitevals.install.leftovers import locks, unfinished
from gitevals.install.probe import probe
from gitevals.install.records import records
from gitevals.install.repositoryfindings import is_writable, repository
from gitevals.listing import task_ids
from gitevals.model.task import check_task_id
from gitevals.session import Session

_NAMED_LIMIT = 5
_INIT = "git evals init"
_INSTALL = "git evals hooks install"


def examine(session: Session, *, clean: bool) -> list[Finding]:
    """Every finding; ``clean`` removes what killed commands of ours left behind, and nothing else is changed."""
    found: list[Finding] = []
    for name, look in _LOOKS.items():
        try:
            found += look(session)
        except EvalsError as error:
            found.append(Finding(name=name, state=State.PROBLEM, text=error.message, repair=error.hint))
    for left in (locks, unfinished, _scratch):
        found += left(session, clean=clean)
    return found


def _programs(session: Session) -> list[Finding]:
    version = ".".join(str(part) for part in repo.check_version(session.repo.env))
    python = ".".join(str(part) for part in sys.version_info[:3])
    return [
        Finding(name="git", state=State.OK, text=session.repo.text("version").removeprefix("git version ") or version),
        Finding(name="python", state=State.OK, text=f"{python} at {sys.executable}"),
    ]


def _bases(session: Session) -> dict[str, BaseConfig | ConfigInvalid | None]:
    """What each protected branch's tip bears for a configuration: the parsed one, why it is none, or nothing."""
    named = protection.patterns(session.repo, session.objects)
    tips = refs.values(session.repo, *protection.prefixes(named))
    found: dict[str, BaseConfig | ConfigInvalid | None] = {}
    for ref in sorted(ref for ref in tips if protection.matches(named, ref)):
        try:
            found[ref] = config_at(session.repo, session.objects, tips[ref])
        except ConfigInvalid as error:
            found[ref] = error
    return found


def _trust(session: Session) -> list[Finding]:
    name = "trusted branch"
    trust = protection.trust_branch(session.repo)
    if trust is None:
        return [Finding(name=name, state=State.PROBLEM, text="none is chosen, so nothing is protected", repair=_INIT)]
    bases = _bases(session)
    if trust not in bases:
        copy = authority.copies(session.repo, [trust]).get(trust)
        where = f"only the remote has it, at {copy[:12]}" if copy else "there is no such branch"
        state = State.NOTE if copy else State.PROBLEM
        repair = "" if copy else "git config evals.trustBranch BRANCH"
        return [Finding(name=name, state=state, text=f"{trust}: {where}", repair=repair)]
    found = [_of_base(ref, base, trusted=ref == trust) for ref, base in bases.items()]
    return [entry for entry in found if entry.state is not State.OK or entry.text.startswith(trust)]


def _symbolic(session: Session) -> list[Finding]:
    """Protected branches that are other branches under a second name: evidence is about the branch that moves."""
    named = protection.patterns(session.repo, session.objects)
    return [
        Finding(
            name="protected branch",
            state=State.NOTE,
            text=f"{ref} is a symbolic ref to {target}: what enters is judged as a movement of {target}",
            repair=f"name {target.removeprefix(protection.HEADS)} in `protect:`, and run with `--into` it",
        )
        for ref, target in refs.targets(session.repo, *protection.prefixes(named)).items()
    ]


def _of_base(ref: str, base: BaseConfig | ConfigInvalid | None, *, trusted: bool) -> Finding:
    name = "trusted branch" if trusted else "protected branch"
    if base is None:
        state = State.PROBLEM if trusted else State.NOTE
        repair = f"commit {PATH} to {ref.removeprefix(protection.HEADS)}"
        return Finding(name=name, state=state, text=f"{ref} has no {PATH}: it is not guarded yet", repair=repair)
    if isinstance(base, ConfigInvalid):
        return Finding(name=name, state=State.PROBLEM, text=f"{ref}: {base.message}", repair=base.hint)
    return Finding(name=name, state=State.OK, text=f"{ref}, mode {base.config.mode}")


def _trusted_base(session: Session) -> BaseConfig | None:
    trust = protection.trust_branch(session.repo)
    base = _bases(session).get(trust) if trust else None
    return base if isinstance(base, BaseConfig) else None


def _configuration(session: Session) -> list[Finding]:
    name, base = "configuration", _trusted_base(session)
    if base is None:
        return []
    found = []
    if base.config.unknown:
        text = f"unknown keys: {', '.join(base.config.unknown)}"
        repair = f"remove them from {PATH}, or begin them with x-"
        found.append(Finding(name=name, state=State.NOTE, text=text, repair=repair))
    if base.config.repository == NO_REPOSITORY:
        text = "no repository id: evidence of every project without one counts here"
        repair = f"add this line to {PATH}: repository: r{secrets.token_hex(8)}"
        found.append(Finding(name=name, state=State.NOTE, text=text, repair=repair))
    found += _bindings(session, base)
    return found or [Finding(name=name, state=State.OK, text="all keys are known, all bindings fit")]


def _bindings(session: Session, base: BaseConfig) -> list[Finding]:
    """Tasks that their text or bindings keep from being evaluated, and checks that no binding names."""
    source = Source(repo=session.repo, objects=session.objects, evidence=session.evidence())
    own = [task for task in base.config.bindings if task != "*"]
    files = task_ids(session.repo, base)
    named = {name for bound in base.config.bindings.values() for names in bound.values() for name in names}
    found = [
        Finding(name="tasks", state=State.NOTE, text=f"{path} is no task: its name is no id") for path in files.misnamed
    ]
    for task in sorted({*own, *files.ids}):
        try:
            statement = stated(source, base, check_task_id(task))
            content(base.config, statement)
            named.update(name for names in (statement.bindings or {}).values() for name in names)
        except EvalsError as error:
            found.append(Finding(name="tasks", state=State.NOTE, text=error.message, repair=error.hint))
    return [*_limited(found), *_unbound([check for check in base.config.checks if check not in named])]


def _unbound(checks: list[str]) -> list[Finding]:
    if not checks:
        return []
    text = f"no criterion is bound to the checks {', '.join(checks)}: they are never run"
    return [Finding(name="bindings", state=State.NOTE, text=text, repair=f"bind or remove them in {PATH}")]


def _limited(found: list[Finding]) -> list[Finding]:
    more = len(found) - _NAMED_LIMIT
    if more <= 1:
        return found
    said = Finding(name="tasks", state=State.NOTE, text=f"and {more} more of the kind", repair="git evals tasks")
    return [*found[:_NAMED_LIMIT], said]


def _list(session: Session) -> list[Finding]:
    name, kept = "protected list", protection.read_list(session.repo)
    wanted = protection.patterns(session.repo, session.objects)
    if kept is None:
        text = "absent or cut short: the next movement of any branch writes it anew"
        return [Finding(name=name, state=State.NOTE, text=text, repair=_INSTALL)]
    if set(kept) != set(wanted):
        said = ", ".join(protection.plain(wanted)) or "nothing"
        text = f"it names {', '.join(protection.plain(kept))}, but the configuration says {said}"
        return [Finding(name=name, state=State.PROBLEM, text=text, repair=_INSTALL)]
    return [Finding(name=name, state=State.OK, text=", ".join(protection.plain(kept)))]


def _gate(session: Session) -> list[Finding]:
    trust = protection.trust_branch(session.repo)
    bases = {ref: base for ref, base in _bases(session).items() if isinstance(base, BaseConfig)}
    ref = trust if trust in bases else next(iter(bases), None)
    if ref is None:
        return [Finding(name="gate", state=State.NOTE, text="nothing is guarded yet, so nothing can be tried")]
    if not is_writable(session.repo):
        return [Finding(name="gate", state=State.NOTE, text="nothing can move here, so nothing can be tried")]
    base = bases[ref]
    return [probe(session.repo, root, ref, base.commit, base.config.mode) for root in places.roots(session.repo)]


def _disk(session: Session) -> list[Finding]:
    tips = sorted(set(refs.values(session.repo, *LEDGER_PATTERNS, LOGS).values()))
    asked = ("rev-list", "--objects", "--disk-usage", "--stdin")
    told = session.repo.run(*asked, stdin="".join(f"{tip}\n" for tip in tips).encode()).stdout if tips else b"0"
    place = cache.directory(session.repo.common_dir)
    text = f"evidence {size(int(told))} in {len(tips)} refs, side files {size(_folder_bytes(place))}"
    return [Finding(name="disk", state=State.OK, text=text)]


def _folder_bytes(place: str) -> int:
    sizes = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
    return sum(os.lstat(path).st_size for path in sizes if os.path.lexists(path))


def size(count_bytes: int) -> str:
    """A number of bytes as a person reads it."""
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count_bytes >= length:
            return f"{count_bytes / length:.1f} {unit}"
    return f"{count_bytes} bytes"


def _scratch(session: Session, *, clean: bool) -> list[Finding]:
    name = "scratch"
    try:
        left = scratch.left_behind(session.repo, session.scratch_directory())
    except EvalsError as error:
        return [Finding(name=name, state=State.PROBLEM, text=error.message, repair=error.hint)]
    found = []
    for entry in left:
        what = f"{entry.path}, {size(entry.size_bytes)}, since {entry.started}"
        if entry.running:
            found.append(Finding(name=name, state=State.OK, text=f"in use: {what}"))
        elif not clean:
            found.append(Finding(name=name, state=State.NOTE, text=f"left: {what}", repair="git evals doctor --clean"))
        else:
            scratch.remove(entry.path)
            gone = not os.path.lexists(entry.path)
            text = f"{'removed' if gone else 'could not remove'}: {what}"
            repair = "" if gone else "look at its permissions, then remove it by hand"
            found.append(Finding(name=name, state=State.OK if gone else State.NOTE, text=text, repair=repair))
    return found or [Finding(name=name, state=State.OK, text="nothing is left behind")]


_LOOKS: Mapping[str, Callable[[Session], list[Finding]]] = {
    "programs": _programs,
    "repository": repository,
    "trusted branch": _trust,
    "protected branch": _symbolic,
    "configuration": _configuration,
    "protected list": _list,
    "hooks": hookfindings.examine,
    "gate": _gate,
    "records": records,
    "disk": _disk,
}
