"""Tables of other versions: older ones are copied and migrated, newer ones and those of other programs are not touched."""

import sqlite3

import pytest
from sqlalchemy import text

from shoestring.errors import StorageError
from shoestring.storage import open_storage, schema
from shoestring.storage.schema import MIGRATIONS, VERSION
from tests.storage.crowd import context, crowd
from tests.storage.places import done, lease, running


def add_colour(connection):
    connection.execute(text("ALTER TABLE studies ADD COLUMN colour TEXT"))
    connection.execute(text("UPDATE studies SET colour = 'blue'"))


@pytest.fixture
def next_version(monkeypatch):
    """As if this program were some versions further."""

    def pretend(*steps):
        monkeypatch.setattr(schema, "VERSION", VERSION + len(steps))
        monkeypatch.setattr(schema, "MIGRATIONS", MIGRATIONS | dict(enumerate(steps, VERSION)))

    return pretend


def with_a_study(database):
    storage = database.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0, 0.5))
    storage.close_connections()
    return study


def test_a_new_database_is_of_this_version(database):
    storage = database.open()
    assert database.execute("SELECT value FROM meta WHERE name = 'version'") == [(str(schema.VERSION),)]
    assert "were made" in storage.upgrade()
    assert "is this program's" in database.open().upgrade()


def test_older_tables_are_brought_up_to_date(database, next_version):
    study = with_a_study(database)
    next_version(add_colour, lambda connection: connection.execute(text("UPDATE studies SET colour = 'red'")))
    storage = database.open()
    assert f"from version {VERSION} to version {VERSION + 2}" in storage.upgrade()
    assert database.execute("SELECT colour FROM studies") == [("red",)]
    assert storage.changes_since(study, 0).trials[0].trial == done(0, 0.5)
    assert "is this program's" in database.open().upgrade()


def test_a_copy_of_the_older_file_is_kept(sqlite_place, next_version):
    study = with_a_study(sqlite_place)
    next_version(add_colour)
    said = sqlite_place.open().upgrade()
    copy = sqlite_place.path.with_name(f"tune.db.v{VERSION}-backup")
    assert str(copy) in said
    assert sqlite3_value(copy, "SELECT value FROM meta") == str(VERSION)
    assert sqlite3_value(copy, "SELECT count(*) FROM trials") == 1
    next_version()  # the older program opens the copy
    storage = open_storage(copy)
    assert storage.changes_since(study, 0).trials[0].trial == done(0, 0.5)
    assert storage.check() == []
    storage.close_connections()


def test_an_older_copy_is_not_overwritten(sqlite_place, next_version):
    with_a_study(sqlite_place)
    taken = sqlite_place.path.with_name(f"tune.db.v{VERSION}-backup")
    taken.write_text("precious")
    next_version(add_colour)
    assert f"tune.db.v{VERSION}-backup-1" in sqlite_place.open().upgrade()
    assert taken.read_text() == "precious"


def sqlite3_value(path, statement):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchone()[0]
    finally:
        connection.close()


def test_a_step_that_fails_changes_nothing(database, next_version):
    study = with_a_study(database)

    def stumble(connection):
        add_colour(connection)
        raise ValueError("stumbled")

    next_version(stumble)
    with pytest.raises(StorageError, match="stumbled"):
        database.open()
    next_version()
    assert database.open().changes_since(study, 0).trials[0].trial == done(0, 0.5)
    with pytest.raises(Exception, match="colour"):
        database.execute("SELECT colour FROM studies")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_crowd_upgrades_once(database, next_version):
    with_a_study(database)
    said = crowd(_upgrade, [(database.address,)] * 8)
    assert sum(f"from version {VERSION} to version {VERSION + 1}" in each for each in said) == 1
    assert database.execute("SELECT colour FROM studies") == [("blue",)]


def _upgrade(address):
    schema.VERSION, schema.MIGRATIONS = VERSION + 1, MIGRATIONS | {VERSION: add_colour}
    storage = open_storage(address)
    storage.close_connections()
    return storage.upgrade()


def test_newer_tables_are_refused_and_left_alone(database):
    study = with_a_study(database)
    database.execute("UPDATE meta SET value = '7'")
    before = database.path.read_bytes() if database.kind == "sqlite" else None
    with pytest.raises(StorageError, match=rf"version 7, this one reads up to {VERSION}.*pip install --upgrade"):
        database.open()
    if before is not None:
        assert database.path.read_bytes() == before
        assert [path.name for path in database.path.parent.iterdir() if "backup" in path.name] == []
    database.execute("UPDATE meta SET value = ?", (str(VERSION),))
    assert database.open().changes_since(study, 0).trials[0].trial == done(0, 0.5)


def test_tables_of_another_program_are_left_alone(database):
    database.execute("CREATE TABLE trials (trial_id INTEGER)")
    with pytest.raises(StorageError, match=r"tables of another program \(trials\)"):
        database.open()
    database.execute("CREATE TABLE meta (name TEXT, value TEXT)")
    with pytest.raises(StorageError, match="another program"):
        database.open()
    assert database.execute("SELECT * FROM trials") == []


def test_other_tables_do_no_harm(database):
    database.execute("CREATE TABLE wine (year INTEGER)")
    assert database.open().begin("study", {})[1]


def test_a_backup_is_made_while_others_write(sqlite_place, tmp_path):
    storage = sqlite_place.open()
    study = storage.begin("study", {})[0].id
    storage.write(study, done(0, 0.5))
    with storage._database.engine.connect().execution_options(writing=True) as connection, connection.begin() as transaction:
        connection.execute(text("UPDATE studies SET clock = 99"))
        storage.backup(tmp_path / "copy.db")
        transaction.rollback()
    copy = open_storage(tmp_path / "copy.db")
    assert copy.changes_since(study, 0) == storage.changes_since(study, 0)
    assert copy.check() == []
    copy.close_connections()
    with pytest.raises(StorageError, match="is there already"):
        storage.backup(tmp_path / "copy.db")
    storage.write(study, running(1), lease=lease())
    storage.backup(tmp_path / "copy.db", overwrite=True)
    copy = open_storage(tmp_path / "copy.db")
    assert len(copy.changes_since(study, 0).trials) == 2
    copy.close_connections()
    for place in (sqlite_place.path, tmp_path / "nowhere" / "copy.db"):
        with pytest.raises(StorageError, match=str(place)):
            storage.backup(place, overwrite=True)
    assert len(storage.changes_since(study, 0).trials) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if "unfinished" in path.name) == []


def test_a_server_makes_its_own_backups(postgres_place):
    with pytest.raises(StorageError, match="pg_dump"):
        postgres_place.open().backup("copy.dump")


def test_the_crowd_has_nothing_of_ours():
    assert context.get_start_method() == "forkserver"
