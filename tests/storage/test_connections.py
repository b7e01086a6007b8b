"""Connections: one pool for each database, closed with its last user; and forks, which inherit them."""

import gc
import os
import sqlite3
import threading
import time

import pytest

import shoestring as st
from shoestring.errors import StorageError
from shoestring.storage import connections, open_storage
from tests.storage.places import done, lease, running

SPACE = st.Space(x=st.Float(0, 1))


@pytest.fixture
def address(database):
    database.open()
    st.Study(SPACE, st.Random(), storage=database.address).add({"x": 0.5}, 1.0)
    for storage in database.opened:
        storage.close_connections()
    gc.collect()
    return database.address


def open_sessions(database):
    """The connections that are open: sessions of the server, or descriptors of the file."""
    if database.kind == "postgresql":
        text = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
        return {int(row[0]) for row in database.server.execute(text)}
    descriptors = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return {each for each in descriptors if os.path.exists(each) and os.path.realpath(each) == str(database.path)}


def closed(database, own):
    """Whether these sessions end; a server needs a moment for it. Studies that earlier tests have left may open others."""
    until = time.monotonic() + 2.0
    while own & open_sessions(database) and time.monotonic() < until:
        time.sleep(0.005)
    return not own & open_sessions(database)


def test_a_study_that_is_loaded_again_and_again_uses_one_pool(database, address):
    before = open_sessions(database)
    loaded = [st.Study.load(address) for _ in range(30)]
    assert [len(study.history) for study in loaded] == [1] * 30
    own = open_sessions(database) - before
    assert 1 <= len(own) <= 5  # one pool; 30 pools would be 30 sessions
    for study in loaded[1:]:
        study.close()
    assert len(loaded[0].history) == 1
    loaded[0].close()
    assert closed(database, own)


def test_closing_a_study_leaves_what_another_one_uses(database, address):
    one, other = st.Study.load(address), st.Study.load(address)
    engine = other.storage._database.engine
    assert one.storage._database.engine is engine
    one.history, other.history  # noqa: B018
    one.close()
    assert other.storage._database.engine is engine
    assert engine.pool.checkedin() > 0
    other.close()
    assert engine.pool.checkedin() == 0
    other.close()


def test_a_closed_study_opens_again_when_it_is_used(database, address):
    with st.Study.load(address) as study:
        trial = study.ask()
    assert study.storage._database._pool is None
    assert study.tell(trial, 0.5).value == 0.5
    assert study.best.value == 0.5
    study.close()


def test_closing_a_study_leaves_a_storage_that_was_given_to_it(database, address):
    storage = open_storage(address)
    with st.Study.load(storage) as study:
        assert len(study.history) == 1
    assert storage._database._pool is not None
    storage.close_connections()


def test_a_closed_study_renews_no_lease(database, address):
    before = set(threading.enumerate())  # of other tests
    study = st.Study(SPACE, st.Random(), storage=address, lease=60.0)
    trial = study.ask()
    (beating,) = [each for each in set(threading.enumerate()) - before if each.name.startswith("shoestring-leases-")]
    study.close()
    beating.join(5.0)
    assert not beating.is_alive()
    assert study.state.heartbeat.token(trial.number) is None


def test_a_study_that_is_forgotten_closes_its_connections(database, address):
    before = open_sessions(database)
    study = st.Study.load(address)
    study.tell(study.ask(), 1.0)
    own = open_sessions(database) - before
    assert own
    del study
    gc.collect()
    assert closed(database, own)


def test_a_file_that_was_replaced_gets_a_pool_of_its_own(sqlite_place):
    old = open_storage(sqlite_place.address)
    old.begin("old", {})
    for path in sqlite_place.path.parent.glob("tune.db*"):
        path.unlink()
    new = open_storage(sqlite_place.address)
    assert new.studies() == []
    new.begin("new", {})
    assert [record.name for record in open_storage(sqlite_place.address).studies()] == ["new"]
    new.close_connections()
    old.close_connections()


# -- forks -------------------------------------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work, seconds=20.0):
    """What ``work`` returns in the child of a fork, as text; an error in words. A child that hangs is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    killer = threading.Timer(seconds, os.kill, (child, 9))
    killer.start()
    with os.fdopen(reader, "rb") as said:
        answer = said.read().decode()
    killer.cancel()
    os.waitpid(child, 0)
    return answer


class Busy:
    """Another thread that is at work until the end of the block."""

    def __init__(self, work):
        self.inside, self.enough = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=work, args=(self,))

    def stay(self):
        self.inside.set()
        self.enough.wait(30)

    def __enter__(self):
        self.thread.start()
        self.inside.wait()

    def __exit__(self, *error):
        self.enough.set()
        self.thread.join()


def test_a_child_says_that_a_study_was_in_use_at_the_fork(database, address):
    study = st.Study.load(address)

    def ask(busy):
        with study.state.asking():
            busy.stay()

    with Busy(ask):
        answer = in_child(study.ask)
        again = in_child(lambda: len(st.Study.load(address).history))
    assert answer.startswith("StudyError: study 'study' was in use by another thread when this process was forked")
    assert "st.Study.load" in answer
    assert again == "1"
    assert study.tell(study.ask(), 1.0).value == 1.0  # the parent is as it was
    study.close()


def test_a_child_says_that_a_study_in_memory_was_in_use_at_the_fork():
    study = st.Study(SPACE, st.Random())

    def ask(busy):
        with study.state.asking():
            busy.stay()

    with Busy(ask):
        assert in_child(study.ask).startswith("StudyError: study 'study' was in use by another thread")
    assert in_child(lambda: study.ask().number) == "0"


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_a_child_can_use_a_study_that_another_thread_has_used_a_moment_before(database, address):
    study, end = st.Study.load(address), threading.Event()

    def work():
        while not end.is_set():
            study.storage.enqueue(study.state.study, {"x": 0.5}, {})

    thread = threading.Thread(target=work)
    thread.start()
    try:
        answers = [in_child(lambda: study.tell(study.ask(), 1.0).value) for _ in range(3)]
    finally:
        end.set()
        thread.join()
    assert answers == ["1.0"] * 3
    assert study.storage.check() == []
    study.close()


def test_a_child_says_that_a_file_was_in_use_at_the_fork(sqlite_place, monkeypatch):
    """SQLite counts its locks in memory: the child would wait for the thread of the parent for ever."""
    monkeypatch.setattr(connections, "MAX_FORK_WAIT_SECONDS", 0.01)
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    with Busy(lambda busy: storage._database.write(lambda connection: busy.stay())):
        answer = in_child(lambda: storage.enqueue(study, {"x": 1}, {}))
        other = in_child(lambda: open_storage(sqlite_place.path.with_name("other.db")).studies())
    assert answer.startswith("StorageError")
    assert "another thread was at work on it when this process was forked" in answer
    assert other == "[]"
    storage.enqueue(study, {"x": 2}, {})


def test_what_a_child_writes_survives_when_the_parent_closes_the_file(sqlite_place):
    """The parent is then the last one that SQLite knows of, and would remove the log that the child writes to."""
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, running(0), lease=lease())
    (from_parent, to_child), (from_child, to_parent) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            storage.changes_since(study, 0)
            os.write(to_parent, b"!")
            os.read(from_parent, 1)
            storage.close(study, done(0, 5.0))
        finally:
            os._exit(0)
    os.read(from_child, 1)
    storage.changes_since(study, 0)
    storage.close_connections()
    os.write(to_child, b"!")
    os.waitpid(child, 0)
    for descriptor in (from_parent, to_child, from_child, to_parent):
        os.close(descriptor)
    with sqlite3.connect(sqlite_place.path) as connection:
        assert connection.execute("SELECT state, value FROM trials").fetchall() == [("done", 5.0)]


def test_a_forked_worker_renews_no_lease_of_its_parent(database, address):
    study = st.Study.load(address)
    trial = study.ask()
    assert in_child(lambda: study.state.heartbeat.token(trial.number)) == "None"
    assert study.state.heartbeat.token(trial.number) is not None
    study.tell(trial, 1.0)
    study.close()


def test_an_error_names_the_file_and_says_what_to_do(sqlite_place, monkeypatch):
    storage = sqlite_place.open()
    monkeypatch.setattr(connections._Forks, "unusable", {storage._database.backend.key})
    storage.close_connections()
    with pytest.raises(StorageError, match=r"tune\.db: another thread was at work .*get_context\(\"spawn\"\)"):
        storage.studies()
