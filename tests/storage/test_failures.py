"""Transient errors are retried, and nothing is written twice; a permanent error says where it is and what to do."""

import os
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from sqlalchemy import event

from shoestring.data.trial import State
from shoestring.errors import StorageError, StorageUnavailable
from shoestring.storage import open_storage, transactions
from shoestring.storage.transactions import wait_limit
from tests.storage.crowd import context
from tests.storage.places import abandoned, done, lease, running


class FailingCommits:
    """Makes commits fail: ``before`` they reach the database, or ``after``, so that only the answer is lost."""

    def __init__(self, storage, monkeypatch):
        self.before = self.after = self.count = 0
        self.meanwhile = lambda: None  # what others do after an answer was lost
        dialect = storage._database.engine.dialect
        commit = dialect.do_commit

        def do_commit(connection):
            self.count += 1
            if self.before:
                self.before -= 1
                raise broken(connection)
            commit(connection)
            if self.after:
                self.after -= 1
                error = broken(connection)
                self.meanwhile()
                raise error

        monkeypatch.setattr(dialect, "do_commit", do_commit)
        monkeypatch.setattr(transactions, "FIRST_PAUSE_SECONDS", 0.001)


def broken(connection):
    """The connection is gone, and with it the answer."""
    raw = connection.driver_connection if hasattr(connection, "driver_connection") else connection
    raw.close()
    if isinstance(raw, sqlite3.Connection):
        return sqlite3.ProgrammingError("Cannot operate on a closed database.")
    import psycopg

    return psycopg.OperationalError("server closed the connection unexpectedly")


@pytest.fixture
def commits(database, monkeypatch):
    storage = database.open()
    storage.begin("study", {})
    commits = FailingCommits(storage, monkeypatch)
    commits.storage, commits.study = storage, storage.find("study").id
    return commits


@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_is_written_twice(commits, when):
    storage, study = commits.storage, commits.study

    def fail():
        setattr(commits, when, 2)

    mine = lease()
    fail()
    assert storage.write(study, running(0), lease=mine).clocks == (1, None, None)
    fail()
    assert storage.close(study, done(0, 0.5)).trial == done(0, 0.5)
    fail()
    assert storage.write(study, done(1, 0.25)).trial.number == 1
    fail()
    storage.enqueue(study, {"x": 1}, {})
    fail()
    storage.revise(study, seconds=2.0, halted="enough")
    storage.write(study, running(2), lease=mine)
    fail()
    assert storage.report(study, 2, mine.token, [{"value": 1.0}])
    fail()
    assert storage.renew(study, {2: mine.token, 7: "x"}, 5.0) == {7}
    fail()
    assert storage.close(study, abandoned(2), again=True).trial.state is State.ABANDONED
    fail()
    record, made = storage.begin("another", {})
    assert made
    fail()
    storage.delete(record.id)
    changes = storage.changes_since(study, 0)
    assert [each.trial.state for each in changes.trials] == [State.DONE, State.DONE, State.ABANDONED]
    assert [entry.config for entry in changes.queue] == [running(2).config, {"x": 1}]
    assert (changes.seconds, changes.halted, changes.halts) == (2.0, "enough", 1)
    assert [record.name for record in storage.studies()] == ["study"]
    assert commits.count > 20
    assert storage.check() == []


def test_a_queued_trial_is_taken_once_when_the_answer_is_lost(commits):
    storage, study = commits.storage, commits.study
    storage.enqueue(study, {"x": 1}, {})
    (entry,) = storage.changes_since(study, 0).queue
    commits.after = 1
    assert storage.write(study, running(0), lease=lease(), queued=entry.id).trial.number == 0
    assert storage.find("study").waiting == 0


def test_what_waits_is_not_doubled_when_somebody_takes_it_before_the_second_try(commits, database, monkeypatch):
    """The answer of enqueue is lost, and before it is tried again the config runs already."""
    storage, study, other = commits.storage, commits.study, database.open()

    def take():
        (entry,) = other.changes_since(study, 0).queue
        other.write(study, running(0), lease=lease(), queued=entry.id)

    taker = threading.Thread(target=take)
    commits.after, commits.meanwhile = 1, taker.start
    monkeypatch.setattr(transactions, "FIRST_PAUSE_SECONDS", 0.5)
    storage.enqueue(study, {"x": 1}, {})
    taker.join()
    assert storage.changes_since(study, 0).queue == []
    assert storage.find("study").trials == 1


def test_the_wait_limit_ends_the_retries(commits):
    commits.before = 1000
    with pytest.raises(StorageUnavailable) as caught, wait_limit(0.05):
        commits.storage.enqueue(commits.study, {"x": 1}, {})
    assert commits.storage.url.rpartition("/")[2] in str(caught.value)
    commits.before = 0
    assert commits.storage.changes_since(commits.study, 0).queue == []


def test_a_file_that_stays_locked_is_an_error_that_names_it(sqlite_place):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    other = sqlite3.connect(sqlite_place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match=r"tune\.db: another program keeps it locked"), wait_limit(0.05):
        storage.enqueue(study, {"x": 1}, {})
    assert storage.changes_since(study, 0).queue == []  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    storage.enqueue(study, {"x": 1}, {})


def test_a_file_that_is_moved_away_is_missed(sqlite_place, tmp_path):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    sqlite_place.path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(StorageError, match=r"tune\.db: it was deleted or moved"):
        storage.enqueue(study, {"x": 1}, {})
    (tmp_path / "elsewhere.db").rename(sqlite_place.path)
    storage.enqueue(study, {"x": 1}, {})
    assert len(storage.changes_since(study, 0).queue) == 1


@pytest.mark.parametrize("name", ["b" * 300, "b" * 250, "~nobody-of-this-name/b.db", "b\0"])
def test_a_backup_under_a_name_that_no_file_can_have_is_an_error(sqlite_place, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"cannot be the name of a backup|could not be copied"):
        sqlite_place.open().backup(name)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("b")] == []


END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"


def test_a_connection_that_the_server_ends_is_replaced(postgres_place):
    storage = postgres_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease())
    postgres_place.server.execute(END_ALL)
    assert storage.close(study, done(0)).trial.state is State.DONE
    postgres_place.server.execute(END_ALL)
    assert len(storage.changes_since(study, 0).trials) == 1
    with storage.ask_lock(study):
        postgres_place.server.execute(END_ALL)
    with storage.ask_lock(study):
        pass


def test_a_server_that_restarts_is_waited_for(own_server_place):
    storage, server = own_server_place.open(), own_server_place.server
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease())
    server.halt()
    again = threading.Timer(0.5, server.start)
    again.start()
    assert storage.close(study, done(0, 0.5)).trial.value == 0.5
    again.join()
    assert storage.check() == []


# -- permanent errors --------------------------------------------------------------------------------------------------------


def in_another_process(work, *arguments):
    """The answer of a process that may have given up its rights."""
    ours, theirs = context.Pipe()
    process = context.Process(target=_say, args=(theirs, work, arguments))
    process.start()
    assert ours.poll(60)
    answer = ours.recv()
    process.join()
    process.close()
    ours.close()
    theirs.close()
    return answer


def _say(pipe, work, arguments):
    try:
        pipe.send(work(*arguments))
    except BaseException as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _write_as_nobody(address):
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    storage = open_storage(address)
    study = storage.find("study")
    try:
        storage.enqueue(study.id, {"x": 1}, {})
        return "written"
    finally:
        storage.close_connections()


@pytest.fixture
def public_folder():
    """A folder that other users can enter; those of pytest are closed to them, also while another pytest starts."""
    with tempfile.TemporaryDirectory(prefix="shoestring-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_read_only_file_is_an_error_and_can_be_used_later(public_folder):
    folder = public_folder / "open"
    folder.mkdir()
    address = f"sqlite:///{folder}/tune.db"
    storage = open_storage(address)
    study = storage.begin("study", {})[0].id
    storage.close_connections()
    folder.chmod(0o777)
    (folder / "tune.db").chmod(0o444)
    answer = in_another_process(_write_as_nobody, address)
    assert answer.startswith("StorageError")
    assert "tune.db: it cannot be written to" in answer
    assert "chmod" in answer
    folder.chmod(0o555)
    answer = in_another_process(_write_as_nobody, address)
    assert answer.startswith("StorageError")
    assert "tune.db" in answer
    folder.chmod(0o777)
    for file in folder.glob("tune.db*"):  # those beside it have got the rights of the file itself
        file.chmod(0o666)
    assert in_another_process(_write_as_nobody, address) == "written"
    assert len(storage.changes_since(study, 0).queue) == 1
    assert storage.check() == []
    storage.close_connections()


def _fill(address, limit):
    import resource

    storage = open_storage(address)
    study = storage.find("study").id
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    kept = storage.find("study").trials
    try:
        while True:
            storage.write(study, done(kept, float(kept), reports=({"note": "x" * 20_000},)))
            kept += 1
    except StorageError as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = [each.trial.value for each in storage.changes_since(study, 0).trials]
    storage.write(study, done(kept, float(kept)))
    storage.close_connections()
    return said, kept, after


def test_a_disk_that_is_full_loses_nothing(sqlite_place):
    """A limit on the size of files stands for the disk; SQLite's log reaches it first."""
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.close_connections()
    said, kept, after = in_another_process(_fill, sqlite_place.address, 300_000)
    assert "tune.db: its disk" in said
    assert "nothing that was stored is lost" in said
    assert kept > 3
    assert after == [float(number) for number in range(kept)]
    assert len(storage.changes_since(study, 0).trials) == kept + 1
    assert storage.check() == []


def test_a_database_that_may_not_grow_loses_nothing(sqlite_place):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.close_connections()

    def cramped(connection, record):
        connection.execute("PRAGMA max_page_count = 40")

    event.listen(storage._database.engine, "connect", cramped)
    kept = []

    def fill():
        while True:
            kept.append(storage.write(study, done(len(kept), reports=({"note": "x" * 20_000},))))

    with pytest.raises(StorageError, match="its disk is full"):
        fill()
    assert storage.changes_since(study, 0).trials == kept != []
    storage.close_connections()
    storage.write(study, done(len(kept)))
    assert storage.check() == []


def test_a_server_that_only_lets_one_read_is_an_error_and_can_be_used_later(own_server_place):
    storage, server = own_server_place.open(), own_server_place.server
    standby = server.folder / "data" / "standby.signal"
    study = storage.begin("study", {})[0].id
    server.halt()
    standby.touch()
    server.start()
    assert storage.find("study").id == study
    with pytest.raises(StorageError, match="only lets you read"):
        storage.write(study, done(0))
    server.halt()
    standby.unlink()
    server.start()
    storage.write(study, done(0))
    assert storage.check() == []


def test_a_server_whose_disk_is_full_loses_nothing(postgres_place):
    storage = postgres_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0))
    raising = "BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END"
    postgres_place.execute(f"CREATE FUNCTION refuse() RETURNS trigger AS $$ {raising} $$ LANGUAGE plpgsql")
    postgres_place.execute("CREATE TRIGGER full_disk BEFORE INSERT ON trials EXECUTE FUNCTION refuse()")
    with pytest.raises(StorageError, match="disk is full; nothing that was stored is lost"):
        storage.write(study, done(1))
    assert [each.trial for each in storage.changes_since(study, 0).trials] == [done(0)]
    postgres_place.execute("DROP TRIGGER full_disk ON trials")
    storage.write(study, done(1))
    assert len(storage.changes_since(study, 0).trials) == 2
    assert storage.check() == []
