"""Bayesian optimization: form a belief, maximize an acquisition under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acquisition.improvement import Acquisition
from ..acquisition.maximize import maximize
from ..surrogate.belief import form_belief
from ..trial import Suggestion
from .method import Situation
from .sampling import space_filling

AROUND = 5  # best trials whose neighbourhood is searched


@dataclass(frozen=True)
class Bayes:
    """An acquisition made into a search method: a space-filling start, then the acquisition's maximum each time."""

    acquisition: Acquisition

    def suggest(self, situation: Situation) -> Suggestion:
        seen, encoding = situation.seen, situation.encoding
        name = type(self.acquisition).__name__
        started = len(seen.y) + len(seen.pending)
        if started < situation.initial or not len(seen.y):
            start = f"space-filling start, {started + 1} of {situation.initial}"
            why = start if started < situation.initial else "nothing has succeeded yet"
            return Suggestion(situation.space.decode(space_filling(situation)), by=name, why=why)
        rng = situation.rng
        belief = form_belief(seen, encoding, situation.model, situation.known)
        best = seen.U[seen.order[:AROUND]]
        u, _ = maximize(self.acquisition.on(belief, rng), encoding, rng, seen=seen.seen, best=best)
        mean, variance = belief.objective.mean_and_variance(encoding.features(u[None, :]))
        return Suggestion(
            situation.space.decode(u),
            by=name,
            why=f"highest {name} under a model of {len(seen.y)} trials",
            predicted=seen.sign * float(belief.output.inverse(mean)[0]),
            gain=belief.output.gain(float(mean[0]), float(np.sqrt(variance[0])), belief.incumbent),
            model=belief.knowledge(len(seen.y)),
        )
