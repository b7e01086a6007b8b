"""Ray on loopback: each trial runs once, nothing is cached, and what is cancelled ends."""

import os
import signal
import time

import pytest

import shoestring as st
from shoestring.execution.hire import hire
from tests.execution.helpers import SPACE, alive, states, until

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


def bowl(config):
    return st.Outcome((config["x"] - 0.3) ** 2, cost=1.0 + config["x"])


def test_one_worker_gives_the_trials_of_a_run_at_home(executor):
    def trials(**options):
        history = st.Study(SPACE, seed=3, initial=4).minimize(bowl, 7, **options).history
        return [(trial.config, trial.value, trial.cost) for trial in history]

    assert trials(executor=executor, workers=1) == trials()


def test_it_listens_on_loopback_only(executor):
    import psutil

    there = [process for process in psutil.Process().children(recursive=True) if process.is_running()]
    listening = [each.laddr.ip for process in there for each in process.net_connections(kind="inet") if each.status == "LISTEN"]
    assert listening
    assert {ip.removeprefix("::ffff:") for ip in listening} <= {"127.0.0.1", "::1"}


def test_an_objective_that_kills_its_process_runs_once_and_once_for_each_retry(executor, tmp_path):
    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        os.kill(os.getpid(), signal.SIGKILL)

    history = st.Study(SPACE, st.Random()).minimize(objective, 2, executor=executor, workers=1, retries=1).history
    assert (tmp_path / "runs").read_text() == ".."
    assert states(history) == ["failed"] * 2
    assert history[0].config == history[1].config
    assert history[0].error.startswith("the worker died")
    assert all(trial.cost > 0 for trial in history)


def test_the_same_config_three_times_gives_three_results(executor, tmp_path):
    def objective(config):
        with (tmp_path / "runs").open("a") as file:
            file.write(".")
        return float((tmp_path / "runs").stat().st_size)

    study = st.Study(SPACE, st.Random())
    for _ in range(3):
        study.enqueue({"x": 0.5})
    history = study.minimize(objective, 3, executor=executor, workers=1).history
    assert [trial.value for trial in history] == [1.0, 2.0, 3.0]


def test_what_is_cancelled_ends_and_its_trial_is_asked_again(executor, tmp_path):
    def objective(config):
        if config["x"] == 0.5:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(1000)
        until(lambda: list(tmp_path.iterdir()))
        return 0.5

    def callback(study, trial):
        raise KeyboardInterrupt

    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    result = study.minimize(objective, 4, executor=executor, workers=2, callbacks=callback)
    assert result.stop.kind == "interrupted"
    (pid,) = [int(path.name) for path in tmp_path.iterdir()]
    until(lambda: not alive(pid))
    assert study.ask().config == {"x": 0.5}


def test_timeouts_on_ray(executor):
    study = st.Study(SPACE, st.Random())
    study.enqueue({"x": 0.5})
    objective = lambda config: time.sleep(1000 * (config["x"] == 0.5)) or 0.5  # noqa: E731
    history = study.minimize(objective, 2, executor=executor, workers=2, timeout=2).history
    assert states(history) == ["failed", "done"]
    assert history[0].error == "timed out after 2 s"


def test_how_many_run_at_once_follows_from_resources(executor):
    cores = int(executor.ray.cluster_resources()["CPU"])
    assert hire(bowl, SPACE, executor=executor).workers == cores
    shared = st.RayExecutor(num_cpus=0.5)  # uses the Ray that is there
    assert hire(bowl, SPACE, executor=shared).workers == 2 * cores
    shared.shutdown()
    assert executor.ray.is_initialized()
    with pytest.raises(st.MethodError, match="workers="):
        hire(bowl, SPACE, executor=st.RayExecutor(num_gpus=1))
