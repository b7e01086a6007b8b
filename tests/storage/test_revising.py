"""A study is revised in one step: other settings stay, and nothing is written if nothing changes."""

import threading

import pytest

from shoestring.errors import Conflict, StorageError
from shoestring.storage import open_storage
from tests.storage.crowd import crowd


def fields_of(storage):
    record = storage.find("study")
    return record.settings, record.halted, record.halts, record.seconds, record.clock


# -- settings ------------------------------------------------------------------------------------------------------------


def test_settings_are_merged_into_the_stored_ones(storage, study):
    storage.revise(study, {"run": {"command": ["a"], "workers": 2}, "budget": 5})
    storage.revise(study, {"run": {"command": ["b"]}})
    assert storage.find("study").settings == {"seed": 0, "run": {"command": ["b"]}, "budget": 5}
    storage.revise(study, {"budget": None})
    assert storage.find("study").settings == {"seed": 0, "run": {"command": ["b"]}, "budget": None}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"settings": {}},
        {"settings": {"seed": 0}},
        {"settings": {"pair": (1, 2)}},  # as JSON it is the list that is there
        {"halted": None},
        {"seconds": 4.0},
        {"seconds": 0.0},
        {"settings": {"seed": 0}, "if_still": {"seed": 0, "pair": [1, 2]}},
    ],
)
def test_where_nothing_is_different_the_clock_stays(storage, study, change):
    storage.revise(study, {"pair": [1, 2]}, seconds=4.0)
    before = fields_of(storage)
    storage.revise(study, **change)
    assert fields_of(storage) == before


def test_settings_are_changed_only_if_they_are_still_what_the_caller_knows(storage, study):
    storage.revise(study, {"space": {"x": [0, 1]}})
    before = fields_of(storage)
    for known in ({"space": {"x": [0, 2]}}, {"space": None}, {"seed": 0, "space": {}}, {"colour": "red"}):
        with pytest.raises(Conflict, match="changed by another program"):
            storage.revise(study, {"space": {}}, halted="enough", seconds=9.0, if_still=known)
    assert fields_of(storage) == before
    storage.revise(study, {"space": {"x": [0, 9]}}, if_still={"space": {"x": [0, 1]}, "colour": None})
    assert storage.find("study").settings == {"seed": 0, "space": {"x": [0, 9]}}


def test_what_cannot_be_kept_changes_nothing(storage, study):
    before = fields_of(storage)
    for change in ({"settings": {"x": {1, 2}}}, {"if_still": {"x": {1}}}, {"halted": {1}}, {"seconds": -1.0}, {"seconds": 1e999}):
        with pytest.raises(StorageError):
            storage.revise(study, **({"settings": {"seed": 5}} | change))
    assert fields_of(storage) == before


def test_damaged_settings_get_no_new_checksum(database):
    storage = database.open()
    study = storage.begin("study", {"seed": 0})[0].id
    database.execute("UPDATE studies SET settings = ?", ('{"seed":1}',))
    for change in ({"settings": {"x": 1}}, {"halted": "enough"}, {"seconds": 1.0}):
        with pytest.raises(StorageError, match="damaged"):
            storage.revise(study, **change)
    with pytest.raises(StorageError, match="damaged"):
        storage.find("study")


def test_threads_that_write_different_keys_lose_none(storage, study):
    def keep(name):
        for value in range(5):
            storage.revise(study, {name: value}, seconds=float(value))

    threads = [threading.Thread(target=keep, args=(f"key {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.find("study").settings == {"seed": 0} | {f"key {number}": 4 for number in range(6)}
    assert storage.find("study").seconds == 4.0


def test_processes_that_write_different_keys_lose_none(database):
    storage = database.open()
    study = storage.begin("study", {"seed": 0})[0].id
    crowd(_keep, [(database.address, study, number) for number in range(6)])
    record = storage.find("study")
    assert record.settings == {"seed": 0} | {f"key {number}.{step}": step for number in range(6) for step in range(5)}
    assert (record.halts, record.clock) == (6, 36)
    assert storage.check() == []


def _keep(address, study, number):
    storage = open_storage(address)
    for step in range(5):
        storage.revise(study, {f"key {number}.{step}": step})
    storage.revise(study, halted=f"enough, says {number}")
    storage.close_connections()


def test_of_many_that_know_the_same_one_is_first(database):
    storage = database.open()
    study = storage.begin("study", {"space": 0})[0].id
    won = crowd(_race, [(database.address, study, number) for number in range(1, 7)])
    assert sum(won) == 1
    assert storage.find("study").settings == {"space": won.index(True) + 1}


def _race(address, study, number):
    storage = open_storage(address)
    try:
        storage.revise(study, {"space": number}, if_still={"space": 0})
        return True
    except Conflict:
        return False
    finally:
        storage.close_connections()


# -- stops ---------------------------------------------------------------------------------------------------------------


def test_stops_are_counted_and_only_their_reason_is_forgotten(storage, study):
    for reason in ("enough", "enough", "lunch"):
        storage.revise(study, halted=reason)
    assert fields_of(storage)[1:] == ("lunch", 3, 0.0, 3)
    storage.revise(study, halted=None)
    assert fields_of(storage)[1:] == (None, 3, 0.0, 4)
    assert storage.changes_since(study, 99).halts == 3
    storage.revise(study, {"seed": 2}, seconds=1.0)
    assert storage.changes_since(study, 99).halts == 3


# -- time ----------------------------------------------------------------------------------------------------------------


def test_the_longest_time_stays(storage, study):
    for seconds in (2.0, 5.5, 3.0):
        storage.revise(study, seconds=seconds)
    assert storage.find("study").seconds == storage.changes_since(study, 99).seconds == 5.5
    assert storage.find("study").clock == 2
