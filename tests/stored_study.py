"""A small study in a storage, for tests of several parts."""

from functools import cache

import shoestring as st
from tests.storage.places import Place

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))


WIDER = st.Space(x=st.Float(0, 2), y=st.Float(0.0001, 1, log=True), kind=st.Choice("a", "b", "c"))


def bowl(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.2) ** 2 + 0.1 * (config["kind"] == "a")


def configs(study):
    return [trial.config for trial in study.history if trial.state is not st.State.ABANDONED]


def study(place, **options):
    """``place``: where it is opened anew, as another process would; an address; or None, in memory."""
    storage = place.open() if isinstance(place, Place) else place
    return st.Study(SPACE, **({"seed": 3, "stop": None, "name": "bowl"} | options), storage=storage)


@cache
def configs_in_memory(count, method="auto"):
    """The configs of such a study that is in no storage, without an interruption: what every other one is compared with."""
    whole = study(None, method=method)
    whole.minimize(bowl, count)
    return configs(whole)
