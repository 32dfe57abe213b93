"""Setting up: init, demo, hooks."""

from pathlib import Path
from typing import Annotated

import typer

from gitevals import demo as stories
from gitevals.cli.output import data, document, say
from gitevals.errors import BadInput
from gitevals.install import hooks, initialise
from gitevals.model.contract import Mode
from gitevals.model.task import quoted
from gitevals.report import story
from gitevals.report.text import line
from gitevals.session import session

hooks_app = typer.Typer(
    help="Put the gate's hooks into this repository, take them away, or look at them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command()(init)
    app.command()(demo)
    app.add_typer(hooks_app, name="hooks")


def init(
    protect: Annotated[
        list[str] | None, typer.Option("--protect", metavar="BRANCH", help="A branch to protect.")
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="How much contracts bind; default: observe, or what Yard has.")
    ] = None,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Install no hooks.")] = False,
    from_yard: Annotated[
        bool, typer.Option("--from-yard", help="Translate Yard's configuration: FILE, or the one in the work tree.")
    ] = False,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A configuration of Yard, for --from-yard.")] = "",
) -> None:
    """Prepare this repository: a commented .gitevals.yaml if there is none, the hooks, a writer id.

    Example: git evals init --protect main --mode enforce
    """
    if file and not from_yard:
        raise BadInput(f"init takes no argument, found {quoted(file)}", hint="`--from-yard FILE` translates a file")
    with session() as here:
        yard = file if from_yard else None
        data(initialise.initialise(here, protect or [], mode, with_hooks=not no_hooks, from_yard=yard))


def demo(
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Play in DIR and keep it.")] = None,
) -> None:
    """Play a whole story in a throw-away repository, with real commands and real refusals.

    Example: git evals demo
    """
    say(*story.opening())
    stories.play(keep, on_step=lambda played: data(story.step(played)))
    data(story.ending(keep))


@hooks_app.command()
def install() -> None:
    """Put the hooks in place.

    Example: git evals hooks install
    """
    with session() as here:
        for entry in hooks.install(here.repo, here.objects):
            data([f"{entry.event}: {entry.state}"])


@hooks_app.command()
def uninstall() -> None:
    """Take the hooks away.

    Example: git evals hooks uninstall
    """
    with session() as here:
        removed = hooks.uninstall(here.repo)
        data([f"removed {line(path)}" for path in removed] or ["no hook of git-evals is installed"])


@hooks_app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show how each hook stands.

    Example: git evals hooks status
    """
    with session() as here:
        found = hooks.status(here.repo)
        if as_json:
            document({"schema": 1, "hooks": found})
        else:
            data([f"{entry.event}: {entry.state}" for entry in found])
        if any(entry.state != "installed" for entry in found):
            raise typer.Exit(1)
