from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gitevals.errors import BadInput, CannotTell, ObjectMissing
from gitevals.git import trees
from gitevals.git.objects import GitObject, NewObject, Objects
from gitevals.git.store import Implementation, opened
from gitevals.git.trees import Entry
from tests.conftest import Place
from tests.git import BOTH_FORMATS, EVERY_STORE, assert_sound, repo_of

# Names that sort differently as files and as directories, and bytes that are no text.
NAMES = st.sampled_from(["a", "a-", "a.b", "a0", "b", "é", "\udcff", "c d"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
CONTENTS = st.sampled_from([b"1", b"2", b"3"])
CHANGES = st.none() | CONTENTS


class Counting:
    """Objects that count what is asked of them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.object_format = objects.object_format
        self.reads: list[list[str]] = []
        self.writes: list[list[NewObject]] = []

    def read_many(self, names: Sequence[str], *, limit_bytes: int | None = None) -> list[GitObject | None]:
        self.reads.append(list(names))
        return self.objects.read_many(names, limit_bytes=limit_bytes)

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        self.writes.append(list(objects))
        return self.objects.write_many(objects)

    def settle(self) -> None:
        self.objects.settle()

    def release(self) -> None:
        self.objects.release()


def contradicts(paths: Mapping[str, object]) -> bool:
    return any(path.startswith(other + "/") for path in paths for other in paths)


def expected_after(files: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """What a person would expect of an edit, on a plain dictionary."""
    after = dict(files)
    for path, blob in changes.items():
        after = {old: value for old, value in after.items() if old != path and not old.startswith(path + "/")}
        if blob is not None:
            after = {old: value for old, value in after.items() if not path.startswith(old + "/")}
            after[path] = blob
    return after


def files_in(place: Place, tree: str) -> dict[str, str]:
    listed = place.git("ls-tree", "-r", "-z", tree).split("\0")
    return {path: fields.split(" ")[2] for fields, _, path in (line.partition("\t") for line in listed if line)}


@EVERY_STORE
def test_an_edit_does_to_a_tree_what_it_does_to_a_dictionary(a_repo: Place, using: Implementation) -> None:
    @settings(deadline=None, max_examples=40)
    @given(before=st.dictionaries(PATHS, CONTENTS, max_size=12), changes=st.dictionaries(PATHS, CHANGES, max_size=8))
    def edits(before: dict[str, bytes], changes: dict[str, bytes | None]) -> None:
        assume(not contradicts(before) and not contradicts(changes))
        files = {path: ids[content] for path, content in before.items()}
        wanted = {path: ids[content] if content else None for path, content in changes.items()}
        edited = trees.edit(objects, trees.edit(objects, None, files), wanted)
        assert files_in(a_repo, edited) == expected_after(files, wanted)
        afresh = trees.edit(objects, None, expected_after(files, wanted))
        assert edited == afresh, "a directory is left empty, or entries are in another order"

    with opened(repo_of(a_repo), using) as objects:
        contents = [b"1", b"2", b"3"]
        ids = dict(zip(contents, objects.write_many([NewObject("blob", body) for body in contents]), strict=True))
        edits()
    assert_sound(a_repo)


@BOTH_FORMATS
def test_entries_are_sorted_and_read_as_git_does_it(a_repo: Place, object_format: str) -> None:
    blob, tree = a_repo.git("rev-parse", "HEAD:README"), a_repo.git("rev-parse", "HEAD^{tree}")
    entries = [
        Entry("40000", "a", tree),
        Entry("100755", "a.b", blob),
        Entry("100644", "a0", blob),
        Entry("120000", "é\n", blob),
        Entry("160000", "\udcfe", blob[::-1]),
        Entry("40000", "b", tree),
    ]
    kinds = {"40000": "tree", "160000": "commit"}
    listed = "".join(f"{e.mode:>06} {kinds.get(e.mode, 'blob')} {e.id}\t{e.name}\0" for e in entries)
    by_git = a_repo.git("mktree", "-z", "--missing", stdin=listed.encode("utf-8", "surrogateescape"))
    body = trees.serialise(entries)
    assert trees.object_id("tree", body, object_format) == by_git
    parsed = trees.parse(a_repo.attempt("git", "cat-file", "tree", by_git).stdout, trees.id_length_bytes(object_format))
    assert [entry.name for entry in parsed] == ["a.b", "a", "a0", "b", "é\n", "\udcfe"]
    assert set(parsed) == set(entries)


@pytest.mark.parametrize(
    ("head", "length"),
    [(b"x", 0), (b"100644 a\0", 19), (b"100644 a\0", 21), (b"1 a/b\0", 20), (b"1 \0", 20), (b"z a\0", 20)],
)
def test_a_damaged_tree_is_no_tree(head: bytes, length: int) -> None:
    with pytest.raises(CannotTell, match="damaged"):
        trees.parse(head + b"1" * length, 20)


@EVERY_STORE
def test_removing_the_last_entry_leaves_the_empty_tree(a_repo: Place, using: Implementation) -> None:
    empty = a_repo.git("hash-object", "-t", "tree", "--stdin")
    with opened(repo_of(a_repo), using) as objects:
        [blob] = objects.write_many([NewObject("blob", b"1")])
        root = trees.edit(objects, None, {"a/b/c": blob})
        assert trees.edit(objects, root, {"a/b/c": None}) == empty
        assert trees.edit(objects, None, {}) == empty
    assert a_repo.git("cat-file", "-t", empty) == "tree"


@EVERY_STORE
def test_an_edit_reads_and_writes_only_what_it_touches(a_repo: Place, using: Implementation) -> None:
    with opened(repo_of(a_repo), using) as objects:
        [blob, other] = objects.write_many([NewObject("blob", b"1"), NewObject("blob", b"2")])
        root = trees.edit(objects, None, {f"{number:03}/x/{name}": blob for number in range(200) for name in "ab"})
        counting = Counting(objects)
        edited = trees.edit(counting, root, {"007/x/a": other, "007/x/b": None, "new": blob})
        assert [len(names) for names in counting.reads] == [1, 1, 1]
        assert [len(new) for new in counting.writes] == [3]
        unchanged = Counting(objects)
        assert trees.edit(unchanged, edited, {"007/x/a": other, "nowhere/at/all": None, "new/below": None}) == edited
        assert unchanged.writes == []


@EVERY_STORE
def test_what_an_edit_does_not_name_keeps_its_mode(a_repo: Place, using: Implementation) -> None:
    script = a_repo.write("dir/script", "#!/bin/sh\n")
    script.chmod(0o755)
    a_repo.commit({"dir/plain": "x"})
    with opened(repo_of(a_repo), using) as objects:
        edited = trees.edit(objects, a_repo.git("rev-parse", "HEAD^{tree}"), {"dir/plain": None})
    assert a_repo.git("ls-tree", edited, "dir/").startswith("100755 blob")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "a/..", "./a", ".git", "a/.GIT/b", "git~1", "a\0"])
def test_a_path_that_git_would_not_check_out_is_refused(a_repo: Place, path: str) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    with opened(repo_of(a_repo)) as objects, pytest.raises(BadInput, match="cannot be a path"):
        trees.edit(objects, None, {path: blob})


def test_changes_that_contradict_each_other_are_a_mistake_of_the_caller(a_repo: Place) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    with opened(repo_of(a_repo)) as objects, pytest.raises(ValueError, match="as a file and as a directory"):
        trees.edit(objects, None, {"a": blob, "a/b/c": None})


@EVERY_STORE
def test_a_tree_that_is_missing_or_no_tree_is_named(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    for root in (repo.zero, a_repo.git("rev-parse", "HEAD:README")):
        with opened(repo, using) as objects, pytest.raises(ObjectMissing, match=root):
            trees.edit(objects, root, {"a": None})
