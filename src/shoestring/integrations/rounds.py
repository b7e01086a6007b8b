"""The loop of a search: ask for as many candidates as there are workers for, have them fitted, tell the study."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import FitFailedWarning

from ..budget import Budget
from ..confirming import unconfirmed, usable
from ..errors import MethodError, NothingFits, SpaceExhausted
from ..loop import reason_to_stop
from ..search.recommend import CONFIRMS
from ..study import Study
from ..termination.verdict import Verdict
from ..trial import State, Trial
from ..wording import plural
from .distributions import Translation
from .fits import LEAST, Candidate, failed_fits, last_line, measured_seconds, none_fitted
from .splits import FixedSplits, with_fold_sizes

Evaluate = Callable[..., dict[str, Any]]


@dataclass
class Rounds:
    """One search.

    evaluate    scikit-learn's: fits candidates, and returns a dict with all ``fits`` so far
    resource    the fidelity that ``n_resources`` shows; ``rows`` is what "n_samples" is a share of
    """

    study: Study
    translation: Translation
    splits: FixedSplits
    evaluate: Evaluate
    n_jobs: int | None
    refit: Any
    error_score: Any
    resource: str | None = None
    rows: int = 1
    candidates: list[Candidate] = field(default_factory=list)
    results: dict[str, Any] | None = None
    failure: Exception | None = None

    def run(self, budget: Budget) -> Verdict:
        """Until there is a reason to stop; scikit-learn's own error if no candidate could be fitted."""
        while not (verdict := reason_to_stop(self.study, left := usable(self.study, budget) if self.unsettled else budget)):
            began = time.perf_counter()
            trials, end = self.ask(left)
            if end is not None and not trials:
                verdict = end
                break
            for amount, group in itertools.groupby(trials, key=self.row_share):
                self.fit(list(group), amount)
            if self.splits.folds and len(self.candidates) == len(trials):  # the first round: now the folds are known
                self.study.rule = with_fold_sizes(self.study.rule, self.splits.test_sizes, self.splits.train_sizes)
            self.study.seconds += time.perf_counter() - began
        self.study.budget = budget
        if self.unsettled and self.splits.folds:
            self.confirm(budget)
        if self.results is None:
            raise self.failure or MethodError(f"the search ended before its first candidate: {verdict.reason}")
        if self.failure is not None:
            lost = plural(sum(candidate.fits is None for candidate in self.candidates), "candidate")
            told = f"{lost} could not be fitted on any fold and got the score {self.error_score}; the last error was"
            warnings.warn(f"{told}\n{self.failure}", FitFailedWarning, stacklevel=2)
        return verdict

    @property
    def unsettled(self) -> bool:
        """Whether there is a resource, and nothing has been fitted with the whole of it."""
        log = self.study.log
        return bool(self.study.space.fidelities) and not any(log.at_target(trial) for trial in log.having(State.DONE))

    def confirm(self, budget: Budget) -> None:
        """Fit what is recommended with the whole resource, so that the best candidate is not one of a share of it."""
        if (config := unconfirmed(self.study, budget)) is not None:
            self.study.ledger.enqueue(config, {"by": "you", "why": CONFIRMS}, first=True)
            trial = self.study.ask()
            self.fit([trial], self.row_share(trial))

    def ask(self, budget: Budget) -> tuple[list[Trial], Verdict | None]:
        """One candidate at first, then one for each set of folds that can be fitted at the same time."""
        workers = effective_n_jobs(self.n_jobs)
        count = max(1, workers // len(self.splits.folds)) if self.splits.folds else 1
        if budget.trials is not None:
            count = min(count, budget.trials - self.study.log.counted)
        trials: list[Trial] = []
        try:
            while len(trials) < count:
                trials.append(self.study.ask())
        except SpaceExhausted as end:
            return trials, Verdict(True, str(end), kind="exhausted")
        except NothingFits as end:
            return trials, Verdict(True, str(end), kind="budget")
        return trials, None

    def row_share(self, trial: Trial) -> float:
        return float(trial.config["n_samples"]) / self.rows if self.resource == "n_samples" else 1.0

    def fit(self, trials: list[Trial], share: float) -> None:
        """Have the trials' candidates fitted on this share of the training rows, and tell the study."""
        params = [self.translation.params(trial.config) for trial in trials]
        began = time.perf_counter()
        try:
            self.results = self.evaluate(params, cv=self.splits.thinned(share))
        except ValueError as error:
            if isinstance(self.error_score, str) or not none_fitted(error):
                raise
            self.failure = error
            found = self.unfitted(trials, params, error, time.perf_counter() - began)
        else:
            n = len(self.splits.folds)
            fits = self.results["fits"][-n * len(trials) :]
            rows = [fits[i : i + n] for i in range(0, len(fits), n)]
            found = [Candidate(*each, measured_seconds(each[2])) for each in zip(trials, params, rows, strict=True)]
        for candidate in found:
            self.study.record(candidate.trial, candidate.evaluation(self.refit, self.error_score, len(self.splits.folds)))
        self.candidates += found

    def unfitted(self, trials: list[Trial], params: list[dict[str, Any]], error: Exception, seconds: float) -> list[Candidate]:
        """No fit succeeded, and scikit-learn keeps no times: those of all workers that were busy are shared out."""
        busy = min(effective_n_jobs(self.n_jobs), len(trials) * len(self.splits.folds))
        cost = max(seconds * busy / len(trials), LEAST)
        return [Candidate(trial, given, None, cost, last_line(str(error))) for trial, given in zip(trials, params, strict=True)]

    def write_table(self, format_results: Callable[..., dict[str, Any]]) -> None:
        """Make the table of all candidates, in the dict that scikit-learn gave us, which is the one it goes on with."""
        assert self.results is not None
        n = len(self.splits.folds)
        like = next(candidate.fits[0] for candidate in self.candidates if candidate.fits)
        fits = [fit for each in self.candidates for fit in each.fits or failed_fits(each, like, self.error_score, n)]
        log = self.study.log
        costs = [trial.cost or math.nan for trial in log]
        columns = {
            "cost": costs,
            "spent": np.cumsum(costs),
            "expected_cost": [trial.suggestion.get("cost", math.nan) for trial in log],
            "failed": [trial.state is State.FAILED for trial in log],
        }
        if self.resource is not None:
            columns["n_resources"] = [trial.config[self.resource] for trial in log]
        table = format_results([candidate.params for candidate in self.candidates], n, fits, columns)
        self.results.clear()
        self.results.update(table)
