"""What `git evals doctor` found about one thing."""

from enum import StrEnum

import msgspec


class State(StrEnum):
    """How bad a finding is: only a problem makes the doctor say no."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found about the thing called ``name``, and the command or words that mend it, if there are any."""

    name: str
    state: State
    text: str
    repair: str = ""
