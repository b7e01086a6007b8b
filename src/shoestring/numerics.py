"""Numerically stable functions, with the range in which each is exact: log Phi, Cholesky with jitter, one BLAS thread.

Notation: phi, Phi the density and the distribution function of the standard normal.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]


class LazyModule:
    """A module that is imported when it is first used: SciPy takes 0.3 s, and many programs import this library to do little."""

    import_seconds: ClassVar[float] = 0.0  # of all such modules so far: no part of the time that a suggestion takes

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        began = time.perf_counter()
        value = getattr(import_module(self._name), attribute)
        LazyModule.import_seconds += time.perf_counter() - began
        setattr(self, attribute, value)  # found without this method from now on
        return value


if TYPE_CHECKING:
    from scipy import linalg as linalg
    from scipy import special as special
    from scipy.linalg import blas as blas
    from scipy.linalg import lapack as lapack
    from scipy.stats import qmc as qmc
else:
    linalg, special = LazyModule("scipy.linalg"), LazyModule("scipy.special")
    blas, lapack = LazyModule("scipy.linalg.blas"), LazyModule("scipy.linalg.lapack")
    qmc = LazyModule("scipy.stats.qmc")

Function = TypeVar("Function", bound=Callable[..., Any])

LOG_2PI = math.log(2 * math.pi)
ASYMPTOTIC_BELOW = -1e3  # z below which phi / Phi is -z: the quotient underflows further out


@functools.cache
def _threads() -> ThreadpoolController:
    _ = lapack.dpotrf  # loads it: its BLAS is another one than NumPy's, and only libraries that are loaded are limited
    return ThreadpoolController()


class _BlasLimit:
    """The number of callers inside ``one_thread``, over all threads: the first sets the limit, the last removes it."""

    lock = threading.Lock()
    inside = 0
    limiter: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread inside the block: for matrices this small, two threads on two busy cores took 5 to 300 times longer."""
    with _BlasLimit.lock:
        if _BlasLimit.inside == 0:
            _BlasLimit.limiter = _threads().limit(limits=1, user_api="blas")
        _BlasLimit.inside += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.inside -= 1
            if _BlasLimit.inside == 0:
                _BlasLimit.limiter.restore_original_limits()


def single_threaded(function: Function) -> Function:
    """``one_thread`` as a decorator."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with one_thread():
            return function(*args, **kwargs)

    return cast(Function, wrapped)


def log_Phi(z: Array) -> tuple[Array, Array]:
    """log Phi(z) and its derivative phi(z) / Phi(z), which tends to |z| far below zero."""
    z = np.asarray(z, dtype=float)
    value = special.log_ndtr(z)
    with np.errstate(over="ignore", invalid="ignore"):
        derivative = np.exp(-0.5 * z * z - 0.5 * LOG_2PI - value)
    return value, np.where(z < ASYMPTOTIC_BELOW, -z, derivative)


def cholesky(K: Array, *, jitter: float = 1e-10) -> tuple[Array, float]:
    """The lower Cholesky factor of K + j I, and j: the smallest of 0, jitter, 10 jitter, ... for which the factor exists.

    ``jitter`` is a share of the mean of the diagonal. The strict upper triangle of the factor is zero. Raises FloatingPointError
    only if K is not finite.
    """
    if not np.isfinite(K).all():
        raise FloatingPointError("a covariance matrix holds a value that is not finite")
    L, info = lapack.dpotrf(K, lower=1, clean=1)
    scale = max(float(np.abs(np.diag(K)).mean()), 1e-290) if K.any() else 1.0
    added = 0.0
    while info != 0:
        added = jitter * scale if added == 0.0 else 10.0 * added
        L, info = lapack.dpotrf(K + added * np.eye(len(K)), lower=1, clean=1)
    return L, added


def log_mean(values: Array) -> tuple[Array, Array]:
    """log of the mean of exp (over the first axis) and each one's share of it; NaN counts as nothing."""
    values = np.where(np.isnan(values), -np.inf, values)
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    parts = np.exp(values - top)
    total = parts.sum(axis=0)
    with np.errstate(divide="ignore"):
        return top + np.log(total / len(values)), parts / np.where(total > 0.0, total, 1.0)
