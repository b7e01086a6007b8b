import pytest


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request):
    """A place that several processes share.

    A server is slow: in every run it has the contract of storages, and here the tests with ``on_a_server_too``.
    """
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")
