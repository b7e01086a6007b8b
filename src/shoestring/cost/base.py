"""Cost models: from observed costs to a distribution of log cost, anywhere, with gradient.

Costs are positive and span orders of magnitude, so every model works on gamma = log c. Its prediction is normal,
gamma(x) ~ N(m(x), v(x)), so c is log-normal. A cost that is not well known is therefore expected to be higher, never lower, and
cannot become negative.

To bring a cost model of your own, derive from ``CostModel`` and define ``fit``, which returns a ``CostPosterior``. A class that
only has such a ``fit`` works too.

Notation
    U       n x D       points of the unit cube, fidelities among the coordinates
    gamma   n           logarithms of costs; a censored cost is a lower bound (the evaluation was stopped before its end)
    (1)  log E[c] = m + v / 2
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding
from ..space.space import Space

WarmStart = Mapping[str, Any]

MAX_LOG_COST = 690.0  # of an expected cost, about 1e300: so that it is a finite number, and a sum of a few is one too


@dataclass(frozen=True)
class CostObservations:
    """The known costs of finished and failed trials; trials without a cost are not among them."""

    U: Array
    log_cost: Array
    censored: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.log_cost)

    def with_gamma(self, gamma: Array) -> CostObservations:
        """The same points with other log costs."""
        return CostObservations(self.U, gamma, self.censored)


class CostPosterior(ABC):
    """The distribution of log cost after the data.

    Derive from it for a cost model of your own: define its three methods.

    name   for people: "linear in max_depth, rounds"
    theta  hyperparameters that the next fit may start from; empty where there are none
    parts  the posteriors that a mixture consists of; empty where it is no mixture

    >>> study = st.Study(st.Space(depth=st.Int(1, 16)), cost_model=st.KnownCost(lambda config: config["depth"]))
    >>> mean, variance = study.context.cost.log_cost(np.array([[0.1], [0.9]]))
    >>> bool(mean[0] < mean[1])
    True
    """

    name: str
    theta: tuple[float, ...] = ()
    parts: tuple[CostPosterior, ...] = ()

    @abstractmethod
    def log_cost(self, U: Array) -> tuple[Array, Array]:
        """Mean and variance of log cost (of a new evaluation, noise included) at points."""

    @abstractmethod
    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        """The same, and the gradients of both with respect to U (m x D; zero for choices and inactive parameters)."""

    @abstractmethod
    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of log cost at each observation, predicted from the others (in closed form)."""


class CostModel(ABC):
    """A model of what an evaluation costs: a frozen specification that ``fit`` turns into a posterior.

    Derive from it to bring a model of your own as ``cost_model=``: define ``fit``, which returns an ``st.CostPosterior``.

    needs_no_data  whether it can be fitted to no observation; else it is fitted from one observation on

    >>> class TwoFeatures(st.CostModel):
    ...     def fit(self, costs, encoding, warm_start=None):
    ...         return st.LinearCost(features=2).fit(costs, encoding)
    >>> st.Study(st.Space(x=st.Float(0, 1)), cost_model=TwoFeatures()).cost_model.needs_no_data
    False
    """

    needs_no_data: ClassVar[bool] = False

    @abstractmethod
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> CostPosterior:
        """Fit to observed costs. ``warm_start`` is what the last fit left (``to_warm_start``); it may be ignored."""

    def check_space(self, space: Space) -> None:  # noqa: B027
        """A MethodError if the model cannot work in a space, such as one that lacks a hyperparameter that it names."""


def check_cost_model(model: Any) -> None:
    """A MethodError that names what to write, unless this can be used as a cost model."""
    if isinstance(model, type):
        raise MethodError(f"cost_model={model.__name__} is a class; write {model.__name__}()")
    if isinstance(model, CostModel):
        return
    wanted = "fit(self, costs, encoding, warm_start=None), which returns a cost posterior"
    fit = getattr(model, "fit", None)
    if not callable(fit):
        raise MethodError(
            f'cost_model={model!r} is not a cost model; give "auto", st.LinearCost(), st.KnownCost(f), ..., '
            f"or an object with a method {wanted}"
        )
    try:
        inspect.signature(fit).bind(None, None, None)
    except TypeError:
        raise MethodError(f"cost_model={model!r}: its fit takes other arguments; write {wanted}") from None
    except ValueError:  # a function without a signature, such as one of an extension module
        return


def needs_no_data(model: CostModel) -> bool:
    """Whether a cost model can be fitted to no observation. A class that does not derive from ``CostModel`` has its default."""
    return bool(getattr(model, "needs_no_data", CostModel.needs_no_data))


def to_warm_start(posterior: CostPosterior, trials: int) -> dict[str, Any]:
    """What the next fit may start from, JSON-ready. A class that does not derive from ``CostPosterior`` has its defaults."""
    posterior = getattr(posterior, "total", posterior)  # of an IncrementalCost, what was fitted
    theta = getattr(posterior, "theta", CostPosterior.theta)
    known = {"kind": type(posterior).__name__, "trials": trials, "theta": list(theta)}
    if parts := getattr(posterior, "parts", CostPosterior.parts):
        known["parts"] = [to_warm_start(part, trials) for part in parts]
    return known


def theta_of(warm_start: WarmStart | None, kind: str) -> Array | None:
    """The hyperparameters of the last fit, if it was of this kind."""
    if not warm_start or warm_start.get("kind") != kind or not warm_start.get("theta"):
        return None
    return np.array(warm_start["theta"], dtype=float)


def expected_log_cost(posterior: CostPosterior, U: Array) -> Array:
    """log E[c], equation (1), at most MAX_LOG_COST."""
    mean, variance = posterior.log_cost(U)
    return np.minimum(mean + 0.5 * variance, MAX_LOG_COST)


def expected_log_cost_with_gradient(posterior: CostPosterior, U: Array) -> tuple[Array, Array]:
    """log E[c], equation (1), at most MAX_LOG_COST, and its gradient with respect to U."""
    mean, variance, d_mean, d_variance = posterior.log_cost_with_gradient(U)
    return np.minimum(mean + 0.5 * variance, MAX_LOG_COST), d_mean + 0.5 * d_variance
