"""Checkpoints of runs that go on: found again by workers and after a kill, removed when they are of no use any more."""

import logging
import os
import signal

import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.errors import MethodError
from shoestring.state import study_state
from shoestring.state.checkpoints import Checkpoints, folder_bytes, read_limit, remove_root
from tests.storage.crowd import worker

EPOCHS = st.Fidelity(1, 50, resumable=True)
SPACE = st.Space(x=st.Float(0, 1), epochs=EPOCHS)


def train(config, trial):
    """Counts its epochs in a file, a byte each, and says where it went on from."""
    state = trial.checkpoint_dir / "epochs"
    done = len(state.read_bytes()) if state.exists() else 0
    expected = 0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"]
    assert done == expected
    state.write_bytes(b"." * config["epochs"])
    return st.Outcome((config["x"] - 0.3) ** 2 + 1 / config["epochs"], cost=config["epochs"] - done)


def study_of(*asked, space=SPACE, **options):
    study = st.Study(space, method=st.Random(), **options)
    for x, epochs in asked:
        study.enqueue({"x": x, "epochs": epochs})
    return study


def paid(study):
    return [trial.cost for trial in study.history]


# -- where it works ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"workers": 2, "threads": True}, {"workers": 1}], ids=["here", "threads", "processes"])
def test_a_config_that_was_trained_to_10_epochs_and_is_asked_at_50_pays_for_40(tmp_path, how):
    study = study_of((0.5, 10), checkpoints=tmp_path)
    study.minimize(train, 1, **how)
    study.enqueue({"x": 0.5, "epochs": 50})
    result = study.minimize(train, 2, raise_errors=True, **how)
    assert paid(study) == [10, 40]
    assert result.spent == 50
    assert result.history[1].resumed_from == (0, {"epochs": 10}, 10.0)
    assert result.history[1].suggestion["saved"]


@pytest.mark.parametrize(
    "isolate", [None, pytest.param(60.0, marks=pytest.mark.slow)], ids=["in the worker", "in a process of its own"]
)
def test_on_an_executor_of_the_user_a_run_goes_on_in_the_shared_folder(tmp_path, isolate):
    from concurrent.futures import ProcessPoolExecutor

    study = study_of((0.5, 10), checkpoints=tmp_path)
    with ProcessPoolExecutor(1) as pool:
        study.minimize(train, 1, executor=pool, workers=1, timeout=isolate)
        study.enqueue({"x": 0.5, "epochs": 50})
        study.minimize(train, 2, executor=pool, workers=1, timeout=isolate, raise_errors=True)
    assert paid(study) == [10, 40]


def test_where_nothing_is_said_saved_files_decide_and_the_log_says_so_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="shoestring")
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50))
    study = study_of((0.5, 10), (0.5, 50), (0.25, 5), (0.25, 10), space=space, checkpoints=tmp_path)
    study.minimize(train, 4, raise_errors=True)
    assert paid(study) == [10, 40, 5, 5]
    assert caplog.text.count("saved files in its checkpoint folder") == 1
    assert all((tmp_path / name).exists() for name in os.listdir(tmp_path))
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2  # what nobody has declared is not removed


def test_where_the_user_says_no_nothing_is_taken_to_go_on(tmp_path):
    def saves(config, trial):
        assert trial.resumed_from is None
        (trial.checkpoint_dir / "model").write_text("best")
        return st.Outcome(0.5, cost=config["epochs"])

    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=False))
    study = study_of((0.5, 10), (0.5, 50), space=space, checkpoints=tmp_path)
    study.minimize(saves, 2, raise_errors=True)
    assert study.checkpoint_dir(0) == study.checkpoint_dir(1)


def test_a_retry_goes_on_from_what_was_saved(tmp_path):
    calls = []

    def flaky(config, trial):
        calls.append(trial.resumed_from)
        if len(calls) == 2:
            (trial.checkpoint_dir / "epochs").write_bytes(b"." * 30)
            raise OSError("the node went away")
        return st.Outcome(0.5, cost=1)

    study = study_of((0.5, 10), (0.5, 50), checkpoints=tmp_path)
    study.minimize(flaky, 3, retries=1)
    assert [before and before.number for before in calls] == [None, 0, 0]
    assert study.checkpoint_dir(2) == study.checkpoint_dir(0)
    assert study.history[2].suggestion["interrupted"]


# -- stored --------------------------------------------------------------------------------------------------------------


def test_a_space_that_says_nothing_is_stored_as_before():
    old = '{"x": {"kind": "float", "low": 0, "high": 1}, "epochs": {"kind": "fidelity", "low": 1, "high": 50}}'
    assert st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50)) == st.Space.from_json(old)
    assert "resumable" not in st.Space.from_json(old).to_json()
    for stands in (True, False):
        space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=stands))
        assert st.Space.from_json(space.to_json())["epochs"].resumable is stands
    with pytest.raises(st.SpaceError, match="epochs: resumable must be True, False or None, not 'yes'"):
        st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable="yes"))


def test_a_study_that_is_opened_again_goes_on_with_its_runs(tmp_path):
    where = {"storage": tmp_path / "a.db", "checkpoints": tmp_path / "saved"}
    study_of((0.5, 10), **where).minimize(train, 1)
    again = study_of((0.5, 50), **where)
    again.minimize(train, 2, raise_errors=True)
    assert paid(again) == [10, 40]
    assert again.history[1].to_dict()["suggestion"]["resumed_from"]["fidelity"] == {"epochs": 10}


def test_of_two_processes_that_want_to_go_on_with_a_run_one_does(tmp_path):
    where = {"storage": tmp_path / "a.db", "checkpoints": tmp_path / "saved"}
    study_of((0.5, 10), **where).minimize(train, 1)
    one, other = (st.Study(SPACE, method=st.Random(), **where) for _ in range(2))
    one.enqueue({"x": 0.5, "epochs": 30})
    one.enqueue({"x": 0.5, "epochs": 50})
    first, second = one.ask(), other.ask()
    assert [trial.resumed_from and trial.resumed_from.number for trial in (first, second)] == [0, None]
    assert one.checkpoint_dir(first) != other.checkpoint_dir(second)


def _die_while_going_on(pipe, address, folder, moment):
    study_state.SECONDS_BETWEEN_REPORTS = 0.0  # else what was reported in the last second is not stored

    def train(config, trial):
        state = trial.checkpoint_dir / "epochs"
        done = len(state.read_bytes()) if state.exists() else 0
        for epoch in range(done + 1, config["epochs"] + 1):
            state.write_bytes(b"." * epoch)
            trial.report(0.5, epochs=epoch, cost=epoch - done)
            if epoch == moment:
                os.kill(os.getpid(), signal.SIGKILL)
        return st.Outcome(0.5, cost=config["epochs"] - done)

    study_of((0.5, 10), (0.5, 50), storage=address, checkpoints=folder).minimize(train, 2)


MOMENTS = [30, *(pytest.param(epoch, marks=pytest.mark.slow) for epoch in (11, 50))]  # after its first and its last epoch too


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_was_killed_while_it_went_on_keeps_its_checkpoint_and_what_was_paid(database, tmp_path, moment):
    with worker(_die_while_going_on, database.address, tmp_path / "saved", moment) as (process, _):
        process.join()
        assert process.exitcode == -signal.SIGKILL
    seen = []

    def train(config, trial):
        state = trial.checkpoint_dir / "epochs"
        seen.append((len(state.read_bytes()), trial.resumed_from))
        return st.Outcome(0.5, cost=config["epochs"] - len(state.read_bytes()))

    study = st.Study(SPACE, method=st.Random(), storage=database.open(), checkpoints=tmp_path / "saved")
    result = study.minimize(train, 2, raise_errors=True)
    first, killed, last = result.history
    assert [str(trial.state) for trial in result.history] == ["done", "abandoned", "done"]
    assert seen == [(moment, (0, {"epochs": 10}, 10.0))]  # what the killed trial had saved is there
    assert (first.cost, last.cost) == (10, 50 - moment)
    assert killed.cost == moment - 10  # what it reported; the 10 epochs before it are not charged again
    assert result.spent == 50  # every epoch was paid once
    data = to_dataset(result.history)
    assert data.censored[:2].tolist() == [False, True]  # a lower bound of what 50 epochs cost from the start
    assert data.censored.sum() == 1
    assert database.open().check() == []


def test_an_abandoned_trial_has_cost_what_it_reported_also_where_time_has_no_price():
    study = st.Study(SPACE, method=st.Random(), budget=st.Budget(cost=100, unit="EUR"))
    costs = [2.0, 5.0]

    def stop_after_two(config, trial):
        for epoch, cost in enumerate(costs, 1):
            trial.report(0.5, epochs=epoch, cost=cost)
        raise KeyboardInterrupt

    study.enqueue({"x": 0.5, "epochs": 50})
    study.minimize(stop_after_two, st.Budget(cost=100, unit="EUR"), on_interrupt="return")
    assert [(str(trial.state), trial.cost) for trial in study.log] == [("abandoned", 5.0)]
    assert study.history.spent == 5.0


# -- removed -------------------------------------------------------------------------------------------------------------


def folders(root):
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def test_a_checkpoint_is_removed_when_its_run_has_reached_the_target_unless_it_is_the_best(tmp_path):
    study = study_of((0.3, 50), (0.9, 10), (0.9, 50), (0.8, 10), checkpoints=tmp_path)
    study.minimize(train, 4, raise_errors=True)
    checkpoints = study._checkpoints
    there = [checkpoints.path(trial.config, SPACE).is_dir() for trial in study.history]
    assert there == [True, False, False, True]  # the best, one at the target, and one that may go on
    assert paid(study) == [50, 10, 40, 10]


def test_above_the_limit_the_oldest_and_worst_checkpoints_go_and_their_configs_pay_in_full_again(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="shoestring")
    monkeypatch.setenv("SHOESTRING_CHECKPOINT_LIMIT", "25 B")
    study = study_of((0.9, 10), (0.3, 10), (0.5, 10), checkpoints=tmp_path)
    study.minimize(train, 3, raise_errors=True)
    assert study._checkpoints.size() == 20
    assert "take more than 25 B: removed 1 checkpoint (trial 0); a config that is asked with more pays in full" in caplog.text
    study.enqueue({"x": 0.9, "epochs": 12})
    study.enqueue({"x": 0.3, "epochs": 12})
    study.minimize(train, 5, raise_errors=True)
    assert paid(study)[3:] == [12, 2]
    assert study.history[3].resumed_from is None


def test_a_checkpoint_that_is_gone_is_noticed_and_said(tmp_path, caplog):
    where = {"storage": tmp_path / "a.db", "checkpoints": tmp_path / "saved"}
    study_of((0.5, 10), **where).minimize(train, 1)
    study = study_of((0.5, 50), storage=tmp_path / "a.db", checkpoints=tmp_path / "elsewhere")
    trial = study.ask()
    assert trial.resumed_from is None
    assert "the checkpoint of this config is gone, so trial 1 begins from the start and pays in full" in caplog.text


@pytest.mark.parametrize(("text", "size"), [("", 10 * 10**9), ("500 MB", 5 * 10**8), ("1.5gb", 1_500_000_000), ("7 b", 7)])
def test_the_limit_is_read_from_the_environment(monkeypatch, text, size):
    monkeypatch.setenv("SHOESTRING_CHECKPOINT_LIMIT", text)
    assert read_limit() == size


def test_a_limit_that_cannot_be_read_is_an_error_that_says_how_to_write_it(monkeypatch):
    monkeypatch.setenv("SHOESTRING_CHECKPOINT_LIMIT", "a lot")
    with pytest.raises(MethodError, match="write a number with its unit, such as 500 MB or 10 GB"):
        read_limit()


def test_a_temporary_folder_of_runs_that_can_go_on_goes_with_its_process(tmp_path):
    checkpoints = Checkpoints()
    folder = checkpoints.folder({"x": 0.5, "epochs": 3}, SPACE)
    (folder / "weights").write_text("12345")
    assert folder_bytes(folder) == 5
    remove_root(checkpoints.root, os.getpid() + 1)  # a process that was forked
    assert folder.is_dir()
    remove_root(checkpoints.root, os.getpid())
    assert not checkpoints.root.exists()


# -- programs ------------------------------------------------------------------------------------------------------------


def test_a_program_gets_the_folder_of_its_run_and_where_it_goes_on_from(tmp_path):
    import sys

    from shoestring.program import CommandTemplate, ProgramObjective
    from shoestring.program.result_reader import Logs

    code = (
        "import json, os, pathlib, sys\n"
        "state = pathlib.Path(sys.argv[1]) / 'epochs'\n"
        "done = int(state.read_text()) if state.exists() else 0\n"
        "before = json.loads(os.environ.get('SHOESTRING_RESUMED_FROM', 'null'))\n"
        "assert (before and before['fidelity']['epochs'] or 0) == done, before\n"
        "state.write_text(sys.argv[2])\n"
        "print(json.dumps(dict(value=0.5, cost=int(sys.argv[2]) - done)))\n"
    )
    template = CommandTemplate((sys.executable, "-S", "-c", code, "{checkpoint}", "{epochs}", "{x}"), SPACE)
    study = study_of((0.5, 10), (0.5, 50), checkpoints=tmp_path / "saved")
    with ProgramObjective(template, Logs(tmp_path / "logs"), "test") as objective:
        study.minimize(objective, 2, raise_errors=True)
    assert paid(study) == [10, 40]


def test_the_summary_and_the_log_say_which_trials_went_on(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="shoestring")
    result = study_of((0.5, 10), (0.5, 50), checkpoints=tmp_path).minimize(train, 2)
    assert "1 of 2 trials went on from an earlier one and paid for the rest alone" in str(result)
    assert "in 40 s, on from trial 0 " in caplog.text
