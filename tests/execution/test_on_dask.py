"""Dask on loopback: each trial runs once, nothing is cached, and what is cancelled ends."""

import os
import signal
import threading
import time
import warnings

import pytest

import shoestring as st
from shoestring.execution.hire import hire
from tests.execution.helpers import SPACE, alive, states, until

distributed = pytest.importorskip("distributed", reason="Dask is not installed")


def cluster():
    return distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", resources={"slot": 1})


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask's own making
        with cluster() as there, distributed.Client(there, set_as_default=False) as client:
            yield client


pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def bowl(config):
    return st.Outcome((config["x"] - 0.3) ** 2, cost=1.0 + config["x"])


def test_one_worker_gives_the_trials_of_a_run_at_home(client):
    def trials(**options):
        history = st.Study(SPACE, seed=3, initial=4).minimize(bowl, 7, **options).history
        return [(trial.config, trial.value, trial.cost) for trial in history]

    assert trials(executor=st.DaskExecutor(client, isolate=False), workers=1) == trials()


def test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry(client, tmp_path):
    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        os.kill(os.getpid(), signal.SIGKILL)

    study = st.Study(SPACE, st.Random())
    history = study.minimize(objective, 2, executor=st.DaskExecutor(client), workers=1, retries=1).history
    assert (tmp_path / "runs").read_text() == ".."
    assert states(history) == ["failed"] * 2
    assert history[0].config == history[1].config
    assert history[0].error == "the worker was killed by signal 9 (out of memory?)"


def test_an_objective_that_kills_the_worker_of_dask_itself_runs_once_too(client, tmp_path):
    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        os.kill(os.getpid(), signal.SIGKILL)

    study = st.Study(SPACE, st.Random())
    trial = study.minimize(objective, 1, executor=st.DaskExecutor(client, isolate=False), workers=1).history[0]
    assert (tmp_path / "runs").read_text() == "."
    assert (str(trial.state), trial.error) == ("failed", "the Dask worker died")
    assert trial.cost > 0


def test_the_same_config_three_times_gives_three_results(client, tmp_path):
    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        return float((tmp_path / "runs").stat().st_size)

    study = st.Study(SPACE, st.Random())
    for _ in range(3):
        study.enqueue({"x": 0.5})
    executor = client.get_executor()  # it would take the three for one
    history = study.minimize(objective, 3, executor=executor, workers=1).history
    assert [trial.value for trial in history] == [1.0, 2.0, 3.0]


def test_what_is_cancelled_ends_and_its_trial_is_asked_again(client, tmp_path):
    def objective(config, trial):
        if config["x"] == 0.5:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(1000)
        until(lambda: list(tmp_path.iterdir()))
        return 0.5

    def callback(study, trial):
        raise KeyboardInterrupt

    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    result = study.minimize(objective, 4, executor=st.DaskExecutor(client), callbacks=callback)
    assert result.stop.kind == "interrupted"
    assert sorted(states(result.history))[0] == "abandoned"
    (pid,) = [int(path.name) for path in tmp_path.iterdir()]
    until(lambda: not alive(pid))
    assert study.ask().config == {"x": 0.5}


def test_timeouts_on_dask(client):
    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    objective = lambda config: time.sleep(1000 * (config["x"] == 0.5)) or 0.5  # noqa: E731
    history = study.minimize(objective, 2, executor=st.DaskExecutor(client), timeout=2).history
    assert states(history) == ["failed", "done"]
    assert history[0].error == "timed out after 2 s"
    assert history[0].censored


def test_how_many_run_at_once_follows_from_threads_and_resources(client):
    def workers(executor):
        return hire(bowl, SPACE, executor=executor).workers

    until(lambda: len(client.ncores()) == 2)  # one was killed above, and is started again
    assert workers(st.DaskExecutor(client)) == 2
    assert workers(client) == 2
    assert workers(client.get_executor(resources={"slot": 1})) == 2
    assert workers(st.DaskExecutor(client, resources={"slot": 1})) == 2
    with pytest.raises(st.MethodError, match="workers="):
        workers(st.DaskExecutor(client, resources={"GPU": 1}))
    with pytest.raises(st.MethodError, match="neither a Dask client"):
        st.DaskExecutor(5)
    with st.DaskExecutor(client.scheduler.address) as executor:
        assert workers(executor) == 2
    assert executor.client.status == "closed"
    assert client.status == "running"


@pytest.mark.slow
def test_a_cluster_that_is_gone_ends_the_run_and_loses_nothing():
    study = st.Study(SPACE, st.Random())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cluster() as there, distributed.Client(there, set_as_default=False) as client:
            threading.Timer(3.0, there.close).start()
            with pytest.raises(st.ExecutionError, match="cancelled by the executor"):
                study.minimize(lambda config: time.sleep(1000), 5, executor=st.DaskExecutor(client))
    assert states(study.history) == ["abandoned"] * 2


@pytest.mark.slow
def test_one_worker_with_processes_of_their_own_gives_the_same_trials_too(client):
    at_home, there = (
        st.Study(SPACE, seed=3, initial=4).minimize(bowl, 7, **options).history
        for options in ({}, {"executor": st.DaskExecutor(client), "workers": 1})
    )
    assert [(t.config, t.value, t.cost) for t in at_home] == [(t.config, t.value, t.cost) for t in there]
