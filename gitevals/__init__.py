"""git-evals: acceptance evidence that lives in git, and the gate that reads it."""

__version__ = "0.1.0"
