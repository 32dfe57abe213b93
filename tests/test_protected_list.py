"""The list of protected branches follows the trust branch, by whichever way that moves, and knows odd names."""

from pathlib import Path

import pytest

from tests.conftest import Place, evals, with_task_branch

WIDER = "[main, 'release/*']"


def _listed(place: Place) -> str:
    return (place.path / ".git" / "git-evals" / "protected").read_text()


def _widened(place: Place) -> str:
    config = (place.path / ".gitevals.yaml").read_text()
    return config.replace("[main]", WIDER)


@pytest.mark.slow
def test_the_list_follows_what_a_colleague_delivered(a_guarded_project: Place, tmp_path: Path) -> None:
    place = a_guarded_project
    place.git("clone", "-q", "--bare", ".", "../remote.git")
    place.git("remote", "add", "origin", "../remote.git")
    place.git("clone", "-q", "../remote.git", "../colleague")
    colleague = Place(tmp_path / "colleague")
    colleague.commit({".gitevals.yaml": _widened(colleague)}, "protect releases")
    colleague.git("push", "-q", "origin", "main")
    place.git("fetch", "-q")
    assert "release" not in _listed(place)
    place.git("merge", "-q", "--ff-only", "origin/main")
    assert "refs/heads/release/*" in _listed(place)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["git reset -q --hard wide", "git merge -q wide", "git update-ref HEAD wide"])
def test_the_list_follows_the_first_configuration(command: str, a_project: Place) -> None:
    place = a_project
    place.git("branch", "wide")
    place.git("reset", "-q", "--hard", "main~1")
    assert evals(place, "hooks", "install").code == 0
    place.git("switch", "-q", "wide")
    place.commit({".gitevals.yaml": _widened(place)}, "protect releases")
    place.git("switch", "-q", "main")
    place.git("branch", "release/1", "main")
    assert place.attempt("sh", "-ec", command).returncode == 0
    assert "refs/heads/release/*" in _listed(place)
    with_task_branch(place)
    assert place.attempt("git", "branch", "-D", "release/1").returncode == 0, "its own tip has no configuration"


@pytest.mark.slow
def test_the_list_follows_the_setting_when_the_hooks_are_installed_again(a_guarded_project: Place) -> None:
    place = a_guarded_project
    place.git("branch", "trunk")
    place.git("config", "evals.trustBranch", "trunk")
    assert evals(place, "hooks", "install").code == 0
    assert "refs/heads/trunk" in _listed(place)
    refused = place.attempt("git", "branch", "-D", "trunk")
    assert b"would be deleted" in refused.stderr


ODD = (b"release/it's", b'release/"q"', b"release/$(x)", b"release/\xc3\xbc", b"release/\xff", b"release/a;b",
       b"release/-n", b"release/%s", b"release/a/b", b"release/#", b"release/{a,b}", b"release/`x`")  # fmt: skip


@pytest.mark.slow
def test_branches_of_a_pattern_are_protected_whatever_they_are_called(a_project: Place) -> None:
    place = a_project
    place.commit({".gitevals.yaml": _widened(place)}, "protect releases")
    assert evals(place, "hooks", "install").code == 0
    with_task_branch(place)
    for raw in ODD:
        name = raw.decode("utf-8", "surrogateescape")
        place.git("branch", "--", name, "main") if not name.startswith("-") else None
        refused = place.attempt("git", "update-ref", f"refs/heads/{name}", "task/42")
        assert refused.returncode != 0, name
        assert b"git-evals: refused: refs/heads/release/" in refused.stderr
        assert b"hint: git evals run" in refused.stderr
        place.git("switch", "-q", name)
        refused = place.attempt("git", "merge", "-q", "--ff-only", "task/42")
        assert b"undo: git reset --merge" in refused.stderr, refused.stderr.decode()
        place.git("reset", "-q", "--merge")
        assert b"would be deleted" in place.attempt("git", "branch", "-m", "away").stderr
        assert not (place.path / "x").exists()
    assert place.attempt("git", "branch", "release/9", "task/42").returncode != 0
    place.git("branch", "release/9", "main")
    place.git("branch", "releases", "task/42")


def test_what_a_protected_branch_stands_for_is_protected_too(a_project: Place) -> None:
    place = a_project
    place.git("branch", "-m", "main", "trunk")
    place.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    assert evals(place, "hooks", "install").code == 0
    assert "refs/heads/trunk" in _listed(place)
    place.git("switch", "-q", "--detach")
    change = place.commit({"unproven": "1\n"})
    main = place.git("rev-parse", "main")
    for name in ("main", "trunk"):
        assert b"git-evals: refused" in place.attempt("git", "update-ref", f"refs/heads/{name}", change).stderr
        assert place.git("rev-parse", "main") == main
    assert "is a symbolic ref to refs/heads/trunk" in evals(place, "doctor").out
