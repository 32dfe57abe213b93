"""The decision as a function of facts: total, pure, and never moved towards yes by worse evidence or by less."""

import msgspec
import pytest
from hypothesis import strategies as st

from gitevals.model.contract import Mode
from gitevals.model.decision import decide
from gitevals.model.evaluation import CheckRun, Finding
from gitevals.model.facts import ContractState, Facts
from gitevals.model.reason import RULES, Code, Severity
from gitevals.model.result import Result
from tests.model import an_evaluation, stored
from tests.model.facts import ANY_FACTS, PASS, SPAN, TASK, facts_of, policy_of
from tests.properties import FEW_AND_MANY, holds

WORSE = st.sampled_from([Result.FAILED, Result.INCONCLUSIVE, Result.NOT_RUN])


@FEW_AND_MANY
def test_whatever_the_facts_there_is_one_answer_and_the_table_weighs_its_reasons(examples: int) -> None:
    def law(facts: Facts) -> None:
        before = msgspec.json.encode(facts)
        decision = decide(facts)
        assert decide(facts) == decision
        assert msgspec.json.encode(facts) == before
        strict = facts.policy.mode is Mode.ENFORCE
        for found in decision.reasons:
            rule = RULES[found.code]
            assert found.severity is (rule.enforce if strict else rule.lenient)
        assert decision.allowed is not any(found.severity is Severity.REFUSE for found in decision.reasons)
        exits = {RULES[found.code].exit_code for found in decision.refusals}
        assert decision.exit_code == (min(exits) if exits else 0)
        assert decision.allowed or decision.reasons

    holds(law, ANY_FACTS, examples=examples)


@FEW_AND_MANY
def test_a_run_that_did_not_pass_never_turns_a_refusal_into_a_permission(examples: int) -> None:
    def law(facts: Facts, result: Result, verified: Result, about: tuple[str, str], saw: bool) -> None:
        before = decide(facts)
        seen = tuple(entry.id for entry in facts.evaluations) if saw else ()
        added = an_evaluation(
            result,
            task=about[0],
            contract=about[1],
            verified=verified,
            after=seen,
            tree=facts.span.new.tree,
            heads=(facts.span.new.id,),
        )
        more = msgspec.structs.replace(facts, evaluations=(*facts.evaluations, stored("new", added)))
        assert before.allowed or not decide(more).allowed

    about = st.tuples(st.sampled_from(["42", "43", "44", ""]), st.sampled_from(["c1", "c2"]))
    holds(law, ANY_FACTS, WORSE, WORSE, about, st.booleans(), examples=examples)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("verified", [Result.INCONCLUSIVE, Result.NOT_RUN])
def test_a_run_without_a_result_lifts_no_verification_that_failed(mode: Mode, verified: Result) -> None:
    failed = stored("e1", an_evaluation(verified=Result.FAILED))
    later = stored("e2", an_evaluation(verified=verified, after=("e1",)))
    mended = stored("e3", an_evaluation(after=("e1", "e2")))
    assert Code.VERIFICATION in [found.code for found in decide(facts_of(failed, later, mode=mode)).refusals]
    assert decide(facts_of(failed, later, mended, mode=mode)).allowed


@FEW_AND_MANY
def test_evidence_that_is_taken_away_together_with_all_that_saw_it_never_opens(examples: int) -> None:
    def law(facts: Facts, keep: int) -> None:
        policy = msgspec.structs.replace(facts.policy, mode=Mode.ENFORCE, verification_required=True)
        facts = msgspec.structs.replace(facts, policy=policy)
        none_left = decide(msgspec.structs.replace(facts, evaluations=()))
        if facts.tasks and not facts.exempt:
            assert not none_left.allowed
        if none_left.allowed:
            assert policy.verification_count == 0
        passing = [entry for entry in facts.evaluations if entry.evaluation.weight is not Result.PASSED]
        without_a_pass = decide(msgspec.structs.replace(facts, evaluations=tuple(passing[:keep])))
        if facts.tasks and not facts.exempt:
            assert not without_a_pass.allowed

    holds(law, ANY_FACTS, st.integers(0, 5), examples=examples)


@FEW_AND_MANY
def test_a_pass_under_another_key_counts_for_nothing(examples: int) -> None:
    changes = {
        "ref": "refs/heads/x", "repository": "r2", "tree": "t9", "base": ("b9", "b9-tree"), "contract": "c9",
        "task": "44", "heads": ("h9",),
    }  # fmt: skip

    def law(facts: Facts, name: str) -> None:
        span = msgspec.structs.replace(SPAN, new=msgspec.structs.replace(SPAN.new, parents=("b0", "h1"), id="m1"))
        subject: dict[str, object] = {"base": "b9", "base_tree": "b9-tree"} if name == "base" else {}
        if name in ("ref", "repository", "tree", "heads"):
            subject = {name: changes[name]}
        about = {name: str(changes[name])} if name in ("contract", "task") else {}
        away = stored("away", an_evaluation(**about, **subject))  # type: ignore[arg-type]
        failing = [entry for entry in facts.evaluations if entry.evaluation.weight is not Result.PASSED]
        strict = msgspec.structs.replace(
            facts, span=span, policy=policy_of(), tasks=(TASK,), exempt="", evaluations=(*failing, away)
        )
        assert not decide(strict).allowed
        near = msgspec.structs.replace(strict, evaluations=(PASS,), config_problem="")
        assert decide(near).allowed

    holds(law, ANY_FACTS, st.sampled_from(sorted(changes)), examples=examples)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("state", ContractState)
def test_without_any_reason_a_movement_is_allowed_and_only_then_in_silence(mode: Mode, state: ContractState) -> None:
    task = msgspec.structs.replace(TASK, state=state)
    decision = decide(facts_of(PASS, mode=mode, tasks=(task,)))
    silent = (
        state is ContractState.FROZEN or mode is Mode.OFF or (mode is Mode.OBSERVE and state is ContractState.MISSING)
    )
    assert (decision.reasons == ()) is silent
    assert decision.allowed is (silent or mode is not Mode.ENFORCE)


@FEW_AND_MANY
def test_a_pass_that_its_parts_belie_opens_nothing(examples: int) -> None:
    def law(results: list[Result], verified: list[Result]) -> None:
        findings = tuple(Finding(criterion=f"AC-{n}", result=result) for n, result in enumerate(results))
        runs = tuple(CheckRun(id=f"verify-{n}", result=result) for n, result in enumerate(verified))
        evaluation = msgspec.structs.replace(an_evaluation(findings=findings), verification=runs)
        policy = msgspec.structs.replace(policy_of(), verification_count=len(verified))
        decision = decide(facts_of(stored("e1", evaluation), policy=policy))
        assert decision.allowed is all(result is Result.PASSED for result in (*results, *verified))

    results = st.lists(st.sampled_from(Result), max_size=3)
    holds(law, results, results, examples=examples)
