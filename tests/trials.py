"""Random trials for property tests: few different points, so that some are suggested twice, and every kind of outcome."""

from hypothesis import strategies as draws

import shoestring as st
from shoestring.data.trial import State, Trial

SPACE = st.Space(
    x=st.Float(1e-3, 1, log=True), kind=st.Choice("a", "b", 1, True), extra=st.Int(1, 3, when={"kind": "b"}),
    epochs=st.Fidelity(1, 9),
)  # fmt: skip
PLAIN = st.Space({name: parameter for name, parameter in SPACE.items() if not parameter.fidelity})
ENDS = (State.DONE, State.FAILED, State.ABANDONED)


@draws.composite
def trials(draw, number=0, space=SPACE, states=(State.RUNNING, *ENDS)):
    config = {"x": draw(draws.sampled_from([1e-3, 0.02, 0.02, 0.7])), "kind": draw(draws.sampled_from(["a", "b", 1, True]))}
    if config["kind"] == "b":
        config["extra"] = draw(draws.integers(1, 3))
    fidelity = {"epochs": draw(draws.sampled_from([1, 4, 9, 9]))} if space.fidelities else {}
    opened = Trial(number, config | fidelity, fidelity=fidelity, suggestion=draw(suggestions()))
    return draw(closed(opened, states))


@draws.composite
def suggestions(draw):
    found = {"by": "Random"}
    return found | {"model": {"trials": draw(draws.integers(0, 9))}} if draw(draws.booleans()) else found


@draws.composite
def closed(draw, trial, states=ENDS):
    """The trial with an outcome."""
    state = draw(draws.sampled_from(states))
    if state is State.RUNNING:
        return trial
    cost, seconds = draw(draws.sampled_from([None, 0.0, 0.1, 0.3, 7.0])), draw(draws.sampled_from([None, 0.1, 2.0]))
    results = {"cost": cost, "seconds": seconds}
    if trial.fidelity and draw(draws.booleans()):
        results["reports"] = ({"value": 0.5, "fidelity": {"epochs": 1}, "cost": None},)
    if state is State.DONE:
        results |= {"value": float(draw(draws.integers(-2, 2))), "censored": draw(draws.booleans())}
        results["gradient"] = draw(draws.sampled_from([None, {"x": 2.0}]))
        if trial.fidelity and trial.config["epochs"] > 1 and draw(draws.booleans()):  # stopped early
            kind = draw(draws.sampled_from(["hopeless", "budget"]))
            noted = {**trial.suggestion, "asked": dict(trial.fidelity), "stopped": {"kind": kind}}
            results |= {"config": {**trial.config, "epochs": 1}, "fidelity": {"epochs": 1}, "suggestion": noted}
    return trial.finish(state, **results)


def several(space=SPACE, most=12):
    """Trials in order of number."""
    return draws.integers(0, most).flatmap(lambda count: draws.tuples(*(trials(number, space) for number in range(count))))
