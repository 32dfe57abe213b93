"""Why the gate refuses or has something to say: one enum, one table."""

from enum import StrEnum

import msgspec

from gitevals.model.contract import Mode


class Severity(StrEnum):
    """Whether a reason refuses the movement or is only said."""

    REFUSE = "refuse"
    NOTE = "note"


class Code(StrEnum):
    """Every reason the gate can give."""

    MISSING = "missing"
    UNVERIFIABLE = "unverifiable"
    DISPUTED = "disputed"
    STALE_HEAD = "stale_head"
    STALE_BASE = "stale_base"
    STALE_TREE = "stale_tree"
    STALE_CONTRACT = "stale_contract"
    CONTRACT_MISSING = "contract_missing"
    CONTRACT_CONFLICT = "contract_conflict"
    CONTRACT_SPENT = "contract_spent"
    VERIFICATION = "verification"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not_run"
    UNTASKED = "untasked"
    DELETED = "deleted"
    REWRITTEN = "rewritten"
    CONFIG_CHANGE = "config_change"
    CONFIG_INVALID = "config_invalid"
    EXPIRED = "expired"


class Rule(msgspec.Struct, frozen=True):
    """How a reason weighs in ``enforce`` and in the lenient modes, `verify`'s exit, and the command that helps."""

    enforce: Severity
    lenient: Severity
    exit_code: int
    hint: str


_REFUSE, _NOTE = Severity.REFUSE, Severity.NOTE
RULES: dict[Code, Rule] = {
    Code.MISSING: Rule(_REFUSE, _NOTE, 3, "git evals run {task} {where}"),
    Code.UNVERIFIABLE: Rule(_REFUSE, _NOTE, 3, "git fsck --connectivity-only"),
    Code.DISPUTED: Rule(_REFUSE, _NOTE, 1, "git evals run {task} {where} --force"),
    Code.STALE_HEAD: Rule(_REFUSE, _NOTE, 3, "git evals run {task} {where}"),
    Code.STALE_BASE: Rule(_REFUSE, _NOTE, 3, "git evals run {task} {where}"),
    Code.STALE_TREE: Rule(_REFUSE, _NOTE, 3, "git evals run {task} {where}"),
    Code.STALE_CONTRACT: Rule(_REFUSE, _NOTE, 3, "git evals freeze {task}{into} && git evals run {task} {where}"),
    Code.CONTRACT_MISSING: Rule(_REFUSE, _NOTE, 3, "git evals run {task} {where}"),
    Code.CONTRACT_CONFLICT: Rule(_REFUSE, _NOTE, 1, "git evals freeze {task}{into}"),
    Code.CONTRACT_SPENT: Rule(_REFUSE, _NOTE, 1, "git evals reopen {task}{into} --reason TEXT"),
    Code.VERIFICATION: Rule(_REFUSE, _REFUSE, 1, "git evals run --verify-only {where}"),
    Code.FAILED: Rule(_REFUSE, _NOTE, 1, "git evals report {task} --feedback"),
    Code.INCONCLUSIVE: Rule(_REFUSE, _NOTE, 3, "git evals report {task}"),
    Code.NOT_RUN: Rule(_REFUSE, _NOTE, 3, "git evals report {task}"),
    Code.UNTASKED: Rule(_REFUSE, _NOTE, 1, "git evals run {likely} {where}"),
    Code.DELETED: Rule(_REFUSE, _NOTE, 1, "protected branches are not deleted; remove it from `protect:` first"),
    Code.REWRITTEN: Rule(_REFUSE, _NOTE, 1, "bring the change in on top: git revert, or git evals merge"),
    Code.CONFIG_CHANGE: Rule(_NOTE, _NOTE, 1, ""),
    Code.CONFIG_INVALID: Rule(_REFUSE, _REFUSE, 1, "mend .gitevals.yaml in the change, then try again"),
    Code.EXPIRED: Rule(_REFUSE, _NOTE, 1, "git evals run {task} {where}"),
}


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason: what it says, how it weighs, and the one command that helps."""

    code: Code
    severity: Severity
    message: str
    hint: str = ""
    task: str = ""
    criterion: str = ""


def reason(code: Code, mode: Mode, message: str, *, hint: str = "", task: str = "", criterion: str = "") -> Reason:
    """A reason weighed by the one table."""
    rule = RULES[code]
    severity = rule.enforce if mode is Mode.ENFORCE else rule.lenient
    return Reason(code=code, severity=severity, message=message, hint=hint, task=task, criterion=criterion)
