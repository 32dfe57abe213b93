"""Graders: whatever a change or a check does to them, the frozen ones are what counts."""

import os
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from gitevals import redact
from gitevals.contracts import graders
from gitevals.evaluate import slots
from gitevals.evaluate.checks import Bench, Done
from gitevals.evaluate.graders import in_place
from gitevals.evaluate.plan import Plan
from gitevals.git import watch
from gitevals.git.repo import discover
from gitevals.git.scratch import Scratch, checkout, scratch
from gitevals.git.store import opened
from gitevals.model.contract import Command
from tests.conftest import Place

ODD = 'it\'s "odd"\n\there'
LATIN = os.fsdecode(b"caf\xe9")
GRADERS = (ODD, "run-me", "tests/acceptance", "tests/acceptance/check.sh", "tests/unit/one.sh")
# It ends with 7 only if all graders are as frozen, nothing stands beside them, and the feature is not done.
CHECK = """\
test "$(cat tests/acceptance/data)" = frozen || exit 20
test "$(ls -A tests/acceptance | wc -l)" -eq 6 || exit 21
./run-me || exit 22
tests/acceptance/tool || exit 23
test "$(cat "$(printf 'it\\047s "odd"\\n\\there')")" = odd || exit 24
test "$(cat "tests/acceptance/$(printf 'caf\\351')")" = latin || exit 25
test "$(cat tests/acceptance/deep/er/file)" = deep || exit 26
test "$(cat tests/unit/one.sh)" = unit || exit 27
for each in tests tests/acceptance tests/acceptance/data; do test ! -L $each || exit 28; done
grep -qx done feature || exit 7
"""
FILES: dict[str, tuple[str, str]] = {
    "feature": ("100644", "todo\n"),
    ".gitignore": ("100644", "*.o\n"),
    "tests/other": ("100644", "other\n"),
    "tests/unit/two.sh": ("100644", "mine\n"),
    "run-me": ("100755", "#!/bin/sh\nexit 0\n"),
    ODD: ("100644", "odd\n"),
    "tests/unit/one.sh": ("100644", "unit\n"),
    "tests/acceptance/.gitignore": ("100644", "products/\n"),
    "tests/acceptance/check.sh": ("100644", CHECK),
    "tests/acceptance/data": ("100644", "frozen\n"),
    "tests/acceptance/tool": ("100755", "#!/bin/sh\nexit 0\n"),
    f"tests/acceptance/{LATIN}": ("100644", "latin\n"),
    "tests/acceptance/deep/er/file": ("100644", "deep\n"),
}
Edits = Mapping[str, tuple[str, str] | None]


def _all_below(directory: str) -> dict[str, None]:
    return {path: None for path in FILES if path.startswith(f"{directory}/")}


WEAK = ("100644", "exit 0\n")
# So that attributes take effect at the next checkout.
TOUCHED = {path: (mode, f"{text}#\n") for path, (mode, text) in FILES.items() if "tests" in path or path == "run-me"}
CHEATS: dict[str, Edits] = {
    "nothing": {},
    "weakened": {"tests/acceptance/check.sh": WEAK},
    "data weakened": {"tests/acceptance/data": ("100644", "anything\n")},
    "deleted": {"tests/acceptance/check.sh": None},
    "all deleted": {**_all_below("tests"), "run-me": None, ODD: None},
    "replaced by a symbolic link to its own": {
        "tests/acceptance/check.sh": ("120000", "../weak.sh"), "tests/weak.sh": WEAK,
    },
    "replaced by a symbolic link to elsewhere": {"tests/acceptance/check.sh": ("120000", "@OUTSIDE@/check.sh")},
    "directory replaced by a symbolic link": {
        **_all_below("tests/acceptance"), "tests/acceptance": ("120000", "@OUTSIDE@"),
    },
    "directory above replaced by a symbolic link": {**_all_below("tests"), "tests": ("120000", "@OUTSIDE@/..")},
    "a link that leads nowhere": {**_all_below("tests"), "tests": ("120000", "no/where")},
    "a link to itself": {**_all_below("tests"), "tests": ("120000", "tests")},
    "renamed": {"tests/acceptance/check.sh": None, "tests/acceptance/old.sh": ("100644", CHECK)},
    "directory renamed": {
        **_all_below("tests/acceptance"), "tests/old/check.sh": ("100644", CHECK), "tests/acceptance/check.sh": WEAK,
    },
    "directory replaced by a file": {**_all_below("tests/acceptance"), "tests/acceptance": WEAK},
    "directory above replaced by a file": {**_all_below("tests"), "tests": WEAK},
    "file replaced by a directory": {"run-me": None, "run-me/inner": WEAK, ODD: None, f"{ODD}/x": WEAK},
    "programs no longer executable": {
        "run-me": ("100644", FILES["run-me"][1]), "tests/acceptance/tool": ("100644", "#"),
    },
    "data made executable": {"tests/acceptance/data": ("100755", "frozen\n")},
    "file added beside it": {"tests/acceptance/conftest.py": ("100644", "raise SystemExit(0)\n")},
    "file added below it": {"tests/acceptance/deep/er/conftest.py": ("100644", "x\n")},
    "hidden by ignore rules": {".gitignore": ("100644", "tests/\nrun-me\n*.sh\n"), **_all_below("tests/acceptance")},
    "hidden by ignore rules within": {"tests/acceptance/.gitignore": ("100644", "*\n")},
    "ignore rules within deleted": {"tests/acceptance/.gitignore": None},
    "other case": {
        "tests/acceptance/check.sh": None, "tests/acceptance/CHECK.SH": WEAK, "Tests/acceptance/check.sh": WEAK,
    },
    "odd names edited": {ODD: WEAK, f"tests/acceptance/{LATIN}": WEAK},
    "a link without a name to another repository": {
        **_all_below("tests/acceptance"), "tests/acceptance": ("160000", "1" * 40),
    },
    "a submodule": {
        **_all_below("tests/acceptance"), "tests/acceptance": ("160000", "@MODULE@"),
        ".gitmodules": ("100644", '[submodule "weak"]\n\tpath = tests/acceptance\n\turl = ./x\n'),
    },
    "a submodule at a file": {
        "run-me": ("160000", "@MODULE@"),
        ".gitmodules": ("100644", '[submodule "weak"]\n\tpath = run-me\n\turl = ./x\n'),
    },
    "a submodule below it": {
        "tests/acceptance/deep/sub": ("160000", "@MODULE@"),
        ".gitmodules": ("100644", '[submodule "weak"]\n\tpath = tests/acceptance/deep/sub\n\turl = ./x\n'),
    },
    "a submodule above it": {
        **_all_below("tests"), "tests": ("160000", "@MODULE@"),
        ".gitmodules": ("100644", '[submodule "weak"]\n\tpath = tests\n\turl = ./x\n'),
    },
    "attributes": {
        ".gitattributes": (
            "100644",
            "run-me text eol=crlf\ntests/acceptance/data working-tree-encoding=UTF-16\n"
            "tests/acceptance/check.sh ident filter=lfs export-ignore\ntests/unit/** text eol=crlf\n",
        ),
        "tests/acceptance/.gitattributes": ("100644", "* text eol=crlf\n"),
        **TOUCHED,
    },
}  # fmt: skip
# Of these, what a check sees and what is said of the source afterwards is looked at too.
THOROUGHLY = (
    "nothing", "all deleted", "directory above replaced by a symbolic link", "hidden by ignore rules",
    "ignore rules within deleted", "a link without a name to another repository", "a submodule",
    "a submodule at a file", "a submodule below it", "a submodule above it",
)  # fmt: skip


def commits(place: Place, branches: Mapping[str, Edits]) -> None:
    """A commit on ``main`` with `FILES`, and one on top of it for each branch, with its edits."""
    stream = [history_of("main", "", FILES), *(history_of(name, "main", edits) for name, edits in branches.items())]
    place.git("fast-import", "--quiet", "--force", stdin=b"".join(stream))
    place.git("reset", "-q", "--hard", "main")


def history_of(branch: str, parent: str, edits: Edits) -> bytes:
    """A stream for fast-import: one commit with edits on top of a branch, or on nothing."""
    head = f"commit refs/heads/{branch}\ncommitter C <c@example.org> 1893553445 +0000\ndata 0\n"
    lines = [head.encode(), f"from refs/heads/{parent}\n".encode() if parent else b"deleteall\n"]
    removed = [path for path, edit in edits.items() if edit is None]
    lines += [b"D %s\n" % _quoted(path) for path in removed]
    for path, edit in edits.items():
        if edit is None:
            continue
        mode, content = edit
        if mode == "160000":
            lines.append(b"M 160000 %s %s\n" % (content.encode(), _quoted(path)))
        else:
            raw = content.encode("utf-8", "surrogateescape")
            lines.append(b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), _quoted(path), len(raw), raw))
    return b"".join(lines)


def _quoted(path: str) -> bytes:
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def some_by_default(names: Sequence[str], *some: str) -> list[ParameterSet]:
    """Parameter sets: a few of ``names``, and all of them where slow tests run."""
    return [pytest.param(some, id="some"), pytest.param(tuple(names), id="all", marks=pytest.mark.slow)]


class Project:
    """A repository with graders at `GRADERS`, a scratch over it, and a directory of the user's outside of both."""

    def __init__(self, place: Place, outside: Path, made: Scratch, tree: str, cheats: Mapping[str, Edits]) -> None:
        self.outside, self.scratch, self.tree, self.cheats = outside, made, tree, cheats
        self.repo = made.sources[0]
        listed = place.git("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/")
        self.tips = dict(row.split() for row in listed.splitlines())
        self.bench = Bench(
            inherited=dict(os.environ), path=os.environ["PATH"], base="b", head="h", task="42",
            observer=lambda _: None, secrets=redact.secrets_in({}), stop=threading.Event(),
        )  # fmt: skip

    def slot(self, branch: str) -> slots.Slot:
        """A checkout of ``branch`` without set-up."""
        self.check_out(branch)
        return slots.Slot(scratch=self.scratch, before=watch.baseline(self.scratch))

    def check_out(self, branch: str) -> None:
        """Put another branch into the checkout."""
        self.scratch = checkout(self.scratch, self.tips[branch])

    def check(self, slot: slots.Slot, script: str, *, timeout_seconds: int = 60) -> Done:
        """Run a shell script as a check with graders."""
        command = Command(command=("sh", "-c", script), graders=GRADERS, timeout_seconds=timeout_seconds)
        plan = Plan(setup=(), verification=(), checks={"this": command}, graders={"this": self.tree})
        return slots.check(self.bench, slot, plan, "this", command)

    def content(self, paths: Sequence[str] = ("",)) -> dict[str, object]:
        """Everything at ``paths`` in the checkout, mode and content, ignored files too, but git's own."""
        top = Path(self.scratch.worktree)
        return {name: seen for name, seen in contents(top).items() if any(_is_at(name, path) for path in paths)}


def _is_at(name: str, path: str) -> bool:
    return not path or name == path or name.startswith(f"{path}/")


def contents(top: Path) -> dict[str, object]:
    """Mode and content of everything below a directory, but git's own."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        if ".git" in path.parts:
            continue
        held: object = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (stat.S_IMODE(status.st_mode), held)
    return found


@pytest.fixture
def a_project_with_graders(a_repo: Place, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    outside = tmp_path / "user" / "acceptance"
    outside.mkdir(parents=True)
    for name in ("check.sh", "data"):
        (outside / name).write_text("exit 0\n")
    module = a_repo.path / ".git/modules/weak"
    a_repo.git("init", "-q", "--bare", str(module))
    a_repo.git("push", "-q", str(module), "main")
    named = {"@OUTSIDE@": str(outside), "@MODULE@": a_repo.git("rev-parse", "main")}
    cheats = {name: _with(named, cheat) for name, cheat in CHEATS.items()}
    branches = {f"cheat/{number}": cheats[name] for number, name in enumerate(THOROUGHLY)}
    commits(a_repo, {**branches, "other": {"tests/unit/one.sh": WEAK, "tests/acceptance/data": WEAK, "run-me": None}})
    repo = discover(str(a_repo.path))
    with ExitStack() as stack:
        objects = stack.enter_context(opened(repo))
        tree = graders.keep(objects, a_repo.git("rev-parse", "main"), graders_of())
        made = stack.enter_context(scratch(repo, directory=str(tmp_path / "scratch")))
        yield Project(a_repo, outside, made, tree, cheats)


def graders_of() -> tuple[str, ...]:
    return tuple(path for path in GRADERS if path != "tests/acceptance/check.sh")


def _with(named: Mapping[str, str], edits: Edits) -> Edits:
    found: dict[str, tuple[str, str] | None] = {}
    for path, edit in edits.items():
        mode, text = edit or ("", "")
        for name, value in named.items():
            text = text.replace(name, value)
        found[path] = (mode, text) if edit else None
    return found


def test_whatever_stands_there_the_graders_in_place_are_the_frozen_ones(a_project_with_graders: Project) -> None:
    project = a_project_with_graders
    outside = contents(project.outside)
    project.check_out("main")
    expected = project.content(GRADERS)
    assert len(expected) == 12
    frozen, restored = {}, {}
    for name in CHEATS:
        with edited(Path(project.scratch.worktree), project.cheats[name]):
            before = project.content()
            with in_place(project.scratch, project.tree, GRADERS) as placed:
                frozen[name] = project.content(GRADERS)
                assert placed.altered() == ()
            restored[name] = project.content() == before
    assert [name for name, found in frozen.items() if found != expected] == []
    assert [name for name, same in restored.items() if not same] == []
    assert contents(project.outside) == outside
    assert not list(Path(project.scratch.root).glob("aside*"))


@contextmanager
def edited(top: Path, edits: Edits) -> Iterator[None]:
    """A checkout as a commit with these edits would make it, for a while."""
    shutil.copytree(top, top.parent / "before", symlinks=True)
    for path in edits:
        (top / path).unlink(missing_ok=True)
        for above in (top / path).parents:
            if above != top and above.is_dir() and not list(above.iterdir()):
                above.rmdir()
    for path, edit in edits.items():
        if edit is not None:
            _put(top / path, *edit)
    yield
    shutil.rmtree(top)
    (top.parent / "before").rename(top)


def _put(path: Path, mode: str, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == "120000":
        path.symlink_to(content)
    elif mode == "160000":
        path.mkdir()
        (path / "check.sh").write_text("exit 0\n")
    else:
        path.write_text(content)
        path.chmod(0o755 if mode == "100755" else 0o644)


@pytest.mark.parametrize("names", some_by_default(THOROUGHLY, "hidden by ignore rules", "a submodule below it"))
def test_no_cheat_of_a_change_lets_a_check_pass_or_come_to_nothing(
    names: Sequence[str], a_project_with_graders: Project
) -> None:
    project = a_project_with_graders
    found: dict[str, object] = {}
    for name in names:
        slot = project.slot(f"cheat/{THOROUGHLY.index(name)}")
        done = project.check(slot, "sh tests/acceptance/check.sh")
        assert slot.before is not None
        found[name] = (done.run.reason, watch.changes(slot.scratch, slot.before))
    assert found == dict.fromkeys(names, ("exit 7", ()))


# What a check does to graders while it runs → what is said of it; @OUTSIDE@ is a directory of the user's.
DEEDS = {
    "echo more >>tests/acceptance/data": "source_changed: grader modified: tests/acceptance/data",
    "rm tests/acceptance/tool": "source_changed: grader deleted: tests/acceptance/tool",
    "rm tests/unit/one.sh; mv tests/unit/two.sh tests/unit/one.sh":
        "source_changed: grader modified: tests/unit/one.sh, deleted: tests/unit/two.sh",
    "chmod -x run-me": "source_changed: grader modified: run-me, mode changed: run-me",
    "cd tests/unit && rm one.sh && ln -s two.sh one.sh":
        "source_changed: grader modified: tests/unit/one.sh, replaced by a symbolic link: tests/unit/one.sh",
    "rm run-me; mkdir run-me": "source_changed: grader modified: run-me, replaced by a directory: run-me",
    "mv tests/acceptance/deep x; ln -s ../../x tests/acceptance/deep":
        "source_changed: grader deleted: tests/acceptance/deep/er/file, new file: tests/acceptance/deep, new file: x/",
    "mv tests ..; ln -s @OUTSIDE@/.. tests": "source_changed: grader deleted: ",
    "rm -rf tests; ln -s @OUTSIDE@/.. tests": "source_changed: grader deleted: ",
    "echo junk >tests/acceptance/conftest.py": "source_changed: new file: tests/acceptance/conftest.py",
    "echo '*' >tests/acceptance/.gitignore; echo junk >tests/acceptance/conftest.py":
        "source_changed: grader modified: tests/acceptance/.gitignore",
    "echo '*' >tests/unit/.gitignore; rm tests/unit/one.sh":
        "source_changed: grader deleted: tests/unit/one.sh, new file: tests/unit/.gitignore",
    "echo more >>feature": "source_changed: modified: feature",
    "git -c user.name=n -c user.email=e commit -q --allow-empty -m x": "source_changed: HEAD moved to ",
    'rm -rf "$PWD"': "source_changed: ",
    "cd ..; mv work elsewhere; ln -s @OUTSIDE@/.. work": "source_changed: ",
}  # fmt: skip
# What leaves graders as they are, and how such a check ends.
HARMLESS = {
    "mkdir tests/acceptance/products; echo x >tests/acceptance/products/y; chmod 500 tests/acceptance/products": "",
    "chmod -R a-w tests/acceptance; chmod a-w tests tests/unit": "",
    "echo x >tests/acceptance/x.o": "",
    "exit 1": "exit 1",
    "exit 125": "exit 125",
    "exec no-such-program": "exit 127",
    "exec sleep 60": "timed out after 1 s",
    "kill -KILL $$": "ended by signal 9",
    "cd tests/acceptance; cp data again; rm data; mv again data": "",
}  # fmt: skip
STANDING = {
    "tests/acceptance/built.o": "a product", "tests/acceptance/products/deep/x": "of set-up", "tests/unit/1.o": "x",
}  # fmt: skip


def _stood(project: Project) -> slots.Slot:
    """A checkout whose graders are others, with products of set-up among them and read-only directories."""
    slot = project.slot("other")
    top = Path(project.scratch.worktree)
    for path, content in STANDING.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)
    for path in ("tests/acceptance/products/deep", "tests/acceptance/products", "tests/acceptance", "tests"):
        (top / path).chmod(0o555)
    return slot


@pytest.mark.parametrize(
    "deeds", some_by_default(list(DEEDS), "rm tests/acceptance/tool", "rm -rf tests; ln -s @OUTSIDE@/.. tests")
)
def test_a_check_that_alters_graders_proves_nothing_and_reaches_nothing_of_the_users(
    deeds: Sequence[str], a_project_with_graders: Project, tmp_path: Path
) -> None:
    project = a_project_with_graders
    outside = contents(project.outside.parent)
    for number, deed in enumerate(deeds):
        with scratch(project.repo, directory=str(tmp_path / f"other-{number}")) as project.scratch:
            done = project.check(project.slot("main"), deed.replace("@OUTSIDE@", str(project.outside)))
        assert (deed, done.run.result) == (deed, "inconclusive")
        assert done.run.reason.startswith(DEEDS[deed]), (deed, done.run.reason)
    assert contents(project.outside.parent) == outside


@pytest.mark.parametrize("deeds", some_by_default(list(HARMLESS), *list(HARMLESS)[:2]))
def test_after_a_check_that_leaves_graders_alone_the_checkout_is_as_before(
    deeds: Sequence[str], a_project_with_graders: Project
) -> None:
    project = a_project_with_graders
    slot = _stood(project)
    before = project.content()
    for deed in deeds:
        done = project.check(slot, deed, timeout_seconds=1 if deed.startswith("exec sleep") else 60)
        assert (deed, done.run.reason) == (deed, HARMLESS[deed])
        assert (deed, project.content()) == (deed, before)
    assert slot.before is not None
    assert watch.changes(slot.scratch, slot.before) == ()
