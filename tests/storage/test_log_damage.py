"""A write-ahead log (-wal) that is damaged, cut or missing: an error that names it, never a silent loss."""

import logging
import os
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

import shoestring as st
from shoestring.errors import StorageError
from shoestring.storage import open_storage, write_ahead_log
from shoestring.storage.write_ahead_log import find_damage, read_index, read_log
from tests.storage.places import done, lease, running

TRIALS = 20


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(write_ahead_log, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def killed(sqlite_place, tmp_path):
    """The files of a process that was killed: all trials are in the log, and none is in the file."""
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.merge_log()
    for number in range(TRIALS):
        storage.write(study, running(number), lease=lease())
        storage.close(study, done(number, number / 7))
    folder = tmp_path / "killed"
    folder.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{sqlite_place.path}{suffix}", folder / f"tune.db{suffix}")
    return folder / "tune.db"


def copied(killed, tmp_path, index):
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix in ("", "-wal", "-shm") if index else ("", "-wal"):
        shutil.copy(f"{killed}{suffix}", folder / f"tune.db{suffix}")
    return folder / "tune.db"


def look(path):
    """'whole', 'error' if an error names the log, or how many trials there are."""
    try:
        storage = open_storage(path)
    except StorageError as error:
        said = str(error)
        return "error" if "tune.db-wal, which belongs to" in said and "wal_checkpoint(TRUNCATE)" in said else said
    try:
        study = storage.find("study")
        found = storage.changes_since(study.id, 0).trials
        return "whole" if [each.trial for each in found] == [done(number, number / 7) for number in range(TRIALS)] else len(found)
    finally:
        storage.close_connections()


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "alone"])
def test_the_log_of_a_killed_process_is_read(killed, tmp_path, index):
    path = copied(killed, tmp_path, index)
    assert read_log(f"{path}-wal").committed == read_index(f"{killed}-shm").committed > 2 * TRIALS
    assert look(path) == "whole"


def flips(killed, tmp_path, index, times):
    luck, size, seen = random.Random(0), os.path.getsize(f"{killed}-wal"), []
    for _ in range(times):
        path = copied(killed, tmp_path, index)
        with open(f"{path}-wal", "r+b") as file:
            file.seek(at := luck.randrange(size))
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ luck.randrange(1, 256)]))
        seen.append(look(path))
    return seen


def test_a_flipped_byte_in_the_log_is_an_error(killed, tmp_path):
    assert set(flips(killed, tmp_path, True, 20)) == {"error"}
    assert set(flips(killed, tmp_path, False, 10)) == {"error"}  # by the whole writes behind it


@pytest.mark.slow
def test_many_flipped_bytes_in_the_log_are_errors(killed, tmp_path):
    assert set(flips(killed, tmp_path, True, 500)) == {"error"}


def test_a_log_that_was_cut_is_an_error(killed, tmp_path):
    size = os.path.getsize(f"{killed}-wal")
    for cut in (0, 31, 32, 100, size // 2, size - 4120, size - 1):
        path = copied(killed, tmp_path, True)
        os.truncate(f"{path}-wal", cut)
        assert look(path) == "error", cut


def test_a_log_that_was_deleted_is_an_error(killed, tmp_path):
    path = copied(killed, tmp_path, True)
    os.unlink(f"{path}-wal")
    assert look(path) == "error"


def test_what_is_before_the_damage_can_be_used_after_the_command_in_the_error(killed, tmp_path):
    path = copied(killed, tmp_path, True)
    os.truncate(f"{path}-wal", os.path.getsize(f"{path}-wal") // 2)
    assert look(path) == "error"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert 0 < look(path) < TRIALS


def test_a_write_that_was_not_finished_when_the_process_was_killed_is_no_damage(killed, tmp_path):
    """The last commit is not in the index, as when the process was killed in the middle of a write."""
    path = copied(killed, tmp_path, True)
    with open(f"{path}-wal", "ab") as file:
        file.write(b"\1" * 2000)
    assert find_damage(str(path)) is None
    assert look(path) == "whole"


def test_after_a_power_failure_damage_is_logged_and_the_log_is_kept(killed, tmp_path, caplog):
    path = copied(killed, tmp_path, True)
    os.truncate(f"{path}-wal", os.path.getsize(f"{path}-wal") // 2)
    for suffix in ("-wal", "-shm"):
        os.utime(f"{path}{suffix}", (0, 0))  # before the machine was started
    with caplog.at_level(logging.WARNING, "shoestring"):
        assert 0 < look(path) < TRIALS
    assert "usual after a power failure" in caplog.text
    (copy,) = path.parent.glob("tune.db-wal.damaged-*")
    assert copy.stat().st_size > 32


def test_a_log_in_use_is_no_damage(sqlite_place):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    for number in range(5):
        storage.write(study, done(number))
        assert find_damage(str(sqlite_place.path)) is None
        if number == 2:
            storage.merge_log()
    assert sqlite_place.open().find("study").trials == 5


def test_after_a_merge_the_file_alone_is_whole(sqlite_place, tmp_path):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0))
    storage.merge_log()
    shutil.copy(sqlite_place.path, tmp_path / "alone.db")
    alone = open_storage(tmp_path / "alone.db")
    assert [each.trial for each in alone.changes_since(study, 0).trials] == [done(0)]
    assert alone.check() == []
    alone.close_connections()


def test_at_the_end_of_a_run_the_file_alone_is_whole(tmp_path):
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=tmp_path / "tune.db", name="study", seed=0)
    study.minimize(lambda config: config["x"], 5, progress=False)
    shutil.copy(tmp_path / "tune.db", tmp_path / "alone.db")
    alone = st.Study.load(tmp_path / "alone.db")
    assert alone.history == study.history
    for each in (alone, study):
        each.storage.close_connections()
