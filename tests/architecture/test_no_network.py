"""Nothing leaves the machine: no name is looked up and nothing is connected to, but the given database."""

import os
import subprocess
import sys

import pytest

HOOK = """
import os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"):
        to = arguments[0] if event.startswith("socket.get") else arguments[1]
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{event} {to}\\n")

sys.addaudithook(note)
"""
PROGRAM = """
import socket, sys
import shoestring as st

def objective(config):
    socket.getaddrinfo("127.0.0.1", 1)  # so that it is seen whether the hook works
    return config["x"]

study = st.Study(st.Space(x=st.Float(0, 1)), "auto" if sys.argv[1] else st.Random(), storage=sys.argv[1] or None, initial=3)
result = study.minimize(objective, 5, workers=2 if sys.argv[1] else 1, progress=False)
print(result, study.replay())
"""


def calls_of(tmp_path, storage):
    """By a hook that Python calls for each use of a socket, in worker processes too."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    calls = tmp_path / "calls"
    environment = os.environ | {"CALLS": str(calls), "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])}
    words = [sys.executable, "-c", PROGRAM, storage]
    ended = subprocess.run(words, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return set(calls.read_text().splitlines())


def test_a_study_reaches_nothing_over_the_network(tmp_path):
    assert calls_of(tmp_path, "") == {"socket.getaddrinfo 127.0.0.1"}


@pytest.mark.slow
def test_nothing_is_reached_over_the_network_but_the_given_database(database, tmp_path):
    """psycopg connects without Python's sockets: no call that the hook sees is one to the database."""
    assert calls_of(tmp_path, database.address) == {"socket.getaddrinfo 127.0.0.1"}
