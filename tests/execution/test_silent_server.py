"""A server that accepts connections and never answers: one Ctrl-C is enough, and no result is dropped."""

import contextlib
import logging
import os
import select
import shlex
import signal
import socket
import threading
import time

import pytest

import shoestring as st
from shoestring.errors import StorageUnavailable
from shoestring.storage import transactions
from shoestring.storage.transactions import wait_limit
from tests.execution.helpers import SPACE, states


class SilentProxy:
    """Between a study and the server: after ``silence`` it accepts everything and passes nothing on."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target, self.silent, self.ended = self.listener.getsockname()[1], port, threading.Event(), False
        self.sockets, self.other_end = [], {}
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ended:
            for ready in select.select([self.listener, *self.other_end], [], [], 0.02)[0]:
                if ready is self.listener:
                    ours = self.listener.accept()[0]
                    self.sockets.append(ours)
                    if not self.silent.is_set():
                        theirs = socket.create_connection(("127.0.0.1", self.target))
                        self.sockets.append(theirs)
                        self.other_end |= {ours: theirs, theirs: ours}
                    continue
                data = b""
                with contextlib.suppress(OSError):
                    data = ready.recv(65536)
                if not data:
                    other = self.other_end.pop(ready, None)
                    if other is not None and not self.silent.is_set():
                        with contextlib.suppress(OSError):
                            other.shutdown(socket.SHUT_WR)
                elif not self.silent.is_set():
                    self.other_end[ready].sendall(data)

    def silence(self):
        self.silent.set()

    def end(self):
        self.ended = True
        self.thread.join()
        for each in [self.listener, *self.sockets]:
            each.close()


@pytest.fixture
def proxy(postgres_place):
    found = SilentProxy(postgres_place.server.port)
    found.address = postgres_place.address.replace(f":{postgres_place.server.port}/", f":{found.port}/")
    yield found
    found.end()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    for module in ("execution.retry", "execution.runner", "state.study_state", "storage.heartbeat", "storage.transactions"):
        monkeypatch.setattr(f"shoestring.{module}.SHORT_WAIT_SECONDS", 0.2)
    monkeypatch.setattr("shoestring.storage.watchdog.SHORT_WAIT_SECONDS", 0.2)
    monkeypatch.setattr("shoestring.storage.postgres.SHORT_WAIT_SECONDS", 0.2)


def press_ctrl_c(after):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize("when", ["while it runs", "while it is told"])
def test_one_interruption_ends_the_run_and_a_finished_result_gets_its_command(proxy, caplog, when):
    """With 60 s of patience in a transaction, as on a busy server, Ctrl-C is what ends the wait."""
    study, pressed = st.Study(SPACE, st.Random(), storage=proxy.address, name="a study"), []

    def objective(config):
        if len(study.state) < 3:
            return config["x"]
        proxy.silence()
        pressed.append(time.monotonic())
        press_ctrl_c(0.1)
        if when == "while it runs":
            time.sleep(30)
        return config["x"]

    result = study.minimize(objective, 8, on_interrupt="return")
    assert time.monotonic() - pressed[0] < 3.0
    assert result.stop.kind == "interrupted"
    assert states(result.history)[:2] == ["done"] * 2
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    if when == "while it runs":
        assert told == []  # there is no result
    else:
        (command,) = told
        words = shlex.split(command.partition("to tell it later: ")[2])
        assert words[:4] == ["shoestring", "tell", "a study", "2"]
        assert float(words[4]) == result.history[2].config["x"]


def test_a_second_interruption_drops_no_result(proxy, caplog):
    study = st.Study(SPACE, st.Random(), storage=proxy.address)

    def objective(config):
        proxy.silence()
        press_ctrl_c(0.1)
        press_ctrl_c(0.15)
        return config["x"]

    start = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        study.minimize(objective, 8)
    time.sleep(0.1)  # both are over
    assert time.monotonic() - start < 3.0
    assert any("to tell it later: shoestring tell" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("call", ["ask", "tell"])
def test_an_interruption_ends_a_call_outside_of_a_run(proxy, call):
    study = st.Study(SPACE, st.Random(), storage=proxy.address)
    trial = study.ask()
    proxy.silence()
    press_ctrl_c(0.1)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        study.ask() if call == "ask" else study.tell(trial, 1.0)
    assert time.monotonic() - start < 3.0


def test_a_silent_server_is_an_error_that_says_so(proxy):
    storage = st.open_storage(proxy.address)
    study = storage.begin("study", {})[0].id
    proxy.silence()
    start = time.monotonic()
    with pytest.raises(StorageUnavailable, match="lets you connect and does not answer"), wait_limit(0.1, strict=True):
        storage.enqueue(study, {"x": 1}, {})
    with pytest.raises(StorageUnavailable, match="does not answer"), wait_limit(0.1, strict=True):
        storage.enqueue(study, {"x": 1}, {})
    assert time.monotonic() - start < 2.0
    storage.close_connections()


def test_a_run_goes_on_when_a_silent_server_answers_again(proxy, monkeypatch):
    monkeypatch.setattr(transactions, "MIN_SILENCE_SECONDS", 0.2)
    monkeypatch.setattr("shoestring.storage.postgres.MIN_CONNECT_SECONDS", 0.2)
    monkeypatch.setattr("shoestring.execution.retry.PAUSE_SECONDS", 0.05)
    study = st.Study(SPACE, st.Random(), storage=proxy.address)

    def objective(config):
        if len(study.state) == 2:
            proxy.silence()
            threading.Timer(0.5, proxy.silent.clear).start()
        return config["x"]

    result = study.minimize(objective, 4)
    assert states(result.history) == ["done"] * 4
    study.close()


def test_waiting_for_the_server_takes_no_processor_time(postgres_place):
    database = postgres_place.open()._database
    database.read(lambda connection: None)
    start = time.thread_time()
    database.read(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(0.1)").all())
    assert time.thread_time() - start < 0.05
