"""Criteria in Markdown: how a text is written around them changes nothing, and what is none stays none."""

import re

from hypothesis import strategies as st

from gitevals import lookalikes, tasks, yamltree
from gitevals.config import LIMIT_BYTES
from gitevals.configfile import parse as parse_config
from gitevals.configfile import parse_bindings
from gitevals.errors import BadInput, ConfigInvalid
from gitevals.markdown import without_code, without_comments
from tests.conftest import CONFIG
from tests.properties import FEW_AND_MANY, damaged, holds

HEAD = "## Acceptance Criteria\n\n"
WORD = st.sampled_from(
    ["a user", "`- [ ] code`", "**bold** text", "500 rows", "é 🙂", "a_b", "x < y", "see [it](u)", "wait…", "(later)"]
)
SAID = st.lists(WORD, min_size=1, max_size=3).map(" ".join)
# Each entry: its id or none, and what it says.
ENTRIES = st.lists(SAID, min_size=1, max_size=5)
AROUND = st.sampled_from(
    [
        "# Title\n\n",
        "Some words.\n\n",
        "- a list\n- of things\n\n",
        "```\n- [ ] in code\n```\n\n",
        "<!-- - [ ] in a comment -->\n\n",
        "> a quote\n\n",
        "## Another heading\n\ntext\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
        "~~~md\n## Acceptance Criteria\n\n- [ ] in code\n~~~\n\n",
        "    ## Acceptance Criteria\n\n",
    ]
)
AFTER = AROUND.filter(lambda text: text.startswith(("# ", "## "))) | st.just("")
SURROUNDINGS = st.tuples(st.lists(AROUND, max_size=3).map("".join), st.lists(AROUND, max_size=3).map("".join))


def _written(entries: list[str], *, tick: str = " ", gap: str = "\n", bullet: str = "-") -> str:
    return "".join(f"{bullet} [{tick}] [C{number}] {text}{gap}" for number, text in enumerate(entries, 1))


def _criteria(text: str) -> list[tuple[str, str]]:
    return [(entry.id, entry.text) for entry in tasks.parse("1", text.encode()).criteria]


@FEW_AND_MANY
def test_ticks_bullets_blank_lines_and_line_ends_change_no_criterion(examples: int) -> None:
    def law(entries: list[str], tick: str, gap: str, bullet: str, line_end: str) -> None:
        plain = _criteria(HEAD + _written(entries))
        assert [name for name, _ in plain] == [f"C{number}" for number in range(1, len(entries) + 1)]
        assert [text for _, text in plain] == [" ".join(entry.split()) for entry in entries]
        other = HEAD + _written(entries, tick=tick, gap=gap, bullet=bullet)
        assert _criteria(other.replace("\n", line_end)) == plain
        assert _criteria("\ufeff" + other) == plain

    ticks, gaps = st.sampled_from(" xX"), st.sampled_from(["\n", "\n\n", "\n\n\n", "  \n"])
    holds(law, ENTRIES, ticks, gaps, st.sampled_from("-*+"), st.sampled_from(["\n", "\r\n", "\r"]), examples=examples)


@FEW_AND_MANY
def test_the_text_around_the_section_changes_no_criterion_and_only_moves_their_lines(examples: int) -> None:
    def law(entries: list[str], around: tuple[str, str]) -> None:
        before, after = around
        text = before + HEAD + _written(entries) + ("\n## End\n\n" + after if after else "")
        found = tasks.parse("1", text.encode()).criteria
        assert [(entry.id, entry.text) for entry in found] == _criteria(HEAD + _written(entries))
        rows = text.split("\n")
        for entry in found:
            assert rows[entry.line - 1].startswith(f"- [ ] [{entry.id}]")

    holds(law, ENTRIES, SURROUNDINGS, examples=examples)


@FEW_AND_MANY
def test_what_stands_in_code_or_in_a_comment_is_never_a_criterion(examples: int) -> None:
    def law(entries: list[str], hidden: str, cover: str) -> None:
        text = HEAD + _written(entries) + "\n" + cover.replace("HIDDEN", hidden)
        try:
            found = _criteria(text)
        except BadInput:
            return
        assert [name for name, _ in found] == [f"C{number}" for number in range(1, len(entries) + 1)]

    hidden = st.sampled_from(["- [ ] [H] hidden", "* [x] hidden", "1. [ ] hidden\n2. [ ] more", "- [ ] [C1] again"])
    covers = st.sampled_from(
        [
            "```\nHIDDEN\n```\n",
            "~~~~\n```\nHIDDEN\n~~~~\n",
            "<!-- HIDDEN -->\n",
            "<!--\nHIDDEN\n-->\n",
            "<pre>\nHIDDEN\n</pre>\n",
            "text `HIDDEN` text\n",
            "```\nHIDDEN\n",
            "<!--\nHIDDEN\n",
            "words <!-- HIDDEN\n--> words\n",
        ]
    )
    holds(law, ENTRIES, hidden, covers, examples=examples)


def _read_or_complaint(text: bytes) -> tasks.Task | BadInput:
    try:
        return tasks.parse("1", text, name="file.md")
    except BadInput as complaint:
        return complaint


@FEW_AND_MANY
def test_any_text_gives_criteria_with_right_lines_or_a_complaint_that_names_one(examples: int) -> None:
    def law(text: bytes) -> None:
        parsed = _read_or_complaint(text)
        if isinstance(parsed, BadInput):
            told = re.match(r"file\.md(?::([0-9]+))?: ", parsed.message)
            assert told
            assert parsed.hint
            count = text.count(b"\n") + text.count(b"\r") + 1
            assert told[1] is None or 1 <= int(told[1]) <= count
            return
        rows = re.sub("\r\n?", "\n", text.decode("utf-8-sig")).split("\n")
        for entry in parsed.criteria:
            assert re.search(r"\[[ xX]\]", rows[entry.line - 1])
            assert "\n" not in entry.text

    valid = st.tuples(AROUND, ENTRIES).map(lambda part: (part[0] + HEAD + _written(part[1])).encode())
    holds(law, damaged(valid) | valid.map(lambda text: text * 2) | st.binary(max_size=80), examples=examples)


@FEW_AND_MANY
def test_taking_out_code_and_comments_moves_no_line(examples: int) -> None:
    def law(text: str) -> None:
        for rest in (without_comments(text), without_comments(text, html=True), without_code(text)):
            assert rest.count("\n") == text.count("\n")
        assert isinstance(lookalikes.box_hint(text.split("\n")[0]), str)
        assert lookalikes.undecorated(lookalikes.undecorated(text)) == lookalikes.undecorated(text)

    pieces = st.sampled_from(["`", "``", "<!--", "-->", "\n", "\\", "a", "- [ ] ", "☐", "1.", "**", ":x:", "AC-1", "~"])
    holds(law, st.lists(pieces | st.text(max_size=3), max_size=12).map("".join), examples=examples)


CONFIGS = st.sampled_from([CONFIG.format(mode="enforce").encode(), b"version: 1\nmode: off\n", b'{"a": [1, {b: c}]}'])
ODD_YAML = st.sampled_from(
    [
        b"[" * 5000,
        b"a: " * 5000,
        b"- " * 5000,
        b"&a [*a]",
        b"a: &x 1\nb: *x",
        b"!!python/object:os.system x",
        b"? [1]\n: 2",
        b"%YAML 9.9\n---\na",
        b"a: 0x" + b"f" * 400,
        b"a: " + b"9" * 5000,
        b"a: 1e999999",
        b"a: 2001-99-99",
        b'"\\ud800": 1',
        b'"\\U0011ffff"',
        b"--- a\n--- b",
        b"a: !<tag:> b",
        b"\xff\xfea\0",
        b"a: |9\n x",
        b"{" * 40,
        b"<<: {a: 1}",
        b"a: 1\na: 2",
        b"#" + b"x" * (LIMIT_BYTES + 1),
        b"a: '\0'",
        b"@",
    ]
)


@FEW_AND_MANY
def test_any_bytes_are_a_configuration_or_a_complaint_that_names_the_file(examples: int) -> None:
    config = parse_config(CONFIG.format(mode="enforce").encode())

    def law(content: bytes) -> None:
        complaints = []
        for read in (
            lambda: parse_config(content, name="file.yaml"),
            lambda: parse_bindings(content, config, name="file.yaml"),
            lambda: yamltree.read(content, file="file.yaml", limit_bytes=LIMIT_BYTES).json(),
        ):
            try:
                read()
            except ConfigInvalid as complaint:
                complaints.append(complaint)
        assert all(complaint.message.startswith("file.yaml:") and complaint.hint for complaint in complaints)

    holds(law, damaged(CONFIGS) | damaged(CONFIGS | ODD_YAML) | ODD_YAML | st.binary(max_size=40), examples=examples)
