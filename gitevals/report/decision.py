"""A decision in words, for hooks and commands alike; light enough for a hook."""

from gitevals.model.decision import Decision, Severity
from gitevals.report.text import line, short


def lines(decision: Decision) -> list[str]:
    """What the gate says of one movement: the verdict, each reason once, and each command that helps once."""
    verdict = "allowed" if decision.allowed else "refused"
    old = short(decision.old) if decision.old.strip("0") else "nothing"
    new = short(decision.new) if decision.new.strip("0") else "nothing"
    said = [f"git-evals: {verdict}: {line(decision.ref)} from {old} to {new}"]
    for reason in decision.reasons:
        mark = "" if reason.severity is Severity.REFUSE else "note: "
        said.append(f"  {mark}{line(reason.message)}")
    chosen = decision.refusals or decision.reasons
    hints = dict.fromkeys(reason.hint for reason in chosen if reason.hint)
    return said + [f"  hint: {line(hint)}" for hint in hints]
