"""A study whose connections break while its trials run: each result is there, once."""

import threading
import time

import pytest

import shoestring as st
from tests.storage.test_failures import END_ALL, FailingCommits
from tests.stored_study import SPACE, bowl


def random_study(storage, **options):
    return st.Study(SPACE, st.Random(), stop=None, storage=storage, **options)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_result_is_there_once_when_connections_break(database, monkeypatch, when):
    """``after``: it has been written, and the answer is lost."""
    storage, evaluated = database.open(), []
    kept = random_study(storage)
    commits = FailingCommits(storage, monkeypatch)

    def objective(config):
        evaluated.append(config)
        setattr(commits, when, 2)
        return st.Outcome(bowl(config), cost=1.0)

    history = kept.minimize(objective, 4).history
    assert [trial.config for trial in history] == evaluated
    assert [(trial.value, trial.cost) for trial in history] == [(bowl(config), 1.0) for config in evaluated]
    assert database.open().check() == []


def outlive(database, monkeypatch, seconds, lease):
    """A trial that lasts for several leases, whose connections break again and again."""
    storage = database.open()
    kept, other = random_study(storage, lease=lease), random_study(database.open())
    commits, asked = FailingCommits(storage, monkeypatch), []

    def objective(config, trial):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if database.server is not None:
                database.server.execute(END_ALL)
            else:
                commits.before = commits.after = 1
            time.sleep(lease / 5)
        asked.append(other.ask().config)
        return bowl(config)

    kept.minimize(objective, 1)
    first, second = other.history
    assert (first.error, first.value) == (None, bowl(first.config))
    assert second.config == asked[0] != first.config  # nobody took the first one for lost
    assert database.open().check() == []


def test_a_long_trial_outlives_its_connections(database, monkeypatch):
    outlive(database, monkeypatch, 1.0, 0.4)


@pytest.mark.slow
def test_a_very_long_trial_outlives_its_connections(database, monkeypatch):
    outlive(database, monkeypatch, 20.0, 2.0)


@pytest.mark.slow
def test_a_server_that_restarts_during_a_trial_is_waited_for(own_server_place):
    storage, server = own_server_place.open(), own_server_place.server
    kept = random_study(storage)

    def objective(config, trial):
        if trial.number == 1:
            server.halt()
            threading.Timer(2.0, server.start).start()
        return bowl(config)

    history = kept.minimize(objective, 3).history
    assert [trial.value for trial in history] == [bowl(trial.config) for trial in history]
    assert len(history) == 3
    assert storage.check() == []
