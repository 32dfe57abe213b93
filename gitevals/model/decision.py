"""What the gate says of one movement: the table of reasons, and the pure function that decides."""

from collections.abc import Sequence

import msgspec

from gitevals.model.contract import Mode
from gitevals.model.evaluation import Finding, Stored, Subject
from gitevals.model.facts import ContractState, Facts, TaskFacts, said
from gitevals.model.movement import Commit, Span, covers, deciding, same_key
from gitevals.model.reason import RULES, Code, Reason, Severity
from gitevals.model.result import Result

SCHEMA = 1
NAMED_LIMIT = 6  # criteria that a refusal names one by one


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What evidence must be about to count for a movement."""

    ref: str
    base: str
    tree: str
    contracts: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Allowed unless a reason refuses; ``evaluations`` are the ids it rests on; ``trust`` how they were believed."""

    schema: int = SCHEMA
    allowed: bool
    key: Key | None = None
    ref: str
    old: str
    new: str
    mode: Mode | None = None
    tasks: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    evaluations: tuple[str, ...] = ()
    trust: str = "unsigned"

    @property
    def refusals(self) -> tuple[Reason, ...]:
        """The reasons that refuse."""
        return tuple(reason for reason in self.reasons if reason.severity is Severity.REFUSE)

    @property
    def exit_code(self) -> int:
        """0 allowed; 1 if any refusal is a plain no, else 3: it could not be told."""
        codes = {RULES[reason.code].exit_code for reason in self.refusals}
        return 0 if not codes else min(codes)


def decide(facts: Facts) -> Decision:
    """Whether the span may happen, and every reason against it or worth saying."""
    tasks = () if facts.exempt else facts.tasks
    reasons: list[Reason] = []
    used: list[str] = []
    if facts.config_problem:
        reasons.append(said(facts, Code.CONFIG_INVALID, f"the new configuration is refused: {facts.config_problem}"))
    reasons += [said(facts, Code.CONFIG_CHANGE, text) for text in facts.privileged]
    if facts.policy.mode is not Mode.OFF:
        reasons += [found for task in tasks for found in _of_task(facts, task, used)]
        reasons += [] if tasks or facts.exempt else _of_untasked(facts)
    reasons += _of_verification(facts, used, reasons)
    span = facts.span
    contracts = tuple(sorted(task.digest for task in tasks if task.digest))
    return Decision(
        allowed=all(found.severity is Severity.NOTE for found in reasons),
        key=Key(ref=span.ref, base=span.old.id, tree=span.new.tree, contracts=contracts),
        ref=span.ref,
        old=span.old.id,
        new=span.new.id,
        mode=facts.policy.mode,
        tasks=tuple(task.task for task in tasks),
        reasons=tuple(reasons),
        evaluations=tuple(dict.fromkeys(used)),
    )


def _of_key(facts: Facts) -> list[Stored]:
    repository = facts.policy.repository
    return [stored for stored in facts.evaluations if same_key(stored.evaluation, facts.span, repository)]


def _verifying(facts: Facts) -> list[Stored]:
    """The evaluations of the key that ran project verification as the base has it, whichever task they served."""
    policy = facts.policy
    return [
        stored
        for stored in _of_key(facts)
        if stored.evaluation.verification_digest == policy.verification_digest
        and len(stored.evaluation.verification) == policy.verification_count
    ]


def _verification_of(facts: Facts) -> tuple[Result | None, list[Stored]]:
    """What the deciding evaluations of the key say of project verification (None: nothing), and which they are."""
    known, group = list(facts.evaluations), _verifying(facts)
    final = deciding(known, group)
    results = {stored.evaluation.verification_result for stored in final}
    concluded = [entry for entry in group if entry.evaluation.verification_result in (Result.FAILED, Result.PASSED)]
    last = deciding(known, concluded)
    if any(stored.evaluation.verification_result is Result.FAILED for stored in last):
        return Result.FAILED, final if Result.FAILED in results else last  # a run without a result lifts no failure
    for result in (Result.INCONCLUSIVE, Result.NOT_RUN, Result.PASSED):
        if result in results:
            return result, final
    return None, final


def _of_verification(facts: Facts, used: list[str], others: Sequence[Reason]) -> list[Reason]:
    """What project verification adds to the ``others``; that nobody ran it, only where nothing else refuses."""
    if facts.policy.verification_count == 0:
        return []
    result, final = _verification_of(facts)
    used += [stored.id for stored in final]
    if result is Result.PASSED:
        told = any(found.code is not Code.CONFIG_CHANGE for found in others)
        return [] if told else _of_verified(facts, final)
    if result is Result.FAILED:
        failed = [run.id for stored in final for run in stored.evaluation.verification if run.result is Result.FAILED]
        text = f"project verification failed on this change: {', '.join(dict.fromkeys(failed))}"
        return [said(facts, Code.VERIFICATION, text)]
    if any(found.severity is Severity.REFUSE for found in others):
        return []
    text = f"project verification {'was not run' if result is None else 'came to no result'} on this change"
    if facts.policy.verification_required:
        return [said(facts, Code.VERIFICATION, text + _exemption(facts))]
    return [] if result is None else [said(facts, Code.INCONCLUSIVE, text, hint=RULES[Code.VERIFICATION].hint)]


def _of_verified(facts: Facts, final: Sequence[Stored]) -> list[Reason]:
    """What keeps verification that passed from counting: failures before it on the same change, or its age."""
    failed = sum(stored.evaluation.verification_result is Result.FAILED for stored in _verifying(facts))
    if facts.policy.flaky_refuses and failed:
        text = f"project verification passed after {failed} failure(s) on this change, and `flaky: refuse`"
        return [said(facts, Code.FAILED, text, hint="find out why it failed, and change the code or the command")]
    if _expired(facts, final) and facts.policy.verification_required:
        text = "project verification of this change is older than `max_age`"
        return [said(facts, Code.EXPIRED, text, hint=RULES[Code.VERIFICATION].hint)]
    return []


def _exemption(facts: Facts) -> str:
    return f" ({facts.exempt}: verification alone is needed)" if facts.exempt else ""


def _of_untasked(facts: Facts) -> list[Reason]:
    policy = facts.policy
    if policy.untasked_refuses or (policy.untasked_verifies and policy.verification_count == 0):
        return [said(facts, Code.UNTASKED, "no task is named for this change")]
    return []


def _of_task(facts: Facts, task: TaskFacts, used: list[str]) -> list[Reason]:
    contract = _of_contract(facts, task)
    if task.state in (ContractState.UNREADABLE, ContractState.OUT_OF_DATE, ContractState.CONFLICT):
        return contract
    same = [
        stored
        for stored in _of_key(facts)
        if stored.evaluation.task == task.task and stored.evaluation.contract == task.digest
    ]
    group = [stored for stored in same if covers(stored.evaluation, facts.span, facts.policy.repository)]
    final = deciding(list(facts.evaluations), group)
    used += [stored.id for stored in final]
    if contract and not final:
        return contract
    if not final:
        return contract + _of_absence(facts, task)
    return contract + (_of_results(facts, task, final) or _of_limits(facts, task, same, final))


def _name(task: TaskFacts) -> str:
    """A task with the criteria that are all unproven, the first few by id."""
    more = f" and {len(task.criteria) - NAMED_LIMIT} more" if len(task.criteria) > NAMED_LIMIT else ""
    ids = ", ".join(task.criteria[:NAMED_LIMIT])
    return f"task {task.task} ({ids}{more})" if ids else f"task {task.task}"


def _of_contract(facts: Facts, task: TaskFacts) -> list[Reason]:
    name = _name(task)
    texts = {
        ContractState.UNREADABLE: (Code.CONTRACT_MISSING, f"{name}: {task.problem}"),
        ContractState.MISSING: (Code.CONTRACT_MISSING, f"{name}: its contract was never frozen"),
        ContractState.CONFLICT: (Code.CONTRACT_CONFLICT, f"{name}: several different contracts are frozen"),
        ContractState.OUT_OF_DATE: (
            Code.STALE_CONTRACT,
            f"{name}: its frozen contract is out of date with {facts.span.ref}",
        ),
    }
    if task.state is ContractState.MISSING and facts.policy.mode is not Mode.ENFORCE:
        return []  # a freeze authorises, and only `enforce` asks for that
    if task.state in texts:
        code, text = texts[task.state]
        hint = "git evals contract {task}{into}" if task.state is ContractState.UNREADABLE else ""
        return [said(facts, code, text, task=task.task, hint=hint)]
    if task.spent_by:
        text = f"{name}: its contract was already delivered by {task.spent_by[:12]}"
        return [said(facts, Code.CONTRACT_SPENT, text, task=task.task)]
    return []


def _of_results(facts: Facts, task: TaskFacts, final: Sequence[Stored]) -> list[Reason]:
    results = {stored.evaluation.weight for stored in final}
    if results == {Result.PASSED}:
        return []
    if len(results) > 1:
        ids = ", ".join(stored.id[:12] for stored in final)
        text = f"task {task.task}: evaluations that did not see each other differ ({ids})"
        return [said(facts, Code.DISPUTED, text, task=task.task)]
    evaluation = final[0].evaluation
    found = [
        _of_finding(facts, task, finding, evaluation.subject.head)
        for finding in evaluation.findings
        if finding.result is not Result.PASSED
    ]
    result = evaluation.weight
    broken = [entry for entry in found if entry.code is Code(result)]
    if broken or (found and not evaluation.reason):
        return broken or found
    why = evaluation.reason or "project verification did not pass"
    text = f"task {task.task}: {result.replace('_', ' ')} on {evaluation.subject.head[:12]}: {why}"
    return [said(facts, Code(result), text, task=task.task), *found]


def _of_limits(facts: Facts, task: TaskFacts, same: Sequence[Stored], final: Sequence[Stored]) -> list[Reason]:
    """What keeps a pass from counting: failures before it on the same tree, too many of them, or its age.

    ``same`` may name other commits of that tree: wording a commit anew makes no other change.
    """
    failures = [stored for stored in same if stored.evaluation.weight is Result.FAILED]
    policy = facts.policy
    if policy.flaky_refuses and failures:
        text = f"task {task.task}: passed after {len(failures)} failure(s) on the same change, and `flaky: refuse`"
        return [said(facts, Code.FAILED, text, task=task.task, hint=_SAME_CHANGE)]
    if policy.max_tries and len(failures) >= policy.max_tries:
        text = f"task {task.task}: passed on try {len(failures) + 1}, and `max_tries: {policy.max_tries}`"
        return [said(facts, Code.FAILED, text, task=task.task, hint=_SAME_CHANGE)]
    if _expired(facts, final):
        text = f"task {task.task}: its evidence ({final[0].evaluation.finished}) is older than `max_age`"
        return [said(facts, Code.EXPIRED, text, task=task.task)]
    return []


_SAME_CHANGE = "find out why it failed (`git evals report {task}`), and change the code or the check"


def _expired(facts: Facts, final: Sequence[Stored]) -> bool:
    limit = facts.policy.max_age_seconds
    if not limit or not facts.now_seconds:
        return False
    from gitevals.model.age import is_expired  # most projects set no limit, and a hook pays for every import

    return all(is_expired(stored.evaluation.finished, facts.now_seconds, limit) for stored in final)


def _of_finding(facts: Facts, task: TaskFacts, finding: Finding, head: str) -> Reason:
    code = Code(finding.result)
    why = f" ({finding.reason})" if finding.reason else ""
    text = f"task {task.task}: {finding.criterion} {finding.result.replace('_', ' ')} on {head[:12]}{why}"
    return said(facts, code, text, task=task.task, criterion=finding.criterion)


def _of_absence(facts: Facts, task: TaskFacts) -> list[Reason]:
    """Why no evaluation is about this key: which part of the key moved since the nearest one, or that there is none."""
    span, name = facts.span, _name(task)
    known = [
        stored.evaluation
        for stored in facts.evaluations
        if stored.evaluation.task == task.task
        and stored.evaluation.subject.ref == span.ref
        and stored.evaluation.subject.repository == facts.policy.repository
    ]
    if not known:
        text = f"{name}: no evaluation of {span.new.id[:12]} on {span.old.id[:12]}"
        return [said(facts, Code.MISSING, text, task=task.task)]
    nearest = max(known, key=lambda evaluation: (*_nearness(evaluation.subject, span), evaluation.finished))
    subject = nearest.subject
    on_base = _on_base(subject, span)
    same_head = _same_head(subject.heads, span.new)
    if on_base and subject.tree == span.new.tree and nearest.contract != task.digest:
        text = f"{name}: evaluated under contract {nearest.contract[:12]}, now {task.digest[:12]}"
        return [said(facts, Code.STALE_CONTRACT, text, task=task.task)]
    if on_base and same_head:
        text = f"{name}: the evaluated merge of {subject.head[:12]} has another tree than this one"
        return [said(facts, Code.STALE_TREE, text, task=task.task)]
    found = []
    if not on_base:
        text = f"{name}: evaluated on {subject.base[:12]}, but {span.ref} has moved to {span.old.id[:12]}"
        found.append(said(facts, Code.STALE_BASE, text, task=task.task))
    if not same_head:
        heads = span.new.parents[1:] or (span.new.id,)
        text = f"{name}: evaluated at {_listed(subject.heads)}, but the change is now {_listed(heads)}"
        found.append(said(facts, Code.STALE_HEAD, text, task=task.task))
    return found


def _nearness(subject: Subject, span: Span) -> tuple[bool, bool, bool]:
    return _on_base(subject, span), subject.tree == span.new.tree, _same_head(subject.heads, span.new)


def _on_base(subject: Subject, span: Span) -> bool:
    return subject.base == span.old.id or subject.base_tree == span.old.tree


def _same_head(heads: tuple[str, ...], new: Commit) -> bool:
    return new.id in heads or (bool(heads) and new.parents[1:] == heads)


def _listed(heads: Sequence[str]) -> str:
    return ", ".join(head[:12] for head in heads)
