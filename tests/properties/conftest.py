"""A place in which hooks and commands are asked about whatever comes."""

import pytest

from tests.conftest import Place, with_task_branch


@pytest.fixture
def with_evil(a_guarded_project: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A guarded project with a branch ``evil`` that nobody evaluated; this process stands in it, as a hook would."""
    with_task_branch(a_guarded_project)
    a_guarded_project.git("switch", "-q", "-c", "evil", "main")
    a_guarded_project.commit({"evil": "1\n"}, "evil")
    a_guarded_project.git("switch", "-q", "main")
    monkeypatch.chdir(a_guarded_project.path)
    monkeypatch.setenv("GIT_DIR", ".git")
    return a_guarded_project
