"""Suggestions are those that were recorded before: a change that alters them has to say so."""

import json

import pytest

import shoestring as st
from tests.state import recorded
from tests.state.recorded import INITIAL, STUDIES, run

RECORDED = json.loads(recorded.RECORDED.read_text(encoding="utf-8"))
QUICK = ("num-EI()", "sqlite-reopen")


@pytest.mark.filterwarnings("ignore")  # of the libraries that TPE and BORE use
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STUDIES])
def test_suggestions_are_those_that_were_recorded(name, tmp_path):
    """All of them where the machine rounds as the one that recorded them, else up to the first one of the model."""
    found = run(name, tmp_path)
    assert len(found) == len(RECORDED[name])
    compared = len(found) if recorded.rounding() == RECORDED["rounding"] else INITIAL + 1
    for config, before in zip(found[:compared], RECORDED[name], strict=False):
        assert list(config) == list(before)
        for key, value in config.items():
            known = pytest.approx(before[key], rel=1e-5, abs=1e-9) if isinstance(value, float) else before[key]
            assert value == known


def test_a_study_that_is_reopened_asks_what_one_in_memory_asks(tmp_path):
    (space, objective), trials, how, options = STUDIES["sqlite-reopen"]
    assert how["reopen"] < trials - 1
    study, found = st.Study(space, seed=7, stop=None, **options()), []
    while len(found) < trials:
        trial = study.ask()
        found.append(dict(trial.config))
        recorded.tell(study, trial, objective, how)
    assert run("sqlite-reopen", tmp_path) == found


def test_there_are_forty_and_more():
    assert {*STUDIES, "rounding"} == set(RECORDED)
    assert len(STUDIES) >= 40
