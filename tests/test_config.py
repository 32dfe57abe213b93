"""What `.gitevals.yaml` may say, and what is said about one that says something else."""

import contextlib
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals import commands, config, configfile
from gitevals.config import Config, Flaky, Untasked, Verification
from gitevals.errors import ConfigInvalid, EvalsError
from gitevals.model import contract
from gitevals.model.contract import AtBase, Cached, Command, Mode
from gitevals.model.result import Result
from tests.conftest import Place

FULL = """\
# everything that can be said today
version: 1
repository: 5f0c1d2e3a4b5c6d
mode: enforce
protect: [main, release/*]
branches: "task/{task}"
tasks: {path: "tasks/{task}.md"}
headings: [Requisitos]
setup: [[npm, ci]]
verify:
  - [pytest, -q]
  - command: [ruff, check]
    timeout_seconds: 60
checks:
  registration:
    command: [pytest, -q, tests/acceptance]
    timeout_seconds: 90
    cwd: tests
    env: {LEVEL: "3", EMPTY: ""}
    pass_env: [CI]
    exit_codes: {inconclusive: [4, 5], passed: [9]}
    at_base: fail
    covers: [sign-up, "log in, log out"]
    graders: [tests/acceptance/, data/expected.json, tests/acceptance]
    isolation: none
bindings:
  42: {AC-1: [registration], AC-2: [registration, verify-2]}
  "*": {"*": [verify-1]}
bindings_path: ".gitevals/bindings/{task}.yaml"
outputs: [build/]
cache:
  - {path: node_modules/, key: [package-lock.json, .npmrc]}
untasked: verify
verification: when_known
flaky: refuse
max_age: 2w
max_tries: 3
approvals: 0
home: user
judge: {enabled: false}
colour: blue
x-notes: [anything, {goes: 1}]
"""


def reading(text: str) -> Config:
    return configfile.parse(text.encode())


def beginning(text: str) -> str:
    """``text`` after the two keys that every file needs; its first line is the file's third."""
    return f"version: 1\nmode: observe\n{text}"


def refused(text: str | bytes) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        configfile.parse(text.encode() if isinstance(text, str) else text)
    assert caught.value.hint, "every error says what to do"
    assert "\n" not in caught.value.message
    return caught.value


def test_a_file_that_says_everything_is_read_whole() -> None:
    read = reading(FULL)
    assert read == Config(
        version=1,
        repository="5f0c1d2e3a4b5c6d",
        mode=Mode.ENFORCE,
        protect=("main", "release/*"),
        branches="task/{task}",
        task_path="tasks/{task}.md",
        headings=("Requisitos",),
        setup=(Command(command=("npm", "ci"), timeout_seconds=1800),),
        verify=(
            Command(command=("pytest", "-q"), timeout_seconds=1800),
            Command(command=("ruff", "check"), timeout_seconds=60),
        ),
        checks={
            "registration": Command(
                command=("pytest", "-q", "tests/acceptance"),
                timeout_seconds=90,
                cwd="tests",
                env={"LEVEL": "3", "EMPTY": ""},
                pass_env=("CI",),
                exit_codes={"4": Result.INCONCLUSIVE, "5": Result.INCONCLUSIVE, "9": Result.PASSED},
                graders=("data/expected.json", "tests/acceptance"),
                at_base=AtBase.FAIL,
                covers=("sign-up", "log in, log out"),
            )
        },
        bindings={
            "42": {"AC-1": ("registration",), "AC-2": ("registration", "verify-2")},
            "*": {"*": ("verify-1",)},
        },
        bindings_path=".gitevals/bindings/{task}.yaml",
        outputs=("build/",),
        cache=(Cached(path="node_modules", key=("package-lock.json", ".npmrc")),),
        flaky=Flaky.REFUSE,
        max_age_seconds=1209600,
        max_tries=3,
        untasked=Untasked.VERIFY,
        verification=Verification.WHEN_KNOWN,
        unknown=("colour",),
    )
    assert read.verification_digest == contract.verification_digest(read.verify, read.setup, read.cache)


def test_a_configuration_survives_the_cache_of_the_gate() -> None:
    read = reading(FULL)
    assert msgspec.json.decode(msgspec.json.encode(read), type=Config) == read


@pytest.mark.parametrize(
    ("mode", "untasked", "verification"),
    [("off", "verify", "when_known"), ("observe", "verify", "when_known"), ("enforce", "refuse", "required")],
)
def test_the_shortest_file_takes_its_defaults_from_the_mode(mode: str, untasked: str, verification: str) -> None:
    assert reading(f"version: 1\nmode: {mode}\n") == Config(
        version=1,
        repository="none",
        mode=Mode(mode),
        untasked=Untasked(untasked),
        verification=Verification(verification),
    )


def test_importing_the_module_imports_no_yaml_and_no_markdown() -> None:
    program = (
        "import sys, gitevals.config; print([m for m in sys.modules if m.split('.')[0] in ('yaml', 'markdown_it')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=".")
    assert done.stdout.strip() == "[]"


ACCEPTED = [
    ("1.10 is text, not a number", "checks: {a: {command: [tool, 1.10]}}", ("tool", "1.10")),
    ("octal is text", "checks: {a: {command: [chmod, 0755]}}", ("chmod", "0755")),
    ("hexadecimal is text", "checks: {a: {command: [seek, 0x1F]}}", ("seek", "0x1F")),
    ("sexagesimal is text", "checks: {a: {command: [at, 12:30:45]}}", ("at", "12:30:45")),
    ("a date is text", "checks: {a: {command: [on, 2026-01-02]}}", ("on", "2026-01-02")),
    (
        "yes, no, on and off are words",
        "checks: {a: {command: [yes, no, on, off, True]}}",
        ("yes", "no", "on", "off", "True"),
    ),
    ("a plus makes text", "checks: {a: {command: [add, +5]}}", ("add", "+5")),
    ("digits in quotes are text", "checks: {a: {command: [sleep, '5', \"6\"]}}", ("sleep", "5", "6")),
    ("true in quotes is text", 'checks: {a: {command: ["true"]}}', ("true",)),
    ("null in quotes is text", 'checks: {a: {command: [echo, "null", "~"]}}', ("echo", "null", "~")),
    (
        "a block is text",
        "checks:\n  a:\n    command:\n      - sh\n      - -c\n      - |\n        5\n",
        ("sh", "-c", "5\n"),
    ),
    (
        "a folded block is text",
        "checks:\n  a:\n    command:\n      - echo\n      - >-\n        true\n",
        ("echo", "true"),
    ),
    ("escapes are read", 'checks: {a: {command: ["caf\\u00e9"]}}', ("café",)),
    ("other scripts are text", "checks: {a: {command: [тест, 試験]}}", ("тест", "試験")),
    ("Windows line ends are line ends", "checks:\r\n  a:\r\n    command: [x]\r\n", ("x",)),
    ("a number too long for a number is text", f"checks: {{a: {{command: [is, {'9' * 30}]}}}}", ("is", "9" * 30)),
]


@pytest.mark.parametrize(("text", "command"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_scalars_mean_what_is_written(text: str, command: tuple[str, ...]) -> None:
    assert reading(beginning(text)).checks["a"].command == command


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffversion: 1\nmode: off\n",
        "---\nversion: 1\nmode: off\n...\n",
        '"version": 1\n"mode": "off"\n',
        "{version: 1, mode: off}",
        'version: 1\nmode: off\nx-a: {"<<": {b: 1}}\n',
        "? version\n: 1\n? mode\n: off\n",
        '{"version": 1, "mode": "off"}',
    ],
)
def test_the_same_file_may_be_written_in_many_ways(text: str) -> None:
    assert reading(text).mode is Mode.OFF


def test_mapping_keys_are_always_text() -> None:
    assert set(reading(beginning("verify: [[x]]\nbindings: {42: {}, true: {}, null: {}, 1.10: {}}")).bindings) == {
        "42",
        "true",
        "null",
        "1.10",
    }


def test_only_unknown_keys_without_x_are_reported() -> None:
    assert reading(beginning("zeal: 1\nx-team: a\nx-: b\nflaky: allow\nbranchs: c")).unknown == ("zeal", "branchs")


# A whole file, and what is said about it.
REFUSED_FILES = [
    ("", ":1: the file is empty"),
    ("# only a comment\n", ":1: the file is empty"),
    ("- a\n", ":1: expected a mapping, found a list"),
    ("mode", ':1: expected a mapping, found "mode"'),
    (b"version: 1\nmode: \xff\n", ":2: not UTF-8"),
    ("version: 1\nmode: off\n\x07: 1\n", ":3: not YAML: the character U+0007 is not allowed"),
    ("version: 1\n\tmode: off\n", ":2: not YAML: "),
    ("version: 1\nmode: [off\n", ":3: not YAML: "),
    ('version: 1\nmode: "off\n', ":3: not YAML: "),
    ("mode: off\n", ":1: version is missing"),
    ("version: 2\nmode: off\n", ":1: version: expected 1, found 2"),
    ('version: "1"\nmode: off\n', ':1: version: expected 1, found "1"'),
    ("version: true\nmode: off\n", ":1: version: expected 1, found true"),
    ("version: 1\n", ":1: mode is missing"),
    ("version: 1\nmode:\n", ":2: mode: expected off, observe or enforce, found nothing"),
    ("version: 1\nmode: false\n", ":2: mode: expected off, observe or enforce, found false"),
    ("version: 1\nmode: Enforce\n", ':2: mode: expected off, observe or enforce, found "Enforce"'),
]

# What stands after the two keys that every file needs.
REFUSED_KEYS = [
    ("protect: &all [main]", ":3: protect: anchors are not read, found &all"),
    ("x-a: *all", ":3: x-a: aliases are not read, found *all"),
    ("x-a: &x 1\nx-b: *x", ":3: x-a: anchors are not read, found &x"),
    ("x-a: {b: !!str 1}", ":3: x-a.b: tags are not read, found tag:yaml.org,2002:str"),
    ("x-a: !!python/object/apply:os.system [id]", ":3: x-a: tags are not read"),
    ("x-a: ! b", ":3: x-a: tags are not read, found !"),
    ("x-a: {<<: {b: 1}}", ":3: x-a: merge keys are not read, found <<"),
    ("x-a: {[b]: 1}", ":3: x-a: a key must be text"),
    ("&k x-a: 1", ":3: anchors are not read, found &k"),
    (f"untasked: {'a' * 1000}", f'found "{"a" * 58}…'),
    ("mode: off", ":3: mode: the key stands twice, first on line 2"),
    (
        "checks:\n  a: {command: [x]}\n  b: {command: [x]}\n  'a': {command: [y]}",
        ":6: checks.a: the key stands twice, first on line 4",
    ),
    ("x-a: {1: a, '1': b}", ":3: x-a.1: the key stands twice, first on line 3"),
    ("---\nversion: 1\nmode: off\n", ":3: a second document starts here"),
    ("x-a: " + "[" * 500, "nested deeper than 32 levels"),
    ("\n".join(f"{' ' * depth}x-a:" for depth in range(60)), "nested deeper than 32 levels"),
    ("#" * config.LIMIT_BYTES, ":1: larger than 65536 bytes"),
    ('x-a: "\\0"', ":3: x-a: text with a NUL or half a surrogate pair in it"),
    ('x-a: "\\ud800"', ":3: x-a: text with a NUL or half a surrogate pair in it"),
    ('x-a: "\\UFFFFFFFF"', ":1: not YAML: a number or an escape is out of range"),
    ("repository: a b", ':3: repository: expected a repository id, found "a b"'),
    ('repository: "a\\nLedger: x"', ":3: repository: expected a repository id"),
    ("repository: 123", ":3: repository: expected text, found 123"),
    ("untasked: maybe", ':3: untasked: expected verify, refuse or allow, found "maybe"'),
    ("verification: true", ":3: verification: expected required or when_known, found true"),
    ("protect: main", ':3: protect: expected a list, found "main"'),
    ("protect:", ":3: protect: expected a list, found nothing"),
    ("protect: [main, 1]", ":3: protect[2]: expected text, found 1"),
    ("protect: [refs/heads/main]", ":3: protect[1]: expected the name of a branch"),
    ("protect: ['*']", ":3: protect[1]: expected the name of a branch"),
    ("protect: ['release/*/x']", ":3: protect[1]: expected the name of a branch"),
    ("protect: ['/*']", ":3: protect[1]: expected the name of a branch"),
    ("protect:\n  - main\n  - a..b", ':5: protect[2]: expected the name of a branch, found "a..b"'),
    ("branches: task", ":3: branches: expected text with {task} in it once"),
    ("branches: '{task}/{task}'", ":3: branches: expected text with {task} in it once"),
    ("branches: 'task/{task}/{name}'", ":3: branches: expected text with {task} in it once"),
    ("branches: 'task {task}'", ":3: branches: expected a pattern of branch names"),
    ("tasks: 'tasks/{task}.md'", ":3: tasks: expected a mapping"),
    ("tasks: {}", ":3: tasks: one of path and command is needed"),
    ("tasks: {path: tasks.md}", ":3: tasks.path: expected text with {task} in it once"),
    ("tasks: {path: '/tasks/{task}.md'}", ":3: tasks.path: expected a path inside the repository"),
    ("tasks: {path: '../{task}.md'}", ":3: tasks.path: expected a path inside the repository"),
    ("tasks: {file: '{task}.md'}", ":3: tasks.file: unknown key"),
    ("tasks: {path: '{task}.md', command: [gh, '{task}']}", ":3: tasks: path and command exclude each other"),
    ("tasks: {command: gh issue view 42}", ":3: tasks.command: expected a list"),
    ("tasks: {command: []}", ":3: tasks.command: the command is empty"),
    ("tasks: {command: [gh, issue, view]}", ":3: tasks.command: {task} must stand once in its arguments"),
    ("tasks: {command: [gh, '{task}', '{task}']}", ":3: tasks.command: {task} must stand once in its arguments"),
    ("tasks: {command: ['{task}']}", ":3: tasks.command: {task} must stand once in its arguments"),
    ("tasks: {command: ['{task}', '{task}']}", ":3: tasks.command: {task} must stand once in its arguments"),
    ("tasks: {command: [gh, 42]}", ":3: tasks.command[2]: expected text, found 42"),
    ("bindings_path: bindings.yaml", ":3: bindings_path: expected text with {task} in it once"),
    ("bindings_path: '/{task}.yaml'", ":3: bindings_path: expected a path inside the repository"),
    ("bindings_path: 'a/../{task}.yaml'", ":3: bindings_path: expected a path inside the repository"),
    ("bindings_path: ['{task}.yaml']", ":3: bindings_path: expected text, found a list"),
    ("cache: node_modules", ":3: cache: expected a list"),
    ("cache: [node_modules]", ":3: cache[1]: expected a mapping"),
    ("cache: [{path: a}]", ":3: cache[1]: path and key are needed"),
    ("cache:\n  - path: a\n    key: []", ":5: cache[1].key: no file is named"),
    ("cache: [{path: /a, key: [b]}]", ":3: cache[1].path: expected a path inside the repository"),
    ("cache: [{path: a, key: [../b]}]", ":3: cache[1].key[1]: expected a path inside the repository"),
    ("cache: [{path: ., key: [b]}]", ":3: cache[1].path: expected the path of a file or directory"),
    ("cache: [{path: .git/hooks, key: [b]}]", ":3: cache[1].path: expected the path of a file or directory"),
    (
        "cache: [{path: a, key: [b]}, {path: a/c, key: [b]}]",
        ":3: cache[2].path: lies in, or holds, another cached path",
    ),
    ("cache: [{path: a, key: [b], mode: x}]", ":3: cache[1].mode: unknown key"),
    ("setup: [[x]]\ncache: [{path: a, key: [b], spares: [setup-2]}]", ":4: cache[1].spares[1]: no set-up command is"),
    ("cache: [{path: a, key: [b], spares: setup-1}]", ":3: cache[1].spares: expected a list"),
    ("flaky: true", ":3: flaky: expected allow or refuse, found true"),
    ("flaky: never", ':3: flaky: expected allow or refuse, found "never"'),
    ("max_age: 30", ":3: max_age: expected an age, found 30"),
    ("max_age: 0d", ':3: max_age: expected an age, found "0d"'),
    ("max_age: -1d", ':3: max_age: expected an age, found "-1d"'),
    ("max_age: 30m", ':3: max_age: expected an age, found "30m"'),
    ("max_age: 100000d", ':3: max_age: expected an age, found "100000d"'),
    ("max_age:", ":3: max_age: expected an age, found nothing"),
    ("max_tries: 0", ":3: max_tries: expected a number from 1 to 1000, found 0"),
    ("max_tries: 1001", ":3: max_tries: expected a number from 1 to 1000, found 1001"),
    ("max_tries: '3'", ':3: max_tries: expected a whole number, found "3"'),
    ("verify: [{command: [x], graders: [a]}]", ":3: verify[1].graders: belongs to a check"),
    ("setup: [{command: [x], at_base: fail}]", ":3: setup[1].at_base: belongs to a check"),
    ("verify: [{command: [x], covers: [a]}]", ":3: verify[1].covers: belongs to a check"),
    ("headings: Requisitos", ':3: headings: expected a list, found "Requisitos"'),
    ("headings: ['']", ':3: headings[1]: expected text, found ""'),
    ("outputs: [1]", ":3: outputs[1]: expected text, found 1"),
    ("verify: pytest -q", ':3: verify: expected a list, found "pytest -q"'),
    ("verify: [pytest -q]", ':3: verify[1]: expected a list, found "pytest -q"'),
    ("verify: [pytest, -q]", ":3: verify: expected a list of commands, found a list"),
    ("verify:\n  - [pytest]\n  - []", ":5: verify[2]: the command is empty"),
    ("verify:\n  -", ":4: verify[1]: expected a list, found nothing"),
    ("verify: [['']]", ':3: verify[1][1]: expected text, found ""'),
    ("setup: [[sleep, 5]]", ":3: setup[1][2]: expected text, found 5"),
    ("setup: [{timeout_seconds: 5}]", ":3: setup[1]: command is missing"),
    ("setup: [{command: [x], retries: 2}]", ":3: setup[1].retries: unknown key"),
    ("checks: [a]", ":3: checks: expected a mapping, found a list"),
    ("checks: {a: }", ":3: checks.a: expected a mapping, found nothing"),
    ("checks: {a: [pytest]}", ":3: checks.a: expected a mapping, found a list"),
    ("checks:\n  a:\n    timeout_seconds: 5", ":4: checks.a: command is missing"),
    ("checks:\n  a:\n    command: pytest -q", ':5: checks.a.command: expected a list, found "pytest -q"'),
    ("checks:\n  a:\n    command: [pytest, true]", ":5: checks.a.command[2]: expected text, found true"),
    (
        "checks:\n  a:\n    command: [x]\n    timeout_seconds: soon",
        ':6: checks.a.timeout_seconds: expected a whole number, found "soon"',
    ),
    ("checks: {1a: {command: [x]}}", ":3: checks.1a: not the id of a check"),
    (f"checks: {{{'a' * 65}: {{command: [x]}}}}", "not the id of a check"),
    ("checks: {verify-1: {command: [x]}}", ":3: checks.verify-1: this id means an entry of `verify`"),
    ("checks:\n" + "".join(f"  c{n}: {{command: [x]}}\n" for n in range(101)), ":3: checks: more than 100 checks"),
    ("checks: {a: {command: [x]}}\nbindings:\n  1:\n    AC-1: [b]", ':6: bindings.1.AC-1[1]: no check is called "b"'),
]

# A key of a check, and what is said of `checks.a`.
REFUSED_CHECK_KEYS = [
    ("timeout_seconds: 1.5", 'timeout_seconds: expected a whole number, found "1.5"'),
    ("timeout_seconds: true", "timeout_seconds: expected a whole number, found true"),
    ("timeout_seconds: 0", "timeout_seconds: expected a number from 1 to 86400, found 0"),
    ("timeout_seconds: 86401", "expected a number from 1 to 86400, found 86401"),
    ("timeout: 5", "timeout: unknown key"),
    ("cwd: /tmp", "cwd: expected a path inside the repository"),
    ("cwd: a/../../b", "cwd: expected a path inside the repository"),
    ("env: {A: 1}", "env.A: expected text, found 1"),
    ("env: {A=B: c}", "not the name of a variable"),
    ("env: [A]", "env: expected a mapping, found a list"),
    ("pass_env: [A, 'B C']", "pass_env[2]: expected the name of a variable"),
    ("exit_codes: {inconclusive: 4}", "exit_codes.inconclusive: expected a list, found 4"),
    ("exit_codes: {not_run: [4]}", "exit_codes.not_run: unknown key"),
    ("exit_codes: {passed: [0]}", "expected a number from 1 to 255, found 0"),
    ("exit_codes: {passed: [256]}", "expected a number from 1 to 255, found 256"),
    ("graders: tests", 'graders: expected a list, found "tests"'),
    ("graders: []", "graders: the list is empty"),
    ("graders: [/etc]", "graders[1]: expected a path inside the repository"),
    ("graders: [a, ../b]", "graders[2]: expected a path inside the repository"),
    ("graders: [.]", "graders[1]: expected the path of a file or directory"),
    ("graders: [a//b]", "graders[1]: expected the path of a file or directory"),
    ("graders: [.GIT/config]", "graders[1]: expected the path of a file or directory"),
    ("at_base: failed", 'at_base: expected any, fail or pass, found "failed"'),
    ("at_base: false", "at_base: expected any, fail or pass, found false"),
    ("covers: sign-up", 'covers: expected a list, found "sign-up"'),
    ("covers: [1]", "covers[1]: expected text, found 1"),
    ("exit_codes: {passed: [4], failed: [4]}", "exit_codes.failed[1]: exit status 4 stands twice"),
]

# Bindings in a file with one entry in `verify`.
REFUSED_BINDINGS = [
    ("[a]", "expected a mapping, found a list"),
    ("{1: {AC-1: [verify-2]}}", '1.AC-1[1]: no check is called "verify-2"'),
    ("{1: {AC-1: [verify-0]}}", 'no check is called "verify-0"'),
    ("{1: {AC-1: [verify-01]}}", 'no check is called "verify-01"'),
    ("{1: {AC-1: verify-1}}", '1.AC-1: expected a list, found "verify-1"'),
    ("{1: {AC-1: [verify-1, verify-1]}}", '1.AC-1[2]: the check "verify-1" stands twice'),
    ("{../x: {}}", '../x: not a task id: "../x"'),
    ("{-n: {}}", '-n: not a task id: "-n"'),
    ("{1: {1: []}}", "1.1: not the id of a criterion"),
    ("{1: [a]}", "1: expected a mapping, found a list"),
]

REFUSED = [
    *REFUSED_FILES,
    *((beginning(text), message) for text, message in REFUSED_KEYS),
    *((beginning(f"checks: {{a: {{command: [x], {text}}}}}"), message) for text, message in REFUSED_CHECK_KEYS),
    *((beginning(f"verify: [[x]]\nbindings: {text}"), message) for text, message in REFUSED_BINDINGS),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[f"{n}-{row[1][:40]}" for n, row in enumerate(REFUSED)])
def test_an_error_names_file_line_and_path(text: str | bytes, message: str) -> None:
    error = refused(text)
    assert error.message.startswith(".gitevals.yaml:")
    assert message in error.message
    assert len(error.message) < 400


LATER = [
    ("approvals: 1", "approvals", "0"),
    ("approvals: false", "approvals", "0"),
    ('approvals: "0"', "approvals", "0"),
    ("home: private", "home", '"user"'),
    ("judge: {enabled: true}", "judge", '{"enabled":false}'),
    ("judge: {enabled: false, host: codex}", "judge", '{"enabled":false}'),
    ("trust: {}", "trust", "absent"),
    ("checks: {a: {command: [x], isolation: container}}", "isolation", '"none"'),
    ("verify: [{command: [x], isolation: container}]", "isolation", '"none"'),
]


@pytest.mark.parametrize(("text", "key", "default"), LATER)
def test_a_key_of_a_later_issue_is_refused_away_from_its_default(text: str, key: str, default: str) -> None:
    error = refused(beginning(text))
    assert f"{key}: not built yet; " in error.message
    assert error.message.startswith(".gitevals.yaml:3: ")
    assert default in error.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("checks: {a: {command: pytest -q 'a b'}}", 'write `[pytest, -q, "a b"]`; no shell reads it'),
        ('checks: {a: {command: "it\'s"}}', 'write `["it\'s"]`; no shell reads it'),
        ("checks: {a: pytest -q}", "write `command: [pytest, -q]` below checks.a"),
        ("checks: {a: [pytest, -q]}", "write `command: [pytest, -q]` below checks.a"),
        ("verify: [pytest -q]", "write `[pytest, -q]`; no shell reads it"),
        ("verify: [pytest, -q]", "write `verify: [[pytest, -q]]`"),
        ("setup: [[sleep, 5]]", 'put it in quotes if text is meant: "5"'),
        ("protect: main", "write `protect: [main]`"),
        ("checks: {a: {command: [x], timeout: 5}}", "known here: command, timeout_seconds, cwd, "),
        ("checks: {b: {command: [x]}}\nverify: [[x]]\nbindings: {1: {A: [c]}}", "known: b, verify-1"),
        ("bindings: {1: {A: [c]}}", "add it below `checks:`"),
    ],
)
def test_a_hint_shows_what_to_write(text: str, hint: str) -> None:
    assert refused(beginning(text)).hint.startswith(hint)


def test_the_name_of_another_file_stands_in_the_message() -> None:
    with pytest.raises(ConfigInvalid, match=r"^main:\.gitevals\.yaml:1: version is missing$"):
        configfile.parse(b"mode: off", name="main:.gitevals.yaml")


BRANCHES = [
    "release/1.0", "été", "a@b", "@", "a@{b", "-a", "a-", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a..b",
    "a~b", "a^b", "a:b", "a?b", "a[b", "a\\b", "/a", "a/", "a//b", "HEAD", "a.b", "{a}", "a b", "a\x7fb",
]  # fmt: skip


def test_a_protected_name_is_what_git_takes_for_a_branch(a_repo: Place) -> None:
    def taken(branch: str) -> bool:
        try:
            return reading(beginning(f"protect: [{msgspec.json.encode(branch).decode()}]")).protect == (branch,)
        except ConfigInvalid:
            return False

    git = {name: a_repo.attempt("git", "branch", "-f", name, "HEAD^{}").returncode == 0 for name in BRANCHES}
    assert {name: taken(name) for name in git} == git
    assert reading(beginning("protect: [main, 'release/*']")).protect == ("main", "release/*")


KEYS = st.sampled_from(
    [*config.KEYS, *config.LATER_KEYS, *commands.COMMAND_KEYS, "path", "a", "verify-1", "*", "AC-1", "x-a"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | KEYS | st.just("{task}"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(deadline=None, max_examples=60)
def test_no_bytes_raise_anything_but_our_own_error(content: bytes) -> None:
    for prefix in (b"", b"version: 1\nmode: off\nx-a: "):
        with contextlib.suppress(EvalsError):
            configfile.parse(prefix + content)


@given(st.text(alphabet="-?:{}[]&*!|>'\"%@`#,<~ \n\t\r0aé\\U\ufeff", max_size=60))
@settings(deadline=None, max_examples=60)
def test_no_punctuation_raises_anything_but_our_own_error(text: str) -> None:
    for prefix in ("", beginning("x-a: ")):
        with contextlib.suppress(EvalsError):
            configfile.parse((prefix + text).encode())


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@settings(deadline=None, max_examples=60)
def test_whatever_is_accepted_survives_the_cache(values: dict[str, object]) -> None:
    content = msgspec.json.encode({"version": 1, "mode": "off", **values})
    try:
        read = configfile.parse(content)
    except EvalsError:
        return
    assert msgspec.json.decode(msgspec.json.encode(read), type=Config) == read


@pytest.mark.parametrize(
    ("written", "seconds"), [("none", 0), ("1h", 3600), ("30d", 2592000), ("2w", 1209600), ("99999w", 60479395200)]
)
def test_an_age_is_hours_days_or_weeks(written: str, seconds: int) -> None:
    assert reading(beginning(f"max_age: {written}")).max_age_seconds == seconds


def test_no_limit_is_said_by_none_and_long_lists_are_bounded_by_the_file_alone() -> None:
    many = [f"tests/t{n}" for n in range(1000)]
    text = beginning("max_tries: none\ntasks: {command: [gh, issue, view, '{task}', --jq, '{a}']}\n")
    listed = f"[{', '.join(many)}]"
    read = reading(f"{text}checks: {{a: {{command: [x], graders: {listed}, covers: {listed}}}}}")
    assert (read.max_tries, read.task_command[-1], read.task_path) == (0, "{a}", None)
    assert read.checks["a"].graders == tuple(sorted(many))
    assert read.checks["a"].covers == tuple(many)


FILE = ".gitevals/bindings/42.yaml"
BOUND = beginning("checks: {a: {command: [x]}}\nverify: [[x]]")


def test_a_file_of_bindings_is_one_entry_of_the_configuration() -> None:
    found = configfile.parse_bindings(b"AC-1: [a, verify-1]\n'*': []\n", reading(BOUND), name=FILE)
    assert found == {"AC-1": ("a", "verify-1"), "*": ()}


REFUSED_BINDINGS_FILES = [
    (b"", ":1: the file is empty"),
    (b"- a\n", ":1: expected a mapping, found a list"),
    (b"AC-1: a\n", ':1: AC-1: expected a list, found "a"'),
    (b"AC-1: [a]\nAC-2: [b]\n", ':2: AC-2[1]: no check is called "b"'),
    (b"AC-1: [a]\nAC-1: [a]\n", ":2: AC-1: the key stands twice, first on line 1"),
    (b"AC-1: [a, a]\n", ':1: AC-1[2]: the check "a" stands twice'),
    (b'"42":\n  AC-1: [a]\n', ":1: 42: not the id of a criterion"),
    (b"AC-1: [a\n", ":2: not YAML: "),
    (b"AC-1: \xff\n", ":1: not UTF-8"),
    (b"#" * (config.LIMIT_BYTES + 1), ":1: larger than 65536 bytes"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED_BINDINGS_FILES)
def test_an_error_in_a_file_of_bindings_names_that_file(content: bytes, message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        configfile.parse_bindings(content, reading(BOUND), name=FILE)
    assert caught.value.message.startswith(f"{FILE}{message}")
    assert "mode" not in caught.value.hint
