"""What a git hook starts. Every import here is paid for at each movement of a protected branch."""

import os
import sys
import time
from collections.abc import Iterable

# msgspec prefers this package where it is installed, and it costs as much as the interpreter's own start.
sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]

import msgspec

from gitevals import gate, protection
from gitevals.config import PATH
from gitevals.errors import CannotTell, EvalsError
from gitevals.evidence.reading import LEDGER_PATTERNS, Evidence, ledgers
from gitevals.git import history, plumbing, refs, repo
from gitevals.git.run import Started
from gitevals.model.decision import Decision
from gitevals.spans import TRAILER, Grounds, Movement

HEADS = "refs/heads/"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a hook's input: the ids as git says them, and the branch being brought in, where it is known."""

    ref: str
    old: str
    new: str
    source: str = ""


def main() -> None:
    """Answer the hook that ``sys.argv`` names; exit 0 allows, 1 refuses, anything else makes the shim refuse."""
    status = answer(sys.argv[1:])
    os._exit(status)  # taking an interpreter down in order costs as much as starting one


def answer(arguments: list[str]) -> int:
    """The exit code for one hook call."""
    event, *rest = arguments
    os.environ.pop("GIT_CONFIG_PARAMETERS", None)  # `git -c …` is meant for the command that is judged, not for us
    try:
        return _EVENTS[event](rest)
    except EvalsError as error:
        _say(f"git-evals: refused: {error.message}", *([f"  hint: {error.hint}"] if error.hint else []))
        return 1


def _say(*lines: str) -> None:
    """Say something, if anybody can hear it; that nobody can changes no decision."""
    try:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, AttributeError):
        pass


def _fields(separators: int) -> list[list[str]]:
    """The lines of a hook's input, each cut at its first blanks; names may hold any other white space."""
    raw = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    fields = [line.split(" ", separators) for line in raw.split("\n") if line]
    if any(len(line) != separators + 1 for line in fields):
        raise CannotTell("git told the hook of a ref in a way that is not known", hint="git evals doctor")
    return fields


def _here(id_length: int) -> repo.Repo:
    """The repository a hook runs in, found without starting git: hooks run at the top of the work tree."""
    git_dir = os.path.abspath(os.environ.get("GIT_DIR") or ".git")
    if not os.path.isdir(git_dir):
        return repo.discover()
    common = git_dir
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            common = os.path.normpath(os.path.join(git_dir, file.read().strip()))
    except OSError:
        pass
    return repo.Repo(
        git_dir=git_dir,
        common_dir=common,
        worktree=None,
        object_format="sha256" if id_length == 64 else "sha1",
        env=repo.environment(os.environ),
    )


def _reference_transaction(_: list[str]) -> int:
    asked = [Asked(old=old, new=new, ref=ref) for old, new, ref in _fields(2)]
    here = _here(len(asked[0].old) if asked else 40)
    named = _protected(here)
    wanted = [line for line in asked if protection.matches(named, line.ref) and not _is_housekeeping(here, line)]
    return _judge(here, named, wanted) if wanted else 0


def _protected(here: repo.Repo) -> tuple[str, ...]:
    """The protected patterns; a list that is absent or cut short is made anew."""
    named = protection.read_list(here)
    if named is not None:
        return named
    with plumbing.PlumbingObjects(here) as objects:
        return protection.refresh_list(here, objects)


def _is_housekeeping(here: repo.Repo, line: Asked) -> bool:
    """Whether what looks like a deletion deletes nothing: a ref is verified, or dropped as a file because it is packed.

    While git deletes a ref that is kept in files, it holds the lock of those that are packed.
    """
    if line.new.strip("0") or not line.old.strip("0"):
        return False
    return not any(os.path.lexists(os.path.join(here.common_dir, name)) for name in ("packed-refs.lock", "reftable"))


def _judge(
    here: repo.Repo, named: tuple[str, ...], wanted: list[Asked], *, pushed: bool = False, early: bool = False
) -> int:
    """Judge every protected line; the worst decides. The three questions to git are asked side by side."""
    wanted = _spelled(named, wanted)
    branches = [line.ref.removeprefix(HEADS) for line in wanted]
    copies = [f"refs/remotes/**/{branch}" for branch in branches]
    listing = refs.start(here, *protection.prefixes(named), *LEDGER_PATTERNS, *copies)
    first = wanted[0]
    started = None if first.new.startswith("ref:") else _start_log(here, first, pushed=pushed)
    try:
        with plumbing.PlumbingObjects(here, here.start("cat-file", "--batch", piped=True)) as objects:
            values = refs.finish(listing)
            wanted = _spelled(named, wanted, values)
            grounds = Grounds(
                repo=here,
                objects=objects,
                evidence=Evidence(objects, ledgers(values), here.common_dir),
                protected={ref: tip for ref, tip in values.items() if protection.matches(named, ref)},
                copies=_copies(here, wanted, values),
                catching_up=True,
                now_seconds=time.time(),
            )
            decisions = []
            for position, line in enumerate(wanted):
                old = line.old if pushed else values.get(line.ref, here.zero)
                log = started if position == 0 and started is not None and old != here.zero else None
                decisions.append(_of_line(grounds, line, old, log))
            if early and all(decision.allowed for decision in decisions):
                return 0  # the transaction that follows is judged too, and says what is worth saying
            return _concluded(here, grounds, decisions, pushed=pushed)
    finally:
        if started is not None and started.stdout is not None:
            started.stdout.close()
            started.wait()


def _spelled(named: tuple[str, ...], wanted: list[Asked], known: Iterable[str] = ()) -> list[Asked]:
    """Each line about the branch that it really moves, where the file system takes no notice of case."""
    return [msgspec.structs.replace(line, ref=protection.spelled(named, line.ref, known)) for line in wanted]


def _start_log(here: repo.Repo, line: Asked, *, pushed: bool) -> Started | None:
    if not line.new.strip("0") or (pushed and not line.old.strip("0")):
        return None
    return history.start_divergence(here, line.old if pushed else line.ref, line.new, trailer=TRAILER)


def _of_line(grounds: Grounds, line: Asked, old: str, log: Started | None) -> Decision:
    source = line.source or ("" if line.new.startswith("ref:") else _source(grounds, line.new))
    return gate.judge(grounds, Movement(ref=line.ref, old=old, new=line.new, source=source), log)


def _source(grounds: Grounds, new: str) -> str:
    """The branch that git says it is merging, for the name of a task."""
    heads = {name.removeprefix("GITHEAD_"): value for name, value in os.environ.items() if name.startswith("GITHEAD_")}
    named = {head: name for head, name in heads.items() if name != head}  # `git pull` has ids for names
    parents = _parents(grounds, new)[1:] if named else []
    return next((named[commit] for commit in (new, *parents) if commit in named), "")


def _parents(grounds: Grounds, commit: str) -> list[str]:
    found = grounds.objects.read_many([commit])[0]
    head = b"" if found is None else found.body.split(b"\n\n", 1)[0]
    return [row[7:].decode("utf-8", "replace") for row in head.split(b"\n") if row.startswith(b"parent ")]


def _copies(here: repo.Repo, wanted: list[Asked], values: dict[str, str]) -> dict[str, str]:
    """The authority's copy of each ref, asked for only where some remote's copy differs from the ref's own value."""
    kept = {}
    for line in wanted:
        branch = line.ref.removeprefix(HEADS)
        found = {
            name: tip
            for name, tip in values.items()
            if name.startswith("refs/remotes/") and name.endswith(f"/{branch}")
        }
        if any(tip != values.get(line.ref) for tip in found.values()):
            from gitevals import authority

            copy = found.get(f"refs/remotes/{authority.remote_of(here, line.ref)}/{branch}")
            kept.update({line.ref: copy} if copy else {})
    return kept


def _concluded(here: repo.Repo, grounds: Grounds, decisions: list[Decision], *, pushed: bool) -> int:
    allowed = all(decision.allowed for decision in decisions)
    if not pushed and allowed:
        _watch_list(grounds, decisions)
    for decision in decisions:
        if decision.reasons:
            from gitevals.report import decision as words  # what is allowed in silence needs no words

            _say(*words.lines(decision))
    if not allowed and not pushed:
        _say(*_advice(here, grounds, next(decision for decision in decisions if not decision.allowed)))
    return 0 if allowed else 1


def _advice(here: repo.Repo, grounds: Grounds, refused: Decision) -> list[str]:
    """What takes back the traces of the refused command, or what there is to know of them."""
    from gitevals import recovery, running
    from gitevals.report import text

    try:
        stopped = recovery.Stopped(
            repo=here,
            branch=refused.ref.removeprefix(HEADS),
            new=refused.new,
            parent_count=len(_parents(grounds, refused.new)),
        )
        found = recovery.advice(stopped, os.environ, running.running_command(os.getppid()))
    except EvalsError:
        return []
    told = {"undo": found.undo, "left": found.left}
    return [f"  {name}: {text.plain(said)}" for name, said in told.items() if said]


def _watch_list(grounds: Grounds, decisions: list[Decision]) -> None:
    """Have the protected list refreshed after this transaction if it changes the trust branch's configuration."""
    for decision in decisions:
        if decision.new.strip("0") and not decision.new.startswith("ref:"):
            names = [f"{commit}:{PATH}" for commit in (decision.old, decision.new)]
            before, after = (found and found.id for found in grounds.objects.read_many(names))
            if before != after:
                protection.mark_stale(grounds.repo)


def _refresh(_: list[str]) -> int:
    here = repo.discover()
    with plumbing.PlumbingObjects(here) as objects:
        protection.refresh_list(here, objects)
    return 0


def _pre_push(arguments: list[str]) -> int:
    asked = []
    for old, new, ref, source in _fields(3):
        asked.append(Asked(old=old, new=new, ref=ref, source=source.removeprefix(HEADS)))
    here = _here(len(asked[0].new) if asked else 40)
    named = _protected(here)
    wanted = [line for line in asked if protection.matches(named, line.ref)]
    return _judge(here, named, wanted, pushed=True) if wanted else 0


def _pre_commit(arguments: list[str]) -> int:
    from gitevals import candidate

    # What replaces the tip is no commit on top of it: the transaction that follows shows what it is.
    if "--amend" in candidate.typed():
        return 0
    here = repo.discover()
    return _of_index(here, arguments[0], candidate.heads_under_way(here))


def _pre_merge_commit(arguments: list[str]) -> int:
    from gitevals import candidate

    heads = candidate.heads_named(os.environ)
    return 0 if heads is None else _of_index(repo.discover(), arguments[0], heads)


def _of_index(here: repo.Repo, branch: str, heads: list[str]) -> int:
    """Judge the commit that is about to be made, by making one of the same tree and parents that no ref names."""
    from gitevals import candidate

    tip = here.text("rev-parse", "--verify", "--quiet", "HEAD^{commit}", accept=(0, 1, 128))
    if not tip:
        return 0
    made = candidate.made(here, [tip, *heads])
    named = _protected(here)
    if not protection.matches(named, branch):
        return 0
    return _judge(here, named, [Asked(ref=branch, old=tip, new=made)], early=True)


_EVENTS = {
    "reference-transaction": _reference_transaction,
    "refresh": _refresh,
    "pre-push": _pre_push,
    "pre-commit": _pre_commit,
    "pre-merge-commit": _pre_merge_commit,
}
