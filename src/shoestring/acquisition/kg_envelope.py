"""The expected minimum of lines at a standard normal point, exact and in log space: the inner part of the knowledge gradient.

Source: Frazier, Powell and Dayanik 2009.

Notation
    a_i + b_i w         m lines, w ~ N(0, 1): each is the posterior mean at one point as a function of the standardised outcome w
    g(w)                min_i (a_i + b_i w), the lower envelope: concave and piecewise linear
    c                   a kink of g, where it changes from line i to line j: c = (a_j - a_i) / (b_i - b_j)
    d                   by how much the slope of g falls there: d = b_i - b_j > 0
    h(z)                phi(z) + z Phi(z)  (``improvement.log_h``)

    min_i a_i - E[g(w)] = sum over kinks of d h(-|c|)

Every term is positive. So nothing cancels, and the logarithm is finite however small the sum is. The kinks are found one after
the other from w = 0 outwards, so that none is missed, however far out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .improvement import log_h

Rows = NDArray[np.intp]

MAX_KINK_DISTANCE = 7.0  # from the first kink, in deviations of w: farther out, a kink has at most exp(-24) of its weight
MIN_SLOPE_DIFFERENCE = 1e-300  # of b: lines that differ by less are parallel
LOG_NO_DROP = -1e5  # log of the expected drop where there is no kink: no line is ever lower than the lowest one now


@dataclass(frozen=True)
class ExpectedDrop:
    """log of the expected drop of the minimum (N), and its derivatives with respect to a and b (N x m each)."""

    value: Array
    by_a: Array
    by_b: Array


@dataclass(frozen=True)
class Kinks:
    """The kinks of N lower envelopes, at most K each (N x K); where an envelope has fewer, ``log_terms`` is -inf.

    before, after   the lines i and j on the two sides of a kink, in the direction of increasing w
    """

    before: Rows
    after: Rows
    d: Array
    c: Array
    log_terms: Array  # log(d h(-|c|))


def log_expected_drop(a: Array, b: Array) -> Array:
    """log(min_i a_i - E[min_i (a_i + b_i w)]) for each row of a and b (N x m)."""
    return log_sum(envelope_kinks(a, b))


def log_expected_drop_with_gradient(a: Array, b: Array) -> ExpectedDrop:
    """The same with its derivatives."""
    kinks = envelope_kinks(a, b)
    value = log_sum(kinks)
    weight = np.exp(kinks.log_terms - value[:, None])  # of each kink in the sum
    weight[value <= LOG_NO_DROP] = 0.0
    _, slope = log_h(-np.abs(kinks.c))
    by_c = -slope * np.sign(kinks.c)  # d log h(-|c|) / dc
    by_d = weight * (1.0 - by_c * kinks.c) / kinks.d
    by_a = weight * by_c / kinks.d  # with respect to a_j; the opposite with respect to a_i
    rows = np.arange(len(a))[:, None]
    total_a, total_b = np.zeros_like(a), np.zeros_like(b)
    np.add.at(total_a, (rows, kinks.after), by_a)
    np.add.at(total_a, (rows, kinks.before), -by_a)
    np.add.at(total_b, (rows, kinks.before), by_d)
    np.add.at(total_b, (rows, kinks.after), -by_d)
    return ExpectedDrop(value, total_a, total_b)


def log_sum(kinks: Kinks) -> Array:
    """log of the sum of the terms, at least LOG_NO_DROP. Written out: SciPy's logsumexp took half of the time of all this."""
    top = np.maximum(kinks.log_terms.max(axis=1), LOG_NO_DROP)
    with np.errstate(divide="ignore"):
        value: Array = top + np.log(np.exp(kinks.log_terms - top[:, None]).sum(axis=1))
    return np.maximum(value, LOG_NO_DROP)


def envelope_kinks(a: Array, b: Array) -> Kinks:
    """The kinks of each row's lower envelope: one at w = 0 where lines tie there, then those above 0, then those below."""
    N, rows = len(a), np.arange(len(a))
    both_a, both_b = np.concatenate([a, a]), np.concatenate([b, -b])  # w >= 0, and w <= 0 mirrored
    start = lowest_just_above_zero(both_a, both_b)
    up, down = start[:N], start[N:]  # the lines just above and just below 0
    inner, outer, fall, place = _march(both_a, both_b, start)
    before = np.concatenate([down[:, None], inner[:N], outer[N:]], axis=1)  # below 0 the outer line comes before the kink
    after = np.concatenate([up[:, None], outer[:N], inner[N:]], axis=1)
    d = np.concatenate([(b[rows, down] - b[rows, up])[:, None], fall[:N], fall[N:]], axis=1)
    c = np.concatenate([np.zeros((N, 1)), place[:N], -place[N:]], axis=1)
    is_kink = d > 0.0
    d = np.where(is_kink, d, 1.0)
    log_terms = np.where(is_kink, np.log(d) + log_h(-np.abs(c))[0], -np.inf)
    return Kinks(before, after, d, c, log_terms)


def lowest_just_above_zero(a: Array, b: Array) -> Rows:
    """The line that is lowest just above w = 0: the smallest a, and of those the smallest b."""
    return np.asarray(np.argmin(np.where(a <= a.min(axis=1)[:, None], b, np.inf), axis=1))


def _march(a: Array, b: Array, start: Rows) -> tuple[Rows, Rows, Array, Array]:
    """The kinks at w > 0 in order: the lines on the inner and the outer side, d (0: no kink) and c.

    From the line i that is lowest, the next one is the line that crosses it first. All rows take one kink a step.
    """
    N, line = len(a), start.copy()
    steps: list[tuple[Rows, Rows, Array, Array]] = []
    first = np.full(N, np.inf)
    active = np.arange(N)
    while len(active) and len(steps) < a.shape[1]:
        own_a, own_b = a[active, line[active]], b[active, line[active]]
        falls = own_b[:, None] - b[active]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = np.where(falls > MIN_SLOPE_DIFFERENCE, (a[active] - own_a[:, None]) / falls, np.inf)
        crossing = np.maximum(crossing, 0.0)  # rounding: a line that ties is crossed here
        c = crossing.min(axis=1)
        following = np.argmin(np.where(crossing <= c[:, None], b[active], np.inf), axis=1)
        first[active] = np.minimum(first[active], c)
        goes_on = np.isfinite(c) & (c <= first[active] + MAX_KINK_DISTANCE)
        active, c, following = active[goes_on], c[goes_on], following[goes_on]
        inner, fall, place = np.zeros((3, N))
        inner[active], fall[active], place[active] = line[active], falls[goes_on, following], c
        outer = np.zeros(N, dtype=np.intp)
        outer[active] = following
        steps.append((inner.astype(np.intp), outer, fall, place))
        line[active] = following
    if not steps:
        nothing = np.zeros((N, 0))
        return nothing.astype(np.intp), nothing.astype(np.intp), nothing, nothing
    inner_lines, outer_lines, falls_of_slope, places = zip(*steps, strict=True)
    return np.stack(inner_lines, 1), np.stack(outer_lines, 1), np.stack(falls_of_slope, 1), np.stack(places, 1)
