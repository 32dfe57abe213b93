"""`git evals merge`: integrate, evaluate what is missing, and move the target by compare-and-swap."""

import os
import tempfile
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from gitevals import gate, integrate, verify
from gitevals.errors import BadInput, GitFailed, Refused
from gitevals.evaluate.assemble import Examined
from gitevals.evaluate.change import Change, Manner
from gitevals.evaluate.examine import examine, verification_alone
from gitevals.evaluate.run import run
from gitevals.git import history, refs
from gitevals.git import run as git
from gitevals.git import scratch as scratches
from gitevals.git.repo import Repo, discover, environment
from gitevals.git.worktrees import worktrees
from gitevals.integrate import Candidate
from gitevals.model.contract import Mode
from gitevals.model.decision import Decision
from gitevals.model.evaluation import Stored
from gitevals.session import Session
from gitevals.spans import TRAILER, Movement, task_of_branch, trailers_of
from gitevals.targets import HEADS, Head, Target

_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


class Shape(StrEnum):
    """What the target gets: a merge commit, the head itself where possible, or one commit of the whole change."""

    NO_FF = "no-ff"
    FF = "ff"
    SQUASH = "squash"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What to merge and how; ``message`` replaces the usual one."""

    target: Target
    head: Head
    tasks: tuple[str, ...] = ()
    shape: Shape = Shape.NO_FF
    message: str = ""


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a merge: the decision, the target's new tip if it moved, the evaluations it rests on."""

    decision: Decision
    commit: str | None = None
    evaluations: tuple[Stored, ...] = ()


def expect(session: Session, head: Head, expected: str) -> None:
    """Refuse unless the branch still stands at the commit the caller looked at."""
    wanted = history.commit_of(session.repo, expected)
    if wanted != head.commit:
        raise Refused(
            f"{head.branch} is at {head.commit[:12]}, not at {expected}",
            hint="look at what came since, then expect that commit",
        )


def merge(session: Session, wish: Wish, manner: Manner) -> Merged:
    """Bring the change into its target if the gate allows it; a refusal leaves nothing behind."""
    worktree = _worktree(session.repo, wish.target.ref)
    if worktree is not None:
        _refuse_unready(worktree, wish)
    tasks = wish.tasks or _named(session, wish)
    wish = msgspec.structs.replace(wish, tasks=tasks)
    examined = [examine(session, wish.target, task) for task in tasks] or [verification_alone(wish.target)]
    evaluations = _evaluated(session, wish, examined, manner)
    made = _candidate(session, wish)
    if made is None:
        return Merged(decision=verify.of_change(session, wish.target, wish.head, tasks), evaluations=tuple(evaluations))
    movement = Movement(
        ref=wish.target.ref, old=wish.target.tip, new=made, source=wish.head.branch or "", into=wish.target.option
    )
    decision = gate.judge(verify.grounds(session, also=wish.target.ref), movement)
    if not decision.allowed:
        return Merged(decision=decision, evaluations=tuple(evaluations))
    _move(session.repo, wish, made, worktree)
    return Merged(decision=decision, commit=made, evaluations=tuple(evaluations))


def _named(session: Session, wish: Wish) -> tuple[str, ...]:
    """The tasks of a change: its commits' trailers, else its branch's name."""
    apart = history.divergence(session.repo, wish.target.tip, wish.head.commit, trailer=TRAILER)
    movement = Movement(ref=wish.target.ref, old=wish.target.tip, new=wish.head.commit)
    named = trailers_of(verify.grounds(session, also=wish.target.ref), movement, apart.ahead)
    by_branch = task_of_branch(wish.target.base.config, wish.head.branch or "")
    return named or ((by_branch,) if by_branch else ())


def _evaluated(session: Session, wish: Wish, examined: Sequence[Examined], manner: Manner) -> list[Stored]:
    config = wish.target.base.config
    nothing_to_run = not config.verify and (not wish.tasks or config.mode is Mode.OFF)
    if nothing_to_run:
        return []
    return run(session, Change(target=wish.target, head=wish.head), examined, manner)


def _worktree(repo: Repo, ref: str) -> Repo | None:
    """The work tree that has ``ref`` checked out, or None."""
    if repo.worktree and repo.text("symbolic-ref", "--quiet", "HEAD", accept=(0, 1)) == ref:
        return repo  # git does not list the work tree of a git directory that is kept apart from it
    for tree in worktrees(repo):
        if tree.branch == ref and not tree.bare and os.path.isdir(tree.path):
            return discover(tree.path, environment(repo.env))
    return None


def _in(worktree: Repo, *arguments: str) -> git.Completed:
    """What git does in ``worktree``; it is told the git directory only where it would not find it by itself.

    Hooks inherit what git was told, and a program in a hook that makes a repository of its own would remake this one.
    """
    env, place = environment(worktree.env), worktree.worktree
    asked = git.run(["rev-parse", "--absolute-git-dir"], env=env, cwd=place, accept=range(256))
    found = os.path.realpath(os.fsdecode(asked.stdout.removesuffix(b"\n"))) == os.path.realpath(worktree.git_dir)
    told = [] if found and asked.status == 0 else [f"--git-dir={worktree.git_dir}"]
    return git.run_to_its_end([*told, *arguments], env=worktree.env, cwd=place, accept=range(256))


def _refuse_unready(worktree: Repo, wish: Wish) -> None:
    for name, what in _IN_PROGRESS.items():
        if refs.is_under_way(worktree, name):
            raise Refused(f"{what} is in progress in {worktree.worktree}", hint="finish or abort it first")
    # A merge leaves alone what stands in a submodule; only its entry in the index could be in the way.
    wanted = ("--untracked-files=all", "--no-renames", "--ignore-submodules=all")
    listed = worktree.run("status", "--porcelain", "-z", *wanted).stdout
    staged = worktree.run("diff-index", "--cached", "--name-only", "-z", "--no-renames", "HEAD").stdout
    dirty = {*(entry[3:] for entry in scratches.fields(listed)), *scratches.fields(staged)}
    base = history.merge_base(worktree, wish.target.tip, wish.head.commit) or wish.target.tip
    touched = set(history.changed_paths(worktree, base, wish.head.commit))
    clashing = sorted(dirty & touched)
    if clashing:
        shown = ", ".join(clashing[:5]) + (f" and {len(clashing) - 5} more" if len(clashing) > 5 else "")
        raise Refused(
            f"uncommitted changes in {worktree.worktree} would be overwritten: {shown}",
            hint="commit or stash them first",
        )


def _candidate(session: Session, wish: Wish) -> str | None:
    """The commit that the target is to move to, or None where the change does not merge."""
    ready = integrate.plan(session.repo, base=wish.target.tip, head=wish.head.commit)
    if ready is not None:
        if wish.shape is Shape.FF:
            return wish.head.commit
        return _commit(session, wish, ready)
    with scratches.scratch(session.repo, directory=session.scratch_directory()) as place:
        candidate = integrate.in_scratch(place, base=wish.target.tip, head=wish.head.commit)
        if candidate.tree is None:
            return None
        _import_tree(session.repo, place.repo, candidate)
        return _commit(session, wish, candidate)


def _import_tree(repo: Repo, scratch: Repo, candidate: Candidate) -> None:
    """Bring the trees and blobs that only the scratch merge has into the repository."""
    wanted = f"{candidate.tree}\n^{candidate.base}\n" + "".join(f"^{head}\n" for head in candidate.heads)
    packed = scratch.run("pack-objects", "--revs", "--stdout", "-q", stdin=wanted.encode()).stdout
    repo.run("unpack-objects", "-q", stdin=packed)


def _commit(session: Session, wish: Wish, candidate: Candidate) -> str:
    parents = [wish.target.tip, *(() if wish.shape is Shape.SQUASH else candidate.heads)]
    options = [option for parent in parents for option in ("-p", parent)]
    signed = session.repo.text("config", "--type=bool", "--get", "commit.gpgSign", accept=(0, 1)) == "true"
    with tempfile.TemporaryDirectory(prefix="git-evals-message-") as place:
        file = os.path.join(place, "MERGE_MSG")
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as text:
            text.write(_message(session, wish))
        _run_message_hook(session.repo, file)
        arguments = ["commit-tree", str(candidate.tree), *options, *(["-S"] if signed else []), "-F", file]
        return session.repo.text(*arguments)


def _message(session: Session, wish: Wish) -> str:
    name = wish.head.branch or wish.head.commit[:12]
    short = wish.target.ref.removeprefix(HEADS)
    usual = (
        f"Squash branch '{name}' into {short}" if wish.shape is Shape.SQUASH else f"Merge branch '{name}' into {short}"
    )
    trailers = [option for task in wish.tasks for option in ("--trailer", f"{TRAILER}: {task}")]
    rules = ("--where=end", "--if-exists=addIfDifferent", "--if-missing=add")
    arguments = (*history.SETTLED, "interpret-trailers", *rules, *trailers)
    done = session.repo.run(*arguments, stdin=os.fsencode(f"{wish.message or usual}\n"))
    return os.fsdecode(done.stdout)


def _run_message_hook(repo: Repo, file: str) -> None:
    try:
        repo.run("hook", "run", "--ignore-missing", "commit-msg", "--", file)
    except GitFailed as error:
        raise Refused(
            f"the commit-msg hook refuses the message: {error.stderr.strip()}", hint="say it with -m"
        ) from error


def _move(repo: Repo, wish: Wish, made: str, worktree: Repo | None) -> None:
    """Move the target by compare-and-swap; a work tree that has it checked out is brought along by git itself."""
    if worktree is None:
        if not refs.update(repo, wish.target.ref, made, wish.target.tip):
            raise _moved(wish)
        return
    if refs.values(repo, wish.target.ref).get(wish.target.ref) != wish.target.tip:
        raise _moved(wish)
    try:
        done = _in(worktree, "merge", "--ff-only", "--no-squash", "--commit", "--no-stat", made)
    except KeyboardInterrupt:
        _bring_back(repo, wish, made, worktree)
        raise
    if done.status != 0 or refs.values(repo, wish.target.ref).get(wish.target.ref) != made:
        _bring_back(repo, wish, made, worktree)
        raise Refused(
            f"git did not move {wish.target.ref}: {done.stderr.strip() or done.stdout.decode().strip()}",
            hint="the work tree and the branch are as they were",
        )


def _bring_back(repo: Repo, wish: Wish, made: str, worktree: Repo) -> None:
    """Take out of the work tree what git put there before it was kept from moving the branch; other work stays.

    Where git had not begun there is nothing to take out, and git then changes nothing.
    """
    if refs.values(repo, wish.target.ref).get(wish.target.ref) == wish.target.tip:
        _in(worktree, "read-tree", "-m", "-u", made, wish.target.tip)


def _moved(wish: Wish) -> Refused:
    return Refused(f"{wish.target.ref} has moved meanwhile", hint="run the same command again")


def check_shape(*, ff: bool, no_ff: bool, squash: bool) -> Shape:
    """The one shape that was asked for."""
    if ff + no_ff + squash > 1:
        raise BadInput("--ff, --no-ff and --squash exclude each other", hint="name one of them")
    return Shape.SQUASH if squash else Shape.FF if ff else Shape.NO_FF
