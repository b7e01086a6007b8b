"""What is stored comes back exactly, or is refused with a reason before anything is written."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.data.trial import State, Trial
from shoestring.errors import StorageError
from shoestring.storage import MemoryStorage
from shoestring.storage.codec import checksum, decode_trial, decode_trials, encode_trial, read_trial
from tests.storage.places import done, lease, running

ODD = ["", "é", "😀", "\0", "a\0b", "\ud800", "\udfff x", "'; DROP TABLE trials; --", "\\u0000", "</script>", "x" * 1_000_000]
NUMBERS = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 1e-300, 2**53 + 1.0]

words = st.text(st.characters(), max_size=8).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
floats = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def read_back(trial, clocks=(1, None, None)):
    text = encode_trial(trial)
    return read_trial((text, checksum(text, *clocks), trial.number, *clocks), "here")


@given(
    st.builds(
        Trial,
        number=st.integers(0, 2**31 - 1),
        config=st.dictionaries(words, values, max_size=4),
        state=st.sampled_from(State),
        value=st.none() | floats,
        cost=st.none() | floats,
        folds=st.none() | st.lists(floats, max_size=3).map(tuple),
        gradient=st.none() | st.dictionaries(words, floats, max_size=2),
        fidelity=st.dictionaries(words, floats, max_size=2),
        seconds=st.none() | floats,
        error=st.none() | words,
        reports=st.lists(st.dictionaries(words, values, max_size=3), max_size=2).map(tuple),
        suggestion=st.dictionaries(words, values, max_size=3),
        censored=st.booleans(),
        asked_at=st.none() | floats,
    )
)
def test_any_trial_comes_back(trial):
    back = read_back(trial).trial
    assert back == trial
    assert repr(back.to_dict()) == repr(trial.to_dict())  # -0.0, True for 1, and when it was asked, which do not count for ==
    full = {name: None if value is None else value for name, value in back.to_dict().items()}
    assert full == Trial.from_dict(json.loads(encode_trial(trial))).to_dict() == trial.to_dict()


def test_what_is_read_is_a_trial_like_any_other():
    trial = read_back(done(3, 0.5)).trial
    assert type(trial) is Trial
    with pytest.raises(FrozenInstanceError):
        trial.value = 1.0
    assert trial.finish(State.FAILED, error="x") == done(3, 0.5).finish(State.FAILED, error="x")
    assert pickle.loads(pickle.dumps(trial)) == copy.deepcopy(trial) == trial.detached() == trial
    assert hash(State.DONE) == hash(trial.state)


def test_an_unknown_field_is_ignored():
    text = encode_trial(done(3, 0.5))[:-1] + ',"colour":"red"}'
    assert read_trial((text, checksum(text, 1, None, 2), 3, 1, None, 2), "here").trial == done(3, 0.5)
    text = text.replace('"number":3,', "")
    with pytest.raises(StorageError, match="trial 3 in here is damaged"):
        read_trial((text, checksum(text, 1, None, 2), 3, 1, None, 2), "here")


def test_texts_are_decoded_alone_or_together():
    trials = [done(0, 0.5), running(1), done(2, 0.25, folds=(0.5, math.nan))]
    texts = [encode_trial(trial) for trial in trials]
    assert repr([decode_trial(text) for text in texts]) == repr(decode_trials(texts)) == repr(trials)
    assert decode_trials([]) == []


def test_empty_fields_are_not_stored():
    assert encode_trial(Trial(0, {})) == '{"number":0,"config":{},"state":"running"}'


def test_folds_that_are_no_numbers_come_back_as_nan():
    back = read_back(done(0, folds=(1.0, math.nan, math.inf))).trial
    assert back.folds[0] == 1.0
    assert math.isnan(back.folds[1])
    assert math.isnan(back.folds[2])


def test_odd_texts_come_back_from_every_storage(storage):
    for place, odd in enumerate(ODD):
        study = storage.begin(f"study {place}", {})[0].id
        odd_config = {"act": odd, "nested": [{odd: odd}]}
        trial = Trial(0, odd_config, suggestion={"why": odd})
        storage.write(study, trial, lease=lease())
        closed = storage.close(study, trial.finish(State.FAILED, error=odd, reports=({"note": odd},)), again=True)
        storage.revise(study, {"note": odd}, halted=odd)
        changes = storage.changes_since(study, 0)
        assert changes.trials == [closed]
        assert closed.trial == trial.finish(State.FAILED, error=odd, reports=({"note": odd},))
        assert changes.queue[0].config == odd_config
        assert changes.halted == odd
        assert storage.find(f"study {place}").settings == {"note": odd}


def test_numbers_come_back_exactly_from_every_storage(storage, study):
    for number, value in enumerate(NUMBERS):
        storage.write(study, done(number, value, cost=abs(value), seconds=value))
    stored = [each.trial for each in storage.changes_since(study, 0).trials]
    assert [repr(trial.value) for trial in stored] == [repr(value) for value in NUMBERS]
    assert [repr(trial.seconds) for trial in stored] == [repr(value) for value in NUMBERS]
    assert storage.best(study, False).value == -5e-324
    assert storage.best(study, True).value == 1.7976931348623157e308


def test_numpy_scalars_are_stored_as_numbers(storage, study):
    config = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("x"), "e": (1, 2)}
    storage.write(study, Trial(0, config), lease=lease())
    stored = storage.close(study, Trial(0, config).finish(State.DONE, value=np.float64(0.25), cost=np.float32(2.0)))
    assert stored.trial.config == {"a": 0.5, "b": 3, "c": True, "d": "x", "e": [1, 2]}
    assert [type(value) for value in stored.trial.config.values()] == [float, int, bool, str, list]
    assert (stored.trial.value, stored.trial.cost) == (0.25, 2.0)


IMPOSSIBLE = [math.nan, math.inf, -math.inf, {1, 2}, b"bytes", object(), 10**5000, "\ud83d\ude00", np.array([1.0])]


def test_what_json_cannot_hold_is_refused(storage, study):
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    for bad in (*IMPOSSIBLE, deep):
        for call in (
            lambda bad=bad: storage.write(study, Trial(0, {"x": bad}), lease=lease()),
            lambda bad=bad: storage.enqueue(study, {"x": [bad]}, {}),
            lambda bad=bad: storage.revise(study, {"x": bad}),
            lambda bad=bad: storage.begin("other", {"x": bad}),
        ):
            with pytest.raises(StorageError, match="cannot be stored"):
                call()
    assert storage.find("study").clock == 0
    assert [record.name for record in storage.studies()] == ["study"]


def test_names_that_a_database_cannot_hold_are_refused(storage):
    for name in ("", "\0", "a\0b", "\ud800", "x" * 501, "x" * 1_000_000, 3, None):
        with pytest.raises(StorageError, match="name"):
            storage.begin(name, {})
        assert storage.find(name) is None
    assert storage.studies() == []


def test_other_names_are_fine(storage):
    names = ["x", "é😀", "x" * 500, "😀" * 500, "a'b\"c`d;--%s%(x)s?:y", "  ", "NULL", "\n\t\x7f"]
    for name in names:
        assert storage.begin(name, {})[0].name == name
        assert storage.find(name).name == name
    assert [record.name for record in storage.studies()] == names


def test_workers_and_tokens_that_a_database_cannot_hold_are_refused(storage, study):
    with pytest.raises(StorageError, match="worker"):
        storage.write(study, running(0), lease=lease(worker="a\0b"))
    assert storage.find("study").trials == 0


def test_a_record_that_was_changed_is_damaged():
    text = encode_trial(done(3, 0.125))
    row = (text, checksum(text, 1, None, 2), 3, 1, None, 2)
    assert read_trial(row, "here").trial == done(3, 0.125)
    others = [text.replace("0.125", "0.126"), text[:-1], "[]", "", "null", b"bytes", None, 3, text + "," + text, "[" * 100_000]
    for other in others:
        with pytest.raises(StorageError, match="trial 3 in here is damaged"):
            read_trial((other, *row[1:]), "here")
        if isinstance(other, str) and other != others[0]:  # even with the right checksum
            with pytest.raises(StorageError, match="damaged"):
                read_trial((other, checksum(other, 1, None, 2), *row[2:]), "here")
    for place, value in ((1, 0), (1, "x"), (2, 4), (3, 2), (3, "x"), (4, 7), (5, None)):
        with pytest.raises(StorageError, match="damaged"):
            read_trial((*row[:place], value, *row[place + 1 :]), "here")


def test_memory_is_not_shared_by_accident():
    assert MemoryStorage().find("study") is None
