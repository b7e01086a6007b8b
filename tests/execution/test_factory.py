"""The factory of executors: which options give which executor, and which are refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import shoestring as st
from shoestring._validation import duration_seconds
from shoestring.execution.executor import SerialExecutor
from shoestring.execution.factory import make_executor
from shoestring.execution.futures import FuturesExecutor
from shoestring.execution.process_pool import ProcessPool
from shoestring.execution.threads import ThreadExecutor
from shoestring.report.progress_line import progress_line
from tests.execution.helpers import SPACE
from tests.names import without_address


def objective(config):
    return 0.5


@pytest.mark.parametrize(
    ("options", "kind", "workers"),
    [
        ({}, SerialExecutor, 1), ({"workers": 1}, SerialExecutor, 1),
        ({"workers": 3}, ProcessPool, 3), ({"timeout": 5}, ProcessPool, 1),
        ({"workers": 3, "threads": True}, ThreadExecutor, 3), ({"threads": True}, ThreadExecutor, 1),
    ],
)  # fmt: skip
def test_the_options_decide_on_the_executor(options, kind, workers):
    executor = make_executor(objective, SPACE, **options)
    assert type(executor) is kind
    assert executor.workers == workers


def test_an_executor_says_how_many_it_can_run_unless_the_user_does():
    with ThreadPoolExecutor(3) as executor:
        assert make_executor(objective, SPACE, executor=executor).workers == 3
        two = make_executor(objective, SPACE, executor=executor, workers=2)
        assert isinstance(two, FuturesExecutor)
        assert two.workers == 2

    class Silent:
        def submit(self):
            pass

    with pytest.raises(st.MethodError, match=r"Silent does not say .* workers="):
        make_executor(objective, SPACE, executor=Silent())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "workers"), ({"workers": 2.5}, "workers"), ({"workers": True}, "workers"), ({"workers": "2"}, "workers"),
        ({"timeout": 0}, "timeout"), ({"timeout": -1}, "timeout"), ({"timeout": "soon"}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": 5, "threads": True}, "thread"), ({"executor": 5}, "submit"), ({"retries": -1}, "retries"),
        ({"retries": 0.5}, "retries"), ({"executor": ThreadPoolExecutor(1), "threads": True}, "not both"),
        ({"executor": ThreadPoolExecutor(1), "timeout": 3}, "thread"),
    ],
    ids=without_address,
)  # fmt: skip
def test_impossible_options_are_refused_before_any_trial_is_asked(options, said):
    study = st.Study(SPACE)
    with pytest.raises(st.MethodError, match=said):
        study.minimize(objective, 3, **options)
    assert len(study.history) == 0


def test_a_timeout_is_a_duration():
    assert duration_seconds("10m", "timeout") == 600.0
    assert duration_seconds(2, "timeout") == 2.0


def test_the_progress_line_says_how_many_trials_run():
    study = st.Study(SPACE)
    study.ask()
    assert "running" not in progress_line(study.state, st.Budget(trials=20))
    study.ask()
    assert "2 running" in progress_line(study.state, st.Budget(trials=20))
