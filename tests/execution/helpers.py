"""Helpers: wait for a condition, look whether a process runs, start a script."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import shoestring as st

ROOT = Path(__file__).parent.parent.parent
SPACE = st.Space(x=st.Float(0, 1))
RUNG = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))


def until(condition, seconds=60.0):
    """Wait until a condition holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.02)


def alive(pid):
    """Whether a process runs. One that has exited and whose exit status was not collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def script(text, folder, *arguments):
    """Start a Python program from a file. It is killed at the end of the block."""
    path = folder / "script.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(st.__file__).parent.parent), str(ROOT)])}
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(path), *arguments],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # does nothing to a process that has ended


def states(history):
    return [str(trial.state) for trial in history]


class Late:
    """Suggests trial 3 only when so many others have left a file in a folder, and their results have arrived."""

    def __init__(self, folder, others=3):
        self.folder, self.others = folder, others

    def suggest(self, context):
        if context.number == 3:
            until(lambda: len(list(self.folder.iterdir())) == self.others)
            time.sleep(0.5)
        return st.Random().suggest(context)


def good_then_bad(folder, error=ZeroDivisionError):
    """An objective whose trial 0 ends first, and whose other trials then raise; for ``Late``."""

    def objective(config, trial):
        if trial.number != 0:
            until((folder / "0").exists)
            time.sleep(0.1)
        (folder / str(trial.number)).touch()
        if trial.number != 0:
            raise error("bad")
        return 0.5

    return objective
