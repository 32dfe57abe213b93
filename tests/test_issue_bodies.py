"""Acceptance criteria as people write them in issues: read right, or refused with the line and the repair."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals import tasks
from gitevals.errors import BadInput

AC = "## Acceptance Criteria\n\n"

FORM = """\
### Contact Details

_No response_

### Acceptance Criteria

- [X] The export holds every row
- [ ] The file opens in a spreadsheet

### Code of Conduct

- [X] I agree to follow it
"""

TEMPLATE = """\
---
name: Feature
about: Something new
---

<!-- Thank you! Describe the feature. -->

## 📝 Description

As a reader I want to mark pages.

## ✅ Acceptance Criteria

<!-- What must hold? For example:
- [ ] pages can be marked
-->

- [ ] A marked page is listed under *Marks* (see #12, !34 and @reviewers)
- [ ] Marks survive a restart ![shot](https://example.com/a.png)

## 🔗 Related
- [ ] #11
"""

STORY = """\
# Export

**As a** clerk **I want** an export **so that** I can archive.

Acceptance criteria:
--------------------

**Scenario: empty list**

* [ ] **Given** no rows  
  **When** I export  
  **Then** the file has a header
  ```gherkin
  Scenario: empty
    - [ ] not an entry
  ```

**Scenario: many**

1) [x] Given 10,000 rows

   then the export is paged

       rows/page: 500

   * a note
   * [ ] and each page is numbered
2) [ ] It is logged[^1]

[^1]: in the audit log
"""  # noqa: W291

GITLAB = """\
/label ~bug ~"priority::1"
/assign @someone

## Login fails

## Acceptance criteria ##
The login must hold:
- [ ] Given a locked account, `/login` answers 423 :lock:
+ [X] ~~It asks twice~~
\t- [ ] nested by a tab

<details>
<summary>Mobile</summary>

- [ ] The keyboard shows `[ ]` and ``- [x]`` keys

</details>

| field | rule |
|-------|------|
| mail  | set  |

/milestone %"1.0"
"""

SPANISH = """\
## Historia de usuario
Como cliente quiero pagar.

### 3. Criterios de Aceptación:
- [ ] **[CA-1]** Dado un carrito vacío, cuando pago, entonces veo «vacío»
- [ ] **[CA-2] Cupón:** se aplica el 10 %
"""

# What the text is about; the text; the criteria as "line id text".
READ = [
    (
        "a GitHub form",
        FORM.replace("\n", "\r\n"),
        ["7 AC-1 The export holds every row", "8 AC-2 The file opens in a spreadsheet"],
    ),
    (
        "a GitHub template with front matter and emoji",
        "\ufeff" + TEMPLATE,
        [
            "18 AC-1 A marked page is listed under *Marks* (see #12, !34 and @reviewers)",
            "19 AC-2 Marks survive a restart ![shot](https://example.com/a.png)",
        ],
    ),
    (
        "a user story with scenarios",
        STORY,
        [
            "10 AC-1 **Given** no rows **When** I export **Then** the file has a header"
            " Scenario: empty - [ ] not an entry",
            "20 AC-2 Given 10,000 rows then the export is paged rows/page: 500 a note",
            "27 AC-3 and each page is numbered",
            "28 AC-4 It is logged[^1]",
        ],
    ),
    (
        "a GitLab issue with quick actions, details and a table",
        GITLAB,
        [
            "8 AC-1 Given a locked account, `/login` answers 423 :lock:",
            "9 AC-2 ~~It asks twice~~",
            "10 AC-3 nested by a tab",
            "15 AC-4 The keyboard shows `[ ]` and ``- [x]`` keys",
        ],
    ),
    (
        "a Spanish story with ids",
        SPANISH,
        [
            "5 CA-1 Dado un carrito vacío, cuando pago, entonces veo «vacío»",
            "6 CA-2 **Cupón:** se aplica el 10 %",
        ],
    ),
    ("a numbered heading", "# 4.2) Acceptance criteria\n- [ ] a", ["2 AC-1 a"]),
    ("an emoji behind the heading", "## Acceptance Criteria ✔️\n- [ ] a", ["2 AC-1 a"]),
    ("a shortcode at the heading", "## :white_check_mark: Acceptance Criteria\n- [ ] a", ["2 AC-1 a"]),
    ("a heading with right-to-left mark", "## \u200fAcceptance Criteria\u200f\n- [ ] a", ["2 AC-1 a"]),
    ("a heading with no-break spaces", "##\tAcceptance\u00a0Criteria\u00a0\n- [ ] a", ["2 AC-1 a"]),
    ("a heading of another script", "## ✅ स्वीकृति\n- [ ] a", ["2 AC-1 a"]),
    ("Arabic", AC + "- [ ] يجب أن يعمل \u200fالدخول\u200e", ["3 AC-1 يجب أن يعمل \u200fالدخول\u200e"]),
    (
        "Chinese",
        AC + "- [ ] 【登录】用户可以登录。\n- [x] ［退出］可用",
        ["3 AC-1 【登录】用户可以登录。", "4 AC-2 ［退出］可用"],
    ),
    ("Hindi with combining marks", AC + "- [ ] पासवर्ड की लंबाई दिखे", ["3 AC-1 पासवर्ड की लंबाई दिखे"]),
    ("a family of emoji", AC + "- [ ] 👩‍👩‍👧 🇪🇸", ["3 AC-1 👩‍👩‍👧 🇪🇸"]),
    ("a no-break space after the box", AC + "- [ ]\u00a0a\n- [x]\ta", ["3 AC-1 a", "4 AC-2 a"]),
    (
        "directly below a paragraph",
        AC + "All of these:\n- [ ] a\n- [ ] b\nThank you",
        ["4 AC-1 a", "5 AC-2 b Thank you"],
    ),
    ("two spaces below a number", AC + "1. [ ] a\n  - [ ] b\n2. [ ] c", ["3 AC-1 a", "4 AC-2 b", "5 AC-3 c"]),
    (
        "groups in bold with entries",
        AC + "- **Login**\n  - [ ] a\n- **Logout**:\n    1. [ ] b",
        ["4 AC-1 a", "6 AC-2 b"],
    ),
    (
        "groups as lower headings",
        AC + "### AC-7: Login\n- [ ] a\n\n### ✅ Done\n- [ ] b",
        ["4 AC-1 a", "7 AC-2 b"],
    ),
    (
        "ids without brackets that agree",
        AC + "1. [ ] **AC1** a\n2. [ ] (AC-2) b\n3. [ ] `AC-03`: c\n4. [ ] AC 4: d",
        ["3 AC-1 **AC1** a", "4 AC-2 (AC-2) b", "5 AC-3 `AC-03`: c", "6 AC-4 AC 4: d"],
    ),
    (
        "ids in brackets in any dress",
        AC + "- [ ] [AC1] a\n- [x] `[AC-7]` b\n* [ ] ***[AC-3]***: c\n1) [ ] [AC.4] – d",
        ["3 AC1 a", "4 AC-7 b", "5 AC-3 c", "6 AC.4 d"],
    ),
    ("an id behind a mark of direction", AC + "- [ ] \u202b[AC-2] a", ["3 AC-2 a"]),
    (
        "a volt is no id",
        AC + "- [ ] AC 230 V is accepted\n- [ ] AC/DC plays",
        ["3 AC-1 AC 230 V is accepted", "4 AC-2 AC/DC plays"],
    ),
    (
        "brackets in prose",
        AC + '- [ ] a[i] and b[x], "[ ]", \\[ \\] and [x](u)\n\nPress [x] to `- [ ] b`.',
        ['3 AC-1 a[i] and b[x], "[ ]", \\[ \\] and [x](u)'],
    ),
    ("a box in code over lines", AC + "- [ ] a `b\n  [ ] c` d", ["3 AC-1 a `b [ ] c` d"]),
    ("a very long entry", AC + "- [ ] " + "word " * 20_000, ["3 AC-1 " + ("word " * 20_000).strip()]),
    ("a quoted mail above", "> ## Acceptance Criteria\n> - [ ] old\n\n" + AC + "- [ ] a", ["6 AC-1 a"]),
    ("a summary of the section elsewhere", "## About the acceptance criteria\ntext\n\n" + AC + "- [ ] a", ["6 AC-1 a"]),
    ("its name in prose", "Acceptance criteria:\nsee below\n\n" + AC + "- [ ] a\n\n# Tasks\n- [ ] b", ["6 AC-1 a"]),
    ("a <pre> of entries", AC + "<pre>- [ ] b\n<input type=checkbox></pre>\n\n- [ ] a", ["6 AC-1 a"]),
    ("a comment after backticks in HTML", AC + "<div>\n`<!--\n- [ ] b\n-->`\n</div>\n\n- [ ] a", ["9 AC-1 a"]),
    ("a defined link", AC + "- [ ] see [the log]\n\n[the log]: https://example.com", ["3 AC-1 see [the log]"]),
]

BOXLESS = "this line looks like a checklist entry and is none"
NOT_HEADING = "no acceptance section; "

# What the text is about; the text; line and message; a part of the hint.
REFUSED = [
    (
        "bold for a heading",
        "# T\n\n**Acceptance Criteria:**\n- [ ] a",
        f'3: {NOT_HEADING}"**Acceptance',
        "## Acceptance",
    ),
    (
        "an HTML heading",
        "<h2>Acceptance Criteria</h2>\n\n- [ ] a",
        f'1: {NOT_HEADING}"<h2>',
        "outside quotes, lists and HTML",
    ),
    (
        "a summary",
        "<details>\n<summary>Acceptance criteria</summary>\n\n- [ ] a",
        f'2: {NOT_HEADING}"<summary>',
        "## Acc",
    ),
    ("Jira's heading", "h3. Acceptance Criteria\n# a\n# b", f'1: {NOT_HEADING}"h3. ', "## Acceptance"),
    ("a longer heading", "# T\n## Acceptance Criteria (MVP)\n- [ ] a", f"2: {NOT_HEADING}", "`headings:`"),
    ("a table's head", "| Acceptance criteria |\n|---|\n| [ ] a |", f'1: {NOT_HEADING}"| Acc', "## Acceptance"),
    ("a quoted heading", "text\n\n> ## Criterios de aceptación\n> - [ ] a", f"3: {NOT_HEADING}", "outside quotes"),
    ("a struck heading", "## ~~Acceptance Criteria~~\n- [ ] a", f"1: {NOT_HEADING}", "## Acceptance"),
    (
        "a second one with a suffix",
        AC + "- [ ] a\n## Acceptance criteria (mobile)\n- [ ] b",
        "4: a second acceptance section",
        "line 1",
    ),
    (
        "a second one in bold",
        "**Acceptance criteria**\n- [ ] b\n\n" + AC + "- [ ] a",
        "1: a second acceptance section",
        "line 4",
    ),
    (
        "a second one in HTML",
        AC + "- [ ] a\n# B\n<b>Acceptance criteria</b>:\n\n- [ ] b",
        "5: a second acceptance section",
        "line 1",
    ),
    ("a second one with an emoji", "## ✅ Acceptance Criteria\n- [ ] a\n" + AC + "- [ ] b", "3: a second", "line 1"),
    (
        "an empty answer of a form",
        "### Acceptance Criteria\n\n_No response_\n\n### More\ntext",
        "1: no checklist entry",
        "- [ ] what",
    ),
    (
        "higher headings in an answer",
        "### Acceptance Criteria\n\n## Login\n- [ ] a",
        "1: no checklist entry",
        "heading on line 3 ends the section",
    ),
    (
        "dashes below the lead-in",
        AC + "These:\n---\n- [ ] a",
        "1: no checklist entry",
        "heading on line 3 ends the section",
    ),
    (
        "numbered sentences",
        AC + "text\n\n1. WHEN a THEN b\n2. WHEN c THEN d",
        "1: no checklist entry",
        "item on line 5 has none",
    ),
    ("Gherkin alone", AC + "```gherkin\n- [ ] Given a\n```", "1: no checklist entry", "in code, as on line 3"),
    ("all indented by a tab", AC + "\t- [ ] a\n\t- [ ] b", "1: no checklist entry", "in code, as on line 3"),
    ("a box drawn as a sign", AC + "- [ ] a\n- ☐ b", f"4: {BOXLESS}", "write the box as `[ ]`"),
    ("a sign without a bullet", AC + "- [ ] a\n\ntext\n☑ b", f"6: {BOXLESS}", "write the box as `[ ]`"),
    ("a tick instead of a box", AC + "- [ ] a\n- ✅ b", "4: the item begins with a tick and no box", "`- [ ] …`"),
    ("full-width brackets", AC + "- [ ] a\n- ［ ］b", f"4: {BOXLESS}", "write the box as `[ ]`"),
    ("lenticular brackets", AC + "- [ ] a\n- 【x】b", f"4: {BOXLESS}", "write the box as `[ ]`"),
    ("a box with backslashes", AC + "- [ ] a\n- \\[ \\] b", f"4: {BOXLESS}", "without backslashes"),
    ("a bullet with a backslash", AC + "- [ ] a\n\n\\- [x] b", f"5: {BOXLESS}", "begin the line with `- `"),
    ("a bullet of a text processor", AC + "- [ ] a\n\n• [x] b", f"5: {BOXLESS}", "begin the line with `- `"),
    ("a lettered list", AC + "- [ ] a\n\nb) [x] b", f"5: {BOXLESS}", "begin the line with `- `"),
    ("an outline's number", AC + "- [ ] a\n\n1.1 [x] b", f"5: {BOXLESS}", "begin the line with `- `"),
    ("a no-break space after the bullet", AC + "-\u00a0[x] a", f"3: {BOXLESS}", "begin the line with `- `"),
    ("no space after the bullet", AC + "*[x] a", f"3: {BOXLESS}", "a space between bullet and box"),
    ("an unseen mark before the bullet", AC + "- [ ] a\n\n\u200f- [x] b", f"5: {BOXLESS}", "invisible character"),
    ("an unseen mark before the box", AC + "- \u200b[x] a", f"3: {BOXLESS}", "invisible character"),
    ("a box glued to a link", AC + "- [ ] a\n\n[ ][b](u)", f"5: {BOXLESS}", "begin the line"),
    ("a byte order mark inside", AC + "- [ ] a\n\n\ufeff- [x] b", f"5: {BOXLESS}", "invisible character"),
    ("a struck entry", AC + "- [ ] a\n- ~~[x] b~~", f"4: {BOXLESS}", "begin the line"),
    ("a struck line", AC + "- [ ] a\n\n~~- [ ] b~~", f"5: {BOXLESS}", "a line of its own"),
    (
        "GitLab's inapplicable task",
        AC + "- [ ] a\n- [~] b",
        '4: the item begins with "[~]"',
        "delete it if it does not apply",
    ),
    ("two entries on one line", AC + "- [ ] a - [x] b", f"3: {BOXLESS}", "a line of its own"),
    ("lines that are none", AC + "- [ ] a\u2028- [x] b\v- [ ] c", f"3: {BOXLESS}", "a line of its own"),
    ("a bullet in HTML", AC + "- [ ] a\n\n<p>- [x] b</p>", f"5: {BOXLESS}", "no HTML"),
    ("a ticked label", AC + "- [ ] a\n\n**AC-2:** [x] b", f"5: {BOXLESS}", "the box first"),
    ("dashes for a bullet", AC + "- [ ] a\n\n-- [x] b", f"5: {BOXLESS}", "begin the line with `- `"),
    ("a label before the box", AC + "- [ ] a\n- QA: [ ] b", f"4: {BOXLESS}", "a line of its own"),
    (
        "a box in a table",
        AC + "- [ ] a\n\n| done | what |\n|---|---|\n| [x] | b |",
        f"7: {BOXLESS}",
        "the table as a list",
    ),
    ("boxes in a cell", AC + "- [ ] a\n\n| what |\n|---|\n| b<br>[x] c |", f"7: {BOXLESS}", "a line of its own"),
    ("an HTML list", AC + "- [ ] a\n\n<ul>\n<li>[x] b</li>\n</ul>", f"6: {BOXLESS}", "no HTML around"),
    (
        "HTML boxes",
        AC + "- [ ] a\n\n<ul>\n<li><input disabled type='checkbox'> b</li>\n</ul>",
        f"6: {BOXLESS}",
        "no HTML",
    ),
    ("a box behind a <pre>", AC + "- [ ] a\n\n<pre>\nb</pre> [ ] c", f"6: {BOXLESS}", "no HTML"),
    ("a box in a setext heading", AC + "- [ ] a\n\n[ ] b\n---", f"5: {BOXLESS}", "a line of dashes"),
    (
        "a ticked definition",
        AC + "- [ ] a\n- [x]: done",
        "4: this line looks like a checklist entry and defines",
        "colon",
    ),
    ("an id's definition", AC + "- [ ] a\n- [AC-2]: works\n- [AC-2]: again", "4: this line looks like", "colon"),
    ("a repeated definition", "[x]: u\n\n" + AC + "- [ ] a\n\n[x]: works", "7: this line looks like", "colon"),
    ("a bare id without a box", AC + "- [ ] a\n- **AC-2**: b", '4: the item "AC-2" has no box', "`- [ ] [AC-2] …`"),
    ("ids against the order", AC + "- [ ] AC-2: a\n- [ ] AC-1: b", "3: the entry says AC-2, but", "[AC-2]"),
    ("an id of parts", AC + "- [ ] a\n- [ ] **AC-2.1** b", "4: the entry says AC-2.1, but", "[AC-2.1]"),
    ("an id behind the order", AC + "- [ ] a\n- [ ] b\n- [ ] (AC 2) c", "5: the entry says AC-2, but", "[AC-2]"),
    ("an id with a hyphen that never breaks", AC + "- [ ] AC‑3 a", "3: the entry says AC-3, but", "[AC-3]"),
    ("dots for a text", AC + "- [ ] a\n- [ ] ...", "4: the checklist entry says nothing", "what must hold"),
    ("nothing that is seen", AC + "- [ ] a\n- [ ] \u200b", "4: the checklist entry says nothing", "what must hold"),
    ("no space after the box", AC + "- [ ] a\n- [ ]AC-2 b", '4: the item begins with "[ ]"', "begin it with `[ ] `"),
]

TITLES = [
    (FORM, "Contact Details"),
    (STORY, "Export"),
    (GITLAB, "Login fails"),
    (SPANISH, "Historia de usuario"),
    ("<!-- say what -->\n\n**Fast** [start](u)\n\n" + AC + "- [ ] a", "Fast start"),
    ("## ✅ Acceptance criteria\n- [ ] a\n\n## More", "More"),
]


def reading(text: str) -> tasks.Task:
    return tasks.parse("42", text.encode(), headings=["स्वीकृति"], name="42.md")


@pytest.mark.parametrize(("text", "criteria"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_an_issue_as_people_write_it_is_read(text: str, criteria: list[str]) -> None:
    assert [f"{entry.line} {entry.id} {entry.text}" for entry in reading(text).criteria] == criteria


@pytest.mark.parametrize(("text", "message", "hint"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_an_issue_that_hides_a_criterion_is_refused_at_its_line(text: str, message: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        reading(text)
    assert caught.value.message.startswith(f"42.md:{message}")
    assert hint in caught.value.hint


@pytest.mark.parametrize(("text", "title"), TITLES)
def test_an_issue_without_a_main_heading_is_called_by_what_it_says_first(text: str, title: str) -> None:
    assert reading(text).title == title


def test_a_heading_full_of_brackets_is_taken_as_it_is_written() -> None:
    assert reading("# " + "[*a* " * 17 + "\n" + AC + "- [ ] a").title == ("[*a* " * 17).strip()
    assert reading("# " + "[*a* " * 16 + "\n" + AC + "- [ ] a").title == ("[a " * 16).strip()


ITEM = st.tuples(
    st.sampled_from(["", "  ", "   ", "    ", "\t", "> ", "\u200f", "\u00a0"]),
    st.sampled_from(["- ", "* ", "+ ", "1. ", "2) ", "-", "• ", "", "\\- ", "- - "]),
    st.sampled_from(
        ["[ ] ", "[x] ", "[X]\t", "[ ]", "[] ", "☐ ", "［ ］", "\\[ \\] ", "~~[ ] ", "[x]: ", "", "", "<br>[x] "]
    ),
    st.sampled_from(["word", "**bold** word", "`- [ ] code`", "a - [x] b", "[link](u)"]),
    st.sampled_from(["\n", "\n", "\n\n", "\r\n"]),
)


@given(st.lists(ITEM, min_size=1, max_size=3))
@settings(deadline=None, max_examples=120)
def test_no_box_that_somebody_wrote_is_silently_left_out(items: list[tuple[str, str, str, str, str]]) -> None:
    boxes = [(box != "") + ("- [x] b" in text) for _, _, box, text, _ in items]
    beyond_code = sum(count for count, item in zip(boxes, items, strict=True) if item[0] not in ("    ", "\t"))
    try:
        criteria = reading(AC + "- [ ] first\n\n" + "".join("".join(item) for item in items)).criteria
    except BadInput:
        return
    assert 1 + beyond_code <= len(criteria) <= 1 + sum(boxes)
