"""The storages of the library pass the contract suite."""

import pytest

from shoestring.testing import StorageContract
from tests.storage.places import Place


class PlaceContract(StorageContract):
    """The suite at a place. Its clock is fake in the checks in which leases expire."""

    lease_seconds = 10.0
    place: Place

    @pytest.fixture(autouse=True)
    def patch(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def open(self):
        return self.place.open()

    def use_fake_clock(self):
        self.place.use_fake_clock(self.monkeypatch)

    def wait(self, seconds):
        self.place.wait(seconds)


class TestMemoryStorage(PlaceContract):
    @pytest.fixture(autouse=True)
    def use_place(self):
        self.place = Place("memory", "memory://")


class TestSQLite(PlaceContract):
    @pytest.fixture(autouse=True)
    def use_place(self, sqlite_place):
        self.place = sqlite_place


class TestPostgreSQL(PlaceContract):
    @pytest.fixture(autouse=True)
    def use_place(self, postgres_place):
        self.place = postgres_place
