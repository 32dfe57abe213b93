"""What the doctor says of records: who writes here, whether all can be read, and whether our own ledgers are whole."""

import re
from collections import Counter
from collections.abc import Callable

from gitevals.errors import EvalsError
from gitevals.evidence.reading import CONTRACTS, EVENTS, NOTES
from gitevals.evidence.writing import check_writer
from gitevals.git import form
from gitevals.install.finding import Finding, State
from gitevals.journal import journal
from gitevals.model.task import TASK_ID
from gitevals.session import Session

_NAMED_LIMIT = 10
_LAYOUTS = {
    NOTES: re.compile(r"[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})"),
    CONTRACTS: re.compile(rf"{TASK_ID}/(?:[0-9a-f]{{64}}/.+|freezes/[0-9a-f]{{64}}\.json)"),
    EVENTS: re.compile(rf"{TASK_ID}/[0-9a-f]{{64}}\.json"),
}


def records(session: Session) -> list[Finding]:
    """Every finding about writers and ledgers."""
    evidence = session.evidence()
    found = journal(session, evidence)
    own = _own(session)
    said = [own, _writers(Counter(entry.writer for entry in found.entries))]
    unread = Counter(fault.ledger for fault in evidence.faults) + Counter(evidence.untold)
    for ledger, count in sorted(unread.items()):
        text = f"{count} line{'s' if count > 1 else ''} of {ledger} cannot be read; they hide no other"
        said.append(Finding(name="ledgers", state=State.NOTE, text=text, repair="git evals log"))
    said += [Finding(name="ledgers", state=State.NOTE, text=notice) for notice in found.notices]
    tips = {**evidence.ledgers.notes, **evidence.ledgers.contracts, **evidence.ledgers.events}
    said += _foreign(session, tips, own.text) if own.state is State.OK else []
    if not any(entry.name == "ledgers" for entry in said):
        said.append(Finding(name="ledgers", state=State.OK, text=f"{len(tips)}, and every line can be read"))
    return [*said, Finding(name="trust", state=State.NOTE, text="evidence is unsigned: it is believed as it is found")]


def _own(session: Session) -> Finding:
    named = session.inherited.get("GITEVALS_WRITER") or session.repo.setting("evals.writer")
    if not named:
        text = "no writer id yet; the first record picks one"
        return Finding(name="writer", state=State.NOTE, text=text, repair="git evals init")
    try:
        return Finding(name="writer", state=State.OK, text=check_writer(named))
    except EvalsError as error:
        return Finding(name="writer", state=State.PROBLEM, text=error.message, repair=error.hint)


def _writers(counts: Counter[str]) -> Finding:
    listed = [f"{writer} {count}" for writer, count in counts.most_common(_NAMED_LIMIT)]
    more = f", and {len(counts) - _NAMED_LIMIT} more" if len(counts) > _NAMED_LIMIT else ""
    text = f"records by writer: {', '.join(listed)}{more}" if listed else "no record yet"
    return Finding(name="writers", state=State.OK, text=text)


def _foreign(session: Session, tips: dict[str, str], writer: str) -> list[Finding]:
    """The ledgers of ``writer`` that hold a commit or a file which git-evals does not write."""
    found = []
    for family, layout in _LAYOUTS.items():
        ref = family + writer
        faults = form.faults(session.objects, tips[ref], ref, _fits(layout)) if ref in tips else []
        if faults:
            more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
            text = f"{ref}: commit {faults[0].commit[:12]} was not written by git-evals: {faults[0].reason}{more}"
            repair = f"git config evals.writer {writer[:60]}-2, to go on in a ledger of its own"
            found.append(Finding(name="ledgers", state=State.NOTE, text=text, repair=repair))
    return found


def _fits(layout: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda path: layout.fullmatch(path) is not None
