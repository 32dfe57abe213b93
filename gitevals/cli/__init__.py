"""The command line: typer commands, one file a group, no logic."""

from gitevals.cli.app import main

__all__ = ["main"]
