"""Every command in every kind of repository, and beside whatever else people have set."""

import json
from pathlib import Path

import pytest

from tests.conftest import Place, evals
from tests.repositories import KINDS, branched, done, pass_the_gate, tell


@pytest.fixture
def a_story(a_project: Place) -> Place:
    """A project with three branches: two that do their task, and one that does not."""
    return branched(a_project)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_works_in(kind: str, a_story: Place) -> None:
    tell(KINDS[kind](a_story))


# kind → what the doctor says that is special about it
SAID = {
    "partial": ["a partial clone"],
    "sparse": ["a sparse checkout"],
    "with replacements": ["2 objects are replaced", "info/grafts changes"],
    "sharing": ["objects are borrowed from "],
    "sha256": ["complete, sha256"],
    "sha256 and reftable": ["complete, sha256, reftable"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAID)
def test_the_doctor_says_what_is_special_about_a_repository(kind: str, a_story: Place) -> None:
    answer = evals(KINDS[kind](a_story), "doctor", "--json")
    said = [entry["text"] for entry in json.loads(answer.out)["findings"] if entry["name"] == "repository"]
    assert len(said) == len(SAID[kind]), said
    assert all(text.startswith(start) for text, start in zip(said, SAID[kind], strict=True)), said


@pytest.mark.parametrize("object_format", ["sha256"], indirect=True)
def test_the_gate_holds_and_opens_in_a_sha256_repository(a_story: Place) -> None:
    pass_the_gate(a_story)


# What people set for themselves, or by mistake, and what must steer no decision.
SETTINGS = """
[core]
	quotePath = true
	pager = false
	attributesFile = ~/attributes
	excludesFile = ~/ignore
	autocrlf = input
	fileMode = false
	logAllRefUpdates = false
	commentChar = T
	abbrev = 4
	editor = false
	notesRef = refs/notes/mine
[color]
	ui = always
[column]
	ui = always
[diff]
	external = false
	noprefix = true
	renames = copies
	orderFile = /nowhere
	ignoreSubmodules = all
[log]
	showSignature = true
	date = relative
	decorate = full
	follow = true
[format]
	pretty = oneline
[merge]
	conflictStyle = diff3
	renames = false
	log = true
	autoStash = true
[pull]
	rebase = true
[commit]
	template = /nowhere
	cleanup = scissors
[tag]
	gpgSign = true
	sort = -version:refname
[branch]
	sort = -committerdate
[init]
	templateDir = ~/template
	defaultObjectFormat = sha256
	defaultRefFormat = reftable
	defaultBranch = trunk
[feature]
	experimental = true
	manyFiles = true
[fetch]
	prune = true
	recurseSubmodules = true
[transfer]
	fsckObjects = true
	hideRefs = refs/notes
[status]
	short = true
	showUntrackedFiles = no
[submodule]
	recurse = true
[rerere]
	enabled = true
	autoUpdate = true
[alias]
	log = !false
	cat-file = !false
[pager]
	log = true
	for-each-ref = true
[trailer]
	separators = "%"
	where = start
	ifmissing = doNothing
[i18n]
	commitEncoding = ISO-8859-1
	logOutputEncoding = UTF-16
[gpg]
	program = false
[help]
	autoCorrect = immediate
[checkout]
	workers = 4
[index]
	sparse = true
	version = 4
	skipHash = true
[pack]
	indexVersion = 1
"""
VARIABLES = {
    "GIT_DEFAULT_HASH": "sha256",
    "GIT_DEFAULT_REF_FORMAT": "reftable",
    "GIT_TRACE": "2",
    "GIT_TRACE2": "1",
    "GIT_TRACE_SETUP": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.quotePath",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_CONFIG_KEY_1": "color.ui",
    "GIT_CONFIG_VALUE_1": "always",
    "GIT_CEILING_DIRECTORIES": "/",
    "GIT_PAGER": "false",
    "GIT_EXTERNAL_DIFF": "false",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NOTES_REF": "refs/notes/mine",
    "LANGUAGE": "de",
}


@pytest.mark.slow
def test_no_setting_of_the_user_steers_anything(a_story: Place, sealed: Path) -> None:
    with (sealed / ".gitconfig").open("a") as file:
        file.write(SETTINGS)
    (sealed / "attributes").write_text("* diff=x merge=x\n")
    (sealed / "ignore").write_text("ok-*\n")
    hook = sealed / "template/hooks/post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    tell(a_story)


@pytest.mark.slow
def test_no_variable_of_git_steers_anything(a_story: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    tell(a_story)


@pytest.mark.slow
def test_a_repository_that_only_variables_name_is_worked_in(a_story: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(a_story.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(a_story.path))
    elsewhere = Place(a_story.path.with_name("elsewhere"))
    elsewhere.path.mkdir()
    tell(elsewhere)
    assert list(elsewhere.path.iterdir()) == []


ASKED = (
    ("status",),
    ("tasks",),
    ("verify", "--task", "42", "--branch", "task/42"),
    ("run", "42", "--force"),
    ("audit",),
    ("log",),
)


def processes(place: Place, trace: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many git processes each command takes, and last a movement that the hook refuses."""
    counts = []
    for arguments in (*ASKED, None):
        trace.unlink(missing_ok=True)
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        if arguments:
            done(place, *arguments)
        else:
            moved = place.attempt("git", "update-ref", "refs/heads/main", "task/wrong")
            assert b"git-evals: refused" in moved.stderr
        monkeypatch.delenv("GIT_TRACE2_EVENT")
        counts.append(trace.read_text().count('"event":"start"'))
    return counts


@pytest.mark.slow
def test_sixty_thousand_refs_take_no_more_processes_than_a_few(
    a_story: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(a_story, "init")
    done(a_story, "run", "42")
    few = processes(a_story, tmp_path / "trace", monkeypatch)
    tip = a_story.git("rev-parse", "main")
    names = sorted(
        f"refs/{kind}/x{n // 500}/{n}" for kind in ("heads", "tags", "remotes/origin") for n in range(20_000)
    )
    header = "# pack-refs with: peeled fully-peeled sorted \n"
    packed = a_story.write(".git/packed-refs", header + "".join(f"{tip} {name}\n" for name in names))
    assert a_story.git("for-each-ref", "--format=x").count("x") > len(names)
    assert processes(a_story, tmp_path / "trace", monkeypatch) == few
    packed.unlink()
    for name in names:
        a_story.write(f".git/{name}", f"{tip}\n")
    assert processes(a_story, tmp_path / "trace", monkeypatch) == few
