"""Training callbacks: each epoch is reported, a stop ends the training, a run goes on from its checkpoint."""

import json
import math

import pytest

import shoestring as st
from shoestring.integrations.callback import TrainingCallback
from tests.integrations.training import KerasCallbackBase, KerasModel, LightningTrainer, live_trial, stand_in

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 20))
RESUMABLE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 20, resumable=True))
PLAIN = st.Space(x=st.Float(0, 1))


def train(loop, value=lambda epoch: 1 / epoch):
    """A loop that keeps how far it is in its checkpoint."""
    for epoch in loop:
        if loop.step(value(epoch), save=lambda path, epoch=epoch: path.write_text(str(epoch))):
            break
    return loop


# -- any loop --------------------------------------------------------------------------------------------------------


def test_every_epoch_is_reported_at_its_fidelity(tmp_path):
    trial = live_trial(SPACE, tmp_path / "run", epochs=4)
    loop = train(TrainingCallback(trial))
    assert [(report["fidelity"], report["value"]) for report in trial.reports] == [({"epochs": n}, 1 / n) for n in (1, 2, 3, 4)]
    assert (loop.value, loop.epoch, loop.stopped) == (0.25, 4, False)
    assert not (tmp_path / "run").exists()  # the fidelity does not say that runs can go on


def test_a_stop_ends_the_training_with_the_value_of_that_epoch(tmp_path):
    trial = live_trial(RESUMABLE, tmp_path / "run", stop_after=3)
    loop = train(TrainingCallback(trial))
    assert (loop.value, loop.epoch, loop.stopped) == (1 / 3, 3, True)
    assert json.loads((tmp_path / "run" / "training.json").read_text()) == {"epoch": 3, "value": 1 / 3, "file": "epoch-3"}


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=5)))
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=8)
    loop = TrainingCallback(trial)
    assert (loop.done, loop.remaining, list(loop), loop.file.read_text()) == (5, 3, [6, 7, 8], "5")
    train(loop)
    assert [report["fidelity"]["epochs"] for report in trial.reports] == [6, 7, 8]
    assert [path.name for path in sorted((tmp_path / "run").iterdir())] == ["epoch-8", "training.json"]  # the last one alone


def test_a_run_that_was_killed_after_its_last_epoch_has_its_value(tmp_path):
    train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=5)))
    again = train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=5)))
    assert (again.value, list(again)) == (0.2, [])


def test_a_checkpoint_beyond_what_is_asked_or_half_written_is_not_used(tmp_path):
    train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=5)))
    assert TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=3)).file is None
    (tmp_path / "run" / "epoch-6").write_text("half")  # killed while it was written: the index names the one before
    assert TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=9)).done == 5
    (tmp_path / "run" / "training.json").write_text('{"epoch": 7, "file": "../../etc/passwd"}')
    assert TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=9)).file is None


def test_checkpoints_are_saved_as_often_as_is_said(tmp_path):
    saved = []
    loop = TrainingCallback(live_trial(SPACE, tmp_path / "run", epochs=7), checkpoint=3)
    for epoch in loop:
        loop.step(0.5, save=lambda path, epoch=epoch: (saved.append(epoch), path.write_text("state")))
    assert saved == [3, 6, 7]
    without = train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "other", epochs=7), checkpoint=False))
    assert without.value == 1 / 7
    assert not (tmp_path / "other").exists()


def test_a_long_training_is_reported_at_most_50_times_and_at_its_end(tmp_path):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 1007))
    trial = live_trial(space, tmp_path)
    train(TrainingCallback(trial))
    assert len(trial.reports) <= 50
    assert trial.reports[-1]["fidelity"] == {"epochs": 1007}
    often = live_trial(space, tmp_path, epochs=10)
    train(TrainingCallback(often, every=4))
    assert [report["fidelity"]["epochs"] for report in often.reports] == [4, 8, 10]


def test_epochs_below_the_lowest_fidelity_are_no_fidelity(tmp_path):
    trial = live_trial(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(5, 20, step=5)), tmp_path, epochs=10)
    train(TrainingCallback(trial))
    assert [report["fidelity"]["epochs"] for report in trial.reports] == [5, 10]


def test_a_space_without_a_fidelity_reports_values_alone(tmp_path):
    trial = live_trial(PLAIN, tmp_path)
    loop = train(TrainingCallback(trial, epochs=3))
    assert ([report["fidelity"] for report in trial.reports], loop.value) == ([{}, {}, {}], 1 / 3)
    with pytest.raises(st.MethodError, match="how many epochs to train is not known: give epochs="):
        TrainingCallback(trial).remaining  # noqa: B018


def test_a_value_that_is_not_finite_fails_the_trial_and_not_the_report(tmp_path):
    trial = live_trial(SPACE, tmp_path, epochs=2)
    loop = train(TrainingCallback(trial), value=lambda epoch: math.nan)
    assert (trial.reports, math.isnan(loop.value)) == ([], True)


def test_what_cannot_be_right_is_refused(tmp_path):
    two = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(10, 90))
    with pytest.raises(st.MethodError, match="needs the second argument of the objective"):
        TrainingCallback({"x": 1})
    with pytest.raises(st.MethodError, match="the fidelities epochs and rows; say which one counts epochs"):
        TrainingCallback(live_trial(two, tmp_path))
    assert TrainingCallback(live_trial(two, tmp_path), fidelity="epochs").asked == 9
    with pytest.raises(st.MethodError, match="is not a fidelity of this space; it has epochs"):
        TrainingCallback(live_trial(SPACE, tmp_path), fidelity="rounds")
    with pytest.raises(st.MethodError, match="leave it out"):
        TrainingCallback(live_trial(SPACE, tmp_path), epochs=9)


def test_an_epoch_without_a_value_is_counted_and_not_reported(tmp_path):
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=5)
    loop = train(TrainingCallback(trial), value=lambda epoch: None if epoch % 2 else 1 / epoch)
    assert [(report["fidelity"], report["value"]) for report in trial.reports] == [({"epochs": n}, 1 / n) for n in (2, 4)]
    assert (loop.value, loop.epoch) == (1 / 4, 5)
    assert json.loads((tmp_path / "run" / "training.json").read_text()) == {"epoch": 5, "value": 1 / 4, "file": "epoch-5"}


def test_a_report_that_is_due_at_an_epoch_without_a_value_comes_with_the_next_value(tmp_path):
    trial = live_trial(SPACE, tmp_path, epochs=13)
    train(TrainingCallback(trial, every=3), value=lambda epoch: None if epoch % 2 else 1 / epoch)
    assert [report["fidelity"]["epochs"] for report in trial.reports] == [4, 6, 10, 12]


def test_a_training_of_which_no_epoch_has_a_value_is_an_error_at_its_end(tmp_path):
    with pytest.raises(st.OutcomeError, match="ended after epoch 3, and none was validated: there is no value; validate more"):
        train(TrainingCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=3)), value=lambda epoch: None)


def test_a_study_stops_and_resumes_training_runs(tmp_path):
    trained = []

    def objective(config, trial):
        loop = TrainingCallback(trial)
        for epoch in loop:
            trained.append(epoch)
            if loop.step(config["x"] + 1 / epoch, save=lambda path: path.write_text("state")):
                break
        return st.Outcome(loop.value, cost=loop.epoch - loop.done)

    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9, resumable=True))
    result = st.minimize(objective, space, 12, method=st.Hyperband(), checkpoints=tmp_path, progress=False)
    resumed = [trial for trial in result.history if trial.resumed_from]
    assert resumed
    assert result.spent == len(trained)
    assert all(trial.cost == trial.fidelity["epochs"] - trial.resumed_from.fidelity["epochs"] for trial in resumed)


# -- the libraries ---------------------------------------------------------------------------------------------------


def boosting_data(library):
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = x[:, 0] - x[:, 1] ** 2
    if library.__name__ == "lightgbm":
        data = library.Dataset(x[:40], y[:40], free_raw_data=False)
        return data, library.Dataset(x[40:], y[40:], reference=data, free_raw_data=False)
    return library.DMatrix(x[:40], y[:40]), library.DMatrix(x[40:], y[40:])


def boost(name, trial, **options):
    """Train with the real library; the callback and the model."""
    library = pytest.importorskip(name)
    train, validation = boosting_data(library)
    if name == "xgboost":
        from shoestring.integrations.xgboost import XGBoostCallback

        callback = XGBoostCallback(trial, **options)
        model = library.train(
            {"nthread": 1, "max_depth": 2}, train, num_boost_round=callback.remaining, verbose_eval=False,
            evals=[(train, "train"), (validation, "validation")], callbacks=[callback], xgb_model=callback.file,
        )  # fmt: skip
        return callback, model.num_boosted_rounds(), model.eval(validation)
    from shoestring.integrations.lightgbm import LightGBMCallback

    callback = LightGBMCallback(trial, **options)
    parameters = {"objective": "regression", "num_leaves": 4, "min_data_in_leaf": 2, "num_threads": 1, "verbose": -1}
    model = library.train(
        parameters, train, num_boost_round=callback.remaining, valid_sets=[train, validation],
        valid_names=["training", "valid"], callbacks=[callback], init_model=callback.file,
    )  # fmt: skip
    return callback, model.current_iteration(), model.predict(validation.data).tolist()


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_boosting_is_stopped_and_goes_on_as_if_it_had_not_been(name, tmp_path):
    whole, rounds, fitted = boost(name, live_trial(RESUMABLE, tmp_path / "whole", epochs=8))
    assert (rounds, whole.epoch, len(whole.trial.reports)) == (8, 8, 8)
    stopped, rounds, _ = boost(name, live_trial(RESUMABLE, tmp_path / "parts", stop_after=3))
    assert (rounds, stopped.epoch, stopped.stopped) == (3, 3, True)
    assert stopped.value == whole.trial.reports[2]["value"]
    trial = live_trial(RESUMABLE, tmp_path / "parts", epochs=8)
    again, rounds, refitted = boost(name, trial)
    assert (again.done, rounds) == (3, 8)
    assert [report["fidelity"]["epochs"] for report in trial.reports] == [4, 5, 6, 7, 8]
    assert again.value == pytest.approx(whole.value)
    assert refitted == pytest.approx(fitted) if name == "lightgbm" else refitted == fitted


@pytest.mark.parametrize(("name", "metric"), [("xgboost", "train-rmse"), ("lightgbm", "training l2")])
def test_the_metric_to_watch_can_be_named_and_a_wrong_one_names_those_there_are(name, metric, tmp_path):
    callback, _, _ = boost(name, live_trial(SPACE, tmp_path, epochs=2), monitor=metric)
    default, _, _ = boost(name, live_trial(SPACE, tmp_path, epochs=2))
    assert callback.value < default.value
    with pytest.raises(st.OutcomeError, match=f"'auc' was not computed; there are .*{metric}"):
        boost(name, live_trial(SPACE, tmp_path, epochs=2), monitor="auc")


def keras_adapter(monkeypatch):
    return stand_in(monkeypatch, "keras", {"keras": {}, "keras.callbacks": {"Callback": KerasCallbackBase}})


def lightning_adapter(monkeypatch):
    base = {"Callback": type("Callback", (), {})}
    return stand_in(monkeypatch, "lightning", {"lightning": {}, "lightning.pytorch": {}, "lightning.pytorch.callbacks": base})


def values(trial):
    return [(report["fidelity"]["epochs"], report["value"]) for report in trial.reports]


def test_keras_is_stopped_and_goes_on_by_its_documented_interface(tmp_path, monkeypatch):
    adapter = keras_adapter(monkeypatch)
    trial, model = live_trial(RESUMABLE, tmp_path / "run", stop_after=3), KerasModel()
    callback = adapter.KerasCallback(trial)
    model.fit(epochs=callback.asked, initial_epoch=callback.done, callbacks=[callback])
    assert (callback.value, callback.epoch, model.stop_training) == (1 / 3, 3, True)
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=5)
    again, model = adapter.KerasCallback(trial, monitor="loss"), KerasModel()
    assert again.file.name == "epoch-3.keras"
    model.weight = float(again.file.read_text())
    model.fit(epochs=again.asked, initial_epoch=again.done, callbacks=[again])
    assert ([report["fidelity"]["epochs"] for report in trial.reports], again.value) == ([4, 5], 2 / 5)
    assert model.stop_training is False


def test_lightning_is_stopped_and_goes_on_by_its_documented_interface(tmp_path, monkeypatch):
    adapter = lightning_adapter(monkeypatch)
    callback = adapter.LightningCallback(live_trial(RESUMABLE, tmp_path / "run", stop_after=3))
    trainer = LightningTrainer(callback.asked, [callback])
    trainer.fit(ckpt_path=callback.file)
    assert (callback.value, callback.epoch, trainer.should_stop) == (1 / 3, 3, True)
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=5)
    again = adapter.LightningCallback(trial)
    LightningTrainer(again.asked, [again]).fit(ckpt_path=again.file)
    assert ([report["fidelity"]["epochs"] for report in trial.reports], again.value) == ([4, 5], 1 / 5)


def test_keras_reports_validated_epochs_alone_and_never_mixes_two_losses(tmp_path, monkeypatch):
    adapter = keras_adapter(monkeypatch)
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=5)
    callback = adapter.KerasCallback(trial, monitor="val_loss")
    KerasModel().fit(epochs=5, callbacks=[callback], validation_freq=2)
    assert (values(trial), callback.value, callback.epoch) == ([(2, 1 / 2), (4, 1 / 4)], 1 / 4, 5)
    assert adapter.KerasCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=9)).done == 5  # the state of the last epoch
    trial = live_trial(SPACE, tmp_path, epochs=3)
    KerasModel().fit(epochs=3, callbacks=[adapter.KerasCallback(trial, monitor="loss")], validation_freq=2)
    assert values(trial) == [(1, 2.0), (2, 1.0), (3, 2 / 3)]
    trial = live_trial(SPACE, tmp_path, epochs=2)
    KerasModel().fit(epochs=2, callbacks=[adapter.KerasCallback(trial)], validation_data=None)
    assert values(trial) == [(1, 2.0), (2, 1.0)]  # without validation data


def test_a_keras_training_without_a_validated_epoch_is_an_error_and_not_its_training_loss(tmp_path, monkeypatch):
    adapter = keras_adapter(monkeypatch)
    for epochs, options in ((1, {"validation_freq": 2}), (3, {"validation_data": None})):
        callback = adapter.KerasCallback(live_trial(SPACE, tmp_path, epochs=epochs), monitor="val_loss")
        with pytest.raises(st.OutcomeError, match="none was validated"):
            KerasModel().fit(epochs=epochs, callbacks=[callback], **options)
    callback = adapter.KerasCallback(live_trial(SPACE, tmp_path, epochs=3), monitor="val_auc")
    with pytest.raises(st.OutcomeError, match="the metric 'val_auc' was not computed; there are 'loss'"):
        KerasModel().fit(epochs=3, callbacks=[callback])


def test_where_some_epochs_are_validated_keras_has_to_be_told_which_metric_counts(tmp_path, monkeypatch):
    callback = keras_adapter(monkeypatch).KerasCallback(live_trial(SPACE, tmp_path, epochs=3))
    with pytest.raises(st.OutcomeError, match='say so: KerasCallback\\(trial, monitor="val_loss"\\)'):
        KerasModel().fit(epochs=3, callbacks=[callback], validation_freq=2)


def test_lightning_reports_an_epoch_only_if_its_metric_was_computed_in_it(tmp_path, monkeypatch):
    adapter = lightning_adapter(monkeypatch)
    trial = live_trial(RESUMABLE, tmp_path / "run", epochs=5)
    callback = adapter.LightningCallback(trial)
    LightningTrainer(5, [callback], check_val_every_n_epoch=2).fit()
    assert (values(trial), callback.value, callback.epoch) == ([(2, 1 / 2), (4, 1 / 4)], 1 / 4, 5)
    assert adapter.LightningCallback(live_trial(RESUMABLE, tmp_path / "run", epochs=9)).done == 5
    trial = live_trial(SPACE, tmp_path, epochs=3)
    LightningTrainer(3, [adapter.LightningCallback(trial, monitor="train_loss")], check_val_every_n_epoch=2).fit()
    assert values(trial) == [(1, 2.0), (2, 1.0), (3, 2 / 3)]


def test_a_lightning_training_without_its_metric_is_an_error(tmp_path, monkeypatch):
    adapter = lightning_adapter(monkeypatch)
    with pytest.raises(st.OutcomeError, match="none was validated"):
        LightningTrainer(1, [adapter.LightningCallback(live_trial(SPACE, tmp_path, epochs=1))], check_val_every_n_epoch=2).fit()
    with pytest.raises(st.OutcomeError, match="none was validated"):
        LightningTrainer(3, [adapter.LightningCallback(live_trial(PLAIN, tmp_path))], check_val_every_n_epoch=4).fit()
    for monitor, validates in (("val_auc", True), ("val_loss", False)):
        callback = adapter.LightningCallback(live_trial(SPACE, tmp_path, epochs=3), monitor=monitor)
        with pytest.raises(st.OutcomeError, match=f"the metric '{monitor}' was not computed; there are 'train_loss'"):
            LightningTrainer(3, [callback], enable_validation=validates).fit()


def test_a_library_that_is_missing_is_named_with_its_package(monkeypatch):
    from shoestring.integrations.callback import framework

    with pytest.raises(ImportError, match=r"KerasCallback needs keras, which cannot be imported .*: pip install keras"):
        framework("no_such_keras.callbacks", "keras", "KerasCallback")
