"""Export to trackers: what a run holds, and that a second export adds what is new and nothing else.

MLflow and W&B are too large to install for every run of the tests: where they are installed, the real ones are used, with a
SQLite file and with offline runs. The rules of the export are tested with stand-ins in any case.
"""

import sys
import types
from pathlib import Path

import pytest

import shoestring as st
from shoestring.integrations.mlflow_export import metrics_of, to_mlflow, unique_keys
from shoestring.integrations.wandb_export import run_identity, to_wandb


def make_study():
    """A study with a result, a failure, intermediate values, metrics, folds and a running trial."""
    space = st.Space({"lr": st.Float(0, 1), "act": st.Choice("relu", "a b"), "epochs": st.Fidelity(1, 9)})
    study = st.Study(space, name="net", method=st.Random())
    config = {"lr": 0.5, "act": "relu", "epochs": 9}
    study.add(config, 0.25, cost=3.0, metrics={"f1 (macro)": 0.5, "value": 9.0}, folds=[0.2, 0.3])
    study.add(config | {"act": "a b"}, error="out of memory")

    def reports(config, trial):
        for epoch in (3, 6):
            trial.report(1 / epoch, epoch)
        return st.Outcome(0.125, cost=2.0)

    study.enqueue(config | {"lr": 0.75})
    study.minimize(reports, 1, progress=False)
    study.ask()
    return study


# -- stand-ins -------------------------------------------------------------------------------------------------------


class FakeClient:
    """MLflow's client, as far as the export uses it; keeps all in memory."""

    stores = {}  # noqa: RUF012

    def __init__(self, tracking_uri):
        self.experiments, self.runs = self.stores.setdefault(tracking_uri, ({}, {}))
        self.fail_after = None

    def get_experiment_by_name(self, name):
        return types.SimpleNamespace(experiment_id=self.experiments[name]) if name in self.experiments else None

    def create_experiment(self, name):
        return self.experiments.setdefault(name, str(len(self.experiments)))

    def set_experiment_tag(self, experiment, key, value):
        pass

    def search_runs(self, experiments, text, page_token=None):
        wanted = text.partition(" = ")[2].strip("'")
        matching = [run for run in self.runs.values() if run.where in experiments and run.data.tags["shoestring.id"] == wanted]
        start = int(page_token or 0)
        page = type("Page", (list,), {})(matching[start : start + 2])
        page.token = str(start + 2) if start + 2 < len(matching) else None
        return page

    def create_run(self, experiment, start_time, tags, run_name):
        info = types.SimpleNamespace(run_id=f"run{len(self.runs)}", status="RUNNING", start=start_time, end=None)
        data = types.SimpleNamespace(tags=tags, metrics=[], params=[])
        self.runs[info.run_id] = types.SimpleNamespace(info=info, data=data, where=experiment)
        return self.runs[info.run_id]

    def log_batch(self, run, metrics=(), params=()):
        self.runs[run].data.metrics += metrics
        self.runs[run].data.params += params

    def set_terminated(self, run, status, end_time):
        if len(self.runs) == self.stores.get("fails at"):
            raise ConnectionError("the server is gone")
        self.runs[run].info.status, self.runs[run].info.end = status, end_time

    def delete_run(self, run):
        del self.runs[run]


@pytest.fixture
def fake_mlflow(monkeypatch):
    entities = types.SimpleNamespace(Metric=lambda *parts: parts, Param=lambda *parts: parts)
    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(MlflowClient=FakeClient, entities=entities))
    monkeypatch.setattr(FakeClient, "stores", {})
    return FakeClient.stores


def test_mlflow_gets_one_run_for_each_finished_trial_and_a_second_export_adds_nothing(fake_mlflow):
    study = make_study()
    assert to_mlflow(study, "here") == 3
    assert to_mlflow(study, "here") == 0
    study.add({"lr": 0.1, "act": "relu", "epochs": 9}, 0.5)
    assert to_mlflow(study, "here") == 1
    experiments, runs = fake_mlflow["here"]
    assert list(experiments) == ["net"]
    assert sorted(int(run.data.tags["shoestring.trial"]) for run in runs.values()) == [0, 1, 2, 4]
    first, failed, trained, _ = runs.values()
    assert (first.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert failed.data.tags["shoestring.error"] == "out of memory"
    assert ("act", "a b") in failed.data.params
    assert [row[:2] + row[3:] for row in trained.data.metrics if row[0] == "value"] == [
        ("value", 1 / 3, 3), ("value", 1 / 6, 6), ("value", 0.125, 9),
    ]  # fmt: skip


def test_a_study_of_the_same_name_is_another_study(fake_mlflow):
    assert (to_mlflow(make_study(), "here"), to_mlflow(make_study(), "here")) == (3, 3)
    assert to_mlflow(make_study(), "here", experiment="other") == 3


def test_a_run_that_was_interrupted_is_made_again(fake_mlflow):
    study = make_study()
    fake_mlflow["fails at"] = 2
    with pytest.raises(ConnectionError):
        to_mlflow(study, "here")
    del fake_mlflow["fails at"]
    assert to_mlflow(study, "here") == 2
    runs = fake_mlflow["here"][1]
    assert sorted(int(run.data.tags["shoestring.trial"]) for run in runs.values()) == [0, 1, 2]
    assert {run.info.status for run in runs.values()} == {"FINISHED", "FAILED"}


def test_names_are_as_mlflow_allows_them_and_stay_apart():
    assert list(unique_keys({"f1 (a)": 1, "f1 [a]": 2, "ok/1": 3})) == [("f1 _a_", 1), ("f1 _a__", 2), ("ok/1", 3)]
    study = make_study()
    found = {key: value for key, value, _ in metrics_of(study.history[0])}
    assert found == {"value": 0.25, "cost": 3.0, "fold_0": 0.2, "fold_1": 0.3, "f1 _macro_": 0.5}


class FakeWandb:
    """W&B in offline mode: a folder for each run."""

    def __init__(self):
        self.runs = []

    def Settings(self, **given):
        return given

    def init(self, **given):
        assert given["mode"] == "offline"
        run = types.SimpleNamespace(given=given, rows=[], summary={}, code=None)
        run.log = lambda row, step: run.rows.append((step, row))
        run.finish = lambda exit_code: setattr(run, "code", exit_code)
        Path(given["dir"], "wandb", f"offline-run-1-{given['id']}").mkdir()
        self.runs.append(run)
        return run


def test_wandb_gets_one_offline_run_for_each_finished_trial_once(tmp_path, monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    study = make_study()
    assert to_wandb(study, tmp_path) == 3
    assert to_wandb(study, tmp_path) == 0
    first, failed, trained = fake.runs
    assert (first.summary["value"], first.summary["f1 (macro)"], first.code) == (0.25, 0.5, 0)
    assert (failed.summary["error"], failed.code) == ("out of memory", 1)
    assert [(step, row["intermediate"]) for step, row in trained.rows] == [(3, 1 / 3), (6, 1 / 6)]
    assert (first.given["project"], first.given["group"], first.given["config"]["lr"]) == ("net", "net", 0.5)
    assert first.given["id"] == run_identity(study.id, 0)


def test_an_offline_run_that_was_interrupted_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", FakeWandb())
    study = make_study()
    half = tmp_path / "wandb" / f"offline-run-0-{run_identity(study.id, 1)}"
    half.mkdir(parents=True)
    other = tmp_path / "wandb" / "offline-run-0-somebody-elses"
    other.mkdir()
    assert to_wandb(study, tmp_path) == 3
    assert (half.exists(), other.exists()) == (False, True)


@pytest.mark.parametrize(("export", "package"), [(to_mlflow, "mlflow-skinny"), (to_wandb, "wandb")])
def test_a_tracker_that_is_not_installed_is_named(export, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package.partition("-")[0], None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        export(make_study())


# -- the real ones ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("uri", [pytest.param("sqlite:///{}/mlflow.db", marks=pytest.mark.slow), "{}/mlruns"])
def test_a_real_store_of_mlflow_holds_the_study_once(tmp_path, uri, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    study, uri = make_study(), uri.format(tmp_path)
    assert (to_mlflow(study, uri), to_mlflow(study, uri)) == (3, 0)
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("net").experiment_id])
    by_trial = {int(run.data.tags["shoestring.trial"]): run for run in runs}
    assert sorted(by_trial) == [0, 1, 2]
    assert by_trial[0].data.metrics == {"value": 0.25, "cost": 3.0, "fold_0": 0.2, "fold_1": 0.3, "f1 _macro_": 0.5}
    assert by_trial[0].data.params == {"lr": "0.5", "act": "relu", "epochs": "9"}
    assert (by_trial[1].info.status, by_trial[2].info.status) == ("FAILED", "FINISHED")
    assert [metric.step for metric in client.get_metric_history(by_trial[2].info.run_id, "value")] == [3, 6, 9]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_real_offline_runs_of_wandb_hold_the_study_once(tmp_path):
    pytest.importorskip("wandb")
    study = make_study()
    assert (to_wandb(study, tmp_path), to_wandb(study, tmp_path)) == (3, 0)
    assert len(list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))) == 3
