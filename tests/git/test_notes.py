import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals.git import notes, trees
from gitevals.git.objects import NewObject, require
from gitevals.git.store import Implementation, opened
from tests.conftest import Place
from tests.git import EVERY_STORE, assert_sound, repo_of

# Few first digits, so that notes share directories at several depths.
SEEDS = st.integers(min_value=0, max_value=40)
DEPTHS = st.sets(st.integers(min_value=0, max_value=4), min_size=1, max_size=3)


def annotated(seed: int, digits: int) -> str:
    return f"ab{seed % 3:02x}" + (hashlib.sha256(b"%d" % seed).hexdigest() * 2)[: digits - 4]


def at_depth(object_id: str, depth: int) -> str:
    parts = [object_id[2 * level : 2 * level + 2] for level in range(depth)]
    return "/".join([*parts, object_id[2 * depth :]])


def test_a_note_is_written_two_digits_deep() -> None:
    assert notes.path_of("abcdef0123") == "ab/cdef0123"


@EVERY_STORE
def test_every_note_is_found_at_whatever_depths_it_stands(a_repo: Place, using: Implementation) -> None:
    digits = len(repo_of(a_repo).zero)

    @settings(deadline=None, max_examples=40)
    @given(placed=st.dictionaries(SEEDS, DEPTHS, max_size=8))
    def placements(placed: dict[int, set[int]]) -> None:
        expected = {annotated(seed, digits): [blobs[depth] for depth in sorted(placed[seed])] for seed in placed}
        paths = {
            at_depth(annotated(seed, digits), depth): blobs[depth]
            for seed, depths in placed.items()
            for depth in depths
        }
        tree = trees.edit(objects, None, paths)
        assert {object_id: notes.blobs_of(objects, tree, object_id) for object_id in expected} == expected
        assert notes.blobs_of(objects, tree, annotated(99, digits)) == []
        listed: dict[str, list[str]] = {}
        for object_id, blob in notes.all_notes(objects, tree):
            listed.setdefault(object_id, []).append(blob)
        assert listed == expected

    with opened(repo_of(a_repo), using) as objects:
        blobs = objects.write_many([NewObject("blob", b"at depth %d" % depth) for depth in range(5)])
        placements()


@EVERY_STORE
def test_notes_that_git_wrote_are_found(a_repo: Place, using: Implementation) -> None:
    texts = {}
    for number in range(5):
        commit = a_repo.commit({"file": str(number)})
        texts[commit] = f"note {number}\n".encode()
        a_repo.git("notes", "--ref=evals", "add", "-m", f"note {number}", commit)
    assert_found(a_repo, using, texts)


@EVERY_STORE
def test_notes_are_found_at_the_depth_git_chose_for_many(a_repo: Place, using: Implementation) -> None:
    head, person = a_repo.git("rev-parse", "HEAD"), "committer x <x@example.org> 1 +0000"
    lines = [f"commit refs/heads/many\n{person}\ndata 0\nfrom {head}\n"]
    lines += [f"commit refs/heads/many\nmark :{number}\n{person}\ndata 0\n" for number in range(1, 1201)]
    lines += [f"commit refs/notes/evals\n{person}\ndata 0\n"]
    lines += [f"N inline :{number}\ndata {len(str(number))}\n{number}\n" for number in range(1, 1201)]
    a_repo.git("fast-import", "--quiet", stdin="".join(lines).encode())
    commits = a_repo.git("rev-list", "--reverse", f"{head}..refs/heads/many").split("\n")[1:]
    assert a_repo.git("ls-tree", "refs/notes/evals").startswith("040000 tree")
    assert_found(a_repo, using, {commit: str(number).encode() for number, commit in enumerate(commits, start=1)})


def assert_found(place: Place, using: Implementation, texts: dict[str, bytes]) -> None:
    tree = place.git("rev-parse", "refs/notes/evals^{tree}")
    with opened(repo_of(place), using) as objects:
        assert {name: require(objects, blob).body for name, blob in notes.all_notes(objects, tree)} == texts
        for name, text in list(texts.items())[:50]:
            assert [require(objects, blob).body for blob in notes.blobs_of(objects, tree, name)] == [text]


@EVERY_STORE
def test_our_notes_are_shown_by_git(a_repo: Place, using: Implementation) -> None:
    head = a_repo.git("rev-parse", "HEAD")
    with opened(repo_of(a_repo), using) as objects:
        [blob] = objects.write_many([NewObject("blob", b"ours\n")])
        tree = trees.edit(objects, None, {notes.path_of(head): blob})
    a_repo.git("update-ref", "refs/notes/evals", a_repo.git("commit-tree", "-m", "x", tree))
    assert a_repo.git("notes", "--ref=evals", "show", head) == "ours"
    assert_sound(a_repo)


@EVERY_STORE
def test_what_is_no_note_is_passed_over(a_repo: Place, using: Implementation) -> None:
    head = a_repo.git("rev-parse", "HEAD")
    blob, tree = a_repo.git("rev-parse", "HEAD:README"), a_repo.git("rev-parse", "HEAD^{tree}")
    listed = "".join(
        f"{mode} {kind} {object_id}\t{name}\n"
        for mode, kind, object_id, name in (
            ("100644", "blob", blob, "README"),
            ("100644", "blob", blob, head[:-1]),
            ("100644", "blob", blob, head[:-1] + "g"),
            ("100644", "blob", blob, head[:2] + "x"),
            ("120000", "blob", blob, head),
            ("040000", "tree", tree, head[:-1] + "_"),
            ("040000", "tree", tree, "zz"),
            ("040000", "tree", tree, head[:2]),
        )
    )
    odd = a_repo.git("mktree", stdin=listed.encode())
    with opened(repo_of(a_repo), using) as objects:
        assert list(notes.all_notes(objects, odd)) == []
        assert notes.blobs_of(objects, odd, head) == []
