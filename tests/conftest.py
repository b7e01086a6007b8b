import gc
import logging
import os
import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: two threads on busy cores make small matrices slow
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same for scikit-learn

import pytest
from hypothesis import HealthCheck, settings

from shoestring.state import registry
from tests.storage.places import Place
from tests.storage.server import served

gc.disable()  # while the tests are imported: see pytest_runtestloop

for profile, examples in (("repeatable", 60), ("quick", 25)):
    settings.register_profile(
        profile, deadline=None, derandomize=True, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("repeatable")

pytest.register_assert_rewrite("tests.execution.cluster_contract")  # so that what fails there shows its values


def pytest_configure(config):
    """Without the slow tests, fewer examples are drawn too."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """What is imported by now stays: the garbage collector need not visit its half a million objects again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """A class that a test registers is forgotten after it: another test may have one of the same name."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_read_entry_points", set(registry._read_entry_points))


@pytest.fixture(autouse=True)
def _verbosity():
    """What a test sets by ``st.set_verbosity``, a page of the docs for example, ends with it."""
    yield
    log = logging.getLogger("shoestring")
    if log.level != logging.NOTSET:
        log.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True, scope="session")
def _configuration(tmp_path_factory):
    """The configuration folder of the tests, also of processes that they start: that of the user is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


@pytest.fixture(scope="session")
def server():
    """One PostgreSQL server for all tests, each of which has a schema of its own."""
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


@pytest.fixture
def own_server():
    """For tests that stop it."""
    yield from served(durable=True)


@pytest.fixture
def own_server_place(own_server):
    place = Place("postgresql", own_server.address, own_server)
    yield place
    place.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """A place that several processes share."""
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")
