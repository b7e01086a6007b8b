"""The public API: the names, arguments and results that other programs are written against."""

import inspect
import math

import pytest

import shoestring as st


def make_space():
    return st.Space(
        lr=st.Float(1e-5, 1e-1, log=True),
        depth=st.Int(2, 12),
        booster=st.Choice("gbtree", "dart"),
        rate_drop=st.Float(0, 0.5, when={"booster": "dart"}),
        epochs=st.Fidelity(1, 50),
    )


def train(config):
    return (math.log10(config["lr"]) + 3) ** 2 + (config["depth"] - 6) ** 2 / 10 + config.get("rate_drop", 0.3)


def test_minimize_in_one_line():
    result = st.minimize(train, make_space(), budget=12, seed=0)
    assert result.best.value == min(trial.value for trial in result.history) == train(result.best.config)
    assert set(result.best.config) - {"rate_drop"} == {"lr", "depth", "booster", "epochs"}
    assert result.recommended.config.keys() <= set(make_space())
    assert result.spent == pytest.approx(sum(trial.cost for trial in result.history))
    assert "12 trials" in result.stop.reason
    assert result.stop.stop is True
    assert len(result.history) == 12


def test_maximize_likewise():
    result = st.maximize(train, make_space(), budget=8, seed=0)
    assert result.best.value == max(trial.value for trial in result.history)


def test_ask_and_tell():
    study = st.Study(make_space(), method="auto", stop="auto", seed=0, name="xgb")
    trial = study.ask()
    assert trial.number == 0
    assert type(trial.config) is dict
    assert 1 <= trial.config["epochs"] <= 50
    assert trial.fidelity == {"epochs": trial.config["epochs"]}
    assert ("rate_drop" in trial.config) == (trial.config["booster"] == "dart")
    study.tell(trial, 0.031, cost=12.5)
    study.tell(study.ask(), folds=[0.1, 0.3])
    third = study.ask()
    study.tell(third, 0.2, gradient={"lr": 0.5})
    study.tell(study.ask(), error="out of memory")
    study.tell(study.ask(), st.Outcome(0.5, cost=2.0, folds=[0.4, 0.6], gradient=None))
    assert [t.state for t in study.history] == ["done", "done", "done", "failed", "done"]
    assert [t.value for t in study.history] == [0.031, pytest.approx(0.2), 0.2, None, 0.5]
    assert study.history[0].cost == 12.5
    assert study.history[1].folds == (0.1, 0.3)
    assert study.history[2].gradient == {"lr": 0.5}
    assert study.history[3].error == "out of memory"
    assert len(study.history) == 5
    assert study.name == "xgb"


def test_tell_takes_the_number_of_a_trial_too():
    study = st.Study(make_space())
    study.tell(study.ask().number, 0.5)
    assert study.best.value == 0.5


def test_enqueue_and_add():
    study = st.Study(make_space())
    mine = {"lr": 1e-3, "depth": 5, "booster": "gbtree"}
    study.enqueue(mine)
    added = study.add(mine | {"depth": 6}, 0.05, cost=9.0)
    assert (added.number, added.state, added.cost) == (0, "done", 9.0)
    assert study.ask().config == mine | {"epochs": 50}
    assert study.ask().config["lr"] != 1e-3


def test_an_objective_with_a_second_parameter_gets_the_live_trial():
    def objective(config, trial):
        trial.report(1.0, epochs=1, cost=1.0)
        assert trial.should_stop() is False
        assert trial.checkpoint_dir.is_dir()
        trial.checkpoint_dir.rmdir()
        return st.Outcome(0.5, cost=5.0)

    result = st.minimize(objective, make_space(), budget=1)
    assert result.best.value == 0.5
    assert result.spent == 5.0


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, None, "0.3", [1.0], True, pytest.param(object(), id="object")], ids=repr
)
def test_a_bad_result_is_a_failed_trial_and_the_study_goes_on(bad):
    values = iter([0.5, bad, 0.25])
    result = st.minimize(lambda config: next(values), make_space(), budget=3)
    assert [trial.state for trial in result.history] == ["done", "failed", "done"]
    failed = result.history[1]
    assert failed.error
    assert failed.cost > 0
    assert failed.value is None
    assert result.best.value == 0.25


def test_an_exception_is_a_failed_trial_and_the_study_goes_on():
    def objective(config):
        raise RuntimeError("CUDA out of memory")

    result = st.minimize(objective, make_space(), budget=3, max_failures=3)
    assert [trial.state for trial in result.history] == ["failed"] * 3
    assert "CUDA out of memory" in result.history[0].error
    assert result.spent > 0


def test_without_a_cost_the_measured_seconds_are_the_cost():
    result = st.minimize(train, make_space(), budget=2)
    assert all(trial.cost == trial.seconds > 0 for trial in result.history)


@pytest.mark.parametrize("budget", ["10m", "3h", "45s", 3, st.Budget(trials=3, seconds=60, cost=3.0, unit="USD")], ids=str)
def test_every_kind_of_budget(budget):
    def stop_after_three(study, trial):
        if trial.number == 2:
            study.halt("enough")

    result = st.minimize(lambda config: 0.5, make_space(), budget, method=st.Random(), callbacks=[stop_after_three])
    assert len(result.history) == 3


@pytest.mark.parametrize(
    "method", ["auto", st.Random(), st.Sobol(), st.EI(), st.LogEI(), st.PI(), st.LCB(), st.Hyperband(), st.BOCA()], ids=repr
)
def test_every_method(method):
    result = st.minimize(train, make_space(), 7, method=method, seed=3, initial=5)
    assert len(result.history) == 7
    assert all(trial.state == "done" for trial in result.history)


@pytest.mark.parametrize(
    "model",
    [st.GP(), st.GP(kernel="se"), st.GP(kernel="matern52", inference="map", warp=True), st.GP(inference="mcmc", sets=3)],
    ids=repr,
)
def test_every_model(model):
    assert len(st.minimize(train, make_space(), 7, model=model, initial=5).history) == 7


def test_every_public_name_is_there_and_an_editor_is_offered_no_other():
    for name in st.__all__:
        if name != "plot":
            assert getattr(st, name) is not None
    assert isinstance(st.__version__, str)
    assert len(set(st.__all__)) == len(st.__all__)
    assert set(dir(st)) == {*st.__all__, "__version__"}
    assert [name for name in st.__all__ if name.startswith("_")] == []
    assert [name for name in st.__all__ if inspect.ismodule(getattr(st, name)) and name != "plot"] == []
    with pytest.raises(AttributeError, match="nonsense"):
        _ = st.nonsense


def test_every_error_is_a_shoestring_error():
    public = [getattr(st, name) for name in st.__all__ if name != "plot"]
    errors = [item for item in public if inspect.isclass(item) and issubclass(item, Exception)]
    assert len(errors) >= 8
    assert all(issubclass(error, st.ShoestringError) for error in errors)


def parameters(function):
    return inspect.signature(function).parameters


def test_the_arguments_in_their_order():
    assert list(parameters(st.Study))[:4] == ["space", "method", "stop", "seed"]
    assert list(parameters(st.minimize))[:3] == ["objective", "space", "budget"]
    assert list(parameters(st.maximize))[:3] == ["objective", "space", "budget"]
    assert list(parameters(st.Outcome)) == ["value", "cost", "folds", "gradient", "metrics", "attrs"]
    assert list(parameters(st.Budget))[:4] == ["trials", "seconds", "cost", "unit"]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_minimize_and_maximize_name_every_option_of_a_study_and_its_run(direction):
    given, run = parameters(getattr(st, direction)), parameters(getattr(st.Study, direction))
    made = {name: option for name, option in parameters(st.Study).items() if name != "direction"}  # said by the function's name
    assert not [name for name, option in given.items() if option.kind in (option.VAR_KEYWORD, option.VAR_POSITIONAL)]
    assert set(given) == (set(made) | set(run)) - {"self"}
    for name, option in given.items():
        source = run.get(name, made.get(name))
        assert option.annotation == source.annotation, name
        assert option.default == source.default, name
    assert [name for name, option in given.items() if option.kind is not option.KEYWORD_ONLY] == ["objective", "space", "budget"]


def test_a_study_is_one_readable_line_in_print(tmp_path):
    study = st.Study(make_space(), name="xgb", unit="USD")
    assert repr(study) == "Study 'xgb' to minimize: 0 trials, nothing finished yet, spent 0 USD, in memory"
    study.tell(study.ask(), 0.25, cost=2.0)
    assert repr(study) == "Study 'xgb' to minimize: 1 trial, best 0.25 (trial 0), spent 2 USD, in memory"
    stored = st.Study(make_space(), storage=tmp_path / "tune.db", direction="maximize")
    stored.tell(stored.ask(), 0.25, cost=2.0)
    assert "\n" not in repr(stored)
    assert repr(stored).startswith("Study 'study' to maximize: 1 trial, best 0.25 (trial 0), spent 2 s, in sqlite:///")
    assert repr(stored).endswith("tune.db")
