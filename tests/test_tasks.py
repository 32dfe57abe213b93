"""Which criteria a task's text holds, and which texts are refused rather than read as an empty contract."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals import tasks
from gitevals.errors import BadInput, EvalsError
from gitevals.model.contract import CRITERIA_LIMIT
from gitevals.model.task import check_task_id

HEAD = "## Acceptance Criteria\n\n"

GITHUB = """\
### Is there an existing issue for this?

- [X] I have searched the existing issues

### Acceptance criteria

<!-- Please list what must hold:
- [ ] [AC-9] an example
-->

- [ ] [AC-1] `POST /register` answers **201**
- [x] **[AC-2]** A second registration answers 409 <!-- see #12 -->

```markdown
- [ ] [AC-3] not this one
```

### Anything else?

- [ ] nothing
"""

GITLAB = """\
# Registration

/label ~backend

## Acceptance criteria:

1. [ ] The form has
   a password field
   * [x] which shows its strength
2. [X] Mail is sent

***

## Links / references

- [ ] elsewhere
"""

# What the text is about; the text; the criteria as "line id text".
READ = [
    ("a box", HEAD + "- [ ] it works", ["3 AC-1 it works"]),
    ("ticks prove nothing", HEAD + "- [x] a\n- [X] b\n- [ ] c", ["3 AC-1 a", "4 AC-2 b", "5 AC-3 c"]),
    ("star and plus bullets", HEAD + "* [ ] a\n\n+ [ ] b", ["3 AC-1 a", "5 AC-2 b"]),
    ("ordered lists", HEAD + "1. [ ] a\n2. [ ] b\n\n3) [ ] c", ["3 AC-1 a", "4 AC-2 b", "6 AC-3 c"]),
    ("plain items between entries", HEAD + "- a note\n- [ ] a\n- [a link](b)", ["4 AC-1 a"]),
    (
        "nested entries",
        HEAD + "- [ ] a\n  - [ ] b\n    - [ ] c\n- [ ] d",
        ["3 AC-1 a", "4 AC-2 b", "5 AC-3 c", "6 AC-4 d"],
    ),
    ("an entry in a plain item", HEAD + "- group\n  - [ ] a", ["4 AC-1 a"]),
    ("a list in a list", HEAD + "- - [ ] a", ["3 AC-1 a"]),
    ("nested plain items are part", HEAD + "- [ ] a\n  - detail\n- [ ] b", ["3 AC-1 a detail", "5 AC-2 b"]),
    ("a wrapped line", HEAD + "- [ ] a\n  b\nc", ["3 AC-1 a b c"]),
    ("two paragraphs", HEAD + "- [ ] a\n\n  b\n- [ ] c", ["3 AC-1 a b", "6 AC-2 c"]),
    ("a paragraph after a nested entry", HEAD + "- [ ] a\n  - [ ] b\n\n  c", ["3 AC-1 a c", "4 AC-2 b"]),
    ("the text below the box", HEAD + "- [ ]\n  a", ["3 AC-1 a"]),
    ("a quote in an entry", HEAD + "- [ ] a\n  > b", ["3 AC-1 a b"]),
    ("a fence in an entry", HEAD + "- [ ] prints\n  ```text\n  - [ ] b\n    c\n  ```", ["3 AC-1 prints - [ ] b c"]),
    ("indented code in an entry", HEAD + "- [ ] prints\n\n      a  b", ["3 AC-1 prints a b"]),
    ("a fence between entries", HEAD + "- [ ] a\n\n```\n- [ ] b\n```\n\n- [ ] c", ["3 AC-1 a", "9 AC-2 c"]),
    ("a tilde fence", HEAD + "~~~\n- [ ] b\n~~~\n- [ ] c", ["6 AC-1 c"]),
    ("indented code", HEAD + "text\n\n    - [ ] b\n\n- [ ] c", ["7 AC-1 c"]),
    ("a comment around entries", HEAD + "<!--\n- [ ] b\n-->\n- [ ] c", ["6 AC-1 c"]),
    ("a comment in a line", HEAD + "- [ ] a <!-- b --> c<!---->d", ["3 AC-1 a cd"]),
    ("a comment over lines", HEAD + "- [ ] a <!-- b\n  c --> d\n- [ ] e", ["3 AC-1 a d", "5 AC-2 e"]),
    (
        "a comment in code is text",
        HEAD + "- [ ] `<!-- a -->` ``b ` <!-- c -->``",
        ["3 AC-1 `<!-- a -->` ``b ` <!-- c -->``"],
    ),
    ("an open comment in a line is text", HEAD + "- [ ] a <!-- b\n- [ ] c", ["3 AC-1 a <!-- b", "4 AC-2 c"]),
    ("a comment of no length", HEAD + "- [ ] a <!--> b --> c <!---> d", ["3 AC-1 a b --> c d"]),
    ("an escaped comment is text", HEAD + "- [ ] a \\<!-- b -->", ["3 AC-1 a \\<!-- b -->"]),
    ("a comment before the id", HEAD + "- [ ] <!-- b --> [Q-1] a", ["3 Q-1 a"]),
    ("a comment block in an entry", HEAD + "- [ ] a\n\n  <!-- b -->", ["3 AC-1 a"]),
    ("a <pre> block", HEAD + "<pre>\n- [ ] b\n</pre>\n\n- [ ] c", ["7 AC-1 c"]),
    ("HTML around Markdown", HEAD + "<details>\n\n- [ ] a\n\n</details>", ["5 AC-1 a"]),
    ("markup stays in the text", HEAD + "- [ ] **a** [b](c) `d` &amp; \\*", ["3 AC-1 **a** [b](c) `d` &amp; \\*"]),
    ("white space is one space", HEAD + "- [ ]  a\tb\u00a0 c  ", ["3 AC-1 a b c"]),
    ("an id", HEAD + "- [ ] [Q.1_b-c] a", ["3 Q.1_b-c a"]),
    ("ids beside positions", HEAD + "- [ ] [Q-1] a\n- [ ] b\n- [ ] [Q-3] c", ["3 Q-1 a", "4 AC-2 b", "5 Q-3 c"]),
    ("an id that is its position", HEAD + "- [ ] [AC-1] a\n- [ ] b", ["3 AC-1 a", "4 AC-2 b"]),
    ("a bold id", HEAD + "- [ ] **[Q-1]** a", ["3 Q-1 a"]),
    ("an underlined id", HEAD + "- [ ] __[Q-1]__ a", ["3 Q-1 a"]),
    ("an italic id", HEAD + "- [ ] *[Q-1]* a", ["3 Q-1 a"]),
    ("an id in code", HEAD + "- [ ] `[Q-1]` a", ["3 Q-1 a"]),
    ("code that is no id", HEAD + "- [ ] `[1, 2]` is sorted", ["3 AC-1 `[1, 2]` is sorted"]),
    ("an id with a colon", HEAD + "- [ ] [Q-1]: a", ["3 Q-1 a"]),
    ("an id with a dash", HEAD + "- [ ] [Q-1] — a - b", ["3 Q-1 a - b"]),
    ("a bold id with a colon", HEAD + "- [ ] **[Q-1]:** a", ["3 Q-1 a"]),
    ("an id in a bold phrase", HEAD + "- [ ] **[Q-1] The title** a", ["3 Q-1 **The title** a"]),
    ("a minus is no separator", HEAD + "- [ ] [Q-1] -1 is refused", ["3 Q-1 -1 is refused"]),
    ("an id without brackets", HEAD + "- [ ] **Q-1**: a", ["3 AC-1 **Q-1**: a"]),
    ("an inline link", HEAD + "- [ ] [Q-1](b) a", ["3 AC-1 [Q-1](b) a"]),
    ("a bold link", HEAD + "- [ ] **[two words](b)** a", ["3 AC-1 **[two words](b)** a"]),
    ("a full reference", HEAD + "- [ ] [Q-1][r] a\n\n[r]: b", ["3 AC-1 [Q-1][r] a"]),
    ("a defined reference", HEAD + "- [ ] [Q-1] a\n\n[q-1]: b", ["3 AC-1 [Q-1] a"]),
    ("an escaped bracket", HEAD + "- [ ] \\[a b] c", ["3 AC-1 \\[a b] c"]),
    ("a bracket that stays open", HEAD + "- [ ] [0, 1) is the range", ["3 AC-1 [0, 1) is the range"]),
    ("an image", HEAD + "- [ ] ![a b](c) d", ["3 AC-1 ![a b](c) d"]),
    ("Windows line ends", (HEAD + "- [ ] a\n  b\n- [ ] c\n").replace("\n", "\r\n"), ["3 AC-1 a b", "5 AC-2 c"]),
    ("old Mac line ends", (HEAD + "- [ ] a\n- [ ] c\n").replace("\n", "\r"), ["3 AC-1 a", "4 AC-2 c"]),
    ("a byte order mark", "\ufeff" + HEAD + "- [ ] a", ["3 AC-1 a"]),
    ("a NUL", HEAD + "- [ ] a\0b", ["3 AC-1 a\ufffdb"]),
    (
        "Cyrillic and Japanese",
        HEAD + "- [ ] [Я-1](u) имя\n- [ ] [JP-1] 日本語 の テスト",
        ["3 AC-1 [Я-1](u) имя", "4 JP-1 日本語 の テスト"],
    ),
    ("right to left and emoji", HEAD + "- [ ] שלום 🎉", ["3 AC-1 שלום 🎉"]),
    ("no empty line after the heading", "# Acceptance Criteria\n- [ ] a", ["2 AC-1 a"]),
    ("a heading in capitals with a colon", "### ACCEPTANCE  criteria :\n- [ ] a", ["2 AC-1 a"]),
    ("an emphasised heading", "## **Acceptance Criteria:**\n- [ ] a", ["2 AC-1 a"]),
    ("a heading with closing marks and a comment", "## _Acceptance Criteria_ <!-- x --> ##\n- [ ] a", ["2 AC-1 a"]),
    ("a linked heading", "## [Acceptance Criteria](#ac)\n- [ ] a", ["2 AC-1 a"]),
    ("a heading with an entity", "## Acceptance&#32;Criteria\n- [ ] a", ["2 AC-1 a"]),
    ("the Spanish heading", "## Criterios de aceptación\n- [ ] a", ["2 AC-1 a"]),
    ("the Spanish heading, decomposed", "## CRITERIOS DE ACEPTACIO\u0301N:\n- [ ] a", ["2 AC-1 a"]),
    ("a configured heading", "## Fertig, wenn:\n- [ ] a", ["2 AC-1 a"]),
    ("a configured heading, casefolded", "## STRASSE\n- [ ] a", ["2 AC-1 a"]),
    ("a setext heading", "Acceptance Criteria\n---\n- [ ] a", ["3 AC-1 a"]),
    ("a setext heading on two lines", "Acceptance\nCriteria\n===\n- [ ] a", ["4 AC-1 a"]),
    ("the next heading ends it", HEAD + "- [ ] a\n## More\n- [ ] b", ["3 AC-1 a"]),
    ("a higher heading ends it", HEAD + "- [ ] a\n# More\n- [ ] b", ["3 AC-1 a"]),
    ("a setext heading ends it", HEAD + "- [ ] a\n\nMore\n---\n- [ ] b", ["3 AC-1 a"]),
    ("a lower heading does not end it", HEAD + "- [ ] a\n### More\n- [ ] b", ["3 AC-1 a", "5 AC-2 b"]),
    ("a quoted heading does not end it", HEAD + "- [ ] a\n\n> ## More\n\n- [ ] b", ["3 AC-1 a", "7 AC-2 b"]),
    ("a heading in a list does not end it", HEAD + "- ## More\n- [ ] b", ["4 AC-1 b"]),
    ("a rule does not end it", HEAD + "- [ ] a\n\n---\n\n- [ ] b", ["3 AC-1 a", "7 AC-2 b"]),
    ("a heading in a fence is none", "```\n" + HEAD + "- [ ] b\n```\n" + HEAD + "- [ ] a", ["8 AC-1 a"]),
    ("a heading in a quote is none", "> " + HEAD + HEAD + "- [ ] a", ["5 AC-1 a"]),
    ("a heading in a comment is none", "<!--\n" + HEAD + "-->\n" + HEAD + "- [ ] a", ["7 AC-1 a"]),
    ("entries elsewhere are none", "- [ ] b\n\n" + HEAD + "- [ ] a\n\n## More\n> - [ ] c", ["5 AC-1 a"]),
    (
        "a GitHub issue form",
        GITHUB,
        ["11 AC-1 `POST /register` answers **201**", "12 AC-2 A second registration answers 409"],
    ),
    (
        "a GitLab issue",
        GITLAB,
        ["7 AC-1 The form has a password field", "9 AC-2 which shows its strength", "10 AC-3 Mail is sent"],
    ),
]

# What the text is about; the text; the message after the file's name.
REFUSED = [
    ("nothing", "", ": no acceptance section"),
    ("no heading", "- [ ] a", ": no acceptance section"),
    ("another heading", "## Accepted Criteria\n- [ ] a", ": no acceptance section"),
    ("a bold line is no heading", "**Acceptance Criteria**\n\n- [ ] a", ": no acceptance section"),
    ("a heading in a quote only", "> ## Acceptance Criteria\n> - [ ] a", ": no acceptance section"),
    ("a heading in a list only", "- ## Acceptance Criteria\n  - [ ] a", ": no acceptance section"),
    ("a heading in a fence only", "```\n## Acceptance Criteria\n- [ ] a\n```", ": no acceptance section"),
    (
        "two sections",
        HEAD + "- [ ] a\n\n" + HEAD + "- [ ] b",
        ":5: a second acceptance section; the first is on line 1",
    ),
    ("a section in each language", HEAD + "- [ ] a\n# Criterios de aceptación\n", ":4: a second acceptance section"),
    ("a section in a section", HEAD + "- [ ] a\n#" + HEAD + "- [ ] b", ":4: a second acceptance section"),
    ("an empty section", HEAD, ':1: no checklist entry below "Acceptance Criteria"'),
    ("entries after the section only", HEAD + "## More\n- [ ] a", ':1: no checklist entry below "Acceptance Criteria"'),
    ("plain items only", HEAD + "- a\n- b", ":1: no checklist entry"),
    ("fenced entries only", HEAD + "```\n- [ ] a\n```", ":1: no checklist entry"),
    ("indented entries only", HEAD + "    - [ ] a", ":1: no checklist entry"),
    ("entries in a comment only", HEAD + "<!--\n- [ ] a\n-->", ":1: no checklist entry"),
    ("entries after an open comment", HEAD + "<!--\n- [ ] a\n\n- [ ] b", ":1: no checklist entry"),
    ("an entry in a quote", HEAD + "- [ ] a\n\n> - [ ] b", ":5: a checklist entry in a quote"),
    ("an entry in a quote in an item", HEAD + "- a\n  > - [ ] b", ":4: a checklist entry in a quote"),
    ("a box in a quote", HEAD + "- [ ] a\n- > [ ] b", ":4: this line looks like a checklist entry"),
    ("a box of no width", HEAD + "- [ ] a\n- [] b", ':4: the item begins with "[]", which is neither a box nor a link'),
    ("a wide box", HEAD + "- [  ] b", ':3: the item begins with "[  ]", which is neither a box nor a link'),
    ("a box with spaces", HEAD + "- [ x ] b", ':3: the item begins with "[ x ]"'),
    ("a box with another tick", HEAD + "- [✓] b", ':3: the item begins with "[✓]"'),
    ("GitLab's tilde", HEAD + "- [~] b", ':3: the item begins with "[~]"'),
    ("a no-break space in the box", HEAD + "- [\u00a0] b", ':3: the item begins with "[\u00a0]"'),
    ("no space after the box", HEAD + "- [ ]b", ':3: the item begins with "[ ]"'),
    ("no space after a ticked box", HEAD + "- [x]b", ':3: the item begins with "[x]"'),
    ("a bold box", HEAD + "- **[ ] b**", ':3: the item begins with "**[ ]"'),
    ("an id without a box", HEAD + "- [ ] a\n- [AC-1] b", ':4: the item "AC-1" has no box'),
    ("a bold id without a box", HEAD + "- **[AC-1]** b", ':3: the item "AC-1" has no box'),
    ("a bullet without a space", HEAD + "-[ ] a", ":3: this line looks like a checklist entry and is none"),
    ("a box without a bullet", HEAD + "- [ ] a\n\n[ ] b", ":5: this line looks like a checklist entry and is none"),
    ("a box on a lazy line", HEAD + "- [ ] a\n[ ] b", ":4: this line looks like a checklist entry and is none"),
    (
        "a box below a comment over lines",
        HEAD + "- [ ] a <!-- b\n  c --> d\n[ ] e",
        ":5: this line looks like a checklist",
    ),
    ("a number that cannot begin a list", HEAD + "text\n2. [ ] b", ":4: this line looks like a checklist entry"),
    ("two boxes", HEAD + "- [ ] [ ] a", ":3: this line looks like a checklist entry"),
    ("a box in a heading", HEAD + "### [ ] a", ":3: this line looks like a checklist entry"),
    ("a box in a heading in an item", HEAD + "- [ ] a\n  ---", ":3: this line looks like a checklist entry"),
    ("a list in HTML", HEAD + "<details>\n- [ ] a\n</details>", ":4: this line looks like a checklist entry"),
    ("a box after a comment", HEAD + "- <!-- a --> [ ] b", ":3: this line looks like a checklist entry"),
    (
        "an id with a space",
        HEAD + "- [ ] [AC 1] a",
        ':3: the entry begins with "[AC 1]", which is neither an id nor a link',
    ),
    ("an id that begins with a digit", HEAD + "- [ ] [1] a", ':3: the entry begins with "[1]"'),
    ("an empty id", HEAD + "- [ ] **[]** a", ':3: the entry begins with "**[]"'),
    ("a long id", HEAD + f"- [ ] [{'a' * 65}] a", ":3: the entry begins with "),
    ("a footnote", HEAD + "- [ ] [^1] a", ':3: the entry begins with "[^1]"'),
    ("an id on two lines", HEAD + "- [ ] [AC\n  1] a", ':3: the entry begins with "[AC 1]"'),
    ("a Cyrillic id", HEAD + "- [ ] [АС-1] a", ':3: the entry begins with "[АС-1]"'),
    ("doubled brackets", HEAD + "- [ ] [[AC-1]] a", ':3: the entry begins with "[[AC-1]"'),
    ("an id glued to its text", HEAD + "- [ ] [AC-1]a", ':3: the entry begins with "[AC-1]"'),
    ("an undefined reference", HEAD + "- [ ] [AC-1][b] a", ':3: the entry begins with "[AC-1]"'),
    ("a link longer than is looked at", HEAD + f"- [ ] [a b]({'c' * 3000}) d", ':3: the entry begins with "[a b]"'),
    ("two equal ids", HEAD + "- [ ] [Q-1] a\n- [ ] [Q-1] b", ':4: "Q-1" is also the id of the entry on line 3'),
    (
        "an id that is a later position",
        HEAD + "- [ ] [AC-2] a\n- [ ] b",
        ':4: "AC-2" is also the id of the entry on line 3',
    ),
    (
        "an id that is an earlier position",
        HEAD + "- [ ] a\n- [ ] [AC-1] b",
        ':4: "AC-1" is also the id of the entry on line 3',
    ),
    ("nothing after the box", HEAD + "- [ ] a\n- [ ]", ":4: the checklist entry says nothing"),
    ("nothing after the id", HEAD + "- [ ] [AC-1]:", ":3: the checklist entry says nothing"),
    ("a comment alone after the box", HEAD + "- [ ] <!-- a -->", ":3: the checklist entry says nothing"),
    ("a nested entry alone after the box", HEAD + "- [ ]\n  - [ ] a", ":3: the checklist entry says nothing"),
    (
        "too many",
        HEAD + "- [ ] a\n" * (CRITERIA_LIMIT + 1),
        f":{CRITERIA_LIMIT + 3}: more than {CRITERIA_LIMIT} criteria",
    ),
    (
        "nested too deep",
        HEAD + "".join("  " * n + "- [ ] a\n" for n in range(60)),
        ": lists or quotes are nested too deep",
    ),
    ("quoted too deep", HEAD + "> " * 100 + "- [ ] a", ":3: lists or quotes are nested too deep"),
]


def reading(text: str) -> tasks.Task:
    return tasks.parse("42", text.encode(), headings=["fertig, wenn", "Straße:", " : "], name="tasks/42.md")


def refused(text: str | bytes) -> BadInput:
    with pytest.raises(BadInput) as caught:
        tasks.parse("42", text.encode() if isinstance(text, str) else text, name="tasks/42.md")
    assert caught.value.hint, "every error says what to do"
    return caught.value


@pytest.mark.parametrize(("text", "criteria"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_a_text_holds_these_criteria(text: str, criteria: list[str]) -> None:
    assert [f"{entry.line} {entry.id} {entry.text}" for entry in reading(text).criteria] == criteria


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_text_that_only_looks_like_criteria_is_refused(text: str, message: str) -> None:
    error = refused(text).message
    assert error.startswith("tasks/42.md:")
    assert message in error


def test_as_many_criteria_as_the_limit_are_read() -> None:
    assert len(reading(HEAD + "- [ ] a\n" * CRITERIA_LIMIT).criteria) == CRITERIA_LIMIT


def test_a_text_that_is_not_utf8_is_refused_with_its_line() -> None:
    assert refused(HEAD.encode() + b"- [ ] \xff").message == "tasks/42.md:3: not UTF-8"


def test_a_text_over_the_limit_is_refused() -> None:
    within = HEAD + "- [ ] a\n"
    assert len(reading(within + " " * (tasks.LIMIT_BYTES - len(within))).criteria) == 1
    assert refused(within + " " * (tasks.LIMIT_BYTES + 1 - len(within))).message.startswith(
        "tasks/42.md: larger than 262144"
    )


def test_a_missing_section_says_which_heading_to_add_and_where_entries_stand() -> None:
    assert refused("text").hint == "add the heading `## Acceptance Criteria` above the checklist"
    assert refused("text\n\n- [ ] a\n").hint.endswith("; a checklist entry stands on line 3")


def test_an_entry_alone_in_a_blank_heading_is_not_taken_for_a_configured_one() -> None:
    with pytest.raises(BadInput, match="no acceptance section"):
        reading("##\n- [ ] a")


def test_white_space_of_any_length_is_read_in_one_pass() -> None:
    assert reading(HEAD + "- [ ] " + " " * 200_000 + "a\n" + "<!--" * 5_000).criteria[0].id == "AC-1"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# **Registration** of `users`\n" + HEAD + "- [ ] a", "Registration of users"),
        ("text\n\nRegistration\n===\n" + HEAD + "- [ ] a", "Registration"),
        ("#\n\n## Not this\n\n# This\n\n# Nor this\n" + HEAD + "- [ ] a", "This"),
        ("> # Not this\n\n" + HEAD + "- [ ] a", "> # Not this"),
        ("\n\n  As a user  \nI want\n" + HEAD + "- [ ] a", "As a user"),
        ("a\0b\rc\r" + HEAD + "- [ ] a", "a\ufffdb"),
        (HEAD + "- [ ] a", "Acceptance Criteria"),
        ("# " + "long " * 100 + "\n" + HEAD + "- [ ] a", ("long " * 100)[:119] + "…"),
    ],
)
def test_a_title_is_the_first_heading_or_line(text: str, title: str) -> None:
    assert reading(text).title == title


@pytest.mark.parametrize("task_id", ["42", "a", "A.b_c-d", "0", "a" * 64, "a.lock.b", "lock", "a."])
def test_a_task_id_is_taken_as_it_is(task_id: str) -> None:
    assert check_task_id(task_id) == task_id


@pytest.mark.parametrize(
    "task_id",
    [
        "",
        "../x",
        "-n",
        ".a",
        "_a",
        "a/b",
        "a..b",
        "a.lock",
        "a" * 65,
        "a b",
        "a\n",
        "\n",
        "é",
        "42\0",
        "٤٢",
        "*",
        "{task}",
    ],
)
def test_any_other_task_id_is_refused_everywhere(task_id: str) -> None:
    with pytest.raises(BadInput, match=r"^not a task id: ") as caught:
        check_task_id(task_id)
    assert caught.value.hint
    with pytest.raises(BadInput, match=r"^not a task id: "):
        tasks.parse(task_id, (HEAD + "- [ ] a").encode())


def test_importing_the_module_imports_no_markdown() -> None:
    program = (
        "import sys, gitevals.tasks; print([m for m in sys.modules if m.split('.')[0] in ('yaml', 'markdown_it')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PIECES = st.sampled_from(
    [
        "- ",
        "* ",
        "1. ",
        "> ",
        "  ",
        "    ",
        "\n",
        "\n\n",
        "[ ] ",
        "[x] ",
        "[AC-1]",
        "[",
        "]",
        "(",
        ")",
        "**",
        "_",
        "`",
        "```\n",
        "<!--",
        "-->",
        "<div>",
        "# ",
        HEAD,
        "===\n",
        "---\n",
        ":",
        "\\",
        "&amp;",
        "a",
        "[a]: b\n",
        "é",
        "\0",
        "\t",
        "\r",
        "!",
        "<",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join), st.lists(st.text(max_size=5), max_size=2))
@settings(deadline=None, max_examples=150)
def test_no_markdown_raises_anything_but_our_own_error(text: str, headings: list[str]) -> None:
    for prefix in ("", HEAD, HEAD + "- [ ] "):
        try:
            task = tasks.parse("1", (prefix + text).encode(), headings=headings)
        except EvalsError:
            continue
        assert task.title
        assert all(entry.text and entry.text == " ".join(entry.text.split()) for entry in task.criteria)
        assert len({entry.id for entry in task.criteria}) == len(task.criteria) > 0


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: (HEAD + "- [ ] " + text).encode("utf-8", "replace"))
)
@settings(deadline=None, max_examples=100)
def test_no_bytes_raise_anything_but_our_own_error(text: bytes) -> None:
    try:
        assert tasks.parse("1", text).criteria
    except EvalsError:
        return
