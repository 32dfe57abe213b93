"""The documents say what the product is: commands, options, reasons, refs, keys and layers are those of the code."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from gitevals import commands as command_keys
from gitevals import config, configfile, recovery, tasks
from gitevals.cli.app import app
from gitevals.evidence import reading
from gitevals.git import ledger, locks, packs
from gitevals.install import hookfindings
from gitevals.install.leftovers import IN_USE_SECONDS
from gitevals.model import record
from gitevals.model.contract import Contract, Mode
from gitevals.model.evaluation import Evaluation, Freeze, Reopen
from gitevals.model.reason import RULES
from tests.test_architecture import ORDER

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
MAN = DOCS / "git-evals.1"
PAGES = sorted((README, *DOCS.rglob("*.md")))
COMMANDS = (
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/git-evals demo",
    "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
)
FENCE = re.compile(r"^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, list[str]]:
    """The long options of each command by its full name, the program's own under the empty name."""
    root = typer.main.get_command(app)
    return dict(_walked(root, ""))


def _walked(command: object, name: str) -> Iterator[tuple[str, list[str]]]:
    options = [text for parameter in getattr(command, "params", []) for text in parameter.opts]
    yield name, [text for text in options if text.startswith("-")]
    for word, below in getattr(command, "commands", {}).items():
        yield from _walked(below, f"{name} {word}".strip())


def manual() -> str:
    """The manual page's source without its escapes and fonts."""
    return re.sub(r"\\f[BIRP]", "", MAN.read_text()).replace("\\-", "-")


def section(name: str) -> str:
    """What the manual page says of one command: its entry up to the next command's."""
    text = manual().partition(".SH COMMANDS")[2].partition(".SH EXIT STATUS")[0]
    start = re.search(rf"^{re.escape(name)}(?= |$)", text, re.MULTILINE)
    assert start is not None, f"no entry for {name}"
    others = [word for word in commands() if word and word != name and word != "hooks"]
    ends = [found.start() for word in others if (found := re.search(rf"^{re.escape(word)}(?= |$)", text, re.MULTILINE))]
    return text[start.start() : min((end for end in ends if end > start.start()), default=len(text))]


LEAVES = sorted(name for name in commands() if name and name != "hooks")


@pytest.mark.parametrize("name", LEAVES)
def test_the_manual_page_has_every_option_of_a_command(name: str) -> None:
    entry = section(name)
    missing = [option for option in commands()[name] if option not in ("-h", "--help") and option not in entry]
    assert missing == []


@pytest.mark.parametrize("name", LEAVES)
def test_the_manual_page_names_no_option_that_a_command_lacks(name: str) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", section(name)))
    assert named <= {*commands()[name], "--help", *(["--commit"] if name == "run" else [])}


def test_the_manual_page_has_the_options_of_the_program() -> None:
    options = manual().partition(".SH OPTIONS")[2].partition(".SH COMMANDS")[0]
    assert [option for option in commands()[""] if not re.search(rf"{option}\b", options)] == []


@pytest.mark.parametrize("name", LEAVES)
def test_the_synopsis_names_every_command(name: str) -> None:
    synopsis = manual().partition(".SH SYNOPSIS")[2].partition(".SH DESCRIPTION")[0]
    assert re.search(rf"^git evals {name.replace(' ', '.* ')}\b", synopsis, re.MULTILINE)


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_the_manual_page_renders_without_warnings() -> None:
    env = {**os.environ, "MANWIDTH": "80", "MANROFFOPT": ""}
    done = subprocess.run(
        ["man", "--warnings", "-l", str(MAN)],
        capture_output=True,
        text=True,
        env=env,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if "unrecognized option" in done.stderr or "illegal option" in done.stderr:
        pytest.skip("this man has no --warnings")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_of_reasons_is_the_one_the_gate_decides_by() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (refuse|note) \| (refuse|note) \| (\d) \| (.*?) \|", (DOCS / "gate.md").read_text(), re.M
    )
    expected = [
        (str(code), str(rule.enforce), str(rule.lenient), str(rule.exit_code), _shown(rule.hint))
        for code, rule in RULES.items()
    ]
    assert rows == expected


def _shown(hint: str) -> str:
    return f"`{hint}`" if hint.startswith("git ") else hint or "–"


def test_what_takes_a_refused_command_back_is_told_as_the_hook_tells_it() -> None:
    told = (DOCS / "gate.md").read_text().partition("## After a refusal\n")[2].partition("\n## ")[0]
    undone = {
        undo.format(branch="BRANCH", verb=verb, unstash=recovery._UNSTASH)
        for _, owners, undo in recovery._STATES
        for verb in owners
    }
    assert {undo for undo in undone if f"`{undo}`" not in told} == set()
    assert [words for _, words in recovery._CONCLUDED if f"| {words} |" not in told] == []


def test_the_states_of_hooks_are_those_that_documents_name() -> None:
    listed = re.findall(r"^\| `hooks status`.*`state` \((.*?)\)", (DOCS / "formats.md").read_text(), re.M)
    assert set(re.findall(r"`(\w+)`", listed[0])) == set(hookfindings._TEXTS)
    assert [state for state in hookfindings._TEXTS if not re.search(rf"\b{state}\b", section("hooks status"))] == []


# where a number stands that is a constant of the code, and in which words
NUMBERS = (
    ("formats.md", f"the file of a freeze or an event | {record.LINE_LIMIT_BYTES >> 10} KiB |"),
    ("formats.md", f"| a stored contract, and its text | {reading.CONTENT_LIMIT_BYTES >> 20} MiB |"),
    ("formats.md", f"| a note | {reading.NOTE_LIMIT_BYTES >> 20} MiB |"),
    ("formats.md", f"of more than {reading.FAULTS_LIMIT} in one ledger"),
    ("formats.md", f"waits at most {ledger.TURN_SECONDS} seconds for its turn"),
    ("departures.md", f"A note over {reading.NOTE_LIMIT_BYTES >> 20} MiB"),
    ("departures.md", f"up to {reading.FAULTS_LIMIT} faults of a ledger"),
    ("departures.md", f"at most {ledger.TURN_SECONDS} seconds"),
    ("durability.md", f"not changed for {locks.STILL_SECONDS} seconds"),
    ("durability.md", f"waits at most {locks.LONGEST_SECONDS} seconds"),
    ("durability.md", f"older than {IN_USE_SECONDS} seconds"),
    ("durability.md", f"{packs.KEEP_PACK_FROM} objects or more are one pack"),
)


@pytest.mark.parametrize(("page", "said"), NUMBERS)
def test_a_number_that_a_document_names_is_the_one_that_holds(page: str, said: str) -> None:
    assert said.lower() in " ".join((DOCS / page).read_text().split()).lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, MAN], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_document_names_exists(page: Path) -> None:
    text = manual() if page == MAN else page.read_text()
    named = set(re.findall(r"\bgit[ \n]evals[ \n]([a-z][a-z-]*)(?![\w-]*:)", text))
    known = {name.split()[0] for name in commands() if name}
    prose = {"freezes"} if page == MAN else set()
    assert named - known - prose == set()


def test_the_readme_has_both_commands() -> None:
    lines = README.read_text().splitlines()
    assert [command for command in COMMANDS if command not in lines] == []


LATER = {**config.LATER_KEYS, **command_keys.LATER_COMMAND_KEYS}
KEYS = (
    *config.KEYS,
    *command_keys.COMMAND_KEYS,
    *command_keys.CHECK_KEYS,
    *config.LATER_KEYS,
    *command_keys.LATER_COMMAND_KEYS,
)


@pytest.mark.parametrize("key", sorted({*KEYS, "path"}))
def test_the_configuration_page_names_every_key(key: str) -> None:
    assert f"`{key}`" in (DOCS / "configuration.md").read_text()


@pytest.mark.parametrize(("key", "accepted"), sorted(LATER.items()))
def test_the_configuration_page_says_what_is_accepted_of_later_keys(key: str, accepted: str) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", (DOCS / "configuration.md").read_text(), re.M))
    plain = {"": "leave it out", '{"enabled":false}': "`{enabled: false}`"}
    assert rows[key] == plain.get(accepted, f"`{accepted.strip(chr(34))}`")
    later = (DOCS / "configuration.md").read_text().partition("## Keys of later versions")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", later, re.M)) == set(LATER)


def test_the_example_configuration_parses() -> None:
    blocks = [
        found["text"] for found in FENCE.finditer((DOCS / "configuration.md").read_text()) if found["kind"] == "yaml"
    ]
    parsed = configfile.parse(blocks[0].encode())
    assert (parsed.mode, parsed.unknown, len(parsed.verify)) == (Mode.ENFORCE, (), 2)


REFS = (reading.NOTES, reading.NOTES_REMOTE, reading.CONTRACTS, reading.EVENTS, reading.LOGS, reading.FAMILIES_REMOTE)


def test_the_refs_of_the_formats_page_are_those_of_the_code() -> None:
    named = re.findall(r"^\| `(refs/[a-z/-]+/)(?:<writer>|…)", (DOCS / "formats.md").read_text(), re.M)
    assert sorted(named) == sorted(REFS)


@pytest.mark.parametrize("record", [Evaluation, Freeze, Reopen, Contract])
def test_the_formats_page_names_every_field(record: type[Evaluation | Freeze | Reopen | Contract]) -> None:
    text = (DOCS / "formats.md").read_text()
    assert [field for field in record.__struct_fields__ if f"`{field}`" not in text] == []


def test_the_layers_of_the_architecture_page_are_those_that_imports_follow() -> None:
    listed = (DOCS / "architecture.md").read_text().partition("<!-- layers -->")[2].partition("<!-- end -->")[0]
    assert tuple(re.findall(r"^\d+\. `(\w+)`", listed, re.MULTILINE)) == ORDER[1:-1]


def test_the_projects_own_configuration_and_tasks_parse() -> None:
    own = configfile.parse((ROOT / config.PATH).read_bytes())
    assert (own.mode, own.protect, own.branches, own.unknown) == (Mode.OBSERVE, ("main",), "task/{task}", ())
    assert re.fullmatch(r"r[0-9a-f]{16}", own.repository)
    assert own.task_path == ".gitevals/tasks/{task}.md"
    files = sorted((ROOT / ".gitevals" / "tasks").glob("*.md"))
    parsed = {file.stem: tasks.parse(file.stem, file.read_bytes(), name=file.name) for file in files}
    assert {name: {entry.id for entry in task.criteria} for name, task in parsed.items()} == {
        name: set(bound) for name, bound in own.bindings.items()
    }


@pytest.mark.slow
def test_the_first_steps_of_the_readme_work_as_pasted(tmp_path: Path) -> None:
    steps, _, rest = README.read_text().partition("## First steps")[2].partition("## Checks that are hard to cheat")
    example, _, around = rest.partition("## Results")[0].partition("## Looking around")
    assert configfile.parse(f"version: 1\nmode: off\n{_blocks(example, 'yaml')[0]}".encode()).checks
    text = steps + around
    script = ["set -eu", "git init -q -b main . && git commit -q --allow-empty -m first"]
    for block in FENCE.finditer(text):
        if block["kind"] == "yaml":
            (tmp_path / "given.yaml").write_text(block["text"])
            script += [
                "sed '/^verify: /,$d' .gitevals.yaml >start",
                "cat start ../given.yaml >.gitevals.yaml; rm start",
            ]
        else:
            script.append(block["text"])
    done = _pasted("\n".join(script), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "merged task/1 into main" in done.stdout
    for told in ("1 evidenced", "delivered", "evaluation.finished", "no problem"):
        assert told in done.stdout


def _blocks(text: str, kind: str) -> list[str]:
    return [block["text"] for block in FENCE.finditer(text) if block["kind"] == kind]


def _pasted(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    for name in ("project", "bin"):
        (place / name).mkdir()
    command = place / "bin" / "git-evals"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m gitevals "$@"\n')
    command.chmod(0o755)
    env = {**os.environ, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["sh"], input=script, cwd=place / "project", env=env, capture_output=True, text=True, check=False
    )
