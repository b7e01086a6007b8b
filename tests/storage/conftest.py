import pytest

from tests.storage.places import Place
from tests.storage.server import served


@pytest.fixture(scope="session")
def server():
    yield from served()


@pytest.fixture
def sqlite_place(tmp_path):
    place = Place("sqlite", f"sqlite:///{tmp_path}/tune.db")
    yield place
    place.close()


@pytest.fixture
def postgres_place(server):
    place = Place("postgresql", server.schema(), server)
    yield place
    place.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """A place that several processes share."""
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")


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
