"""Where a task's text and bindings come from: the base, a file of bindings, an operator's command, a file, a pipe."""

import json
import os
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from gitevals import tasks
from gitevals.contracts import asking
from gitevals.errors import EvalsError
from tests.conftest import CONFIG, TASK, Place, evals, with_task_branch

BODY = "## Acceptance Criteria\n\n- [ ] [AC-1] The file of task 42 is there.\n"
COMMANDED = CONFIG.format(mode="enforce").replace(
    'tasks: {path: "tasks/{task}.md"}', 'tasks: {command: [gh, issue, view, "{task}", --json, "title,body"]}'
)


class Gh:
    """A stand-in for `gh`: what it does is a line of shell, how often it was called a line of a file each."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.file = place / "gh"
        self.file.write_text('#!/bin/sh\necho "$*" >>"${0%/*}/calls"\n. "${0%/*}/does"\n')
        self.file.chmod(0o755)
        self.tells({"title": "Sign up", "body": BODY})

    def does(self, script: str) -> None:
        (self.place / "does").write_text(script)

    def tells(self, answer: object) -> None:
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        (self.place / "told").write_bytes(raw)
        self.does('cat "${0%/*}/told"')

    def calls(self) -> int:
        """How often it was called since somebody asked."""
        log = self.place / "calls"
        found = log.read_text().splitlines() if log.exists() else []
        assert set(found) <= {"issue view 42 --json title,body"}
        log.unlink(missing_ok=True)
        return len(found)

    def uninstall(self) -> None:
        self.file.rename(self.place / "gone")

    def install(self) -> None:
        (self.place / "gone").rename(self.file)


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gh:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Gh(tmp_path / "bin")


@pytest.fixture
def a_project_told_by_gh(a_project: Place, gh: Gh) -> Place:
    """A project whose task texts are GitHub issues, with the hooks in place."""
    a_project.git("rm", "-rq", "tasks")
    a_project.commit({".gitevals.yaml": COMMANDED}, "issues")
    assert evals(a_project, "hooks", "install").code == 0
    return a_project


# What the command tells, and the task's title, or what is said against it.
TOLD: dict[str, tuple[object, str]] = {
    "gh": ({"title": "Sign up", "body": BODY}, "Sign up"),
    "glab": ({"title": "Sign up", "description": BODY, "iid": 42}, "Sign up"),
    "CRLF": ({"title": "Sign up", "body": BODY.replace("\n", "\r\n")}, "Sign up"),
    "a title of two lines": (
        {"title": "Sign\r\n\n## Acceptance Criteria", "body": BODY},
        "Sign ## Acceptance Criteria",
    ),
    "no title": ({"body": BODY}, "Acceptance Criteria"),
    "a null title": ({"title": None, "body": BODY}, "Acceptance Criteria"),
    "Markdown": (f"# Sign up\n\n{BODY}".encode(), "Sign up"),
    "Markdown that begins with a brace": (f"{{{{note}}}}\n\n{BODY}".encode(), "{{note}}"),
    "an empty body beside a description": ({"body": "", "description": BODY}, "Acceptance Criteria"),
}
# What it told that is no text of a task, and what is said against it.
NOT_TOLD: dict[str, tuple[object, str]] = {
    "a null body": ({"title": "Sign up", "body": None}, "the text of task 42: no acceptance section"),
    "a body of no length": ({"title": "Sign up", "body": ""}, "the text of task 42: no acceptance section"),
    "no body": ({"title": "Sign up", "url": "x"}, "without text in body or description: title, url"),
    "a body that is no text": ({"body": [BODY]}, "without text in body or description: body"),
    "an array": ([{"title": "Sign up", "body": BODY}], "the text of task 42: no acceptance section"),
    "nothing": (b"", "the text of task 42: "),
    "not UTF-8": (b"# \xff\n", "the text of task 42:1: not UTF-8"),
    "JSON that is not UTF-8": (b'{"title": "\xff", "body": ""}', "the text of task 42:1: not UTF-8"),
    "300 KiB": (b"x" * 300 * 1024, "larger than 262144 bytes"),
}


def raw(told: object) -> bytes:
    return told if isinstance(told, bytes) else json.dumps(told).encode()


@pytest.mark.parametrize(("told", "title"), TOLD.values(), ids=TOLD)
def test_what_a_command_told_is_read_as_a_text(told: object, title: str) -> None:
    read = tasks.parse("42", asking.text_of(raw(told)))
    assert read.title == title
    assert [(entry.id, entry.text) for entry in read.criteria] == [("AC-1", "The file of task 42 is there.")]


@pytest.mark.parametrize(("told", "said"), NOT_TOLD.values(), ids=NOT_TOLD)
def test_what_a_command_told_beside_a_text_is_refused_with_its_name(told: object, said: str) -> None:
    with pytest.raises(EvalsError, match=re.escape(said)) as caught:
        tasks.parse("42", asking.text_of(raw(told)), name="the text of task 42")
    assert caught.value.hint


BROKEN = {
    "exit 1": ('printf "\\033[31mno\\n such issue" >&2; exit 1', "exit 1: \\x1b[31mno such issue"),
    "a signal after an answer": ('cat "${0%/*}/told"; kill -9 $$', "signal 9"),
    "600 KiB": ("exec head -c 614400 /dev/zero", "it printed more than 524288 bytes"),
    "it hangs": ("exec sleep 60", "it took longer than 0.1 s"),
}


def test_a_command_that_does_not_tell_is_no_empty_text(
    a_project_told_by_gh: Place, gh: Gh, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (script, said) in BROKEN.items():
        monkeypatch.setattr(asking, "TIMEOUT_SECONDS", 0.1 if name == "it hangs" else 60)
        gh.does(script)
        answer = evals(a_project_told_by_gh, "contract", "42")
        assert (answer.code, gh.calls() <= 1) == (3, True), (name, answer)
        assert f"`gh issue view 42 --json title,body` did not tell the task's text: {said}" in answer.err, name
        assert "hint: try the command by hand" in answer.err
        assert "\x1b" not in answer.err
    gh.uninstall()
    answer = evals(a_project_told_by_gh, "contract", "42")
    assert (answer.code, "did not tell" in answer.err) == (3, True), answer


@pytest.mark.slow
def test_an_issue_is_compared_by_commands_and_taken_as_frozen_by_the_gate(a_project_told_by_gh: Place, gh: Gh) -> None:
    place = a_project_told_by_gh
    with_task_branch(place)
    refused = place.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert b"its contract was never frozen" in refused.stderr
    assert b"git evals run 42" in refused.stderr
    assert gh.calls() == 0
    place.git("reset", "-q", "--merge")
    base = place.git("rev-parse", "main")
    for command in (("freeze", "42"), ("run", "42", "-q"), ("verify", "--branch", "task/42")):
        answer = evals(place, *command)
        assert (answer.code, gh.calls()) == (0, 1), (command, answer)
    gh.tells({"title": "Sign up", "body": BODY.replace("is there", "is not there")})
    for command, code in ((("run", "42"), 1), (("verify", "--branch", "task/42"), 3), (("merge", "task/42"), 1)):
        answer = evals(place, *command)
        assert (answer.code, gh.calls()) == (code, 1), (command, answer)
        assert "out of date" in answer.out + answer.err
        assert "git evals freeze 42" in answer.out + answer.err
    answer = evals(place, "contract", "42")
    assert 'criterion `AC-1`: text "The file of task 42 is there." → "The file' in " ".join(answer.out.split())
    assert evals(place, "tasks").code == 0
    gh.uninstall()
    assert gh.calls() == 1
    place.git("merge", "-q", "task/42")
    assert place.git("rev-parse", "main") == place.git("rev-parse", "task/42")
    answer = evals(place, "audit", "--since", base)
    assert answer.code == 0, answer
    assert "1 evidenced" in answer.out


def test_a_merge_asks_once(a_project_told_by_gh: Place, gh: Gh) -> None:
    with_task_branch(a_project_told_by_gh)
    answer = evals(a_project_told_by_gh, "merge", "task/42", "-q")
    assert (answer.code, gh.calls()) == (0, 1), answer


def test_a_list_of_tasks_asks_nobody_even_where_it_asks_the_gate(a_project_told_by_gh: Place, gh: Gh) -> None:
    place = a_project_told_by_gh
    assert evals(place, "hooks", "uninstall").code == 0
    place.commit({".gitevals.yaml": COMMANDED + "max_age: 30d\n"}, "an age")
    with_task_branch(place)
    assert evals(place, "run", "42", "-q").code == 0
    assert gh.calls() == 1
    answers = [evals(place, "tasks"), evals(place, "status")]
    assert [(answer.code, "passed" in answer.out) for answer in answers] == [(0, True)] * 2, answers
    assert gh.calls() == 0


def test_a_command_that_fails_is_asked_once_and_a_file_stands_in_for_it(a_project_told_by_gh: Place, gh: Gh) -> None:
    place = a_project_told_by_gh
    with_task_branch(place)
    gh.does("exit 1")
    answer = evals(place, "verify", "--task", "42", "--branch", "task/42")
    assert (answer.code, gh.calls()) == (3, 1), answer
    (place.path.parent / "issue.md").write_text(BODY)
    answer = evals(place, "freeze", "42", "--task-file", "../issue.md")
    assert (answer.code, gh.calls()) == (0, 1), answer
    assert "warning: refs/heads/main cannot tell this contract: `gh issue view 42" in answer.err


# What `freeze --task-file` reads: arguments, the bytes of the file (None: there is none), and what is said.
FILES: dict[str, tuple[bytes | None, int, str]] = {
    "good": (f"# Seven\n\n{BODY}".encode(), 0, ""),
    "absent": (None, 2, "No such file or directory"),
    "empty": (b"", 2, "no acceptance section"),
    "binary": (b"\x00\xff\x01", 2, "not UTF-8"),
    "over the limit": (b"x" * (256 * 1024 + 1), 2, "larger than 262144 bytes"),
}


def test_a_file_is_read_with_care_and_so_is_a_pipe(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (content, code, said) in FILES.items():
        file = a_project.path.parent / name
        if content is not None:
            file.write_bytes(content)
        if content is not None and name in ("good", "empty"):
            stdin = TextIOWrapper(BytesIO(content))
            monkeypatch.setattr(sys, "stdin", stdin)
            piped = evals(a_project, "freeze", "8", "--task-file", "-")
            assert (piped.code, said in piped.err) == (code, True), (name, piped)
            assert code == 0 or "standard input" in piped.err, name
        answer = evals(a_project, "freeze", "7", "--task-file", str(file))
        assert (answer.code, said in answer.err) == (code, True), (name, answer)
    monkeypatch.setattr(sys, "stdin", None)
    for odd, said in (
        (".", "Is a directory"),
        ("/dev/zero", "larger than"),
        ("-", "cannot read"),
        ("", "No such file"),
    ):
        answer = evals(a_project, "freeze", "7", "--task-file", odd)
        assert (answer.code, said in answer.err) == (2, True), (odd, answer)
    assert {name.partition("/")[0] for name in a_project.git(
        "ls-tree", "-r", "--name-only", "refs/evals/contracts/tester").split("\n")} == {"7", "8"}  # fmt: skip


@pytest.mark.slow
def test_a_task_that_was_frozen_from_a_file_passes_every_gate(a_guarded_project: Place) -> None:
    place = a_guarded_project
    text = TASK.format(task="7")
    (place.path.parent / "seven.md").write_text(text)
    assert evals(place, "contract", "7").code == 2
    answer = evals(place, "freeze", "7", "--task-file", "../seven.md")
    assert (answer.code, answer.err) == (0, ""), answer
    answer = evals(place, "contract", "7")
    assert "as it was frozen" in answer.out
    assert "differs" not in answer.out
    head = with_task_branch(place, "7")
    for command in (("run", "7", "-q"), ("verify", "--branch", "task/7")):
        assert evals(place, *command).code == 0, command
    place.git("merge", "-q", "task/7")
    assert place.git("rev-parse", "main") == head
    assert "1 evidenced" in evals(place, "audit").out
    (place.path.parent / "seven.md").write_text(text.replace("is there", "is there for good"))
    assert evals(place, "freeze", "7", "--task-file", "../seven.md").code == 0
    answer = evals(place, "audit")
    assert answer.code == 0, "what was frozen later does not undo what was delivered"
    assert "1 evidenced" in answer.out


@pytest.mark.slow
def test_a_base_that_says_otherwise_outranks_the_file(a_project: Place) -> None:
    with_task_branch(a_project)
    (a_project.path.parent / "other.md").write_text(TASK.format(task="42").replace("is there", "is elsewhere"))
    answer = evals(a_project, "freeze", "42", "--task-file", "../other.md")
    assert answer.code == 0
    assert "warning: refs/heads/main states another contract" in answer.err
    answer = evals(a_project, "run", "42")
    assert (answer.code, "out of date" in answer.err) == (1, True), answer
    (a_project.path.parent / "same.md").write_text(TASK.format(task="42"))
    answer = evals(a_project, "freeze", "42", "--task-file", "../same.md")
    assert (answer.code, answer.err) == (0, "")
    assert evals(a_project, "run", "42", "-q").code == 0


def test_a_contract_of_another_commit_is_frozen_with_a_warning(a_project: Place) -> None:
    place = a_project
    git = place.git
    git("switch", "-q", "-c", "next")
    config = CONFIG.format(mode="enforce").replace("[good]", "[always]").replace("repository: r1", "repository: r2")
    place.commit({".gitevals.yaml": config, "tasks/44.md": TASK.format(task="44")}, "next")
    git("tag", "-a", "v1", "-m", "v1")
    git("switch", "-q", "--orphan", "bare")
    git("commit", "-q", "--allow-empty", "-m", "nothing")
    git("switch", "-q", "main")
    for task, ref in (("42", "next"), ("42", "v1"), ("44", "next^{commit}")):
        answer = evals(place, "freeze", task, "--from", ref, "--json")
        assert answer.code == 0, answer
        assert "warning: refs/heads/main states another contract" in answer.err
        document = json.loads(answer.out)
        assert document["checks"].keys() == {"always"}
        assert (document["state"], document["freezes"][0]["repository"]) == ("frozen", "r1")
    assert "out of date" in evals(place, "contract", "44").out
    assert (evals(place, "freeze", "42", "--from", "main").err, evals(place, "run", "--help").code) == ("", 0)
    for ref in ("bare", "main..next", "next^{tree}", "nowhere", "--all", ""):
        said = "bare has no .gitevals.yaml" if ref == "bare" else f'"{ref}" is no commit'
        answer = evals(place, "freeze", "42", f"--from={ref}")
        assert (answer.code, said in answer.err) == (2, True), (ref, answer)


BINDINGS = ".gitevals/bindings/42.yaml"
BY_FILE = CONFIG.format(mode="enforce") + 'bindings_path: ".gitevals/bindings/{task}.yaml"\n'
TWO = TASK.format(task="42") + "- [ ] [AC-2] And more.\n"


def bound(place: Place, task: str = "42") -> dict[str, list[str]]:
    answer = evals(place, "contract", task, "--json")
    assert answer.code == 0, answer
    return {entry["id"]: entry["checks"] for entry in json.loads(answer.out)["criteria"]}


def test_bindings_are_the_entry_else_the_file_else_the_common_ones_and_never_mixed(a_project: Place) -> None:
    place = a_project
    place.commit({".gitevals.yaml": BY_FILE, "tasks/42.md": TWO}, "two criteria")
    assert bound(place) == {"AC-1": ["good"], "AC-2": ["good"]}
    place.commit({BINDINGS: "AC-1: [always]\n"})
    assert bound(place) == {"AC-1": ["always"], "AC-2": []}, "the common entry fills no gap"
    assert bound(place, "43") == {"AC-1": ["good"]}
    place.commit({BINDINGS: '"*": [verify-1]\nAC-2: [always, good]\n'})
    assert bound(place) == {"AC-1": ["verify-1"], "AC-2": ["always", "good"]}
    place.commit({".gitevals.yaml": BY_FILE.replace("bindings:", 'bindings:\n  "42": {AC-2: [good]}')})
    assert bound(place) == {"AC-1": [], "AC-2": ["good"]}, "the file adds nothing to an entry"


def test_a_file_of_bindings_that_cannot_be_used_is_refused_with_its_name(a_project: Place) -> None:
    place = a_project
    place.commit({".gitevals.yaml": BY_FILE}, "bindings in files")
    for content, said in (
        ("AC-9: [good]\n", 'bindings of task 42 name "AC-9"'),
        ("AC-1: [\n", f"{BINDINGS}:2: not YAML"),
        ("#" * 70_000, f"{BINDINGS}:1: larger than 65536 bytes"),
    ):
        place.commit({BINDINGS: content})
        answer = evals(place, "contract", "42")
        assert (answer.code, said in answer.err) == (2, True), answer
    place.git("rm", "-q", BINDINGS)
    (place.path / BINDINGS).parent.mkdir(parents=True, exist_ok=True)
    (place.path / BINDINGS).symlink_to("../../README")
    place.commit({}, "a link")
    answer = evals(place, "contract", "42")
    assert (answer.code, BINDINGS in answer.err) == (2, True), answer


@pytest.mark.slow
def test_a_change_of_bindings_is_said_loudly_and_judged_by_the_bases_own(a_project: Place) -> None:
    place = a_project
    place.commit({".gitevals.yaml": BY_FILE, BINDINGS: "AC-1: [good]\n"}, "bindings in files")
    assert evals(place, "hooks", "install").code == 0
    place.git("switch", "-q", "-c", "task/42")
    place.commit({BINDINGS: "AC-1: [always]\n", "other": "1\n"}, "loosen")
    place.git("switch", "-q", "main")
    assert evals(place, "run", "42", "-q").code == 1
    refused = place.attempt("git", "merge", "task/42")
    assert refused.returncode != 0
    assert f"{BINDINGS} is changed by this movement; task 42 is judged as".encode() in refused.stderr
    place.git("reset", "-q", "--merge")
    place.git("switch", "-q", "-c", "rebind", "main")
    place.commit({BINDINGS: "AC-1: [always]\n", ".gitevals/bindings/44.yaml": "AC-1: [good]\n"}, "rebind")
    place.git("switch", "-q", "main")
    refused = place.attempt("git", "merge", "rebind")
    assert b"git evals run --verify-only" in refused.stderr
    place.git("reset", "-q", "--merge")
    assert evals(place, "run", "--verify-only", "--branch", "rebind", "-q").code == 0
    place.git("merge", "-q", "rebind")
    answer = evals(place, "contract", "42")
    assert "out of date" in answer.out
    assert "criterion `AC-1`: checks good → always" in answer.out
    assert evals(place, "run", "42").code == 1


def test_what_is_derived_of_bindings_is_kept_by_their_content(a_project: Place) -> None:
    from gitevals.contracts.reading import config_at
    from gitevals.contracts.stating import digest_at
    from gitevals.session import session

    def digest() -> str:
        with pytest.MonkeyPatch.context() as patch, patch.context() as inner:
            inner.chdir(a_project.path)
            with session() as here:
                base = config_at(here.repo, here.objects, a_project.git("rev-parse", "main"))
                assert base is not None
                return digest_at(here.source(), base, "42")

    a_project.commit({".gitevals.yaml": BY_FILE, BINDINGS: "AC-1: [good]\n"})
    first = digest()
    a_project.commit({"else": "1\n"})
    assert digest() == first
    a_project.commit({BINDINGS: "AC-1: [always]\n"})
    assert digest() != first
    a_project.commit({BINDINGS: "AC-1:  [good]\n"})
    assert digest() == first, "other bytes of the same meaning"
    a_project.commit({BINDINGS: "AC-1: [nothing]\n"})
    with pytest.raises(Exception, match="no check is called"):
        digest()
