"""The program: ``git-evals``, and ``python -m gitevals``."""

import sys

INTERRUPTED = 130
_HOOK = "hook"
_SPOKEN = "git-evals hook 1"  # the shims ask for it before they believe an answer


def main() -> None:
    """Run the command line; Ctrl-C outside of its commands is an interruption like any other."""
    if sys.argv[1:2] == [_HOOK]:
        sys.exit(_of_hook(sys.argv[2:]))
    try:
        from gitevals.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _of_hook(arguments: list[str]) -> int:
    """Answer a hook whose own interpreter is gone, with the same gate and without the command line's imports."""
    if not arguments:
        sys.stdout.write(f"{_SPOKEN}\n")
        return 0
    from gitevals.hook import answer

    return answer(arguments)


if __name__ == "__main__":
    main()
