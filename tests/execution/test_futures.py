"""The user's own executor: anything with the interface of ``concurrent.futures.Executor``."""

import os
import pickle
import signal
import threading
import time
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import shoestring as st
from shoestring.budget import Allowance
from shoestring.execution.futures import Task, live_trial, run_task
from tests.execution.helpers import RUNG, SPACE, Late, alive, good_then_bad, states


def study(*numbers, space=SPACE):
    found = st.Study(space, st.Random())
    for x in numbers:
        found.enqueue({"x": x})
    return found


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def test_a_pool_of_processes_evaluates_lambdas(pool):
    here = os.getpid()
    shift = 0.25
    result = study().minimize(lambda config: (config["x"] - shift) ** 2 + (os.getpid() == here), 6, executor=pool)
    assert states(result.history) == ["done"] * 6
    for trial in result.history:
        assert trial.value == (trial.config["x"] - 0.25) ** 2


def test_failures_reports_and_what_is_left_of_the_budget_are_sent(pool, tmp_path):
    def objective(config, trial):
        trial.report(0.9, epochs=1, cost=1.0)
        (trial.checkpoint_dir / "file").touch()
        assert not trial.should_stop()
        trial.report(0.8, epochs=2, cost=50.0)
        assert trial.should_stop()
        raise MemoryError("too large")

    found = st.Study(RUNG, st.Random(), checkpoints=tmp_path)
    trial = found.minimize(objective, st.Budget(trials=1, cost=40.0), executor=pool).history[0]
    assert trial.state == "failed"
    assert trial.error.startswith("MemoryError: too large (test_futures.py")
    assert [report["value"] for report in trial.reports] == [0.9, 0.8]
    assert (found.checkpoint_dir(0) / "file").exists()


def test_with_a_timeout_each_trial_has_a_process_of_its_own_and_the_pool_stays_whole(pool):
    def objective(config):
        if config["x"] == 0.1:
            time.sleep(1000)
        if config["x"] == 0.2:
            os.kill(os.getpid(), signal.SIGKILL)
        return config["x"]

    history = study(0.1, 0.2, 0.3).minimize(objective, 3, executor=pool, timeout=1).history
    assert states(history) == ["failed", "failed", "done"]
    assert history[0].error == "timed out after 1 s"
    assert history[0].censored
    assert history[1].error == "the worker was killed by signal 9 (out of memory?)"


def test_an_objective_that_cannot_be_loaded_ends_the_run(pool):
    class Unloadable:
        def __reduce__(self):
            return (exec, ("raise ImportError('no such module')",))

        def __call__(self, config):
            return 0.0

    found = study()
    with pytest.raises(st.ExecutionError, match="no such module"):
        found.minimize(Unloadable(), 3, executor=pool)
    assert set(states(found.history)) == {"abandoned"}


def test_raise_errors(pool):
    with pytest.raises(ZeroDivisionError) as caught:
        study().minimize(lambda config: 1 / 0, 3, executor=pool, raise_errors=True)
    assert "in a worker" in caught.value.__notes__[0]


@pytest.mark.parametrize("threads", [False, True])
def test_a_result_that_came_before_an_error_is_kept(pool, tmp_path, threads):
    found = st.Study(SPACE, Late(tmp_path))
    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError):
        found.minimize(good_then_bad(tmp_path), 9, workers=4, executor=executor if threads else pool, raise_errors=True)
    assert states(found.history) == ["done"] + ["abandoned"] * 3


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pool_that_breaks_ends_the_run_and_loses_nothing(workers):
    found = study(0.1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        list(executor.map(time.sleep, [0.2] * workers))  # a pool may overlook the death of a process that it has just started
        with pytest.raises(st.ExecutionError, match="executor"):
            found.minimize(lambda config: os._exit(1) if config["x"] == 0.1 else time.sleep(60), 5, executor=executor)
    if workers == 1:  # it is known whose fault it was
        assert found.history[0].state == "failed"
        assert "broke" in found.history[0].error
    else:
        assert states(found.history) == ["abandoned"] * 2
        assert found.ask().config["x"] == 0.1


def test_a_pool_that_was_shut_down_is_an_error():
    executor = ThreadPoolExecutor(2)
    executor.shutdown()
    found = study()
    with pytest.raises(st.ExecutionError, match="takes no more"):
        found.minimize(lambda config: 0.5, 3, executor=executor)
    assert set(states(found.history)) == {"abandoned"}


def test_a_pool_of_threads_shares_memory():
    seen = []
    with ThreadPoolExecutor(2) as executor:
        result = study().minimize(lambda config, trial: seen.append(trial.number) or 0.5, 4, executor=executor)
        assert sorted(seen) == [0, 1, 2, 3]
        assert states(result.history) == ["done"] * 4
        with pytest.raises(ZeroDivisionError):
            study().minimize(lambda config: 1 / 0, 3, executor=executor, raise_errors=True)


class Failing:
    """An executor with the smallest interface; each submission fails with the same error."""

    _max_workers = 1

    def __init__(self, error):
        self.error, self.tokens = error, []

    def submit(self, function, task, token):
        self.tokens.append(token)
        future = Future()
        future.set_exception(self.error)
        return future


def test_an_executor_that_only_fails_is_given_up():
    executor, found = Failing(OSError("the network is gone")), study()
    with pytest.raises(st.ExecutionError, match="3 times in a row; trial 2: the network is gone"):
        found.minimize(lambda config: 0.5, 9, executor=executor)
    assert states(found.history) == ["failed", "failed", "abandoned"]
    assert len(set(executor.tokens)) == 3


def test_what_the_executor_cancels_is_asked_again():
    found = study()
    with pytest.raises(st.ExecutionError, match="cancelled"):
        found.minimize(lambda config: 0.5, 9, executor=Failing(CancelledError()))
    assert states(found.history) == ["abandoned"]


def test_a_task_that_is_no_longer_wanted_ends_its_process(tmp_path):
    import cloudpickle

    def objective(config):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(1000)

    task = Task(cloudpickle.dumps(objective), st.Trial(0, {"x": 0.5}), SPACE, Allowance(), isolate=True)
    replies = []
    thread = threading.Thread(
        target=lambda: replies.append(run_task(pickle.dumps(task), "token", wanted=lambda: not list(tmp_path.iterdir())))
    )
    thread.start()
    thread.join(60)
    assert pickle.loads(replies[0]) == ("worker_lost", "cancelled")
    assert not alive(int(next(tmp_path.iterdir()).name))


def test_what_is_left_of_the_budget_is_known_beforehand():
    def seen(allowance):
        return live_trial(Task(b"", st.Trial(0, {"x": 0.5}), SPACE, allowance))

    assert not seen(Allowance()).should_stop()
    assert not seen(Allowance(cost=100.0, seconds=100.0)).should_stop()
    assert seen(Allowance(seconds=0.0)).should_stop()
    trial = seen(Allowance(cost=5.0))
    trial.report(0.5, cost=5.0)
    assert trial.should_stop()
    with pytest.raises(st.ExecutionError, match="folder"):
        _ = trial.checkpoint_dir
