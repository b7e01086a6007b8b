import math

import pytest

import shoestring as st
from shoestring._validation import seconds_of
from shoestring.budget import read_budget


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45), ("10m", 600), ("3h", 10800), ("1h 30m", 5400), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400),
        (".5m", 30), ("250ms", 0.25), (" 10 m ", 600), ("10M", 600), ("5min", 300), ("5 sec", 5), ("10 minutes", 600),
        ("1 hour 30 minutes", 5400),
    ],
)
def test_times_are_read_as_people_write_them(text, seconds):
    assert seconds_of(text) == pytest.approx(seconds)
    assert read_budget(text) == st.Budget(seconds=seconds_of(text))


@pytest.mark.parametrize("text", ["", " ", "m", "ten minutes", "10 minuts", "10x", "10m!", "-5m", "0s", "1h 30", "1e3s"])
def test_text_that_is_no_time_is_refused_and_repeated(text):
    with pytest.raises(st.BudgetError) as refused:
        read_budget(text)
    assert repr(text) in str(refused.value)


def test_an_int_is_a_number_of_trials_and_a_budget_is_itself():
    assert read_budget(7) == st.Budget(trials=7)
    budget = st.Budget(cost=3.5, unit="USD")
    assert read_budget(budget) is budget


@pytest.mark.parametrize("budget", [None, True, 0, -3, 2.5, [10], {}])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(st.BudgetError):
        read_budget(budget)


@pytest.mark.parametrize(
    "limits",
    [
        {}, {"trials": 0}, {"trials": 2.5}, {"trials": True}, {"seconds": -1},
        {"seconds": math.nan}, {"cost": math.inf}, {"cost": "3"},
    ],
)
def test_limits_that_cannot_be_are_refused_by_name(limits):
    with pytest.raises(st.BudgetError, match="|".join(limits) or "needs"):
        st.Budget(**limits)
