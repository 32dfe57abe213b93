"""The rows that every report of an evaluation ends in: criteria by result, project verification, features."""

from collections import Counter

import msgspec

from gitevals.evaluate.assemble import weighed
from gitevals.model.contract import Contract
from gitevals.model.evaluation import Evaluation
from gitevals.model.result import Result, of_bound

MEANING = {
    Result.PASSED: "all checks bound to it passed, and the project's verification did",
    Result.FAILED: "a check showed that it does not hold",
    Result.INCONCLUSIVE: "what was found is incomplete, or a check could not be relied on",
    Result.NOT_RUN: "no check is bound to it, evaluation is off, or something before it failed",
}
LIMIT = 40  # rows of a kind that are shown before passed ones are only counted


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that checks say they cover: what they found, and which they are."""

    name: str
    result: Result
    checks: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """``tally`` counts criteria by result, every result once; ``verification`` is None where none is configured."""

    tally: dict[str, int]
    verification: Result | None
    features: tuple[Feature, ...] = ()


def summary(found: Evaluation, contract: Contract | None) -> Summary:
    """The rows of one evaluation; features are known where its contract is here."""
    counted = Counter(finding.result for finding in found.findings)
    return Summary(
        tally={result.value: counted[result] for result in Result},
        verification=found.verification_result if found.verification else None,
        features=_features(found, contract),
    )


def _features(found: Evaluation, contract: Contract | None) -> tuple[Feature, ...]:
    """A feature whose checks did not run is ``not_run``: that it is named proves nothing."""
    covering: dict[str, list[str]] = {}
    for name, command in (contract.checks if contract else {}).items():
        for feature in command.covers:
            covering.setdefault(feature, []).append(name)
    results = {run.id: weighed(run, contract.checks.get(run.id)).result for run in found.checks} if contract else {}
    return tuple(
        Feature(
            name=feature, result=of_bound([results.get(name, Result.NOT_RUN) for name in names]), checks=tuple(names)
        )
        for feature, names in sorted(covering.items())
    )
