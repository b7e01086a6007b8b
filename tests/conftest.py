import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: two threads on busy cores make small matrices slow

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
