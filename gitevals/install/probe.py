"""Proof that the gate stands: git itself is made to ask it about a movement that is never carried out."""

import os

from gitevals.errors import EvalsError
from gitevals.git import run
from gitevals.git.repo import Repo
from gitevals.install.finding import Finding, State
from gitevals.model.contract import Mode

_INSTALL = "git evals hooks install"
_VOICE = "git-evals: "


def probe(repo: Repo, directory: str, ref: str, tip: str, mode: Mode) -> Finding:
    """Whether git asks the gate in the work tree at ``directory`` when the protected ``ref`` is to be deleted.

    The deletion is prepared, which is when the hook is asked, and aborted whatever it says; no word of the input
    commits it. For as long as the hook takes, the ref is locked against others.
    """
    if not os.path.isdir(directory):
        text = f"the work tree {directory} is not there"
        return Finding(name="gate", state=State.NOTE, text=text, repair="git worktree prune")
    asked = f"start\ndelete {ref} {tip}\nprepare\nabort\n".encode("utf-8", "surrogateescape")
    # A git directory that stands alone may be out of bounds unless it is named (safe.bareRepository).
    named = [f"--git-dir={directory}"] if directory == repo.common_dir else []
    try:
        # Killed in the middle, git would leave the ref locked.
        done = run.run_to_its_end(
            [*named, "update-ref", "--stdin"], env=repo.env, cwd=directory, stdin=asked, accept=range(256)
        )
    except EvalsError as error:
        return Finding(name="gate", state=State.PROBLEM, text=f"{directory} cannot be probed: {error.message}")
    return _judged(directory, ref, mode, done)


def _judged(directory: str, ref: str, mode: Mode, done: run.Completed) -> Finding:
    said = [row.strip() for row in done.stderr.splitlines() if row.strip()]
    if any(row.startswith(f"{_VOICE}cannot be run") for row in said):
        text = f"{directory}: the hook cannot start git-evals, so it refuses every movement of a protected branch"
        return Finding(name="gate", state=State.PROBLEM, text=text, repair=_INSTALL)
    if any(row.startswith(_VOICE) and row.endswith("is missing, so this is refused") for row in said):
        text = f"{directory}: the script of the hook is gone, so no branch can move"
        return Finding(name="gate", state=State.PROBLEM, text=text, repair=_INSTALL)
    spoke = any(row.startswith((f"{_VOICE}refused", f"{_VOICE}allowed")) for row in said)
    if done.status == 0 and not spoke:
        text = f"{directory}: git asks nobody before it moves {ref}"
        return Finding(name="gate", state=State.PROBLEM, text=text, repair=_INSTALL)
    if not spoke:
        text = f"{directory}: the gate was not reached: {said[-1] if said else f'exit {done.status}'}"
        return Finding(name="gate", state=State.PROBLEM, text=text, repair="run `git evals doctor` again")
    if done.status == 0 and mode is Mode.ENFORCE:
        text = f"{directory}: the hook runs, and would let {ref} be deleted"
        return Finding(name="gate", state=State.PROBLEM, text=text, repair=_INSTALL)
    answer = "refused" if done.status else f"allowed with a note, as mode {mode} has it"
    return Finding(name="gate", state=State.OK, text=f"{directory}: a deletion of {ref} was tried and {answer}")
