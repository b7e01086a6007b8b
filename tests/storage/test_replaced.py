"""A database that is replaced under a running study: the next call is refused, and results that are held are not lost."""

import logging
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

import shoestring as st
from shoestring.errors import StorageError
from shoestring.storage import open_storage
from tests.storage.places import done, lease, running


def test_another_file_in_its_place_is_refused_and_not_touched(sqlite_place, tmp_path):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.backup(tmp_path / "older.db")
    storage.write(study, done(0))
    sqlite_place.path.rename(tmp_path / "first.db")
    shutil.copy(tmp_path / "older.db", sqlite_place.path)
    before = sqlite_place.path.read_bytes()
    for call in (lambda: storage.write(study, done(1)), lambda: storage.changes_since(study, 0)):
        with pytest.raises(StorageError, match=r"tune\.db: another file was put in its place .*put the first one back"):
            call()
    assert sqlite_place.path.read_bytes() == before
    os.replace(tmp_path / "first.db", sqlite_place.path)
    storage.write(study, done(1))
    assert len(storage.changes_since(study, 0).trials) == 2


def test_a_link_that_leads_elsewhere_is_refused(tmp_path):
    for name in ("one.db", "two.db"):
        first = open_storage(tmp_path / name)
        first.begin("study", {})
        first.close_connections()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "one.db")
    storage = open_storage(link)
    study = storage.find("study").id
    link.unlink()
    link.symlink_to(tmp_path / "two.db")
    with pytest.raises(StorageError, match=r"link\.db: another file was put in its place"):
        storage.write(study, done(0))
    storage.close_connections()


def older(database, study):
    """The same database, as it was before the last trial."""
    database.execute(f"DELETE FROM trials WHERE number = 1 AND study = {study}")
    database.execute("UPDATE studies SET trials = 1, counted = 1, clock = 1, checksum_clock = 0")


def another(database, study):
    """A study of the same number, made by another call."""
    database.execute("UPDATE studies SET made_by = 'somebody else'")


def same_clock(database, study):
    """As many writes, but other ones."""
    database.execute("UPDATE studies SET trials_checksum = trials_checksum + 1")


@pytest.mark.parametrize("change", [older, another, same_clock])
def test_an_older_or_another_state_of_the_study_is_refused(database, change):
    storage = database.open()
    study, mine = storage.begin("study", {})[0].id, lease()
    storage.write(study, running(0), lease=mine)
    storage.write(study, done(1))
    change(database, study)
    calls = [
        lambda: storage.write(study, running(1), lease=lease()),
        lambda: storage.close(study, done(0, 0.25)),
        lambda: storage.report(study, 0, mine.token, [{"value": 0.5}]),
        lambda: storage.renew(study, {0: mine.token}, 60.0),
        lambda: storage.best(study, maximize=False),
        lambda: storage.enqueue(study, {"x": 1}, {}),
        lambda: storage.revise(study, {"a": 1}),
        lambda: storage.changes_since(study, 2),
    ]
    for call in calls:
        with pytest.raises(StorageError, match="replaced by an older or another copy while it was in use; nothing was written"):
            call()
    if change is older:
        assert database.open().find("study").trials == 1  # who opens it anew can use it


def test_what_other_processes_write_is_no_replacement(database):
    ours, theirs = database.open(), database.open()
    study = ours.begin("study", {})[0].id
    for number in range(6):
        (ours if number % 2 else theirs).write(study, done(number))
        ours.changes_since(study, 0)
    ours.delete(study)
    again = theirs.begin("study", {})[0].id
    ours.write(again, done(0))
    assert ours.check() == []


def test_a_run_whose_database_is_replaced_ends_and_prints_the_result_that_it_holds(tmp_path, caplog):
    path = tmp_path / "tune.db"

    def objective(config):
        if len(study.history) == 4:
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "older.db")) as target:
                source.backup(target)
            os.replace(tmp_path / "older.db", path)
            return 0.125
        return config["x"]

    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=path, name="replaced", seed=0)
    with caplog.at_level(logging.WARNING, "shoestring"), pytest.raises(StorageError, match="another file was put in its place"):
        study.minimize(objective, 20, progress=False)
    assert "the result of trial 3 is not stored; to tell it later: shoestring tell replaced 3 0.125" in caplog.text
    study.storage.close_connections()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM trials WHERE state = 'done'").fetchone() == (3,)
