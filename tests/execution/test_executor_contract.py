"""The executors of the library pass the contract suite."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from shoestring.execution.executor import SerialExecutor
from shoestring.execution.factory import futures_executor
from shoestring.execution.process_pool import ProcessPool
from shoestring.execution.serialization import serialize_objective
from shoestring.execution.simulated import SimulatedExecutor
from shoestring.execution.threads import ThreadExecutor
from shoestring.testing import ExecutorContract
from shoestring.testing.problems import SPACES

SPACE = SPACES["numbers"]


class TestSerialExecutor(ExecutorContract):
    workers = 1
    runs_in_background = False

    def make(self, objective, workers):
        return SerialExecutor(objective)

    def make_raising(self, objective, workers):
        return SerialExecutor(objective, raise_errors=True)


class TestSimulatedExecutor(ExecutorContract):
    runs_in_background = False

    def make(self, objective, workers):
        return SimulatedExecutor(objective, workers)

    def make_raising(self, objective, workers):
        return SimulatedExecutor(objective, workers, raise_errors=True)


class TestThreadExecutor(ExecutorContract):
    ends_running = False

    def make(self, objective, workers):
        return ThreadExecutor(objective, workers)

    def make_raising(self, objective, workers):
        return ThreadExecutor(objective, workers, raise_errors=True)


class TestProcessPool(ExecutorContract):
    @pytest.mark.slow  # test_process_pool.py has more of it
    def test_a_study_runs_over_it(self):
        super().test_a_study_runs_over_it()

    @pytest.mark.slow
    def test_an_exception_of_the_objective_is_the_error_of_its_trial_alone(self):
        super().test_an_exception_of_the_objective_is_the_error_of_its_trial_alone()

    def make(self, objective, workers):
        return ProcessPool(serialize_objective(objective), SPACE, workers)

    def make_raising(self, objective, workers):
        return ProcessPool(serialize_objective(objective), SPACE, workers, raise_errors=True)


class FuturesContract(ExecutorContract):
    """The suite over the executor ``pool`` of ``concurrent.futures``, which cannot end what it has started."""

    ends_running = False

    def make(self, objective, workers):
        return futures_executor(self.pool, objective, SPACE, workers, timeout=None, raise_errors=False)

    def make_raising(self, objective, workers):
        return futures_executor(self.pool, objective, SPACE, workers, timeout=None, raise_errors=True)


class TestThreadPoolExecutor(FuturesContract):
    @pytest.fixture(autouse=True)
    def use_threads(self):
        with ThreadPoolExecutor(2) as self.pool:
            yield


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


class TestProcessPoolExecutor(FuturesContract):
    @pytest.fixture(autouse=True)
    def use_processes(self, processes):
        self.pool = processes
