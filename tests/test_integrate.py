from pathlib import Path

import pytest

from gitevals.errors import BadInput
from gitevals.git.repo import Repo, discover
from gitevals.git.scratch import checkout, scratch
from gitevals.integrate import Candidate, given, in_scratch, plan
from tests.conftest import Place


@pytest.fixture
def a_fork(a_repo: Place) -> Place:
    """``main`` and ``topic`` have one commit each since they parted; ``ahead`` is one commit over ``main``."""
    a_repo.git("checkout", "-q", "-b", "topic")
    a_repo.commit({"topic": "t\n"}, "topic")
    a_repo.git("checkout", "-q", "main")
    a_repo.commit({"main": "m\n"}, "main")
    a_repo.git("checkout", "-q", "-b", "ahead")
    a_repo.commit({"ahead": "a\n"}, "ahead")
    a_repo.git("checkout", "-q", "main")
    return a_repo


def repo_of(place: Place) -> Repo:
    return discover(str(place.path))


def tree_of(place: Place, commit: str) -> str:
    return place.git("rev-parse", f"{commit}^{{tree}}")


def id_of(place: Place, name: str) -> str:
    return place.git("rev-parse", name)


def test_a_head_over_its_base_is_checked_out_itself(a_fork: Place) -> None:
    main, ahead = id_of(a_fork, "main"), id_of(a_fork, "ahead")
    assert plan(repo_of(a_fork), base="main", head="ahead") == Candidate(
        base=main,
        base_tree=tree_of(a_fork, "main"),
        heads=(ahead,),
        commit=ahead,
        tree=tree_of(a_fork, "ahead"),
        strategy="none",
    )


def test_parted_branches_need_a_real_merge(a_fork: Place) -> None:
    assert plan(repo_of(a_fork), base="main", head="topic") is None


@pytest.mark.parametrize(("base", "head"), [("ahead", "main"), ("main", "main"), ("main", "main^")])
def test_what_is_already_in_the_base_is_nothing_to_merge(base: str, head: str, a_fork: Place) -> None:
    with pytest.raises(BadInput, match="nothing to merge"):
        plan(repo_of(a_fork), base=base, head=head)


@pytest.mark.parametrize("name", ["nowhere", "--all", "", "HEAD:README", "main..topic", "odd\x1b[31m"])
def test_what_names_no_commit_is_bad_input(name: str, a_fork: Place) -> None:
    for ends in ({"base": "main", "head": name}, {"base": name, "head": "main"}):
        with pytest.raises(BadInput, match="not two commits") as caught:
            plan(repo_of(a_fork), **ends)
        assert "\x1b" not in caught.value.message


def test_unrelated_histories_are_left_to_the_merge(a_fork: Place) -> None:
    alone = a_fork.git("commit-tree", "-m", "alone", "HEAD^{tree}")
    assert plan(repo_of(a_fork), base="main", head=alone) is None


def test_a_merge_over_the_base_is_taken_as_resolved(a_fork: Place) -> None:
    a_fork.git("checkout", "-q", "-b", "resolved", "main")
    a_fork.git("merge", "-q", "--no-ff", "--no-edit", "topic")
    resolved = id_of(a_fork, "resolved")
    assert given(repo_of(a_fork), base="main", commit="resolved") == Candidate(
        base=id_of(a_fork, "main"),
        base_tree=tree_of(a_fork, "main"),
        heads=(id_of(a_fork, "topic"),),
        commit=resolved,
        tree=tree_of(a_fork, resolved),
        strategy="given",
    )


def test_an_octopus_over_the_base_names_all_its_heads(a_fork: Place) -> None:
    parents = [word for name in ("main", "topic", "ahead") for word in ("-p", name)]
    octopus = a_fork.git("commit-tree", "-m", "octopus", *parents, "topic^{tree}")
    found = given(repo_of(a_fork), base="main", commit=octopus)
    assert found
    assert (found.heads, found.strategy) == ((id_of(a_fork, "topic"), id_of(a_fork, "ahead")), "given")


def test_any_other_commit_is_planned_like_a_branch(a_fork: Place) -> None:
    a_fork.git("checkout", "-q", "topic")
    a_fork.git("merge", "-q", "--no-edit", "main")
    turned = given(repo_of(a_fork), base="main", commit="topic")
    assert turned
    assert (turned.strategy, turned.heads) == ("none", (id_of(a_fork, "topic"),))
    ahead = given(repo_of(a_fork), base="main", commit="ahead")
    assert ahead
    assert (ahead.strategy, ahead.heads) == ("none", (id_of(a_fork, "ahead"),))
    assert given(repo_of(a_fork), base="ahead", commit="topic") is None
    with pytest.raises(BadInput, match="nothing to merge"):
        given(repo_of(a_fork), base="ahead", commit="main")


def test_the_scratch_merge_is_a_candidate_to_check_out(a_fork: Place) -> None:
    main, topic = id_of(a_fork, "main"), id_of(a_fork, "topic")
    with scratch(repo_of(a_fork)) as made:
        found = in_scratch(made, base=main, head=topic)
        assert found.commit
        made = checkout(made, found.commit)
        assert sorted(path.name for path in Path(made.worktree).iterdir()) == [".git", "README", "main", "topic"]
        assert made.repo.text("rev-parse", "HEAD^{tree}") == found.tree
    assert (found.base, found.base_tree, found.heads) == (main, tree_of(a_fork, "main"), (topic,))
    assert (found.strategy, found.conflicts, found.note) == ("ort", (), "")
    assert a_fork.attempt("git", "cat-file", "-e", found.commit).returncode != 0


def test_conflicts_and_unused_drivers_are_told(a_fork: Place) -> None:
    a_fork.git("checkout", "-q", "topic")
    topic = a_fork.commit({"README": "theirs\n"})
    a_fork.git("checkout", "-q", "main")
    main = a_fork.commit({"README": "ours\n", ".gitattributes": "README merge=mine\n"})
    with scratch(repo_of(a_fork)) as made:
        found = in_scratch(made, base=main, head=topic)
    assert (found.commit, found.tree, found.conflicts) == (None, None, ("README",))
    assert found.note == "the merge has conflicts; custom merge drivers were not used: mine"
