"""One step of a study stays easy to follow: few files, few changes of file."""

import logging

import pytest

from benchmarks.walk import BEFORE, SPACES, count, events_of_one_step


@pytest.mark.parametrize("space", SPACES)
def test_a_step_passes_through_few_files(space):
    level = logging.getLogger("shoestring").level
    try:
        steps = [count(events_of_one_step(SPACES[space])) for _ in range(2)]  # once a second, a step stores the time as well
    finally:
        logging.getLogger("shoestring").setLevel(level)
    found = min(steps, key=lambda step: step["files"])
    assert found["files"] <= 35
    assert found["changes"] <= BEFORE[space]["changes"] / 2
    assert found["changes_by_call"] <= BEFORE[space]["changes_by_call"] / 2


def test_calls_and_returns_are_counted():
    steps = [(True, "r/a", ""), (True, "r/b", "r/a"), (False, "r/b", "r/a"), (True, "r/b", "r/a"), (False, "r/b", "r/a")]
    root = count.__globals__["ROOT"]
    found = count([(called, f"{root}/{name}", f"{root}/{caller}" if caller else "") for called, name, caller in steps])
    assert (found["files"], found["changes_by_call"], found["changes"], found["calls"]) == (2, 2, 5, 3)
