"""The pure decision: every reason it can give, how each weighs by mode, and what it must never allow."""

import msgspec
import pytest
from hypothesis import given, settings

from gitevals.model.contract import Mode
from gitevals.model.decision import Decision, decide
from gitevals.model.evaluation import Evaluation, Finding, Stored
from gitevals.model.facts import ContractState, Facts, TaskFacts
from gitevals.model.movement import Commit, covers, deciding
from gitevals.model.reason import RULES, Code, Severity, reason
from gitevals.model.result import Result
from tests.model import about, an_evaluation, stored
from tests.model.facts import ANY_FACTS, FAIL, OTHER, PASS, SPAN, TASK, facts_of, policy_of

PASSED, FAILED, INCONCLUSIVE, NOT_RUN = Result.PASSED, Result.FAILED, Result.INCONCLUSIVE, Result.NOT_RUN


def _codes(decision: Decision) -> list[str]:
    return [str(found.code) for found in decision.reasons]


def test_a_fresh_pass_is_allowed_without_a_word() -> None:
    decision = decide(facts_of(PASS))
    assert (decision.allowed, decision.reasons, decision.exit_code) == (True, (), 0)
    assert decision.evaluations == ("e1",)
    assert decision.tasks == ("42",)
    assert decision.key is not None
    assert (decision.key.ref, decision.key.base, decision.key.tree) == ("refs/heads/main", "b0", "t1")
    assert decision.key.contracts == ("c1",)


# Each reason that `decide` gives alone: the evaluations, what else is known, and the exit of `verify` in enforce.
REASONS: dict[str, tuple[Code, tuple[Stored, ...], dict[str, object], int]] = {
    "nobody evaluated it": (Code.MISSING, (), {}, 3),
    "another task was evaluated": (Code.MISSING, (stored("e", an_evaluation(task="43")),), {}, 3),
    "another ref was evaluated": (Code.MISSING, (stored("e", an_evaluation(ref="refs/heads/x")),), {}, 3),
    "another repository was evaluated": (Code.MISSING, (stored("e", an_evaluation(repository="r2")),), {}, 3),
    "two that did not see each other differ": (Code.DISPUTED, (PASS, FAIL), {}, 1),
    "the head moved": (Code.STALE_HEAD, (stored("e", an_evaluation(heads=("h0",), tree="t0")),), {}, 3),
    "a merge of another head": (
        Code.STALE_HEAD,
        (PASS,),
        {"span": msgspec.structs.replace(SPAN, new=Commit(id="m1", tree="t1", parents=("b0", "h2")))},
        3,
    ),
    "the base moved": (Code.STALE_BASE, (stored("e", an_evaluation(base="b9", base_tree="b9-tree")),), {}, 3),
    "the tree differs": (Code.STALE_TREE, (stored("e", an_evaluation(tree="t9")),), {}, 3),
    "the merge had conflicts": (Code.STALE_TREE, (stored("e", an_evaluation(INCONCLUSIVE, tree="")),), {}, 3),
    "another contract": (Code.STALE_CONTRACT, (stored("e", an_evaluation(contract="c0")),), {}, 3),
    "out of date": (
        Code.STALE_CONTRACT,
        (PASS,),
        {"tasks": (msgspec.structs.replace(TASK, state=ContractState.OUT_OF_DATE),)},
        3,
    ),
    "unreadable": (
        Code.CONTRACT_MISSING,
        (PASS,),
        {"tasks": (TaskFacts(task="42", state=ContractState.UNREADABLE, problem="unknown task"),)},
        3,
    ),
    "conflict": (
        Code.CONTRACT_CONFLICT,
        (PASS,),
        {"tasks": (msgspec.structs.replace(TASK, state=ContractState.CONFLICT),)},
        1,
    ),
    "spent": (Code.CONTRACT_SPENT, (PASS,), {"tasks": (msgspec.structs.replace(TASK, spent_by="m9"),)}, 1),
    "spent and not evaluated": (Code.CONTRACT_SPENT, (), {"tasks": (msgspec.structs.replace(TASK, spent_by="m9"),)}, 1),
    "failed": (Code.FAILED, (FAIL,), {}, 1),
    "inconclusive": (Code.INCONCLUSIVE, (stored("e", an_evaluation(INCONCLUSIVE)),), {}, 3),
    "not run": (Code.NOT_RUN, (stored("e", an_evaluation(NOT_RUN)),), {}, 3),
    "nothing is bound": (
        Code.NOT_RUN,
        (stored("e", an_evaluation(INCONCLUSIVE, findings=(Finding(criterion="AC-1", result=NOT_RUN),))),),
        {},
        3,
    ),
    "the source was changed": (
        Code.INCONCLUSIVE,
        (stored("e", an_evaluation(INCONCLUSIVE, findings=(Finding(criterion="AC-1", result=PASSED),), reason="x")),),
        {},
        3,
    ),
    "no task": (Code.UNTASKED, (PASS,), {"tasks": ()}, 1),
}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("code", "evaluations", "changes", "exit_code"), REASONS.values(), ids=REASONS)
def test_what_is_said_of_tasks_refuses_in_enforce_is_a_note_in_observe_and_silent_in_off(
    code: Code, evaluations: tuple[Stored, ...], changes: dict[str, object], exit_code: int, mode: Mode
) -> None:
    policy = policy_of(mode, untasked_refuses=True)
    decision = decide(msgspec.structs.replace(facts_of(*evaluations, policy=policy), **changes))
    assert _codes(decision) == ([] if mode is Mode.OFF else [code])
    assert decision.allowed is (mode is not Mode.ENFORCE)
    assert decision.exit_code == (exit_code if mode is Mode.ENFORCE else 0)
    assert all(
        found.severity is (Severity.REFUSE if mode is Mode.ENFORCE else Severity.NOTE) for found in decision.reasons
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_only_enforce_asks_for_a_freeze(mode: Mode) -> None:
    unfrozen = msgspec.structs.replace(facts_of(PASS, policy=policy_of(mode)), tasks=(
        msgspec.structs.replace(TASK, state=ContractState.MISSING),
    ))  # fmt: skip
    assert _codes(decide(unfrozen)) == (["contract_missing"] if mode is Mode.ENFORCE else [])


@pytest.mark.parametrize("belied", [{"findings": (Finding(criterion="AC-1", result=FAILED),)}, {"verified": FAILED}])
def test_a_pass_that_its_own_parts_belie_is_none(belied: dict[str, object]) -> None:
    record = stored("e", an_evaluation(PASSED, **belied))  # type: ignore[arg-type]
    assert not decide(facts_of(record)).allowed


# Verification by what is known of it: what a task's passing evaluation aside, `decide` says in the three modes.
VERIFIED: list[tuple[str, Result | None, bool, str | None]] = [
    ("passed", PASSED, True, None),
    ("passed", PASSED, False, None),
    ("failed", FAILED, True, "project verification failed on this change: verify-1"),
    ("failed", FAILED, False, "project verification failed on this change: verify-1"),
    ("inconclusive", INCONCLUSIVE, True, "project verification came to no result on this change"),
    ("not run", NOT_RUN, True, "project verification came to no result on this change"),
    ("unknown", None, True, "project verification was not run on this change"),
    ("unknown", None, False, None),
]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("result", "required", "said"),
    [r[1:] for r in VERIFIED],
    ids=[f"{r[0]}-{'required' if r[2] else 'when_known'}" for r in VERIFIED],
)
def test_verification_refuses_alike_in_every_mode(
    result: Result | None, required: bool, said: str | None, mode: Mode
) -> None:
    known = [] if result is None else [stored("v", an_evaluation(result, task="", verified=result, findings=()))]
    policy = policy_of(mode, untasked_refuses=False, untasked_verifies=True, verification_required=required)
    decision = decide(facts_of(*known, policy=policy, tasks=()))
    assert [found.message for found in decision.reasons] == ([said] if said else [])
    assert _codes(decision) == (["verification"] if said else [])
    assert decision.allowed is (said is None)
    assert decision.exit_code == (1 if said else 0)
    if said:
        assert decision.reasons[0].hint == "git evals run --verify-only --branch task/42"


@pytest.mark.parametrize("result", [INCONCLUSIVE, NOT_RUN])
@pytest.mark.parametrize("mode", list(Mode))
def test_verification_without_a_result_is_said_where_a_run_is_not_required(result: Result, mode: Mode) -> None:
    known = stored("v", an_evaluation(result, task="", verified=result, findings=()))
    policy = policy_of(mode, untasked_refuses=False, untasked_verifies=True, verification_required=False)
    decision = decide(facts_of(known, policy=policy, tasks=()))
    assert _codes(decision) == ["inconclusive"]
    assert (decision.allowed, decision.exit_code) == ((False, 3) if mode is Mode.ENFORCE else (True, 0))


@pytest.mark.parametrize("mode", list(Mode))
def test_an_empty_verification_is_satisfied_without_a_run(mode: Mode) -> None:
    policy = policy_of(mode, untasked_refuses=False, untasked_verifies=False, verification_required=True)
    policy = msgspec.structs.replace(policy, verification_count=0)
    assert decide(facts_of(policy=policy, tasks=())).reasons == ()
    broken = stored("v", an_evaluation(FAILED, task="", verified=FAILED, findings=()))
    assert decide(facts_of(broken, policy=policy, tasks=())).allowed


@pytest.mark.parametrize("mode", list(Mode))
def test_verification_that_failed_refuses_beside_a_task_that_passed(mode: Mode) -> None:
    broken = stored("v", an_evaluation(FAILED, task="43", contract="c2", verified=FAILED, findings=()))
    decision = decide(facts_of(PASS, broken, mode=mode))
    assert _codes(decision) == ["verification"]
    assert not decision.allowed


@pytest.mark.parametrize(
    "subject",
    [{"tree": "t9"}, {"base": "b9", "base_tree": "b9-tree"}, {"ref": "refs/heads/x"}, {"repository": "r2"}],
)
def test_verification_of_another_key_neither_helps_nor_hurts(subject: dict[str, object]) -> None:
    policy = policy_of(untasked_refuses=False)
    for result in (PASSED, FAILED):
        evaluation = about(an_evaluation(result, task="", verified=result, findings=()), **subject)
        decision = decide(facts_of(stored("v", evaluation), policy=policy, tasks=()))
        assert [found.message for found in decision.reasons] == ["project verification was not run on this change"]


def test_verification_by_other_commands_neither_helps_nor_hurts() -> None:
    for result in (PASSED, FAILED):
        other = stored("v", an_evaluation(result, task="", verified=result, findings=(), verification_digest="v0"))
        decision = decide(facts_of(other, policy=policy_of(untasked_refuses=False), tasks=()))
        assert decision.reasons[0].message == "project verification was not run on this change"


def test_a_later_run_of_another_task_mends_verification_that_failed() -> None:
    broken = stored("e1", an_evaluation(FAILED, task="43", contract="c2", verified=FAILED))
    mended = stored("e2", an_evaluation(after=("e1",)))
    assert decide(facts_of(broken, mended)).allowed
    assert _codes(decide(facts_of(broken, stored("e2", an_evaluation())))) == ["verification"]


def test_verification_is_followed_through_what_another_repository_recorded() -> None:
    broken = stored("e1", an_evaluation(FAILED, verified=FAILED))
    between = stored("e2", an_evaluation(after=("e1",), repository="r2"))
    mended = stored("e3", an_evaluation(after=("e2",)))
    assert decide(facts_of(broken, between, mended)).allowed


# `untasked:`, how many commands verify, whether it is known to have passed → what is said in enforce.
UNTASKED: list[tuple[str, int, bool, list[str]]] = [
    ("verify", 1, True, []),
    ("verify", 1, False, ["verification"]),
    ("verify", 0, False, ["untasked"]),
    ("refuse", 1, True, ["untasked"]),
    ("refuse", 1, False, ["untasked"]),
    ("refuse", 0, False, ["untasked"]),
    ("allow", 1, True, []),
    ("allow", 1, False, ["verification"]),
    ("allow", 0, False, []),
]


@pytest.mark.parametrize(("untasked", "count", "verified", "codes"), UNTASKED)
def test_a_change_without_a_task_is_judged_by_what_untasked_says(
    untasked: str, count: int, verified: bool, codes: list[str]
) -> None:
    policy = policy_of(
        untasked_refuses=untasked == "refuse", untasked_verifies=untasked == "verify", verification_count=count
    )
    known = [stored("v", an_evaluation(task="", findings=()))] if verified else []
    decision = decide(facts_of(*known, policy=policy, tasks=()))
    assert _codes(decision) == codes
    assert decision.allowed is (not codes)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("allowed", [True, False])
def test_an_exempt_change_needs_verification_alone_and_the_refusal_says_so(mode: Mode, allowed: bool) -> None:
    known = [stored("v", an_evaluation(task="", findings=()))] if allowed else []
    policy = policy_of(mode, untasked_refuses=True, verification_required=True)
    decision = decide(facts_of(*known, policy=policy, exempt="the tree is unchanged"))
    assert decision.allowed is allowed
    assert decision.tasks == ()
    if not allowed:
        assert [found.message for found in decision.reasons] == [
            "project verification was not run on this change (the tree is unchanged: verification alone is needed)"
        ]


def test_an_exempt_change_is_refused_by_verification_that_failed() -> None:
    broken = stored("v", an_evaluation(FAILED, task="", verified=FAILED, findings=()))
    decision = decide(facts_of(broken, exempt="the tree is unchanged"))
    assert [found.message for found in decision.reasons] == ["project verification failed on this change: verify-1"]
    assert decision.evaluations == ("v",)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_configuration_that_does_not_parse_refuses_in_every_mode(mode: Mode) -> None:
    for exempt in ("", "only configuration and task files change"):
        decision = decide(facts_of(PASS, mode=mode, config_problem="line 1: nonsense", exempt=exempt))
        assert (_codes(decision), decision.allowed, decision.exit_code) == (["config_invalid"], False, 1)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_change_of_what_the_gate_reads_is_said_and_allowed(mode: Mode) -> None:
    decision = decide(facts_of(PASS, mode=mode, privileged=("one is changed", "two is changed")))
    assert [(found.code, found.severity, found.message) for found in decision.reasons] == [
        (Code.CONFIG_CHANGE, Severity.NOTE, "one is changed"),
        (Code.CONFIG_CHANGE, Severity.NOTE, "two is changed"),
    ]
    assert (decision.allowed, decision.exit_code) == (True, 0)


def test_that_nobody_verified_is_not_said_where_something_else_refuses_already() -> None:
    assert _codes(decide(facts_of())) == ["missing"]
    assert _codes(decide(facts_of(config_problem="x", exempt="y"))) == ["config_invalid"]


# How the nearest evaluation differs → what is stale. A base is the same if its tree is.
STALE: dict[str, tuple[list[Evaluation], list[str]]] = {
    "head": ([an_evaluation(head="h0", heads=("h0",), tree="t0")], ["stale_head"]),
    "base": ([an_evaluation(base="b9", base_tree="b9-tree", tree="t0")], ["stale_base"]),
    "head and base": (
        [an_evaluation(base="b9", base_tree="b9-tree", heads=("h0",), tree="t0")],
        ["stale_base", "stale_head"],
    ),
    "tree": ([an_evaluation(tree="t9")], ["stale_tree"]),
    "tree on a base of the same tree": ([an_evaluation(base="b9", tree="t9")], ["stale_tree"]),
    "contract": ([an_evaluation(contract="c0")], ["stale_contract"]),
    "contract of a squash": ([an_evaluation(contract="c0", heads=("h0",))], ["stale_contract"]),
    "contract and head": ([an_evaluation(contract="c0", heads=("h0",), tree="t0")], ["stale_head"]),
    "one on this base is nearer than a later one on another": (
        [
            an_evaluation(heads=("h0",), tree="t0", finished="1"),
            an_evaluation(base="b9", base_tree="b9-tree", finished="2"),
        ],
        ["stale_head"],
    ),
    "one on a base of this tree is nearer than a later one on another": (
        [
            an_evaluation(base="b8", heads=("h0",), tree="t0", finished="1"),
            an_evaluation(base="b9", base_tree="b9-tree", finished="2"),
        ],
        ["stale_head"],
    ),
    "one of this head is nearer than a later one of another": (
        [
            an_evaluation(base="b9", base_tree="b9-tree", tree="t8", finished="1"),
            an_evaluation(base="b9", base_tree="b9-tree", heads=("h0",), tree="t0", finished="2"),
        ],
        ["stale_base"],
    ),
    "two that are equally near": (
        [
            an_evaluation(base="b8", base_tree="b8-tree", heads=("h0",), tree="t0", finished="1"),
            an_evaluation(base="b9", base_tree="b9-tree", heads=("h0",), tree="t0", finished="2"),
        ],
        ["stale_base", "stale_head"],
    ),
}


@pytest.mark.parametrize(("evaluations", "codes"), STALE.values(), ids=STALE)
def test_what_is_stale_is_told_from_the_nearest_evaluation(evaluations: list[Evaluation], codes: list[str]) -> None:
    known = [stored(f"e{n}", evaluation) for n, evaluation in enumerate(evaluations)]
    for order in (known, known[::-1]):
        decision = decide(facts_of(*order))
        assert _codes(decision) == codes
        assert decision.exit_code == 3


def test_of_two_evaluations_equally_near_the_later_one_is_named() -> None:
    far = about(an_evaluation(finished="2"), base="b9", base_tree="b9-tree")
    known = [stored("a", far), stored("b", about(msgspec.structs.replace(far, finished="1"), base="b8"))]
    for order in (known, known[::-1]):
        assert decide(facts_of(*order)).reasons[0].message.startswith("task 42: evaluated on b9, but")


def test_stale_reasons_name_both_sides() -> None:
    known = stored("e", an_evaluation(base="b9", base_tree="b9-tree", head="h8", heads=("h8", "h9"), tree="t0"))
    octopus = msgspec.structs.replace(SPAN, new=Commit(id="m1", tree="t1", parents=("b0", "h8", "h7")))
    assert [found.message for found in decide(facts_of(known, span=octopus)).reasons] == [
        "task 42: evaluated on b9, but refs/heads/main has moved to b0",
        "task 42: evaluated at h8, h9, but the change is now h8, h7",
    ]


# Runs of one contract on one key, as (name, result, came after) → what is said, and on what the decision rests.
TRIES: dict[str, tuple[list[tuple[str, Result, str]], list[str], str]] = {
    "a pass that saw the failure": ([("a", FAILED, ""), ("b", PASSED, "a")], [], "b"),
    "a failure that saw the pass": ([("a", PASSED, ""), ("b", FAILED, "a")], ["failed"], "b"),
    "a pass after three failures": (
        [("a", FAILED, ""), ("b", INCONCLUSIVE, "a"), ("c", FAILED, "b"), ("d", PASSED, "c")],
        [],
        "d",
    ),
    "two passes apart": ([("a", PASSED, ""), ("b", PASSED, "")], [], "a b"),
    "two failures apart": ([("a", FAILED, ""), ("b", FAILED, "")], ["failed"], "a b"),
    "a pass and a failure apart": ([("a", PASSED, ""), ("b", FAILED, "")], ["disputed"], "a b"),
    "a pass and an inconclusive one apart": ([("a", PASSED, ""), ("b", INCONCLUSIVE, "")], ["disputed"], "a b"),
    "a dispute that was settled": ([("a", PASSED, ""), ("b", FAILED, ""), ("c", PASSED, "a b")], [], "c"),
    "a dispute of which one side was seen": (
        [("a", PASSED, ""), ("b", FAILED, ""), ("c", PASSED, "a")],
        ["disputed"],
        "b c",
    ),
}


@pytest.mark.parametrize(("runs", "codes", "rests_on"), TRIES.values(), ids=TRIES)
def test_the_runs_that_no_other_saw_decide(
    runs: list[tuple[str, Result, str]], codes: list[str], rests_on: str
) -> None:
    known = [stored(name, an_evaluation(result, after=tuple(seen.split()))) for name, result, seen in runs]
    for order in (known, known[::-1]):
        decision = decide(facts_of(*order))
        assert _codes(decision) == codes
        assert decision.allowed is (not codes)
        assert sorted(decision.evaluations) == rests_on.split()


def test_a_run_of_another_task_or_contract_hides_no_failure() -> None:
    for other in (an_evaluation(task="43", after=("e2",)), an_evaluation(contract="c0", after=("e2",))):
        assert _codes(decide(facts_of(FAIL, stored("x", other)))) == ["failed"]


def test_a_pass_that_saw_the_failure_through_another_contracts_run_decides() -> None:
    between = stored("x", an_evaluation(task="43", contract="c2", after=("e2",)))
    assert decide(facts_of(FAIL, between, stored("e3", an_evaluation(after=("x",))))).allowed


def test_each_task_needs_its_own_pass() -> None:
    both = (TASK, OTHER)
    other = stored("o", an_evaluation(task="43", contract="c2"))
    assert decide(facts_of(PASS, other, tasks=both)).allowed
    missing = decide(facts_of(PASS, tasks=both))
    assert [(found.code, found.task) for found in missing.reasons] == [(Code.MISSING, "43")]
    failed = decide(
        facts_of(
            stored("x", an_evaluation(INCONCLUSIVE)),
            stored("o", an_evaluation(FAILED, task="43", contract="c2")),
            tasks=both,
        )
    )
    assert [(found.code, found.task) for found in failed.reasons] == [(Code.INCONCLUSIVE, "42"), (Code.FAILED, "43")]
    assert failed.exit_code == 1
    swapped = decide(facts_of(PASS, stored("o", an_evaluation(task="43", contract="c1")), tasks=both))
    assert [(found.code, found.task) for found in swapped.reasons] == [(Code.STALE_CONTRACT, "43")]


def test_of_a_failed_evaluation_the_criteria_that_failed_are_named_and_no_others() -> None:
    findings = tuple(
        Finding(criterion=f"AC-{n}", result=result, reason=reason)
        for n, (result, reason) in enumerate(
            [(PASSED, ""), (FAILED, "good: exit 1"), (INCONCLUSIVE, "slow: timed out"), (NOT_RUN, ""), (FAILED, "")], 1
        )
    )
    decision = decide(facts_of(stored("e", an_evaluation(FAILED, findings=findings))))
    assert [(found.code, found.criterion, found.message, found.hint) for found in decision.reasons] == [
        (Code.FAILED, "AC-2", "task 42: AC-2 failed on h1 (good: exit 1)", "git evals report 42 --feedback"),
        (Code.FAILED, "AC-5", "task 42: AC-5 failed on h1", "git evals report 42 --feedback"),
    ]


def test_why_nothing_was_run_is_said_before_what_was_not_run() -> None:
    findings = (Finding(criterion="AC-1", result=NOT_RUN, reason="not run because of what came before"),)
    evaluation = an_evaluation(
        INCONCLUSIVE, findings=findings, verified=NOT_RUN, reason="setup-1 did not succeed: exit 1"
    )
    assert [(found.code, found.message) for found in decide(facts_of(stored("e", evaluation))).reasons] == [
        (Code.INCONCLUSIVE, "task 42: inconclusive on h1: setup-1 did not succeed: exit 1"),
        (Code.NOT_RUN, "task 42: AC-1 not run on h1 (not run because of what came before)"),
    ]


def test_an_evaluation_that_failed_by_verification_is_a_plain_no_though_verification_passed_since() -> None:
    findings = (Finding(criterion="AC-1", result=NOT_RUN),)
    broken = stored("a", an_evaluation(FAILED, findings=findings, verified=FAILED, reason="verify-1 failed: exit 1"))
    mended = stored("b", an_evaluation(task="", contract="c9", findings=(), after=("a",)))
    decision = decide(facts_of(broken, mended))
    assert _codes(decision) == ["failed", "not_run"]
    assert decision.exit_code == 1


def test_of_a_contract_that_was_never_frozen_the_results_are_said_too() -> None:
    tasks = (msgspec.structs.replace(TASK, state=ContractState.MISSING),)
    assert _codes(decide(facts_of(FAIL, tasks=tasks))) == ["contract_missing", "failed"]
    assert _codes(decide(facts_of(tasks=tasks))) == ["contract_missing"]


@pytest.mark.parametrize("state", [ContractState.CONFLICT, ContractState.OUT_OF_DATE, ContractState.UNREADABLE])
def test_under_a_contract_that_may_not_be_used_no_results_are_said(state: ContractState) -> None:
    decision = decide(facts_of(FAIL, tasks=(msgspec.structs.replace(TASK, state=state),)))
    assert [found.code in (Code.FAILED, Code.MISSING) for found in decision.reasons] == [False]


def test_a_hint_names_the_task_the_change_and_the_target_without_spare_blanks() -> None:
    facts = facts_of(where=" --branch task/42 --into release", into=" --into release")
    assert decide(facts).reasons[0].hint == "git evals run 42 --branch task/42 --into release"
    out_of_date = msgspec.structs.replace(
        facts, tasks=(msgspec.structs.replace(TASK, state=ContractState.OUT_OF_DATE),), where=""
    )
    assert decide(out_of_date).reasons[0].hint == "git evals freeze 42 --into release && git evals run 42"


def test_the_table_has_one_rule_for_each_reason() -> None:
    assert set(RULES) == set(Code)
    assert {code for code, rule in RULES.items() if rule.exit_code == 1} == {
        Code.FAILED, Code.VERIFICATION, Code.UNTASKED, Code.DELETED, Code.REWRITTEN, Code.CONTRACT_SPENT,
        Code.CONTRACT_CONFLICT, Code.CONFIG_CHANGE, Code.CONFIG_INVALID, Code.DISPUTED, Code.EXPIRED,
    }  # fmt: skip
    assert {rule.exit_code for rule in RULES.values()} == {1, 3}
    assert [code for code, rule in RULES.items() if rule.enforce is Severity.NOTE] == [Code.CONFIG_CHANGE]
    assert {code for code, rule in RULES.items() if rule.lenient is Severity.REFUSE} == {
        Code.VERIFICATION, Code.CONFIG_INVALID,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ((), 0),
        ((Code.MISSING,), 3),
        ((Code.FAILED,), 1),
        ((Code.MISSING, Code.STALE_BASE), 3),
        ((Code.MISSING, Code.FAILED, Code.INCONCLUSIVE), 1),
        ((Code.DISPUTED, Code.UNVERIFIABLE), 1),
    ],
)
def test_any_plain_no_makes_the_exit_1_and_notes_count_for_nothing(codes: tuple[Code, ...], exit_code: int) -> None:
    refusals = tuple(reason(code, Mode.ENFORCE, "x") for code in codes)
    notes = (reason(Code.FAILED, Mode.OBSERVE, "x"), reason(Code.CONFIG_CHANGE, Mode.ENFORCE, "x"))
    decision = Decision(allowed=not codes, ref="r", old="o", new="n", reasons=(*notes, *refusals))
    assert decision.refusals == refusals
    assert decision.exit_code == exit_code


def _proven(facts: Facts, task: TaskFacts) -> bool:
    """Whether ``task`` has passing evaluations of exactly this span, and no other one that they did not see."""
    repository = facts.policy.repository
    group = [
        entry
        for entry in facts.evaluations
        if (entry.evaluation.task, entry.evaluation.contract) == (task.task, task.digest)
        and covers(entry.evaluation, facts.span, repository)
    ]
    final = deciding(list(facts.evaluations), group)
    return bool(final) and all(entry.evaluation.result is PASSED for entry in final)


@settings(max_examples=100, deadline=None, database=None)
@given(ANY_FACTS)
def test_whatever_the_facts_nothing_enters_an_enforced_branch_unproven(facts: Facts) -> None:
    decision = decide(facts)
    assert decision.allowed is (not decision.refusals)
    assert (decision.exit_code == 0) is decision.allowed
    known = {entry.id for entry in facts.evaluations}
    assert set(decision.evaluations) <= known
    assert all(found.message for found in decision.reasons)
    assert not (decision.allowed and facts.config_problem)
    if facts.policy.mode is Mode.ENFORCE and decision.allowed and not facts.exempt:
        assert facts.tasks or not facts.policy.untasked_refuses
        for task in facts.tasks:
            assert task.state is ContractState.FROZEN
            assert not task.spent_by
            assert _proven(facts, task)


@settings(max_examples=100, deadline=None, database=None)
@given(ANY_FACTS)
def test_whatever_the_facts_the_order_of_the_evidence_changes_no_verdict(facts: Facts) -> None:
    turned = decide(msgspec.structs.replace(facts, evaluations=facts.evaluations[::-1]))
    decision = decide(facts)
    assert turned.allowed is decision.allowed
    assert set(turned.evaluations) == set(decision.evaluations)


@settings(max_examples=100, deadline=None, database=None)
@given(ANY_FACTS)
def test_whatever_the_facts_a_lenient_mode_refuses_for_verification_and_configuration_alone(facts: Facts) -> None:
    policy = msgspec.structs.replace(facts.policy, mode=Mode.OBSERVE)
    decision = decide(msgspec.structs.replace(facts, policy=policy))
    assert {found.code for found in decision.refusals} <= {Code.VERIFICATION, Code.CONFIG_INVALID}


EARLIER = stored("e0", an_evaluation(FAILED, finished="2030-01-02T03:04:05.000Z"))
UNSURE = stored("e0", an_evaluation(INCONCLUSIVE))
UNVERIFIED = stored("e0", an_evaluation(FAILED, verified=FAILED))
LATER_PASS = stored("e1", an_evaluation(after=("e0",)))
SECOND_FAILURE = stored("e0b", an_evaluation(FAILED, after=("e0",)))
THIRD = stored("e1", an_evaluation(after=("e0b",)))
FINISHED_SECONDS = 1893553446  # when PASS finished
HOUR = 3600

# Limits on a pass: what is configured, the evaluations, what else is known, and the reasons in `enforce`.
LIMITS: dict[str, tuple[dict[str, object], tuple[Stored, ...], dict[str, object], list[str]]] = {
    "a failure before it is forgiven by default": ({}, (EARLIER, LATER_PASS), {}, []),
    "flaky: refuse": ({"flaky_refuses": True}, (EARLIER, LATER_PASS), {}, ["failed"]),
    "flaky: refuse, and nothing failed": ({"flaky_refuses": True}, (PASS,), {}, []),
    "flaky: refuse, and something was inconclusive": ({"flaky_refuses": True}, (UNSURE, LATER_PASS), {}, []),
    "flaky: refuse, and another tree failed": (
        {"flaky_refuses": True}, (stored("e0", about(EARLIER.evaluation, tree="t9")), LATER_PASS), {}, []),
    "flaky: refuse, and another base failed": (
        {"flaky_refuses": True},
        (stored("e0", about(EARLIER.evaluation, base="b9", base_tree="b9-tree")), LATER_PASS), {}, []),
    "flaky: refuse, and it failed under another contract": (
        {"flaky_refuses": True}, (stored("e0", an_evaluation(FAILED, contract="c0")), LATER_PASS), {}, []),
    "flaky: refuse, and another task failed": (
        {"flaky_refuses": True}, (stored("e0", an_evaluation(FAILED, task="43")), LATER_PASS), {}, []),
    "flaky: refuse, and another commit of the same tree failed": (
        {"flaky_refuses": True},
        (stored("e0", about(EARLIER.evaluation, head="h0", heads=("h0",))), LATER_PASS),
        {"span": msgspec.structs.replace(SPAN, new=Commit(id="m1", tree="t1", parents=("b0", "h1")))}, ["failed"]),
    "flaky: refuse, and verification failed before": (
        {"flaky_refuses": True}, (UNVERIFIED, LATER_PASS), {}, ["failed"]),
    "flaky: refuse, and verification of no task failed before": (
        {"flaky_refuses": True, "untasked_refuses": False, "untasked_verifies": True},
        (stored("e0", an_evaluation(FAILED, task="", verified=FAILED)),
         stored("e1", an_evaluation(task="", after=("e0",)))),
        {"tasks": ()}, ["failed"]),
    "max_tries 2 after one failure": ({"max_tries": 2}, (EARLIER, LATER_PASS), {}, []),
    "max_tries 1 after one failure": ({"max_tries": 1}, (EARLIER, LATER_PASS), {}, ["failed"]),
    "max_tries 2 after two failures": ({"max_tries": 2}, (EARLIER, SECOND_FAILURE, THIRD), {}, ["failed"]),
    "max_tries 3 after two failures": ({"max_tries": 3}, (EARLIER, SECOND_FAILURE, THIRD), {}, []),
    "max_tries 1 after an inconclusive run": ({"max_tries": 1}, (UNSURE, LATER_PASS), {}, []),
    "max_tries and a last failure": ({"max_tries": 1}, (FAIL,), {}, ["failed"]),
    "as old as it may be": ({"max_age_seconds": HOUR}, (PASS,), {"now_seconds": FINISHED_SECONDS + HOUR}, []),
    "a second too old": ({"max_age_seconds": HOUR}, (PASS,), {"now_seconds": FINISHED_SECONDS + HOUR + 1}, ["expired"]),
    "an old failure is a failure": (
        {"max_age_seconds": HOUR}, (FAIL,), {"now_seconds": FINISHED_SECONDS + 9 * HOUR}, ["failed"]),
    "an age that nobody asks for": ({"max_age_seconds": HOUR}, (PASS,), {"now_seconds": 0}, []),
    "no limit of age": ({}, (PASS,), {"now_seconds": FINISHED_SECONDS + 10**9}, []),
    "a clock that is an hour ahead": ({"max_age_seconds": HOUR}, (PASS,), {"now_seconds": FINISHED_SECONDS - HOUR}, []),
    "a clock that is two days ahead": (
        {"max_age_seconds": HOUR}, (PASS,), {"now_seconds": FINISHED_SECONDS - 48 * HOUR}, ["expired"]),
    "a time that is none": (
        {"max_age_seconds": HOUR}, (stored("e1", an_evaluation(finished="soon")),), {"now_seconds": FINISHED_SECONDS},
        ["expired"]),
    "one of two that decide is fresh": (
        {"max_age_seconds": HOUR}, (PASS, stored("e3", an_evaluation(finished="2030-01-02T09:04:06.000Z"))),
        {"now_seconds": FINISHED_SECONDS + 6 * HOUR}, []),
    "verification alone that is too old": (
        {"max_age_seconds": HOUR, "untasked_refuses": False, "verification_required": True}, (PASS,),
        {"tasks": (), "now_seconds": FINISHED_SECONDS + 2 * HOUR}, ["expired"]),
    "verification that nobody requires and is too old": (
        {"max_age_seconds": HOUR, "untasked_refuses": False, "verification_required": False}, (PASS,),
        {"tasks": (), "now_seconds": FINISHED_SECONDS + 2 * HOUR}, []),
}  # fmt: skip


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.OBSERVE])
@pytest.mark.parametrize(("limits", "evaluations", "changes", "codes"), LIMITS.values(), ids=LIMITS)
def test_a_pass_counts_only_within_the_configured_limits(
    limits: dict[str, object],
    evaluations: tuple[Stored, ...],
    changes: dict[str, object],
    codes: list[str],
    mode: Mode,
) -> None:
    decision = decide(msgspec.structs.replace(facts_of(*evaluations, policy=policy_of(mode, **limits)), **changes))
    assert _codes(decision) == codes
    assert decision.allowed is (mode is Mode.OBSERVE or not codes)
    assert decision.exit_code == (1 if codes and mode is Mode.ENFORCE else 0)
    assert all(found.hint for found in decision.reasons)


def test_a_refused_pass_says_which_limit_it_is() -> None:
    def said(evaluations: tuple[Stored, ...], **limits: object) -> str:
        policy = policy_of(Mode.ENFORCE, **limits)
        (found,) = decide(facts_of(*evaluations, policy=policy, now_seconds=FINISHED_SECONDS * 2)).reasons
        return found.message

    assert "`flaky: refuse`" in said((EARLIER, LATER_PASS), flaky_refuses=True)
    assert "`max_tries: 2`" in said((EARLIER, SECOND_FAILURE, THIRD), max_tries=2)
    assert "(2030-01-02T03:04:06.000Z) is older than `max_age`" in said((PASS,), max_age_seconds=1)
