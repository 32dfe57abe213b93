"""The frozen content of a task's examination, and its digest."""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from gitevals.model.result import Result

SCHEMA = 1
CRITERIA_LIMIT = 200
CHECKS_LIMIT = 100
CHECK_TIMEOUT_SECONDS = 300
VERIFICATION_TIMEOUT_SECONDS = 1800


class Mode(StrEnum):
    """How much a contract binds: not evaluated, shown, or required."""

    OFF = "off"
    OBSERVE = "observe"
    ENFORCE = "enforce"


class AtBase(StrEnum):
    """What a check must say of the base, before the change, for its pass to prove something about the change."""

    ANY = "any"
    FAIL = "fail"
    PASS = "pass"  # noqa: S105 - a verdict


class Cached(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What set-up need not make again: ``path`` in the checkout, kept for as long as the ``key`` files stay equal.

    ``spares`` names set-up commands (``setup-N``) that need not run where ``path`` could be restored.
    """

    path: str
    key: tuple[str, ...]
    spares: tuple[str, ...] = ()


class Criterion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement that must hold: ``id``, whole ``description``, and the ids of the ``checks`` bound to it."""

    id: str
    description: str
    checks: tuple[str, ...] = ()


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program to run: its argument array, limits and surroundings (``cwd`` relative to the checkout).

    ``graders`` are paths that the operator's versions replace while it runs; ``covers`` names features it exercises.
    """

    command: tuple[str, ...]
    timeout_seconds: int
    cwd: str = "."
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()
    exit_codes: dict[str, Result] = {}
    graders: tuple[str, ...] = ()
    at_base: AtBase = AtBase.ANY
    covers: tuple[str, ...] = ()

    def refined_exits(self) -> dict[int, Result]:
        """``exit_codes`` with numbers for keys."""
        return {int(status): result for status, result in self.exit_codes.items()}


class Contract(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything an examination rests on. Who froze it, when and why stands in the freeze record.

    ``graders`` is the id of the git tree that holds the frozen graders of the bound checks at their own paths.
    """

    schema: int
    task: str
    mode: Mode
    criteria: tuple[Criterion, ...] = ()
    checks: dict[str, Command] = {}
    verification: tuple[Command, ...] = ()
    setup: tuple[Command, ...] = ()
    outputs: tuple[str, ...] = ()
    cache: tuple[Cached, ...] = ()
    graders: str = ""

    @property
    def graded(self) -> tuple[str, ...]:
        """The paths of the graders that bound checks rely on, sorted; none lies below another."""
        return outermost([path for command in self.checks.values() for path in command.graders])


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of ``paths`` that lie below no other one, sorted."""
    named = sorted(set(paths))
    return tuple(path for path in named if not any(path.startswith(f"{above}/") for above in named))


def canonical(value: Any) -> bytes:
    """The bytes that are digested: JSON, keys sorted by code point, no spaces, default-valued fields left out."""
    return _ENCODER.encode(value)


def digest(contract: Contract) -> str:
    """SHA-256 (hex) of the canonical bytes; equal content has an equal digest in every clone."""
    return hashlib.sha256(canonical(contract)).hexdigest()


def decode(content: bytes) -> Contract:
    """The contract in canonical ``content``; raises `msgspec.MsgspecError` on anything else."""
    return msgspec.json.decode(content, type=Contract)


def verification_id(position: int) -> str:
    """The id of the verification command at 1-based ``position``."""
    return f"verify-{position}"


def setup_id(position: int) -> str:
    """The id of the set-up command at 1-based ``position``."""
    return f"setup-{position}"


def verification_digest(
    verification: tuple[Command, ...], setup: tuple[Command, ...], cache: tuple[Cached, ...] = ()
) -> str:
    """What project verification is keyed by: the digest of the verification and setup commands, and what is cached."""
    content = {"setup": setup, "verification": verification, **({"cache": cache} if cache else {})}
    return hashlib.sha256(canonical(content)).hexdigest()


_ENCODER = msgspec.json.Encoder(order="sorted")
