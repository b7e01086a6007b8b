"""A file of version 2 that an earlier program has written: it is migrated, goes on, and suggests the same.

``version_2_data.sql`` is the file as text. ``version_2_data.json`` holds the answers of the earlier program for each study: the
number of trials, the best value, the replay, the texts of method, rule and models, the config of the next ask, and ``to_json()``
after it.

    ei      a mixed space with a condition, folds, a failure, a running trial, a queued config, rules joined by |
    curves  a fidelity and intermediate values, all settings "auto"
    kg      maximization, gradients, costs in USD
    wide    a study whose space was extended
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shoestring as st
from shoestring.storage import open_storage, schema

DATA = Path(__file__).with_name("version_2_data.sql")
EXPECTED = json.loads(DATA.with_suffix(".json").read_text(encoding="utf-8"))
NAMES = list(EXPECTED)
# The default has become better since, in costs and with learning curves: a study that uses it is suggested other configs now, and
# the replay says so.
LEARNS_COSTS, EARLIER_DESIGN = "curves", 4
# Linear algebra rounds in another way on another processor, and a search for a maximum passes that on.
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def unchanged_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("version_2") / "tune.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DATA.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def file(unchanged_file, tmp_path):
    """A copy, which a test may change."""
    path = tmp_path / "tune.db"
    path.write_bytes(unchanged_file.read_bytes())
    return path


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def study(file, name):
    study = st.Study.load(file, name)
    yield study
    study.storage.close_connections()


def test_the_file_is_migrated_and_consistent(file):
    storage = open_storage(file)
    assert f"from version 2 to version {schema.VERSION}" in storage.upgrade()
    assert [record.name for record in storage.studies()] == NAMES
    assert storage.check() == []
    storage.close_connections()


def test_the_trials_and_the_best_value_are_the_same(study, name):
    assert len(study.history) == EXPECTED[name]["trials"]
    assert study.best.value == EXPECTED[name]["best"]
    assert study.code == EXPECTED[name]["code"]


def test_the_replay_is_the_same_bit_for_bit(study, name):
    found = study.replay()
    if name == LEARNS_COSTS:
        assert found.first_difference is not None
        assert found.checked > EARLIER_DESIGN
    else:
        assert [found.checked, found.passed_over, found.first_difference] == EXPECTED[name]["replay"]


def test_the_next_config_is_the_same_up_to_rounding(study, name):
    asked = study.ask()
    assert asked.number == EXPECTED[name]["trials"]
    if name == LEARNS_COSTS:  # its curves decide now
        assert study.space.check(asked.config) == asked.config
        assert asked.config["epochs"] == study.space.target["epochs"]
    else:
        expected = EXPECTED[name]["next"]
        numbers = {key for key, value in expected.items() if isinstance(value, float)}
        assert asked.config == {
            key: pytest.approx(value, rel=ROUNDING) if key in numbers else value for key, value in expected.items()
        }
    study.tell(asked, 0.5, cost=1.0)
    assert study.history[asked.number].value == 0.5


def test_the_json_text_of_a_study_can_be_read(study, name):
    model = None if EXPECTED[name]["code"]["model"] == "auto" else study.model
    read = st.Study.from_json(EXPECTED[name]["json"], study.method, model=model)
    *before, last = read.history
    assert before == list(study.history)
    assert last.config == EXPECTED[name]["next"]
    assert read.best.value == EXPECTED[name]["best"]
    assert read.replay().first_difference is None
    written, expected = json.loads(read.to_json()), json.loads(EXPECTED[name]["json"])
    for trial, before in zip(written.pop("trials"), expected.pop("trials"), strict=True):
        assert trial.items() >= before.items()
    assert written.items() >= expected.items()
