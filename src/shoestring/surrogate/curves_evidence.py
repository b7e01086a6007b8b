"""Evidence about the model of learning curves: does it predict better than simpler models, and do early values tell the end?

    beats_plain      against the plain kernel: ends of runs, predicted from their first halves and the other runs
    predicts_ends    against a model of complete runs alone: ends of complete runs, predicted from the other runs
    rank_agreement   without a model: are complete runs that were ahead early ahead at the end?

Where the last two say no, what runs show on their way misleads: curves cross, or a bias turns their order round. No run must then
be stopped for it, and only complete runs count (``tells_the_end``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.intermediate import SAME_FIDELITY
from ..numerics import LOG_2PI, Array
from .curves_posterior import CurvePosterior, RunForecaster
from .gp import GP

MIN_CURVES = 5  # with two points or more: fewer say nothing about the shape of a curve
MIN_POINTS_COMPARED = 4  # of a curve, to be compared: two show a half and an end
MAX_CURVES_COMPARED = 30
MIN_COMPLETE_RUNS = 5  # for a comparison by models
CLEAR_AGREEMENT = 2 / 3  # of early ranks with those at the end: then no model is asked
MIN_PAIRS_WITH_FAILED = 3  # where fewer than two runs are complete, and the others have failed
PLAIN_LOG_ODDS = 0.5  # for each run, by which the plain kernel must predict better to be preferred
MIN_LOG_ODDS = 3.0  # by which complete runs alone must predict better: less is chance
EARLY_TIMES = (1 / 27, 1 / 9, 1 / 3)  # shares of the target at which ranks are compared with those at the end
OUTLIER_SHARE, OUTLIER_SPREAD = 0.05, 10.0  # of ends that no model foresees: so many, with so many times the deviation

Points = dict[float, float]  # of a curve: time -> value, in the user's units


def beats_plain(posterior: CurvePosterior, groups: NDArray[np.intp], fidelities: tuple[int, ...]) -> bool:
    """Whether curves predict how runs end, from their first halves and the other runs, better than the plain kernel does.

    By the density of each run's last value, left out together with the second half of its curve. The plain kernel knows the
    ends and the middles of all runs, but for that one end. It has to be better by PLAIN_LOG_ODDS for each run: a search has many
    runs near its best, and their ends are predicted from each other by any kernel.
    """
    curves = posterior.curves
    long = spread(np.flatnonzero(curves.lengths >= MIN_POINTS_COMPARED))
    if len(long) < MIN_CURVES:
        return False
    half = curves.lengths // 2
    mean, covariance = posterior.without_own()
    own = 0.0
    for row in long:
        t, y, seen = curves.times[row], curves.values[row], half[row]
        m, v = RunForecaster(posterior.shape, mean[row], covariance[row]).at(t[:seen], y[:seen], float(t[-1]))
        own += log_density(y[-1] - m, v + posterior.shape.noise)
    end_t = np.array([each[-1] for each in curves.times])
    half_t, half_y = (np.array([part[row][half[row] - 1] for row in long]) for part in (curves.times, curves.values))
    others = np.setdiff1d(np.arange(len(curves)), long)[:MAX_CURVES_COMPARED]
    rows = np.concatenate([long, others, long])
    Z = np.column_stack([curves.Z[rows], np.concatenate([end_t[long], end_t[others], half_t])])
    y = np.concatenate([curves.last[long], curves.last[others], half_y])
    count = int(groups.max()) + 1
    plain = left_out_density(Z, y, np.append(groups, count), len(long), (*fidelities, count))
    return own > plain - PLAIN_LOG_ODDS * len(long)


def predicts_ends(posterior: CurvePosterior, complete: NDArray[np.intp], groups: NDArray[np.intp]) -> bool:
    """Whether curves predict the ends of complete runs from all other runs as well as a model of the other complete runs does.

    Among the runs that a search completes are those that looked good on their way. A search that stops runs for what they show
    has to complete some others too, or it has no evidence (see ``search.halving_start``).
    """
    rows = spread(complete)
    mean, covariance = posterior.without_own()
    variance = covariance[rows, 0, 0] + float(posterior.shape.variance(np.ones(1))[0]) + posterior.shape.noise
    ends = posterior.curves.last[rows]
    own = sum(log_density(off, v) for off, v in zip(ends - mean[rows, 0], variance, strict=True))
    return own >= left_out_density(posterior.curves.Z[rows], ends, groups, len(rows)) - MIN_LOG_ODDS


def tells_the_end(
    posterior: CurvePosterior, ended: Sequence[Points], complete: NDArray[np.intp], groups: NDArray[np.intp]
) -> bool:
    """Whether what runs show on their way tells how they end.

    ended      the curves that are compared by rank: of complete runs, and of failed ones with an infinite value at the end
    complete   the rows of complete runs
    """
    if len(complete) < MIN_COMPLETE_RUNS:
        return ranks_agree(ended)
    return rank_agreement(ended)[0] >= CLEAR_AGREEMENT or predicts_ends(posterior, complete, groups)


def ranks_agree(ended: Sequence[Points]) -> bool:
    """Whether at least half of all pairs of runs have the order at the end that they had early; True while there is no evidence.

    One run that failed and one that did not are none: runs fail for other reasons too.
    """
    complete = sum(math.isfinite(each[max(each)]) for each in ended)
    agreement, pairs = rank_agreement(ended)
    return agreement >= 0.5 or (complete < 2 and pairs < MIN_PAIRS_WITH_FAILED)


def rank_agreement(ended: Sequence[Points]) -> tuple[float, int]:
    """The share of pairs of runs to the end that have the order there that they had early, at most of EARLY_TIMES.

    And how many pairs decide; 1 while there is none. Tables of real learning curves have .7 to .95, the planted traps .1 to .5.
    """
    rows = spread(np.arange(len(ended)))
    if len(rows) < 2:
        return 1.0, 0
    early = np.array([[value_until(ended[row], time) for time in EARLY_TIMES] for row in rows])
    ends = np.array([ended[row][max(ended[row])] for row in rows])
    one, other = np.triu_indices(len(rows), 1)
    equal = ends[one] == ends[other]  # both may be infinite
    order = np.where(equal, 0.0, np.sign(np.where(equal, 0.0, ends[one]) - np.where(equal, 0.0, ends[other])))
    votes = np.sign(np.nansum(np.sign(early[one] - early[other]) * order[:, None], axis=1))
    decided = int(np.abs(votes).sum())
    return (float((votes > 0).sum() / decided) if decided else 1.0), decided


def value_until(points: Points, time: float) -> float:
    """The last value until a time; NaN if there is none."""
    seen = [each for each in points if each <= time + SAME_FIDELITY]
    return points[max(seen)] if seen else math.nan


def spread(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """MAX_CURVES_COMPARED of them, evenly; all if they are fewer."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, MAX_CURVES_COMPARED).round().astype(np.intp))] if len(rows) else rows


def left_out_density(Z: Array, y: Array, groups: NDArray[np.intp], count: int, fidelities: tuple[int, ...] = ()) -> float:
    """Log density of the first ``count`` values, each given all others, under a Gaussian process: R&W, equation 5.12."""
    posterior = GP().fit(Z, y, groups, fidelities=fidelities).posterior
    variance = 1.0 / np.einsum("ij,ij->j", posterior.R, posterior.R)[:count]
    off = variance * posterior.alpha[:count]
    return float(sum(log_density(o, v) for o, v in zip(off, variance, strict=True)))


def log_density(off: float, variance: float) -> float:
    """Of a value that is off its mean by so much: normal, and now and then far off, so that one surprise does not decide."""
    wide = OUTLIER_SPREAD**2 * variance
    near, far = (-0.5 * (off**2 / each + math.log(each) + LOG_2PI) for each in (variance, wide))
    return float(np.logaddexp(math.log1p(-OUTLIER_SHARE) + near, math.log(OUTLIER_SHARE) + far))
