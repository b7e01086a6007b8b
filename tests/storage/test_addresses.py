"""Addresses with secrets in them: what is printed of them, and what a pickle holds."""

import io
import multiprocessing
import os
import pickle
import stat
import time
import traceback
from pathlib import Path

import pytest

import shoestring as st
from shoestring.errors import StorageError
from shoestring.storage import open_storage
from shoestring.storage.address import hide_addresses, looks_like_server, parse_server, pickles_with_passwords, shown_address
from shoestring.storage.postgres import PostgresServer, _known_addresses
from tests.storage.server import PASSWORD, QUOTED

LEAKY = [  # each has "s3cret" in it, in a place where a password was printed
    "postgresql://me:s3 s3cret@127.0.0.1:1/db",
    "postgresql://me:p@s3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret@s3cret@127.0.0.1:1/db",
    "postgresql://me@127.0.0.1:1/db?sslpassword=s3cret",
    "postgresql://me@127.0.0.1:1/db?passwd=s3cret",
    "postgresql://me@127.0.0.1:1/db?options=-c%20my.key=s3cret",
    "postgresql://me:s3cret/db",
    "postgresql://me%3As3cret@127.0.0.1:1/db",
    "postgresql://me:s3cret@127.0.0.1:port/db",
    "postgresql://me:a/b?c#s3cret@127.0.0.1:1/db",
    "postgresql:me:s3cret@127.0.0.1/db",
    "me:s3cret@127.0.0.1/db",
    "//me:s3cret@127.0.0.1/db",
    "host=127.0.0.1 user=me password=s3cret",
    "127.0.0.1/db?password=s3cret",
    "postgresql://me@127.0.0.1:1/db;password=s3cret",
    "postgresql://me@127.0.0.1:1/db&password=s3cret",
    "sqlite://me:s3cret@127.0.0.1/db",
    "sqlite:///tune.db?password=s3cret",
    "mysql://me:s3 s3cret@127.0.0.1/db",
    "me:s3cret@host://127.0.0.1/db",
    "postgresql://me:s3cret\0@127.0.0.1/db",
]


def everything_said(error):
    return "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))


@pytest.mark.parametrize("address", LEAKY)
def test_no_secret_of_an_address_is_printed(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PostgresServer, "first_wait_seconds", 0.0)
    with pytest.raises(StorageError) as caught:
        open_storage(address)
    shown = [everything_said(caught.value), shown_address(address), repr(parse_server(address)), str(parse_server(address))]
    shown += [hide_addresses(f"see {address!r}", [address]), hide_addresses(f"{address}: what?", [address])]
    assert [text for text in shown if "s3cret" in text] == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["y", "a.b-", "a://", "a://?", "x=1&", "a:", "@"])
def test_secrets_are_looked_for_in_a_long_text_without_delay(text):
    start = time.monotonic()
    hide_addresses(50_000 * text)
    looks_like_server(50_000 * text)
    shown_address(50_000 * text)
    assert time.monotonic() - start < 5.0  # a busy machine; for some it was minutes


@pytest.mark.parametrize("address", [*LEAKY[:3], *LEAKY[4:5], LEAKY[9]])
def test_a_secret_is_hidden_in_a_text_from_elsewhere_too(address):
    assert "s3cret" not in hide_addresses(f"could not reach {address}, sorry")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("tune.db", "tune.db"),
        ("a@b.db", "a@b.db"),
        ("sqlite:////tmp/a:b@c.db", "sqlite:////tmp/a:b@c.db"),
        ("what?.db", "what?.db"),
        ("memory", "memory"),
        ("postgresql:///db", "postgresql:///db"),
        ("postgres://me@h:5/db?sslmode=require&options=-csearch_path%3Da", "postgresql://me@h:5/db?sslmode=require&options=-csearch_path%3Da"),
        ("postgresql://me:x@[::1]:5/db", "postgresql://me:***@[::1]:5/db"),
    ],
)  # fmt: skip
def test_what_is_harmless_is_printed(address, shown):
    assert shown_address(address) == shown
    assert not looks_like_server(address)
    server = parse_server(address)
    assert server is None or parse_server(server.shown).shown == server.shown


@pytest.mark.parametrize("password", ["p w", "a:b/c?d#e", "%41", PASSWORD])
def test_characters_of_a_password_need_no_quotes_but_for_the_at_sign(password):
    address = parse_server(f"postgresql://me:{password.replace('%', '%25').replace('@', '%40')}@host/db")
    assert (address.password, address.host) == (password, "host")


def test_a_storage_is_printed_without_the_options_that_may_be_secret(server):
    storage = open_storage(server.schema() + "&sslpassword=s3cret")
    backend = storage._database.backend
    shown = [repr(storage), storage.url, repr(vars(backend)), repr(storage._database.engine), str(storage._database.engine.url)]
    assert [text for text in shown if "s3cret" in text or PASSWORD in text or QUOTED in text] == []
    storage.close_connections()


# -- pickles -----------------------------------------------------------------------------------------------------------


def is_secret(data):
    return any(text.encode() in data for text in (PASSWORD, QUOTED, "pa55"))


def test_a_pickle_of_a_storage_holds_no_password(postgres_place, monkeypatch):
    storage = st.Study(st.Space(x=st.Float(0, 1)), storage=postgres_place.open(), name="study").storage
    data = pickle.dumps(storage)
    assert not is_secret(data)
    again = pickle.loads(data)  # in the same process, or in a fork of it
    assert [record.name for record in again.studies()] == ["study"]
    again.close_connections()
    monkeypatch.setattr("shoestring.storage.postgres._known_addresses", {})  # as in another process
    monkeypatch.setattr(PostgresServer, "first_wait_seconds", 0.0)
    with pytest.raises(StorageError, match=r"leaves its password behind: set SHOESTRING_STORAGE .* or PGPASSWORD there"):
        pickle.loads(data)
    for variable, value in (("SHOESTRING_STORAGE", postgres_place.address), ("PGPASSWORD", PASSWORD)):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            patch.setattr("shoestring.storage.postgres._known_addresses", {})
            again = pickle.loads(data)
            assert [record.name for record in again.studies()] == ["study"]
            again.close_connections()


def test_a_worker_process_of_a_run_gets_the_password(postgres_place):
    storage = postgres_place.open()
    with pickles_with_passwords():  # the channel to a worker of ``workers=``
        data = pickle.dumps(storage)
    assert is_secret(data)
    address = _known_addresses.pop(storage.url)
    try:
        again = pickle.loads(data)
    finally:
        _known_addresses[storage.url] = address
    assert again.studies() == []
    again.close_connections()


def test_an_argument_of_a_new_process_carries_the_password(postgres_place):
    """As for the authentication keys of multiprocessing: only while a process is being started."""
    storage, buffer = postgres_place.open(), io.BytesIO()
    multiprocessing.context.set_spawning_popen(object())
    try:
        pickle.Pickler(buffer).dump(storage)
    finally:
        multiprocessing.context.set_spawning_popen(None)
    assert is_secret(buffer.getvalue())


# -- files -------------------------------------------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_only_the_user_may_read_a_new_database_and_its_copies(tmp_path):
    before = os.umask(0o022)
    try:
        storage = open_storage(tmp_path / "tune.db")
        storage.begin("study", {})
        assert {path.name: mode(path) for path in tmp_path.iterdir()} == dict.fromkeys(os.listdir(tmp_path), 0o600)
        storage.backup(tmp_path / "copy.db")
        storage.close_connections()
        assert (mode(tmp_path / "tune.db"), mode(tmp_path / "copy.db")) == (0o600, 0o600)
        (tmp_path / "tune.db").chmod(0o640)  # as the user likes it
        open_storage(tmp_path / "tune.db").close_connections()
        assert mode(tmp_path / "tune.db") == 0o640
    finally:
        os.umask(before)
