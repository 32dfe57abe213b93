"""The four results, and how many of them become one."""

import itertools

import pytest

from gitevals.model.contract import Mode
from gitevals.model.result import Result, of_bound, of_evaluation, of_exit, of_verification, worst

PASSED, FAILED, INCONCLUSIVE, NOT_RUN = Result.PASSED, Result.FAILED, Result.INCONCLUSIVE, Result.NOT_RUN


def test_there_are_four_results_and_no_more() -> None:
    assert [str(result) for result in Result] == ["passed", "failed", "inconclusive", "not_run"]


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (0, PASSED),
        (1, FAILED),
        (2, FAILED),
        (124, FAILED),
        (125, INCONCLUSIVE),
        (126, INCONCLUSIVE),
        (127, INCONCLUSIVE),
        (128, FAILED),
        (137, FAILED),
        (255, FAILED),
    ],
)
def test_an_exit_status_becomes_one_result(status: int, result: Result) -> None:
    assert of_exit(status) is result
    assert of_exit(status, refined={}) is result


def test_a_check_may_refine_what_its_statuses_mean_and_no_others() -> None:
    refined = {0: FAILED, 2: INCONCLUSIVE, 77: PASSED, 125: FAILED}
    assert {status: of_exit(status, refined=refined) for status in (0, 1, 2, 77, 125, 126)} == {
        0: FAILED,
        1: FAILED,
        2: INCONCLUSIVE,
        77: PASSED,
        125: FAILED,
        126: INCONCLUSIVE,
    }


@pytest.mark.parametrize(
    ("bound", "result"),
    [
        ((), NOT_RUN),
        ((PASSED,), PASSED),
        ((FAILED,), FAILED),
        ((INCONCLUSIVE,), INCONCLUSIVE),
        ((NOT_RUN,), NOT_RUN),
        ((PASSED, PASSED), PASSED),
        ((PASSED, FAILED), FAILED),
        ((PASSED, INCONCLUSIVE), INCONCLUSIVE),
        ((PASSED, NOT_RUN), INCONCLUSIVE),
        ((FAILED, FAILED), FAILED),
        ((FAILED, INCONCLUSIVE), FAILED),
        ((FAILED, NOT_RUN), FAILED),
        ((INCONCLUSIVE, INCONCLUSIVE), INCONCLUSIVE),
        ((INCONCLUSIVE, NOT_RUN), INCONCLUSIVE),
        ((NOT_RUN, NOT_RUN), NOT_RUN),
    ],
)
def test_the_checks_of_a_criterion_become_its_result_in_any_order(bound: tuple[Result, ...], result: Result) -> None:
    assert {of_bound(order) for order in itertools.permutations(bound)} == {result}


def test_an_empty_verification_is_satisfied_without_a_run() -> None:
    assert of_verification([]) is PASSED


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_verification_is_folded_as_the_checks_of_a_criterion_are(count: int) -> None:
    for results in itertools.product(Result, repeat=count):
        assert of_verification(results) is of_bound(results)


# What verification and a task's one finding say → the evaluation's result where criteria count, and where they do not.
EVALUATIONS = [
    (PASSED, PASSED, PASSED, PASSED),
    (PASSED, FAILED, FAILED, PASSED),
    (PASSED, INCONCLUSIVE, INCONCLUSIVE, PASSED),
    (PASSED, NOT_RUN, INCONCLUSIVE, PASSED),
    (FAILED, PASSED, FAILED, FAILED),
    (FAILED, FAILED, FAILED, FAILED),
    (FAILED, INCONCLUSIVE, FAILED, FAILED),
    (FAILED, NOT_RUN, FAILED, FAILED),
    (INCONCLUSIVE, PASSED, INCONCLUSIVE, INCONCLUSIVE),
    (INCONCLUSIVE, FAILED, FAILED, INCONCLUSIVE),
    (INCONCLUSIVE, INCONCLUSIVE, INCONCLUSIVE, INCONCLUSIVE),
    (INCONCLUSIVE, NOT_RUN, INCONCLUSIVE, INCONCLUSIVE),
    (NOT_RUN, PASSED, INCONCLUSIVE, INCONCLUSIVE),
    (NOT_RUN, FAILED, FAILED, INCONCLUSIVE),
    (NOT_RUN, INCONCLUSIVE, INCONCLUSIVE, INCONCLUSIVE),
    (NOT_RUN, NOT_RUN, INCONCLUSIVE, INCONCLUSIVE),
]


def test_the_table_names_every_pair_of_results_once() -> None:
    assert sorted(row[:2] for row in EVALUATIONS) == sorted(itertools.product(Result, repeat=2))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("verification", "finding", "counted", "off"), EVALUATIONS)
def test_verification_and_findings_become_one_result_by_mode(
    verification: Result, finding: Result, counted: Result, off: Result, mode: Mode
) -> None:
    result = of_evaluation([verification], [finding], criteria_count=mode is not Mode.OFF)
    assert result is (off if mode is Mode.OFF else counted)


@pytest.mark.parametrize(
    ("findings", "result"),
    [
        ((), PASSED),
        ((PASSED,), PASSED),
        ((FAILED,), FAILED),
        ((INCONCLUSIVE,), INCONCLUSIVE),
        ((NOT_RUN,), INCONCLUSIVE),
    ],
)
def test_without_verification_the_findings_decide(findings: tuple[Result, ...], result: Result) -> None:
    assert of_evaluation([], findings, criteria_count=True) is result
    assert of_evaluation([], findings, criteria_count=False) is PASSED


def test_no_number_of_passes_offsets_one_criterion_that_did_not_pass() -> None:
    for result, whole in ((FAILED, FAILED), (INCONCLUSIVE, INCONCLUSIVE), (NOT_RUN, INCONCLUSIVE)):
        assert of_evaluation([PASSED], [*[PASSED] * 199, result], criteria_count=True) is whole


@pytest.mark.parametrize(
    ("results", "result"),
    [
        ((PASSED,), PASSED),
        ((PASSED, NOT_RUN), NOT_RUN),
        ((NOT_RUN, INCONCLUSIVE, PASSED), INCONCLUSIVE),
        ((INCONCLUSIVE, NOT_RUN, FAILED, PASSED), FAILED),
    ],
)
def test_the_worst_of_several_results_stands_for_all(results: tuple[Result, ...], result: Result) -> None:
    assert {worst(order) for order in itertools.permutations(results)} == {result}
