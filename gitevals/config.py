"""``.gitevals.yaml`` as typed values; `gitevals.configfile` reads them."""

from enum import StrEnum

import msgspec

from gitevals.model import contract
from gitevals.model.contract import Cached, Command, Mode

PATH = ".gitevals.yaml"
LIMIT_BYTES = 64 * 1024
VERSION = 1
NO_REPOSITORY = "none"
TASK_FIELD = "{task}"

KEYS = ("version", "repository", "mode", "protect", "branches", "tasks", "headings", "setup", "verify", "checks",
        "bindings", "bindings_path", "outputs", "cache", "untasked", "verification", "flaky", "max_age",
        "max_tries")  # fmt: skip
# Keys that mean nothing yet: the one value that is accepted, as JSON; empty where none is.
LATER_KEYS = {"approvals": "0", "home": '"user"', "judge": '{"enabled":false}', "trust": ""}


class Untasked(StrEnum):
    """What the gate does with a movement that names no task."""

    VERIFY = "verify"
    REFUSE = "refuse"
    ALLOW = "allow"


class Verification(StrEnum):
    """Whether a hook refuses a movement whose project verification nobody ran."""

    REQUIRED = "required"
    WHEN_KNOWN = "when_known"


class Flaky(StrEnum):
    """What the gate does with a pass that followed a failure on the same subject."""

    ALLOW = "allow"
    REFUSE = "refuse"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A whole configuration with its defaults filled in; it survives msgspec's JSON.

    ``protect`` holds branch names, each exact or with one trailing ``/*``; ``bindings`` maps a task or ``*`` to a
    criterion or ``*`` to check ids; ``unknown`` names the top-level keys to warn about. A task's text stands at
    ``task_path`` or is what ``task_command`` prints. ``max_tries`` and ``max_age_seconds`` are 0 for no limit.
    """

    version: int
    repository: str
    mode: Mode
    untasked: Untasked
    verification: Verification
    protect: tuple[str, ...] = ()
    branches: str | None = None
    task_path: str | None = None
    task_command: tuple[str, ...] = ()
    bindings_path: str | None = None
    headings: tuple[str, ...] = ()
    setup: tuple[Command, ...] = ()
    verify: tuple[Command, ...] = ()
    checks: dict[str, Command] = {}
    bindings: dict[str, dict[str, tuple[str, ...]]] = {}
    outputs: tuple[str, ...] = ()
    cache: tuple[Cached, ...] = ()
    flaky: Flaky = Flaky.ALLOW
    max_age_seconds: int = 0
    max_tries: int = 0
    unknown: tuple[str, ...] = ()

    def branch_of(self, task: str) -> str:
        """How the branch of ``task`` is called; "" where ``branches`` is not set."""
        return self.branches.replace(TASK_FIELD, task) if self.branches else ""

    @property
    def verification_digest(self) -> str:
        """What project verification under this configuration is keyed by."""
        return contract.verification_digest(self.verify, self.setup, self.cache)
