"""A task's text, in CommonMark, as criteria."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from gitevals import lookalikes, markdown
from gitevals.errors import BadInput
from gitevals.markdown import LIMIT_BYTES, Document, Heading, begins_item, line_of
from gitevals.model.contract import CRITERIA_LIMIT
from gitevals.model.task import check_task_id
from gitevals.model.task import quoted as shown

if TYPE_CHECKING:
    from gitevals.markdown import Token

__all__ = ["LIMIT_BYTES", "Requirement", "Task", "parse", "title_of"]

HEADINGS = ("Acceptance Criteria", "Criterios de aceptación")
TITLE_LIMIT = 120

CRITERION_ID = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
BOX = r"\[[ xX]\](?=\s|$)"
BRACKET = r"(?P<open>[*_]{0,3})\[(?P<id>[^\]]*)\]"
CODED_ID = rf"`\[(?P<id>{CRITERION_ID})\]`(?!`)"
SEPARATOR = r":|\s*[:–—-](?=\s|$)"
VERBATIM_HTML = r"\s*<(?P<tag>pre|script|style|textarea)\b"
DEFINED_ENTRY = r"[\s>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[\s>]+)+\[|[\s>]*\[\s*[xX]\s*\]:"
QUICK_ACTION = r"/[a-z_]+(?:\s|$)"


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the acceptance section: its id, its whole text on one line, and its line (1-based) in the file."""

    id: str
    text: str
    line: int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants done; ``criteria`` is never empty."""

    id: str
    title: str
    criteria: tuple[Requirement, ...]


class _Section(msgspec.Struct, frozen=True, kw_only=True):
    """The acceptance section: its heading, and where its tokens start and end."""

    heading: Heading
    start: int
    end: int


class _Item(msgspec.Struct, kw_only=True):
    """A list item as its tokens pass by: ``parts`` are its own texts and those of plain items in it."""

    line: int
    boxed: bool = False
    parts: list[str] = []


def parse(task_id: str, text: bytes, *, headings: Sequence[str] = (), name: str = "<file>") -> Task:
    """The task in ``text``, whose section may also be headed by one of ``headings``; a text without criteria raises."""
    check_task_id(task_id)
    document = markdown.read(text, name)
    tops = list(markdown.headings(document))
    section = _section(document, tops, headings)
    criteria = _criteria(document, [item for item in _items(document, section) if item.boxed])
    if not criteria:
        problem = f"no checklist entry below {shown(section.heading.text)}"
        raise document.error(section.heading.line, problem, hint=_empty_section_hint(document, section))
    return Task(id=task_id, title=_title(document, tops, task_id), criteria=criteria)


def _section(document: Document, tops: Sequence[Heading], headings: Sequence[str]) -> _Section:
    """The acceptance section; none, a second one, and entries below what is meant as one raise."""
    accepted = frozenset(lookalikes.folded(heading) for heading in (*HEADINGS, *headings)) - {""}
    found = [top for top in tops if {lookalikes.folded(top.text), lookalikes.undecorated(top.text)} & accepted]
    if not found:
        raise _missing_section(document, accepted)
    ends = (top.index for top in tops if top.index > found[0].index and top.rank <= found[0].rank)
    section = _Section(heading=found[0], start=found[0].index + 3, end=next(ends, len(document.tokens)))
    second = [top.line for top in found[1:2]] or list(_seconds(document, section, accepted))
    if second:
        line = section.heading.line
        problem = f"a second acceptance section; the first is on line {line}"
        raise document.error(second[0], problem, hint=f"join it with the section on line {line}")
    return section


def _seconds(document: Document, section: _Section, accepted: frozenset[str]) -> Iterator[int]:
    """The lines outside ``section`` that are meant as its heading and have checklist entries below."""
    meant = {index: line for index, line, text in _top_lines(document) if _is_meant(document, index, text, accepted)}
    last: int | None = None
    for index, token in enumerate(document.tokens):
        if section.heading.index <= index < section.end:
            last = None
        elif index in meant:
            last = meant[index]
        elif token.type == "heading_open" and token.level == 0:
            last = None
        elif last is not None and begins_item(document.tokens, index) and re.match(BOX, token.content):
            yield last


def _is_meant(document: Document, index: int, text: str, accepted: frozenset[str]) -> bool:
    """Whether a line names the section: a heading that resembles it, or any line that is the same but for its form."""
    if document.tokens[index - 1].type == "heading_open":
        return lookalikes.resembles(text, accepted)
    return lookalikes.undecorated(text) in accepted


def _top_lines(document: Document) -> Iterator[tuple[int, int, str]]:
    """Each line of text outside quotes and lists: the index of its token, its number, itself without comments."""
    for index, token in enumerate(document.tokens):
        html = token.type == "html_block"
        if (token.type == "inline" and token.level == 1) or (html and token.level == 0):
            for offset, text in enumerate(markdown.without_comments(token.content, html=html).split("\n")):
                yield index, line_of(token) + offset, re.sub(r"<[^<>]*>", " ", text) if len(text) <= 200 else ""


def _missing_section(document: Document, accepted: frozenset[str]) -> BadInput:
    """The complaint that there is no section, at the line that is meant as its heading if one is."""
    hint = f"add the heading `## {HEADINGS[0]}` above the checklist"
    for token in document.tokens:
        if token.type not in ("inline", "html_block"):
            continue
        text = markdown.without_comments(token.content, html=token.type == "html_block")
        for offset, line in enumerate(text.split("\n")):
            if lookalikes.resembles(line, accepted):
                problem = f"no acceptance section; {shown(line.strip())} is not its heading"
                hint = f"write it as `## {HEADINGS[0]}`, outside quotes, lists and HTML, or name it under `headings:`"
                return document.error(line_of(token) + offset, problem, hint=hint)
    for index, token in enumerate(document.tokens):
        if begins_item(document.tokens, index) and re.match(BOX, token.content):
            hint += f"; a checklist entry stands on line {line_of(token)}"
            break
    return BadInput(f"{document.name}: no acceptance section", hint=hint)


def _empty_section_hint(document: Document, section: _Section) -> str:
    """Where the author may have meant the entries to stand."""
    tokens = document.tokens
    write = "write each criterion as a list item that begins with a box: `- [ ] what must hold`"
    for token in tokens[section.start : section.end]:
        if token.type == "list_item_open":
            return f"{write}; the item on line {line_of(token)} has none"
        if token.type in ("fence", "code_block") and re.search(BOX, token.content):
            return f"{write}; what stands in code, as on line {line_of(token)}, is no criterion"
    for index in range(section.end, len(tokens)):
        if begins_item(tokens, index) and re.match(BOX, tokens[index].content):
            end, entry = line_of(tokens[section.end]), line_of(tokens[index])
            return f"the heading on line {end} ends the section, give it a lower rank; an entry stands on line {entry}"
    return write


def _items(document: Document, section: _Section) -> list[_Item]:
    """Every list item of the section, in order; what looks like a criterion and is none raises."""
    tokens = document.tokens[section.start : section.end]
    _check_definitions(document, section)
    _check_end(document, section)
    items: list[_Item] = []
    around = [_Item(line=0, parts=[])]  # the outermost collects what stands in no item
    quotes = 0
    for index, token in enumerate(tokens):
        match token.type:
            case "list_item_open":
                around.append(_Item(line=line_of(token), parts=[]))
                items.append(around[-1])
            case "list_item_close":
                closed = around.pop()
                if not closed.boxed:  # a plain item belongs to the entry that it stands in
                    around[-1].parts += closed.parts
            case "blockquote_open" | "blockquote_close":
                quotes += token.nesting
            case "inline" if begins_item(tokens, index) and _is_entry(document, token, quoted=quotes > 0):
                around[-1].boxed = True
                around[-1].parts.append(_checked(document, token, token.content[len("[ ]") :]))
            case "inline" | "html_block":
                is_heading = index > 0 and tokens[index - 1].type == "heading_open"
                around[-1].parts.append(_checked(document, token, token.content, is_heading=is_heading))
            case "fence" | "code_block":
                around[-1].parts.append(token.content)
    return items


def _check_end(document: Document, section: _Section) -> None:
    """Refuses an entry that dashes below it made the heading which ends the section."""
    if section.end < len(document.tokens):
        heading = document.tokens[section.end + 1]
        _checked(document, heading, heading.content, is_heading=True)


def _check_definitions(document: Document, section: _Section) -> None:
    """Refuses `- [x]: done` and `- [AC-1]: done`, which define the target of a link and are shown nowhere."""
    first, lines = section.heading.line, document.source.split("\n")
    last = line_of(document.tokens[section.end]) if section.end < len(document.tokens) else len(lines) + 1
    for number in document.definition_lines():
        if first < number < last and re.match(DEFINED_ENTRY, lines[number - 1]):
            problem = "this line looks like a checklist entry and defines a link"
            raise document.error(number, problem, hint="write `- [ ] …`, without a colon after the bracket")


def _is_entry(document: Document, token: "Token", *, quoted: bool) -> bool:
    """Whether the item that begins with ``token`` has a box; one that nearly has, or has an id alone, raises."""
    if re.match(BOX, token.content):
        if quoted:
            raise document.error(line_of(token), "a checklist entry in a quote", hint="take it out of the quote")
        return True
    label = lookalikes.label_of(token.content)
    if lookalikes.is_ticked(token.content) or label:
        problem = f"the item {shown(f'AC-{label}')} has no box" if label else "the item begins with a tick and no box"
        raise document.error(line_of(token), problem, hint=f"write `- [ ] {f'[AC-{label}] ' if label else ''}…`")
    bracket = re.match(BRACKET, token.content)
    if bracket is None or document.begins_with_link(token.content):
        return False
    if re.fullmatch(CRITERION_ID, bracket["id"]) and bracket["id"] not in ("x", "X"):
        problem = f"the item {shown(bracket['id'])} has no box"
        raise document.error(line_of(token), problem, hint=f"write `- [ ] [{bracket['id']}] …`")
    problem = f"the item begins with {shown(bracket[0])}, which is neither a box nor a link"
    hint = "begin it with `[ ] `, or write `\\[` if the bracket is text"
    if bracket["id"] == "~":
        hint = "every entry is mandatory: begin it with `[ ] `, or delete it if it does not apply"
    raise document.error(line_of(token), problem, hint=hint)


def _checked(document: Document, token: "Token", text: str, *, is_heading: bool = False) -> str:
    """``text`` of ``token`` without HTML comments; a line of it that looks like a checklist entry raises."""
    html = token.type == "html_block"
    text = markdown.without_comments(text, html=html)
    visible = _after_verbatim(text) if html else markdown.without_code(text)
    for offset, line in enumerate(visible.split("\n") if lookalikes.may_hold_box(visible) else ()):
        hint = lookalikes.box_hint(line)
        if hint:
            if html:
                hint = "put an empty line before the list, and no HTML around it"
            elif is_heading:
                hint = "write it as `- [ ] …` with an empty line below; a line of dashes right below makes a heading"
            problem = "this line looks like a checklist entry and is none"
            raise document.error(line_of(token) + offset, problem, hint=hint)
    return text


def _after_verbatim(html: str) -> str:
    """The block with what stands in a `<pre>` or its like reduced to its line ends."""
    opening = re.match(VERBATIM_HTML, html)
    if opening is None:
        return html
    closing = html.lower().rfind(f"</{opening['tag'].lower()}")
    return "\n" * html.count("\n") if closing < 0 else "\n" * html.count("\n", 0, closing) + html[closing:]


def _criteria(document: Document, entries: Sequence[_Item]) -> tuple[Requirement, ...]:
    if len(entries) > CRITERIA_LIMIT:
        line = entries[CRITERIA_LIMIT].line
        raise document.error(line, f"more than {CRITERIA_LIMIT} criteria", hint="split the task")
    by_id: dict[str, Requirement] = {}
    for position, entry in enumerate(entries, 1):
        requirement = _requirement(document, entry, position)
        first = by_id.setdefault(requirement.id, requirement)
        if first is not requirement:
            problem = f"{shown(requirement.id)} is also the id of the entry on line {first.line}"
            hint = f"give one an id of its own; an entry without one is called by its position, here AC-{position}"
            raise document.error(requirement.line, problem, hint=hint)
    return tuple(by_id.values())


def _requirement(document: Document, entry: _Item, position: int) -> Requirement:
    first, *others = (" ".join(part.split()) for part in entry.parts)
    explicit_id, first = _named(document, entry.line, first)
    label = "" if explicit_id else lookalikes.label_of(first)
    if label and label != str(position):
        problem = f"the entry says AC-{label}, but by its position it is called AC-{position}"
        raise document.error(entry.line, problem, hint=f"write the id in brackets: `- [ ] [AC-{label}] …`")
    text = " ".join(part for part in (first, *others) if part)
    if not lookalikes.says_something(text):
        raise document.error(entry.line, "the checklist entry says nothing", hint="write after the box what must hold")
    return Requirement(id=explicit_id or f"AC-{position}", text=text, line=entry.line)


def _named(document: Document, line: int, text: str) -> tuple[str, str]:
    """The id that ``text`` begins with, or nothing, and what follows it; a malformed id raises."""
    text = lookalikes.without_unseen(text)
    bracket = re.match(BRACKET, text)
    coded = re.match(CODED_ID, text)
    if coded:
        return coded["id"], _after_id(text[coded.end() :], "")
    if bracket is None or document.begins_with_link(text):
        return "", text
    rest = text[bracket.end() :]
    ends = rf"(?:{re.escape(bracket['open'][::-1])})?(?:$|[\s:–—-])"
    if not re.fullmatch(CRITERION_ID, bracket["id"]) or not re.match(ends, rest):
        problem = f"the entry begins with {shown(bracket[0])}, which is neither an id nor a link"
        hint = "write an id like `[AC-1]` and a space, or `\\[` if the bracket is text"
        raise document.error(line, problem, hint=hint)
    return bracket["id"], _after_id(rest, bracket["open"])


def _after_id(rest: str, emphasis: str) -> str:
    """What follows an id: a separator goes, and ``emphasis`` goes or, where it spans more than the id, begins anew."""
    closing = re.match(rf"(:?){re.escape(emphasis[::-1])}", rest)
    if closing:
        rest, emphasis = closing[1] + rest[closing.end() :], ""
    separator = re.match(SEPARATOR, rest)
    return emphasis + (rest[separator.end() :] if separator else rest).strip()


def title_of(task_id: str, text: bytes) -> str:
    """The title of a text, whatever else it says."""
    document = markdown.read(text, "<text>")
    return _title(document, list(markdown.headings(document)), task_id)


def _title(document: Document, tops: Sequence[Heading], task_id: str) -> str:
    """The first heading of the highest rank, else the first heading or line of text, else the first line at all."""
    ranked = (top.text for top in tops if top.rank == 1)
    accepted = {lookalikes.folded(heading) for heading in HEADINGS}
    lines = (document.shown(text) for _, _, text in _top_lines(document) if not re.match(QUICK_ACTION, text))
    told = (line for line in lines if lookalikes.undecorated(line) not in accepted)
    written = (line.strip().lstrip("#").strip() for line in document.source.split("\n"))
    title = next((line for line in (*ranked, *told, *written) if line), task_id)
    return title if len(title) <= TITLE_LIMIT else title[: TITLE_LIMIT - 1] + "…"
