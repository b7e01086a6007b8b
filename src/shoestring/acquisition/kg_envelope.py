"""The expected minimum of lines at a normal point, exact and in logarithms: the inside of the knowledge gradient.

Notation: lines a_i + b_i w, w ~ N(0, 1); g(w) = min_i (a_i + b_i w) is concave and piecewise linear. Where it passes from line
i to line j it has a kink at c = (a_j - a_i) / (b_i - b_j), and its slope drops by d = b_i - b_j > 0. Then

    min_i a_i - E[g(w)] = sum over kinks of d h(-|c|),        h(z) = phi(z) + z Phi(z)

(Frazier, Powell and Dayanik 2009). Every term is positive, so that nothing cancels and the logarithm is finite however small
the sum is. Kinks are found one after the other from w = 0 outwards, so that none is missed, however far out.

A point under consideration, seen from both ends: what would be observed there, and what it would say of the answer.

Notation: U holds x and fidelities s; Z the features of (x, s), where an observation is made; G those of (x, 1), where the answer
is wanted. Without fidelities the two are the same.

    mean            mu at G
    variance        var f at Z
    covariance      cov(f at G, f at Z)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, log_h
from ..space.encoding import Encoding
from ..surrogate.posterior import CrossCovariance, Posterior

Rows = NDArray[np.intp]

REACH = 7.0  # deviations: a kink so much farther out than the first has at most exp(-24) of its weight
TINY = 1e-300  # slopes that differ by less are parallel
NOTHING = -1e5  # the logarithm of no drop at all: no line is ever lower than the lowest one now


@dataclass(frozen=True)
class Drop:
    """log of the expected drop of the minimum (N), and its derivatives with respect to a and b (N x m each)."""

    value: Array
    by_a: Array
    by_b: Array


def log_expected_drop(a: Array, b: Array) -> Array:
    """log(min_i a_i - E[min_i (a_i + b_i w)]) for each row of a and b (N x m)."""
    return _kinks(a, b)[0]


def log_expected_drop_with_gradient(a: Array, b: Array) -> Drop:
    value, here, there, d, c, terms = _kinks(a, b)
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


def _kinks(a: Array, b: Array) -> tuple[Array, Rows, Rows, Array, Array, Array]:
    """The value, and of each kink: the lines on its two sides, d, c, and log d h(-|c|) (-inf where a row has no more).

    From w = 0 outwards on both sides: the line that is the lowest there, and from line i the next is the one that crosses it
    first. All rows march together, one kink a step.
    """
    N, rows = len(a), np.arange(len(a))
    both, sloping = np.concatenate([a, a]), np.concatenate([b, -b])  # both sides in one march
    start = lowest_beyond(both, sloping)
    up, down = start[:N], start[N:]  # just above and just below 0: lines that tie there make a kink
    before, after, drop, place = _march(both, sloping, start)
    here = np.concatenate([down[:, None], before[:N], after[N:]], axis=1)  # before a kink below 0 is after it seen from 0
    there = np.concatenate([up[:, None], after[:N], before[N:]], axis=1)
    d = np.concatenate([(b[rows, down] - b[rows, up])[:, None], drop[:N], drop[N:]], axis=1)
    c = np.concatenate([np.zeros((N, 1)), place[:N], -place[N:]], axis=1)
    kink = d > 0.0
    d = np.where(kink, d, 1.0)
    terms = np.where(kink, np.log(d) + log_h(-np.abs(c))[0], -np.inf)
    top = np.maximum(terms.max(axis=1), NOTHING)
    with np.errstate(divide="ignore"):
        value = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))  # by hand: SciPy's takes half of the time of all this
    return np.maximum(value, NOTHING), here, there, d, c, terms


def lowest_beyond(a: Array, b: Array) -> Rows:
    """The line that is lowest just above w = 0."""
    return np.asarray(np.argmin(np.where(a <= a.min(axis=1)[:, None], b, np.inf), axis=1))


def _march(a: Array, b: Array, start: Rows) -> tuple[Rows, Rows, Array, Array]:
    """The kinks at w > 0 in order: lines before and after, the drop of the slope (0: no kink), and where."""
    N, line = len(a), start.copy()
    steps: list[tuple[Rows, Rows, Array, Array]] = []
    first = np.full(N, np.inf)
    live = np.arange(N)
    while len(live) and len(steps) < a.shape[1]:
        own_a, own_b = a[live, line[live]], b[live, line[live]]
        falls = own_b[:, None] - b[live]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = np.where(falls > TINY, (a[live] - own_a[:, None]) / falls, np.inf)
        crossing = np.maximum(crossing, 0.0)  # rounding: a line that ties is crossed here
        c = crossing.min(axis=1)
        after = np.argmin(np.where(crossing <= c[:, None], b[live], np.inf), axis=1)
        first[live] = np.minimum(first[live], c)
        goes_on = np.isfinite(c) & (c <= first[live] + REACH)  # beyond, nothing that counts beside the first kink
        live, c, after = live[goes_on], c[goes_on], after[goes_on]
        before, drop, where = np.zeros((3, N))
        before[live], drop[live], where[live] = line[live], falls[goes_on, after], c
        following = np.zeros(N, dtype=np.intp)
        following[live] = after
        steps.append((before.astype(np.intp), following, drop, where))
        line[live] = after
    if not steps:
        nothing = np.zeros((N, 0))
        return nothing.astype(np.intp), nothing.astype(np.intp), nothing, nothing
    lines_before, lines_after, drops, places = zip(*steps, strict=True)
    return np.stack(lines_before, 1), np.stack(lines_after, 1), np.stack(drops, 1), np.stack(places, 1)


@dataclass(frozen=True)
class LookaheadPoints:
    """Points and their moments; the slopes (N x p) only where they were asked for.

    to_mean             d mean / dG
    to_variance         d variance / dZ
    from_here, from_there       d covariance / dZ and / dG; without fidelities all of it is in from_here
    """

    encoding: Encoding
    U: Array
    Z: Array
    G: Array
    mean: Array
    variance: Array
    covariance: Array
    to_mean: Array | None = None
    to_variance: Array | None = None
    from_here: Array | None = None
    from_there: Array | None = None

    @classmethod
    def at(cls, posterior: Posterior, encoding: Encoding, U: Array, gradient: bool) -> LookaheadPoints:
        Z = encoding.features(U)
        if not encoding.space.fidelities:
            if not gradient:
                mean, variance = posterior.mean_and_variance(Z)
                return cls(encoding, U, Z, Z, mean, variance, variance)
            mean, variance, to_mean, to_variance = posterior.with_gradients(Z)
            return cls(encoding, U, Z, Z, mean, variance, variance, to_mean, to_variance, to_variance, np.zeros_like(to_mean))
        G = encoding.features(encoding.space.at_target(U))
        if not gradient:
            _, variance = posterior.mean_and_variance(Z)
            return cls(encoding, U, Z, G, posterior.mean_at(G), variance, posterior.paired(Z, G))
        _, variance, _, to_variance = posterior.with_gradients(Z)
        mean, _, to_mean, _ = posterior.with_gradients(G)
        covariance, here, there = posterior.paired_with_gradients(Z, G)
        return cls(encoding, U, Z, G, mean, variance, covariance, to_mean, to_variance, here, there)

    def pull_back(self, here: Array, there: Array) -> Array:
        """The gradient with respect to U, given those with respect to Z and to G; the answer's fidelity does not move."""
        encoding = self.encoding
        if not encoding.space.fidelities:
            return encoding.pull_back(self.U, here + there)
        moves = np.array([not parameter.fidelity for parameter in encoding.space.values()])
        answer = encoding.space.at_target(self.U)
        return encoding.pull_back(self.U, here) + moves * encoding.pull_back(answer, there)


def line_gradients(at: LookaheadPoints, cross: CrossCovariance, b: Array, observed: Array, by_b: Array, by_own: Array) -> tuple[Array, Array]:
    """From d/db of all lines and d/da of x's own (the last) to d/dZ and d/dG; b = (covariances) / sqrt(observed)."""
    assert at.to_mean is not None  # all four are there, or none
    assert at.to_variance is not None
    assert at.from_here is not None
    assert at.from_there is not None
    root = np.sqrt(observed)
    own = (by_b[:, -1] / root)[:, None]
    falling = -0.5 * np.einsum("ij,ij->i", by_b, b) / observed  # b falls with the root of var + noise everywhere
    here = cross.pull_back(at.Z, by_b[:, :-1] / root[:, None]) + falling[:, None] * at.to_variance + own * at.from_here
    return here, by_own[:, None] * at.to_mean + own * at.from_there
