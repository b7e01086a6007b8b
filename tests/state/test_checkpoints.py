"""Folders for checkpoints: one for each configuration, at all its fidelities."""

import json
import os
import stat
import tempfile
import threading
import time
import uuid
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
    assert (folder_name(one, space, "a") == folder_name(other, space, "a")) == same
    assert folder_name(one | {"epochs": epochs}, space, "a") == folder_name(one, space, "a")
    assert folder_name(one, space, "a") != folder_name(one, space, "b")
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
    assert first.name != second.name  # the same configuration, of another study
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
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == len(reached)
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


# -- of which study a folder is ----------------------------------------------------------------------------------------


def saving(config, trial):
    """Reports what its folder holds, and saves ``data`` there if it is empty."""
    saved = trial.checkpoint_dir / "saved"
    if not saved.exists():
        saved.write_text(saving.data)
    return float(saved.read_text())


def values(storage, name, data, folder):
    saving.data = data
    study = st.Study(st.Space(n=st.Int(1, 2)), st.Random(), storage=storage, name=name, checkpoints=folder)
    return [trial.value for trial in study.minimize(saving, 2, raise_errors=True).history]


def test_a_study_that_is_removed_and_made_anew_does_not_find_the_checkpoints_of_the_first(database, tmp_path):
    storage = database.open()
    assert values(storage, "net", "1", tmp_path / "saved") == [1.0, 1.0]
    storage.delete(storage.find("net").id)
    assert values(storage, "net", "2", tmp_path / "saved") == [2.0, 2.0]


def test_one_name_in_two_storages_is_two_studies(database, tmp_path):
    assert values(database.open(), "net", "1", tmp_path / "saved") == [1.0, 1.0]
    assert values("memory", "net", "2", tmp_path / "saved") == [2.0, 2.0]


def test_another_process_finds_the_identity_and_the_checkpoints_of_a_study(database, tmp_path):
    first, second = (st.Study(SPACE, storage=database.open(), name="net", checkpoints=tmp_path) for _ in range(2))
    trial = first.ask()
    assert uuid.UUID(first.id) != uuid.UUID(st.Study(SPACE, storage=database.open(), name="other").id)
    assert (first.id, first.checkpoint_dir(trial)) == (second.id, (second.refresh(), second.checkpoint_dir(0))[1])
    assert st.Study.load(database.open(), "net").id == first.id
    assert st.Study.from_json(first.to_json()).id == first.id


@pytest.mark.parametrize("stored", [None, "../../etc", 3, "0" * 36])
def test_a_study_without_a_proper_identity_gets_one_for_good(database, stored):
    storage = database.open()
    made = st.Study(SPACE, storage=storage, name="old")
    storage.revise(storage.find("old").id, {"id": stored})
    first, second = (st.Study.load(database.open(), "old") for _ in range(2))
    assert uuid.UUID(first.id)
    assert first.id == second.id == storage.find("old").settings["id"] != made.id


def test_a_study_that_was_replaced_while_it_was_open_does_not_take_the_identity_of_the_new_one(database):
    storage = database.open()
    st.Study(SPACE, storage=storage, name="net")
    storage.revise(storage.find("net").id, {"id": None})
    study = st.Study.load(storage, "net")
    storage.delete(storage.find("net").id)
    st.Study(SPACE, storage=storage, name="net")
    with pytest.raises(st.StudyError, match=r"deleted.*made anew"):
        study.id  # noqa: B018


OTHERS = ['{"study": "other", "config": {"x": 0.5}}', "{", "[]", None]


@pytest.mark.parametrize("marker", OTHERS, ids=["of another study", "torn", "of another kind", "missing"])
def test_files_that_do_not_name_this_study_are_not_given_to_a_trial(tmp_path, marker):
    study = st.Study(SPACE, checkpoints=tmp_path)
    folder = study.checkpoint_dir(study.add({"x": 0.5}, 0.5))
    (folder / "weights").write_text("1")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    path = folder.with_suffix(".json")
    assert json.loads(path.read_text()) == {"study": study.id, "config": {"x": 0.5}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if marker is None:
        path.unlink()
    else:
        path.write_text(marker)
    again = st.Study.from_json(study.to_json(), checkpoints=tmp_path)
    with pytest.raises(st.StudyError, match=r"has files, but .* study.*Move .* away"):
        again.checkpoint_dir(0)
    assert (folder / "weights").read_text() == "1"
    (folder / "weights").unlink()
    if marker is None:
        assert again.checkpoint_dir(0) == folder  # nothing is in it


def test_only_folders_of_the_study_are_removed(tmp_path):
    first, second = (st.Study(SPACE, checkpoints=tmp_path) for _ in range(2))
    mine, other = (study.checkpoint_dir(study.add({"x": 0.5}, 0.5)) for study in (first, second))
    (tmp_path / "notes").write_text("mine")
    assert Checkpoints(tmp_path, lambda: first.id).remove() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["notes", other.name, f"{other.name}.json"])
    assert not mine.exists()
    assert Checkpoints(tmp_path / "none", lambda: first.id).remove() == 0
