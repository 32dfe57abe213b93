"""A decision in words, for hooks and commands alike; light enough for a hook."""

from gitevals.model.decision import Decision
from gitevals.model.reason import Severity
from gitevals.report.text import line, short


def lines(decision: Decision) -> list[str]:
    """What the gate says of one movement: the verdict, each reason, and the one command that helps."""
    verdict = "allowed" if decision.allowed else "refused"
    old = short(decision.old) if decision.old.strip("0") else "nothing"
    new = short(decision.new) if decision.new.strip("0") else "nothing"
    said = [f"git-evals: {verdict}: {line(decision.ref)} from {old} to {new}"]
    for reason in decision.reasons:
        mark = "" if reason.severity is Severity.REFUSE else "note: "
        said.append(f"  {mark}{line(reason.message)}")
    hint = next((reason.hint for reason in decision.refusals or decision.reasons if reason.hint), "")
    return [*said, f"  hint: {line(hint)}"] if hint else said
