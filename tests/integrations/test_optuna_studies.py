"""Studies and spaces from Optuna and to Optuna."""

import math

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import shoestring as st
from shoestring.integrations.optuna import from_distributions, from_optuna, to_distributions, to_optuna
from shoestring.integrations.optuna_spaces import conditions_of

BRIDGED = [
    (FloatDistribution(0.0, 1.0), st.Float(0.0, 1.0)),
    (FloatDistribution(1e-5, 1e-1, log=True), st.Float(1e-5, 1e-1, log=True)),
    (FloatDistribution(0.0, 1.0, step=0.25), st.Float(0.0, 1.0, step=0.25)),
    (IntDistribution(1, 9), st.Int(1, 9)),
    (IntDistribution(1, 1000, log=True), st.Int(1, 1000, log=True)),
    (IntDistribution(8, 64, step=8), st.Int(8, 64, step=8)),
    (CategoricalDistribution(["a", None, 1, 2.5, True]), st.Choice("a", None, 1, 2.5, True)),
]


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)


# -- spaces -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("theirs", "ours"), BRIDGED, ids=lambda each: type(each).__name__)
def test_distributions_and_parameters_are_the_same_both_ways(theirs, ours):
    assert from_distributions({"p": theirs}) == st.Space(p=ours)
    assert to_distributions(st.Space(p=ours)) == {"p": theirs}


def test_what_a_space_cannot_express_is_an_error_that_names_it():
    with pytest.warns(UserWarning, match="persistent storage"):
        odd = CategoricalDistribution([{1, 2}, "a"])
    with pytest.raises(st.SpaceError, match=r"layers: option \{1, 2\} is not a JSON value"):
        from_distributions({"layers": odd})
    with pytest.raises(st.SpaceError, match="constant has one value"):
        from_distributions({"constant": IntDistribution(3, 3)})


def test_what_optuna_cannot_express_is_an_error_that_names_it():
    with pytest.raises(st.SpaceError, match=r"layers: option \[64, 64\] is a list, which Optuna cannot store"):
        to_distributions(st.Space(layers=st.Choice([[64, 64], [32]])))
    with pytest.raises(st.SpaceError, match="epochs is a fidelity"):
        to_distributions(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)))
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "a"}))
    with pytest.raises(st.SpaceError, match=r"x is conditional .* say conditions=True"):
        to_distributions(space)
    assert set(to_distributions(space, conditions=True)) == {"kind", "x"}


def test_a_condition_is_found_only_where_one_parameter_explains_it():
    known = {"a": CategoricalDistribution(["u", "v"]), "x": FloatDistribution(0, 1), "b": IntDistribution(1, 9)}
    configs = [{"a": "u", "b": 1, "x": 0.1}, {"a": "v", "b": 2}, {"a": "u", "b": 3, "x": 0.5}]
    assert conditions_of(configs, known) == ({"x": {"a": [0]}}, [])
    configs.append({"a": "u", "b": 3})
    assert conditions_of(configs, known) == ({}, [["x"]])


# -- studies ------------------------------------------------------------------------------------------------------------


def objective(trial):
    kind, x = trial.suggest_categorical("kind", ["tree", "net"]), trial.suggest_float("x", 1e-3, 1, log=True)
    if kind == "net":
        trial.suggest_int("layers", 1, 3)
    trial.set_user_attr("usd", 2.5)
    trial.set_user_attr("host", "gpu3")
    if trial.number == 5:
        raise RuntimeError("boom")
    for step in range(6):
        trial.report(x + math.exp(-step), step)
        if trial.number == 6 and step == 3:
            raise optuna.TrialPruned
    return x


@pytest.fixture
def theirs():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), study_name="theirs", direction="minimize")
    study.optimize(objective, n_trials=9, catch=(RuntimeError,))
    study.set_user_attr("owner", "me")
    return study


def test_an_optuna_study_becomes_one_of_ours_with_all_that_it_knows(theirs):
    theirs.enqueue_trial({"kind": "tree", "x": 0.5})
    study = from_optuna(theirs, cost="usd", stop=None)
    assert (study.name, study.direction, study.unit, study.attrs) == ("theirs", "minimize", "usd", {"owner": "me"})
    assert study.space["layers"].when == {"kind": ["net"]}
    assert study.space["step"] == st.Fidelity(1, 6)
    states = [trial.state for trial in study.history]
    assert states == [st.State.FAILED if trial.state is TrialState.FAIL else st.State.DONE for trial in theirs.trials[:9]]
    done, failed, pruned = study.history[0], study.history[5], study.history[6]
    assert (done.value, done.cost, done.attrs) == (theirs.trials[0].value, 2.5, {"host": "gpu3"})
    assert done.seconds == pytest.approx(theirs.trials[0].duration.total_seconds())
    assert [report["fidelity"]["step"] for report in done.reports] == [1, 2, 3, 4, 5, 6]
    assert failed.error == "failed in Optuna"
    assert (pruned.fidelity, pruned.value) == ({"step": 4}, theirs.trials[6].intermediate_values[3])
    assert study.best.value == theirs.best_value
    assert study.ask().config == {"kind": "tree", "x": 0.5, "step": 6}
    assert study.history.spent == 0.0


def test_a_study_of_ours_becomes_one_of_optuna_and_comes_back_the_same(theirs, tmp_path):
    study = from_optuna(theirs, cost="usd")
    study.enqueue({"kind": "tree", "x": 0.5})
    exported = to_optuna(study, storage=f"sqlite:///{tmp_path}/optuna.db", name="back")
    expected = [trial.state for trial in theirs.trials]
    assert [trial.state for trial in exported.trials] == [*expected, TrialState.WAITING]
    assert [trial.value for trial in exported.trials[:5]] == [trial.value for trial in theirs.trials[:5]]
    assert exported.trials[6].intermediate_values == {
        step + 1: value for step, value in theirs.trials[6].intermediate_values.items()
    }
    assert exported.trials[0].distributions == theirs.trials[0].distributions
    assert exported.trials[0].duration.total_seconds() == pytest.approx(theirs.trials[0].duration.total_seconds(), abs=1e-5)
    again = from_optuna(exported, cost="cost")
    assert again.space == study.space
    for one, other in zip(study.history, again.history, strict=True):
        assert (one.config, one.value, one.state, one.cost) == (other.config, other.value, other.state, other.cost)
        assert one.reports == other.reports


def test_failures_folds_and_running_trials_are_exported():
    study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random(), direction="maximize")
    study.tell(study.ask(), folds=[0.1, 0.3], cost=2.0)
    study.tell(study.ask(), error="out of memory")
    study.ask()
    done, failed, running = to_optuna(study).trials
    assert (done.value, done.user_attrs["cost"], done.system_attrs["terminator:cv_scores"]) == (0.2, 2.0, [0.1, 0.3])
    assert (failed.state, failed.user_attrs["error"]) == (TrialState.FAIL, "out of memory")
    assert running.state is TrialState.RUNNING
    assert to_optuna(study, name="second").direction.name == "MAXIMIZE"


def test_what_cannot_be_imported_or_exported_is_an_error_that_names_it(theirs):
    known = {name: each for trial in theirs.trials for name, each in trial.distributions.items() if name != "layers"}
    known["lonely"] = FloatDistribution(0, 1)
    for kind in ("tree", "net"):
        theirs.add_trial(optuna.create_trial(params={"lonely": 0.5, "x": 0.5, "kind": kind}, distributions=known, value=1.0))
    with pytest.raises(st.SpaceError, match=r"lonely: only some trials have them, and no other .* leave them out"):
        from_optuna(theirs, leave_out=["layers"])
    assert "lonely" not in from_optuna(theirs, leave_out=["lonely", "layers"]).space
    with pytest.raises(st.StudyError, match="has no space"):
        from_optuna(optuna.create_study())
    with pytest.raises(st.MethodError, match="2 objectives"):
        from_optuna(optuna.create_study(directions=["minimize", "maximize"]))
    share = st.Study(st.Space(x=st.Float(0, 1), share=st.Fidelity(0.1, 1.0)), method=st.Random())
    with pytest.raises(st.SpaceError, match="share is a fidelity that is no whole number"):
        to_optuna(share)
    assert len(to_optuna(share, intermediate=False).trials) == 0


def test_costs_and_their_unit_come_back_from_an_exported_study():
    study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random(), unit="USD")
    study.tell(study.ask(), 0.5, cost=2.0)
    again = from_optuna(to_optuna(study, name="priced"))
    assert (again.unit, again.history[0].cost, again.attrs) == ("USD", 2.0, {})
    assert "cost" not in again.history[0].attrs
    assert from_optuna(to_optuna(study, name="timed"), cost="seconds").unit == "s"


def test_a_cost_that_no_trial_has_is_an_error_that_lists_what_there_is(theirs):
    theirs.add_trial(optuna.create_trial(value=1.0, user_attrs={"usd": 1.0}))
    with pytest.raises(st.StudyError, match=r"no trial of .* has the user attribute 'eur', which .* there are: .*usd"):
        from_optuna(theirs, cost="eur")


def test_a_study_that_has_trials_is_not_exported_to_again():
    study, storage = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random()), optuna.storages.InMemoryStorage()
    study.tell(study.ask(), 0.5)
    to_optuna(study, name="once", storage=storage)
    with pytest.raises(st.StudyError, match=r"'once' has 1 trials in Optuna already.*give another name="):
        to_optuna(study, name="once", storage=storage, load_if_exists=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_optuna("tune.db"), r"expected an Optuna study, not 'tune.db'; .*load_study"),
        (lambda: to_optuna("net"), "expected a study of this library, not 'net'; of a result it is result.study"),
        (lambda: from_distributions({"x": 5}), "x: 5 is no distribution of Optuna; give a dict"),
        (lambda: to_distributions({"x": 5}), "expected an st.Space.*use from_distributions"),
    ],
)
def test_a_wrong_kind_of_argument_is_an_error_that_says_what_to_give(call, message):
    with pytest.raises((st.StudyError, st.SpaceError), match=message):
        call()


# -- pruned trials ------------------------------------------------------------------------------------------------------


def pruned_low(steps):
    """A study whose trials report x at each step; those with the lowest values are pruned at the last one."""
    study = optuna.create_study(study_name="pruned")
    for x in (0.1, 0.3, 0.7, 0.9):
        state = TrialState.PRUNED if x < 0.5 else TrialState.COMPLETE
        curve = {step: x + 0.01 * (steps[-1] - step) for step in steps}
        known = {"x": FloatDistribution(0, 1)}
        study.add_trial(
            optuna.create_trial(params={"x": x}, distributions=known, value=x, state=state, intermediate_values=curve)
        )
    return study


@pytest.mark.parametrize("steps", [[0], [5], [0, 1, 2], [3, 7]], ids=str)
def test_a_trial_that_was_pruned_at_the_last_step_is_no_result_and_is_pruned_again_when_it_goes_back(steps):
    theirs = pruned_low(steps)
    ours = from_optuna(theirs)
    assert ours.best.value == theirs.best_value == 0.7
    back = to_optuna(ours)
    assert back.best_value == 0.7
    for again in (back, to_optuna(from_optuna(back))):
        assert [each.state for each in again.trials] == [each.state for each in theirs.trials]
        assert [each.value for each in again.trials] == [each.value for each in theirs.trials]
        for one, other in zip(again.trials, theirs.trials, strict=True):
            assert list(one.intermediate_values.values()) == list(other.intermediate_values.values())
    assert from_optuna(back).best.value == 0.7


def test_a_trial_that_was_pruned_at_the_last_step_counts_at_the_step_before_and_without_one_as_failed():
    trial = from_optuna(pruned_low([0, 1, 2])).history[0]
    assert (trial.state, trial.fidelity, trial.value) == (st.State.DONE, {"step": 2}, 0.1 + 0.01)
    lone = from_optuna(pruned_low([0]))
    assert list(lone.space) == ["x"]
    assert (lone.history[0].state, lone.history[0].error) == (
        st.State.FAILED, "pruned in Optuna with no value below the last step",
    )  # fmt: skip


def test_a_trial_that_was_pruned_without_a_value_is_pruned_again_when_it_goes_back():
    theirs, known = pruned_low([0]), {"x": FloatDistribution(0, 1)}
    theirs.add_trial(optuna.create_trial(params={"x": 0.2}, distributions=known, state=TrialState.PRUNED))
    back = to_optuna(from_optuna(theirs))
    assert (back.trials[4].state, back.trials[4].value, "error" in back.trials[4].user_attrs) == (TrialState.PRUNED, None, False)


def test_a_trial_that_optuna_pruned_in_an_exported_study_without_fidelities_is_no_result():
    study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random())
    study.add({"x": 0.5}, 0.5)
    theirs = to_optuna(study)
    trial = theirs.ask({"x": FloatDistribution(0, 1)})
    trial.report(0.01, 3)
    theirs.tell(trial, state=TrialState.PRUNED)
    assert from_optuna(theirs).best.value == 0.5


# -- what is written ----------------------------------------------------------------------------------------------------


def test_a_study_that_has_trials_is_not_imported_into_again(theirs, tmp_path):
    storage = str(tmp_path / "s.db")
    first = from_optuna(theirs, storage=storage, name="a")
    with pytest.raises(st.StudyError, match=r"study 'a' has 9 trials .* twice; give another name=, .*shoestring rm a"):
        from_optuna(theirs, storage=storage, name="a")
    assert len(first.history) == 9
    assert len(from_optuna(theirs, storage=storage, name="b").history) == 9
    with st.Study.load(storage, "a") as kept:
        assert len(kept.history) == 9


def test_a_waiting_config_that_does_not_fit_is_an_error_before_anything_is_written(theirs, tmp_path):
    theirs.enqueue_trial({"kind": "tree", "x": 5.0})
    with pytest.raises(st.ConfigError, match=r"trial 9 waits in Optuna and does not fit: .*x.*; take it out of Optuna's queue"):
        from_optuna(theirs, storage=str(tmp_path / "s.db"))
    assert not (tmp_path / "s.db").exists()
    theirs.tell(theirs.ask(), state=TrialState.FAIL)  # what the error says to do
    assert len(from_optuna(theirs, storage=str(tmp_path / "s.db")).history) >= 9


def test_attributes_of_a_study_that_json_cannot_hold_are_text(theirs):
    theirs.set_user_attr("odd", {1, 2})
    assert from_optuna(theirs).attrs == {"owner": "me", "odd": "{1, 2}"}


# -- names that are taken -----------------------------------------------------------------------------------------------


def test_no_attribute_or_metric_is_overwritten_by_an_export():
    study = st.Study(st.Space(x=st.Float(0, 1)), method=st.Random(), unit="USD")
    attrs = {"cost": "high", "error": "none", "folds": [1.0, 2.0], "host": "gpu3", "loss": "mse"}
    study.tell(study.ask(), 0.5, cost=2.0, metrics={"cost": 7.0, "folds": 5.0, "loss": 0.25}, attrs=attrs)
    study.tell(study.ask(), error="out of memory")
    theirs = to_optuna(study, name="names")
    assert theirs.trials[0].user_attrs == {
        "cost": 2.0, "attrs.cost": "high", "attrs.error": "none", "attrs.folds": [1.0, 2.0], "host": "gpu3", "loss": "mse",
        "metrics.cost": 7.0, "folds": 5.0, "metrics.loss": 0.25,
    }  # fmt: skip
    again = from_optuna(theirs)
    assert (again.history[0].cost, again.history[0].folds, again.history[0].attrs["folds"]) == (2.0, None, 5.0)
    assert again.history[1].error == "out of memory"


def test_an_attribute_called_error_of_a_complete_trial_is_kept():
    theirs, known = optuna.create_study(), {"x": FloatDistribution(0, 1)}
    theirs.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=known, value=0.5, user_attrs={"error": 0.1}))
    assert from_optuna(theirs).history[0].attrs == {"error": 0.1}
