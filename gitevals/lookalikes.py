"""What people write where they mean a checklist entry, an id or a heading, and what to write instead."""

import re
import unicodedata
from collections.abc import Collection

UNSEEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
GAP = rf"[\s{UNSEEN}]*"
BULLET = r"[-*+]|[0-9]{1,9}[.)]"
OTHER_BULLET = r"\\[-*+]|-{2,3}|[•‣◦·▪●○–—]|\(?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}[.)]?|\(?[A-Za-z][.)]"
EMPHASIS = r"(?:[*_~]{1,3}(?!\[\]))?"
MARKER = f"(?:{BULLET}|{OTHER_BULLET})"
SEEN = rf"\s*(?:{MARKER}\s+){{0,3}}(?:{MARKER}\s*)?{EMPHASIS}"
BEFORE = rf"{GAP}(?:{MARKER}[\s{UNSEEN}]+){{0,3}}(?:{MARKER}{GAP})?{EMPHASIS}"
NO_LINK = r"(?!\(|\[[^\]\n]{0,200}\](?!\())"
BOX = rf"\[(?:{GAP}[xX])?{GAP}\]{NO_LINK}"
LABEL = (
    r"[*_`(\[［【]{0,4}AC(?:[-_#.‐‑–—−]?|[ \t](?=[0-9.]{1,20}[*_]{0,3}[:.)\]–—-]))"
    r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9}){0,9})(?!\w)"
)

WRITE_BOX = "write the box as `[ ]`: `- [ ] …`"
OWN_LINE = "give each entry a line of its own, `- [ ] …`, and put the brackets in backticks if they are text"
# The first that a line matches at its start says how to mend it.
AT_START = (
    (rf"[ \t]*(?:{BULLET})\[[ xX]\]", "write a space between bullet and box: `- [ ] …`"),
    (rf"\s*{EMPHASIS}{BOX}", "begin the line with a bullet, after an empty line: `- [ ] …`"),
    (rf"[ \t]*(?:{BULLET})[ \t]+{BOX}", "put an empty line before the list"),
    (rf"{SEEN}{BOX}", "begin the line with `- ` and the box: `- [ ] …`"),
    (rf"{BEFORE}{BOX}", "delete the invisible character before the box and write `- [ ] …`"),
    (rf"{BEFORE}\\\[[ \txX]\\\]", "write the box without backslashes: `- [ ] …`"),
    (rf"{BEFORE}[☐☑☒⬜□▢◻🔲🔳🗆🗹]", WRITE_BOX),
    (rf"{BEFORE}[［【〔][\sxX✓✔√]*[］】〕]", WRITE_BOX),
    (rf"{BEFORE}(?i:{LABEL})\W{{0,6}}\[[xX]\]\s", "write the box first and the id in brackets: `- [ ] [AC-1] …`"),
)
ANYWHERE = (
    (r"\|[ \t]*\[[ xX]\][ \t]*(?:\||$)", "write the table as a list: `- [ ] …`"),
    (r"<input\b[^<>]*\bcheckbox\b", "write the entries in Markdown, `- [ ] …`, without HTML"),
    (rf"(?<![\w\\\]\[!\"'(“„«`])\[[ \t\u00a0]+\]{NO_LINK}(?!\w)", OWN_LINE),
    (rf"(?:(?<=[\s>])(?:•|{BULLET})[ \t]+|(?<=[\w\"'/])>[ \t]*)\[[xX]\](?=\s)", OWN_LINE),
)
ANY_BOX = rf"\[(?:{GAP}[xX])?{GAP}\\?\]|[☐☑☒⬜□▢◻🔲🔳🗆🗹［【〔]|checkbox"
TICK = rf"{GAP}[*_~]{{0,3}}[✅✔✓❌✗✘☑]"
SHORTCODE = r"\A\s*:[a-z0-9_+-]{1,40}:|:[a-z0-9_+-]{1,40}:\s*\Z"
ORDINAL = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}[.)]?\s"


def may_hold_box(text: str) -> bool:
    """Whether a line of ``text`` is worth a closer look; said at once of any text."""
    return re.search(ANY_BOX, text) is not None


def box_hint(line: str) -> str:
    """What to write instead, if the line looks like a checklist entry; it holds no code and no comments."""
    starts = (hint for pattern, hint in AT_START if re.match(pattern, line))
    inside = (hint for pattern, hint in ANYWHERE if re.search(pattern, line))
    return next(starts, "") or next(inside, "")


def is_ticked(item: str) -> bool:
    """Whether an item without a box begins with a tick, as a criterion that somebody found fulfilled."""
    return re.match(TICK, item) is not None


def label_of(text: str) -> str:
    """The number in the unbracketed id that ``text`` begins with, `2` of `**AC-02:**`, or nothing."""
    label = re.match(LABEL, text, re.IGNORECASE)
    return ".".join(part.lstrip("0") for part in label["number"].split(".")) if label else ""


def without_unseen(text: str) -> str:
    """``text`` without marks of direction and the like before a bracket, emphasis or code that it begins with."""
    return re.sub(rf"\A[{UNSEEN}]+(?=[\[*_`])", "", text)


def says_something(text: str) -> bool:
    """Whether there is more than punctuation and what nobody sees."""
    return any(unicodedata.category(character)[0] in "LNS" for character in text)


def folded(heading: str) -> str:
    """A heading as it is compared: without case, spare white space and a final colon."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", heading).casefold())
    return " ".join(folded.split()).removesuffix(":").rstrip()


def undecorated(heading: str) -> str:
    """A heading folded, and without the number, signs and emoji around it; empty for what is too long to be one."""
    if len(heading) > 200:
        return ""
    words = _trimmed(re.sub(SHORTCODE, "", heading))
    return folded(_trimmed(re.sub(rf"\A{ORDINAL}", "", words)))


def _trimmed(text: str) -> str:
    """``text`` from its first letter or digit to its last; what is struck out stays so."""
    words = [index for index, character in enumerate(text) if _is_word(character)]
    return text[words[0] : words[-1] + 1] if words else ""


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "~" or _is_mark(character)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc") and character != "\ufe0f"  # which makes an emoji of a sign


def resembles(line: str, accepted: Collection[str]) -> bool:
    """Whether a line of Markdown or HTML might be meant as one of the ``accepted`` headings, folded."""
    text = undecorated(re.sub(r"<[^<>]*>", " ", line)) if len(line) <= 200 else ""
    return any(heading in text and len(text) <= len(heading) + 24 for heading in accepted)
