"""`git evals init --from-yard`: a project that Yard examines is examined here, from its configuration as it stands."""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from gitevals import configfile, yamltree
from gitevals.install import yardfile
from gitevals.install.yamltext import block
from gitevals.install.yardfile import Json
from gitevals.model.contract import Mode
from tests.conftest import Answer, Place, evals
from tests.test_recipes import BLOCK

PLACE = ".yard/configs/shop.json"
OLDER = ".claude/yard-board/configs/shop.json"
SHOP = """\
{
"verify_commands": ["php artisan test"],
"evaluations": {
"mode": "observe",
"checks": {
"registration": {
"command": ["php", "artisan", "test", "--filter=RegistrationTest"],
"timeout_seconds": 60
}
},
"bindings": {
"42": {
"AC-1": ["registration"],
"AC-2": ["registration"],
"AC-3": ["verify-1"]
}
}
}
}
"""
CRITERIA = """\
- [ ] [AC-1] A valid registration persists exactly one user and returns the specified response.
- [ ] [AC-2] A duplicate email is rejected without creating another user.
- [ ] [AC-3] Existing behavior remains compatible with the full regression suite.
"""
# Stands in for PHP: `artisan test` runs the unit tests, with a filter the feature test of that name; counts its starts.
PHP = """\
#!/bin/sh
[ "$1 $2" = "artisan test" ] || exit 64
echo "${3:-all}" >>"$HOME/runs"
case $3 in "") set tests/unit/*.sh ;; *) set "tests/feature/${3#--filter=}.sh" ;; esac
for test; do sh "$test" || { echo "FAILED $test"; exit 1; }; done
"""
UNCHECKED = 'echo "$1" >>users && echo created\n'
REGISTER = f'grep -qx "$1" users 2>/dev/null && exit 1\n{UNCHECKED}'
REGISTRATION_TEST = """\
cd "$(mktemp -d)" && register="sh $OLDPWD/register.sh"
[ "$($register a@example.org)" = created ] && [ "$(wc -l <users)" -eq 1 ] || exit 1
$register a@example.org && exit 1
[ "$(wc -l <users)" -eq 1 ]
"""


@pytest.fixture
def heading() -> str:
    """The heading of the criteria; parametrise it to get another."""
    return "Acceptance Criteria"


@pytest.fixture
def a_shop(a_repo: Place, heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project as Yard has it: its configuration, task 42, tests, a PHP on PATH; the registration is to be written."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "php").write_text(PHP)
    (folder / "php").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GITEVALS_WRITER", "tester")
    files = {PLACE: SHOP, "tasks/42.md": f"# Registration\n\n## {heading}\n{CRITERIA}", "tests/unit/cart.sh": "true\n"}
    a_repo.commit(files)
    return a_repo


def work(place: Place, register: str) -> None:
    """A branch for task 42, called as Yard does, with ``register`` and a test of it."""
    place.git("switch", "-q", "-c", "loop/issue-42", "main")
    place.commit({"register.sh": register, "tests/feature/RegistrationTest.sh": REGISTRATION_TEST})
    place.git("switch", "-q", "main")


def findings(answer: Answer) -> dict[str, str]:
    return {entry["criterion"]: entry["result"] for entry in json.loads(answer.out)["findings"]}


def test_a_yard_project_is_examined_by_its_own_configuration(a_shop: Place, sealed: Path) -> None:
    told = evals(a_shop, "init", "--from-yard")
    assert told.code == 0, told
    assert 'verify-1: a shell reads "php artisan test"' in told.out
    a_shop.commit()
    content = json.loads(evals(a_shop, "contract", "42", "--json").out)
    assert {entry["id"]: entry["checks"] for entry in content["criteria"]} == {
        "AC-1": ["registration"],
        "AC-2": ["registration"],
        "AC-3": ["verify-1"],
    }
    assert (content["mode"], content["checks"]["registration"]["timeout_seconds"]) == ("observe", 60)
    assert evals(a_shop, "freeze", "42").code == 0
    work(a_shop, REGISTER)
    ran = evals(a_shop, "run", "42", "--json")
    assert (ran.code, findings(ran)) == (0, {"AC-1": "passed", "AC-2": "passed", "AC-3": "passed"})
    assert (sealed / "runs").read_text().split() == ["all", "--filter=RegistrationTest"]
    shown = evals(a_shop, "report", "42").out
    assert [text for text in ("AC-1", "AC-2", "AC-3", "registration", "verify-1") if text not in shown] == []


@pytest.mark.parametrize(
    ("heading", "asked", "enters"),
    [
        ("Criterios de aceptación", [], True),
        pytest.param("Acceptance Criteria", ["--mode", "enforce"], False, marks=pytest.mark.slow),
    ],
)
def test_what_breaks_a_criterion_enters_where_yard_observes_and_not_where_it_enforces(
    asked: list[str], enters: bool, a_shop: Place
) -> None:
    assert evals(a_shop, "init", "--from-yard", *asked).code == 0
    a_shop.commit()
    work(a_shop, UNCHECKED)
    ran = evals(a_shop, "run", "42", "--json")
    assert (ran.code, findings(ran)) == (1, {"AC-1": "failed", "AC-2": "failed", "AC-3": "passed"})
    assert (a_shop.attempt("git", "merge", "-q", "loop/issue-42").returncode == 0) is enters


def with_checks(checks: object, *verify: object, **bindings: object) -> dict[str, object]:
    return {"verify_commands": list(verify), "evaluations": {"checks": checks, "bindings": {"42": bindings}}}


def nested(levels: int) -> object:
    return [nested(levels - 1)] if levels else 1


BAD: dict[str, tuple[object, str]] = {
    "nothing": (b"", "shop.json:1: not JSON"),
    "no JSON": (b'{"evaluations": {},\n}', "shop.json:2: not JSON"),
    "a comment": (b"// mine\n{}", "shop.json:1: not JSON"),
    "an array": ([1], "shop.json: expected an object, found an array"),
    "no UTF-8": (b'{"x": "\xff"}', "shop.json: not UTF-8"),
    "too large": (b" " * (1 << 20) + b"{}", "shop.json: larger than 1048576 bytes"),
    "a key twice": (b'{"evaluations": {"mode": "off", "mode": "enforce"}}', "evaluations.mode: the key stands twice"),
    "a key twice deep in what is kept": (b'{"a": [{"b": 1, "b": 2}]}', "a[1].b: the key stands twice"),
    "nested too deep": ({"x": nested(31)}, "nested deeper than 31 levels"),
    "nested deeper than any reader goes": (b"[" * 200_000, "nested too deep"),
    "no number": (b'{"x": NaN}', "shop.json: x: a number that is out of range"),
    "a number too large": (b'{"x": {"y": 1e999}}', "x.y: a number that is out of range"),
    "a number too long": (b'{"x": ' + b"9" * 5000 + b"}", "too many digits"),
    "a NUL where it would be kept": ({"x": "a\0"}, "x: text with a NUL"),
    "half a pair as a key": (b'{"x": {"\\ud800": 1}}', "half a surrogate pair"),
    "evaluations that are none": ({"evaluations": "observe"}, 'evaluations: expected an object, found "observe"'),
    "a mode that is none": ({"evaluations": {"mode": "warn"}}, "evaluations.mode: expected off, observe or enforce"),
    "a mode as a list": ({"evaluations": {"mode": []}}, "evaluations.mode: expected off, observe or enforce"),
    "verify_commands as text": ({"verify_commands": "make"}, "verify_commands: expected an array"),
    "a number as a command": ({"verify_commands": ["make", 7]}, "verify_commands[2]: expected text or an array"),
    "a number as an argument": ({"verify_commands": [["sleep", 7]]}, "verify_commands[1][2]: expected text, found 7"),
    "an empty argument": ({"verify_commands": [["x", ""]]}, 'verify_commands[1][2]: expected text, found ""'),
    "a NUL in a command": ({"verify_commands": ["a\0b"]}, "verify_commands[1]: text with a NUL"),
    "an escape in a command": ({"verify_commands": [["a", "\x1b[2K"]]}, "verify_commands[1][2]: the control character"),
    "a check that is none": (with_checks({"a": ["x"]}), "evaluations.checks.a: expected an object"),
    "a check without command": (with_checks({"a": {}}), "evaluations.checks.a: command is missing"),
    "an empty command": (with_checks({"a": {"command": []}}), "evaluations.checks.a.command: the command is empty"),
    "a blank command": (with_checks({"a": {"command": " \n"}}), "evaluations.checks.a.command: the command is empty"),
    "an id of a check that is none": (with_checks({"a b": {"command": ["x"]}}), 'evaluations.checks."a b": not the id'),
    "an id of verification": (with_checks({"verify-1": {"command": ["x"]}}), "evaluations.checks.verify-1: this id"),
    **{
        f"a timeout of {seconds!r}": (
            with_checks({"a": {"command": ["x"], "timeout_seconds": seconds}}),
            "evaluations.checks.a.timeout_seconds: expected a whole number",
        )
        for seconds in (0, -1, 60.0, "60", True, 86401)
    },
    "too many checks": (with_checks({f"c{n}": {"command": ["x"]} for n in range(101)}), "checks: more than 100"),
    "a binding to no check": (with_checks({}, **{"AC-1": ["a"]}), 'bindings.42.AC-1[1]: no check is called "a"'),
    "verification beyond what is there": (
        with_checks({}, "make", " ", **{"AC-1": ["verify-2"]}),
        'evaluations.bindings.42.AC-1[1]: no check is called "verify-2": verify_commands has 1 that are not empty',
    ),
    "a check bound twice": (with_checks({}, "make", **{"AC-1": ["verify-1"] * 2}), "bindings.42.AC-1[2]: the check"),
    "a check bound as text": (with_checks({}, "make", **{"AC-1": "verify-1"}), "AC-1: expected an array"),
    "a criterion that is none": (with_checks({}, "make", **{"1": ["verify-1"]}), "42.1: not the id of a criterion"),
    "a task that is none": ({"evaluations": {"bindings": {"a/b": {}}}}, 'evaluations.bindings.a/b: not a task id'),
    "a result too large": ({"verify_commands": ["make"], "notes": ["x" * 70_000]}, "notes: makes most of"),
}  # fmt: skip


@pytest.mark.slow
def test_what_cannot_be_translated_is_told_with_its_place_and_nothing_is_written(a_repo: Place) -> None:
    file, before = a_repo.write(PLACE, ""), everything(a_repo)
    for case, (given, said) in BAD.items():
        file.write_bytes(given if isinstance(given, bytes) else json.dumps(given).encode())
        answer = evals(a_repo, "init", "--from-yard")
        assert answer.code == 2, (case, answer)
        assert answer.out == "", case
        assert said in answer.err.splitlines()[0], (case, answer)
        assert answer.err.splitlines()[1].startswith("hint: "), (case, answer)
    assert everything(a_repo) == before


def everything(place: Place) -> list[str]:
    git = [place.git("for-each-ref"), place.git("config", "--local", "--list")]
    return [*git, *(str(path) for path in sorted(place.path.rglob("*")) if "objects" not in path.parts)]


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ([], [], ".yard/configs/*.json or .claude/yard-board/configs/*.json"),
        ([PLACE, ".yard/configs/blog.json"], [], "several configurations of Yard are here: .yard/configs/blog"),
        ([PLACE, ".claude/yard-board/configs/blog.json"], [], ".claude/yard-board/configs/blog.json"),
        ([PLACE], ["absent.json"], 'cannot read "absent.json": No such file'),
        ([PLACE], [".yard"], 'cannot read ".yard": Is a directory'),
        ([PLACE], ["loop"], 'cannot read "loop": Too many levels of symbolic links'),
        ([PLACE, ".gitevals.yaml"], [], ".gitevals.yaml is there already"),
    ],
)  # fmt: skip
def test_where_it_is_unclear_what_to_translate_nothing_is_written(
    files: list[str], arguments: list[str], said: str, a_repo: Place
) -> None:
    (a_repo.path / "loop").symlink_to("loop")
    for name in files:
        a_repo.write(name, SHOP)
    before = everything(a_repo)
    answer = evals(a_repo, "init", "--from-yard", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert "hint: " in answer.err
    assert everything(a_repo) == before


@pytest.mark.parametrize(
    ("files", "arguments", "mode", "said"),
    [
        ([PLACE], ["--from-yard"], "observe", f"translated {PLACE}"),
        ([OLDER], ["--from-yard"], "observe", f"translated {OLDER}"),
        ([PLACE, OLDER], ["--from-yard"], "observe", f"took {PLACE}; {OLDER} has the same name"),
        ([PLACE], ["--from-yard", "--mode", "enforce"], "enforce", "the mode is enforce, as asked; Yard has observe"),
        ([PLACE, "my.json"], ["--mode", "off", "--from-yard", "my.json"], "off", "translated my.json"),
        ([PLACE, "my.json"], ["--from-yard", "my.json", "--protect", "main"], "observe", "translated my.json"),
        (["a\nmode: off\n.json"], ["--from-yard", "a\nmode: off\n.json"], "observe", "translated a\\nmode: off"),
    ],
)
def test_the_option_stands_alone_or_names_a_file(
    files: list[str], arguments: list[str], mode: str, said: str, a_repo: Place
) -> None:
    for name in files:
        a_repo.write(name, "\ufeff" + SHOP)
    answer = evals(a_repo, "init", "--no-hooks", *arguments)
    assert answer.code == 0, answer
    assert said in answer.out
    assert configfile.parse((a_repo.path / ".gitevals.yaml").read_bytes()).mode == mode


def test_a_file_without_the_option_is_refused(a_repo: Place) -> None:
    answer = evals(a_repo, "init", "my.json")
    assert (answer.code, answer.out) == (2, "")
    assert '"my.json"' in answer.err
    assert not (a_repo.path / ".gitevals.yaml").exists()


# Whatever JSON can hold and YAML might read as something else.
ODD: dict[str, Json] = {
    "yes": ["yes", "No", "on", "~", "null", "1.10", "0x1f", "1e3", "2020-01-01", "12:30:45", "=", "<<", "- a"],
    "numbers": [0, -7, 10**17, 10**30, 1.5, -0.0, 1e-7, 1e16, 1e300, 5e-324, True, False, None],
    "text": ["", "a\nb\n", "\t", "\x1b[2J", "\x7f\x85", "\u2028\u00a0\ufeff\u202e", "żółć 漢字 😀", "/\\\"'"],
    "syntax": ["{a: [b]}", "a: b", "# b", " c ", "-", "?", "|", "%x", "@y", "'", "---"],
    "empty": [{}, [], [[]], [{}]],
    "w" * 120: {},
    "": {"": {"a b": 1, "<<": 2, "é": [3], "\n": None, "&a": "*a", "!t": "!t", "k" * 1500: {"l" * 1500: ["m" * 200]}}},
    "deep": [[{"n": {"o": ["p" * 60, {"q" * 60: ["r" * 60, [["s" * 60]]]}]}}]],
}  # fmt: skip


def test_what_is_kept_is_what_it_was_for_either_reader() -> None:
    text = "\n".join(block({"x-yard": ODD}))
    assert yaml.safe_load(text) == {"x-yard": ODD}
    strict = yamltree.read(text.encode(), file="f", limit_bytes=1 << 20).plain()
    as_words = json.loads(
        json.dumps(ODD), parse_float=yaml_word, parse_int=lambda digits: int(digits) if len(digits) < 19 else digits
    )
    assert strict == {"x-yard": as_words}


def yaml_word(number: str) -> str:
    """A number as the strict reader has it, for which it is a word."""
    return number if "." in number else number.replace("e", ".0e")


JUDGE = {"enabled": True, "host": "codex", "rubric": "docs/rubric.md"}
MUCH = {
    "slug": "shop",
    "verify_commands": ["", "make lint", [], ["make", "test all"], " \t", ["", " "], "a\n\tb"],
    "theme": None,
    "evaluations": {
        "checks": {"yes": {"command": "test -e x", "retries": 2}, "b": {"command": ["true"], "timeout_seconds": None}},
        "bindings": {"42": {"AC-1": ["verify-2", "yes"]}, "*": {"*": ["verify-3"]}},
        "judge": JUDGE,
        "retention": {"days": 1.5},
    },
}


def test_each_part_has_its_counterpart_or_is_kept_and_told(a_repo: Place) -> None:
    a_repo.write(PLACE, json.dumps(MUCH))
    answer = evals(a_repo, "init", "--from-yard", "--no-hooks", "--protect", "main", "--protect", "release/*")
    assert answer.code == 0, answer
    text = (a_repo.path / ".gitevals.yaml").read_text()
    parsed = configfile.parse(text.encode())
    assert (parsed.mode, parsed.protect, parsed.unknown) == (Mode.OFF, ("main", "release/*"), ())
    assert (parsed.branches, parsed.task_path) == ("loop/issue-{task}", "tasks/{task}.md")
    assert [entry.command for entry in parsed.verify] == [
        ("sh", "-c", "make lint"), ("make", "test all"), ("sh", "-c", "a\n\tb"),
    ]  # fmt: skip
    assert {name: (check.command, check.timeout_seconds) for name, check in parsed.checks.items()} == {
        "yes": (("sh", "-c", "test -e x"), 300),
        "b": (("true",), 300),
    }
    assert parsed.bindings == {"42": {"AC-1": ("verify-2", "yes")}, "*": {"*": ("verify-3",)}}
    assert yaml.safe_load(text)["x-yard"] == {
        "slug": "shop",
        "theme": None,
        "evaluations": {
            "judge": JUDGE,
            "retention": {"days": 1.5},
            "checks": {"yes": {"retries": 2}},
        },
    }
    told = [
        "the mode is off, because Yard's configuration names none",
        "dropped, because empty: verify_commands[1], verify_commands[3], verify_commands[5], verify_commands[6];",
        'verify-1: a shell reads "make lint"',
        'yes: a shell reads "test -e x"',
        "kept under x-yard, without effect: slug, theme, evaluations.judge, evaluations.retention, evaluations.checks",
        "no judge is run",
    ]
    assert [line for line in told if line not in answer.out] == []


@pytest.mark.parametrize("judge", [None, {"enabled": False}])
def test_a_judge_that_is_off_leaves_no_trace(judge: object, a_repo: Place) -> None:
    a_repo.write(PLACE, json.dumps({"evaluations": {"judge": judge, "checks": None}, "verify_commands": None}))
    answer = evals(a_repo, "init", "--from-yard", "--no-hooks")
    assert answer.code == 0, answer
    assert "judge" not in answer.out + (a_repo.path / ".gitevals.yaml").read_text()


def test_every_json_that_is_read_names_the_place_of_a_value(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"a": [{"b c": ["x"]}]}')
    inner = yardfile.read(file, "c.json").mapping()["a"].items()[0].mapping()["b c"].items()[0]
    assert (inner.path, inner.text()) == ('a[1]."b c"[1]', "x")


@pytest.mark.slow
def test_the_recipe_does_what_it_says(a_shop: Place, tmp_path: Path) -> None:
    here = Path(__file__).parents[1]
    command = tmp_path / "bin" / "git-evals"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{here}" exec "{sys.executable}" -m gitevals "$@"\n')
    command.chmod(0o755)
    work(a_shop, REGISTER)
    recipe = (here / "docs" / "recipes" / "from-yard.md").read_text()
    script = "\n".join(["set -eu", *(found["text"] for found in BLOCK.finditer(recipe))])
    done = a_shop.attempt("sh", stdin=script.encode())
    assert done.returncode == 0, done.stderr.decode()
    assert b"merged loop/issue-42 into main" in done.stdout
    assert a_shop.git("log", "-1", "--format=%(trailers:key=Task,valueonly)").strip() == "42"
