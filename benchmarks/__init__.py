"""Benchmarks of Shoestring against its peers.

Every numerical library is held to one thread, and the limits have to be in the environment before numpy is
first imported. Doing it here, in the package that every benchmark is started from, means that no entry point
can forget it. Values already set by the caller win.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
