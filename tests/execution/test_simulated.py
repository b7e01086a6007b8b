"""Simulated time: the same loop with a clock that follows the costs."""

import time

import pytest

import shoestring as st
from shoestring.execution.simulated import simulate
from tests.execution.helpers import RUNG, SPACE, states


def slow(config):
    return st.Outcome((config["x"] - 0.3) ** 2, cost=1000.0 * (1.0 + config["x"]))


def study(*numbers, method=None):
    found = st.Study(SPACE, method or st.Random(), stop=None)
    for x in numbers:
        found.enqueue({"x": x})
    return found


def test_hours_of_eight_workers_take_no_time_and_each_trial_has_its_place_in_them():
    began = time.monotonic()
    run = simulate(study(), slow, 80, workers=8)
    assert time.monotonic() - began < 60
    assert states(run.result.history) == ["done"] * 80
    total = sum(trial.cost for trial in run.result.history)
    assert total / 8 <= run.seconds <= total / 8 + 2000.0
    assert run.seconds == pytest.approx(run.result.study.seconds)
    events = sorted([(s.start, 1) for s in run.spans.values()] + [(s.end, -1) for s in run.spans.values()])
    at_once, most = 0, 0
    for _, change in events:
        at_once += change
        most = max(most, at_once)
    assert most == 8
    for number, span in run.spans.items():
        assert span.end - span.start == pytest.approx(run.result.history[number].cost)


def test_results_are_told_when_their_time_comes_and_suggestions_see_what_runs():
    told = []
    found = study(0.9, 0.1, 0.2)  # 1900, 1100 and 1200 s
    run = simulate(found, slow, 5, workers=2, callbacks=lambda study, trial: told.append(trial.number))
    assert told[:2] == [1, 0]
    assert run.spans[0].start == run.spans[1].start == 0.0
    assert run.spans[2].start == run.spans[1].end == 1100.0
    assert run.spans[3].start == run.spans[0].end == 1900.0


def test_with_one_worker_it_is_the_ordinary_run():
    ordinary = study(method=st.EI()).minimize(slow, 12)
    run = simulate(study(method=st.EI()), slow, 12, workers=1)
    assert [trial.config for trial in run.result.history] == [trial.config for trial in ordinary.history]
    assert run.seconds == pytest.approx(ordinary.spent)
    assert [value for _, value in run.bests()] == [value for _, value in ordinary.history.bests()]
    assert [at for at, _ in run.bests()] == pytest.approx([at for at, _ in ordinary.history.bests()])


def test_suggestions_may_take_time():
    run = simulate(study(0.0, 0.0, 0.0), slow, 3, workers=3, overhead=10.0)
    assert [run.spans[n].start for n in range(3)] == [10.0, 20.0, 30.0]


def test_a_budget_in_seconds_is_one_of_simulated_seconds():
    run = simulate(study(), slow, st.Budget(seconds=5000.0), workers=4)
    assert 3000.0 <= run.seconds <= 5000.0  # no trial is started that is not expected to end in time
    assert "of the time are left, and the shortest trial is expected to take" in run.result.stop.reason


def test_bests_of_a_maximization_rise_and_failures_take_time():
    def objective(config):
        return st.Outcome(float("nan") if config["x"] < 0.5 else config["x"], cost=10.0)

    found = st.Study(SPACE, st.Random(), direction="maximize")
    run = simulate(found, objective, 20, workers=2)
    values = [value for _, value in run.bests()]
    assert values == sorted(values)
    assert 0 < len(values) < 20
    assert run.seconds == 100.0


def test_what_was_reported_last_is_the_cost():
    def objective(config, trial):
        trial.report(0.5, epochs=1, cost=3.0)
        trial.report(0.4, epochs=2, cost=7.0)
        return 0.3 if not trial.should_stop() else 0.4

    run = simulate(st.Study(RUNG, st.Random()), objective, st.Budget(trials=2, seconds=5.0), workers=1)
    assert run.spans[0].end == 7.0
    assert run.result.history[0].config["epochs"] == 2  # 7 simulated seconds were more than there was


def test_an_interruption_gives_the_trials_back():
    def callback(found, trial):
        raise KeyboardInterrupt

    run = simulate(study(), slow, 9, workers=3, callbacks=callback, on_interrupt="return")
    assert run.result.stop.kind == "interrupted"
    assert sorted(states(run.result.history)) == ["abandoned", "abandoned", "done"]
