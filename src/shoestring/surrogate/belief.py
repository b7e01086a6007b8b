"""What is believed of a problem at one moment: all that acquisitions and stopping rules may know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoding import Encoding
from ..history import Observations
from ..numerics import Array, single_threaded
from ..outputs import KINDS, Output
from .gp import GP, SAMPLE, Fit, sample_by_rank
from .posterior import Posterior
from .viability import Viability, learn_viability

AVERAGE = 0.0  # of standardised values: what a failure that could be foreseen counts as, at best


@dataclass(frozen=True)
class Belief:
    """The objective's posterior (pending trials included), the value to beat, and where evaluations fail.

    incumbent   the lowest posterior mean at an evaluated point of the target fidelity, in the model's units
    fit         the objective's fit before pending trials were added
    viability   where evaluations fail, None while nothing has failed
    """

    encoding: Encoding
    objective: Posterior
    incumbent: float
    output: Output
    fit: Fit
    viability: Viability | None

    def knowledge(self, trials: int) -> dict[str, Any]:
        """What the next fit starts from, JSON-ready."""
        return {"theta": [float(value) for value in self.fit.theta], "output": self.output.kind, "trials": trials} | (
            {"note": self.fit.note} if self.fit.note else {}
        )


@single_threaded
def form_belief(seen: Observations, encoding: Encoding, model: GP, last: Mapping[str, Any] | None) -> Belief:
    """Fit the model to what was seen (one finished trial at least), starting from what was known at the ``last`` suggestion."""
    Z, n = encoding.features(seen.U), len(seen.y)
    start = np.array(last["theta"], dtype=float) if last and last.get("theta") else None
    due = start is None or cold_start_due(n, int(last["trials"]) if last else 0)
    kind = last.get("output") if last and not due else None
    output, fit = fit_output(seen.y, Z, encoding, model, start, due, kind)
    target = np.flatnonzero(seen.at_target) if seen.at_target.any() else np.arange(n)
    incumbent = float(fit.posterior.mean_at(Z[target]).min())
    failed = encoding.features(seen.failed)
    viability = learn_viability(Z, failed, encoding.groups)
    objective = fit.posterior
    if viability is not None and (foreseen := viability.foreseen()).any():
        objective = objective.condition(failed[foreseen], np.maximum(objective.mean_at(failed[foreseen]), AVERAGE))
    if len(seen.pending):
        waiting = encoding.features(seen.pending)
        means = objective.mean_at(waiting)
        incumbent = min(incumbent, float(means.min()))  # what is being evaluated counts as found
        objective = objective.condition(waiting, means)  # the mean stays, the variance there goes
    return Belief(encoding, objective, incumbent, output, fit, viability)


def fit_output(
    y: Array, Z: Array, encoding: Encoding, model: GP, start: Array | None, due: bool, kind: str | None
) -> tuple[Output, Fit]:
    """The fit under the wanted output transform; for "auto" the one with the highest evidence, Jacobian included.

    ``kind`` is what was chosen last time, and stays unless a choice is ``due``. Large data are compared by a sample.
    """
    possible: list[str] = [name for name in KINDS if name != "log" or bool((y > 0).all())]
    kinds: list[str]
    if model.output != "auto":
        kinds = [model.output if model.output in possible else "standard"]
    else:
        kinds = [kind] if kind in possible else possible

    def fitted(name: str, rows: NDArray[np.intp]) -> tuple[Output, Fit]:
        output = Output.of(y[rows], name)
        return output, model.fit(Z[rows], output.forward(y[rows]), encoding.groups, start=start, cold=due)

    everything = np.arange(len(y))
    if len(kinds) == 1:
        return fitted(kinds[0], everything)
    rows = sample_by_rank(y, SAMPLE)
    tried = [fitted(name, rows) for name in kinds]
    best = max(tried, key=lambda pair: pair[1].evidence + pair[0].log_jacobian(y[rows]))
    return best if len(rows) == len(y) else fitted(best[0].kind, everything)


def cold_start_due(n: int, before: int) -> bool:
    """Whether a fit from scratch is worth its time: when the data have grown by a third since the last power of 4/3."""
    step = math.log(4 / 3)
    return math.floor(math.log(max(n, 1)) / step) > math.floor(math.log(max(before, 1)) / step)
