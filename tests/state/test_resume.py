"""A study that is interrupted, stored or moved goes on as if nothing had happened."""

import json
import subprocess
import sys
import textwrap
from functools import cache

import pytest

import shoestring as st
from tests.problems import bowl, mixed_space, mixed_value, plane

PROBLEMS = {"plane": (plane(), bowl), "mixed": (mixed_space(), mixed_value)}
each_problem = pytest.mark.parametrize(("space", "value"), list(PROBLEMS.values()), ids=list(PROBLEMS))


def paid(value):
    return lambda config: st.Outcome(value(config), cost=1.0)


def outcomes(study):
    """What happened, but for the clock and the numbers that an abandoned trial takes up."""
    done = [trial for trial in study.history if trial.state is not st.State.ABANDONED]
    return [(trial.config, trial.state, trial.value, trial.suggestion) for trial in done]


def interrupting(value, *at):
    """The objective, with Ctrl-C pressed in its calls number ``at``."""
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) in at:
            raise KeyboardInterrupt
        return value(config)

    return objective


slow = pytest.mark.slow


@each_problem
@pytest.mark.parametrize("at", [pytest.param((2,), marks=slow), pytest.param((8,), marks=slow), (2, 3, 9)], ids=str)
def test_after_ctrl_c_it_goes_on_as_if_nothing_had_happened(space, value, at):
    whole = st.Study(space, seed=4, initial=5)
    whole.minimize(value, 11)
    study, objective = st.Study(space, seed=4, initial=5), interrupting(value, *at)
    for _ in at:
        result = study.minimize(objective, 11, on_interrupt="return")
        assert "interrupted" in result.stop.reason
        assert "result.study.minimize(objective, budget=...)" in str(result)
        assert len(result.history.having(st.State.ABANDONED)) > 0
    study.minimize(objective, 11)
    assert outcomes(study) == outcomes(whole)


def test_ctrl_c_keeps_what_was_learnt():
    result = st.minimize(interrupting(bowl, 5), plane(), 10, on_interrupt="return")
    assert len(result.history.having(st.State.DONE)) == 4
    assert result.best.value is not None


def interrupted(**options):
    """The result of a study; that Ctrl-C came through is a failure of this test alone."""
    try:
        return st.minimize(bowl, plane(), 10, on_interrupt="return", **options)
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what was learnt")


def test_ctrl_c_while_the_optimizer_thinks_keeps_what_was_learnt():
    class Slow:
        def suggest(self, context):
            if context.number == 3:
                raise KeyboardInterrupt
            return st.Random().suggest(context)

    result = interrupted(method=Slow())
    assert len(result.history) == 3
    assert "interrupted" in result.stop.reason


def test_ctrl_c_in_a_callback_keeps_what_was_learnt():
    def callback(study, trial):
        if trial.number == 2:
            raise KeyboardInterrupt

    result = interrupted(callbacks=[callback])
    assert [trial.state for trial in result.history] == ["done"] * 3
    assert "interrupted" in result.stop.reason


@cache
def whole_outcomes(name):
    """Those of a study that was never stored."""
    space, value = PROBLEMS[name]
    whole = st.Study(space, seed=1, initial=5)
    whole.minimize(paid(value), 10)
    return outcomes(whole)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("k", [pytest.param(0, marks=pytest.mark.slow), 3, 7])
def test_k_trials_stored_and_read_and_the_rest_are_the_same_trials(name, k):
    space, value = PROBLEMS[name]
    part = st.Study(space, seed=1, initial=5)
    if k:
        part.minimize(paid(value), k)
    rest = st.Study.from_json(part.to_json())
    rest.minimize(paid(value), 10)
    assert outcomes(rest) == whole_outcomes(name)


SCRIPT = textwrap.dedent(
    """
    import json, sys
    import shoestring as st
    from tests.problems import {value} as value

    study = st.Study.from_json(sys.stdin.read())
    study.minimize(lambda config: st.Outcome(value(config), cost=1.0), {count})
    ahead = [study.ask().config for _ in range(2)]
    print(json.dumps([[trial.config, trial.value] for trial in study.history]))
    """
)


@pytest.mark.parametrize(("name", "space", "value"), [
    pytest.param("bowl", plane(), bowl, marks=slow), pytest.param("mixed_value", mixed_space(), mixed_value),
])  # fmt: skip
def test_in_a_new_process_the_next_suggestions_are_the_same_to_the_last_bit(name, space, value, request):
    whole = st.Study(space, seed=6, initial=5)
    whole.minimize(paid(value), 6)
    stored = whole.to_json()
    whole.minimize(paid(value), 8)
    for _ in range(2):
        whole.ask()
    other = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(value=name, count=8)],
        input=stored, capture_output=True, text=True, check=True, cwd=request.config.rootpath,
    )
    assert json.loads(other.stdout) == [[trial.config, trial.value] for trial in whole.history]


def test_everything_but_the_code_is_stored():
    study = st.Study(mixed_space(), st.Random(), seed=9, name="night run", direction="maximize", initial=3)
    study.maximize(lambda config: 1 / 0 if config["depth"] == 1 else mixed_value(config), 12)
    study.enqueue({"rate": 1e-3, "depth": 2, "kind": "a"})
    running = study.ask()
    study.enqueue({"rate": 1e-2, "depth": 3, "kind": "b", "extra": 0.25})
    again = st.Study.from_json(study.to_json(), st.Random())
    assert list(again.history) == list(study.history)
    assert (again.name, again.seed, again.initial, again.direction) == ("night run", 9, 3, "maximize")
    assert again.seconds == study.seconds
    assert again.space == study.space
    assert again.tell(running.number, 0.5, cost=1.0).value == 0.5
    assert again.ask().config == {"rate": 1e-2, "depth": 3, "kind": "b", "extra": 0.25}
    assert json.loads(again.to_json())["trials"][-1]["state"] == "running"


def test_trials_asked_together_are_stored_as_running_and_not_asked_again():
    study = st.Study(plane(), initial=4)
    study.minimize(paid(bowl), 5)
    waiting = [study.ask() for _ in range(3)]
    again = st.Study.from_json(study.to_json())
    assert again.ask().config == study.ask().config
    assert again.history[-1].config not in [trial.config for trial in waiting]
