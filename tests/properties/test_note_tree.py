"""Note trees and edits of trees, compared with what git itself and plain dictionaries say of the same names."""

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from gitevals.errors import CannotTell
from gitevals.git import notes, trees
from gitevals.git.objects import GitObject, NewObject, Objects, read, require
from gitevals.git.store import Implementation, opened
from gitevals.git.trees import Entry
from tests.conftest import Place
from tests.git import EVERY_STORE, repo_of
from tests.properties import FEW_AND_MANY, damaged, holds

# Names that sort differently as files and as directories, that git quotes, and bytes that are no text.
NAMES = st.sampled_from(["a", "a-", "a.b", "a0", "ab", "é", "\udcff", "c d", "\n", '"', "-", "A"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def _consistent(paths: dict[str, str]) -> bool:
    return not any(path.startswith(f"{other}/") for path in paths for other in paths)


@EVERY_STORE
@FEW_AND_MANY
def test_an_edit_makes_the_very_tree_that_gits_own_index_makes(
    a_repo: Place, using: Implementation, examples: int
) -> None:
    def law(before: dict[str, str], after: dict[str, str]) -> None:
        gone = {path: None for path in before if path not in after}
        base = trees.edit(objects, None, {path: blobs[name] for path, name in before.items()})
        drop = trees.edit(objects, base, gone)
        made = trees.edit(objects, drop, {path: blobs[name] for path, name in after.items()})
        rows = [f"100644 {blobs[name]}\t{path}\0".encode("utf-8", "surrogateescape") for path, name in after.items()]
        index = {"GIT_INDEX_FILE": str(a_repo.path / "index")}
        (a_repo.path / "index").unlink(missing_ok=True)
        a_repo.git("update-index", "-z", "--index-info", stdin=b"".join(rows), env=index)
        assert made == a_repo.git("write-tree", env=index)

    files = st.dictionaries(PATHS, st.sampled_from("xyz"), max_size=8).filter(_consistent)
    with opened(repo_of(a_repo), using) as objects:
        ids = objects.write_many([NewObject("blob", name.encode()) for name in "xyz"])
        blobs = dict(zip("xyz", ids, strict=True))
        holds(law, files, files, examples=min(examples, 200) // 2)


def _annotated(seed: int, digits: int) -> str:
    """Few first digits, so that notes share directories at several depths."""
    shared = f"ab{seed % 3:02x}" + "00" * (seed % 4)
    return shared + (hashlib.sha256(b"%d" % seed).hexdigest() * 2)[: digits - len(shared)]


def _at_depth(object_id: str, depth: int) -> str:
    return "/".join([*(object_id[2 * level : 2 * level + 2] for level in range(depth)), object_id[2 * depth :]])


def _walked(objects: Objects, tree: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every file below ``tree``, by its path without slashes."""
    for entry in trees.load(objects, [tree])[0]:
        if entry.mode == trees.DIRECTORY:
            yield from _walked(objects, entry.id, prefix + entry.name)
        else:
            yield prefix + entry.name, entry.id


@EVERY_STORE
@FEW_AND_MANY
def test_a_note_tree_of_mixed_depths_says_what_a_dictionary_says(
    a_repo: Place, using: Implementation, examples: int
) -> None:
    digits = len(repo_of(a_repo).zero)

    def law(placed: dict[int, tuple[int, int]]) -> None:
        paths = {_at_depth(names[seed], depth): blobs[content] for seed, (depth, content) in placed.items()}
        tree = trees.edit(objects, None, paths)
        wanted = {names[seed]: blobs[content] for seed, (_, content) in placed.items()}
        assert dict(_walked(objects, tree)) == wanted
        assert dict(notes.all_notes(objects, tree)) == wanted
        for seed, name in names.items():
            assert notes.blobs_of(objects, tree, name) == ([wanted[name]] if seed in placed else [])

    with opened(repo_of(a_repo), using) as objects:
        names = {seed: _annotated(seed, digits) for seed in range(12)}
        blobs = objects.write_many([NewObject("blob", b"%d" % number) for number in range(3)])
        place = st.tuples(st.integers(0, digits // 2 - 1), st.integers(0, 2))
        holds(law, st.dictionaries(st.sampled_from(sorted(names)), place, max_size=8), examples=examples)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"], indirect=True)
def test_notes_that_end_in_the_same_digits_are_told_apart_however_deep_they_stand(a_repo: Place) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    digits = len(repo_of(a_repo).zero)
    names = [first * (digits // 2 - 1) + "7f" for first in ("ab", "cd", "ef")]
    with opened(repo_of(a_repo)) as objects:
        tree = trees.edit(objects, None, {_at_depth(name, digits // 2 - 1): blob for name in names})
        assert list(notes.all_notes(objects, tree)) == [(name, blob) for name in names]


def test_few_objects_that_stand_for_very_many_notes_are_soon_walked_through(a_repo: Place) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    with opened(repo_of(a_repo)) as objects:
        below = [Entry("100644", f"{number:02x}", blob) for number in range(256)]
        for _ in range(19):
            [tree] = objects.write_many([NewObject("tree", trees.serialise(below))])
            below = [Entry(trees.DIRECTORY, f"{number:02x}", tree) for number in range(256)]
        [root] = objects.write_many([NewObject("tree", trees.serialise(below))])
        assert {found for _, found in notes.all_notes(objects, root)} == {blob}
        assert notes.blobs_of(objects, root, "7f" * 20) == [blob]


@FEW_AND_MANY
def test_any_bytes_are_a_tree_or_are_called_damaged(examples: int) -> None:
    def law(body: bytes) -> None:
        try:
            found = trees.parse(body, 20)
        except CannotTell:
            return
        raw = [b"%s %s\0%s" % entry for entry in trees.raw_entries(body, 20)]
        assert b"".join(raw) == body
        assert [f"{entry.mode} {entry.name}\0".encode("utf-8", "surrogateescape") for entry in found] == [
            line[:-20] for line in raw
        ]

    entry = st.sampled_from(["100644 a", "40000 ab", "120000 \xff", "160000 x", "0 .", "7777777 ..", "100644 a"])
    valid = st.lists(entry.map(lambda text: text.encode("latin-1") + b"\0" + b"i" * 20), max_size=4).map(b"".join)
    holds(law, valid | damaged(valid) | st.binary(max_size=60), examples=examples)


@EVERY_STORE
@pytest.mark.parametrize("path", [None, "file", "a b\n", "x-g1234"])
def test_of_a_large_object_one_byte_more_than_the_limit_is_read(
    a_repo: Place, using: Implementation, path: str | None
) -> None:
    body = bytes(range(256)) * 300
    with opened(repo_of(a_repo), using) as objects:
        [large, small] = objects.write_many([NewObject("blob", body), NewObject("blob", body[:1000])])
        names = [large, small]
        if path is not None:
            roots = [trees.edit(objects, None, {path: blob}) for blob in (large, small)]
            names = [f"{root}:{path}" for root in roots]
        for limit in (1, 999, 1000, len(body) - 1, len(body), None):
            found = objects.read_many([*names, repo_of(a_repo).zero, *names], limit_bytes=limit)
            cut = len(body) if limit is None else limit + 1
            read_back = [GitObject(large, "blob", body[:cut]), GitObject(small, "blob", body[:1000][:cut])]
            assert found == [*read_back, None, *read_back]
        assert require(objects, large).body == body
        assert read(objects, large, limit_bytes=3) == GitObject(large, "blob", body[:4])
