"""``python -m gitevals``: the same as ``git-evals``."""

from gitevals.cli import main

if __name__ == "__main__":
    main()
