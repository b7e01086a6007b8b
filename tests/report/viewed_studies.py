"""Studies of several kinds, for tests of what pictures show. Each is made once."""

from __future__ import annotations

import random
from functools import cache

import shoestring as st
from shoestring.report.views.base import Source

SCRIPT = "<script>alert(1)</script>"
START = 1.7e9  # seconds since 1970


def made(space: st.Space, trials: list[st.Trial], **settings: object) -> st.Study:
    """A study in memory with trials as they are."""
    study = st.Study(space, **settings)  # type: ignore[arg-type]
    for trial in trials:
        study.state.add(trial)
    return study


@cache
def empty() -> st.Study:
    return st.Study(st.Space(x=st.Float(0, 1)), name="empty")


@cache
def one() -> st.Study:
    return made(st.Space(x=st.Float(0, 1)), [st.Trial(0, {"x": 0.5}, st.State.DONE, value=0.25, cost=3.0)], name="one")


@cache
def failures() -> st.Study:
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1))
    trials = [st.Trial(k, {"x": 0.1 * k, "y": 0.5}, st.State.FAILED, cost=1.0, error=f"no memory {SCRIPT}") for k in range(5)]
    return made(space, trials, name="failures")


@cache
def ordinary() -> st.Study:
    """About twenty trials over mixed parameters, with failures, costs and a stopping rule. Names hold scripts."""
    space = st.Space({
        "lr": st.Float(1e-5, 1e-1, log=True), "depth": st.Int(2, 12), SCRIPT: st.Choice(SCRIPT, "b", "c"),
        "drop": st.Float(0, 0.5, when={SCRIPT: "c"}),
    })  # fmt: skip

    def objective(config: dict[str, object]) -> st.Outcome:
        if config["depth"] == 7:
            raise RuntimeError(f"no sevens {SCRIPT}")
        depth = float(config["depth"])  # type: ignore[arg-type]
        rate = float(config["lr"])  # type: ignore[arg-type]
        return st.Outcome(1.0 + (depth - 5.0) ** 2 / 10.0 + 100.0 * rate, cost=1.0 + depth)

    options = {"method": st.EIpu(), "stop": st.SureBound(0.01, after=8), "initial": 6, "name": SCRIPT, "max_failures": 40}
    return st.minimize(objective, space, st.Budget(cost=110, unit="USD"), **options).study  # type: ignore[arg-type,return-value]


@cache
def fidelities() -> st.Study:
    """Hyperband, maximized, with a trial that still runs."""
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), epochs=st.Fidelity(1, 9, log=True))

    def objective(config: dict[str, float]) -> st.Outcome:
        return st.Outcome(-((config["x"] - 0.3) ** 2) - 1 / config["epochs"], cost=config["epochs"])

    study = st.maximize(objective, space, 16, method=st.Hyperband(), name="fidelities").study
    study.ask()  # type: ignore[attr-defined]
    return study  # type: ignore[return-value]


@cache
def extreme() -> st.Study:
    """Values from 1e-300 to 1e300, all costs zero."""
    space = st.Space(x=st.Float(0, 1), y=st.Float(1e-9, 1e9, log=True))
    values = [1e-300, 1e300, -1e300, 0.0, 1.0, 1e-12, -5.0, 2.0]
    trials = [st.Trial(k, {"x": 0.1 * k, "y": 10.0**k}, st.State.DONE, value=value, cost=0.0) for k, value in enumerate(values)]
    return made(space, trials, name="extreme")


@cache
def many(count: int = 10_000) -> Source:
    """Many trials, as what views are computed from: a study takes seconds to write as many."""
    rng = random.Random(0)
    space = st.Space(x=st.Float(0, 1), y=st.Float(1e-3, 1, log=True), kind=st.Choice(*"abcdef"))
    trials = []
    for number in range(count):
        config = {"x": rng.random(), "y": 10 ** (-3 * rng.random()), "kind": rng.choice("abcdef")}
        seconds = rng.expovariate(1 / 60)
        result = {"value": config["x"] ** 2 + 0.001} if rng.random() > 0.03 else {"error": "no"}
        state = st.State.DONE if "value" in result else st.State.FAILED
        asked = {"cost": seconds, "seconds": seconds, "asked_at": START + number // 4 * 60}
        trials.append(st.Trial(number, config, state, **result, **asked))  # type: ignore[arg-type]
    return Source(history=st.History(tuple(trials), space), unit="s", now=START + count * 60)


@cache
def wide() -> st.Study:
    """Many parameters with long names."""
    space = st.Space({f"a long name, number {k}": st.Float(0, 1) for k in range(14)})
    trials = [st.Trial(k, dict.fromkeys(space, 0.07 * k), st.State.DONE, value=float(k), cost=1.0) for k in range(6)]
    return made(space, trials, name="wide")


KINDS = {
    "empty": empty, "one": one, "failures": failures, "ordinary": ordinary, "fidelities": fidelities, "extreme": extreme,
    "wide": wide,
}  # fmt: skip
