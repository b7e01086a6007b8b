"""What a surrogate is: a specification that is fitted to data, and the posterior that the fit returns.

To bring a surrogate of your own, derive from both classes:

    class MyModel(st.Surrogate):                        class MyPosterior(st.SurrogatePosterior):
        def fit(self, Z, y, groups, **options): ...         mean_and_variance(X), covariance(X, Y), condition(X, y, noise)

``fit`` returns ``st.Fit(MyPosterior(...))``. Everything else has a default: gradients by finite differences, joint samples by
the covariance. Targets are standardised (mean 0, deviation 1) and minimised; features lie in about [0, 1].

Notation: Z (n x p) features of the data, y (n) targets, X (m x p) features of query points, f the latent function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, cholesky
from .gradient_data import GradientData
from .subset import AutoSubset, Subset, last_refresh

GRADIENT_STEP = 1e-6  # of the unit cube: for central differences where a posterior has no gradients of its own


class SurrogatePosterior(ABC):
    """What a surrogate believes of the latent function f after its data.

    Derive from it for a surrogate of your own: define ``mean_and_variance``, ``covariance`` and ``condition``.

    noise  the variance of one observation's error

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> for x in (0.1, 0.5, 0.9):
    ...     _ = study.add({"x": x}, (x - 0.3) ** 2)
    >>> posterior = study.context.belief(costs=False).objective
    >>> isinstance(posterior, st.SurrogatePosterior), posterior.mean_at(np.array([[0.2], [0.4]])).shape
    (True, (2,))
    """

    noise: float

    @abstractmethod
    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Of f at X (m each). The variance must be above zero."""

    @abstractmethod
    def covariance(self, X: Array, Y: Array | None = None) -> Array:
        """Of f at X and f at Y (X itself when left out)."""

    @abstractmethod
    def condition(self, X: Array, y: Array, noise: float | None = None) -> Self:
        """The posterior after observing y at X as well, hyperparameters unchanged: for pending trials."""

    def mean_at(self, X: Array) -> Array:
        """Of f at X (m)."""
        return self.mean_and_variance(X)[0]

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance (m each), and their gradients with respect to X (m x p each)."""
        mean, variance = self.mean_and_variance(X)
        d_mean, d_variance = np.empty_like(X), np.empty_like(X)
        for column in range(X.shape[1]):
            step = np.zeros(X.shape[1])
            step[column] = GRADIENT_STEP
            above, below = self.mean_and_variance(X + step), self.mean_and_variance(X - step)
            d_mean[:, column] = (above[0] - below[0]) / (2.0 * GRADIENT_STEP)
            d_variance[:, column] = (above[1] - below[1]) / (2.0 * GRADIENT_STEP)
        return mean, variance, d_mean, d_variance

    def sample(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        """``count`` joint draws of f at X (count x m)."""
        factor, _ = cholesky(self.covariance(X), jitter=1e-9)
        return np.asarray(self.mean_at(X) + rng.standard_normal((count, len(X))) @ factor.T)


@dataclass(frozen=True)
class Fit:
    """What ``Surrogate.fit`` returns: a posterior, and how it was found.

    posterior       an ``st.SurrogatePosterior``
    theta           the hyperparameters, as the next fit takes them for its ``start``; empty where there are none
    log_likelihood  the log marginal likelihood, the prior of theta included: output transforms are compared by it
    evaluations     of the likelihood
    note            what went wrong, in words
    restrict        rows of the data -> the posterior given these rows alone, theta unchanged; None where there is no such thing

    >>> Z, y = np.array([[0.0], [0.5], [1.0]]), np.array([1.0, -1.0, 0.0])
    >>> fit = st.GP().fit(Z, y)
    >>> isinstance(fit, st.Fit), fit.note
    (True, '')
    """

    posterior: Any
    theta: Array = field(default_factory=lambda: np.empty(0))
    log_likelihood: float = 0.0
    evaluations: int = 0
    note: str = ""
    restrict: Callable[[NDArray[np.intp]], Any] | None = field(default=None, compare=False, repr=False)


class Surrogate(ABC):
    """A model of the objective: a frozen specification that ``fit`` turns into a posterior.

    Derive from it to bring a model of your own as ``model=``: define ``fit``, which returns ``st.Fit(posterior)``.

    output            how values are transformed before they are modelled: see ``output_transform``; "auto" compares likelihoods
    inference         "map", or "mcmc" where hyperparameters are integrated out (``GP`` only)
    subset            the part of the trials that it learns from, None for all
    learns_gradients  whether ``fit`` makes use of gradient observations
    gaussian_process  whether its posterior is a ``Posterior`` of this library, with a kernel and covariances in closed form: the
                      knowledge gradient and entropy search need that

    >>> class MyModel(st.Surrogate):
    ...     def fit(self, Z, y, groups=None, **options):
    ...         return st.GP().fit(Z, y, groups, **options)
    >>> st.Study(st.Space(x=st.Float(0, 1)), method=st.EI(), model=MyModel()).model.gaussian_process
    False
    """

    output: Any = "standard"
    inference: Any = "map"
    subset: Subset | None = None
    learns_gradients: ClassVar[bool] = False
    gaussian_process: ClassVar[bool] = False

    @abstractmethod
    def fit(
        self,
        Z: Array,
        y: Array,
        groups: NDArray[np.intp] | None = None,
        *,
        start: Array | None = None,
        cold: bool | None = None,
        fidelities: tuple[int, ...] = (),
        gradients: GradientData | None = None,
    ) -> Fit:
        """Fit to features Z and targets y.

        groups      the parameter that each column belongs to
        fidelities  which parameters are fidelities
        start       theta of the last fit: where to start from
        cold        True: start from scratch too
        gradients   gradient observations, only where ``learns_gradients``
        """


def check_surrogate(model: Any) -> None:
    """A MethodError that names what to write, unless this can be used as a model."""
    if isinstance(model, type):
        raise MethodError(f"model={model.__name__} is a class; write {model.__name__}()")
    if isinstance(model, Surrogate):
        return
    if callable(getattr(model, "fit", None)):
        name = type(model).__name__
        raise MethodError(
            f"model={model!r} has a fit, but does not derive from st.Surrogate; write class {name}(st.Surrogate): with "
            "fit(self, Z, y, groups=None, **options), which returns st.Fit(posterior)"
        )
    raise MethodError(f"model={model!r} is not a model; write st.GP(), st.GP(warp=True), st.VFE(), ...")


def check_fit(fit: Any, model: Surrogate) -> None:
    """A MethodError that names what is missing, unless ``fit`` is what a surrogate has to return."""
    name = type(model).__name__
    if not isinstance(fit, Fit):
        raise MethodError(f"{name}.fit must return st.Fit(posterior), not {type(fit).__name__}")
    if not isinstance(fit.posterior, SurrogatePosterior):
        missing = [each for each in ("mean_and_variance", "covariance", "condition") if not hasattr(fit.posterior, each)]
        wanted = f"; it lacks {', '.join(missing)}" if missing else ""
        raise MethodError(f"{name}.fit must return a posterior that derives from st.SurrogatePosterior{wanted}")


def with_subset(model: Surrogate, subset: object) -> Surrogate:
    """The model, learning from the given subset: "auto", None for all trials, or a ``Subset``. A model's own subset wins.

    A model takes a subset if it is a dataclass with a field of that name.
    """
    if subset is not None and subset != "auto" and not isinstance(subset, Subset):
        wanted = '"auto", None, st.RandomSubset(), st.KMeansSubset() or st.SeedSubset()'
        raise MethodError(f"subset must be {wanted}, not {subset!r}")
    takes_subset = is_dataclass(model) and "subset" in {field.name for field in fields(model)}
    if not takes_subset:
        if isinstance(subset, Subset):
            raise MethodError(f"{type(model).__name__} learns from all trials; remove subset=, or use st.GP()")
        return model
    if model.subset is not None:
        return model
    chosen = subset if isinstance(subset, Subset) else AutoSubset() if subset == "auto" else None
    changed: Surrogate = replace(cast(Any, model), subset=chosen)
    return changed


def training_size(model: Surrogate, trials: int, parameters: int) -> int | None:
    """About how many trials the model learns from; None while it learns from all of them."""
    subset, refresh = model.subset, last_refresh(trials, parameters)
    if subset is None or refresh is None or not subset.in_use(trials, parameters):
        return None
    return min(subset.count(refresh) + trials - refresh, trials)
