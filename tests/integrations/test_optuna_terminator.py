"""ShoestringTerminator as a callback of Optuna studies."""

import optuna
import pytest

import shoestring as st
from shoestring.integrations.optuna import ShoestringSampler, ShoestringTerminator


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def bowl(trial):
    return (trial.suggest_float("x", -1, 1) - 0.3) ** 2


def study_of(sampler=None):
    return optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=0))


class Watching(st.StopRule):
    """Keeps what it was given, and stops at the third trial."""

    def check(self, history, belief=None):
        self.seen = history, belief
        return st.Verdict(len(history) >= 3, f"{len(history)} trials are there")


def test_a_rule_ends_a_study_with_any_sampler_and_says_why(caplog):
    study, stop = study_of(optuna.samplers.TPESampler(seed=0)), ShoestringTerminator(st.Patience(5))
    with caplog.at_level("INFO", logger="shoestring"):
        study.optimize(bowl, n_trials=200, callbacks=[stop])
    assert 6 <= len(study.trials) < 200
    assert stop.verdict.stop
    assert study.user_attrs["shoestring:stop"] == stop.verdict.reason
    assert f"stopped after {len(study.trials)} trials: {stop.verdict.reason}" in caplog.messages


def test_a_rule_sees_the_history_and_a_belief():
    study, rule = study_of(), Watching()
    study.optimize(bowl, n_trials=10, callbacks=[ShoestringTerminator(rule)])
    history, belief = rule.seen
    assert len(study.trials) == 3
    assert [trial.value for trial in history] == [trial.value for trial in study.trials]
    assert belief is not None


def test_a_rule_does_not_take_a_trial_that_was_pruned_at_its_only_step_for_the_best():
    def objective(trial):
        trial.report(x := trial.suggest_float("x", 0, 1), 0)
        if x < 0.5:
            raise optuna.TrialPruned
        return x

    study, rule = study_of(), Watching()
    for x in (0.1, 0.7, 0.2):
        study.enqueue_trial({"x": x})
    study.optimize(objective, n_trials=3, callbacks=[ShoestringTerminator(rule)])
    history, _ = rule.seen
    assert (history.best.value, history.results()) == (0.7, [0.7])


def test_a_rule_that_needs_a_model_works_beside_a_sampler_without_one():
    study, stop = study_of(), ShoestringTerminator(st.RegretBound(0.5, after=6))
    study.optimize(bowl, n_trials=25, callbacks=[stop])
    assert stop.verdict.stop
    assert "bound" in stop.verdict.evidence


def test_with_our_sampler_the_belief_is_shared():
    study, rule = study_of(ShoestringSampler(seed=0, initial=2)), Watching()
    study.optimize(bowl, n_trials=2, callbacks=[ShoestringTerminator(rule)])
    known = study.sampler.read(study)
    assert rule.seen[0].space is known.mirrors(known.search_space)[0].space


@pytest.mark.parametrize("keep", ["set_user_attr", "set_trial_system_attr"])
def test_folds_are_a_user_attribute_or_as_optuna_keeps_them(keep):
    def objective(trial):
        if keep == "set_user_attr":
            trial.set_user_attr("folds", [0.1, 0.3])
        else:
            trial.storage.set_trial_system_attr(trial._trial_id, "terminator:cv_scores", [0.1, 0.3])
        return bowl(trial)

    study, rule = study_of(), Watching()
    study.optimize(objective, n_trials=1, callbacks=[ShoestringTerminator(rule)])
    assert rule.seen[0][0].folds == (0.1, 0.3)


def test_every_spares_checks():
    study, rule = study_of(), Watching()
    study.optimize(bowl, n_trials=10, callbacks=[ShoestringTerminator(rule, every=4)])
    assert len(study.trials) == 4


def test_a_study_that_asks_and_tells_can_be_checked_by_hand():
    study, stop = study_of(), ShoestringTerminator("Patience(2)")
    assert stop.check(study).reason == "no trial with a parameter to search has finished"
    study.optimize(bowl, n_trials=20)
    assert stop.check(study).stop in (True, False)


def test_wrong_rules_are_refused_when_the_terminator_is_made():
    with pytest.raises(st.MethodError, match="rule=None never ends a study"):
        ShoestringTerminator(None)
    with pytest.raises(st.MethodError, match="is a class; write Patience"):
        ShoestringTerminator(st.Patience)
    with pytest.raises(st.MethodError, match="2 objectives"):
        ShoestringTerminator().check(optuna.create_study(directions=["minimize", "minimize"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rule": "none"}, "rule='none' never ends a study"), ({"rule": None}, "never ends"), ({"cost": 5}, "or None, not 5")],
)
def test_a_rule_that_never_stops_and_a_wrong_cost_are_refused_at_once(options, message):
    with pytest.raises(st.MethodError, match=message):
        ShoestringTerminator(**options)
