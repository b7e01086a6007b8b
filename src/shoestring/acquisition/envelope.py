"""The expected minimum of lines at a normal point, exact and in logarithms: the inside of the knowledge gradient.

Notation: lines a_i + b_i w, w ~ N(0, 1); g(w) = min_i (a_i + b_i w) is concave and piecewise linear. Where it passes from line
i to line j it has a kink at c = (a_j - a_i) / (b_i - b_j), and its slope drops by d = b_i - b_j > 0. Then

    min_i a_i - E[g(w)] = sum over kinks of d h(-|c|),        h(z) = phi(z) + z Phi(z)

(Frazier, Powell and Dayanik 2009). Every term is positive, so that nothing cancels and the logarithm is finite however small
the sum is. Kinks are found between nodes at which the lowest line is not the same; of two in one gap the lines on its two
sides are taken, so an answer is too low by what happens between two nodes, if anything does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..numerics import Array, log_h

Rows = NDArray[np.intp]

DENSE = 3.0  # nodes are evenly spaced up to here,
FAR = 60.0  # and ever wider apart up to here: where little is known to be gained, kinks lie far out
NOTHING = -1e5  # the logarithm of no drop at all


@cache
def nodes(count: int) -> Array:
    """``count`` nodes, odd, 0 among them: two thirds in [-DENSE, DENSE], the others beyond."""
    outer = max(count // 6, 2)
    inner = np.linspace(0.0, DENSE, (count - 1) // 2 - outer + 1)
    half = np.concatenate([inner, np.geomspace(DENSE, FAR, outer + 1)[1:]])
    return np.concatenate([-half[:0:-1], half])


@dataclass(frozen=True)
class Drop:
    """log of the expected drop of the minimum (N), and its derivatives with respect to a and b (N x m each)."""

    value: Array
    by_a: Array
    by_b: Array


def log_expected_drop(a: Array, b: Array, count: int = 65) -> Array:
    """log(min_i a_i - E[min_i (a_i + b_i w)]) for each row of a and b (N x m)."""
    return _kinks(a, b, count)[0]


def log_expected_drop_with_gradient(a: Array, b: Array, count: int = 65) -> Drop:
    value, here, there, d, c, terms = _kinks(a, b, count)
    weight = np.exp(terms - value[:, None])  # of each kink in the sum
    weight[value <= NOTHING] = 0.0
    _, slope = log_h(-np.abs(c))
    steep = -slope * np.sign(c)  # d log h(-|c|) / dc
    by_d = weight * (1.0 - steep * c) / d
    by_a = weight * steep / d  # with respect to a_j; the opposite with respect to a_i
    rows = np.arange(len(a))[:, None]
    total_a, total_b = np.zeros_like(a), np.zeros_like(b)
    np.add.at(total_a, (rows, there), by_a)
    np.add.at(total_a, (rows, here), -by_a)
    np.add.at(total_b, (rows, here), by_d)
    np.add.at(total_b, (rows, there), -by_d)
    return Drop(value, total_a, total_b)


def _kinks(a: Array, b: Array, count: int) -> tuple[Array, Rows, Rows, Array, Array, Array]:
    """The value, and of each gap between nodes: the lines on its two sides, d, c, and log d h(-|c|) (-inf without a kink)."""
    w = nodes(count)
    lowest = np.argmin(a[:, :, None] + b[:, :, None] * w, axis=1)
    here, there = lowest[:, :-1], lowest[:, 1:]
    rows = np.arange(len(a))[:, None]
    d = b[rows, here] - b[rows, there]
    kink = d > 1e-300
    d = np.where(kink, d, 1.0)
    c = np.where(kink, (a[rows, there] - a[rows, here]) / d, 0.0)
    terms = np.where(kink, np.log(d) + log_h(-np.abs(c))[0], -np.inf)
    with np.errstate(divide="ignore"):
        value = logsumexp(terms, axis=1)
    return np.maximum(value, NOTHING), here, there, d, c, terms
