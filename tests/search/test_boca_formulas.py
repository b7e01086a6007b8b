"""BOCA's formulas: against plain loops from the hyperparameters alone, and on fidelities made by hand."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.optimize.candidates import is_visited
from shoestring.data.dataset import to_dataset
from shoestring.data.trial import State
from shoestring.search.boca import (
    FACTOR_KEY,
    FACTOR_WINDOW_TRIALS,
    MAX_FACTOR,
    MIN_FACTOR,
    MIN_TRIALS_TO_ADJUST,
    FidelityCandidates,
    confidence,
    fidelities_at,
    next_factor,
)
from shoestring.space.encoding import Encoding
from tests.problems import belief_of
from tests.search.boca_problem import SMALL, learning, price, study_and_belief

PROFILES = {
    "se": lambda q: math.exp(-q / 2),
    "matern52": lambda q: (1 + math.sqrt(5 * q) + 5 * q / 3) * math.exp(-math.sqrt(5 * q)),
}


class ByHand:
    """The model and BOCA's quantities by their definitions, one pair of points at a time, from the hyperparameters alone."""

    def __init__(self, belief, kernel):
        *lengths, variance, noise = np.exp(belief.fit.theta[:5])
        self.lengths, self.variance, self.profile = lengths, variance, PROFILES[kernel]
        self.data = belief.fit.posterior.Z
        K = np.array([[self.covariance(a, b) for b in self.data] for a in self.data])
        self.inverse = np.linalg.inv(K + noise * np.eye(len(K)))

    def covariance(self, a, b):
        return self.variance * self.profile(sum(((p - q) / length) ** 2 for p, q, length in zip(a, b, self.lengths, strict=True)))

    def deviation(self, a):
        k = np.array([self.covariance(a, b) for b in self.data])
        return math.sqrt(max(self.variance - k @ self.inverse @ k, 1e-12 * self.variance))

    def beta(self, t):
        return 0.5 * 2 * math.log(2 * (1 / self.lengths[0] + 1 / self.lengths[1]) * t + 1)

    def epochs(self, x, y, t, factor):
        """The choice among all 27 fidelities."""
        point = lambda epochs: (x, (y + 1) / 2, (epochs - 1) / 26)  # noqa: E731
        cost = lambda epochs: price({"x": x, "epochs": epochs}) / price({"x": x, "epochs": 27})  # noqa: E731
        gap = {z: math.sqrt(max(1 - (self.covariance(point(z), point(27)) / self.variance) ** 2, 0)) for z in range(1, 28)}
        for z in range(1, 28):  # from the cheapest
            gamma = factor * math.sqrt(self.variance) * gap[z] * cost(z) ** (1 / (1 + 2 + 2))
            informs = self.deviation(point(z)) > gamma and gap[z] > max(gap.values()) / math.sqrt(self.beta(t))
            if informs and cost(z) <= 0.9:
                return z
        return 27


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_fidelity_is_that_of_plain_loops_over_all_of_them(kernel):
    found = set()
    for count in (6, 15, 40):
        study, belief = study_and_belief(count, model=st.GP(kernel=kernel))
        hand = ByHand(belief, kernel)
        assert confidence(belief, 30) == pytest.approx(hand.beta(30))
        visited = to_dataset(study.log).visited
        for u in SMALL.snap(SMALL.at_target(np.random.default_rng(1).random((8, 3)))):
            config = SMALL.decode(u)
            candidates = FidelityCandidates.at(u, belief, np.random.default_rng(0))
            for factor in (0.1, 1.0, 5.0, 20.0):
                row, why = candidates.choose(hand.beta(30), factor, is_visited(candidates.U, visited), math.inf)
                chosen = SMALL.decode(candidates.U[row])
                assert chosen == config | {"epochs": hand.epochs(config["x"], config["y"], 30, factor)}
                assert ("the cheapest fidelity that still informs" in why) == (chosen["epochs"] < 27)
                found.add(chosen["epochs"])
    assert {1, 27} < found  # and others between


def test_a_suggestion_is_the_lowest_bound_at_the_target_and_then_the_fidelity():
    for count in (12, 25):
        study, belief = study_and_belief(count)
        trial = study.ask()
        hand = ByHand(belief, "matern52")
        beta = hand.beta(count + 1)

        def bound(U, posterior=belief.objective, beta=beta):
            mean, variance = posterior.mean_and_variance(Encoding(SMALL).features(SMALL.at_target(U)))
            return mean - math.sqrt(beta) * np.sqrt(variance)

        u = SMALL.encode(trial.config)
        assert bound(u[None, :])[0] <= bound(np.random.default_rng(0).random((5000, 3))).min() + 1e-6
        assert trial.config["epochs"] == hand.epochs(trial.config["x"], trial.config["y"], count + 1, 1.0)
        assert trial.suggestion["by"] == "BOCA"
        assert f"under a model of {count} trials; epochs = {trial.config['epochs']}: " in trial.suggestion["why"]
        assert trial.suggestion["cost"] == pytest.approx(price(trial.config))
        assert trial.suggestion["model"][FACTOR_KEY] == 1.0


def test_lengths_of_choices_count_once_and_constants_not_at_all():
    space = st.Space(
        c=st.Choice("a", "b", "c"), x=st.Float(0, 1), one=st.Choice("only"), two=st.Choice(0, 1), s=st.Fidelity(0, 1)
    )
    study = st.Study(space)
    for u in space.snap(np.random.default_rng(0).random((12, 5))):
        study.add(space.decode(u), float(u[1]))
    belief, _, _ = belief_of(study)
    c, x, _, two, _ = np.exp(-belief.fit.theta[:5])
    assert confidence(belief, 7) == pytest.approx(0.5 * 3 * math.log(2 * (c + x + two) * 7 + 1))


def test_with_several_hyperparameter_samples_correlations_and_variances_are_averaged():
    _, belief = study_and_belief(15, model=st.GP(inference="mcmc", sets=3))
    u = SMALL.at_target(np.array([[0.4, 0.6, 0.5]]))[0]
    candidates = FidelityCandidates.at(u, belief, np.random.default_rng(0))
    moments, phis, variances, diameters = [], [], [], []
    for each in belief.hyperparameter_samples:
        lengths, variance = np.exp(each.fit.theta[:3]), math.exp(each.fit.theta[3])
        variances.append(variance)
        diameters.append((1 / lengths[:2]).sum())
        phis.append([PROFILES["matern52"](((27 - z) / 26 / lengths[2]) ** 2) for z in (1, 9, 20)])
        moments.append(each.objective.mean_and_variance(Encoding(SMALL).features(candidates.U[[0, 8, 19]])))
    means, spreads = np.array(moments)[:, 0], np.array(moments)[:, 1]
    gap = np.sqrt(1 - np.mean(phis, axis=0) ** 2)
    np.testing.assert_allclose(candidates.gap[[0, 8, 19]], gap)
    np.testing.assert_allclose(candidates.deviation[[0, 8, 19]], np.sqrt(spreads.mean(axis=0) + means.var(axis=0)))
    share = np.array([price({"x": 0.4, "epochs": z}) for z in (1, 9, 20)]) / price({"x": 0.4, "epochs": 27})
    np.testing.assert_allclose(candidates.threshold[[0, 8, 19]], math.sqrt(np.mean(variances)) * gap * share ** (1 / 5))
    assert confidence(belief, 20) == pytest.approx(math.log(2 * np.mean(diameters) * 20 + 1))


def candidates_of(deviation, gap, threshold, cost):
    """Candidates made by hand; the last is the target."""
    log_cost = np.log(np.array(cost, dtype=float))
    U = np.arange(len(cost), dtype=float)[:, None]
    return FidelityCandidates(U, np.array(deviation), np.array(gap), np.array(threshold), log_cost, log_cost - log_cost[-1])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 0),
        ({"threshold": [0.6, 0.1, 0.1, 0.0]}, 1),  # the cheapest does not inform
        ({"factor": 20.0}, 3),
        ({"gap": [0.2, 0.9, 0.1, 0.0]}, 1),  # 0.2 < 0.9 / 2
        ({"beta": 0.5, "gap": [0.8, 0.9, 0.1, 0.0]}, 1),  # sqrt(beta) < 1: only the highest gap is left
        ({"visited": [True, False, False, False]}, 1),
        ({"visited": [True, True, True, False]}, 3),
        ({"cost": [9.1, 9.5, 9.9, 10.0]}, 3),  # saves less than a tenth
        ({"cost": [9.0, 9.5, 9.9, 10.0]}, 0),
        ({"cost": [1.0, 1.0, 2.0, 10.0]}, 1),  # equal costs: the smaller gap
        ({"cost": [11.0, 12.0, 13.0, 10.0]}, 3),
        ({"limit": 6.0, "factor": 20.0}, 2),  # the target does not fit
        ({"limit": 1.5, "factor": 20.0}, 0),
        ({"limit": 0.5}, 0),  # nothing fits: the budget filter reports it
    ],
    ids=str,
)
def test_which_fidelities_are_candidates(changed, expected):
    given = {"deviation": [0.5] * 4, "gap": [0.9, 0.8, 0.7, 0.0], "threshold": [0.1, 0.1, 0.1, 0.0], "cost": [1, 2, 5, 10]}
    rest = {"beta": 4.0, "factor": 1.0, "visited": [False] * 4, "limit": math.inf} | changed
    candidates = candidates_of(**{name: rest.pop(name, value) for name, value in given.items()})
    limit = math.log(rest["limit"])
    row, why = candidates.choose(rest["beta"], rest["factor"], np.array(rest["visited"]), limit)
    assert row == expected
    assert ("fits" in why) == (limit < math.inf and candidates.log_cost[row] <= limit)


def history_of(*at_target, factor=1.0, state=State.DONE):
    """Trials of BOCA, at the target or not, each with the factor given."""
    suggestion = {"by": "BOCA", "model": {FACTOR_KEY: factor}}
    trials = [
        st.Trial(j, {"x": 0.5, "y": 0.0, "epochs": 27 if high else 3}, state, suggestion=suggestion)
        for j, high in enumerate(at_target)
    ]
    return st.History(tuple(trials), SMALL)


@pytest.mark.parametrize(
    ("recent", "factor", "expected"),
    [
        ([], 5.0, 1.0),  # nothing is known
        ([False] * (MIN_TRIALS_TO_ADJUST - 1), 3.0, 3.0),
        ([False] * MIN_TRIALS_TO_ADJUST, 3.0, 3.3),
        ([True] * MIN_TRIALS_TO_ADJUST, 3.3, 3.0),
        ([True, False] * 10, 3.0, 3.0),
        ([True] * 5 + [False] * 15, 3.0, 3.0),
        ([True] * 4 + [False] * 16, 3.0, 3.3),
        ([True] * 16 + [False] * 4, 3.3, 3.0),
        ([False] * 30 + [True] * 16 + [False] * 4, 3.3, 3.0),  # only the last ones count
        ([False] * FACTOR_WINDOW_TRIALS, MAX_FACTOR, MAX_FACTOR),
        ([True] * FACTOR_WINDOW_TRIALS, MIN_FACTOR, MIN_FACTOR),
    ],
)
def test_the_factor_follows_where_recent_choices_were_made(recent, factor, expected):
    assert next_factor(history_of(*recent, factor=factor)) == pytest.approx(expected)


def test_the_factor_ignores_other_methods_and_abandoned_trials():
    mine = history_of(*[False] * 9, factor=2.0).trials
    others = tuple(
        st.Trial(9 + j, {"x": 0.1, "y": 0.0, "epochs": 27}, State.DONE, suggestion={"by": "EI", "model": {"theta": []}})
        for j in range(20)
    )
    gone = history_of(*[True] * 9, factor=7.0, state=State.ABANDONED).trials
    assert next_factor(st.History((*mine, *others, *gone), SMALL)) == pytest.approx(2.2)


def test_a_grid_of_all_values_where_they_are_few_and_fine_where_not():
    u, rng = np.array([0.5, 0.5, 0.0]), np.random.default_rng(0)
    epochs = [SMALL.decode(row)["epochs"] for row in fidelities_at(u, SMALL, rng)]
    assert epochs == [*range(1, 28), 27]
    share = st.Space(x=st.Float(0, 1), s=st.Fidelity(0, 1, target=0.7))
    values = fidelities_at(np.array([0.2, 0.0]), share, rng)
    assert set(values[:, 0]) == {0.2}
    assert (values[0, 1], values[-2, 1], values[-1, 1]) == (0.0, 1.0, 0.7)
    assert np.diff(values[:-1, 1]).max() < 0.002
    four = st.Space({"x": st.Float(0, 1)} | {name: st.Fidelity(1, 4) for name in "abcd"})
    for space in (st.Space({**SMALL, "rows": st.Fidelity(10, 10_000, log=True)}), four):
        U = fidelities_at(np.full(len(space), 0.5), space, rng)
        np.testing.assert_array_equal(U, space.snap(U))
        lowest = {name: space[name].low for name in space.fidelities}
        found = [{name: value for name, value in space.decode(row).items() if name in lowest} for row in U]
        assert lowest in found[:-1]
        assert found[-1] == space.target
        assert len({tuple(each.values()) for each in found}) > (240 if space is four else 500) - 20


def test_while_no_costs_are_known_they_are_shares_of_the_target():
    study = st.Study(st.Space({**SMALL, "rows": st.Fidelity(0, 1, target=0.5)}), st.BOCA(), initial=4)
    for u in study.space.snap(np.random.default_rng(0).random((10, 4))):
        config = study.space.decode(u)
        study.add(config, learning(config).value)
    belief, _, _ = belief_of(study)
    assert belief.cost is None
    candidates = FidelityCandidates.at(study.space.at_target(np.full((1, 4), 0.5))[0], belief, np.random.default_rng(0))
    shares = [(0.01 + c["epochs"] / 27) * (0.01 + c["rows"] / 0.5) / 1.01**2 for c in map(study.space.decode, candidates.U)]
    np.testing.assert_allclose(np.exp(candidates.log_share), shares)
    trial = study.ask()
    assert FACTOR_KEY in trial.suggestion["model"]
    assert "cost" not in trial.suggestion
