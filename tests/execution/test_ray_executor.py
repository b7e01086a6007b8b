"""The Ray executor on loopback: each trial runs once, nothing is cached, and what is cancelled ends."""

import pytest

import shoestring as st
from shoestring.execution.factory import make_executor
from tests.execution import cluster_contract
from tests.execution.helpers import SPACE

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray has warnings of its own, of many kinds


@pytest.fixture(scope="module")
def executor():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("ray", reason="Ray is not installed")
        with st.RayExecutor() as executor:
            yield executor
        assert not executor.ray.is_initialized()


def test_one_worker_gives_the_trials_of_a_local_run(executor):
    cluster_contract.gives_the_trials_of_a_local_run(executor)


def test_it_listens_on_loopback_only(executor):
    import psutil

    there = [process for process in psutil.Process().children(recursive=True) if process.is_running()]
    listening = [each.laddr.ip for process in there for each in process.net_connections(kind="inet") if each.status == "LISTEN"]
    assert listening
    assert {ip.removeprefix("::ffff:") for ip in listening} <= {"127.0.0.1", "::1"}


def test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry(executor, tmp_path):
    assert cluster_contract.runs_a_killer_once_and_once_for_each_retry(executor, tmp_path).startswith("the worker died")


@pytest.mark.slow  # Dask is tested for it in every run
def test_the_same_config_three_times_gives_three_results(executor, tmp_path):
    cluster_contract.gives_three_results_for_the_same_config(executor, tmp_path)


@pytest.mark.slow  # Dask is tested for it in every run
def test_a_run_goes_on_in_the_folder_that_the_workers_share(executor, tmp_path):
    cluster_contract.goes_on_with_a_run(executor, tmp_path)


def test_what_is_cancelled_ends_and_its_trial_is_asked_again(executor, tmp_path):
    cluster_contract.ends_what_is_cancelled(executor, tmp_path)


@pytest.mark.slow  # Dask is tested for it in every run
def test_timeouts_on_ray(executor):
    cluster_contract.ends_what_hangs(executor)


def test_how_many_run_at_once_follows_from_resources(executor):
    cores = int(executor.ray.cluster_resources()["CPU"])
    assert make_executor(cluster_contract.bowl, SPACE, executor=executor).workers == cores
    shared = st.RayExecutor(num_cpus=0.5)  # uses the Ray that runs already
    assert make_executor(cluster_contract.bowl, SPACE, executor=shared).workers == 2 * cores
    shared.shutdown()
    assert executor.ray.is_initialized()
    with pytest.raises(st.MethodError, match="workers="):
        make_executor(cluster_contract.bowl, SPACE, executor=st.RayExecutor(num_gpus=1))
