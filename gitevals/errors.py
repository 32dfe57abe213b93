"""Every exception that git-evals raises on purpose: one base, a hint each, an exit code each."""


class EvalsError(Exception):
    """Something a person can act on: ``message`` says what, ``hint`` the next command, ``exit_code`` as in the docs."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadInput(EvalsError):
    """What the user gave (an argument, a file, a task's text) cannot be used; nothing was written."""


class ConfigInvalid(BadInput):
    """The configuration does not parse; the message names file, line and path."""


class NotARepository(BadInput):
    """There is no git repository here."""


class GitTooOld(BadInput):
    """The installed git lacks what git-evals needs."""


class Refused(EvalsError):
    """The request is understood and the answer is no."""

    exit_code = 1


class CannotTell(EvalsError):
    """The answer is not known: something is missing, unreadable, or another program failed."""

    exit_code = 3


class GitFailed(CannotTell):
    """A git command ended with a status that its caller does not expect; ``stderr`` is git's own text."""

    def __init__(self, message: str, *, status: int, stderr: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.stderr = stderr


class ObjectMissing(CannotTell):
    """An object that must be there is not in the object database."""


class LedgerBusy(CannotTell):
    """Other writers kept winning the race for a ledger."""
