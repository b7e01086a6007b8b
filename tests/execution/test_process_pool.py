"""The process pool: what it can evaluate, and that a crash, a kill or a timeout ends one trial and no other."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import shoestring as st
from tests.execution.helpers import RUNG, SPACE, Late, alive, good_then_bad, states, until


def study(space=SPACE, **options):
    return st.Study(space, st.Random(), **options)


def enqueued(*numbers, space=SPACE, **others):
    """A study in which these values of x are asked first."""
    found = study(space)
    for x in numbers:
        found.enqueue({"x": x, **others})
    return found


# -- what can be evaluated ---------------------------------------------------------------------------------------------


def test_lambdas_and_closures_are_evaluated_in_other_processes(tmp_path):
    shift = 0.25

    def objective(config):
        (tmp_path / str(os.getpid())).touch()
        return st.Outcome((config["x"] - shift) ** 2, cost=2.0)

    result = study().minimize(objective, 7, workers=2)
    assert states(result.history) == ["done"] * 7
    assert result.spent == 14.0
    for trial in result.history:
        assert trial.value == (trial.config["x"] - 0.25) ** 2
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids
    assert not any(alive(pid) for pid in pids)


def test_a_free_worker_never_waits_for_a_slow_one(tmp_path):
    def objective(config):
        if config["x"] == 0.5:  # this one ends after all others
            until(lambda: len(list(tmp_path.iterdir())) >= 5)
        else:
            (tmp_path / str(config["x"])).touch()
        return config["x"]

    ended = []
    result = enqueued(0.5).minimize(objective, 6, workers=2, callbacks=lambda study, trial: ended.append(trial.number))
    assert states(result.history) == ["done"] * 6
    assert 0 in ended[-2:]  # the last of the others may return at the same moment


def test_the_folder_and_the_modules_of_the_caller_are_there(tmp_path, monkeypatch):
    (tmp_path / "made_up_module.py").write_text("def objective(config):\n    return float(open('number').read())\n")
    (tmp_path / "number").write_text("7.5")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import made_up_module

    assert [trial.value for trial in study().minimize(made_up_module.objective, 2, timeout=120).history] == [7.5, 7.5]


def test_reports_questions_and_folders_work_across_processes(tmp_path):
    def objective(config, trial):
        trial.report(0.9, epochs=1, cost=1.0)
        assert not trial.should_stop()
        (trial.checkpoint_dir / "weights").write_text("1")
        trial.report(0.5, epochs=5, cost=25.0)
        assert trial.should_stop()
        return st.Outcome(0.5, cost=25.0)

    found = st.Study(RUNG, st.Random(), checkpoints=tmp_path)
    result = found.minimize(objective, st.Budget(cost=20.0), timeout=120)
    first = result.history[0]
    assert (first.state, first.error) == ("done", None)
    assert [report["value"] for report in first.reports] == [0.9, 0.5]
    assert first.config["epochs"] == 5
    assert (found.checkpoint_dir(0) / "weights").read_text() == "1"
    assert len(result.history) == 1


def test_the_model_is_asked_whether_to_prune_a_running_trial(monkeypatch):
    from shoestring.search.pruning import PruningForecast

    asked = []

    def forecast(context, trial, reports, **options):
        asked.append([report["value"] for report in reports])
        return PruningForecast(0.0)

    def objective(config, trial):
        for epochs in (1, 2, 4, 9):
            trial.report(1.0 / epochs, epochs=epochs)
            if trial.should_stop():
                break
        return 1.0 / epochs

    monkeypatch.setattr("shoestring.state.suggester.pruning_forecast", forecast)
    trial = study(RUNG).minimize(objective, 1, timeout=120).history[0]
    assert asked == [[1.0]]
    assert trial.config["epochs"] == 1
    assert trial.suggestion["stopped"]["kind"] == "hopeless"


def test_what_a_thread_reports_after_its_trial_is_ignored(tmp_path):
    second, late = tmp_path / "second", tmp_path / "late"

    def objective(config, trial):
        def report_late():
            until(second.exists)
            trial.report(7.0)
            with pytest.raises(OSError, match="is over"):
                trial.should_stop()
            late.touch()

        if config["x"] == 0.1:
            threading.Thread(target=report_late, daemon=True).start()
        else:
            second.touch()
            until(late.exists)
            trial.report(0.5)
        return config["x"]

    history = enqueued(0.1, 0.2).minimize(objective, 2, timeout=120).history
    assert states(history) == ["done"] * 2
    assert [[report["value"] for report in trial.reports] for trial in history] == [[], [0.5]]


def test_a_worker_that_dies_between_trials_costs_none(tmp_path):
    def objective(config):
        (tmp_path / str(os.getpid())).touch()
        return config["x"]

    def kill(study, trial):
        """The worker is idle now: its result has come."""
        (pid,) = [int(path.name) for path in tmp_path.iterdir() if alive(int(path.name))]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))

    found = enqueued(0.1)
    assert states(found.minimize(objective, 2, timeout=120, callbacks=kill).history) == ["done"] * 2
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_sent_is_refused_before_anything_is_asked():
    lock, found = threading.Lock(), study()
    with pytest.raises(st.MethodError, match="cannot be sent"):
        found.minimize(lambda config: lock.locked(), 3, workers=2)
    assert len(found.history) == 0


class Unloadable:
    def __reduce__(self):
        return (exec, ("raise ImportError('no such module')",))

    def __call__(self, config):
        return 0.0


def test_an_objective_that_no_worker_can_load_ends_the_run_and_loses_nothing():
    found = study()
    with pytest.raises(st.ExecutionError, match="no such module"):
        found.minimize(Unloadable(), 3, timeout=120)
    assert set(states(found.history)) == {"abandoned"}
    assert states(found.minimize(lambda config: 0.5, 2).history.having(st.State.DONE)) == ["done"] * 2


def test_workers_that_cannot_be_started_end_the_run_and_lose_nothing(monkeypatch, capfd):
    monkeypatch.setattr("shoestring.execution.process_pool.WORKER_PROGRAM", "raise SystemExit('no module of that name')")
    found = study()
    with pytest.raises(st.ExecutionError, match="no worker could be started, in 3 attempts: the worker exited with code 1"):
        found.minimize(lambda config: 0.5, 3, workers=2)
    assert set(states(found.history)) == {"abandoned"}
    assert "no module of that name" in capfd.readouterr().err


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_a_crash_or_a_kill_takes_its_own_trial_alone():
    def objective(config):
        if config["x"] == 0.1:
            os.kill(os.getpid(), signal.SIGKILL)
        if config["x"] == 0.2:
            os._exit(3)
        if config["x"] == 0.3:
            sys.exit(4)
        if config["x"] == 0.4:
            os.kill(os.getpid(), signal.SIGSEGV)
        return config["x"]

    history = enqueued(0.1, 0.5, 0.2, 0.3, 0.4).minimize(objective, 8, workers=2).history
    assert states(history) == ["failed", "done", "failed", "failed", "failed", "done", "done", "done"]
    assert history[0].error == "the worker was killed by signal 9 (out of memory?)"
    assert history[2].error == "the worker exited with code 3"
    assert history[3].error.startswith("SystemExit: 4 (test_process_pool.py, line ")  # and its worker lives on
    assert "SIGSEGV" in history[4].error
    assert all(trial.cost > 0 and not trial.censored for trial in history)


def test_a_hung_objective_is_killed_at_its_timeout_with_all_that_it_has_started(tmp_path):
    def objective(config, trial):
        if config["x"] == 0.1:
            trial.report(0.7, epochs=3)
            child = subprocess.Popen(["sleep", "1000"])
            (tmp_path / str(child.pid)).touch()
            time.sleep(1000)
        return config["x"]

    found = enqueued(0.1, space=RUNG, epochs=9)
    history = found.minimize(objective, 5, workers=2, timeout="800ms", retries=2).history
    assert states(history) == ["failed"] + ["done"] * 4  # a timeout is not tried again: it is the most expensive failure
    assert history[0].error == "timed out after 800 ms"
    assert history[0].censored
    assert history[0].cost == history[0].seconds >= 0.8
    assert [report["value"] for report in history[0].reports] == [0.7]
    (child,) = [int(path.name) for path in tmp_path.iterdir()]
    until(lambda: not alive(child))
    assert not any(trial.censored for trial in history[1:])


def test_what_is_no_result_fails_its_trial_and_the_study_goes_on():
    wrong = [None, "low", [1, 2], float("nan"), st.Outcome(0.5, cost=-1), st.Outcome("low"), st.Outcome(None), object()]

    def objective(config):
        return wrong[int(config["x"])] if config["x"] >= 0 else 0.5

    space = st.Space(x=st.Int(-1, 7))
    found, local = (enqueued(*range(len(wrong)), -1, space=space) for _ in range(2))
    history = found.minimize(objective, 9, timeout=120, retries=3, fail_fast=False).history
    assert states(history) == ["failed"] * 8 + ["done"]
    here = local.minimize(objective, 9, fail_fast=False).history
    assert [str(t.error).split(" at 0x")[0] for t in history] == [str(t.error).split(" at 0x")[0] for t in here]


def test_nothing_ever_waits_for_an_answer_and_what_is_printed_is_seen(capfd):
    def objective(config):
        print("to standard output")
        print("to standard error", file=sys.stderr)
        if config["x"] == 0.1:
            return float(input("how much? "))
        if config["x"] == 0.2:
            with open("/dev/tty") as terminal:
                return float(terminal.readline())
        return len(sys.stdin.read())

    history = enqueued(0.1, 0.2, 0.3).minimize(objective, 3, timeout=120).history
    assert states(history) == ["failed", "failed", "done"]
    assert "EOF" in history[0].error
    out, err = capfd.readouterr()
    assert out.replace("how much? ", "") == "to standard output\n" * 3
    assert err == "to standard error\n" * 3


@pytest.mark.slow  # test_retrying.py and the contract of clusters have it too
def test_failures_that_may_pass_are_tried_again_and_each_attempt_is_a_trial(tmp_path):
    runs = tmp_path / "runs"

    def objective(config):
        if config["x"] == 0.1:
            with runs.open("a") as file:
                file.write(".")
            os.kill(os.getpid(), signal.SIGKILL)
        if config["x"] == 0.2 and not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            raise ConnectionError("try again")
        return config["x"]

    history = enqueued(0.1, 0.2).minimize(objective, 7, timeout=120, retries=2).history
    assert runs.read_text() == "..."
    first, second = ([t for t in history if t.config["x"] == x] for x in (0.1, 0.2))
    assert states(first) == ["failed"] * 3
    assert states(second) == ["failed", "done"]
    assert second[1].suggestion["why"] == "enqueued; again after 1 failure"
    assert first[2].suggestion["why"] == "enqueued; again after 2 failures"
    assert all(trial.cost > 0 for trial in first)
    assert len(history) == 7


def test_raise_errors_raises_what_was_raised_and_ends_the_others(tmp_path):
    def objective(config):
        (tmp_path / str(os.getpid())).touch()
        if config["x"] == 0.2:
            until(lambda: len(list(tmp_path.iterdir())) == 2)
            raise ZeroDivisionError("here")
        time.sleep(1000)

    found = enqueued(0.1, 0.2)
    with pytest.raises(ZeroDivisionError, match="here") as caught:
        found.minimize(objective, 5, workers=2, raise_errors=True)
    assert "in objective" in "".join(caught.value.__notes__)
    assert states(found.history) == ["abandoned"] * 2
    assert not any(alive(int(path.name)) for path in tmp_path.iterdir())
    assert [found.ask().config["x"], found.ask().config["x"]] == [0.1, 0.2]


@pytest.mark.slow  # the contract of executors has it too
def test_a_result_that_came_before_an_error_is_kept(tmp_path):
    found = st.Study(SPACE, Late(tmp_path))
    with pytest.raises(ZeroDivisionError):
        found.minimize(good_then_bad(tmp_path), 9, workers=4, raise_errors=True)
    assert states(found.history) == ["done"] + ["abandoned"] * 3


@pytest.mark.slow
def test_what_is_recommended_is_confirmed_by_a_worker_too():
    space = st.Space(x=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
    result = st.minimize(
        lambda config: st.Outcome((config["x"] - 0.3) ** 2 + 0.1 * config["s"], cost=0.05 + config["s"]),
        space, st.Budget(cost=6.0, unit="u"), workers=2, confirm=True, stop=None, initial=4,
        cost_model=st.KnownCost(lambda config: 0.05 + config["s"]),
    )
    assert result.history.having(st.State.RUNNING) == ()
    assert result.recommended.evaluated


@pytest.mark.slow
def test_workers_that_are_killed_at_random_cost_their_trials_alone():
    """The killer finds them by their parent, as they are at any moment: starting, idle, at work."""
    import random

    import psutil

    done, kills, rng = threading.Event(), [], random.Random(0)

    def kill():
        while not done.wait(rng.uniform(0.2, 1.0)):
            there = [child for child in psutil.Process().children() if "execution.worker" in " ".join(child.cmdline() or [])]
            if there:
                kills.append(rng.choice(there).pid)
                os.kill(kills[-1], signal.SIGKILL)

    def objective(config):
        time.sleep(0.05)
        return config["x"]

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        history = study().minimize(objective, 60, workers=4).history
    finally:
        done.set()
        killer.join()
    assert len(history) == 60
    assert {str(trial.state) for trial in history} <= {"done", "failed"}
    assert all("signal 9" in trial.error for trial in history.having(st.State.FAILED))
    assert not any(alive(pid) for pid in kills)
