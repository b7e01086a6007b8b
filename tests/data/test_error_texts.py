"""Texts and numbers of any size: long errors are capped, and sums and costs beyond the range of floats end no run."""

import itertools
import math
import sys

import pytest

import shoestring as st
from shoestring._format import duration
from shoestring.data.outcome import MAX_ERROR_BYTES, capped, joined, read_value, shown

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0, 1))


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_long_it_was(character):
    text = capped("first" + character * 1_000_000 + "last")
    assert len(text.encode()) <= MAX_ERROR_BYTES
    assert text.startswith(f"first{character}")
    assert text.endswith(f"{character}last")
    assert "the whole text has 1,000,009 characters" in text
    assert capped(text) == text


def test_a_text_of_the_size_that_is_kept_is_not_changed():
    assert capped("x" * MAX_ERROR_BYTES) == "x" * MAX_ERROR_BYTES
    assert capped("é" * (MAX_ERROR_BYTES // 2)) == "é" * (MAX_ERROR_BYTES // 2)


def test_halves_of_a_character_are_joined_and_a_single_half_stays():
    assert joined("a\ud83d\ude00\ud83d") == "a\U0001f600\ud83d"
    assert type(joined(type("Text", (str,), {})("a"))) is str


def test_a_long_error_is_capped_however_it_enters_a_study(database):
    long = "x" * 10_000_000

    def objective(config):
        raise ValueError(long)

    study = st.Study(SPACE, st.Random(), storage=database.open())
    told = study.tell(study.ask(), error=long)
    study.add({"x": 0.5, "y": 0.5}, error=long)
    study.minimize(objective, 2, max_failures=5)
    assert study.tell(told, error=long) == told  # the same again changes nothing
    for trial in st.Study.load(database.open()).history:
        assert len(trial.error) <= MAX_ERROR_BYTES + 100  # and the line of the objective
        assert len(trial.traceback or "") <= 10_000
        assert "the whole text has 10,000,000 characters" in trial.error


def test_what_is_no_number_is_said_in_short_and_without_raising():
    class NoText:
        def __repr__(self):
            raise RuntimeError

    assert shown(NoText()) == "a NoText that cannot be shown"
    assert len(shown("x" * 1_000_000)) == 80
    study = st.Study(SPACE)
    trial = study.ask()
    for bad in (NoText(), "x" * 1_000_000, [10**5000]):
        for told in ({"value": bad}, {"value": 1.0, "metrics": bad}, {"value": 1.0, "attrs": {"a": NoText()}}):
            with pytest.raises(st.OutcomeError) as error:
                study.tell(trial, **told)
            assert len(str(error.value)) < 300
    with pytest.raises(st.OutcomeError, match="digits"):
        study.tell(trial, 1.0, attrs={"a": 10**5000})


def test_whole_numbers_beyond_the_range_of_floats_are_infinite():
    assert read_value(10**5000) == math.inf
    assert read_value(-(10**5000)) == -math.inf


@pytest.mark.parametrize("cost_model", ["auto", st.LinearCost(), st.LogGPCost()], ids=str)
def test_costs_over_600_decades_end_no_run(cost_model):
    costs = itertools.cycle([5e-324, 1.7e308])
    study = st.Study(SPACE, st.EIpu(), cost_model=cost_model, initial=3)
    result = study.minimize(lambda config: st.Outcome(config["x"], cost=next(costs)), 6)
    assert len(result.history) == 6
    assert result.history.spent == sys.float_info.max  # the sum would be infinite
    assert all(math.isfinite(trial.suggestion.get("cost", 0.0)) for trial in result.history)
    assert math.isfinite(result.history.bests()[-1][0])
    assert "4.99e+304 h" in str(result)


def test_a_price_that_makes_the_charge_overflow_is_no_reason_to_fail(database):
    study = st.Study(SPACE, st.Random(), unit="USD", per_hour=1e308, storage=database.open())
    trial = study.ask()
    study.state._own[trial.number] -= 1e9  # as if it had been asked long ago
    assert study.tell(trial, 0.5).cost == sys.float_info.max


def test_very_long_times_are_rounded():
    assert duration(3599.0 * 3600) == "3599 h 00 m"
    assert duration(1e300) == "2.78e+296 h"


@pytest.mark.parametrize("path", ["x" * 300 + ".db", "~nobody-of-this-name/tune.db"])
def test_a_path_that_cannot_be_one_is_a_clear_error(path):
    with pytest.raises(st.StorageError, match="give another one"):
        st.Study(SPACE, storage=path)
    with pytest.raises(st.MethodError, match="give another one"):
        st.Study(SPACE, checkpoints=path)
