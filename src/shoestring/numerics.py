"""Numerically safe pieces, with the range in which each is exact.

Notation: phi, Phi the density and distribution of the standard normal; h(z) = phi(z) + z Phi(z), so that the expected
improvement of N(mu, s^2) below y* is s h((y* - mu) / s).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.special import erfcx, log_ndtr, ndtr
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

LOG_2PI = math.log(2 * math.pi)
_HALF_LOG_HALF_PI = 0.5 * math.log(math.pi / 2)
_FAR = -1.0 / math.sqrt(np.finfo(float).eps)  # below this 1 - |z| sqrt(pi/2) erfcx(-z/sqrt 2) has lost every digit


@functools.cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread inside: for matrices this small, two threads on two busy cores took 5 to 300 times longer."""
    with _threads().limit(limits=1, user_api="blas"):
        yield


def single_threaded(function: Function) -> Function:
    """``one_thread`` as a decorator."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with one_thread():
            return function(*args, **kwargs)

    return cast(Function, wrapped)


def log_h(z: Array) -> Array:
    """log(phi(z) + z Phi(z)), finite for every finite z (Ament et al. 2023, equation 9)."""
    z = np.asarray(z, dtype=float)
    near = np.maximum(z, -1.0)
    direct = np.log(np.exp(-0.5 * near**2) / math.sqrt(2 * math.pi) + near * ndtr(near))
    far = np.minimum(z, -1.0)
    middle = np.maximum(far, _FAR)
    tail = np.log(-np.expm1(np.log(erfcx(-middle * math.sqrt(0.5)) * -middle) + _HALF_LOG_HALF_PI))
    tail = np.where(far < _FAR, -2.0 * np.log(-far), tail)
    with np.errstate(over="ignore"):
        return np.where(z > -1.0, direct, -0.5 * far**2 - 0.5 * LOG_2PI + tail)


def d_log_h(z: Array) -> Array:
    """The slope of log_h: Phi(z) / h(z), which tends to 1 / z above and to |z| below."""
    z = np.asarray(z, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.exp(log_ndtr(z) - log_h(z))
    return np.where(z < 1e3 * -1.0, -z - 2.0 / np.minimum(z, -1.0), slope)


def cholesky(K: Array, *, jitter: float = 1e-10) -> tuple[Array, float]:
    """The lower factor of K + j I with the smallest j of 0, jitter, 10 jitter, ... for which it exists, and that j.

    The strict upper triangle of the result is zero. Raises FloatingPointError only if K is not finite.
    """
    if not np.isfinite(K).all():
        raise FloatingPointError("a covariance matrix holds a value that is not finite")
    L, info = dpotrf(K, lower=1, clean=1)
    scale = float(np.mean(np.diag(K))) or 1.0
    added = 0.0
    while info != 0:
        added = jitter * scale if added == 0.0 else 10.0 * added
        L, info = dpotrf(K + added * np.eye(len(K)), lower=1, clean=1)
    return L, added
