"""ShoestringSampler in Optuna studies: what it learns from, with whom it shares a study, and what it refuses."""

import pickle
from decimal import Decimal

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import shoestring as st
from shoestring.data.trial import State
from shoestring.integrations import optuna_mirror
from shoestring.integrations.optuna import ShoestringSampler

SPACE = {"x": FloatDistribution(0.0, 1.0), "n": IntDistribution(1, 4)}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def study_of(sampler=None, **options):
    return optuna.create_study(sampler=sampler or ShoestringSampler("Random", seed=0), **options)


def mirror_of(study):
    known = study.sampler.read(study)
    return known.mirrors(known.search_space)[0]


def add(study, params, value=None, state=optuna.trial.TrialState.COMPLETE, distributions=None, **rest):
    chosen = {name: (distributions or SPACE)[name] for name in params}
    study.add_trial(optuna.trial.create_trial(state=state, value=value, params=params, distributions=chosen, **rest))


def conditional(trial):
    kind = trial.suggest_categorical("kind", ["tree", "net"])
    if kind == "tree":
        return trial.suggest_float("depth", 0, 1)
    layers = trial.suggest_int("layers", 1, 3)
    return 1 + sum(trial.suggest_float(f"width{i}", 0, 1) for i in range(layers))


# -- conditional spaces -------------------------------------------------------------------------------------------------


def test_conditions_of_a_define_by_run_study_become_one_space():
    study = study_of(optuna.samplers.RandomSampler(seed=3))
    study.optimize(conditional, n_trials=25)
    study.sampler = ShoestringSampler("Random", seed=0)
    space = mirror_of(study).space
    assert space["depth"].when == {"kind": [0]}
    assert space["layers"].when == space["width0"].when == {"kind": [1]}
    assert space["width1"].when == {"layers": [2, 3]}
    assert space["width2"].when == {"layers": [3]}
    trial = study.ask()
    conditional(trial)
    assert set(trial.relative_params) == set(trial.params)


def test_parameters_that_nothing_explains_are_searched_as_groups_of_their_own():
    study = study_of()
    for k in range(6):
        extra = {"a": 0.1 * k, "b": 0.2} if k % 3 == 1 else {}
        whole = {**SPACE, "a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)}
        add(study, {"x": k / 10, "n": 1 + k % 4, **extra}, k, distributions={**whole, "n": IntDistribution(1, 40)})
    known = study.sampler.read(study)
    assert [set(mirror.space) for mirror in known.mirrors(known.search_space)] == [{"n", "x"}, {"a", "b"}]
    assert set(study.ask().relative_params) == {"a", "b", "n", "x"}


def test_a_range_that_has_changed_is_followed():
    study = study_of()
    for high in (1.0, 5.0, 5.0):
        add(study, {"x": 0.5}, 1.0, distributions={"x": FloatDistribution(0, high)})
    assert study.sampler.read(study).search_space["x"].high == 5.0
    trial = study.ask()
    suggested = trial.relative_params["x"]
    assert trial.suggest_float("x", 0, 1e-3) == pytest.approx(min(suggested, 1e-3))  # the nearest that is allowed


def test_options_need_not_be_json():
    options = [(64, 64), None, "text", 1, True, 1.5]
    study = study_of()
    with pytest.warns(UserWarning, match="persistent storage"):
        study.optimize(lambda trial: options.index(trial.suggest_categorical("o", options)), n_trials=4)
    assert mirror_of(study).space["o"].levels == 6


# -- what it learns from ------------------------------------------------------------------------------------------------


def test_failed_trials_are_failures_and_running_ones_are_pending():
    study = study_of()
    add(study, {"x": 0.5, "n": 2}, 1.0)
    add(study, {"x": 0.6, "n": 2}, state=optuna.trial.TrialState.FAIL)
    add(study, {"x": 0.7, "n": 2}, float("inf"))
    trial = study.ask(SPACE)
    states = [each.state for each in mirror_of(study).trials]
    assert states == [State.DONE, State.FAILED, State.FAILED, State.RUNNING]
    study.tell(trial, 0.3)
    assert mirror_of(study).trials[3].value == 0.3


def test_a_pruned_trial_counts_with_the_value_and_the_step_that_it_has_reached():
    study = study_of()
    add(study, {"x": 0.5, "n": 2}, 0.1, intermediate_values={step: 1.0 / (step + 1) for step in range(10)})
    add(study, {"x": 0.9, "n": 2}, state=optuna.trial.TrialState.PRUNED, intermediate_values={0: 2.0, 3: 1.5})
    add(study, {"x": 0.9, "n": 3}, state=optuna.trial.TrialState.PRUNED)
    done, pruned, silent = mirror_of(study).trials
    assert (done.value, done.fidelity, len(done.reports)) == (0.1, {optuna_mirror.STEP: 10}, 10)
    assert (pruned.value, pruned.fidelity, pruned.state) == (1.5, {optuna_mirror.STEP: 4}, State.DONE)
    assert silent.state is State.FAILED
    assert optuna_mirror.STEP not in study.ask(SPACE).params


@pytest.mark.parametrize("steps", [[0], [2, 5]], ids=str)
def test_a_trial_that_was_pruned_at_the_last_step_is_never_the_best(steps):
    study = study_of()
    for x in (0.1, 0.7):
        state = optuna.trial.TrialState.PRUNED if x < 0.5 else optuna.trial.TrialState.COMPLETE
        add(study, {"x": x, "n": 2}, x, state, intermediate_values=dict.fromkeys(steps, x))
    pruned, done = mirror_of(study).trials
    assert (pruned.state, pruned.value) == (State.DONE, 0.1)  # the model learns from it
    assert pruned.fidelity[optuna_mirror.STEP] + 1 == done.fidelity[optuna_mirror.STEP]
    assert mirror_of(study).history.best.value == 0.7
    assert set(study.ask(SPACE).relative_params) == {"x", "n"}


def test_with_intermediate_values_the_model_suggests_at_the_last_step():
    study = study_of(ShoestringSampler(seed=0, initial=3))
    for k in range(6):
        curve = {step: (k / 10 - 0.2) ** 2 + 1.0 / (step + 1) for step in range(5)}
        add(study, {"x": k / 10, "n": 1}, curve[4], intermediate_values=curve)
    assert set(study.ask(SPACE).relative_params) == {"x", "n"}
    mirror = mirror_of(study)
    assert mirror.trials[6].suggestion["by"] == "LogEI"
    assert mirror.trials[6].fidelity == {optuna_mirror.STEP: 5}


def test_costs_are_durations_or_a_user_attribute_or_none():
    for cost, expected in (("seconds", 0.0), ("usd", 2.5), (None, None)):
        study = study_of(ShoestringSampler("Random", cost=cost, seed=0))
        add(study, {"x": 0.5, "n": 2}, 1.0, user_attrs={"usd": 2.5})
        assert mirror_of(study).trials[0].cost == expected
        assert mirror_of(study).study.unit == ("usd" if cost == "usd" else "s")


def test_a_cost_that_is_no_number_is_an_error_that_says_what_to_set():
    study = study_of(ShoestringSampler("Random", cost="usd", seed=0))
    add(study, {"x": 0.5, "n": 2}, 1.0, user_attrs={"usd": "two"})
    with pytest.raises(st.MethodError, match=r"trial 0: its cost, the user attribute 'usd', is 'two'; set a number"):
        study.ask(SPACE)


def test_a_cost_may_be_any_real_number():
    for given in (np.float32(2.5), np.int64(2), Decimal("2.5")):
        study = study_of(ShoestringSampler("Random", cost="usd", seed=0))
        add(study, {"x": 0.5, "n": 2}, 1.0, user_attrs={"usd": given})
        assert mirror_of(study).trials[0].cost == float(given)
    study = study_of(ShoestringSampler("Random", cost="usd", seed=0))
    add(study, {"x": 0.5, "n": 2}, 1.0, user_attrs={"usd": np.bool_(True)})
    with pytest.raises(st.MethodError, match="set a number of 0 or more"):
        study.ask(SPACE)


@pytest.mark.parametrize("folds", [5, "stratified", [0.1], [0.1, None], [0.1, float("nan")], [True, False], {"a": 1}], ids=str)
def test_an_attribute_called_folds_that_is_no_list_of_numbers_is_ignored(folds):
    study = study_of()
    add(study, {"x": 0.5, "n": 2}, 1.0, user_attrs={"folds": folds})
    add(study, {"x": 0.5, "n": 3}, 1.0, user_attrs={"folds": folds}, system_attrs={"terminator:cv_scores": [0.5, 1.5]})
    add(study, {"x": 0.5, "n": 4}, 1.0, user_attrs={"folds": np.array([0.25, 1.75])})
    assert [trial.folds for trial in mirror_of(study).trials] == [None, (0.5, 1.5), (0.25, 1.75)]


def test_expensive_regions_are_avoided_under_a_budget_in_cost():
    study = study_of(ShoestringSampler(cost="usd", seed=0, budget=st.Budget(cost=400.0), initial=6))
    distributions = {"x": FloatDistribution(0.0, 1.0), "expensive": CategoricalDistribution([False, True])}
    paid = []
    for _ in range(16):
        trial = study.ask(distributions)
        paid.append(20.0 if trial.params["expensive"] else 0.5)
        trial.set_user_attr("usd", paid[-1])
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    assert paid[6:].count(20.0) <= 2


# -- several workers, storages, ask and tell -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_every_storage_serves(kind, tmp_path):
    storage = None
    if kind == "sqlite":
        storage = f"sqlite:///{tmp_path}/optuna.db"
    if kind == "journal":
        backend = optuna.storages.journal.JournalFileBackend(f"{tmp_path}/journal.log")
        storage = optuna.storages.JournalStorage(backend)
    study = study_of(ShoestringSampler("EI", seed=0, initial=2), storage=storage)
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=5)
    assert len(mirror_of(study).trials) == 5
    assert study.best_value < 1.0


def test_workers_on_one_storage_see_each_others_running_trials(tmp_path):
    storage = f"sqlite:///{tmp_path}/optuna.db"
    one = study_of(ShoestringSampler("Sobol", seed=0), storage=storage, study_name="shared")
    add(one, {"x": 0.5, "n": 2}, 1.0)
    other = optuna.load_study(study_name="shared", storage=storage, sampler=ShoestringSampler("Sobol", seed=0))
    first = one.ask()  # it has asked for no parameter yet
    second = other.ask()
    assert second.relative_params
    assert first.relative_params
    third = one.ask()
    assert third.relative_params
    pending = [each.config for each in mirror_of(one).trials if each.state is State.RUNNING]
    assert len(pending) >= 2
    assert second.relative_params["x"] in [config["x"] for config in pending]


def test_workers_with_one_seed_suggest_different_configs(tmp_path):
    storage = f"sqlite:///{tmp_path}/optuna.db"
    one = study_of(ShoestringSampler("Random", seed=0), storage=storage, study_name="shared")
    other = optuna.load_study(study_name="shared", storage=storage, sampler=ShoestringSampler("Random", seed=0))
    values = [study.ask().suggest_float("x", 0, 1) for study in (one, other, one)]
    assert len(set(values)) == 3


def test_threads_of_optuna_share_a_sampler():
    study = study_of(ShoestringSampler("EI", seed=0, initial=3))
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=8, n_jobs=2)
    values = [trial.params["x"] for trial in study.trials]
    assert len(set(values)) == 8


def test_a_sampler_travels_to_other_processes_without_what_it_has_read():
    study = study_of(ShoestringSampler("EI", cost=None, seed=7))
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=2)
    copy = pickle.loads(pickle.dumps(study.sampler))
    assert repr(copy) == repr(study.sampler)
    study.sampler = copy
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=1)


def test_enqueued_values_count_as_they_were_evaluated():
    study = study_of()
    add(study, {"x": 0.5, "n": 2}, 1.0)
    study.enqueue_trial({"x": 0.125})
    trial = study.ask(SPACE)
    assert trial.params["x"] == 0.125
    study.tell(trial, 0.4)
    assert mirror_of(study).trials[1].config["x"] == 0.125


def test_a_study_is_read_trial_by_trial_and_not_made_anew(monkeypatch):
    made, put = [], []
    make, write = optuna_mirror.Mirror.__init__, optuna_mirror.to_trial
    monkeypatch.setattr(optuna_mirror.Mirror, "__init__", lambda self, *given: (made.append(1), make(self, *given))[1])
    monkeypatch.setattr(optuna_mirror, "to_trial", lambda *given: (put.append(1), write(*given))[1])
    study = study_of()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=20)
    assert (len(made), len(put)) == (1, 19)  # the last trial has not been read yet


def test_the_same_seed_gives_the_same_trials():
    def values():
        study = study_of(ShoestringSampler(seed=5, initial=3))
        study.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.2) ** 2, n_trials=6)
        return [trial.params["x"] for trial in study.trials]

    assert values() == values()


def test_values_are_maximized_where_the_study_says_so():
    study = study_of(ShoestringSampler(seed=0, initial=4), direction="maximize")
    study.optimize(lambda trial: -((trial.suggest_float("x", -1, 1) - 0.2) ** 2), n_trials=10)
    assert study.best_value > -1e-3


def test_a_finite_space_that_is_exhausted_goes_on_at_random(caplog):
    study = study_of(ShoestringSampler("EI", seed=0, initial=2))
    study.optimize(lambda trial: trial.suggest_int("n", 1, 3), n_trials=6)
    assert [text for text in caplog.messages if "further suggestions are random" in text] != []


# -- what it refuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [st.CFKG(), st.Hyperband(), "BOCA"])
def test_methods_that_choose_fidelities_are_refused(method):
    with pytest.raises(st.MethodError, match=r"chooses fidelities, .* use \"auto\" or st.EI\(\)"):
        ShoestringSampler(method)


def test_several_objectives_are_refused():
    study = study_of(directions=["minimize", "minimize"])
    with pytest.raises(st.MethodError, match="2 objectives, and Shoestring optimizes one; use a sampler for several"):
        study.ask(SPACE)


def test_wrong_arguments_are_refused_when_the_sampler_is_made():
    with pytest.raises(st.MethodError, match="cost must be"):
        ShoestringSampler(cost=3.0)
    with pytest.raises(st.MethodError, match="is a class; write EI"):
        ShoestringSampler(st.EI)
    with pytest.raises(st.BudgetError):
        ShoestringSampler(budget="many")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": st.EICool()}, r"EICool\(.*\) needs to know the budget; give what the study may spend: .*budget="),
        ({"budget": "20 USD"}, "the budget is in USD, but cost='seconds' counts no USD; name the user attribute"),
        ({"cost_model": 3}, "cost_model"),
        ({"model": 3}, "model"),
    ],
)
def test_options_that_cannot_be_right_are_refused_when_the_sampler_is_made(options, message):
    with pytest.raises(st.MethodError, match=message):
        ShoestringSampler(**options)
    assert ShoestringSampler("EICool", budget="3h").options.budget.seconds == 3 * 3600


def test_a_cost_that_trials_do_not_have_is_said_once(caplog):
    study = optuna.create_study(sampler=ShoestringSampler("Random", cost="eur", seed=0))

    def priced(trial):
        trial.set_user_attr("usd", 1.0)
        return trial.suggest_float("x", 0, 1)

    study.optimize(priced, n_trials=3)
    said = [text for text in caplog.messages if "which cost= names" in text]
    assert len(said) == 1
    assert said[0].startswith("trial 0 has no user attribute 'eur', which cost= names; set it in the objective: ")
    assert said[0].endswith("; it has: usd")
