"""The program: its commands, and the one place where errors become text and exit codes."""

import contextlib
import os
import sys
import tempfile
import traceback
from typing import Annotated

import typer
from typer.exceptions import TyperException

from gitevals import __version__
from gitevals.cli import contracts, evidence, gate, overview, setup
from gitevals.cli.output import say
from gitevals.errors import BadInput, EvalsError
from gitevals.report.text import line

INTERRUPTED = 130

app = typer.Typer(
    name="git-evals",
    help="Acceptance evidence in git: contracts, evaluations, and a gate on protected branches.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (setup, contracts, evidence, overview, gate):
    group.register(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"git-evals {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    directory: Annotated[str, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")] = "",
) -> None:
    if directory:
        try:
            os.chdir(directory)
        except OSError as error:
            raise BadInput(
                f'cannot change to "{directory}": {error.strerror}', hint="name a directory of the repository"
            ) from error


def main() -> None:
    """Run the command line; the exit code says how it went (0 yes, 1 no, 2 bad input, 3 cannot tell, 4 our bug)."""
    try:
        code = app(prog_name="git evals", standalone_mode=False)
        if code == INTERRUPTED:
            say("git-evals: interrupted")
        sys.exit(code if isinstance(code, int) else 0)
    except EvalsError as error:
        say(f"git-evals: {line(error.message)}", *([f"hint: {line(error.hint)}"] if error.hint else []))
        sys.exit(error.exit_code)
    except TyperException as error:
        sys.exit(_usage(error))
    except BrokenPipeError:
        _abandon_stdout()
        sys.exit(0)
    except OSError as error:
        _abandon_stdout()
        place = f"{error.filename}: " if error.filename else ""
        say(f"git-evals: {line(str(place))}{error.strerror}", "hint: look at the permissions and the space there")
        sys.exit(3)
    except Exception as error:
        sys.exit(_bug(error))


def _abandon_stdout() -> None:
    """Let what is still buffered go nowhere: writing it again at the end would fail again, with a status of its own."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError):  # one that is no file of the system's has nothing that could fail later
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: TyperException) -> int:
    """Tell of a command line that cannot be read; a command that was given nothing shows its help instead."""
    text = error.format_message()
    if "\n" in text:
        say(text)
    else:
        what = line(text[:1].lower() + text[1:]).rstrip(".")
        say(f"git-evals: {what}", "hint: `git evals -h` lists the commands, `-h` after one its options")
    return 2


def _bug(error: Exception) -> int:
    """Keep the traceback in a file and say where; nothing of it lands on the terminal."""
    with tempfile.NamedTemporaryFile("w", prefix="git-evals-bug-", suffix=".txt", delete=False) as file:
        file.write(f"git-evals {__version__}, python {sys.version}\n{sys.argv}\n{traceback.format_exc()}")
    say(
        f"git-evals: this is a bug of git-evals: {type(error).__name__}: {line(str(error))}",
        f"hint: the traceback is kept in {file.name}",
    )
    return 4
