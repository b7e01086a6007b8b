"""Addresses: which storage they mean, and what is said about those that mean none. A password is never repeated."""

import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import shoestring as st
from shoestring.errors import StorageError
from shoestring.storage import MemoryStorage, open_storage
from shoestring.storage.sql import SQLStorage
from tests.storage.places import running
from tests.storage.server import PASSWORD, QUOTED


@pytest.mark.parametrize("address", ["memory", "memory://", "sqlite://", "sqlite:///:memory:", "sqlite:///"])
def test_memory(address):
    assert isinstance(open_storage(address), MemoryStorage)
    assert open_storage(address).url == "memory://"


FILES = ["tune.db", Path("tune.db"), "sqlite:///tune.db", "./tune.db", "sqlite:///{}/tune.db", "~/tune.db"]


@pytest.mark.parametrize("address", FILES)
def test_a_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    storage = open_storage(address.format(tmp_path) if isinstance(address, str) else address)
    assert isinstance(storage, SQLStorage)
    assert (tmp_path / "tune.db").is_file()
    assert storage.url == f"sqlite:///{tmp_path}/tune.db"
    assert repr(storage) == f"SQLStorage('sqlite:///{tmp_path}/tune.db')"
    monkeypatch.chdir("/")
    storage.begin("study", {})
    storage.close_connections()
    assert [record.name for record in storage.studies()] == ["study"]
    storage.close_connections()
    assert sorted(os.listdir(tmp_path)) == ["tune.db"]


@pytest.mark.parametrize("name", ["a b.db", "ä😀.db", "100%.db", "what?.db", "#1.db", "file:x.db", "memory.db", "a;b'c.db"])
def test_odd_file_names(tmp_path, name):
    storage = open_storage(tmp_path / name)
    storage.begin("study", {})
    storage.close_connections()
    assert sorted(os.listdir(tmp_path)) == [name]
    again = open_storage(storage.url)
    assert [record.name for record in again.studies()] == ["study"]
    again.close_connections()


@pytest.mark.parametrize("address", ["missing.db", Path("missing.db"), "sqlite:///missing.db", "missing/tune.db"])
def test_to_load_a_study_from_a_missing_file_is_an_error_and_makes_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"there is no file .*\.db; check the path, or make a study there with st\.Study\("):
        st.Study.load(address)
    assert os.listdir(tmp_path) == []


def test_a_link_to_a_missing_file_is_a_missing_file(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "missing.db")
    with pytest.raises(StorageError, match="there is no file"):
        open_storage(tmp_path / "link.db", create=False)
    assert os.listdir(tmp_path) == ["link.db"]


BAD = [
    ("", "not an address"),
    ("   ", "not an address"),
    ("a\0b", "not an address"),
    (3, "not an address"),
    (None, "not an address"),
    (b"tune.db", "not an address"),
    ("mysql://user:secret@host/db", "no storage for mysql"),
    ("redis://:secret@host", "no storage for redis"),
    ("sqlite://tune.db", "three slashes"),
    ("sqlite:///tune.db?mode=ro", "options are not read"),
    ("missing/tune.db", "there is no folder .*mkdir -p"),
    ("sqlite:////missing/folder/tune.db", "there is no folder /missing/folder; make it with: mkdir -p /missing/folder"),
    (".", "is a folder; give a file in it"),
    ("postgresql://user:secret@host:port/db", "this PostgreSQL address cannot be read"),
    ("postgresql:/user:secret@host/db", "this PostgreSQL address cannot be read"),  # not a file of that name, which is shown
    ("postgres//user:secret@host/db", "this PostgreSQL address cannot be read"),
]


@pytest.mark.parametrize(("address", "words"), BAD, ids=range(len(BAD)))
def test_what_is_no_address(address, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=words) as caught:
        open_storage(address)
    assert "secret" not in everything_said(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_storage_in_memory_loads_no_database():
    script = "import sys; from shoestring.storage import open_storage; open_storage('memory'); print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"


# -- servers -----------------------------------------------------------------------------------------------------------


def everything_said(error):
    """As a traceback shows it, and the messages of all errors behind it."""
    said, seen = ["".join(traceback.format_exception(error))], error
    while seen is not None:
        said += [str(seen), repr(seen)]
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "\n".join(said)


def secrets():
    return (PASSWORD, QUOTED, "pa55")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_server(server, scheme):
    address = server.schema()
    storage = open_storage(address.replace("postgresql", scheme, 1) + "&sslpassword=secret")
    assert storage.url == address.replace(f":{QUOTED}", "")
    assert storage.begin("study", {})[1]
    storage.close_connections()


def test_a_password_is_shown_nowhere(postgres_place, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    storage = postgres_place.open()
    study = storage.begin("study", {})[0].id
    shown = [repr(storage), str(storage), storage.url, repr(vars(storage)), repr(vars(storage._database)), storage.upgrade()]
    shown += [repr(vars(storage._database.backend)), repr(storage._database.engine), repr(storage.studies())]
    postgres_place.execute("DROP TABLE trials")
    with pytest.raises(StorageError) as caught:
        storage.write(study, running(0))
    shown += [everything_said(caught.value), *storage.check(), caplog.text, *capfd.readouterr()]
    assert not [text for text in shown for secret in secrets() if secret in text]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda address, port: address.replace(QUOTED, "wr0ng-pa55"), "does not let you in; check user and password"),
        (lambda address, port: address.replace(QUOTED + "@", "@"), "does not let you in|cannot be reached"),
        (lambda address, port: address.replace("/postgres", "/nowhere"), "no such user or database; make it with: .*createdb"),
        (lambda address, port: address.replace(port, "1"), "cannot be reached; check that it runs"),
        (lambda address, port: address.replace("127.0.0.1", "no-such-host.invalid"), "cannot be reached"),
        (lambda address, port: address.replace(f":{QUOTED}", "") + "?password=wr0ng-pa55", "does not let you in"),
    ],
    ids=["password", "no password", "database", "port", "host", "password as an option"],
)
def test_a_server_that_does_not_let_one_in(server, monkeypatch, change, words):
    monkeypatch.setattr("shoestring.storage.postgres.PostgresServer.first_wait_seconds", 0.0)
    with pytest.raises(StorageError, match=words) as caught:
        open_storage(change(server.address, str(server.port)))
    said = everything_said(caught.value)
    assert f"postgresql://shoe@{'127.0.0.1' if 'invalid' not in said else 'no-such-host.invalid'}" in said
    assert not [secret for secret in (*secrets(), "wr0ng") if secret in said]


def test_a_user_who_may_not_make_tables_is_told_so(server):
    server.execute("CREATE USER guest PASSWORD 'guest-pa55'")
    address = server.address.replace("shoe", "guest").replace(QUOTED, "guest-pa55")
    with pytest.raises(StorageError, match="you may not do this there; ask for CREATE"):
        open_storage(address)


def test_without_a_driver_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    address = "postgresql://user:secret@host/db"
    with pytest.raises(StorageError, match=r"pip install 'shoestring\[postgres\]'") as caught:
        open_storage(address)
    assert "secret" not in everything_said(caught.value)
