import contextlib
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import gitevals
from gitevals.errors import CannotTell, GitFailed, ObjectMissing
from gitevals.git.libgit import LibgitObjects
from gitevals.git.objects import NewObject, read, require
from gitevals.git.plumbing import PlumbingObjects
from gitevals.git.repo import discover
from gitevals.git.store import Implementation, opened
from tests.conftest import Place
from tests.git import BOTH_FORMATS, EVERY_STORE, assert_sound, repo_of

BODIES = [
    b"",
    b"\0",
    bytes(range(256)),
    b"no line end",
    b"blob 3\n\n missing\n",
    b"\r\n\n",
    b"x" * 15,
    b"y" * 16,
    b"z" * 2048,
    random.Random(7).randbytes(5_000_000),
]

AWKWARD_NAMES = [
    " ",
    "a b",
    "a\tb",
    "a\nb",
    "a\r",
    "\n",
    "é",
    "\udcff\udc80",
    "\u2028",
    '"quoted"',
    "back\\slash",
    "*?[x]",
    ".hidden",
    "...",
    "-n",
    "a:b",
    ":0",
    "x~1",
    "x^2",
    "x^{tree}",
    "x@{upstream}",
    "x@{1}",
    "@",
    "HEAD",
    "missing",
    "x missing",
    "-" * 200,
]


def a_tree(place: Place, entries: Sequence[tuple[str, str, str, str]]) -> str:
    """A tree made by git itself from (mode, kind, id, name)."""
    lines = [f"{mode} {kind} {object_id}\t{name}\0" for mode, kind, object_id, name in entries]
    return place.git("mktree", "-z", "--missing", stdin="".join(lines).encode("utf-8", "surrogateescape"))


def a_blob(place: Place, body: bytes) -> str:
    return place.git("hash-object", "-w", "--stdin", stdin=body)


@EVERY_STORE
def test_a_blob_is_stored_under_the_id_git_gives_it_and_read_back_whole(a_repo: Place, using: Implementation) -> None:
    with opened(repo_of(a_repo), using) as objects:
        ids = objects.write_many([NewObject("blob", body) for body in BODIES])
        found = objects.read_many(ids)
    assert ids == [a_repo.git("hash-object", "--stdin", stdin=body) for body in BODIES]
    assert [item and (item.id, item.kind, item.body) for item in found] == [
        (object_id, "blob", body) for object_id, body in zip(ids, BODIES, strict=True)
    ]
    assert a_repo.attempt("git", "cat-file", "blob", ids[-1]).stdout == BODIES[-1]
    assert_sound(a_repo)


@EVERY_STORE
def test_objects_of_every_kind_written_at_once_are_those_git_would_write(a_repo: Place, using: Implementation) -> None:
    raw = {}
    a_repo.git("tag", "-a", "-m", "a tag", "v1")
    for kind, name in (("commit", "HEAD"), ("tree", "HEAD^{tree}"), ("blob", "HEAD:README"), ("tag", "v1")):
        raw[kind] = (
            a_repo.attempt("git", "cat-file", kind, name).stdout.replace(b"first", b"other").replace(b"hello", b"x")
        )
    with opened(repo_of(a_repo), using) as objects:
        new = [NewObject(kind, body) for kind, body in raw.items()]
        written = objects.write_many([*new, new[0]])
        read_back = objects.read_many(written)
    expected = [a_repo.git("hash-object", "-t", kind, "--stdin", stdin=body) for kind, body in raw.items()]
    assert written == [*expected, expected[0]]
    assert [(found.kind, found.body) for found in read_back[:4] if found] == list(raw.items())
    assert a_repo.git("cat-file", "-t", written[0]) == "commit"


@EVERY_STORE
def test_nothing_to_read_or_write_is_no_trouble(a_repo: Place, using: Implementation) -> None:
    with opened(repo_of(a_repo), using) as objects:
        assert objects.read_many([]) == []
        assert objects.write_many([]) == []


@EVERY_STORE
def test_what_is_no_full_id_names_nothing(a_repo: Place, using: Implementation) -> None:
    head = a_repo.git("rev-parse", "HEAD")
    repo = repo_of(a_repo)
    zero, absent = "0" * len(head), "1" * len(head)
    for name in ("", "HEAD", "main", head[:12], head.upper(), head + "0", zero, absent, f"{head}^", f" {head}",
                 f"{head}\n", f"{head}^{{tree}}", "HEAD:README", ":README", f"{absent}:README"):  # fmt: skip
        with opened(repo, using) as objects:
            assert read(objects, name) is None, name


@EVERY_STORE
def test_a_missing_object_that_is_required_is_named(a_repo: Place, using: Implementation) -> None:
    repo = repo_of(a_repo)
    with opened(repo, using) as objects, pytest.raises(ObjectMissing, match=repo.zero) as raised:
        require(objects, repo.zero)
    assert raised.value.hint


@EVERY_STORE
def test_a_tag_of_what_has_no_tree_holds_no_path(a_repo: Place, using: Implementation) -> None:
    a_repo.git("tag", "-a", "-m", "x", "v1", "HEAD:README")
    a_repo.git("tag", "-a", "-m", "x", "v2", "v1")
    with opened(repo_of(a_repo), using) as objects:
        for tag in (a_repo.git("rev-parse", "v1"), a_repo.git("rev-parse", "v2")):
            assert objects.read_many([f"{tag}:", f"{tag}:README"]) == [None, None]


@EVERY_STORE
def test_any_path_that_a_tree_can_hold_is_found_by_name(a_repo: Place, using: Implementation) -> None:
    short = a_repo.git("rev-parse", "HEAD")[:8]
    names = [*AWKWARD_NAMES, f"x-g{short}", f"x-g{short}~0", f"x-g{short.upper()}"]
    blobs = {name: a_blob(a_repo, name.encode("utf-8", "surrogateescape")) for name in names}
    names = list(blobs)
    inner = a_tree(a_repo, [("100644", "blob", blob, name) for name, blob in blobs.items()])
    outer = a_tree(a_repo, [("040000", "tree", inner, name) for name in names])
    commit = a_repo.git("commit-tree", "-m", "x", outer)
    a_repo.git("tag", "-a", "-m", "x", "v1", commit)
    with opened(repo_of(a_repo), using) as objects:
        for root in (commit, outer, a_repo.git("rev-parse", "v1")):
            found = objects.read_many([f"{root}:{name}/{name}" for name in names])
            assert [item and item.id for item in found] == list(blobs.values())
        assert [
            item and (item.id, item.kind) for item in objects.read_many([f"{commit}:{name}" for name in names])
        ] == [(inner, "tree")] * len(names)
        assert require(objects, f"{commit}:").id == outer


@EVERY_STORE
def test_a_path_that_is_not_there_names_nothing(a_repo: Place, using: Implementation) -> None:
    a_repo.commit({"dir/a": "1", "file": "2"})
    head = a_repo.git("rev-parse", "HEAD")
    blob = a_repo.git("rev-parse", "HEAD:file")
    gitlink = a_tree(
        a_repo, [("160000", "commit", "1" * len(head), "sub"), ("100644", "blob", "2" * len(head), "gone")]
    )
    short = head[:8]
    paths = ["nope", "dir/nope", "file/below", "/dir", "dir/", "dir//a", "./dir", "../dir", ".", "..", "dir/.", "\0",
             "file\0", "\ud800", "dir~0", "dir^{tree}", "file\r", "file\n", f"x-g{short}", f"x-g{short}^0", "@{u}",
             "x@{u}", "DIR", "é" * 3000]  # fmt: skip
    names = [f"{head}:{path}" for path in paths] + [f"{blob}:", f"{blob}:x", f"{gitlink}:sub", f"{gitlink}:gone"]
    with opened(repo_of(a_repo), using) as objects:
        assert [name for name in names if read(objects, name) is not None] == []
        assert objects.read_many([*names, f"{head}:file"])[-1]


@EVERY_STORE
def test_thousands_of_names_are_answered_in_the_order_asked(a_repo: Place, using: Implementation) -> None:
    bodies = [b"%d " % number * 700 for number in range(1_000)]
    with opened(repo_of(a_repo), using) as objects:
        ids = objects.write_many([NewObject("blob", body) for body in bodies])
        tree = a_tree(a_repo, [("100644", "blob", blob, f"{index:0200}") for index, blob in enumerate(ids)])
        absent = "1" * len(tree)
        names = [*ids, *(f"{tree}:{index:0200}" for index in range(1_000)), absent, ids[0], f"{tree}:a\nb", ids[1]]
        found = objects.read_many(names)
    assert [item and item.body for item in found] == [*bodies, *bodies, None, bodies[0], None, bodies[1]]


@EVERY_STORE
def test_what_anybody_writes_while_objects_are_open_is_read(a_repo: Place, using: Implementation) -> None:
    with opened(repo_of(a_repo), using) as objects:
        first = a_repo.git("hash-object", "--stdin", stdin=b"1")
        assert read(objects, first) is None
        a_repo.git("hash-object", "-w", "--stdin", stdin=b"1")
        [second] = objects.write_many([NewObject("blob", b"2")])
        assert [item and item.body for item in objects.read_many([first, second])] == [b"1", b"2"]
        a_repo.git("repack", "-adq")
        assert read(objects, first)


@EVERY_STORE
def test_objects_of_a_linked_worktree_and_of_an_alternate_are_read(
    a_repo: Place, using: Implementation, tmp_path: Path, object_format: str
) -> None:
    a_repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    a_repo.git("clone", "-q", "--shared", str(a_repo.path), str(tmp_path / "shared"))
    head = a_repo.git("rev-parse", "HEAD")
    for place in (Place(tmp_path / "linked"), Place(tmp_path / "shared")):
        with opened(repo_of(place), using) as objects:
            [written] = objects.write_many([NewObject("blob", str(place.path).encode())])
            assert require(objects, f"{head}:README").body == b"hello\n"
        assert place.git("cat-file", "blob", written) == str(place.path)


@EVERY_STORE
def test_a_replacement_is_not_taken_for_the_object(a_repo: Place, using: Implementation) -> None:
    old, new = a_repo.git("rev-parse", "HEAD:README"), a_blob(a_repo, b"other")
    a_repo.git("replace", old, new)
    with opened(repo_of(a_repo), using) as objects:
        assert require(objects, old).body == b"hello\n"


@EVERY_STORE
def test_a_damaged_object_is_never_read_as_something_else(a_repo: Place, using: Implementation) -> None:
    blob = a_repo.git("rev-parse", "HEAD:README")
    file = a_repo.path / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(b"garbage")
    with opened(repo_of(a_repo), using) as objects, contextlib.suppress(CannotTell):
        assert read(objects, blob) is None


@EVERY_STORE
def test_a_write_that_fails_says_so(a_repo: Place, using: Implementation) -> None:
    store = a_repo.path / ".git/objects"
    body = b"to a directory that is a file"
    (store / a_repo.git("hash-object", "--stdin", stdin=body)[:2]).write_text("")
    with opened(repo_of(a_repo), using) as objects, pytest.raises(CannotTell):
        objects.write_many([NewObject("blob", body)])


def test_libgit2_serves_the_repositories_it_knows(a_repo: Place) -> None:
    with opened(repo_of(a_repo)) as objects:
        assert isinstance(objects, LibgitObjects)
        assert objects.object_format == "sha1"


@pytest.mark.parametrize(
    ("object_format", "configured"),
    [
        ("sha256", ()),
        ("sha1", ("remote.origin.promisor", "true")),
        ("sha1", ("core.repositoryFormatVersion", "2")),
        ("sha1", ("extensions.refStorage", "reftable")),
        ("sha1", ("extensions.refStorage", "files")),
        ("sha1", ("extensions.somethingNew", "true")),
    ],
    indirect=["object_format"],
)
def test_plumbing_serves_the_repositories_that_libgit2_cannot(a_repo: Place, configured: tuple[str, ...]) -> None:
    repo = repo_of(a_repo)
    if configured:
        a_repo.git("config", "core.repositoryFormatVersion", "1")
        a_repo.git("config", *configured)
    with opened(repo) as objects:
        assert isinstance(objects, PlumbingObjects)
        assert objects.object_format == repo.object_format
    with pytest.raises(CannotTell, match="libgit2"), opened(repo, "libgit2"):
        pass


def test_an_object_that_a_partial_clone_was_promised_is_fetched(a_repo: Place, tmp_path: Path) -> None:
    a_repo.git("config", "uploadpack.allowFilter", "true")
    a_repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    source = a_repo.path.as_uri()
    a_repo.git("clone", "-q", "--no-checkout", "--filter=blob:none", source, str(tmp_path / "partial"))
    with opened(repo_of(Place(tmp_path / "partial"))) as objects:
        assert require(objects, f"{a_repo.git('rev-parse', 'HEAD')}:README").body == b"hello\n"


def test_objects_that_git_keeps_apart_for_a_hook_are_seen(a_repo: Place, tmp_path: Path) -> None:
    apart = {
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "apart"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(a_repo.path / ".git/objects"),
    }
    (tmp_path / "apart").mkdir()
    blob = a_repo.git("hash-object", "-w", "--stdin", stdin=b"pushed", env=apart)
    with opened(repo_of(a_repo)) as objects:
        assert read(objects, blob) is None
    with opened(discover(str(a_repo.path), {**dict(repo_of(a_repo).env), **apart})) as objects:
        assert require(objects, blob).body == b"pushed"


@BOTH_FORMATS
def test_a_reader_started_early_is_used_and_ended(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    reader = repo.start("cat-file", "--batch", piped=True)
    with contextlib.closing(PlumbingObjects(repo, reader)) as objects:
        assert require(objects, f"{a_repo.git('rev-parse', 'HEAD')}:README").body == b"hello\n"
        assert reader.poll() is None
    assert reader.poll() is not None


def test_a_reader_that_dies_is_an_error_and_the_next_read_starts_another(a_repo: Place) -> None:
    repo = repo_of(a_repo)
    head = a_repo.git("rev-parse", "HEAD")
    reader = repo.start("cat-file", "--batch", piped=True)
    reader.kill()
    reader.wait()
    with contextlib.closing(PlumbingObjects(repo, reader)) as objects:
        with pytest.raises(GitFailed, match="ended early"):
            read(objects, head)
        assert require(objects, head).kind == "commit"


def test_writing_starts_no_reader_and_reading_starts_one(a_repo: Place, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    repo = discover(str(a_repo.path), {**repo_of(a_repo).env, "GIT_TRACE2_EVENT": str(trace)})
    trace.unlink()
    with opened(repo, "plumbing") as objects:
        ids = objects.write_many([NewObject("blob", b"%d" % number) for number in range(100)])
        objects.write_many([])
        assert trace.read_text().count('"event":"start"') == 1
        for object_id in ids:
            assert read(objects, object_id)
    assert trace.read_text().count('"event":"start"') == 2


def test_what_a_hook_imports_is_little(a_repo: Place) -> None:
    heavy = {"pygit2", "dataclasses", "json", "logging", "random", "shutil", "tempfile", "pathlib", "asyncio"}
    paths = [str(Path(gitevals.__file__).parents[1]), *sys.path]
    script = (
        f"import sys; sys.path[:] = {paths!r}; before = set(sys.modules)\n"
        "from gitevals.git import ledger, notes, objects, plumbing, refs, trees\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = a_repo.attempt(sys.executable, "-I", "-S", "-c", script)
    assert done.returncode == 0, done.stderr
    assert heavy & set(done.stdout.decode().split()) == set()
