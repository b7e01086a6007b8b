"""A study that is opened again: its space, its settings and its code."""

import logging
import math

import numpy as np
import pytest

import shoestring as st
from tests.stored_study import SPACE, WIDER, bowl, configs, configs_in_memory, study


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request):
    """In the quick tests a file alone: what a server does otherwise, the contract of storages and test_persistence.py check."""
    return request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")

# -- another space ----------------------------------------------------------------------------------------------------


def test_another_space_is_refused_and_nothing_is_lost(database):
    study(database).minimize(bowl, 4)
    with pytest.raises(st.StudyError, match=r"study 'bowl' has another space: .*y is missing.*extend=True"):
        st.Study(st.Space(x=st.Float(0, 2)), storage=database.open(), name="bowl")
    assert len(study(database).history) == 4


def test_a_space_can_be_widened_and_old_trials_stay_in_use(database):
    study(database).minimize(bowl, 10)
    before = configs(study(database))
    wider = st.Study(WIDER, storage=database.open(), name="bowl", stop=None, extend=True)
    wider.minimize(bowl, 14)
    assert configs(wider)[:10] == before
    assert len(wider.result.history) == 14
    assert st.Study.load(database.open()).space == WIDER


def test_a_process_that_knows_the_narrower_space_does_not_write_it_back(database):
    older = study(database, method=st.Random())
    wide = st.Space(x=st.Float(0, 2), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"))
    st.Study(wide, storage=database.open(), name="bowl", extend=True)
    older.minimize(bowl, 2)
    assert st.Study.load(database.open()).space == wide


@pytest.mark.parametrize(
    "space",
    [
        st.Space(x=st.Float(0.5, 2), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1), kind=st.Choice("a", "b")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("b", "c")),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b"), more=st.Int(1, 3)),
        st.Space(x=st.Float(0, 1), y=st.Float(0.001, 1, log=True)),
        st.Space(x=st.Int(0, 1), y=st.Float(0.001, 1, log=True), kind=st.Choice("a", "b")),
    ],
)
def test_a_space_cannot_be_narrowed(database, space):
    study(database).minimize(bowl, 2)
    with pytest.raises(st.StudyError, match="cannot be extended"):
        st.Study(space, storage=database.open(), name="bowl", extend=True)
    assert len(study(database).history) == 2


def test_the_order_of_parameters_does_not_make_another_space(database):
    study(database).minimize(bowl, 9)
    turned = st.Study(st.Space(**dict(reversed(list(SPACE.items())))), storage=database.open(), name="bowl", stop=None)
    turned.minimize(bowl, 12)
    assert configs(turned) == configs_in_memory(12)


# -- settings and code ------------------------------------------------------------------------------------------------------


def test_settings_of_the_study_go_before_those_given(sqlite_place, caplog):
    study(sqlite_place, seed=7).minimize(bowl, 3)
    with caplog.at_level(logging.INFO, logger="shoestring"):
        again = study(sqlite_place, seed=8)
    assert again.seed == 7
    assert "goes on with its own seed=7" in caplog.text


def test_of_two_that_begin_a_study_at_once_both_go_on_with_one_seed(database, monkeypatch):
    storage = database.open()
    first = study(database, seed=None)
    monkeypatch.setattr(storage, "find", lambda name: None)  # as long as the first one had not begun it
    assert st.Study(SPACE, seed=None, storage=storage, name="bowl").seed == first.seed


def test_a_study_that_maximizes_goes_on_maximizing(database):
    study(database).maximize(lambda config: -bowl(config), 4)
    again = study(database)
    assert again.direction == "maximize"
    again.maximize(lambda config: -bowl(config), 6)
    assert again.best.value == max(trial.value for trial in again.history)
    with pytest.raises(st.MethodError, match="begun to maximize"):
        again.minimize(bowl, 8)


@pytest.mark.parametrize(
    "code",
    [
        {"method": st.EIAlpha(0.5), "stop": st.RegretBound(0.01) | st.Patience(30) & st.EIBelow(0.1)},
        {"method": st.KG(), "stop": st.WorthIt(2.0), "cost_model": st.LinearCost(2)},
        {"model": st.GP(kernel="se", warp=True), "subset": st.KMeansSubset(10)},
        {"model": st.VFE(12), "subset": None},
        {},
    ],
)
def test_load_brings_the_code_along(sqlite_place, code):
    study(sqlite_place, **code).minimize(bowl, 2)
    again, fresh = st.Study.load(sqlite_place.open()), st.Study(SPACE, **({"stop": None} | code))
    for part in ("method", "rule", "model", "cost_model"):
        assert getattr(again, part) == getattr(fresh, part)


def test_a_study_goes_on_with_the_method_that_was_given_last(sqlite_place):
    study(sqlite_place, method=st.EI()).minimize(bowl, 2)
    study(sqlite_place, method=st.KG()).minimize(bowl, 3)
    assert st.Study.load(sqlite_place.open()).method == st.Study(SPACE, method=st.KG()).method


def test_load_asks_for_code_of_which_there_is_no_text(sqlite_place):
    known = st.KnownCost(lambda config: 1.0)
    study(sqlite_place, cost_model=known)
    with pytest.raises(st.MethodError, match="cost_model"):
        st.Study.load(sqlite_place.open())
    assert st.Study.load(sqlite_place.open(), cost_model=known).name == "bowl"


def test_a_stop_from_before_does_not_end_the_next_run(database):
    study(database).halt("enough")
    assert len(study(database).minimize(bowl, 3).history) == 3


def test_load_says_what_is_there(sqlite_place):
    with pytest.raises(st.StudyError, match="there is no study in"):
        st.Study.load(sqlite_place.open())
    study(sqlite_place)
    with pytest.raises(st.StudyError, match=r"no study 'cup'.*'bowl'"):
        st.Study.load(sqlite_place.open(), "cup")
    study(sqlite_place, name="second")
    with pytest.raises(st.StudyError, match="which study"):
        st.Study.load(sqlite_place.open())


def told_oddly(kept):
    """Failures, values from one end of the scale to the other, and many points close together."""
    rng = np.random.default_rng(0)
    for value in (1e300, -1e300, 5e-324, -0.0, math.nan, math.inf, 1.0, 1.0, 1.0):
        kept.tell(kept.ask(), value, cost=1.0)
    for _ in range(60):
        x, y = 0.5 + 1e-9 * rng.normal(size=2)
        kept.add({"x": x, "y": y, "kind": "a"}, 1.0 + 1e-3 * rng.normal(), cost=1.0)
    return kept


def test_odd_values_are_found_again_and_lead_to_the_same_suggestion(database):
    here, there = told_oddly(study(None)), told_oddly(study(database))
    again = study(database)
    assert [str(trial.value) for trial in again.history] == [str(trial.value) for trial in here.history]
    assert [trial.state for trial in again.history] == [trial.state for trial in here.history]
    assert again.ask().config == here.ask().config
    assert there.replay().first_difference is None
