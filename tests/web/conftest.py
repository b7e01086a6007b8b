from __future__ import annotations

import pytest

import shoestring as st
from shoestring.storage.url import open_storage
from shoestring.web.app import make_app
from shoestring.web.keys import Keys
from shoestring.web.site import Site
from tests.web.visitor import TOKEN, program, signed_in

SPACE = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), act=st.Choice("relu", "tanh"))


@pytest.fixture
def storage():
    return open_storage("memory")


@pytest.fixture
def study(storage):
    """A study with three results, a failure and a running trial."""
    study = st.Study(
        SPACE, st.Random(), storage=storage, name="xgb", unit="USD", budget=st.Budget(trials=20, cost=50.0, unit="USD")
    )
    for value in (0.5, 0.25, 0.75):
        study.tell(study.ask(), value, cost=2.0, metrics={"accuracy": 1 - value})
    study.tell(study.ask(), error="CUDA out of memory", cost=1.0)
    study.ask()
    return study


@pytest.fixture
def site(storage, study):
    return Site(storage, Keys(TOKEN), version="1.2.3")


@pytest.fixture
def app(site):
    return make_app(site)


@pytest.fixture
def browser(site, app):
    return signed_in(site, app)


@pytest.fixture
def client(app):
    return program(app)
