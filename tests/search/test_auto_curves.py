"""What ``method="auto"`` does with learning curves: runs that end early, and what it does where trials do not ask."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.data.visited import is_among
from shoestring.search.continuation import promising_runs
from shoestring.search.pruning import pruning_forecast
from shoestring.surrogate import curves_study

EPOCHS = 20


def curve(x: float, epoch: int) -> float:
    """Falls to its own asymptote; the best is at x = .3."""
    return (x - 0.3) ** 2 + 0.5 * math.exp(-epoch / 4.0) + 0.05


def train(config, trial, *, asks=True, fails=lambda x, epoch: False):
    value, start = math.nan, int(trial.resumed_from.fidelity["epochs"]) if trial.resumed_from is not None else 0
    for epoch in range(start + 1, config["epochs"] + 1):
        if fails(config["x"], epoch):
            raise FloatingPointError("diverged")
        value = curve(config["x"], epoch)
        trial.report(value, epochs=epoch, cost=float(epoch - start))
        if asks and trial.should_stop():
            break
    return st.Outcome(value, cost=float(trial.spent))


def studied(objective, trials=16, **settings):
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), epochs=st.Fidelity(1, EPOCHS, **settings))
    study = st.Study(space, seed=3, stop=None, initial=6)
    study.minimize(objective, trials, progress=False)
    return study


@pytest.fixture(scope="module")
def asking():
    return studied(train, 20)


def test_a_trial_is_begun_for_the_target_and_ends_early(asking):
    later = [trial for trial in asking.history if "curves" in trial.suggestion.get("decision", {}).get("why", "")]
    assert later
    asked = [trial.suggestion.get("asked", {}).get("epochs", trial.config["epochs"]) for trial in later]
    assert set(asked) == {EPOCHS}
    assert any(trial.config["epochs"] < EPOCHS for trial in later)
    assert all("CFKG" in trial.suggestion["decision"]["rejected"] for trial in later)
    assert asking.recommend().config["x"] == pytest.approx(0.3, abs=0.1)


def why_not_at_the_target(study):
    decisions = [trial.suggestion["decision"] for trial in study.history if "decision" in trial.suggestion]
    return decisions[-1]["rejected"].get("EI at the target", "")


def test_where_trials_do_not_ask_it_goes_back_to_choosing_fidelities():
    study = studied(lambda config, trial: train(config, trial, asks=False), 12)
    assert "should_stop" not in why_not_at_the_target(study)  # first it expects that they ask
    for x in (0.9, 0.95, 1.0):
        study.enqueue({"x": x, "y": 0.5, "epochs": EPOCHS})
    study.minimize(lambda config, trial: train(config, trial, asks=False), 16, progress=False)
    assert "should_stop" in why_not_at_the_target(study)


def test_good_runs_that_go_on_to_the_target_are_no_sign_that_trials_do_not_ask():
    study = studied(lambda config, trial: train(config, trial, asks=False), 12)
    for x in (0.29, 0.31, 0.3, 0.299, 0.301, 0.3001, 0.2999):
        study.enqueue({"x": x, "y": 0.5, "epochs": EPOCHS})
    study.minimize(lambda config, trial: train(config, trial, asks=False), 20, progress=False)
    assert "should_stop" not in why_not_at_the_target(study)


def test_several_fidelities_are_left_to_the_knowledge_gradient():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, EPOCHS), rows=st.Fidelity(10, 100))
    study = st.Study(space, seed=0, stop=None, initial=6)
    study.minimize(train, 8, progress=False)
    assert study.history[-1].suggestion["by"] == "CFKG"
    assert "several" in study.history[-1].suggestion["decision"]["rejected"]["EI at the target"]


def test_what_has_failed_on_its_way_is_neither_recommended_nor_gone_on_with():
    """The best configs diverge late: their first epochs look best of all."""
    study = studied(lambda config, trial: train(config, trial, fails=lambda x, epoch: x < 0.45 and epoch > 8), 24, resumable=True)
    failed = {(trial.config["x"], trial.config["y"]) for trial in study.history if trial.state is st.State.FAILED}
    assert failed
    found = study.recommend().config
    assert (found["x"], found["y"]) not in failed
    assert found["x"] >= 0.4
    context = study.suggester.context()
    ahead = promising_runs(context.data, context.space, context.belief(costs=False))
    configs = [context.space.decode(u) for u in ahead]
    assert not failed & {(config["x"], config["y"]) for config in configs}


def test_a_run_that_was_stopped_early_and_may_be_the_best_is_a_candidate_to_go_on_with(monkeypatch):
    monkeypatch.setitem(pruning_forecast.__kwdefaults__, "threshold", 0.9)  # nearly all runs are stopped, the best ones too
    monkeypatch.setattr(curves_study, "beats_plain", lambda *arguments: True)  # the model of curves says which may be the best
    study = studied(train, 30, resumable=True)
    context = study.suggester.context()
    ahead = promising_runs(context.data, context.space, context.belief(costs=False))
    asked = np.array(list(study.history.table.pruned.values()))
    candidates = is_among(asked, context.space.at_target(ahead))
    assert candidates.any()
    assert not candidates.all()
    assert context.visited.contains(asked).all()
    np.testing.assert_array_equal(context.optimizer().visited.contains(asked), ~candidates)


def test_where_a_run_cannot_go_on_the_place_of_a_stopped_one_counts_as_visited(monkeypatch):
    monkeypatch.setitem(pruning_forecast.__kwdefaults__, "threshold", 0.9)
    study = studied(train, 20)
    context = study.suggester.context()
    asked = np.array(list(study.history.table.pruned.values()))
    assert len(asked)
    assert context.optimizer().visited.contains(asked).all()


def test_a_finite_space_is_searched_to_its_end_where_the_restored_epoch_is_reported_again():
    """A run that is gone on with begins with a report at no cost. What is stopped at it must not be asked again and again."""

    def validates_first(config, trial):
        start = int(trial.resumed_from.fidelity["epochs"]) if trial.resumed_from is not None else 0
        for epoch in range(max(start, 1), config["epochs"] + 1):
            value = curve(config["x"], epoch)
            trial.report(value, epochs=epoch, cost=float(max(epoch - start, 0)))
            if trial.should_stop():
                break
        return st.Outcome(value, cost=float(trial.spent))

    epochs = st.Fidelity(1, EPOCHS, resumable=True)
    space = st.Space(x=st.Choice([0.1, 0.2, 0.3, 0.4, 0.5]), y=st.Choice([1, 2, 3]), epochs=epochs)
    study = st.Study(space, seed=1, stop=None, initial=6)
    study.minimize(validates_first, st.Budget(cost=230, trials=60), progress=False)
    assert len(study.history) < 60
    assert study.recommend().config["x"] == 0.3


def test_the_chance_of_a_hopeless_run_is_low_and_that_of_an_unknown_one_is_one(asking):
    suggester = asking.suggester
    context = suggester.context()
    curves = suggester._curves.fit(context.history, context.encoding)
    known = curves.chances(curves.data.U)
    values = np.array([(curves.data.encoding.space.decode(u)["x"] - 0.3) ** 2 for u in curves.data.U])
    assert known[np.argmax(values)] < 0.05 < known.max()
    new = curves.data.U[:1].copy()
    new[0, 0] = 0.123456
    assert curves.chances(new)[0] == 1.0
