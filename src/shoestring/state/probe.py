"""A probe of parts from outside when the study is made: what is missing is reported before the first trial.

The library's own classes are not probed: their tests do that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..acquisition.base import Acquisition
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Selection
from ..cost.base import CostModel, CostObservations
from ..cost.linear import LinearCost
from ..data.dataset import Dataset
from ..errors import MethodError
from ..search.auto import Auto
from ..search.base import Method
from ..search.bayes import Bayes
from ..search.boca import BOCA
from ..space.encoding import Encoding
from ..space.space import Space
from ..surrogate.base import Surrogate, SurrogatePosterior, check_fit
from ..surrogate.belief import Belief, Spending, fit_belief, fit_cost
from .suggester import is_own_class

PROBE_POINTS = 4
PROBE_OPTIONS = OptimizerOptions(raw_samples=8, local_samples=4, restarts=1, rounds=1)


def check_parts(space: Space, method: Method, model: Surrogate, cost_model: CostModel) -> None:
    """A MethodError if the method cannot work with the model, or if a part from outside lacks something."""
    acquisition = method.acquisition if isinstance(method, Bayes) else None
    needs_gp = isinstance(method, BOCA) or (isinstance(method, Auto) and bool(space.fidelities))
    needs_gp = needs_gp or (acquisition is not None and acquisition.needs_gaussian_process)
    if needs_gp and not model.gaussian_process:
        name = "auto, which uses the knowledge gradient here," if isinstance(method, Auto) else _name(acquisition or method)
        raise MethodError(
            f"method={name} needs covariances that only st.GP(), st.VFE() and st.FITC() have, not {_name(model)}; "
            "leave model= out, or use an acquisition such as st.EI()"
        )
    if isinstance(cost_model, CostModel):
        cost_model.check_space(space)
    if not is_own_class(cost_model):
        probe_cost_model(space, cost_model)
    foreign = [part for part in (model, acquisition) if part is not None and not is_own_class(part)]
    if not foreign:
        return
    belief = probe_model(space, model)
    if acquisition is not None and not is_own_class(acquisition):
        probe_acquisition(acquisition, belief)


def probe_model(space: Space, model: Surrogate) -> Belief:
    """Fit the model to a few made-up values, and use what comes of it as a study would."""
    encoding, rng = Encoding(space), np.random.default_rng(0)
    U = space.snap(rng.random((PROBE_POINTS, len(space))))
    Z, y = encoding.features(U), np.linspace(-1.0, 1.0, PROBE_POINTS)
    if not is_own_class(model):
        try:
            fit = model.fit(Z, y, encoding.groups, start=None, cold=True, fidelities=encoding.fidelities, gradients=None)
            check_fit(fit, model)
            _check_posterior(fit.posterior, Z, model)
        except MethodError:
            raise
        except Exception as error:
            raise MethodError(f"model={_name(model)} failed on a probe of {PROBE_POINTS} points: {_text(error)}") from error
    return fit_belief(_probe_data(space, U, y), encoding, model, None)


def _check_posterior(posterior: SurrogatePosterior, Z: Any, model: Surrogate) -> None:
    mean, variance = posterior.mean_and_variance(Z)
    if np.shape(mean) != (len(Z),) or np.shape(variance) != (len(Z),):
        raise MethodError(f"{_name(model)}: mean_and_variance(X) must return two arrays of length {len(Z)}, one number a point")
    if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (np.asarray(variance) > 0).all()):
        raise MethodError(f"{_name(model)}: mean_and_variance(X) must return finite means and variances above zero")
    if not isinstance(posterior.condition(Z[:1], np.zeros(1)), SurrogatePosterior):
        raise MethodError(f"{_name(model)}: condition(X, y, noise) must return a posterior")
    if np.shape(posterior.covariance(Z)) != (len(Z), len(Z)) or not np.isfinite(posterior.noise):
        raise MethodError(f"{_name(model)}: the posterior needs covariance(X, Y) and a number noise")


def probe_acquisition(acquisition: Acquisition, belief: Belief) -> None:
    """Have the acquisition select a point under a made-up belief."""
    name, space = _name(acquisition), belief.encoding.space
    cost = fit_cost(belief.data, belief.encoding, LinearCost())
    belief = replace(belief, cost=cost, spending=Spending(100.0, 10.0, 5.0))
    rng, nothing = np.random.default_rng(0), belief.evaluated[:0]
    optimizer = AcquisitionOptimizer(belief.encoding, rng, nothing, belief.evaluated, PROBE_OPTIONS)
    try:
        selection = acquisition.select(belief, optimizer)
    except MethodError:
        raise
    except Exception as error:
        raise MethodError(f"{name} failed on a probe of {PROBE_POINTS} points: {_text(error)}") from error
    if not isinstance(selection, Selection) or np.shape(selection.u) != (len(space),):
        raise MethodError(f"{name}.select must return st.Selection(u), u being a point of the unit cube of {len(space)} numbers")


def probe_cost_model(space: Space, model: CostModel) -> None:
    """Fit the cost model to a few made-up costs, and predict with it."""
    encoding, U = Encoding(space), space.snap(np.random.default_rng(0).random((PROBE_POINTS, len(space))))
    costs = CostObservations(U, np.linspace(0.0, 1.0, PROBE_POINTS), np.zeros(PROBE_POINTS, dtype=bool))
    try:
        posterior = model.fit(costs, encoding, None)
        mean, variance = posterior.log_cost(U)
        gradients = posterior.log_cost_with_gradient(U)
    except MethodError:
        raise
    except Exception as error:
        what = "log_cost(U), log_cost_with_gradient(U) and leave_one_out()"
        raise MethodError(f"cost_model={_name(model)} failed on a probe: {_text(error)}; its posterior needs {what}") from error
    if np.shape(mean) != (PROBE_POINTS,) or np.shape(variance) != (PROBE_POINTS,) or len(gradients) != 4:
        raise MethodError(f"cost_model={_name(model)}: log_cost(U) must return means and variances, one number a point each")


def _probe_data(space: Space, U: Any, y: Any) -> Dataset:
    nothing, count = np.empty((0, len(space))), len(y)
    return Dataset(
        U=U, y=y, at_target=np.ones(count, dtype=bool), failed=nothing, pending=nothing, sign=1.0, cost_points=U,
        log_cost=np.zeros(count), censored=np.zeros(count, dtype=bool), measured=np.zeros(count, dtype=bool),
        gradients=np.full(U.shape, np.nan), pruned=nothing,
    )  # fmt: skip


def _name(part: Any) -> str:
    return type(part).__name__


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
