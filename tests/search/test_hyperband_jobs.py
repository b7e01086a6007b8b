"""What holds at every job of Hyperband and ASHA, in whatever order trials finish: checked against the trials alone."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws

import shoestring as st
from shoestring.search.hyperband import make_brackets, resource_amounts
from tests.problems import abandon

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 8))
events = draws.lists(
    draws.one_of(
        draws.just("ask"),
        draws.tuples(draws.integers(0, 9), draws.one_of(draws.integers(0, 4), draws.just("fail"), draws.just("abandon"))),
    ),
    min_size=20, max_size=120,
)  # fmt: skip
etas, limits = draws.sampled_from([2, 2.5, 3]), draws.sampled_from([None, 1])
each_event = given(events=events, eta=etas, brackets=limits, up=draws.booleans())


def run_events(study, events, check):
    """Ask, and tell what is open, as the events say; ``check`` sees each trial that the method suggests, and those before it."""
    opened = []
    for event in events:
        if event == "ask" or not opened:
            from_the_method = not study.state.queue
            before = study.log  # without a copy
            trial = study.ask()
            opened.append(trial)
            if from_the_method:
                check([each for each in before if each.state != "abandoned"], trial)
            continue
        trial = opened.pop(event[0] % len(opened))
        if event[1] == "abandon":
            abandon(study, trial.number)
        elif event[1] == "fail":
            study.tell(trial, error="no", cost=1.0)
        else:
            study.tell(trial, float(event[1]), cost=1.0)  # few values, so that there are ties


def place(trial):
    plan = trial.suggestion["plan"]
    return plan["bracket"], plan["rung"], plan["config"]


def on_rung(trials, bracket, rung):
    return [trial for trial in trials if place(trial)[:2] == (bracket, rung)]


def strictly_better(trials, than, up):
    return sum(trial.value is not None and (trial.value > than.value if up else trial.value < than.value) for trial in trials)


@each_event
@settings(max_examples=settings().max_examples * 5 // 12)
def test_asha_promotes_only_the_best_share_of_the_finished_and_each_once(events, eta, brackets, up):
    def check(before, trial):
        bracket, rung, config = place(trial)
        if rung > 0:
            finished = [each for each in on_rung(before, bracket, rung - 1) if each.finished]
            below = next(each for each in finished if place(each)[2] == config)
            assert below.state == "done"
            assert strictly_better(finished, below, up) < math.floor(len(finished) / eta)
            assert trial.config["x"] == below.config["x"]
            assert place(trial) not in map(place, before)
            return
        rungs = make_brackets(resource_amounts(SPACE["epochs"], "epochs", eta), eta, brackets)[bracket].rungs
        for upper in range(1, len(rungs)):  # no configuration is started while one could be promoted
            finished = [each for each in on_rung(before, bracket, upper - 1) if each.finished]
            there = {place(each)[2] for each in on_rung(before, bracket, upper)}
            left = [each for each in finished if each.state == "done" and place(each)[2] not in there]
            keep = math.floor(len(finished) / eta)
            assert all(strictly_better(finished, each, up) + ties_before(finished, each) >= keep for each in left)

    method = st.Hyperband(eta, asynchronous=True, brackets=brackets)
    run_events(st.Study(SPACE, method, direction="maximize" if up else "minimize"), events, check)


def ties_before(trials, than):
    """Of equal values, the configuration that was started first is the better one."""
    return sum(trial.value == than.value and place(trial)[2] < place(than)[2] for trial in trials)


@each_event
@settings(max_examples=settings().max_examples * 5 // 12)
def test_hyperband_promotes_the_best_of_a_rung_that_is_full_and_finished(events, eta, brackets, up):
    table = make_brackets(resource_amounts(SPACE["epochs"], "epochs", eta), eta, brackets)

    def check(before, trial):
        bracket, rung, config = place(trial)
        rungs = table[bracket % len(table)].rungs
        assert trial.config["epochs"] == rungs[rung].amount
        assert len(on_rung(before, bracket, rung)) < rungs[rung].count
        assert place(trial) not in map(place, before)
        if rung > 0:
            below = on_rung(before, bracket, rung - 1)
            assert all(each.finished for each in below)
            assert len(below) == rungs[rung - 1].count or rung > 1  # a higher one has fewer where trials failed
            promoted = next(each for each in below if place(each)[2] == config)
            assert promoted.state == "done"
            assert strictly_better(below, promoted, up) < rungs[rung].count
        for earlier in range(bracket):  # the next job belongs to the first bracket that does not wait
            assert any(not each.finished for each in before if place(each)[0] == earlier) or is_over(before, earlier, table)

    method = st.Hyperband(eta, brackets=brackets)
    run_events(st.Study(SPACE, method, direction="maximize" if up else "minimize"), events, check)


def is_over(trials, bracket, table):
    """Whether every rung of a bracket has all that it can get."""
    rungs = table[bracket % len(table)].rungs
    room = rungs[0].count
    for rung, each in enumerate(rungs):
        there = on_rung(trials, bracket, rung)
        if len(there) != min(room, each.count):
            return False
        room = sum(trial.state == "done" for trial in there)
    return True


def test_asynchronous_brackets_take_turns_by_what_one_pass_would_take():
    study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)), st.Hyperband(asynchronous=True))
    for _ in range(250):
        trial = study.ask()
        study.tell(trial, trial.config["x"])
    taken = [sum(trial.config["epochs"] for trial in study.history if place(trial)[0] == bracket) for bracket in range(3)]
    passes = [amount / budget for amount, budget in zip(taken, (9 + 9 + 9, 15 + 9, 27), strict=True)]
    assert max(passes) - min(passes) < 1.5
    assert min(passes) > 3
    order = [bracket for bracket, _, _ in map(place, study.history)]
    assert sum(before != after for before, after in pairwise(order)) < 3 * max(passes) + 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_bracket_is_plain_halving(asynchronous):
    study = st.Study(SPACE, st.Hyperband(2, asynchronous, brackets=1))
    for _ in range(64):
        trial = study.ask()
        study.tell(trial, trial.config["x"])
    assert {trial.config["epochs"] for trial in study.history if place(trial)[1] == 0} == {1}
    assert {trial.config["epochs"] for trial in study.history} == {1, 2, 4, 8}
