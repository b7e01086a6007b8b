"""``ShoestringSearchCV``: hyperparameter search with scikit-learn's interface (``pip install "shoestring[sklearn]"``).

The search runs the study's loop with an executor in which scikit-learn cross-validates the candidates. The study gets the score
of each fold and the time of the fits. All else (scorers, refit, metadata routing, the estimator's methods) is scikit-learn's.

With a storage, the fits of each candidate are stored with its trial, and what the search was made with is stored with the study.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

try:
    from sklearn.base import is_classifier
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _num_samples, check_is_fitted
except ImportError as error:
    raise ImportError('ShoestringSearchCV needs scikit-learn: pip install "shoestring[sklearn]"') from error

from .._format import plural
from .._validation import plain, whole_number
from ..budget import Budget, read_budget
from ..data.history import History
from ..data.trial import State, Trial
from ..errors import BudgetError, MethodError, SpaceError
from ..space.parameters import Fidelity
from ..storage import open_storage
from ..study import Study
from .distributions import Translation, read_space
from .fingerprint import require_same_search, save_fingerprint, search_fingerprint
from .sklearn_executor import CandidateExecutor, Evaluate, FixedSplits, search_callbacks, with_fold_sizes
from .sklearn_results import evaluated

__all__ = ["ShoestringSearchCV"]

DEFAULT_TRIALS = 50  # if neither n_iter nor a budget is given
MAX_FIRST_FAILURES = 10  # candidates that could not be fitted, before the first success: then the estimator is broken
MIN_ROWS_PER_CLASS = 10  # in the smallest sample


class ShoestringSearchCV(BaseSearchCV):  # type: ignore[misc]
    """A search for the best hyperparameters of a scikit-learn estimator by cross-validation, in place of RandomizedSearchCV.

    A study chooses the candidates, and the search ends by itself when more of them would not pay.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": st.Float(1e-2, 1e2, log=True), "kernel": ["linear", "rbf"]}
    >>> search = st.ShoestringSearchCV(SVC(), space, n_iter=5, random_state=0).fit(X, y)
    >>> sorted(search.best_params_), len(search.cv_results_["params"])
    (['C', 'kernel'], 5)

    estimator      as for RandomizedSearchCV, and so are scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score,
                   return_train_score and random_state
    space          an st.Space, a dict from parameter names to lists, distributions or st.Float, st.Int, st.Choice, or a list
                   of such dicts; ``param_distributions`` is another name for it: give one of the two
    n_iter         the largest number of candidates; 50 if there is no budget either
    budget         "10m" (wall-clock time of the search), a number of candidates, or st.Budget(...); st.Budget(cost=600) is the
                   time of fitting and scoring, summed over folds and candidates
    method, stop, cost_model    as for st.Study
    resource       None, "n_samples" (rows to train on) or a parameter of the estimator such as "n_estimators": a fidelity
    min_resources  the lowest fidelity; "smallest" is 1, or ten rows per class
    max_resources  the target fidelity; "auto" is all rows
    storage        where the search is kept, so that it can be continued: a file such as "search.db", or another address of
                   st.Study; None: in memory
    study_name     its name in the storage; by default that of the estimator's class

    A candidate's value is the mean of its folds' scores. Its cost is measured, so method="auto" and budgets in time depend on
    the clock. For runs that are equal bit for bit give ``random_state=0, method=st.EI()`` and a budget in candidates (n_iter).

    ``fit`` sets the attributes of RandomizedSearchCV and these: ``stop_reason_`` as text and ``stop_`` with its evidence,
    ``spent_`` in seconds, ``study_`` and ``history_``, ``recommended_params_`` (the best prediction of the model),
    ``fold_sizes_`` and ``train_sizes_``; in ``cv_results_`` the columns ``trial`` (its number in the study), ``cost``, ``spent``,
    ``expected_cost``, ``failed`` and, with a resource, ``n_resources``. With several metrics the one that ``refit`` names is
    optimized; the first one if ``refit`` is a function or False.

    With a storage, a second ``fit`` with the same estimator, space, data, cv and scoring continues the search: what is stored is
    not fitted again. Limits hold for the whole search, earlier calls included. Ctrl-C loses only what is being fitted.
    """

    _required_parameters = ("estimator", "space")  # for the checks of scikit-learn before 1.6

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        *,
        param_distributions: Any = None,
        n_iter: int | None = None,
        budget: Any = None,
        method: Any = "auto",
        stop: Any = "auto",
        cost_model: Any = "auto",
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        resource: str | None = None,
        min_resources: Any = "smallest",
        max_resources: Any = "auto",
        storage: Any = None,
        study_name: str | None = None,
    ) -> None:
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.space = space
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.budget = budget
        self.method = method
        self.stop = stop
        self.cost_model = cost_model
        self.random_state = random_state
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.storage = storage
        self.study_name = study_name

    def fit(self, X: Any, y: Any = None, **params: Any) -> ShoestringSearchCV:
        """Search, and refit the best candidate on all rows; ``params`` as for RandomizedSearchCV."""
        self._data, self._fit_params = (X, y), params  # needed before scikit-learn splits the rows
        try:
            super().fit(X, y, **params)
        finally:
            del self._data, self._fit_params
        return self

    @available_if(lambda self: hasattr(self.estimator, "set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: str | None = None) -> ShoestringSearchCV:
        """Set what ``transform`` returns, such as "pandas": the estimator's own ``set_output``, also after ``fit``."""
        self.estimator.set_output(transform=transform)
        if hasattr(self, "best_estimator_"):
            self.best_estimator_.set_output(transform=transform)
        return self

    @property
    def history_(self) -> History:
        """The study's trials."""
        check_is_fitted(self)
        return self.study_.history

    @property
    def recommended_params_(self) -> dict[str, Any] | None:
        """The evaluated candidate with the best predicted score, which noise affects less than ``best_params_``.

        None if there is no prediction, or if another process has evaluated it since.
        """
        check_is_fitted(self)
        found = self.study_.recommend(tried=True)
        numbers = self.cv_results_["trial"].tolist()
        return self.cv_results_["params"][numbers.index(found.number)] if found is not None and found.number in numbers else None

    # -- the search --------------------------------------------------------------------------------------------------

    def _run_search(self, evaluate_candidates: Evaluate, *, callback_ctx: Any = None) -> None:
        """Search; ``callback_ctx`` is given by versions of scikit-learn with callbacks (from 1.9)."""
        translation, budget = self._translation(), self._limits()
        with search_callbacks(callback_ctx, self, evaluate_candidates, budget.trials) as evaluate:
            self._search(translation, budget, evaluate)

    def _search(self, translation: Translation, budget: Budget, evaluate_candidates: Evaluate) -> None:
        study, splits = self._open_study(translation, budget, evaluate_candidates)
        study.rule = with_fold_sizes(study.rule, splits.test_sizes, splits.train_sizes)
        executor = CandidateExecutor(
            translation, splits, evaluate_candidates,
            n_jobs=self.n_jobs, refit=self.refit, error_score=self.error_score, resource=self.resource,
            rows=_num_samples(self._data[0]),
        )  # fmt: skip

        def nothing_at_target() -> bool:
            """Whether there is a resource but no result at its maximum; the best candidate is then evaluated there."""
            history = study.log
            return bool(study.space.fidelities) and not any(history.at_target(trial) for trial in history.having(State.DONE))

        def stop_if_nothing_works(study: Study, trial: Trial) -> None:
            """Combinations of parameters that cannot be fitted are common, so that this is more patient than ``fail_fast``."""
            if study.log.number_of(State.FAILED) >= MAX_FIRST_FAILURES and not study.log.number_of(State.DONE):
                study.halt(f"the first {MAX_FIRST_FAILURES} candidates could not be fitted")

        self.stop_ = study.run(
            executor, budget, callbacks=stop_if_nothing_works, confirm=nothing_at_target, progress=False,
            log_trials=self.verbose > 0,
            fail_fast=False,  # where nothing can be fitted, scikit-learn's own error is raised at the end
            on_interrupt="return",  # to say here how to go on
        ).stop  # fmt: skip
        if self.stop_.kind == "interrupted":
            if self.storage is not None:
                count = plural(len(evaluated(study.log)), "candidate")
                where = f"study {study.name!r} in {study.storage.url} has {count}"
                print(f"{where}; the same fit goes on from there", file=sys.stderr)
            raise KeyboardInterrupt(self.stop_.reason)
        study.refresh()  # other processes may work on the same search
        executor.require_results(study.log, self.stop_)
        executor.write_table(study.log, super()._format_results, train=self.return_train_score)
        self.study_, self.stop_reason_, self.spent_ = study, self.stop_.reason, study.log.spent
        self.fold_sizes_, self.train_sizes_ = splits.test_sizes, splits.train_sizes

    def _open_study(self, translation: Translation, budget: Budget, evaluate: Evaluate) -> tuple[Study, FixedSplits]:
        """The study and the folds: new, or as they are in the storage if the search there is the same."""
        cv = getattr(self, "_checked_cv_orig", self.cv)  # the attribute of newer versions
        if hasattr(cv, "__next__"):
            raise MethodError("cv is a generator, which this version of scikit-learn has used up by now; give a list of splits")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        name = self.study_name or type(self.estimator).__name__
        storage = None if self.storage is None else open_storage(self.storage)
        found = None if storage is None else storage.find(name)
        if found is not None:
            seed = int(found.settings["seed"])  # the folds depend on it too
        classifier = is_classifier(self.estimator)
        splits = FixedSplits(cv, classifier=classifier, seed=seed, repeatable=storage is not None)
        splits.draw(evaluate)

        def open_study() -> Study:
            return Study(
                translation.space, self.method, self.stop, seed,
                storage=storage, name=name, cost_model=self.cost_model, budget=budget, direction="maximize",
            )  # fmt: skip

        if storage is None:
            return open_study(), splits
        fingerprint = search_fingerprint(
            estimator=self.estimator, X=self._data[0], y=self._data[1], fit_params=self._fit_params,
            cv=self.cv, folds=splits.folds, scoring=self.scoring, refit=self.refit, translation=translation,
        )  # fmt: skip
        if found is not None:
            require_same_search(found, storage.url, translation.space, fingerprint)
        study = open_study()
        if study.seed != seed:  # another process has just begun the same search: its seed counts
            return self._open_study(translation, budget, evaluate)
        save_fingerprint(study, fingerprint)
        return study, splits

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> dict[str, Any]:
        """Return the fits unchanged: the study needs the folds. The table is made once, at the end of the search."""
        if callable(self.scoring) and isinstance(out[0]["test_scores"], dict):
            self._check_refit_for_multimetric(out[0]["test_scores"])  # now, not after the whole budget is spent
        return {"fits": out}

    def _select_best_index(self, refit: Any, refit_metric: str, results: dict[str, Any]) -> Any:
        """The best candidate at the target fidelity, or at any if none succeeded there; a function ``refit`` decides itself."""
        log = self.study_.log
        if callable(refit) or not self.study_.space.fidelities:
            return super()._select_best_index(refit, refit_metric, results)
        at_target = np.array([log.at_target(log[number]) for number in results["trial"]])
        there = at_target & np.isfinite(results[f"mean_test_{refit_metric}"])
        pool = np.flatnonzero(there) if there.any() else np.arange(len(there))
        return int(pool[results[f"rank_test_{refit_metric}"][pool].argmin()])

    # -- options -------------------------------------------------------------------------------------------------------

    def _limits(self) -> Budget:
        """``n_iter`` and ``budget`` as one Budget; the search ends at the first limit that it reaches."""
        n_iter = None if self.n_iter is None else whole_number(self.n_iter, "n_iter", 1, BudgetError)
        if self.budget is None:
            return Budget(trials=n_iter or DEFAULT_TRIALS)
        budget = read_budget(self.budget)
        if budget.unit not in (None, "s"):
            raise BudgetError(f"the cost of a search is measured in seconds; give the budget in seconds, not in {budget.unit}")
        limits = [limit for limit in (budget.trials, n_iter) if limit is not None]
        return replace(budget, trials=min(limits)) if limits else budget

    def _translation(self) -> Translation:
        """The space, with the resource as a fidelity if there is one."""
        if (self.space is None) == (self.param_distributions is None):
            given = "neither was given" if self.space is None else "both were given"
            raise SpaceError(
                f"give the space as the second argument, as space= or as param_distributions=: {given}; "
                'for example ShoestringSearchCV(SVC(), {"C": scipy.stats.loguniform(0.1, 10)})'
            )
        translation = read_space(self.param_distributions if self.space is None else self.space)
        if self.resource is None:
            return translation
        rows = self.resource == "n_samples"
        if not rows and self.resource not in self.estimator.get_params():
            raise SpaceError(f'resource={self.resource!r} is neither "n_samples" nor a parameter of {self.estimator!r}')
        there = translation.space.get(self.resource)
        if isinstance(there, Fidelity):
            return translation.with_resource(self.resource, None, of_estimator=not rows)
        if there is not None or self.resource in {name for name, _ in translation.entries.values()}:
            raise SpaceError(f"{self.resource} is the resource, so it cannot be searched as well; take it out of the space")
        fidelity = self._sample_size() if rows else self._parameter_as_resource()
        return translation.with_resource(self.resource, fidelity, of_estimator=not rows)

    def _sample_size(self) -> Fidelity:
        """The number of training rows as a fidelity."""
        X, y = self._data
        there = _num_samples(X)
        high = there if self.max_resources == "auto" else plain(self.max_resources)
        if not isinstance(high, int) or not 1 < high <= there:
            raise SpaceError(f'max_resources must be "auto" or a number from 2 to {there} (the number of rows), not {high!r}')
        classes = len(np.unique(y)) if is_classifier(self.estimator) and y is not None else 1
        low = max(1, min(MIN_ROWS_PER_CLASS * classes, high // 2)) if self.min_resources == "smallest" else self.min_resources
        return Fidelity(low, high, log=True)

    def _parameter_as_resource(self) -> Fidelity:
        """A parameter of the estimator as a fidelity."""
        if self.max_resources == "auto":
            raise SpaceError(f'resource={self.resource!r} needs max_resources=; "auto" works for "n_samples" only')
        return Fidelity(1 if self.min_resources == "smallest" else self.min_resources, self.max_resources, log=True)

    # -- pickling ------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "study_" in state:
            state["study_"] = self.study_.to_json()  # a study holds a lock, which cannot be pickled
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "study_" in state:
            study = Study.from_json(state["study_"], method=self.method, stop=self.stop, cost_model=self.cost_model)
            study.budget = self._limits()
            study.rule = with_fold_sizes(study.rule, self.fold_sizes_, self.train_sizes_)
            self.study_ = study
