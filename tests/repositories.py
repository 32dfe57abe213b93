"""The kinds of repository that people have, each made of an ordinary project; and one story to be told in them."""

import hashlib
import json
from collections.abc import Callable

import pytest

from tests.conftest import Answer, Place, evals, with_task_branch

Kind = Callable[[Place], Place]


def done(place: Place, *arguments: str, code: int = 0) -> Answer:
    """What a command says that must end with ``code``."""
    answer = evals(place, *arguments)
    assert answer.code == code, (arguments, answer)
    return answer


def pass_the_gate(place: Place) -> str:
    """Real git is refused, then, after a run, let through; where ``main`` was before."""
    done(place, "init")
    done(place, "freeze", "42")
    main = place.git("rev-parse", "main")
    merge = ("merge", "-q", "--no-ff", "-m", "let through", "task/42")
    refused = place.attempt("git", *merge)
    assert (refused.returncode != 0, b"git-evals: refused" in refused.stderr) == (True, True), refused
    place.attempt("git", "merge", "--abort")
    assert place.git("rev-parse", "main") == main
    done(place, "run", "42")
    done(place, "verify", "--task", "42", "--branch", "task/42")
    look(place, whole=False)
    place.git(*merge)
    return main


def tell(place: Place) -> None:
    """Every command, in the order in which a project meets them."""
    done(place, "contract", "42")
    done(place, "run", "43", "--branch", "task/wrong", code=1)
    done(place, "run", "--verify-only", "--branch", "task/43")
    main = pass_the_gate(place)
    done(place, "hooks", "status")
    look(place, whole=True)
    done(place, "merge", "task/43")
    assert place.git("cat-file", "commit", "main").endswith("\n\nTask: 43")
    done(place, "audit", "--since", main)
    done(place, "reopen", "42", "--reason", "more to do")
    done(place, "doctor")
    place.git("fsck", "--no-dangling")
    done(place, "hooks", "uninstall")
    done(place, "hooks", "status", code=1)


def look(place: Place, *, whole: bool) -> None:
    """The commands that only read; ``whole``: after 43 failed, too."""
    record = json.loads(done(place, "report", "42", "--json").out)
    assert record["result"] == "passed"
    assert record["id"][:8] in done(place, "show", "task/42").out
    assert "42" in done(place, "log").out
    if not whole:
        return
    for form in ((), ("--feedback",), ("--markdown",)):
        assert "AC-1" in done(place, "report", "43", *form).out
    assert record["id"][:8] in done(place, "show", record["id"]).out
    assert {task["task"] for task in json.loads(done(place, "tasks", "--json").out)["tasks"]} == {"42", "43"}
    done(place, "status")
    done(place, "status", "42")
    done(place, "verify", "--task", "43", "--branch", "task/wrong", code=3)


def branched(place: Place) -> Place:
    """``place`` with three branches: two that do their task, and one that does not."""
    for task in ("42", "43"):
        with_task_branch(place, task)
    place.git("switch", "-q", "-c", "task/wrong")
    place.commit({"other": "x\n", "deep/er/file": "y\n"})
    place.git("switch", "-q", "main")
    return place


def tracked(place: Place) -> Place:
    """A clone with a local branch for each of its origin's."""
    for branch in ("task/42", "task/43", "task/wrong"):
        place.git("branch", "-q", branch, f"origin/{branch}")
    place.git("config", "evals.trustBranch", "main")
    return place


def remade(*options: str) -> Kind:
    """The same project, in a repository that `git init` makes with ``options``."""

    def make(story: Place) -> Place:
        place = Place(story.path.with_name("remade"))
        made = story.attempt("git", "init", "-q", *options, str(place.path))
        if made.returncode:
            pytest.skip(f"this git makes no such repository: {made.stderr.decode().splitlines()[0]}")
        place.git("fast-import", "--quiet", stdin=story.attempt("git", "fast-export", "--all").stdout)
        place.git("reset", "-q", "--hard", "main")
        place.git("config", "evals.trustBranch", "main")
        return place

    return make


def cloned(*options: str) -> Kind:
    """A clone of the project, from a place that serves whatever is asked for."""

    def make(story: Place) -> Place:
        for name in ("allowFilter", "allowAnySHA1InWant"):
            story.git("config", f"uploadpack.{name}", "true")
        place = Place(story.path.with_name("clone"))
        story.git("clone", "-q", *options, f"file://{story.path}", str(place.path))
        return tracked(place)

    return make


def shallow(story: Place) -> Place:
    """A clone of the last commit, with branches made on top of it."""
    place = Place(story.path.with_name("clone"))
    story.git("clone", "-q", "--depth=1", f"file://{story.path}", str(place.path))
    place.git("config", "evals.trustBranch", "main")
    return branched(place)


def configured(*settings: str) -> Kind:
    """The project with further settings, each ``name=value``."""

    def make(story: Place) -> Place:
        for setting in settings:
            story.git("config", *setting.split("=", 1))
        return story

    return make


def extended(*settings: str) -> Kind:
    """The project with extensions of its format."""

    def make(story: Place) -> Place:
        for setting in ("core.repositoryFormatVersion=1", *settings):
            story.git("config", "--file", ".git/config", *setting.split("=", 1))
        opened = story.attempt("git", "rev-parse", "HEAD")
        if opened.returncode:
            pytest.skip(f"this git does not open it: {' '.join(opened.stderr.decode().split())}")
        return story

    return make


def sparse(*options: str) -> Kind:
    """The project with little of its work tree checked out."""

    def make(story: Place) -> Place:
        story.commit({f"{name}/file": "x\n" for name in ("inside", "outside")})
        story.git("sparse-checkout", "set", *options, "inside")
        return story

    return make


def well_kept(story: Place) -> Place:
    """Every cache and index that git keeps beside objects, in its newer forms."""
    story.git("repack", "-q", "-a", "-d", "--cruft", "--write-bitmap-index")
    story.git("multi-pack-index", "write")
    story.git("commit-graph", "write", "--reachable", "--split")
    configured("core.untrackedCache=true", "core.splitIndex=true", "core.multiPackIndex=true")(story)
    story.git("update-index", "--split-index", "--untracked-cache")
    return story


def watched(story: Place) -> Place:
    """A program tells git what changed in the work tree: here always everything."""
    query = story.write(".git/query", "#!/bin/sh\nprintf 'now\\0/\\0'\n")
    query.chmod(0o755)
    configured("core.fsmonitor=.git/query", "core.fsmonitorHookVersion=2", "index.version=4", "index.skipHash=true")(
        story
    )
    story.git("update-index", "--force-write-index", "--fsmonitor")
    return story


def with_a_submodule(story: Place) -> Place:
    """The project with a submodule on every branch."""
    other = Place(story.path.with_name("other"))
    story.git("init", "-q", str(other.path))
    other.commit({"inside": "x\n"})
    story.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "sub")
    story.commit()
    return story


def as_a_submodule(story: Place) -> Place:
    """The project as a submodule of another one."""
    outer = Place(story.path.with_name("outer"))
    story.git("init", "-q", str(outer.path))
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(story.path), "sub")
    place = Place(outer.path / "sub")
    place.git("switch", "-q", "main")
    return tracked(place)


def with_lfs_pointers(story: Place) -> Place:
    """A large file that the clone has, under a pointer."""
    content = b"large\n"
    oid = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    story.write(f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}", content)
    story.commit({".gitattributes": "*.bin filter=lfs -text\n", "large.bin": pointer})
    return story


def with_replacements(story: Place) -> Place:
    """Replacements of a commit and of a file, and a graft, none of which is history."""
    main, wrong = story.git("rev-parse", "main"), story.git("rev-parse", "task/wrong")
    story.git("replace", wrong, story.git("rev-parse", "task/43"))
    blob = story.git("hash-object", "-w", "--stdin", stdin=b"version: 9\n")
    story.git("replace", story.git("rev-parse", "main:.gitevals.yaml"), blob)
    story.write(".git/info/grafts", f"{main}\n")
    return story


def linked(story: Place) -> Place:
    """A linked work tree with settings of its own; the main one has another branch."""
    story.git("config", "extensions.worktreeConfig", "true")
    story.git("switch", "-q", "--detach")
    place = Place(story.path.with_name("linked"))
    story.git("worktree", "add", "-q", str(place.path), "main")
    place.git("config", "--worktree", "user.name", "Some Body")
    return place


def kept_apart(story: Place) -> Place:
    """A git directory elsewhere, reached through a link."""
    story.git("init", "-q", f"--separate-git-dir={story.path.with_name('kept')}")
    link = story.path.with_name("link")
    link.symlink_to(story.path)
    return Place(link)


def worktree_by_setting(story: Place) -> Place:
    """A git directory that says itself where its work tree is."""
    elsewhere = story.path.with_name("elsewhere")
    (story.path / ".git").rename(elsewhere)
    Place(elsewhere).git("config", "core.worktree", str(story.path))
    story.write(".git", f"gitdir: {elsewhere}\n")
    return story


def linked_relatively(story: Place) -> Place:
    """A linked work tree that is named by a relative path."""
    place = Place(story.path.with_name("linked"))
    story.git("switch", "-q", "--detach")
    made = story.attempt("git", "worktree", "add", "-q", "--relative-paths", str(place.path), "main")
    if made.returncode:
        pytest.skip("this git links no work trees by relative paths")
    return place


def sharing(story: Place) -> Place:
    """A clone that reads the objects of another repository."""
    place = Place(story.path.with_name("shared"))
    story.git("clone", "-q", "--shared", str(story.path), str(place.path))
    return tracked(place)


def bare(story: Place) -> Place:
    """No work tree at all: `git merge` is then done in one that is linked to it."""
    middle = Place(story.path.with_name("bare.git"))
    story.git("clone", "-q", "--bare", str(story.path), str(middle.path))
    middle.git("config", "evals.trustBranch", "main")
    middle.git("symbolic-ref", "HEAD", "refs/heads/task/wrong")
    place = Place(story.path.with_name("linked"))
    middle.git("worktree", "add", "-q", str(place.path), "main")
    return place


KINDS: dict[str, Kind] = {
    "sha256": remade("--object-format=sha256"),
    "reftable": remade("--ref-format=reftable"),
    "sha256 and reftable": remade("--object-format=sha256", "--ref-format=reftable"),
    "partial": cloned("--filter=blob:none"),
    "without trees": cloned("--filter=tree:0"),
    "shallow": shallow,
    "sparse cone": sparse("--cone", "--sparse-index"),
    "sparse": sparse("--no-cone"),
    "well kept": well_kept,
    "watched": watched,
    "with a submodule": with_a_submodule,
    "as a submodule": as_a_submodule,
    "with LFS pointers": with_lfs_pointers,
    "with replacements": with_replacements,
    "sharing": sharing,
    "bare": bare,
    "linked": linked,
    "linked relatively": linked_relatively,
    "kept apart": kept_apart,
    "worktree by setting": worktree_by_setting,
    "precious": extended("extensions.preciousObjects=true"),
    "compatObjectFormat": extended("extensions.objectFormat=sha1", "extensions.compatObjectFormat=sha256"),
    "refStorage files": extended("extensions.refStorage=files"),
    "submodulePathConfig": extended("extensions.submodulePathConfig=true"),
}
