"""The trace-aware knowledge gradient: exact against dense covariances and Monte Carlo, and what it chooses."""

import dataclasses

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition import kg_trace
from shoestring.acquisition.kg_trace import TraceCandidates, log_trace_kg, log_worth, own_values, trace_moves
from shoestring.acquisition.kg_trace_search import (
    TraceSearch,
    fidelity_ladder,
    joined_queries,
    pending_rows,
    whole_grid,
    with_pending_runs,
)
from shoestring.surrogate.curves import Curves
from shoestring.surrogate.curves_posterior import CurvePosterior
from tests.surrogate.test_curves import GRID, Dense, small_problem

STOPS = np.array([0.3, 0.6, 1.0])


def moves_problem():
    """Two new configurations, and three runs: on the shared grid, with two points, and one on a grid of its own."""
    curves, layout, theta, kappa = small_problem()
    posterior = CurvePosterior.given(curves, layout, theta, kappa)
    rng = np.random.default_rng(3)
    new = posterior.new(rng.random((4, 3)))
    fixed = joined_queries(posterior.started(np.array([0, 1, 3, 5])), dataclasses.replace(new, rows=new.rows - 100))
    rows = np.array([-1, -2, 1, 4, 3])
    X = np.vstack([rng.random((2, 3)), curves.Z[[1, 4, 3]]])
    return posterior, fixed, TraceCandidates(X=X, rows=rows, stops=STOPS, grid=GRID)


def by_hand(posterior, fixed, candidates, place, stop):
    """Means, and the covariance of the posterior means after the trace, from the covariances of all its points."""
    row = int(candidates.rows[place])
    begun = posterior.curves.times[row][-1] if row >= 0 else 0.0
    times = np.array([t for t in GRID if begun + 1e-9 < t <= stop + 1e-9])
    if not len(times):
        return None
    if row >= 0:
        trace = posterior.started(np.full(len(times), row), times)
    else:
        trace = posterior.new(np.tile(candidates.X[place], (len(times), 1)), times)
        trace = dataclasses.replace(trace, rows=np.full(len(times), row))
    own = own_values(posterior, candidates)
    itself = type(own)(*(getattr(own, each.name)[[place]] for each in dataclasses.fields(own)))
    values = joined_queries(fixed, itself)
    kappa = posterior.kappa[row] if row >= 0 else 1.0
    observed = posterior.covariance(trace, trace) + kappa * posterior.shape.noise * np.eye(len(times))
    cross = posterior.covariance(values, trace)
    return posterior.mean_and_variance(values)[0], cross @ np.linalg.solve(observed, cross.T)


def test_a_trace_moves_the_means_as_all_its_points_do():
    posterior, fixed, candidates = moves_problem()
    found = trace_moves(posterior, fixed, candidates)
    for place in range(5):
        for k, stop in enumerate(STOPS):
            expected = by_hand(posterior, fixed, candidates, place, stop)
            if expected is None:
                assert np.isnan(found.moves[place, k]).all()
                continue
            B = found.moves[place, k]
            np.testing.assert_allclose(found.means[place], expected[0], atol=1e-10)
            np.testing.assert_allclose(B @ B.T, expected[1], atol=1e-10)


def test_its_value_is_that_of_draws_of_whole_traces():
    posterior, fixed, candidates = moves_problem()
    values = np.exp(log_trace_kg(trace_moves(posterior, fixed, candidates)))
    rng, checked = np.random.default_rng(0), 0
    for place in range(5):
        for k, stop in enumerate(STOPS):
            expected = by_hand(posterior, fixed, candidates, place, stop)
            if expected is None:
                assert values[place, k] == 0.0
                continue
            mean, covariance = expected
            spread, vectors = np.linalg.eigh(covariance)
            w = rng.standard_normal((40_000, len(mean)))
            lowest = (mean + np.vstack([w, -w]) @ (vectors * np.sqrt(np.maximum(spread, 0.0))).T).min(axis=1)
            error = lowest.std() / np.sqrt(len(lowest))
            assert values[place, k] == pytest.approx(mean.min() - lowest.mean(), abs=5 * error + 1e-6)
            checked += 1
    assert checked >= 10


def test_a_longer_trace_is_worth_no_less():
    moves = trace_moves(*moves_problem())
    values = log_trace_kg(moves)
    assert (values[:, 1:] >= values[:, :-1] - 1e-6).all()


def test_a_cost_is_divided_by_and_one_that_is_not_allowed_excludes_a_candidate():
    log_kg = log_trace_kg(trace_moves(*moves_problem()))
    ahead = np.isfinite(log_kg)
    log_cost = np.log([1.0, 2.0, 4.0]) + np.zeros((5, 1))
    log_cost[1, 2] = np.nan
    seen = ahead & np.isfinite(log_cost)
    assert 0 < ahead.sum() - seen.sum() < ahead.sum() < ahead.size
    for others in (None, (0.1, 2.0)):
        worth = log_worth(log_kg, log_cost, others)
        assert np.isneginf(worth[~seen]).all()
        assert np.isfinite(worth[seen]).all()
    np.testing.assert_allclose(np.exp(log_worth(log_kg, log_cost)[seen]), np.exp(log_kg[seen]) / np.exp(log_cost[seen]))


def test_a_member_of_a_batch_that_takes_no_longer_than_the_others_costs_nothing_more():
    log_kg, cost = np.log(np.full((1, 4), 0.3) * [1, 2, 3, 4]), np.array([[1.0, 5.0, 10.0, 20.0]])
    expected = (0.2 + np.exp(log_kg)) / [10, 10, 10, 20]
    np.testing.assert_allclose(np.exp(log_worth(log_kg, np.log(cost), (0.2, 10.0))), expected)


def test_the_candidates_that_are_refined_are_the_best_ones_per_cost(monkeypatch):
    monkeypatch.setattr(kg_trace, "log_drop_over_three", lambda a, B: np.full(len(a), 100.0))
    log_cost = np.zeros((5, 3))
    log_cost[:, 1:] = 50.0
    found = log_trace_kg(trace_moves(*moves_problem()), lambda log_kg: log_worth(log_kg, log_cost), refined=3)
    refined = found == 100.0
    assert refined.sum() == 3
    np.testing.assert_array_equal(refined[:, 0], np.isfinite(found[:, 0]))


def test_the_ladder_of_stops_ends_at_the_target_and_keeps_to_valid_values():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(3, 150, step=3))
    stops, units = fidelity_ladder(space, "epochs")
    assert stops[-1] == 1.0
    assert len(stops) == len(units) == 7
    epochs = stops * 150
    np.testing.assert_allclose(epochs, 3 * np.rint(epochs / 3))


def test_the_grid_of_reports_goes_on_to_the_target():
    np.testing.assert_allclose(whole_grid(np.array([0.1, 0.2, 0.3])), np.arange(1, 11) / 10)
    np.testing.assert_allclose(whole_grid(GRID), GRID)


def loss(config, epochs):
    return 1 + (config["x"] - 0.3) ** 2 + (0.5 + config["y"]) / epochs**0.7


def training(config, trial):
    before = trial.resumed_from.fidelity["epochs"] if trial.resumed_from else 0
    for epochs in range(int(before) + 1, config["epochs"] + 1):
        trial.report(loss(config, epochs), epochs=epochs, cost=float(epochs - before))
    return st.Outcome(loss(config, config["epochs"]), cost=float(config["epochs"] - before))


@pytest.fixture(scope="module")
def searched():
    space = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), epochs=st.Fidelity(1, 30, resumable=True))
    study = st.Study(space, method=st.TraceKG(), seed=0)
    for i in range(8):
        study.enqueue({"x": (0.37 + 0.618 * i) % 1, "y": (0.2 + 0.755 * i) % 1, "epochs": 30 if i % 2 else 8})
    study.minimize(training, 13)
    return study


def test_it_chooses_runs_and_stops_by_the_model_of_curves(searched):
    assert searched.context.fits.curves.chosen
    chosen = searched.history[8:]
    assert all(trial.suggestion["by"] == "TraceKG" for trial in chosen)
    assert all("log_gain" in trial.suggestion["model"] for trial in chosen)
    assert loss(searched.recommend().config, 30) < 1.12  # 1.05 at best, 1.63 at worst


def test_a_batch_and_pending_trials_are_different_points(searched):
    batch = searched.ask_many(2)
    assert batch[0].config != batch[1].config
    assert all("log_gain" in trial.suggestion["model"] for trial in batch)  # by which the next member is valued
    for trial in batch:
        searched.tell(trial, loss(trial.config, trial.config["epochs"]), cost=1.0)


def choice(study, method):
    """The epochs that a method chooses, and the KG there."""
    context = study.context
    selection = method.select(context.belief(costs=True), context.optimizer(fidelities=True))
    return context.space.decode(selection.u)["epochs"], selection.warm_start["log_gain"]


def test_beside_a_long_run_a_batch_has_another_long_one_and_beside_a_valuable_one_none_that_takes_longer(searched):
    alone = choice(searched, st.TraceKG())
    beside_long = choice(searched, st.TraceKG().as_batch_member(1e-6, 30.5))
    assert beside_long[0] > 2 * alone[0]
    assert beside_long[1] > alone[1] + 0.1
    assert alone[0] < choice(searched, st.TraceKG().as_batch_member(1e3, 8.5))[0] <= 8
    assert choice(searched, st.TraceKG(batch="sum").as_batch_member(1e-6, 30.5)) == alone


def with_trials(study, *, pending=(), failed=()):
    """The belief of a study if these configs were running, and these had failed."""
    belief, space = study.context.belief(costs=True), study.space
    points = {
        name: np.array([space.encode(each) for each in configs]).reshape(len(configs), len(space))
        for name, configs in (("pending", pending), ("failed", failed))
    }
    return dataclasses.replace(belief, data=dataclasses.replace(belief.data, **points))


def test_a_run_that_is_going_on_now_extends_its_own_curve(searched):
    curves, begun, ended = searched.context.fits.curves, searched.history[0].config, searched.history[1].config
    belief = with_trials(searched, pending=[begun | {"epochs": 20}, {"x": 0.9, "y": 0.1, "epochs": 5}, ended])
    grid, before, known = whole_grid(curves.data.grid), curves.posterior, curves.posterior.curves
    found = with_pending_runs(curves, belief, grid)
    times = [grid[:20], *known.times[1:], grid[:5], grid]  # the second is a new config, and the third cannot go on
    X = curves.data.features(belief.data.pending[1:])
    expected = Curves.of(np.vstack([known.Z, X]), times, [np.zeros(len(t)) for t in times])  # variances do not depend on values
    dense = Dense(expected, before.layout, before.theta, np.append(before.kappa, [1.0, 1.0]))
    rows = np.arange(len(times))
    _, covariance = dense.posterior(expected.Z, np.ones(len(times)), rows)
    mean, variance = found.mean_and_variance(found.started(rows))
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-5)
    mean_before, variance_before = before.mean_and_variance(before.started(rows[:-2]))
    np.testing.assert_allclose(mean[:-2], mean_before, atol=1e-6)  # what comes out as expected changes no mean
    assert variance[0] < 0.9 * variance_before[0]


def test_a_pending_trial_goes_on_with_the_furthest_run_of_its_config_that_may(searched):
    data, space, config = searched.context.fits.curves.data, searched.space, searched.history[0].config
    two_runs, started = data.U.copy(), [space.encode(config | {"epochs": epochs}) for epochs in (2, 8)]
    assert (max(data.points[0]), max(data.points[8])) == pytest.approx((8 / 30, 2 / 30))
    two_runs[8] = two_runs[0]
    data = dataclasses.replace(data, U=two_runs)

    def rows(*epochs, started=started):
        belief = with_trials(searched, pending=[config | {"epochs": each} for each in epochs])
        belief = dataclasses.replace(belief, data=dataclasses.replace(belief.data, started=np.array(started)))
        return pending_rows(belief, data)

    assert rows(20, 20, 20) == [0, 8, -1]
    assert rows(5, 20) == [8, 0]
    assert rows(2, 9) == [-1, 0]
    assert rows(20, started=started[:1]) == [8]  # both have passed 2 epochs, and one has ended there
    assert rows(20, started=[space.encode({"x": 0.5, "y": 0.5, "epochs": 2})]) == [-1]


def test_what_has_failed_or_was_asked_already_is_no_candidate(searched):
    optimizer, config = searched.context.optimizer(fidelities=True), searched.history[0].config
    search = TraceSearch.of(with_trials(searched), optimizer)
    assert 0 in search.going_on
    assert 0 not in TraceSearch.of(with_trials(searched, failed=[config | {"epochs": 20}]), optimizer).going_on
    row, target = np.array([0]), searched.space.encode(config | {"epochs": 30})
    assert np.isfinite(search.values(search.curves.data.U[row], row)[0][0, -1])
    visited = dataclasses.replace(optimizer, visited=np.vstack([optimizer.visited.points, target]))
    worth = TraceSearch.of(with_trials(searched), visited).values(search.curves.data.U[row], row)[0]
    assert np.isneginf(worth[0, -1])
    assert np.isfinite(worth[0, -2])


def test_a_space_whose_runs_are_all_complete_is_exhausted_and_nothing_is_asked_twice():
    space = st.Space(x=st.Int(0, 5), epochs=st.Fidelity(1, 3, resumable=True))
    study = st.Study(space, method=st.TraceKG(), seed=0, initial=5)
    study.minimize(lambda config, trial: training({**config, "x": config["x"] / 5, "y": 0.5}, trial), 60)
    assert study.context.fits.curves is not None
    asked = [(trial.config["x"], trial.config["epochs"]) for trial in study.history]
    assert len(set(asked)) == len(asked)
    assert {x for x, epochs in asked if epochs == 3} == set(range(6))


ROWS = st.Space(x=st.Float(0, 1), rows=st.Fidelity(1, 8), epochs=st.Fidelity(1, 9, resumable=True))


def rows_loss(config, epochs):
    return loss({"x": config["x"], "y": 0.5 * config["x"]}, epochs) + 0.2 * (1 - config["rows"] / 8) * config["x"]


def on_rows(config, trial):
    """A run costs its epochs times its rows."""
    before = int(trial.resumed_from.fidelity["epochs"]) if trial.resumed_from else 0
    for epochs in range(before + 1, config["epochs"] + 1):
        trial.report(rows_loss(config, epochs), epochs=epochs, cost=float(config["rows"] * (epochs - before)))
    return st.Outcome(rows_loss(config, config["epochs"]), cost=float(config["rows"] * (config["epochs"] - before)))


def rows_study(**options):
    study = st.Study(ROWS, method=st.TraceKG(), seed=0, **options)
    for i in range(8):
        study.enqueue({"x": (0.37 + 0.618 * i) % 1, "rows": 8 if i % 2 else 2, "epochs": 9 if i % 3 else 3})
    return study


def test_of_two_fidelities_one_is_traced_and_both_are_chosen():
    study = rows_study(cost_model=st.KnownCost(lambda config: config["rows"] * config["epochs"]))
    study.minimize(on_rows, st.Budget(cost=340.0))
    assert study.context.fits.curves.data.traced == "epochs"
    chosen = study.history[8:]
    assert len(chosen) >= 3
    for trial in chosen:
        assert trial.suggestion["by"] == "TraceKG"
        assert trial.config["rows"] in range(1, 9)
        assert trial.config["epochs"] in range(1, 10)
    points = [tuple(trial.config.values()) for trial in study.history]
    assert len(set(points)) == len(points)
    assert study.history.spent <= 340.0
    assert all("log_gain" in trial.suggestion["model"] for trial in chosen)


def test_a_run_on_few_rows_is_no_answer_but_tells_of_one():
    study = rows_study()
    study.minimize(on_rows, 8)
    context = study.context
    search = TraceSearch.of(context.belief(costs=True), context.optimizer(fidelities=True))
    U = search.new_ones(np.array([ROWS.encode({"x": 0.2, "rows": rows, "epochs": 9}) for rows in (2, 8)]))
    worth, log_kg = search.values(U, np.array([-1, -1]))
    assert np.isfinite(worth).all()
    assert (log_kg > -50.0).all()
    assert log_kg[0, -1] < log_kg[1, -1]


def test_while_no_cost_is_known_every_fidelity_counts():
    study = rows_study()
    study.minimize(on_rows, 8)
    context = study.context
    belief = dataclasses.replace(context.belief(costs=True), cost=None)
    search = TraceSearch.of(belief, context.optimizer(fidelities=True))
    begun = study.history[0].config  # two rows, three epochs
    asked = [{"x": 0.2, "rows": 8, "epochs": 9}, {"x": 0.2, "rows": 2, "epochs": 9}, begun | {"epochs": 9}]
    cost = np.exp(search.log_costs(np.array([ROWS.encode(each) for each in asked])))
    np.testing.assert_allclose(cost, [1.0, 2 / 8, 2 / 8 * 6 / 9], rtol=0.1)


def test_without_learning_curves_it_is_cfkg():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    asked = []
    for method in (st.CFKG(), st.TraceKG()):
        study = st.Study(space, method=method, seed=1, initial=4)
        for x, epochs in ((0.1, 9), (0.5, 3), (0.9, 1), (0.3, 5)):
            study.add({"x": x, "epochs": epochs}, (x - 0.4) ** 2 + 1 / epochs, cost=epochs)
        asked.append(study.ask().config)
    assert asked[0] == asked[1]
