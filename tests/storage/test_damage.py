"""Damaged files, and databases with cells that another program has changed: an error, never a silent loss."""

import contextlib
import os
import pickle
import random
import shutil
import sqlite3

import pytest

import shoestring as st
from shoestring.errors import ShoestringError, StorageError
from shoestring.storage import open_storage
from shoestring.storage.codec import checksum
from tests.storage.places import done, failed, lease, running

TRIALS = 40


@pytest.fixture
def whole(sqlite_place):
    """A file with trials, closed, and what is in it."""
    storage = sqlite_place.open()
    study = storage.begin("study", {"seed": 7})[0].id
    for number in range(TRIALS):
        storage.write(study, done(number, number / 7, reports=({"note": "x" * 300},)))
    storage.enqueue(study, {"x": 1}, {})
    changes = storage.changes_since(study, 0)
    storage.close_connections()
    assert not sqlite_place.path.with_name("tune.db-wal").exists()
    return sqlite_place.path, changes


def look(path, expected, said):
    """'same' if all is there, 'error' if an error names the file, 'said' if a lost queue was logged; anything else fails."""
    try:
        storage = open_storage(path)
        try:
            record, made = storage.begin("study", {"seed": 7})
            assert not made, "the study was lost without a word"
            assert record.settings == {"seed": 7}
            changes = storage.changes_since(record.id, 0)
            assert changes.trials == expected.trials, "trials were lost or changed without a word"
            if changes.queue != expected.queue:  # what cannot be read is left out, and logged
                return "said" if "queued config" in said.text else "the queue was lost without a word"
            return "same"
        finally:
            storage.close_connections()
    except StorageError as error:
        return "error" if "damaged.db" in str(error) else f"an error that does not name the file: {error}"


def truncated(whole, tmp_path, cuts, said):
    path, expected = whole
    size, copy = path.stat().st_size, tmp_path / "damaged.db"
    for cut in cuts(size):
        shutil.copy(path, copy)
        os.truncate(copy, cut)
        if cut == 0:  # an empty file is what a new database begins as
            continue
        assert look(copy, expected, said) == "error"
        copy.unlink()


def flipped(whole, tmp_path, times, said):
    path, expected = whole
    content, copy, luck = path.read_bytes(), tmp_path / "damaged.db", random.Random(0)
    seen = []
    for _ in range(times):
        spoilt = bytearray(content)
        start = luck.randrange(len(content))
        for at in range(start, min(start + luck.choice([1, 1, 16, 600]), len(content))):
            spoilt[at] ^= luck.randrange(1, 256)
        copy.write_bytes(spoilt)
        seen.append(look(copy, expected, said))
        said.clear()
        for beside in tmp_path.glob("damaged.db*"):
            beside.unlink()
    assert {"same", "error"} <= set(seen) <= {"same", "error", "said"}


def test_a_truncated_file_is_an_error(whole, tmp_path, caplog):
    truncated(whole, tmp_path, lambda size: [1, 99, 100, 512, 4095, 4096, 8192, size // 2, size - 4096, size - 1], caplog)


def test_flipped_bytes_are_an_error_or_do_no_harm(whole, tmp_path, caplog):
    flipped(whole, tmp_path, 30, caplog)


@pytest.mark.slow
def test_many_truncated_and_flipped_files(whole, tmp_path, caplog):
    truncated(whole, tmp_path, lambda size: range(1, size, 1777), caplog)
    flipped(whole, tmp_path, 3000, caplog)


def test_a_file_that_is_no_database_is_an_error(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("to do: nothing\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"notes\.txt: it is not a SQLite database"):
        open_storage(path)
    assert path.read_bytes() == before


def test_a_missing_trial_is_noticed(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    for number in range(3):
        storage.write(study, done(number))
    database.execute("DELETE FROM trials WHERE number = 1")
    with pytest.raises(StorageError, match="of whose 3 trials 2 are there"):
        storage.changes_since(study, 0)
    assert any("trials" in problem for problem in storage.check())


def test_a_changed_value_is_noticed(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0, 0.5))
    database.execute("UPDATE trials SET record = replace(record, '0.5', '0.4')")
    for call in (lambda: storage.changes_since(study, 0), lambda: storage.best(study, False)):
        with pytest.raises(StorageError, match=r"trial 0 .* is damaged"):
            call()
    assert any("trial 0" in problem for problem in storage.check())


def test_an_older_state_of_one_trial_is_noticed(database):
    """As when one page of a file is older than the others: each row is whole, but a write is missing."""
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease())
    storage.write(study, done(1))
    columns = "changed, abandoned, closed, state, value, cost, record, seal"
    before = database.execute(f"SELECT {columns} FROM trials WHERE number = 0")[0]
    storage.close(study, done(0, 0.5))
    values = ", ".join(f"{name} = ?" for name in columns.split(", "))
    database.execute(f"UPDATE trials SET {values} WHERE number = 0", before)
    with pytest.raises(StorageError, match="which lacks a write to one of its trials, is damaged"):
        database.open().changes_since(study, 0)
    assert any("a write to one of its trials is missing" in problem for problem in storage.check())


def test_what_an_older_program_has_written_is_no_damage(database):
    """A program of version 2 knows nothing of the checksum over all trials."""
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0, 0.5))
    storage.write(study, done(1, 0.5))
    columns = database.execute("SELECT trials_checksum FROM studies")
    database.execute("UPDATE studies SET clock = clock + 1, trials_checksum = 17")
    assert len(storage.changes_since(study, 0).trials) == 2
    storage.enqueue(study, {"x": 1}, {})
    assert database.execute("SELECT trials_checksum FROM studies") == columns
    assert storage.check() == []


FORGED = ["", "[]", '{"config": 3, "suggestion": {}}', '{"config": {}}', "[" * 99_999]


@pytest.mark.parametrize("sealed", [True, False], ids=["with a right checksum", "with a wrong one"])
def test_a_queued_config_that_cannot_be_read_is_left_out_and_the_study_goes_on(database, caplog, sealed):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    for number in range(len(FORGED) + 1):
        storage.enqueue(study, {"x": number}, {})
    ids = [entry.id for entry in storage.changes_since(study, 0).queue]
    for entry, text in zip(ids[1:], FORGED, strict=True):
        database.execute("UPDATE queue SET entry = ?, seal = ? WHERE id = ?", (text, checksum(text) if sealed else 1, entry))
    for _ in range(2):
        (left,) = storage.changes_since(study, 0).queue
    assert left.config == {"x": 0}
    assert caplog.text.count("cannot be read, and is not evaluated") == len(FORGED)  # each is logged once
    storage.write(study, running(0), lease=lease(), queued=left.id)
    assert storage.changes_since(study, 0).queue == []
    assert sum("cannot be read, and is not evaluated" in problem for problem in storage.check()) == len(FORGED)


def test_a_queued_config_that_is_lost_is_logged_and_the_study_goes_on(database, caplog):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.enqueue(study, {"x": 1}, {})
    storage.enqueue(study, {"x": 2}, {})
    database.execute("DELETE FROM queue WHERE id = (SELECT min(id) FROM queue)")
    assert [entry.config for entry in storage.changes_since(study, 0).queue] == [{"x": 2}]
    assert "has 1 queued configs, and its row says 2" in caplog.text
    assert storage.check() == ["study 1: its row says waiting = 2, its queue 1"]


def test_a_forged_config_in_the_queue_does_not_lock_the_study_for_good(database, caplog):
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), storage=database.address, name="study", seed=0)
    study.enqueue({"x": 0.5})
    for config in ({"x": 7.0}, {"y": 1}, {}):
        study.storage.enqueue(study.state.study, config, {})
    study.storage.enqueue(study.state.study, {"y": 1}, {"partial": True})
    study.minimize(lambda config: config["x"], 3, progress=False)
    assert study.history[0].config == {"x": 0.5}
    assert caplog.text.count("does not fit its space, and is not evaluated") == 4
    study.storage.close_connections()
    again = st.Study.load(database.address, "study")
    assert len(again.history) == 3
    again.storage.close_connections()


def test_costs_whose_sum_is_too_large_are_no_damage(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    for number in range(3):
        storage.write(study, done(number, cost=1.7e308))
    assert storage.check() == []


def test_sums_that_are_wrong_are_found(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0, cost=2.0))
    storage.write(study, running(1), lease=lease(), expected=3.0)
    storage.enqueue(study, {}, {})
    assert storage.check() == []
    for column in ("trials", "counted", "running", "spent", "reserved", "waiting"):
        database.execute(f"UPDATE studies SET {column} = {column} + 1")
        assert [problem for problem in storage.check() if f"{column} = " in problem], column
        database.execute(f"UPDATE studies SET {column} = {column} - 1")
    database.execute("UPDATE trials SET value = 7 WHERE number = 0")
    assert storage.check() == ["study 1: trial 0: its columns differ from its record"]


# -- bombs -----------------------------------------------------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("crater",)


TABLES = ["studies", "trials", "queue", "meta", "receipts"]
BOMBS = [pickle.dumps(Bomb())]
PICKLED = pickle.dumps(Bomb(), protocol=0).decode()
MORE_BOMBS = [
    '{"py/object": "os.mkdir", "state": "exploded"}', PICKLED, "__import__('os').mkdir('crater')", "!!python/apply:os.mkdir [x]",
    "[" * 99_999, None, -1, 1e308, "é",
]  # fmt: skip
WAYS = [
    lambda storage, study: storage.studies(),
    lambda storage, study: storage.find("study"),
    lambda storage, study: storage.begin("study", {}),
    lambda storage, study: storage.changes_since(study, 0),
    lambda storage, study: storage.changes_since(study, 2),
    lambda storage, study: storage.best(study, True),
    lambda storage, study: storage.report(study, 1, "token", [{}]),
    lambda storage, study: storage.renew(study, {1: "token"}, 1.0),
    lambda storage, study: storage.reap(study, 1.0),
    lambda storage, study: storage.close(study, done(1)),
    lambda storage, study: storage.write(study, running(3), lease=lease()),
    lambda storage, study: storage.enqueue(study, {}, {}),
    lambda storage, study: storage.revise(study, halted="x", seconds=1.0),
    lambda storage, study: storage.check(),
    lambda storage, study: storage.delete(study),
]


def columns_of(place, table):
    if place.kind == "sqlite":
        return [row[1] for row in place.execute(f"PRAGMA table_info({table})")]
    where = f"table_name = '{table}' AND table_schema = current_schema()"
    return [row[0] for row in place.execute(f"SELECT column_name::text FROM information_schema.columns WHERE {where}")]


def good_file(place):
    good = place.path.read_bytes() if place.kind == "sqlite" else b""
    return lambda: place.path.write_bytes(good)


def good_rows(place):
    """All tables as they are now; studies first, since the others refer to them."""
    for table in TABLES:
        place.execute(f"CREATE TABLE good_{table} AS TABLE {table}")
    return lambda: [
        *(place.execute(f"DELETE FROM {table}") for table in reversed(TABLES)),
        *(place.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE good_{table}") for table in TABLES),
    ]


def throw(place, bombs, table):
    storage = place.open()
    study = storage.begin("study", {})[0].id
    for number, trial in enumerate((done(0), running(1), failed(2))):
        storage.write(study, trial, lease=lease() if number == 1 else None)
    storage.enqueue(study, {}, {})
    storage.close_connections()
    restore, refused, planted = good_file(place), sqlite3.Error, 0
    if place.kind == "postgresql":
        import psycopg

        restore, refused = good_rows(place), psycopg.Error
    for column in columns_of(place, table):
        for bomb in bombs:
            restore()
            try:
                place.execute(f"UPDATE {table} SET {column} = ?", (bomb,))
                planted += 1
                opened = open_storage(place.address)
            except (refused, ShoestringError):  # the database refuses to keep it, or we to open it
                continue
            for way in WAYS:
                with contextlib.suppress(ShoestringError):
                    way(opened, study)
            opened.close_connections()
    return planted


@pytest.mark.parametrize("table", TABLES)
def test_a_bomb_in_any_cell_never_runs(sqlite_place, tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    throw(sqlite_place, BOMBS, table)
    assert not (tmp_path / "crater").exists()


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_no_other_bomb_runs_either(sqlite_place, tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    throw(sqlite_place, MORE_BOMBS, table)
    assert not (tmp_path / "crater").exists()


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_no_bomb_in_a_cell_of_a_server_runs(postgres_place, tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    assert throw(postgres_place, [*BOMBS, *MORE_BOMBS], table) > 0
    assert not (tmp_path / "crater").exists()


INJECTIONS = ["'; DROP TABLE trials; --", '"; DELETE FROM studies; --', "x') OR 1=1 --", "%(study_)s", ":study_", "?", "%s"]


def test_nothing_that_is_given_becomes_a_statement(database):
    storage = database.open()
    keep = storage.begin("keep", {})[0].id
    storage.write(keep, done(0))
    tables = "SELECT name, sql FROM sqlite_master" if database.kind == "sqlite" else (
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema()"
    )
    before = sorted(database.execute(tables))
    for text in INJECTIONS:
        study = storage.begin(text, {text: text})[0].id
        mine = lease(worker=text)
        trial = running(0)
        trial.config[text] = text
        storage.write(study, trial, lease=mine)
        assert not storage.report(study, 0, text, [{text: text}])
        assert storage.renew(study, {0: text}, 1.0) == {0}
        storage.enqueue(study, {text: text}, {text: text})
        storage.close(study, failed(0, text))
        storage.revise(study, {text: text}, halted=text)
        for call in (storage.delete, lambda number: storage.changes_since(number, 0)):
            with contextlib.suppress(ShoestringError):
                call(f"0 {text}")
        assert storage.find(text).settings == {text: text}
    assert sorted(database.execute(tables)) == before
    assert len(storage.changes_since(keep, 0).trials) == 1
    assert storage.check() == []
