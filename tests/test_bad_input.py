"""Bad input: one clear line, a hint, exit 2, and nothing written; hostile evidence is reported and hides nothing."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CONFIG, Answer, Place, evals, with_task_branch

TASKS = "tasks/42.md"
SECTION = "# T\n\n## Acceptance Criteria\n\n"


def everything(place: Place) -> str:
    return place.git("for-each-ref", "--format=%(refname) %(objectname)") + place.git("symbolic-ref", "HEAD")


def assert_is_bad_input(answer: Answer, *said: str) -> None:
    """Whether ``answer`` is exit 2 with one line that holds all of ``said`` and one hint, whatever notices precede."""
    assert answer.code == 2, answer
    assert answer.out == ""
    lines = [line for line in answer.err.rstrip("\n").split("\n") if not line.startswith(("note: ", "warning: "))]
    assert len(lines) == 2, answer
    assert lines[0].startswith("git-evals: "), answer
    assert lines[1].startswith("hint: "), answer
    assert len(lines[1]) > len("hint: x")
    missing = [text for text in said if text not in lines[0]]
    assert missing == [], answer


def configured(place: Place, text: str) -> None:
    place.commit({".gitevals.yaml": text}, "configure")


def with_lines(*lines: str) -> str:
    return CONFIG.format(mode="enforce") + "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# T\n\nJust prose.\n", ["tasks/42.md: no acceptance section"]),
        ("# T\n\n- [ ] looks like one\n", ["tasks/42.md: no acceptance section"]),
        (f"{SECTION}- no box\n- none here\n", ["tasks/42.md:", "no checklist entry"]),
        (f"{SECTION}```\n- [ ] in code\n```\n", ["tasks/42.md:", "no checklist entry"]),
        (f"{SECTION}<!-- - [ ] hidden -->\n", ["tasks/42.md:", "no checklist entry"]),
        (f"{SECTION}- [ ] [AC-7] one\n- [ ] [AC-7] two\n", ["tasks/42.md:6:", "AC-7", "5"]),
        (f"{SECTION}- [ ] one\n- [ ] [AC-1] two\n", ["tasks/42.md:6:", "AC-1", "5"]),
        (f"{SECTION}- [ ] [7 up] one\n", ["tasks/42.md:5:", "7 up"]),
        (f"{SECTION}- [ ] [\x1b[31mx] one\n", ["tasks/42.md:5:"]),
        ("\x00\x01", ["tasks/42.md"]),
        (f"{SECTION}- [ ] x\n" + "x" * (1 << 19), ["tasks/42.md"]),
    ],
)
def test_a_text_that_yields_no_criteria(text: str, said: list[str], a_project: Place) -> None:
    a_project.commit({TASKS: text}, "task")
    before = everything(a_project)
    for command in ("run", "freeze"):
        assert_is_bad_input(evals(a_project, command, "42"), *said)
    assert everything(a_project) == before


BIG = "# " + "x" * 65536
ALIASED = CONFIG.format(mode="enforce").replace("mode: enforce", "mode: &m enforce\nx-y: *m")
CONFIGURATIONS: dict[str, tuple[str, list[str]]] = {
    "a criterion that the task does not have": (with_lines('  "42": {AC-9: [good]}'), ["task 42", '"AC-9"']),
    "a check that is not there": (with_lines('  "42": {AC-1: [nope]}'), [".gitevals.yaml:14: bindings", "nope"]),
    "a verification that is not there": (with_lines('  "42": {AC-1: [verify-2]}'), [".gitevals.yaml:14:", "verify-2"]),
    "a command as a string": (
        CONFIG.format(mode="enforce").replace('["true"]', '"pytest -q"'),
        [".gitevals.yaml:11: checks.always.command: ", "expected a list"],
    ),
    "an alias": (ALIASED, [".gitevals.yaml:"]),
    "a duplicate key": (with_lines("mode: off"), [".gitevals.yaml:14:", "mode"]),
    "a duplicate key inside": (
        CONFIG.format(mode="enforce").replace('["true"]', '["true"], command: [x]'), [".gitevals.yaml:11:", "command"],
    ),
    "a word for a number": (
        CONFIG.format(mode="enforce").replace('["true"]', '["true"], timeout_seconds: soon'),
        [".gitevals.yaml:11: checks.always.timeout_seconds: "],
    ),
    "a number in a command": (CONFIG.format(mode="enforce").replace('["true"]', "[sleep, 1]"), [".gitevals.yaml:11: "]),
    "a mode that is none": (CONFIG.format(mode="perhaps"), [".gitevals.yaml:3: mode: ", "perhaps"]),
    "no YAML": ("version: [\n", [".gitevals.yaml:"]),
    "a list": ("- 1\n", [".gitevals.yaml:1:"]),
    "nothing": ("", [".gitevals.yaml:1:"]),
    "no UTF-8": ("version: 1\n# \udcff\n", [".gitevals.yaml:2:"]),
    "too much": (with_lines(BIG), [".gitevals.yaml:1:", "65536 bytes"]),
    "a nest": ("a: " + "[" * 9000, [".gitevals.yaml:1:"]),
    "an unknown key below a check": (
        CONFIG.format(mode="enforce").replace('["true"]', '["true"], shell: yes'),
        [".gitevals.yaml:11:", "unknown key"],
    ),
    "a later version": (
        CONFIG.format(mode="enforce").replace("version: 1", "version: 2"), [".gitevals.yaml:1: version"],
    ),
    "flaky": (with_lines("flaky: maybe"), [".gitevals.yaml:14: flaky: expected allow or refuse"]),
    "trust": (with_lines("trust: {allowed_signers: s}"), [".gitevals.yaml:14: trust", "not built yet"]),
    "approvals": (with_lines("approvals: 1"), [".gitevals.yaml:14: approvals", "not built yet"]),
    "judge": (with_lines("judge: {enabled: true}"), [".gitevals.yaml:14: judge", "not built yet"]),
    "bindings_path": (
        with_lines('bindings_path: "b/{tasks}.yaml"'), [".gitevals.yaml:14: bindings_path", "{task}"],
    ),
    "cache": (with_lines("cache: [{path: .venv}]"), [".gitevals.yaml:14: cache", "path and key are needed"]),
    "home": (with_lines("home: private"), [".gitevals.yaml:14: home", "not built yet"]),
    "max_age": (with_lines("max_age: 1 day"), [".gitevals.yaml:14: max_age: expected an age"]),
    "max_tries": (with_lines("max_tries: 0"), [".gitevals.yaml:14: max_tries"]),
    "tasks.command": (
        CONFIG.format(mode="enforce").replace('tasks: {path: "tasks/{task}.md"}', "tasks: {command: [gh, issue]}"),
        [".gitevals.yaml:6: tasks.command", "{task} must stand once"],
    ),
    "graders": (
        CONFIG.format(mode="enforce").replace('["true"]', '["true"], graders: [../tests]'),
        [".gitevals.yaml:11: checks.always.graders", "inside the repository"],
    ),
    "at_base": (
        CONFIG.format(mode="enforce").replace('["true"]', '["true"], at_base: failed'),
        [".gitevals.yaml:11: checks.always.at_base: expected any, fail or pass"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_that_cannot_be_used(name: str, a_project: Place) -> None:
    text, said = CONFIGURATIONS[name]
    a_project.commit({".gitevals.yaml": os.fsencode(text)}, "configure")
    before = everything(a_project)
    assert_is_bad_input(evals(a_project, "run", "42"), *said)
    assert everything(a_project) == before


def test_unknown_keys_are_one_warning_and_private_ones_none(a_project: Place) -> None:
    configured(a_project, with_lines("later: 1", 'other: "\\u001b[1m"', "x-yard: {anything: [goes]}"))
    with_task_branch(a_project)
    answer = evals(a_project, "run", "42", "--quiet")
    assert answer.code == 0
    warned = [line for line in answer.err.split("\n") if "unknown key" in line]
    assert len(warned) == 1, answer
    assert "later" in warned[0]
    assert "other" in warned[0]
    assert "x-yard" not in answer.err


def _nothing(place: Place) -> None:
    """The project as it is will do."""


def _a_tag(place: Place) -> None:
    place.git("tag", "only-a-tag", "task/42")


def _no_configuration(place: Place) -> None:
    place.git("rm", "-q", ".gitevals.yaml")
    place.commit({}, "remove it")


def _in_the_way(*names: str) -> Callable[[Place], None]:
    def put(place: Place) -> None:
        for name in names:
            place.git("update-ref", name, "main")

    return put


def _merged(place: Place) -> None:
    place.git("merge", "-q", "task/42")


def _unrelated(place: Place) -> None:
    commit = place.git("commit-tree", "-m", "alone", "task/42^{tree}")
    place.git("update-ref", "refs/heads/unrelated", commit)


def _scratch_in_the_work_tree(place: Place) -> None:
    place.git("config", "evals.scratchDir", str(place.path / "tmp"))


def _an_object_is_missing(place: Place) -> None:
    blob = place.git("rev-parse", "task/42:ok-42")
    (place.path / ".git/objects" / blob[:2] / blob[2:]).unlink()


REQUESTS: dict[str, tuple[Callable[[Place], None], tuple[str, ...], tuple[str, ...]]] = {
    "an unknown task": (_nothing, ("run", "44"), ('unknown task "44"', "tasks/44.md")),
    "one unknown task of two": (_nothing, ("run", "42", "44"), ('unknown task "44"',)),
    "a path for a task": (_nothing, ("run", "../x"), ("not a task id", "../x")),
    "an option for a task": (_nothing, ("run", "--", "-n"), ("not a task id", "-n")),
    "an unknown option": (_nothing, ("run", "-n"), ("-n",)),
    "an escape for a task": (_nothing, ("run", "\x1b[31m"), ("not a task id",)),
    "an empty task": (_nothing, ("run", ""), ("not a task id",)),
    "no task": (_nothing, ("run",), ("name a task",)),
    "a task with verification alone": (_nothing, ("run", "42", "--verify-only"), ("name a task",)),
    "two ways to name the change": (
        _nothing, ("run", "42", "--branch", "task/42", "--commit", "main"), ("--branch", "--commit"),
    ),
    "no such branch": (_nothing, ("run", "42", "--branch", "nope"), ('no branch "nope"',)),
    "a tag": (_a_tag, ("run", "42", "--branch", "only-a-tag"), ('"only-a-tag" is a tag',)),
    "a tag for a target": (_a_tag, ("run", "42", "--into", "only-a-tag"), ('"only-a-tag" is a tag',)),
    "no such target": (_nothing, ("run", "42", "--into", "nope"), ('no branch "nope"',)),
    "no such commit": (_nothing, ("run", "42", "--commit", "0" * 40), ("no commit",)),
    "an option for a commit": (_nothing, ("run", "42", "--commit", "--all"), ("--all", "no commit")),
    "a tree for a commit": (_nothing, ("run", "42", "--commit", "main^{tree}"), ("no commit",)),
    "a range for a commit": (_nothing, ("run", "42", "--commit", "main..task/42"), ("no commit",)),
    "no configuration": (_no_configuration, ("run", "42"), ("main at ", "has no .gitevals.yaml")),
    "no change of its own": (_merged, ("run", "42"), ("nothing to merge",)),
    "no history in common": (_unrelated, ("run", "42", "--branch", "unrelated"), ("no common history",)),
    "no history in common, alone": (
        _unrelated, ("run", "42", "--branch", "unrelated", "--alone"), ("no common history",),
    ),
    "a notes ref in the way": (_in_the_way("refs/notes/evals"), ("run", "42"), ("refs/notes/evals is in the way",)),
    "a ref below ours": (_in_the_way("refs/notes/evals/tester/x"), ("run", "42"), ("is in the way",)),
    "a contracts ref in the way": (_in_the_way("refs/evals/contracts"), ("run", "42"), ("is in the way",)),
    "a contracts ref before a freeze": (_in_the_way("refs/evals/contracts"), ("freeze", "42"), ("is in the way",)),
    "a logs ref in the way": (_in_the_way("refs/evals/logs/tester"), ("run", "42"), ("is in the way",)),
    "scratch in the work tree": (_scratch_in_the_work_tree, ("run", "42"), ("lies in the work tree",)),
    "a missing object": (_an_object_is_missing, ("run", "42"), ("not in the repository",)),
    "no such directory": (_nothing, ("-C", "nowhere", "run", "42"), ("nowhere",)),
    "no such command": (_nothing, ("walk",), ("walk",)),
    "a report of nothing": (_nothing, ("report", "42"), ("no evaluation of task 42",)),
    "a report of an unknown record": (_nothing, ("report", "42", "--evaluation", "abc"), ('"abc"',)),
    "a record that is not there": (_nothing, ("show", "abcdef"), ('"abcdef"',)),
    "two forms of a report": (_nothing, ("report", "42", "--feedback", "--json"), ("--feedback",)),
    "a status of a stranger": (_nothing, ("status", "44"), ('unknown task "44"',)),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_be_met(name: str, a_project: Place) -> None:
    prepare, arguments, said = REQUESTS[name]
    with_task_branch(a_project)
    prepare(a_project)
    before = everything(a_project)
    assert_is_bad_input(evals(a_project, *arguments), *said)
    assert everything(a_project) == before


def test_a_shallow_clone_without_the_base_says_how_to_get_it(a_project: Place, tmp_path: Path) -> None:
    with_task_branch(a_project)
    a_project.commit({"apart": "1\n"}, "apart")
    source = f"file://{a_project.path}"
    a_project.git("clone", "-q", "--depth=1", "--branch", "task/42", source, str(tmp_path / "one"))
    a_project.git(
        "clone", "-q", "--depth=1", "--no-single-branch", "--branch", "task/42", source, str(tmp_path / "all")
    )
    for name, said in (("one", 'no branch "main" in this shallow clone'), ("all", "no common history")):
        clone = Place(tmp_path / name)
        clone.git("config", "evals.trustBranch", "main")
        before = everything(clone)
        answer = evals(clone, "run", "42", "--branch", "task/42")
        assert_is_bad_input(answer, said)
        assert "hint: git fetch --unshallow" in answer.err
        assert everything(clone) == before


def test_outside_a_repository(tmp_path: Path) -> None:
    for arguments in (("run", "42"), ("status",), ("show", "HEAD"), ("report", "42"), ("freeze", "42")):
        assert_is_bad_input(evals(Place(tmp_path), *arguments), "not a git repository")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("said", "shown"), [("git version 2.30.0", "git 2.30.0 is too old"), ("git", "too old")])
def test_a_git_that_is_too_old_is_refused(
    said: str, shown: str, a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_task_branch(a_project)
    before = everything(a_project)
    real = shutil.which("git")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nif [ "$1" = version ]; then echo "{said}"; else exec {real} "$@"; fi\n')
    fake.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
        assert_is_bad_input(evals(a_project, "run", "42"), shown)
    assert everything(a_project) == before


def test_a_command_line_that_is_empty_shows_the_help(a_project: Place) -> None:
    for arguments in ((), ("hooks",)):
        answer = evals(a_project, *arguments)
        assert answer.code == 2
        assert "Usage: git evals" in answer.out + answer.err
    assert evals(a_project, "--help").code == 0
    assert evals(a_project, "run", "--help").code == 0
    assert evals(a_project, "--version").out.startswith("git-evals ")


HOSTILE_LINES = [
    b"not json at all \x1b[2J",
    b"\xff\xfe\x00",
    b'{"schema": 1, "kind": "evaluation", "x": "' + b"y" * 10_000_000 + b'"}',
    b"[" * 60_000,
    b'{"schema":1,"kind":"evaluation","a":' * 1500,
    b'{"schema": 1, "kind": "evaluation"}',
    b'{"schema": "one", "kind": []}',
    b'{"kind": "\\u001b[31m", "schema": 1}',
    b'{"schema": 9, "kind": "evaluation"}',
]


@pytest.mark.slow
def test_hostile_lines_are_reported_and_skipped_and_hide_nothing(a_project: Place) -> None:
    head = with_task_branch(a_project)
    answer = evals(a_project, "run", "42", "--json")
    assert answer.code == 0
    genuine = json.loads(answer.out)["id"]
    for name in (head, a_project.git("rev-parse", f"{head}^{{tree}}")):
        line = a_project.git("notes", "--ref=evals/tester", "show", name).encode()
        note = b"\n".join([*HOSTILE_LINES[:5], line, *HOSTILE_LINES[5:]])
        blob = a_project.git("hash-object", "-w", "--stdin", stdin=note)
        a_project.git("notes", "--ref=evals/tester", "add", "-f", "-C", blob, name)
    for arguments in (("show", head), ("show", genuine), ("report", "42"), ("status", "42"), ("run", "42")):
        answer = evals(a_project, *arguments)
        assert answer.code == 0, arguments
        assert genuine[:12] in answer.out
        said = {line.rpartition(": ")[2] for line in answer.err.split("\n") if line.startswith("warning: a line of ")}
        assert said == {"not_json", "malformed", "too_long"}, arguments
        assert [char for char in answer.out + answer.err if not char.isprintable() and char != "\n"] == []
    before = json.loads(evals(a_project, "show", head, "--json").out)
    answer = evals(a_project, "run", "42", "--force", "--json")
    assert (answer.code, json.loads(answer.out)["after"]) == (0, [before["id"]])
    kept = a_project.attempt("git", "notes", "--ref=evals/tester", "show", head).stdout.split(b"\n")
    assert set(HOSTILE_LINES) <= set(kept)


def test_a_notes_ref_of_another_kind_hides_nothing_either(a_project: Place) -> None:
    head = with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    blob = a_project.git("hash-object", "-w", "--stdin", stdin=b"x")
    tree = a_project.git("mktree", stdin=f"100644 blob {blob}\t{head[:2]}\n100644 blob {blob}\tzz\n".encode())
    a_project.git("update-ref", "refs/notes/evals-remote/origin/blob", blob)
    a_project.git("update-ref", "refs/notes/evals-remote/origin/tree", tree)
    a_project.git("update-ref", "refs/notes/evals-remote/origin/code", head)
    a_project.git("update-ref", "refs/evals-remote/origin/contracts/blob", blob)
    for arguments in (("show", head), ("report", "42"), ("status",), ("run", "42"), ("contract", "42")):
        answer = evals(a_project, *arguments)
        assert answer.code == 0, answer
