"""Folders for checkpoints: one for each configuration, at all its fidelities."""

import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as draws

import shoestring as st
from shoestring.state import checkpoints
from shoestring.state.checkpoints import Checkpoints, folder_name, remove_empty_folders
from tests.problems import mixed_space
from tests.spaces import configs

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9), rows=st.Fidelity(0, 1))


@given(data=draws.data(), epochs=draws.integers(1, 9))
def test_configurations_share_a_name_exactly_if_they_differ_in_fidelities_alone(data, epochs):
    space = st.Space({**mixed_space(), "epochs": st.Fidelity(1, 9)})
    one, other = data.draw(configs(space)), data.draw(configs(space))
    same = one | {"epochs": 1} == other | {"epochs": 1}
    assert (folder_name(one, space) == folder_name(other, space)) == same
    assert folder_name(one | {"epochs": epochs}, space) == folder_name(one, space)
    assert Checkpoints().root is None


def test_a_folder_is_made_when_it_is_asked_for_and_not_before(tmp_path):
    study = st.Study(SPACE, checkpoints=tmp_path / "runs" / "first")
    trial = study.ask()
    study.tell(trial, 0.5)
    assert list(tmp_path.iterdir()) == []
    folder = study.checkpoint_dir(trial)
    assert folder.is_dir()
    assert folder.parent == tmp_path / "runs" / "first"
    assert len(folder.name) == 12
    assert study.checkpoint_dir(trial.number) == folder


def test_all_fidelities_of_a_configuration_have_one_folder(tmp_path):
    study = st.Study(SPACE, checkpoints=str(tmp_path))
    same = [study.add({"x": 0.25, "epochs": epochs, "rows": rows}, 0.5) for epochs, rows in [(1, 0.5), (9, 0.5), (9, 1.0)]]
    other = study.add({"x": 0.26, "epochs": 9}, 0.5)
    assert len({study.checkpoint_dir(trial) for trial in same}) == 1
    assert study.checkpoint_dir(other) != study.checkpoint_dir(same[0])
    again = st.Study.from_json(study.to_json(), checkpoints=tmp_path)
    assert again.checkpoint_dir(0) == study.checkpoint_dir(0)
    assert str(tmp_path) not in study.to_json()


def test_the_default_is_a_temporary_folder_of_the_study(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    studies = [st.Study(mixed_space(), seed=1) for _ in range(2)]
    first, second = (study.checkpoint_dir(study.ask()) for study in studies)
    assert first.name == second.name  # the same configuration, of another study
    assert first.parent != second.parent
    assert first.parent.parent == tmp_path
    assert studies[0].checkpoint_dir(0) == first
    quiet = st.Study(mixed_space()).minimize(lambda config, trial: 0.5, 3).study
    assert quiet._checkpoints.root is None
    assert len(list(tmp_path.iterdir())) == 2


def test_empty_folders_are_removed_from_a_temporary_folder_and_what_was_saved_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders = Checkpoints()
    empty, used = (folders.folder({"x": x}, SPACE) for x in (0.25, 0.5))
    (used / "weights").write_text("1")
    remove_empty_folders(folders.root, os.getpid() + 1)  # a process that was forked
    assert empty.is_dir()
    remove_empty_folders(folders.root, os.getpid())  # as at exit
    assert not empty.exists()
    assert (used / "weights").read_text() == "1"
    (used / "weights").unlink()
    remove_empty_folders(folders.root, os.getpid())
    assert list(tmp_path.iterdir()) == []
    remove_empty_folders(folders.root, os.getpid())


def test_threads_that_need_a_folder_at_once_get_the_same(tmp_path, monkeypatch):
    def slow_root():
        time.sleep(0.001)
        return tmp_path / str(threading.get_ident())

    monkeypatch.setattr(checkpoints, "temporary_root", slow_root)
    folders, found = Checkpoints(), []
    threads = [threading.Thread(target=lambda: found.append(folders.folder({"x": 0.5}, SPACE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def train(config, trial):
    """Counts its epochs in a file, and goes on from where the configuration was paused."""
    state = trial.checkpoint_dir / "epochs.txt"
    done = int(state.read_text()) if state.exists() else 0
    for epoch in range(done + 1, config["epochs"] + 1):
        state.write_text(str(epoch))
    assert int(state.read_text()) == config["epochs"]
    return st.Outcome(config["x"] + 1 / config["epochs"], cost=config["epochs"] - done)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_promoted_configuration_goes_on_from_where_it_stopped(tmp_path, asynchronous):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27))
    method = st.Hyperband(asynchronous=asynchronous)
    result = st.minimize(train, space, 60, method=method, checkpoints=tmp_path, raise_errors=True)
    reached = {}
    for trial in result.history:
        assert trial.cost == trial.config["epochs"] - reached.get(trial.config["x"], 0)
        reached[trial.config["x"]] = trial.config["epochs"]
    assert len(reached) < 60
    assert len(list(tmp_path.iterdir())) == len(reached)
    assert result.spent == sum(reached.values())  # no epoch was trained twice


def test_what_an_objective_does_to_its_config_or_to_the_working_directory_moves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = []

    def objective(config, trial):
        folders.append(trial.checkpoint_dir)
        config["x"] = trial.config["x"] = 7.0
        folder = Path("elsewhere")
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        folders.append(trial.checkpoint_dir)
        return 0.5

    study = st.minimize(objective, SPACE, 2, method=st.Random(), checkpoints="saved", raise_errors=True).study
    assert folders == [folder for number in (0, 1) for folder in [study.checkpoint_dir(number)] * 2]
    assert {folder.parent for folder in folders} == {tmp_path / "saved"}


@pytest.mark.parametrize("bad", [3, "", True, b"folder", ["folder"]], ids=repr)
def test_what_is_no_path_is_refused(bad):
    with pytest.raises(st.MethodError, match="checkpoints"):
        st.Study(SPACE, checkpoints=bad)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(st.MethodError, match=r"notes.*is a file"):
        st.minimize(train, SPACE, 3, checkpoints=tmp_path / "notes")


def test_a_trial_of_another_study_has_no_folder_here():
    study, other = st.Study(SPACE), st.Study(SPACE)
    mine, foreign = study.ask(), other.ask()
    with pytest.raises(st.TrialError, match="another study"):
        study.checkpoint_dir(foreign)
    with pytest.raises(st.TrialError, match="no trial 1"):
        study.checkpoint_dir(mine.number + 1)
