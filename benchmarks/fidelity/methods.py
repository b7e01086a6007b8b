"""The methods compared, by label: ``cfKG``, ``cfKG_q4`` (batches of four), ``cfKG+known`` (told the cost as a formula),
``cfKG+paper`` (the paper's own model: squared exponential kernel, hyperparameters by MCMC, values as they are), ``q-cfKG_q4``
(the paper's own estimator, by stochastic gradients, of batches of four).

Everything else is at its default, the cost model included: it has to be learned from the costs told. EI, KG and random search
know no fidelities and ask at the target. Hyperband divides up one fidelity: the last of several, or the one it is told, as in
``Hyperband@share``. A label that this version of the library has no method for is passed over.

All of ours recommend what the study does, by its model of all the evaluations: this helps Hyperband and random search, which
have no model of their own, or ruins it. ``Hyperband+observed`` is Hyperband as published: the lowest value at the highest
fidelity seen. Both are run wherever Hyperband is.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.fidelity import curves
from benchmarks.fidelity.core import BatchSearcher, FidelityProblem, Measured, shoestring_space
from benchmarks.problems.core import Config

FACTORIES: dict[str, Callable[[Any], Any]] = {
    "cfKG": lambda st: st.CFKG(),
    "q-cfKG": lambda st: st.StochasticKG(),
    "cf-d-KG": lambda st: st.CFDKG(),
    "d-KG": lambda st: st.DKG(),
    "KG": lambda st: st.KG(),
    "EI": lambda st: st.EI(),
    "BOCA": lambda st: st.BOCA(),
    "Hyperband": lambda st: st.Hyperband(),
    "random": lambda st: st.Random(),
    "auto": lambda st: "auto",
}
GRADIENTS = ("cf-d-KG", "d-KG")
FUNCTIONS = (
    "cfKG", "cfKG+paper", "cfKG_q4", "cfKG_q8", "q-cfKG_q4", "EI", "KG", "BOCA", "Hyperband", "Hyperband+observed",
    "random", "auto", "botorch_qMFKG",
)  # fmt: skip
FUNCTIONS_QUICK = ("cfKG", "EI", "BOCA", "Hyperband", "Hyperband+observed", "random")
REAL = (
    "cfKG", "auto", "EI", "Hyperband", "Hyperband+observed", "Hyperband@share", "Hyperband@share+observed",
    "optuna_hyperband", "smac_hyperband",
)  # fmt: skip
KERNEL = ("cf-d-KG_q8", "d-KG_q8", "cfKG_q8")
PEERS = ("botorch_qMFKG", "optuna_hyperband", "smac_hyperband")


def split(label: str) -> tuple[str, int, set[str]]:
    """Method, batch size, and what is different from the default."""
    name, *options = label.split("+")
    found = re.fullmatch(r"(?P<method>.+?)(?:_q(?P<count>\d+))?", name)
    if found is None or set(options) - {"known", "observed", "paper"}:
        raise ValueError(f"no method is called {label!r}")
    return found["method"], int(found["count"] or 1), set(options)


def build(method: str, problem: FidelityProblem) -> Any:
    """What is given to ``Study(method=)``."""
    import shoestring as st

    name, _, resource = method.partition("@")
    if name not in FACTORIES:
        raise ValueError(f"no method is called {method!r}; there are {', '.join((*FACTORIES, *PEERS))}")
    if name == "Hyperband" and (resource or len(problem.fidelities) > 1):
        return st.Hyperband(resource=resource or problem.fidelities[-1].name)
    return FACTORIES[name](st)


class ShoestringSearcher:
    """A study, asked for batches; gradients are told to the methods that are named for them."""

    def __init__(self, label: str, problem: FidelityProblem, seed: int) -> None:
        import shoestring as st

        method, self._count, different = split(label)
        options: dict[str, Any] = {}
        if "known" in different:
            if problem.known_cost is None:
                raise ValueError(f"{problem.name} has measured costs, so {label} cannot be told them")
            options["cost_model"] = st.KnownCost(problem.known_cost)
        if "paper" in different:
            options["model"] = st.GP(kernel="se", inference="mcmc", output="standard")
        built = build(method, problem)
        if method == "q-cfKG":  # plans as many points together as are asked for
            built = st.StochasticKG(q=self._count)
        self.study = st.Study(shoestring_space(problem), method=built, seed=seed, stop=None, **options)
        self._problem, self._observed, self._gradients = problem, "observed" in different, method in GRADIENTS
        self._trials: list[Any] = []

    def suggest(self) -> Sequence[Config]:
        self._trials = [self.study.ask()] if self._count == 1 else list(self.study.ask_many(self._count))
        return [dict(trial.config) for trial in self._trials]

    def observe(self, results: Sequence[Measured]) -> None:
        for trial, result in zip(self._trials, results, strict=True):
            more = {"gradient": result.gradient} if self._gradients and result.gradient is not None else {}
            self.study.tell(trial, result.value, cost=result.cost, **more)

    def recommend(self) -> Config | None:
        if self._observed:
            return self._lowest()
        found = self.study.recommend()
        return None if found is None else dict(found.config)

    def _lowest(self) -> Config | None:
        """Of the trials at the highest fidelity seen; with two fidelities, by the one named last, then the other."""
        names = [fidelity.name for fidelity in reversed(self._problem.fidelities)]
        done = [trial for trial in self.study.log if trial.value is not None]
        found = min(done, key=lambda trial: (*(-trial.config[name] for name in names), trial.value), default=None)
        return None if found is None else dict(found.config)


def run(label: str, problem: FidelityProblem, seed: int) -> curves.Curve:
    """One run of any method, ours or a peer's."""
    if label in ("optuna_hyperband", "smac_hyperband"):
        from benchmarks.fidelity import stepwise

        return stepwise.RUNS[label](problem, seed)
    searcher: BatchSearcher
    if label == "botorch_qMFKG":
        from benchmarks.fidelity.peers import BotorchMultiFidelityKG, capped

        problem = capped(problem)
        searcher = BotorchMultiFidelityKG(problem, seed)
    else:
        searcher = ShoestringSearcher(label, problem, seed)
    return curves.follow(problem, searcher, label, seed)
