"""Random spaces and configs for property tests, and what makes a config valid, written without the code under test."""

import json

from hypothesis import assume
from hypothesis import strategies as draws

import shoestring as st

scalars = draws.one_of(
    draws.none(),
    draws.booleans(),
    draws.integers(-5, 5),
    draws.floats(-5, 5),
    draws.text(max_size=3),
)
options = draws.one_of(
    scalars,
    draws.lists(scalars, max_size=2, unique_by=json.dumps).map(lambda items: ["a list", *items]),  # alone, it is all options
    draws.dictionaries(draws.text(max_size=2), scalars, max_size=2),
)


@draws.composite
def floats(draw):
    kind = draw(draws.sampled_from(["linear", "log", "step"]))
    if kind == "linear":
        low = draw(draws.floats(-1e6, 1e6))
        high = low + draw(draws.floats(1e-3, 1e6))
        return {"low": low, "high": high}
    if kind == "log":
        low = 10 ** draw(draws.floats(-12, 6))
        return {"low": low, "high": low * 10 ** draw(draws.floats(0.01, 12)), "log": True}
    return draw(stepped())


@draws.composite
def stepped(draw, most=30):
    low = draw(draws.one_of(draws.floats(-1e3, 1e3), draws.sampled_from([0.0, 0.1, -0.3, 0.123456789012345])))
    step = draw(draws.one_of(draws.floats(1e-4, 1e3), draws.sampled_from([0.1, 0.05, 1 / 3, 1000.0])))
    return {"low": low, "high": low + draw(draws.integers(1, most)) * step, "step": step}


@draws.composite
def ints(draw, widest=10**6):
    kind = draw(draws.sampled_from(["linear", "log", "step"]))
    low = draw(draws.integers(1, 1000) if kind == "log" else draws.integers(-(10**6), 10**6))
    width = draw(draws.integers(1, widest))
    fields = {"low": low, "high": low + width}
    if kind == "log":
        fields["log"] = True
    if kind == "step":
        fields["step"] = draw(draws.integers(1, width))
    return fields


def choices(fewest=1, most=4):
    return draws.lists(options, min_size=fewest, max_size=most, unique_by=text).map(tuple)


@draws.composite
def fidelities(draw):
    if draw(draws.booleans()):
        low = draw(draws.integers(1, 10))
        return st.Fidelity(low, low + draw(draws.integers(1, 90)))
    high = draw(draws.floats(1.0, 50.0))
    return st.Fidelity(0.5, high, target=draw(draws.one_of(draws.none(), draws.floats(0.5, high))))


@draws.composite
def spaces(draw, finite=False, most=5):
    """Up to ``most`` parameters in any order; each may be conditional on some that were drawn before it."""
    made = {}
    for name in "abcde"[: draw(draws.integers(1, most))]:
        kinds = ["int", "choice", "step"] if finite else ["float", "int", "choice"]
        kind = draw(draws.sampled_from(kinds))
        when = draw(conditions(made))
        if kind == "choice":
            made[name] = st.Choice(*draw(choices()), when=when)
        elif kind == "int":
            made[name] = st.Int(**draw(ints(widest=3 if finite else 10**6)), when=when)
        else:
            made[name] = st.Float(**draw(stepped(most=2) if finite else floats()), when=when)
    if draw(draws.booleans()):
        made["budget"] = draw(fidelities())
    return st.Space({name: made[name] for name in draw(draws.permutations(list(made)))})


@draws.composite
def conditions(draw, made):
    parents = [name for name, parameter in made.items() if parameter.levels is not None and parameter.levels <= 50]
    chosen = draw(draws.lists(draws.sampled_from(parents), max_size=2, unique=True)) if parents else []
    when = {}
    for parent in chosen:
        values = values_of(made[parent])
        wanted = draw(draws.lists(draws.sampled_from(values), min_size=1, max_size=3, unique_by=text))
        bare = len(wanted) == 1 and not isinstance(wanted[0], list) and draw(draws.booleans())
        when[parent] = wanted[0] if bare else wanted
    return when or None


@draws.composite
def configs(draw, space):
    """A valid config, drawn value by value."""
    config, waiting = {}, list(space)
    while waiting:
        for name in [name for name in waiting if not set(space[name].when or ()) & set(waiting)]:
            waiting.remove(name)
            if is_active(space[name], config):
                config[name] = draw(values(space[name]))
    return {name: config[name] for name in space if name in config}


def values(parameter):
    if isinstance(parameter, st.Choice):
        return draws.sampled_from(values_of(parameter))
    if parameter.levels is not None and parameter.step is not None:  # there may be a million of them
        return draws.integers(0, count_of(parameter) - 1).map(lambda k: value_of(parameter, k))
    if parameter.whole:
        return draws.integers(parameter.low, parameter.high)
    return draws.floats(parameter.low, parameter.high)


def values_of(parameter):
    """All values of a discrete parameter."""
    if isinstance(parameter, st.Choice):
        return list(parameter.options)
    return [value_of(parameter, k) for k in range(count_of(parameter))]


def count_of(parameter):
    return int((parameter.high - parameter.low) / (parameter.step or 1) + 1e-6) + 1


def value_of(parameter, k):
    """The value number k of a range."""
    return parameter.check(min(parameter.low + k * (parameter.step or 1), parameter.high), "x")


def is_active(parameter, config):
    """Whether every parent is active and has a wanted value."""
    for parent, wanted in (parameter.when or {}).items():
        several = wanted if isinstance(wanted, list) and text(wanted) != text(config.get(parent)) else [wanted]
        if parent not in config or text(config[parent]) not in map(text, several):
            return False
    return True


def text(value):
    return json.dumps(value, sort_keys=True)


def small(space, limit=600):
    """Skip examples with a large grid."""
    size = 1
    for parameter in space.values():
        size *= 1 if parameter.fidelity else parameter.levels
    assume(size <= limit)
    return space
