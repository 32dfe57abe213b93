"""CommonMark as blocks that know their line. The Markdown library is imported when a text is read, not before."""

import bisect
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gitevals.errors import BadInput

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token as Token

LIMIT_BYTES = 256 * 1024
NESTING_LIMIT = 60
INLINE_LIMIT = 2048
HEADING_LIMIT = 256
BRACKET_LIMIT = 16  # the parser looks for a link at each bracket, up to the end of the text


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed text: block tokens whose inline content is still source, and the targets its links name."""

    name: str
    source: str
    parser: "MarkdownIt"
    tokens: "Sequence[Token]"
    references: MutableMapping[str, Any]

    def error(self, line: int, problem: str, *, hint: str) -> BadInput:
        """The complaint about a line (1-based)."""
        return BadInput(f"{self.name}:{line}: {problem}", hint=hint)

    def inline(self, text: str) -> "list[Token]":
        """The inline tokens that ``text`` begins with."""
        return self.parser.inline.parse(text[:INLINE_LIMIT], self.parser, self.references, [])

    def shown(self, source: str) -> str:
        """Inline ``source`` as shown, on one line, without emphasis, links and comments; a long one as it is."""
        if len(source) > HEADING_LIMIT or source.count("[") > BRACKET_LIMIT:
            return " ".join(source.split())
        breaks = ("softbreak", "hardbreak")
        shown = [token for token in self.inline(source) if token.type != "html_inline"]
        return " ".join("".join(" " if token.type in breaks else token.content for token in shown).split())

    def begins_with_link(self, text: str) -> bool:
        """Whether the bracket that ``text`` begins with, perhaps emphasised, is a link or names a link's target."""
        for token in self.inline(text):
            if token.type == "link_open":
                return True
            if token.content:
                return False
        return False

    def definition_lines(self) -> list[int]:
        """The lines (1-based) on which the target of a link is defined: no token speaks of them."""
        defined = [*self.references.get("references", {}).values(), *self.references.get("duplicate_refs", ())]
        return sorted(definition["map"][0] + 1 for definition in defined)


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A heading at the top level: where its token stands, its rank (1 to 6), line and text as shown."""

    index: int
    rank: int
    line: int
    text: str


def read(text: bytes, name: str) -> Document:
    """The text as blocks; what is no text, too large or nested too deep raises."""
    from markdown_it import MarkdownIt

    source = _decoded(text, name)
    parser = MarkdownIt("commonmark", {"maxNesting": NESTING_LIMIT}).disable("inline")
    references: MutableMapping[str, Any] = {}
    tokens = parser.parse(source, references)
    document = Document(name=name, source=source, parser=parser, tokens=tokens, references=references)
    for token in tokens:
        if token.level + 1 >= NESTING_LIMIT:  # the parser drops what is deeper without a word
            raise document.error(line_of(token), "lists or quotes are nested too deep", hint="flatten the text")
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


def headings(document: Document) -> Iterator[Heading]:
    """The headings outside quotes and lists, in order."""
    for index, token in enumerate(document.tokens):
        if token.type == "heading_open" and token.level == 0:
            text = document.shown(document.tokens[index + 1].content)
            yield Heading(index=index, rank=int(token.tag[1:]), line=line_of(token), text=text)


def begins_item(tokens: "Sequence[Token]", index: int) -> bool:
    """Whether the token is the content of a paragraph that a list item begins with."""
    return index >= 2 and tokens[index - 1].type == "paragraph_open" and tokens[index - 2].type == "list_item_open"


def line_of(token: "Token") -> int:
    """The line (1-based) that the block begins on."""
    return token.map[0] + 1 if token.map else 1


def without_comments(text: str, *, html: bool = False) -> str:
    """``text`` with each HTML comment outside code reduced to its line ends; one open in ``html`` ends with it."""
    return "".join(part for part, _ in _parts(text, html=html)) if "<!--" in text else text


def without_code(text: str) -> str:
    """``text`` with each code span reduced to a backtick and its line ends."""
    parts = _parts(text, html=False) if "`" in text else [(text, False)]
    return "".join("`" + "\n" * part.count("\n") if is_code else part for part, is_code in parts)


def _parts(text: str, *, html: bool) -> Iterator[tuple[str, bool]]:
    """The text as pieces, and whether each is a code span; comments reduced to line ends. One pass over any text."""
    ticks: dict[int, list[int]] = {}
    for run in () if html else re.finditer("`+", text):
        ticks.setdefault(len(run[0]), []).append(run.start())
    position = 0
    last_end = text.rfind("-->")
    for mark in re.finditer("<!--" if html else r"\\.|`+|<!--", text):
        start = mark.start()
        if start < position:
            continue
        if mark[0] == "<!--" and (html or start + 2 <= last_end):
            end = _comment_end(text, start)
            yield from ((text[position:start], False), ("\n" * text.count("\n", start, end), False))
        elif mark[0].startswith("`"):
            end = _code_end(mark, ticks)
            yield from ((text[position:start], False), (text[start:end], end > mark.end()))
        else:
            continue
        position = end
    yield text[position:], False


def _comment_end(text: str, start: int) -> int:
    """Where the comment that begins at ``start`` is over; `<!-->` and `<!--->` are comments too."""
    end = text.find("-->", start + 2)
    return len(text) if end < 0 else end + 3


def _code_end(mark: "re.Match[str]", ticks: Mapping[int, list[int]]) -> int:
    """Where the code span is over that begins at ``mark``; without a closing run, the backticks are text."""
    runs = ticks.get(len(mark[0]), [])
    closing = bisect.bisect_left(runs, mark.end())
    return runs[closing] + len(mark[0]) if closing < len(runs) else mark.end()
