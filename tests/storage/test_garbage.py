"""The library leaves the garbage collector alone: cyclic garbage of the objective is freed as soon as in a plain loop."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import shoestring

TRIALS = 300

# Many small objects first, as any training makes: they make Python look for garbage. Then three cycles of 1 MB each, which are
# garbage when the objective returns.
SCRIPT = """
import sys
import shoestring as st

def objective(config):
    work = [[number] for number in range(2000)]
    for _ in range(3):
        cycle = [bytearray(b"x") * 1_000_000, work[-1]]
        cycle.append(cycle)
    return config["x"]

def plain_loop(trials):
    for number in range(trials):
        objective({"x": number / trials})

def study(trials):
    st.minimize(objective, st.Space(x=st.Float(0, 1)), trials, method=st.Random(), stop=None, progress=False)

{"plain": plain_loop, "study": study}[sys.argv[1]](int(sys.argv[2]))
print(open("/proc/self/status").read())
"""


def peak_megabytes(what):
    """The largest resident memory of a process that does this. (Not by getrusage: that begins with what the parent had.)"""
    command = [sys.executable, "-c", SCRIPT, what, str(TRIALS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"VmHWM:\s*(\d+) kB", said)[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_cyclic_garbage_of_the_objective_is_freed_as_in_a_plain_loop():
    plain, study = peak_megabytes("plain"), peak_megabytes("study")
    assert study < 1.2 * plain, f"{study:.0f} MB in a study, {plain:.0f} MB in a plain loop"


def test_the_library_does_not_touch_the_garbage_collector():
    for path in Path(shoestring.__file__).parent.rglob("*.py"):
        assert not re.search(r"^\s*(import gc\b|from gc\b)|\bgc\.\w", path.read_text(encoding="utf-8"), re.MULTILINE), path
