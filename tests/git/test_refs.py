import pytest

from gitevals.errors import BadInput, GitFailed
from gitevals.git import refs
from tests.conftest import Place
from tests.git import BOTH_FORMATS, repo_of

REF = "refs/notes/evals/writer"


@BOTH_FORMATS
def test_values_are_of_the_refs_named_and_no_others(a_repo: Place) -> None:
    head = a_repo.git("rev-parse", "HEAD")
    others = [
        "refs/evals/a",
        "refs/evals/ab",
        "refs/evals/b/c",
        "refs/evals/b/d/e",
        "refs/evals-remote/x",
        "refs/evals/é\u2028",
    ]
    for ref in others:
        a_repo.git("update-ref", ref, head)
    repo = repo_of(a_repo)
    assert refs.values(repo) == {}
    assert refs.values(repo, "refs/evals/nope", "refs/nope/") == {}
    assert refs.values(repo, "refs/evals/a", "refs/evals/b") == {"refs/evals/a": head}
    assert set(refs.values(repo, "refs/evals/b/")) == {"refs/evals/b/c", "refs/evals/b/d/e"}
    assert set(refs.values(repo, "refs/evals/", "refs/heads/main")) == {*others, "refs/heads/main"} - {
        "refs/evals-remote/x"
    }
    a_repo.git("pack-refs", "--all")
    assert set(refs.values(repo, "refs/evals/é\u2028", "refs/evals/a")) == {"refs/evals/é\u2028", "refs/evals/a"}


@BOTH_FORMATS
def test_a_ref_is_made_moved_and_removed_only_from_the_value_expected(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    first, second, third = a_repo.git("rev-parse", "HEAD"), a_repo.commit(), a_repo.commit()
    assert not refs.update(repo, REF, second, first)
    assert refs.update(repo, REF, first, repo.zero)
    assert not refs.update(repo, REF, second, repo.zero)
    assert refs.update(repo, REF, second, first)
    assert not refs.update(repo, REF, third, first)
    assert refs.values(repo, REF) == {REF: second}
    a_repo.git("pack-refs", "--all")
    assert not refs.update(repo, REF, repo.zero, first)
    assert refs.update(repo, REF, repo.zero, second)
    assert refs.values(repo, REF) == {}


def test_a_ref_locked_by_another_is_a_race_to_retry(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    first, second = a_repo.git("rev-parse", "HEAD"), a_repo.commit()
    assert refs.update(repo, REF, first, repo.zero)
    lock = a_repo.write(f".git/{REF}.lock", "")
    assert not refs.update(repo, REF, second, first)
    lock.unlink()
    assert refs.update(repo, REF, second, first)


def test_a_failure_that_is_no_race_is_told_with_the_words_of_git(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    hook = a_repo.write(
        ".git/hooks/reference-transaction", '#!/bin/sh\n[ "$1" != prepared ] || { echo "not so" >&2; exit 1; }\n'
    )
    hook.chmod(0o755)
    with pytest.raises(GitFailed) as raised:
        refs.update(repo, REF, a_repo.git("rev-parse", "HEAD"), repo.zero)
    assert "not so" in raised.value.stderr
    hook.unlink()
    with pytest.raises(GitFailed):
        refs.update(repo, REF, "1" * len(repo.zero), repo.zero)


@BOTH_FORMATS
@pytest.mark.parametrize(
    ("existing", "wanted"),
    [
        ("refs/notes/evals", "refs/notes/evals/writer"),
        ("refs/notes/evals", "refs/notes/evals/a/b/c"),
        ("refs/notes/evals/a/b", "refs/notes/evals"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_in_the_way_is_named_with_a_way_out(a_repo: Place, existing: str, wanted: str, packed: bool) -> None:
    repo = repo_of(a_repo)
    head = a_repo.git("rev-parse", "HEAD")
    a_repo.git("update-ref", existing, head)
    if packed:
        a_repo.git("pack-refs", "--all")
    with pytest.raises(BadInput, match=f"ref {existing} is in the way of {wanted}$") as raised:
        refs.update(repo, wanted, head, repo.zero)
    for command in raised.value.hint.split("`")[1::2]:
        a_repo.git(*command.split()[1:])
    assert refs.update(repo, wanted, head, repo.zero)


def test_a_symbolic_ref_is_replaced_rather_than_followed(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    first, second = a_repo.git("rev-parse", "HEAD"), a_repo.git("commit-tree", "-m", "x", "HEAD^{tree}")
    a_repo.git("symbolic-ref", REF, "refs/heads/main")
    assert refs.update(repo, REF, second, first)
    assert refs.values(repo, "refs/heads/main", REF) == {"refs/heads/main": first, REF: second}


def test_a_ref_of_a_linked_worktree_is_the_ref_of_all(a_repo: Place) -> None:
    a_repo.git("worktree", "add", "-q", str(a_repo.path.parent / "linked"))
    linked = repo_of(Place(a_repo.path.parent / "linked"))
    head = a_repo.git("rev-parse", "HEAD")
    a_repo.write(f".git/{REF}.lock", "")
    assert not refs.update(linked, REF, head, linked.zero)
    (a_repo.path / f".git/{REF}.lock").unlink()
    assert refs.update(linked, REF, head, linked.zero)
    assert refs.values(repo_of(a_repo), REF) == {REF: head}
