"""A database of version 1 is copied and migrated, and keeps all that is in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shoestring as st
from shoestring.storage import open_storage, schema
from tests.storage.crowd import crowd
from tests.storage.places import done, lease, running

WRITTEN = Path(__file__).with_name("version_1.sql")


@pytest.fixture
def old_file(tmp_path):
    """As the program of version 1 has left it."""
    path = tmp_path / "tune.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(WRITTEN.read_text(encoding="utf-8"))
    return path


def test_an_old_file_is_copied_and_upgraded(old_file):
    storage = open_storage(old_file)
    assert f"from version 1 to version {schema.VERSION}" in storage.upgrade()
    record = storage.find("kept")
    assert (record.halted, record.halts, record.trials, record.waiting, record.clock) == ("lunch", 0, 3, 1, 12)
    assert record.settings["run"] == {"command": ["python", "train.py"]}
    assert 12.5 < record.seconds < 13.0
    assert [each.trial.state for each in storage.changes_since(record.id, 0).trials] == ["done", "done", "running"]
    assert storage.check() == []
    with closing(sqlite3.connect(old_file.with_name("tune.db.v1-backup"))) as copy:
        assert copy.execute("SELECT value FROM meta").fetchall() == [("1",)]
        assert "halts" not in [row[1] for row in copy.execute("PRAGMA table_info(studies)")]
        assert copy.execute("SELECT count(*) FROM trials").fetchall() == [(3,)]
    storage.close_connections()


def test_a_study_in_an_old_file_goes_on(old_file):
    study = st.Study.load(old_file)
    assert [trial.value for trial in study.history][:2] == [0.007335779832396503, 0.0641371214406322]
    study.tell(2, 0.25, cost=1.0)
    study.minimize(lambda config: config["x"] ** 2, 5)
    assert len(study.history) == 5
    assert study.history[3].config == {"x": 0.25, "act": "tanh"}
    assert study.replay().first_difference is None
    assert study.storage.find("kept").halted is None
    study.halt("enough")
    assert study.storage.find("kept").halts == 1
    study.storage.close_connections()


def as_version_1(database):
    """What there is now, with the tables of version 1."""
    storage = database.open()
    study = storage.begin("study", {"seed": 0})[0].id
    storage.write(study, done(0, 0.5))
    storage.write(study, running(1), lease=lease())
    storage.close_connections()
    database.execute("ALTER TABLE studies DROP COLUMN halts")
    database.execute("UPDATE meta SET value = '1'")
    return study


def test_old_tables_are_upgraded_and_keep_their_trials(database):
    study = as_version_1(database)
    storage = database.open()
    assert f"from version 1 to version {schema.VERSION}" in storage.upgrade()
    assert [each.trial for each in storage.changes_since(study, 0).trials] == [done(0, 0.5), running(1)]
    storage.revise(study, halted="enough")
    assert storage.find("study").halts == 1
    assert storage.check() == []


def test_a_crowd_upgrades_old_tables_once(database):
    as_version_1(database)
    said = crowd(_upgrade, [(database.address,)] * 6)
    assert sum("from version 1" in each for each in said) == 1


def _upgrade(address):
    storage = open_storage(address)
    storage.close_connections()
    return storage.upgrade()


def test_a_program_of_version_1_that_still_runs_can_begin_studies(database):
    """It does not know the new column."""
    as_version_1(database)
    storage = database.open()
    columns = "name, settings, seal, seconds, clock, created_at, made_by, trials, counted, running, spent, reserved, waiting"
    database.execute(
        f"INSERT INTO studies ({columns}) SELECT 'other', settings, seal, 0, 0, 0, 'x', 0, 0, 0, 0, 0, 0 FROM studies"
    )
    assert database.execute("SELECT halts FROM studies WHERE name = 'other'") == [(0,)]
    assert storage.upgrade()
