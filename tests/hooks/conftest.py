"""Projects with hooks."""

import shutil

import pytest

from tests.conftest import Place, evals, with_task_branch
from tests.hooks import CHANGE, knows_configured


@pytest.fixture
def as_files(a_project: Place) -> tuple[str, ...]:
    """The option that has hook files installed whatever git is there."""
    return ("--files",) if knows_configured(a_project) else ()


@pytest.fixture
def project(a_project: Place) -> Place:
    """A project with a branch ``task/42`` that nobody evaluated, all refs packed; no hooks yet."""
    with_task_branch(a_project)
    a_project.git("pack-refs", "--all")
    return a_project


@pytest.fixture
def a_proven_change(a_guarded_project: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A guarded project whose branch ``task/42`` passed; ``CHANGE`` is all that it does."""
    kept = tmp_path_factory.getbasetemp() / "made-proven-change"
    if kept.exists():
        shutil.rmtree(a_guarded_project.path)
        shutil.copytree(kept, a_guarded_project.path, symlinks=True)
        return a_guarded_project
    a_guarded_project.git("switch", "-q", "-c", "task/42")
    a_guarded_project.commit(CHANGE, "do task 42")
    a_guarded_project.git("switch", "-q", "main")
    assert evals(a_guarded_project, "run", "42").code == 0
    shutil.copytree(a_guarded_project.path, kept, symlinks=True)
    return a_guarded_project
