"""A task's text, in CommonMark, as criteria. The Markdown library is imported when a text is parsed, not before."""

import bisect
import re
import unicodedata
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gitevals.errors import BadInput
from gitevals.model.contract import CRITERIA_LIMIT
from gitevals.model.task import check_task_id
from gitevals.model.task import quoted as shown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LIMIT_BYTES = 256 * 1024
HEADINGS = ("Acceptance Criteria", "Criterios de aceptación")
NESTING_LIMIT = 60
TITLE_LIMIT = 120
INLINE_LIMIT = 2048

CRITERION_ID = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
BOX = r"\[[ xX]\](?=\s|$)"
LOOSE_BOX = r"\s*(?:(?:[-*+]|[0-9]{1,9}[.)])\s*)?\[[ \t]*[xX]?[ \t]*\](?![(\[])"
BRACKET = r"(?P<open>[*_]{0,3})\[(?P<id>[^\]]*)\]"
CODED_ID = rf"`\[(?P<id>{CRITERION_ID})\]`(?!`)"
SEPARATOR = r":|\s*[:–—-](?=\s|$)"
VERBATIM_HTML = r"\s*<(?:pre|script|style|textarea)\b"


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


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed text: block tokens whose inline content is still source, and the targets its links name."""

    name: str
    source: str
    parser: "MarkdownIt"
    tokens: "Sequence[Token]"
    references: MutableMapping[str, Any]

    def error(self, line: int, problem: str, *, hint: str) -> BadInput:
        return BadInput(f"{self.name}:{line}: {problem}", hint=hint)

    def inline(self, text: str) -> "list[Token]":
        return self.parser.inline.parse(text[:INLINE_LIMIT], self.parser, self.references, [])


class _Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A heading at the top level: where its token stands, its rank (1 to 6), line and text as shown."""

    index: int
    rank: int
    line: int
    text: str


class _Item(msgspec.Struct, kw_only=True):
    """A list item as its tokens pass by: ``parts`` are its own texts and those of plain items in it."""

    line: int
    boxed: bool = False
    parts: list[str] = []


def parse(task_id: str, text: bytes, *, headings: Sequence[str] = (), name: str = "<file>") -> Task:
    """The task in ``text``, whose section may also be headed by one of ``headings``; a text without criteria raises."""
    check_task_id(task_id)
    document = _read(text, name)
    tops = list(_headings(document))
    heading = _section(document, tops, headings)
    criteria = _criteria(document, [item for item in _items(document, _below(document, tops, heading)) if item.boxed])
    if not criteria:
        hint = "write each criterion as a list item that begins with a box: `- [ ] what must hold`"
        raise document.error(heading.line, f"no checklist entry below {shown(heading.text)}", hint=hint)
    return Task(id=task_id, title=_title(document, tops, task_id), criteria=criteria)


def _read(text: bytes, name: str) -> _Document:
    from markdown_it import MarkdownIt

    source = _decoded(text, name)
    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).disable("inline")
    references: MutableMapping[str, Any] = {}
    tokens = parser.parse(source, references)
    document = _Document(name=name, source=source, parser=parser, tokens=tokens, references=references)
    for token in tokens:
        if token.level + 1 >= NESTING_LIMIT:  # the parser drops what is deeper without a word
            raise document.error(_line(token), "lists or quotes are nested too deep", hint="flatten the text")
    return document


def _decoded(text: bytes, name: str) -> str:
    """The text with line feeds alone as line ends, no byte order mark and no NUL."""
    if len(text) > LIMIT_BYTES:
        raise BadInput(f"{name}: larger than {LIMIT_BYTES} bytes", hint="move what is no criterion to another file")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{name}:{line}: not UTF-8", hint="save the text as UTF-8") from error
    return re.sub(r"\r\n?", "\n", decoded).replace("\0", "\ufffd")


def _headings(document: _Document) -> Iterator[_Heading]:
    for index, token in enumerate(document.tokens):
        if token.type == "heading_open" and token.level == 0:
            text = _shown(document, document.tokens[index + 1].content)
            yield _Heading(index=index, rank=int(token.tag[1:]), line=_line(token), text=text)


def _shown(document: _Document, source: str) -> str:
    """Inline ``source`` as a reader sees it, on one line, without emphasis, links and comments."""
    breaks = ("softbreak", "hardbreak")
    shown = [token for token in document.inline(source) if token.type != "html_inline"]
    return " ".join("".join(" " if token.type in breaks else token.content for token in shown).split())


def _section(document: _Document, tops: Sequence[_Heading], headings: Sequence[str]) -> _Heading:
    """The heading of the acceptance section."""
    accepted = {_folded(heading) for heading in (*HEADINGS, *headings)} - {""}
    found = [top for top in tops if _folded(top.text) in accepted]
    if not found:
        raise BadInput(f"{document.name}: no acceptance section", hint=_missing_section_hint(document))
    if len(found) > 1:
        hint = f"join it with the section on line {found[0].line}"
        problem = f"a second acceptance section; the first is on line {found[0].line}"
        raise document.error(found[1].line, problem, hint=hint)
    return found[0]


def _missing_section_hint(document: _Document) -> str:
    hint = f"add the heading `## {HEADINGS[0]}` above the checklist"
    for index, token in enumerate(document.tokens):
        if _begins_item(document.tokens, index) and re.match(BOX, token.content):
            return f"{hint}; a checklist entry stands on line {_line(token)}"
    return hint


def _folded(heading: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", heading).casefold())
    return " ".join(folded.split()).removesuffix(":").rstrip()


def _below(document: _Document, tops: Sequence[_Heading], heading: _Heading) -> "Sequence[Token]":
    """The tokens between ``heading`` and the next one of its rank or above."""
    ends = (top.index for top in tops if top.index > heading.index and top.rank <= heading.rank)
    return document.tokens[heading.index + 3 : next(ends, None)]


def _begins_item(tokens: "Sequence[Token]", index: int) -> bool:
    """Whether the token is the content of a paragraph that a list item begins with."""
    return index >= 2 and tokens[index - 1].type == "paragraph_open" and tokens[index - 2].type == "list_item_open"


def _items(document: _Document, tokens: "Sequence[Token]") -> list[_Item]:
    """Every list item in ``tokens``, in order; what looks like a criterion and is none raises."""
    items: list[_Item] = []
    around = [_Item(line=0, parts=[])]  # the outermost collects what stands in no item
    quotes = 0
    for index, token in enumerate(tokens):
        match token.type:
            case "list_item_open":
                around.append(_Item(line=_line(token), parts=[]))
                items.append(around[-1])
            case "list_item_close":
                closed = around.pop()
                if not closed.boxed:  # a plain item belongs to the entry that it stands in
                    around[-1].parts += closed.parts
            case "blockquote_open" | "blockquote_close":
                quotes += token.nesting
            case "inline" if _begins_item(tokens, index) and _is_entry(document, token, quoted=quotes > 0):
                around[-1].boxed = True
                around[-1].parts.append(_checked(document, token, token.content[len("[ ]") :]))
            case "inline" | "html_block":
                around[-1].parts.append(_checked(document, token, token.content))
            case "fence" | "code_block":
                around[-1].parts.append(token.content)
    return items


def _is_entry(document: _Document, token: "Token", *, quoted: bool) -> bool:
    """Whether the item that begins with ``token`` has a box; one that nearly has, or has an id alone, raises."""
    if re.match(BOX, token.content):
        if quoted:
            raise document.error(_line(token), "a checklist entry in a quote", hint="take it out of the quote")
        return True
    bracket = re.match(BRACKET, token.content)
    if bracket is None or _is_link(document, token.content):
        return False
    if re.fullmatch(CRITERION_ID, bracket["id"]) and bracket["id"] not in ("x", "X"):
        problem = f"the item {shown(bracket['id'])} has no box"
        raise document.error(_line(token), problem, hint=f"write `- [ ] [{bracket['id']}] …`")
    problem = f"the item begins with {shown(bracket[0])}, which is neither a box nor a link"
    raise document.error(_line(token), problem, hint="begin it with `[ ] `, or write `\\[` if the bracket is text")


def _is_link(document: _Document, text: str) -> bool:
    """Whether the bracket that ``text`` begins with, perhaps emphasised, is a link or names a link's target."""
    for token in document.inline(text):
        if token.type == "link_open":
            return True
        if token.content:
            return False
    return False


def _checked(document: _Document, token: "Token", text: str) -> str:
    """``text`` of ``token`` without HTML comments; a line of it that looks like a checklist entry raises."""
    block = token.type == "html_block"
    text = _without_comments(text, to_the_end=block)
    lines = [] if block and re.match(VERBATIM_HTML, text) else text.split("\n")
    for offset, line in enumerate(lines):
        if re.match(LOOSE_BOX, line):
            problem = "this line looks like a checklist entry and is none"
            hint = "put an empty line before the list, and no HTML around it"
            raise document.error(_line(token) + offset, problem, hint=hint)
    return text


def _without_comments(text: str, *, to_the_end: bool = False) -> str:
    """``text`` with each HTML comment outside code reduced to its line ends; one pass, whatever the text."""
    if "<!--" not in text:
        return text
    ticks: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        ticks.setdefault(len(run[0]), []).append(run.start())
    kept: list[str] = []
    position = 0
    last_end = text.rfind("-->")
    for mark in re.finditer(r"\\.|`+|<!--", text):
        start = mark.start()
        if start < position:
            continue
        if mark[0] == "<!--" and (to_the_end or start + 2 <= last_end):
            end = _comment_end(text, start)
            kept += text[position:start], "\n" * text.count("\n", start, end)
        elif mark[0].startswith("`"):
            end = _code_end(mark, ticks)
            kept.append(text[position:end])
        else:
            continue
        position = end
    return "".join(kept) + text[position:]


def _comment_end(text: str, start: int) -> int:
    """Where the comment that begins at ``start`` is over; `<!-->` and `<!--->` are comments too."""
    end = text.find("-->", start + 2)
    return len(text) if end < 0 else end + 3


def _code_end(mark: "re.Match[str]", ticks: Mapping[int, list[int]]) -> int:
    """Where the code span is over that begins at ``mark``; without a closing run, the backticks are text."""
    runs = ticks.get(len(mark[0]), [])
    closing = bisect.bisect_left(runs, mark.end())
    return runs[closing] + len(mark[0]) if closing < len(runs) else mark.end()


def _criteria(document: _Document, entries: Sequence[_Item]) -> tuple[Requirement, ...]:
    if len(entries) > CRITERIA_LIMIT:
        line = entries[CRITERIA_LIMIT].line
        raise document.error(line, f"more than {CRITERIA_LIMIT} criteria", hint="split the task")
    by_id: dict[str, Requirement] = {}
    for position, entry in enumerate(entries, 1):
        requirement = _requirement(document, entry, f"AC-{position}")
        first = by_id.setdefault(requirement.id, requirement)
        if first is not requirement:
            problem = f"{shown(requirement.id)} is also the id of the entry on line {first.line}"
            hint = f"give one an id of its own; an entry without one is called by its position, here AC-{position}"
            raise document.error(requirement.line, problem, hint=hint)
    return tuple(by_id.values())


def _requirement(document: _Document, entry: _Item, implicit_id: str) -> Requirement:
    first, *others = (" ".join(part.split()) for part in entry.parts)
    explicit_id, first = _named(document, entry.line, first)
    text = " ".join(part for part in (first, *others) if part)
    if not text:
        raise document.error(entry.line, "the checklist entry says nothing", hint="write after the box what must hold")
    return Requirement(id=explicit_id or implicit_id, text=text, line=entry.line)


def _named(document: _Document, line: int, text: str) -> tuple[str, str]:
    """The id that ``text`` begins with, or nothing, and what follows it; a malformed id raises."""
    bracket = re.match(BRACKET, text)
    coded = re.match(CODED_ID, text)
    if coded:
        return coded["id"], _after_id(text[coded.end() :], "")
    if bracket is None or _is_link(document, text):
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


def _title(document: _Document, tops: Sequence[_Heading], task_id: str) -> str:
    shown = [top.text for top in tops if top.rank == 1]
    written = (line.strip().lstrip("#").strip() for line in document.source.split("\n"))
    title = next((line for line in (*shown, *written) if line), task_id)
    return title if len(title) <= TITLE_LIMIT else title[: TITLE_LIMIT - 1] + "…"


def _line(token: "Token") -> int:
    return token.map[0] + 1 if token.map else 1
