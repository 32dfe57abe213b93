"""Git commands that must not be cut in two."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
INTERRUPTED = """\
import os, sys
from gitevals.git import run
try:
    run.run_to_its_end(["-c", "alias.slow=!touch begun; sleep 0.5; touch ended", "slow"], env=dict(os.environ))
except KeyboardInterrupt:
    sys.exit(0 if os.path.exists("ended") else 1)
sys.exit(2)
"""


def test_an_interruption_is_heard_when_git_has_ended(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, cwd=tmp_path, env=env, process_group=0) as child:
        while not (tmp_path / "begun").exists() and child.poll() is None:
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait() == 0
