"""Environments that lead a check back into the user's work tree."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from gitevals.evaluate import environment, leaks
from gitevals.git.repo import discover
from gitevals.model.contract import Command
from tests.conftest import Place

SITE = "lib/python3.11/site-packages"
INFO = f"{SITE}/pkg-0.1.dist-info/direct_url.json"
# As setuptools 80 writes it, shortened in the middle.
FINDER = """\
from __future__ import annotations
import sys
from pathlib import Path

MAPPING: dict[str, str] = {'pkg': '%s'}
NAMESPACES: dict[str, list[str]] = {}
PATH_PLACEHOLDER = '__editable__.pkg-0.1.finder' + ".__path_hook__"


def install():
    sys.meta_path.append(_EditableFinder)
"""
# As meson-python writes it, shortened.
LOADER = """\
def install(names, tree_path, cmd, verbose, build_path, quiet):
    sys.meta_path.insert(0, MesonpyMetaFinder(names, tree_path, cmd, verbose))
install({'pkg'}, '%s', ['/usr/bin/ninja'], False)
"""


class Layout:
    """A work tree, a virtual environment and a home beside it; paths in tables are below them, ``%s`` is the tree."""

    def __init__(self, root: Path) -> None:
        self.root, self.tree, self.venv, self.home = root, root / "my tree", root / "venv", root / "home"
        for folder in (self.tree / "src/pkg", self.venv / "bin", self.home):
            folder.mkdir(parents=True)
        self.write("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")

    def write(self, path: str, content: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content.replace("%s", str(self.tree)).replace("%u", str(self.tree).replace(" ", "%20")))
        return file

    def link(self, path: str, target: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target.replace("%s", str(self.tree)))

    def judge(self, *path: str, ignored: Sequence[str] = (), **inherited: str) -> leaks.Surroundings:
        def ask(paths: Sequence[str]) -> Collection[str]:
            hidden = [str(self.tree / name) for name in ignored]
            return {path for path in paths for name in hidden if path == name or path.startswith(f"{name}/")}

        entries = [entry if entry in ("", ".") else str(self.root / entry) for entry in path]
        given = {"PATH": ":".join(entries), "HOME": str(self.home), **inherited}
        return leaks.surroundings(given, [str(self.tree)], ask)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def editable(url: str = "file://%u") -> str:
    return json.dumps({"dir_info": {"editable": True}, "url": url})


@pytest.mark.parametrize(
    ("files", "source", "target"),
    [
        ({f"{SITE}/_editable_impl_pkg.pth": "%s/src"}, "_editable_impl_pkg.pth", "src"),
        ({f"{SITE}/pkg.pth": "# a comment\n\n%s/src\n"}, "pkg.pth", "src"),
        ({f"{SITE}/pkg.pth": "\ufeff%s\r\n"}, "pkg.pth", ""),
        ({f"{SITE}/pkg.pth": "../../../../my tree/src"}, "pkg.pth", "src"),
        ({"lib/python3.12/site-packages/pkg.pth": "%s"}, "pkg.pth", ""),
        ({"lib/pypy3.10/site-packages/pkg.pth": "%s"}, "pkg.pth", ""),
        ({"lib64/python3.11/site-packages/pkg.pth": "%s"}, "pkg.pth", ""),
        ({"lib/python3/dist-packages/pkg.pth": "%s"}, "pkg.pth", ""),
        ({"local/lib/python3.11/dist-packages/pkg.pth": "%s"}, "pkg.pth", ""),
        (
            {f"{SITE}/__editable__.pkg-0.1.pth": "%s/build/__editable__.pkg-0.1-py3-none-any\n"},
            "__editable__.pkg-0.1.pth",
            "build/__editable__.pkg-0.1-py3-none-any",
        ),
        (
            {
                f"{SITE}/__editable__.pkg-0.1.pth": "import __editable___pkg_0_1_finder;"
                " __editable___pkg_0_1_finder.install()",
                f"{SITE}/__editable___pkg_0_1_finder.py": FINDER.replace("%s", "%s/src/pkg"),
            },
            "__editable___pkg_0_1_finder.py",
            "src/pkg",
        ),
        (
            {
                f"{SITE}/_editable_impl_pkg.pth": "import _editable_impl_pkg",
                f"{SITE}/_editable_impl_pkg.py": "from editables.redirector import RedirectingFinder as F\n"
                "F.install()\nF.map_module('pkg', '%s/src/pkg/__init__.py')",
            },
            "_editable_impl_pkg.py",
            "src/pkg/__init__.py",
        ),
        (
            {f"{SITE}/pkg-editable.pth": "import _pkg_editable_loader", f"{SITE}/_pkg_editable_loader.py": LOADER},
            "_pkg_editable_loader.py",
            "",
        ),
        (
            {
                f"{SITE}/pkg.pth": "import _pkg_editable",
                f"{SITE}/_pkg_editable.py": "print 'old syntax'\ninstall('%s/src')",
            },
            "_pkg_editable.py",
            "src",
        ),
        ({f"{SITE}/dev.pth": 'import sys; sys.path.insert(0, "%s/src")'}, "dev.pth", "src"),
        ({f"{SITE}/dev.pth": 'import sys; sys.path.append("%s" "/src")'}, "dev.pth", "src"),
        ({f"{SITE}/dev.pth": "import sys; exec('import x; x.use(\"%s\")')"}, "dev.pth", ""),
        ({f"{SITE}/sitecustomize.py": "import sys\nsys.path.append('%s/src')\n"}, "sitecustomize.py", "src"),
        (
            {f"{SITE}/easy-install.pth": "import sys; sys.__plen = len(sys.path)\n%s/src\nimport sys; new = 1\n"},
            "easy-install.pth",
            "src",
        ),
        ({f"{SITE}/pkg.egg-link": "%s/src\n../"}, "pkg.egg-link", "src"),
        ({INFO: editable()}, "direct_url.json", ""),
        ({INFO: editable("file://localhost%u/src")}, "direct_url.json", "src"),
    ],
)
def test_an_editable_install_on_the_path_is_a_leak(
    files: Mapping[str, str], source: str, target: str, layout: Layout
) -> None:
    for path, content in files.items():
        layout.write(f"venv/{path}", content)
    (told,) = layout.judge("venv/bin", "/usr/bin").leaks
    file, _, place = told.partition(" leads back to ")
    assert (os.path.basename(file), place) == (source, str(layout.tree / target).rstrip("/"))


@pytest.mark.parametrize(
    "origin",
    [
        {"dir_info": {}, "url": "file://%u"},
        {"archive_info": {"hash": "sha256=00"}, "url": "file://%u/dist/pkg-0.1-py3-none-any.whl"},
        {"vcs_info": {"vcs": "git", "commit_id": "00"}, "url": "file://%u"},
    ],
)
def test_an_installed_copy_of_the_work_tree_is_a_leak_that_is_called_a_copy(
    origin: dict[str, object], layout: Layout
) -> None:
    layout.write(f"venv/{INFO}", json.dumps(origin))
    (told,) = layout.judge("venv/bin").leaks
    assert f" tells of a copy of {layout.tree}" in told


@pytest.mark.parametrize(
    "files",
    [
        {f"{SITE}/pkg/__init__.py": "path = '%s'"},
        {f"{SITE}/pkg.pth": "# %s\n\n%s-old/src\n/usr/share/pkg\n"},
        {f"{SITE}/dev.pth": "import sys; sys.path.insert(0, '%s-old')"},
        {f"{SITE}/dev.pth": "import sys; exec('import x; x.use(\"%s-old\")')"},
        {f"{SITE}/pkg.pth": "#/../../../../../my tree/src\n"},
        {f"{SITE}/pkg.pth": "\0%s\0"},
        {f"{SITE}/pkg.pth/inner": "%s", f"{SITE}/other.egg-link/inner": "%s"},
        {f"{SITE}/__editable__.gone.pth": "import __editable___gone_finder"},
        {f"{SITE}/x.egg-link": "\n"},
        {INFO: editable("file://%u-old")},
        {INFO: editable("https://example.org%u")},
        {INFO: editable("file://[%u")},
        {INFO: "[" * 5000},
        {INFO: '{"url": 3}'},
        {INFO: "\udcff{".encode("utf-8", "surrogateescape").decode("latin-1")},
    ],
)
def test_what_leads_elsewhere_or_cannot_be_read_is_no_leak(files: Mapping[str, str], layout: Layout) -> None:
    for path, content in files.items():
        layout.write(f"venv/{path}", content)
    os.mkfifo(layout.venv / "pipe.pth")
    (layout.root / "bin").mkdir()
    (layout.root / "bin/loop").symlink_to("loop")
    (layout.root / "bin/here").symlink_to(".")
    found = layout.judge("venv/bin", "bin", "absent/bin")
    assert (found.leaks, found.dropped) == ((), ())


def test_a_pipe_among_the_files_is_not_waited_for(layout: Layout) -> None:
    site = layout.write(f"venv/{SITE}/a.pth", "%s").parent
    os.mkfifo(site / "b.pth")
    assert len(layout.judge("venv/bin").leaks) == 1


@pytest.mark.parametrize(
    ("links", "files", "path"),
    [
        ({"bin/python3": "../other/bin/python3"}, {"other/bin/python3": ""}, "bin"),
        ({"bin/python3.11": "python3", "bin/python3": "../other/bin/python"}, {"other/bin/python": ""}, "bin"),
        ({"tools": "other/bin"}, {"other/bin/python": ""}, "tools"),
        ({"apps/mytool": "../other/bin/mytool"}, {"other/bin/mytool": "", "other/pyvenv.cfg": ""}, "apps"),
        ({}, {"apps/pytest": "#!%r/other/bin/python3\n"}, "apps"),
        ({}, {"apps/pytest": "#!/bin/sh\n'''exec' %r/other/bin/python3 \"$0\" \"$@\"\n' '''\n"}, "apps"),
        ({}, {"apps/py.test": "#!/bin/sh\n'''exec' \"%r/other/bin/python3\" \"$0\" \"$@\"\n' '''\n"}, "apps"),
        (
            {"v/bin/python": "python3", "v/bin/python3": "../../other/bin/python3"},
            {"v/pyvenv.cfg": "home = %r/other/bin\ninclude-system-site-packages = TRUE\n", "other/bin/python3": ""},
            "v/bin",
        ),
        ({"pyenv/versions/mine": "../../other"}, {"pyenv/shims/python": "#!/bin/sh\n"}, "pyenv/shims"),
    ],
)
def test_interpreters_are_followed_to_where_their_packages_are(
    links: Mapping[str, str], files: Mapping[str, str], path: str, layout: Layout
) -> None:
    for name, content in files.items():
        layout.write(name, content.replace("%r", str(layout.root)))
    for name, target in links.items():
        layout.link(name, target)
    pth = layout.write(f"other/{SITE}/pkg.pth", "%s/src")
    assert layout.judge(path).leaks == (f"{pth} leads back to {layout.tree}/src",)


def test_an_environment_whose_program_folder_is_a_link_is_still_looked_at(layout: Layout) -> None:
    layout.write("tools/tool")
    layout.link("v/bin", str(layout.root / "tools"))
    pth = layout.write(f"v/{SITE}/pkg.pth", "%s")
    assert layout.judge("v/bin", "v/bin").leaks == (f"{pth} leads back to {layout.tree}",)


def test_a_virtual_environment_does_not_see_the_packages_of_its_interpreter(layout: Layout) -> None:
    layout.write("other/bin/python3")
    layout.write(f"other/{SITE}/pkg.pth", "%s/src")
    layout.write("venv/pyvenv.cfg", f"home = {layout.root}/other/bin\ninclude-system-site-packages = false\n")
    layout.link("venv/bin/python3", str(layout.root / "other/bin/python3"))
    layout.link("venv/bin/python", "python3")
    assert layout.judge("venv/bin").leaks == ()


@pytest.mark.parametrize("place", [".local", "Library/Python/3.11"])
def test_packages_in_the_users_home_count(place: str, layout: Layout) -> None:
    pth = layout.write(f"home/{place}/{SITE}/pkg.pth", "%s")
    assert layout.judge("venv/bin").leaks == (f"{pth} leads back to {layout.tree}",)


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("node/lib/node_modules/pkg", "%s/packages/pkg", "node/bin"),
        ("node/lib/node_modules/@me/pkg", "%s/packages/pkg", "node/bin"),
        ("my tree/node_modules/pkg", "../packages/pkg", "my tree/node_modules/.bin"),
        ("my tree/node_modules/@me/pkg", "../../packages/pkg", "my tree/node_modules/.bin"),
        (f"venv/{SITE}/pkg", "%s/packages/pkg", "venv/bin"),
        ("apps/tool", "%s/packages/pkg", "apps"),
        ("my tree/tools/run", "../packages/pkg", "my tree/tools"),
    ],
)
def test_a_link_into_the_work_tree_is_a_leak(link: str, target: str, path: str, layout: Layout) -> None:
    layout.write("my tree/packages/pkg/index.js")
    (layout.root / path).mkdir(parents=True, exist_ok=True)
    layout.link(link, target)
    found = layout.judge(path, ignored=["node_modules", "tools"])
    assert found.leaks == (f"{layout.root / link} leads back to {layout.tree}/packages/pkg",)
    assert found.dropped == ()


def test_what_belongs_to_an_ignored_installation_in_the_work_tree_is_no_leak(layout: Layout) -> None:
    layout.write("my tree/.venv/pyvenv.cfg", "home = /usr/bin\n")
    layout.write("my tree/.venv/bin/tool-1")
    layout.link("my tree/.venv/bin/tool", "tool-1")
    layout.write(f"my tree/.venv/{SITE}/dep.pth", "%s/.venv/src/dep")
    layout.link("my tree/node_modules/dep", ".pnpm/dep@1/node_modules/dep")
    layout.write("my tree/node_modules/.bin/dep")
    layout.link("apps/tool", "%s/.venv/bin/tool-1")
    layout.link("my tree/packages/a/node_modules/dep", "../../../node_modules/.pnpm/dep@1/node_modules/dep")
    layout.write("my tree/packages/a/node_modules/.bin/dep")
    layout.write("my tree/own/bin/tool")
    layout.write(f"my tree/own/{SITE}/dep.pth", "%s/own/src/dep")
    folders = (".venv/bin", "node_modules/.bin", "packages/a/node_modules/.bin", "own/bin")
    entries = (*(f"my tree/{folder}" for folder in folders), "apps")
    hidden = [".venv", "node_modules", "packages/a/node_modules", "own/bin", "own/pyvenv.cfg"]
    found = layout.judge(*entries, ignored=hidden)
    assert found == leaks.Surroundings(path=":".join(str(layout.root / entry) for entry in entries))


def test_a_work_tree_that_is_a_virtual_environment_itself_hides_nothing(layout: Layout) -> None:
    layout.write("my tree/pyvenv.cfg", "home = /usr/bin\n")
    layout.write("my tree/bin/tool")
    layout.link("apps/tool", "%s/bin/tool")
    pth = layout.write(f"my tree/{SITE}/pkg.pth", "%s/src")
    found = layout.judge("my tree/bin", "apps", ignored=["bin", "lib", "pyvenv.cfg"])
    assert set(found.leaks) == {
        f"{layout.root}/apps/tool leads back to {layout.tree}/bin/tool",
        f"{pth} leads back to {layout.tree}/src",
    }


def test_entries_that_mean_the_work_tree_or_the_current_directory_are_dropped(layout: Layout) -> None:
    layout.link("alias", "%s")
    (layout.tree / "scripts").mkdir()
    layout.write("my tree/.venv/bin/tool")
    found = layout.judge("", "venv/bin", "alias/scripts", "my tree", ".", "alias/.venv/bin", ignored=[".venv"])
    assert found.path == f"{layout.root}/venv/bin:{layout.root}/alias/.venv/bin"
    assert found.dropped == (".", f"{layout.root}/alias/scripts", str(layout.tree))


@pytest.mark.parametrize("path", ["", ":", "."])
def test_a_path_that_holds_nothing_usable_becomes_the_default(path: str, layout: Layout) -> None:
    assert layout.judge(PATH=path).path == "/usr/bin:/bin"


@pytest.mark.parametrize(("ignored", "count"), [([], 1), ([".home"], 0)])
def test_a_home_inside_the_work_tree_is_a_leak_unless_ignored(ignored: list[str], count: int, layout: Layout) -> None:
    found = layout.judge("venv/bin", HOME=f"{layout.tree}/.home", ignored=ignored)
    assert found.leaks == (f"HOME leads back to {layout.tree}/.home",) * count


def test_leaks_are_bounded_and_can_be_stored_whatever_bytes_a_path_has(layout: Layout) -> None:
    site = layout.write(f"venv/{SITE}/x.pth", "".join(f"%s/{n}\n" for n in range(500))).parent
    (site / "a.pth").write_bytes(os.fsencode(layout.tree) + b"/\xff")
    found = layout.judge("venv/bin", f"{layout.tree}/\udcff").leaks
    assert len(found) == 200
    assert found[0].encode().endswith("/\ufffd".encode())


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("%s/src", "src"),
        ("src:%s/src", "src"),
        ("%s/src:src:/usr", "src"),
        ("src:lib", None),
        ("%s-old/src:/usr", None),
        ("a=%s/x,b=/usr", "x"),
        ("-I%s/include", "include"),
        ("--rootdir=%s/x", "x"),
        ("file://%u/x", "x"),
        ("git+file://%u", ""),
        ("https://example.org%s/x", None),
        ("%l/include", "include"),
        ("-O2 -I%l/include", "include"),
        ("-c '%l/pytest.ini'", "pytest.ini"),
        ("/%s/x", "x"),
        ("%l/../elsewhere", None),
        ("\0%l", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("source", ["env", "pass_env"])
def test_a_variable_that_names_the_work_tree_is_a_leak(
    source: str, value: str, target: str | None, layout: Layout
) -> None:
    layout.link("alias", "%s")
    value = value.replace("%s", str(layout.tree)).replace("%u", str(layout.tree).replace(" ", "%20"))
    value = value.replace("%l", f"{layout.root}/alias")
    given, inherited = ({"NAME": value}, {}) if source == "env" else ({}, {"NAME": value})
    command = Command(command=("true",), timeout_seconds=1, env=given, pass_env=("NAME", "ABSENT"))
    expected = () if target is None else (f"{source} NAME leads back to {layout.tree / target}".rstrip("/"),)
    assert leaks.of_command(command, inherited, [str(layout.tree)]) == expected


def test_variables_that_name_other_installations_are_followed(layout: Layout) -> None:
    pth = layout.write(f"venv/{SITE}/pkg.pth", "%s")
    for env in ({"PATH": f"{layout.venv}/bin:."}, {"PYTHONUSERBASE": str(layout.venv)}):
        command = Command(command=("true",), timeout_seconds=1, env=env)
        assert leaks.of_command(command, {}, [str(layout.tree)]) == (f"{pth} leads back to {layout.tree}",)


def test_what_pass_env_does_not_hand_on_is_no_leak_either(layout: Layout) -> None:
    inherited = {
        name: str(layout.tree)
        for name in ("PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "GIT_DIR", "GITEVALS_WRITER", "PYTHONPATH", "OTHER")
    }
    command = Command(command=("true",), timeout_seconds=1, pass_env=tuple(inherited)[:-1])
    told = leaks.of_command(command, inherited, [str(layout.tree)])
    overridden = msgspec.structs.replace(command, env={"PYTHONPATH": "src"})
    assert leaks.of_command(overridden, inherited, [str(layout.tree)]) == ()
    assert told == (f"pass_env PYTHONPATH leads back to {layout.tree}",)
    given = environment.built(
        inherited, command, path="/usr/bin", base="b", head="h", task="t", root="/s", temporary="/s/tmp"
    )
    assert given == {
        "PATH": "/usr/bin",
        "HOME": str(layout.tree),
        "LANG": str(layout.tree),
        "TMPDIR": "/s/tmp",
        "GIT_CEILING_DIRECTORIES": "/s",
        "GIT_TERMINAL_PROMPT": "0",
        "GITEVALS_BASE": "b",
        "GITEVALS_HEAD": "h",
        "GITEVALS_TASK": "t",
        "PYTHONPATH": str(layout.tree),
    }


def test_git_says_which_work_trees_there_are_and_what_they_ignore(a_repo: Place, tmp_path: Path) -> None:
    a_repo.commit({".gitignore": ".venv/\n/kept\n/tools\n", "scripts/run": "x"})
    a_repo.write("tools/bin/run", "x")
    a_repo.git("add", "-f", "tools/bin/run")
    linked = tmp_path / "linked\ntree"
    a_repo.git("worktree", "add", "-q", "--detach", str(linked))
    a_repo.git("worktree", "add", "-q", "--detach", str(a_repo.path / "kept/inner"))
    a_repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    a_repo.write("own/.gitignore", "*\n")
    repo = discover(str(a_repo.path))
    trees = leaks.worktrees(repo)
    assert set(trees) == {str(place) for place in (a_repo.path, linked, a_repo.path / "kept/inner", tmp_path / "gone")}
    assert set(leaks.worktrees(discover(str(linked)))) == set(trees)
    hidden = [a_repo.path / ".venv/bin", a_repo.path / "own/bin", linked / "sub/.venv/bin", a_repo.path / "kept/x"]
    plain = ["scripts", "tools/bin", "tools", "", "kept/inner", "kept/inner/scripts", ".git/bin"]
    asked = [*hidden, *(a_repo.path / name for name in plain), tmp_path / "gone/bin", tmp_path / "elsewhere"]
    answer = leaks.ignored_by_git(repo, trees)([str(path) for path in asked])
    assert set(answer) == {str(path) for path in hidden}


def test_a_submodule_knows_its_work_tree_and_does_not_hide_what_else_is_ignored(a_repo: Place, tmp_path: Path) -> None:
    module = Place(tmp_path / "module")
    module.path.mkdir()
    module.git("init", "-q")
    module.commit({".gitignore": "bin\n"})
    a_repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module.path), "sub")
    a_repo.commit({".gitignore": ".venv/\n"})
    linked = tmp_path / "linked"
    Place(a_repo.path / "sub").git("worktree", "add", "-q", "--detach", str(linked))
    assert set(leaks.worktrees(discover(str(linked)))) == {str(linked), str(a_repo.path / "sub")}
    repo = discover(str(a_repo.path))
    asked = [str(a_repo.path / name) for name in ("sub/bin", ".venv/bin")]
    assert set(leaks.ignored_by_git(repo, leaks.worktrees(repo))(asked)) == {asked[1]}


def test_a_bare_repository_has_no_work_tree(a_repo: Place, tmp_path: Path) -> None:
    a_repo.git("init", "-q", "--bare", str(tmp_path / "bare.git"))
    a_repo.git("config", "core.bare", "true")
    for git_dir in (tmp_path / "bare.git", a_repo.path / ".git"):
        assert leaks.worktrees(discover(str(git_dir))) == ()


def test_a_work_tree_apart_from_its_git_directory_is_known_from_within(tmp_path: Path) -> None:
    Place(tmp_path).git("init", "-q", "--separate-git-dir", "store", "tree")
    assert leaks.worktrees(discover(str(tmp_path / "tree"))) == (str(tmp_path / "tree"),)


def test_python_agrees_that_an_editable_install_leads_back(layout: Layout) -> None:
    """The interpreter itself imports from the work tree what is reported, and nothing once it is gone."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    layout.write("venv/pyvenv.cfg", f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    layout.link("venv/bin/python3", os.path.realpath(sys.executable))
    layout.write("my tree/src/pkg/__init__.py")
    pth = layout.write(f"venv/lib/{version}/site-packages/pkg.pth", "%s/src\n")
    question = [str(layout.venv / "bin/python3"), "-B", "-c", "import pkg; print(pkg.__path__[0])"]
    printed = subprocess.run(question, capture_output=True, text=True, check=True).stdout
    assert layout.judge("venv/bin").leaks == (f"{pth} leads back to {os.path.dirname(printed.strip())}",)
    pth.unlink()
    assert subprocess.run(question, capture_output=True, check=False).returncode == 1
    assert layout.judge("venv/bin").leaks == ()
