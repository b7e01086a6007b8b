import pytest

from tests.storage.places import Place


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def place(request):
    if request.param == "memory":
        return Place("memory", "memory://")
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")


@pytest.fixture
def storage(place):
    return place.open()


@pytest.fixture
def study(storage):
    return storage.begin("study", {"seed": 0})[0].id
