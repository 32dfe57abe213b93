"""The records of the evidence family: evaluations, freezes and reopen events."""

from gitevals.model.record import SCHEMA, Record
from gitevals.model.result import Result, of_verification

DESCRIPTION_LIMIT_BYTES = 2 * 1024
EXCERPT_LIMIT_BYTES = 4 * 1024


class Subject(Record, frozen=True, kw_only=True):
    """What was evaluated: the target's full ``ref``, its tip ``base``, the ``heads`` and the resulting ``tree``."""

    ref: str
    source: str | None
    repository: str
    base: str
    base_tree: str
    head: str
    heads: tuple[str, ...]
    tree: str


class Stream(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One output stream: ``bytes`` written in all, ``sha256`` and git ``blob`` of what was kept, an ``excerpt``.

    ``redacted`` counts the secrets that were taken out of it.
    """

    sha256: str
    bytes: int
    truncated: bool = False
    redacted: int = 0
    blob: str = ""
    excerpt: str = ""


class BaseRun(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a check said of the base, where it was asked to."""

    result: Result
    exit_code: int | None = None
    reason: str = ""


class CheckRun(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One execution of a check; ``exit_code`` is None where the command did not end by itself."""

    id: str
    result: Result
    reason: str = ""
    exit_code: int | None = None
    duration_ms: int = 0
    at_base: BaseRun | None = None
    stdout: Stream | None = None
    stderr: Stream | None = None


class Finding(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was found for one criterion; ``checks`` names what it rests on."""

    criterion: str
    result: Result
    description: str = ""
    checks: tuple[str, ...] = ()
    reason: str = ""


class Environment(Record, frozen=True, kw_only=True):
    """Where the checks ran."""

    git: str
    os: str
    arch: str
    tools: dict[str, str] = {}


class Merge(Record, frozen=True, kw_only=True):
    """How the evaluated tree came about: ``strategy`` is ``none`` (base is an ancestor), ``ort`` or ``given``."""

    strategy: str
    git: str


class Correlation(Record, frozen=True, kw_only=True):
    """An orchestrator's own labels, opaque to git-evals."""

    run: str = ""
    task: str = ""
    attempt: str = ""
    stage: str = ""


class Evaluation(Record, frozen=True, kw_only=True):
    """The findings of one run of a contract on one subject; ``after`` names the evaluations its writer had seen.

    ``notes`` hold what a reader should know and no result says: files that steer test runners, graders put in place.
    """

    schema: int = SCHEMA
    kind: str = "evaluation"
    task: str
    contract: str
    subject: Subject
    result: Result
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    checks: tuple[CheckRun, ...] = ()
    verification: tuple[CheckRun, ...] = ()
    verification_digest: str
    setup: tuple[CheckRun, ...] = ()
    evaluator: str
    writer: str
    started: str
    finished: str
    environment: Environment
    isolation: str = "none"
    notes: tuple[str, ...] = ()
    merge: Merge
    after: tuple[str, ...] = ()
    nonce: str
    correlation: Correlation = Correlation()

    @property
    def weight(self) -> Result:
        """The result as a reader counts it: a pass that its own findings or verification belie is inconclusive."""
        parts = [self.verification_result, *(finding.result for finding in self.findings)]
        belied = self.result is Result.PASSED and any(part is not Result.PASSED for part in parts)
        return Result.INCONCLUSIVE if belied else self.result

    @property
    def verification_result(self) -> Result:
        """What this run says of the project's verification alone."""
        return of_verification([run.result for run in self.verification])


class Freeze(Record, frozen=True, kw_only=True):
    """That somebody froze a contract: content ``digest``, ``base`` commit it was read from, freezes it replaces."""

    schema: int = SCHEMA
    kind: str = "freeze"
    task: str
    digest: str
    repository: str
    base: str
    supersedes: tuple[str, ...] = ()
    reason: str = ""
    actor: str = ""
    writer: str
    tool: str
    created: str
    nonce: str


class Reopen(Record, frozen=True, kw_only=True):
    """An operator's word that a delivered task may be delivered again; ``deliveries`` are the commits it lifts."""

    schema: int = SCHEMA
    kind: str = "reopen"
    task: str
    repository: str
    deliveries: tuple[str, ...]
    reason: str
    actor: str = ""
    writer: str
    created: str
    nonce: str


class Stored(Record, frozen=True, kw_only=True):
    """An evaluation that was read: its line's ``id``, the record, and the ledger ref that holds it."""

    id: str
    evaluation: Evaluation
    ledger: str
