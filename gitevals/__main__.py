"""The program: ``git-evals``, and ``python -m gitevals``."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded is an interruption like any other."""
    try:
        from gitevals.cli import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
