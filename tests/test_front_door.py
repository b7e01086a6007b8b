"""Traps of the Python interface: each is refused at the call, or does what a newcomer expects."""

import functools
import logging
import re

import pytest

import shoestring as st

SPACE = st.Space(x=st.Float(0, 1), kind=st.Choice("a", "b"), depth=st.Int(1, 9, when={"kind": "b"}))
LINE = st.Space(x=st.Float(0, 1))
CURVE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
RANDOM = {"method": st.Random(), "progress": False}


def value(config):
    return config["x"]


# -- report ------------------------------------------------------------------------------------------------------------


def curve(*reports, **options):
    """The reports of one trial, as they are stored."""

    def objective(config, trial):
        for given in reports:
            trial.report(*given)
        return 0.5

    study = st.Study(options.get("space", CURVE), st.Random())
    study.enqueue({"x": 0.5})
    return study.minimize(objective, 1, raise_errors=True).history[0].reports


def test_a_step_after_the_value_is_the_fidelity_and_not_the_cost():
    assert curve((0.9, 1), (0.8, 4)) == (
        {"value": 0.9, "fidelity": {"epochs": 1}, "cost": None}, {"value": 0.8, "fidelity": {"epochs": 4}, "cost": None},
    )  # fmt: skip


def test_everything_else_that_is_reported_has_a_name():
    with pytest.raises(TypeError):
        curve((0.9, 1, 3.0))


def test_a_step_that_means_nothing_is_refused():
    with pytest.raises(st.OutcomeError, match="the space has no fidelity, so the step 3 has no meaning"):
        curve((0.9, 3), space=LINE)
    two = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(10, 90))
    with pytest.raises(st.OutcomeError, match="say of which fidelity"):
        curve((0.9, 3), space=two)


def test_epochs_that_are_counted_from_0_are_told_to_count_from_1():
    with pytest.raises(st.OutcomeError, match="count from 1"):
        curve((0.9, 0))


# -- spaces ------------------------------------------------------------------------------------------------------------


def test_a_single_list_holds_the_options_of_a_choice():
    assert st.Choice(["a", "b"]) == st.Choice(("a", "b")) == st.Choice("a", "b")
    assert st.Choice([[64, 64]]).options == ([64, 64],)
    assert st.Choice([64, 64], [128]).options == ([64, 64], [128])
    assert st.Space.from_json(st.Space(c=st.Choice([["a", "b"]])).to_json())["c"].options == (["a", "b"],)


@pytest.mark.parametrize("kind", [st.Float, st.Int, st.Fidelity])
def test_reversed_bounds_are_refused_at_the_call(kind):
    with pytest.raises(st.SpaceError, match=re.escape(f"low is above high; write {kind.__name__}(1, 5)")):
        kind(5, 1)


# -- names and texts ---------------------------------------------------------------------------------------------------


def test_a_study_is_named_after_its_objective():
    assert st.minimize(value, LINE, 1, **RANDOM).study.name == "value"
    assert st.minimize(functools.partial(value), LINE, 1, **RANDOM).study.name == "value"
    assert st.minimize(lambda config: 0.5, LINE, 1, **RANDOM).study.name == "study"
    assert st.minimize(value, LINE, 1, name="mine", **RANDOM).study.name == "mine"


def test_two_objectives_with_one_storage_are_two_studies_and_nothing_to_do_is_said(tmp_path, caplog):
    def other(config):
        return -config["x"]

    path = tmp_path / "tune.db"
    first = st.minimize(value, LINE, 4, storage=path, **RANDOM)
    second = st.minimize(other, LINE, 4, storage=path, **RANDOM)
    assert second.best.value < 0 <= first.best.value
    caplog.clear()
    again = st.minimize(value, LINE, 4, storage=path, **RANDOM)
    assert "0 new trials: 4 were there" in caplog.text
    assert "0 new trials: 4 were there" in str(again)


def test_methods_and_rules_are_read_from_texts_as_on_the_command_line():
    study = st.Study(LINE, "EI", "Patience(30) | SureBound(0.01)")
    assert study.method == st.Study(LINE, st.EI()).method
    assert study.rule == st.Patience(30) | st.SureBound(0.01)
    assert st.Study(LINE, "EIAlpha(0.5)").method.acquisition == st.EIAlpha(0.5)
    assert st.Study(LINE, stop="none").rule is None
    with pytest.raises(st.MethodError, match="there is no EII; there are Random"):
        st.Study(LINE, "EII")


def test_costs_and_times_are_read_from_texts_as_on_the_command_line():
    paid = st.minimize(lambda config: st.Outcome(0.5, cost=6.0), LINE, "20 USD", **RANDOM)
    assert (paid.unit, paid.spent) == ("USD", 18.0)
    assert st.minimize(value, LINE, "2 trials", **RANDOM).history.trials_used == 2
    assert st.Study(LINE, budget="10 minutes").budget == st.Budget(seconds=600.0)
    with pytest.raises(st.BudgetError, match="has no unit: is it time or cost"):
        st.minimize(value, LINE, 600.0, **RANDOM)


def test_two_units_are_refused_at_the_call():
    with pytest.raises(st.BudgetError, match="unit='USD' and a budget in EUR"):
        st.Study(LINE, unit="USD", budget="20 EUR")
    with pytest.raises(st.BudgetError, match="unit='USD' and a budget in EUR"):
        st.minimize(value, LINE, "20 EUR", unit="USD", **RANDOM)


def test_a_study_that_is_not_there_is_not_made_by_loading_it(tmp_path):
    with pytest.raises(st.StorageError, match="there is no file"):
        st.Study.load(tmp_path / "missing.db")
    assert list(tmp_path.iterdir()) == []


# -- results -----------------------------------------------------------------------------------------------------------


def test_a_value_and_an_error_are_not_told_together():
    study = st.Study(LINE)
    trial = study.ask()
    for given in ({"value": 0.5}, {"folds": [0.5, 0.6]}, {"value": st.Outcome(0.5)}):
        with pytest.raises(st.OutcomeError, match="a value or an error, not both"):
            study.tell(trial, error="out of memory", **given)
        with pytest.raises(st.OutcomeError, match="a value or an error, not both"):
            study.add({"x": 0.5}, error="out of memory", **given)
    assert study.tell(trial, error="out of memory", cost=3.0).state is st.State.FAILED


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_results_from_elsewhere_take_nothing_from_the_budget(database):
    study = st.Study(LINE, st.Random(), storage=database.open())
    for number in range(5):
        study.add({"x": number / 10}, 0.3, cost=3.0)
    assert study.history.spent == 0.0
    assert study.minimize(lambda config: st.Outcome(0.5, cost=3.0), st.Budget(cost=9.0)).spent == 9.0
    result = study.minimize(lambda config: st.Outcome(0.5, cost=3.0), 5)
    assert (len(result.history), result.history.trials_used, result.history.trials_added) == (10, 5, 5)
    assert [trial.added for trial in st.Study.load(database.open()).history] == [True] * 5 + [False] * 5
    assert database.open().check() == []


def test_enqueue_has_what_is_missing_suggested():
    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.25})
    study.enqueue({"depth": 3})
    study.enqueue({"kind": "b", "depth": 4})
    one, two, three = study.ask_many(3)
    assert one.config["x"] == 0.25
    assert two.config | {"x": 0.0} == {"x": 0.0, "kind": "b", "depth": 3}  # the parent of what was given
    assert three.config | {"x": 0.0} == {"x": 0.0, "kind": "b", "depth": 4}
    assert "enqueued, the rest suggested" in one.suggestion["why"]
    assert len({trial.config["x"] for trial in (two, three)}) == 2
    for wrong in ({"y": 1}, {"x": 3.0}, {"kind": "a", "depth": 3}):
        with pytest.raises(st.ConfigError):
            study.enqueue(wrong)
    study = st.Study(CURVE, st.Random())
    study.enqueue({})
    assert study.ask().config["epochs"] == 9


# -- what people record ------------------------------------------------------------------------------------------------


def noted(config, trial):
    trial.set_attr("host", "gpu3")
    trial.set_attr("layers", (64, 64))
    if config["x"] > 0.5:
        raise MemoryError
    return st.Outcome(config["x"], metrics={"accuracy": 0.93, "loss": float("nan")}, attrs={"rows": 10})


@pytest.mark.parametrize("how", [{}, {"timeout": 60}], ids=["here", "processes"])
def test_metrics_and_attributes_are_kept_with_the_trial(how, tmp_path):
    study = st.Study(LINE, st.Random(), storage=tmp_path / "tune.db")
    study.enqueue({"x": 0.2})
    study.enqueue({"x": 0.9})
    study.minimize(noted, 2, progress=False, **how)
    for history in (study.history, st.Study.load(tmp_path / "tune.db").history, st.Study.from_json(study.to_json()).history):
        good, bad = sorted(history, key=lambda trial: trial.config["x"])
        assert good.metrics == {"accuracy": 0.93, "loss": None}
        assert good.attrs == {"host": "gpu3", "layers": [64, 64], "rows": 10}
        assert bad.attrs == {"host": "gpu3", "layers": [64, 64]}
        assert bad.state is st.State.FAILED


def test_tell_and_add_take_metrics_and_attributes():
    study = st.Study(LINE)
    assert study.tell(study.ask(), 0.5, metrics={"auc": 1}, attrs={"a": None}).metrics == {"auc": 1.0}
    assert study.add({"x": 0.5}, 0.5, attrs={"from": "paper"}).attrs == {"from": "paper"}
    trial = study.ask()
    for wrong in ({"metrics": {"auc": "high"}}, {"metrics": [1]}, {"attrs": {"f": value}}, {"attrs": {1: 2}}):
        with pytest.raises(st.OutcomeError):
            study.tell(trial, 0.5, **wrong)
    assert study.history[trial.number].state is st.State.RUNNING


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_attributes_of_a_study_are_stored_at_once(database):
    study, other = (st.Study(LINE, storage=database.open()) for _ in range(2))
    study.attrs["data"] = {"version": 3}
    other.set_attr("who", "me")
    study.minimize(value, 2, progress=False)
    assert dict(other.attrs) == dict(study.attrs) == {"data": {"version": 3}, "who": "me"}
    assert dict(st.Study.from_json(study.to_json()).attrs) == {"data": {"version": 3}, "who": "me"}
    del other.attrs["who"]
    assert list(st.Study.load(database.open()).attrs) == ["data"]
    with pytest.raises(KeyError):
        del study.attrs["who"]
    with pytest.raises(st.OutcomeError, match="cannot be stored"):
        study.attrs["f"] = value


# -- warm start --------------------------------------------------------------------------------------------------------


def test_a_prior_brings_what_fits_and_says_what_it_left_out(caplog):
    caplog.set_level(logging.INFO, "shoestring")
    old = st.Study(st.Space(x=st.Float(-1, 1)), st.Random(), name="old")
    for x in (-0.5, 0.25, 0.75):
        old.add({"x": x}, x, cost=2.0, metrics={"auc": 0.5})
    old.add({"x": 0.5}, error="out of memory")
    old.ask()
    study = st.Study(LINE, st.EI(), prior=[old])
    assert [trial.config["x"] for trial in study.history] == [0.25, 0.75, 0.5]
    assert all(trial.added for trial in study.history)
    assert study.history[0].metrics == {"auc": 0.5}
    assert study.history.spent == 0.0
    assert "3 trials of study 'old' taken" in caplog.text
    assert "1 (x lies outside its bounds [0, 1])" in caplog.text
    assert "1 (running)" in caplog.text
    assert study.minimize(value, 2).history.trials_used == 2


def test_a_prior_is_taken_once_and_needs_the_same_direction(tmp_path):
    old = st.minimize(value, LINE, 3, **RANDOM)
    for _ in range(2):
        study = st.Study(LINE, storage=tmp_path / "tune.db", prior=[old])
    assert len(study.history) == 3
    with pytest.raises(st.StudyError, match="the other direction"):
        st.Study(LINE, direction="maximize", prior=[old])
    with pytest.raises(st.StudyError, match="prior= takes studies or results"):
        st.Study(LINE, prior=[{"x": 0.5}])


# -- interruptions -----------------------------------------------------------------------------------------------------


def interrupting(config):
    raise KeyboardInterrupt


def test_ctrl_c_prints_the_summary_and_raises(capsys):
    with pytest.raises(KeyboardInterrupt) as interrupted:
        st.minimize(interrupting, LINE, 5, **RANDOM)
    assert "interrupted; trial 0 will be asked again" in capsys.readouterr().err
    assert interrupted.value.study.minimize(value, 5).history.trials_used == 5
    assert interrupted.value.result.stop.kind == "interrupted"


def test_ctrl_c_returns_where_that_is_wanted_and_in_notebooks(monkeypatch, capsys):
    assert st.minimize(interrupting, LINE, 5, on_interrupt="return", **RANDOM).stop.kind == "interrupted"
    monkeypatch.setattr("shoestring.execution.interruption.in_notebook", lambda: True)
    assert st.minimize(interrupting, LINE, 5, **RANDOM).stop.kind == "interrupted"
    assert "interrupted" not in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        st.minimize(interrupting, LINE, 5, on_interrupt="raise", **RANDOM)
    with pytest.raises(st.MethodError, match="on_interrupt"):
        st.minimize(value, LINE, 5, on_interrupt="ignore", **RANDOM)
