"""The power fails at any moment: each result whose call had returned is there, and the file can be used."""

import os
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import event

from shoestring.errors import StorageError
from shoestring.storage import open_storage, sqlite
from tests.storage import crash_disk
from tests.storage.places import done, lease, running

pytestmark = pytest.mark.skipif(crash_disk.library() is None, reason="SQLite is not a library that can be wrapped")

TRIALS = 12
PAGES_PER_CHECKPOINT = 12  # so that the log is merged, and written from its beginning again, several times


def session(path, monkeypatch):
    """The steps of a disk while trials are written; each result is noted when its call has returned."""
    with crash_disk.recorded(os.path.realpath(path), monkeypatch) as disk:
        storage = open_storage(path)
        event.listen(storage._database.engine, "connect", lambda connection, _: _merge_often(connection))
        storage._database.engine.dispose()
        study = storage.begin("study", {})[0].id
        for number in range(TRIALS):
            storage.write(study, running(number), lease=lease())
            storage.close(study, done(number, float(number)))
            disk.note(number)
        storage.close_connections()
        disk.note("closed")
    return disk


def _merge_often(connection):
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES_PER_CHECKPOINT}")


def crash(disk, end, seed, folder):
    """The trials that a new program finds after a power failure."""
    path = folder / "tune.db"
    for beside in folder.glob("tune.db*"):
        beside.unlink()
    for suffix, content in disk.after_a_crash(end, crash_disk.luck(f"{end} {seed}")).items():
        (folder / f"tune.db{suffix}").write_bytes(content)
        os.utime(folder / f"tune.db{suffix}", (0, 0))  # from before the machine was started again
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # this test has its own disk
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
            return {}
        rows = connection.execute("SELECT number, value FROM trials WHERE state = 'done'").fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return dict(rows)


def lost(disk, moments, seeds, folder):
    """How many crashes lose a result that was told, and how many were tried."""
    found = tried = 0
    for end in moments:
        told = {note for note in disk.noted(end) if note != "closed"}
        for seed in range(seeds):
            tried += 1
            found += not told <= set(crash(disk, end, seed, folder))
    return found, tried


@pytest.fixture(params=["file", "link"])
def path(request, tmp_path):
    (tmp_path / "real").mkdir()
    if request.param == "file":
        return tmp_path / "real" / "tune.db"
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "tune.db")
    (tmp_path / "real" / "tune.db").touch(0o600)
    return tmp_path / "link.db"


def test_a_power_failure_loses_no_result_that_was_told(path, tmp_path, monkeypatch):
    disk = session(path, monkeypatch)
    assert sum(step[0] == "sync" for step in disk.steps) > 2 * TRIALS
    assert any(step[0] == "write" and step[1] == "" for step in disk.steps[: len(disk.steps) // 2])  # the log was merged
    found, tried = lost(disk, range(0, len(disk.steps) + 1, 7), 1, tmp_path)
    assert found == 0
    assert tried > 40


@pytest.mark.slow
def test_a_power_failure_at_every_moment_loses_no_result_that_was_told(path, tmp_path, monkeypatch):
    disk = session(path, monkeypatch)
    found, tried = lost(disk, range(len(disk.steps) + 1), 10, tmp_path)
    assert found == 0
    assert tried > 3000


def test_without_the_flush_results_are_lost(tmp_path, monkeypatch):
    """So the test above can fail."""
    monkeypatch.setattr(sqlite.SQLiteFile, "flush", lambda self: None)
    disk = session(tmp_path / "tune.db", monkeypatch)
    assert lost(disk, range(0, len(disk.steps), 11), 1, tmp_path)[0] > 0


def test_after_a_power_failure_the_study_goes_on(tmp_path, monkeypatch):
    disk = session(tmp_path / "tune.db", monkeypatch)
    for end in range(len(disk.steps) // 2, len(disk.steps), 41):
        expected = crash(disk, end, 0, tmp_path)
        storage = open_storage(tmp_path / "tune.db")
        study = storage.begin("study", {})[0].id
        changes = storage.changes_since(study, 0)
        assert {each.trial.number: each.trial.value for each in changes.trials if each.trial.value is not None} == expected
        storage.write(study, done(len(changes.trials)))
        assert storage.check() == []
        storage.close_connections()


def test_a_flush_that_fails_is_an_error(sqlite_place, monkeypatch):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(StorageError, match=r"tune\.db: what was written could not be flushed .*Input/output error"):
            storage.write(study, done(0))
    assert storage.changes_since(study, 0).trials  # it was committed, but nobody may rely on it


def test_a_log_that_is_deleted_under_a_running_program_is_missed(sqlite_place):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0))
    os.unlink(f"{sqlite_place.path}-wal")
    with pytest.raises(StorageError, match=r"tune\.db-wal, which belongs to .*tune\.db, was deleted or replaced"):
        storage.write(study, done(1))


def test_a_log_that_is_replaced_under_a_running_program_is_missed(sqlite_place, tmp_path):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0))
    (tmp_path / "other").write_bytes(b"")
    os.replace(tmp_path / "other", f"{sqlite_place.path}-wal")
    with pytest.raises(StorageError, match="was deleted or replaced"):
        storage.write(study, done(1))
