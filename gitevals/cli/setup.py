"""Setting up: init, demo, hooks."""

from pathlib import Path
from typing import Annotated

import typer

from gitevals import demo as stories
from gitevals.cli.output import data, document, say
from gitevals.errors import BadInput
from gitevals.install import hooks, initialise, removal
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


SharedOption = Annotated[
    bool, typer.Option("--shared", help="Also in a hooks directory that serves other repositories.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@hooks_app.command()
def install(
    shared: SharedOption = False,
    files: Annotated[
        bool, typer.Option("--files", help="As hook files, though this git could name hooks in its configuration.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Put the hooks in place, beside whatever hooks are there.

    Example: git evals hooks install
    """
    with session() as here:
        _show(hooks.install(here.repo, here.objects, shared=shared, files=files), as_json=as_json)


@hooks_app.command()
def uninstall(shared: SharedOption = False, as_json: JsonOption = False) -> None:
    """Take the hooks away, and put back what they displaced.

    Example: git evals hooks uninstall
    """
    with session() as here:
        removed = removal.uninstall(here.repo, shared=shared)
    if as_json:
        document({"schema": 1, "removed": removed.hooks, "left": removed.left})
        return
    data([f"removed {line(name)}" for name in removed.hooks] or ["no hook of git-evals is installed"])
    data([f"left: {line(path)}, which ours had displaced; its place is taken or gone" for path in removed.left])


@hooks_app.command()
def status(as_json: JsonOption = False) -> None:
    """Show how each hook stands.

    Example: git evals hooks status
    """
    with session() as here:
        found = hooks.status(here.repo)
    _show(found, as_json=as_json)
    if any(entry.state not in hooks.FINE for entry in found):
        raise typer.Exit(1)


def _show(found: list[hooks.HookStatus], *, as_json: bool) -> None:
    if as_json:
        document({"schema": 1, "hooks": found})
        return
    several = len({Path(entry.path).parent for entry in found}) > 1
    data([_said(entry, several=several) for entry in found])


def _said(entry: hooks.HookStatus, *, several: bool) -> str:
    who = (
        f", beside the hook of {line(entry.beside)}"
        if entry.beside and entry.state not in ("absent", "foreign")
        else ""
    )
    where = f" ({line(entry.path)})" if several or entry.state == "left" else ""
    return f"{entry.event}: {entry.state}{who}{where}"
