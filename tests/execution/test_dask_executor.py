"""The Dask executor on loopback: each trial runs once, nothing is cached, and what is cancelled ends."""

import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager

import pytest

import shoestring as st
from shoestring.execution.factory import make_executor
from tests.execution import cluster_contract
from tests.execution.helpers import SPACE, states, until


@contextmanager
def cluster():
    """A cluster of one worker for two trials, and a client. Dask is imported here: few of the processes that collect need it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask has warnings of its own
        dask = pytest.importorskip("distributed", reason="Dask is not installed")
        with (
            dask.LocalCluster(1, threads_per_worker=2, dashboard_address=None, host="127.0.0.1", resources={"slot": 2}) as there,
            dask.Client(there, set_as_default=False) as client,
        ):
            yield there, client


@pytest.fixture(scope="module")
def client():
    with cluster() as (_, client):
        yield client


pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def test_one_worker_gives_the_trials_of_a_local_run(client):
    cluster_contract.gives_the_trials_of_a_local_run(st.DaskExecutor(client, isolate=False))


def test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry(client, tmp_path):
    error = cluster_contract.runs_a_killer_once_and_once_for_each_retry(st.DaskExecutor(client), tmp_path)
    assert error == "the worker was killed by signal 9 (out of memory?)"


def test_the_same_config_three_times_gives_three_results(client, tmp_path):
    # by itself Dask would take the three calls for one
    cluster_contract.gives_three_results_for_the_same_config(client.get_executor(), tmp_path)


def test_a_run_goes_on_in_the_folder_that_the_workers_share(client, tmp_path):
    cluster_contract.goes_on_with_a_run(st.DaskExecutor(client, isolate=False), tmp_path)


def test_what_is_cancelled_ends_and_its_trial_is_asked_again(client, tmp_path):
    cluster_contract.ends_what_is_cancelled(st.DaskExecutor(client), tmp_path)


def test_timeouts_on_dask(client):
    cluster_contract.ends_what_hangs(st.DaskExecutor(client))


def test_how_many_run_at_once_follows_from_threads_and_resources(client):
    def workers(executor):
        return make_executor(cluster_contract.bowl, SPACE, executor=executor).workers

    until(lambda: sum(client.ncores().values()) == 2)
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
    with cluster() as (there, client):
        threading.Timer(3.0, there.close).start()
        with pytest.raises(st.ExecutionError, match="cancelled by the executor"):
            study.minimize(lambda config: time.sleep(1000), 5, executor=st.DaskExecutor(client))
    assert states(study.history) == ["abandoned"] * 2


@pytest.mark.slow
def test_one_worker_with_processes_of_their_own_gives_the_same_trials_too(client):
    cluster_contract.gives_the_trials_of_a_local_run(st.DaskExecutor(client))


@pytest.mark.slow
def test_an_objective_that_kills_the_worker_of_dask_itself_runs_once_too(client, tmp_path):
    """The last test, since the others would have to wait until Dask has started another worker."""

    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        os.kill(os.getpid(), signal.SIGKILL)

    study = st.Study(SPACE, st.Random())
    trial = study.minimize(objective, 1, executor=st.DaskExecutor(client, isolate=False), workers=1).history[0]
    assert (tmp_path / "runs").read_text() == "."
    assert (str(trial.state), trial.error) == ("failed", "the Dask worker died")
    assert trial.cost > 0
