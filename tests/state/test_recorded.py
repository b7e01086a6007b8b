"""Suggestions are those that were recorded before: a change that alters them has to say so."""

import json
from pathlib import Path

import pytest

from tests.state.recorded import STUDIES, run

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
QUICK = ("num-EI()", "sqlite-reopen")


@pytest.mark.filterwarnings("ignore")  # of the libraries that TPE and BORE use
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STUDIES])
def test_suggestions_are_those_that_were_recorded(name, tmp_path):
    found = run(name, tmp_path)
    assert len(found) == len(RECORDED[name])
    for config, before in zip(found, RECORDED[name], strict=True):
        assert list(config) == list(before)
        for key, value in config.items():
            known = pytest.approx(before[key], rel=1e-6, abs=1e-9) if isinstance(value, float) else before[key]
            assert value == known  # other processors round otherwise


def test_there_are_forty_and_more():
    assert set(STUDIES) == set(RECORDED)
    assert len(STUDIES) >= 40
