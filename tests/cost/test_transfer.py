import builtins
import functools

import numpy as np
import pytest

import shoestring as st
from shoestring.cost.linear import LinearCost
from shoestring.cost.transfer import Row, TransferCost
from shoestring.cost.transfer_regressors import REGRESSORS, error_variances
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from tests.cost.laws import (
    boosting_space,
    check_gradients,
    draw,
    every_kind,
    inner_points,
    observed,
    points,
    product_law,
    rmse,
)

SPACE = boosting_space()
ENCODING = Encoding(SPACE)
TEST = points(SPACE, 200, 99)
NONE = observed(np.empty((0, len(SPACE))), [])
TASK = {"rows": 20_000, "columns": 30}


def task_law(meta):
    return 0.9 * np.log(meta["rows"]) + 0.4 * np.log(meta["columns"]) - 8.0


def earlier_rows(tasks=6, each=25, noise=0.1, space=SPACE):
    rows, rng = [], np.random.default_rng(7)
    for task in range(tasks):
        meta = {"rows": int(10 ** rng.uniform(2, 5)), "columns": int(10 ** rng.uniform(0.5, 2.5))}
        U = points(space, each, task)
        gamma = product_law(space, U) + task_law(meta) + 0.1 * rng.normal() + noise * rng.normal(size=each)
        rows += [(space.decode(u), meta, float(np.exp(value))) for u, value in zip(U, gamma, strict=True)]
    return rows


ROWS = earlier_rows()
TRUTH = product_law(SPACE, TEST) + task_law(TASK)


@functools.cache
def transfer_from_rows(regressor="task_linear"):
    """One model for each regressor: its offline fit is cached with it, and an MLP takes a second."""
    return TransferCost.from_rows(ROWS, TASK, regressor=regressor)


def task_costs(n, seed=0):
    costs = draw(SPACE, n, seed)
    return costs.with_gamma(costs.log_cost + task_law(TASK))


def test_from_the_first_trial_on_the_task_aware_model_knows_the_cost():
    posterior = transfer_from_rows().fit(NONE, ENCODING)
    assert posterior.name == "transferred (task_linear, 150 rows)"
    assert rmse(posterior, TEST, TRUTH) < 0.5
    mean, variance = posterior.log_cost(TEST)
    assert (np.abs(mean - TRUTH) < 3 * np.sqrt(variance)).mean() > 0.95
    assert posterior.leave_one_out()[0].shape == (0,)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_with_few_evaluations_it_beats_the_online_model(n):
    errors = []
    for seed in range(6):
        costs = task_costs(n, seed)
        fits = [transfer_from_rows().fit(costs, ENCODING), LinearCost().fit(costs, ENCODING)]
        errors.append([rmse(fit, TEST, TRUTH) for fit in fits])
    transferred, online = np.mean(errors, axis=0)
    assert transferred < 0.6 * online


def test_a_shift_of_the_whole_task_is_learned_from_a_few_evaluations():
    naive = transfer_from_rows("linear")
    before = rmse(naive.fit(NONE, ENCODING), TEST, TRUTH)
    after = naive.fit(task_costs(3), ENCODING)
    assert "shift" in after.name
    assert rmse(after, TEST, TRUTH) < 0.5 * before


def test_a_wrong_transfer_is_overruled():
    wrong = [(config, meta, 1.0 / cost) for config, meta, cost in ROWS]  # expensive is cheap and cheap is expensive
    costs = task_costs(25)
    posterior = TransferCost.from_rows(wrong, TASK).fit(costs, ENCODING)
    online = LinearCost().fit(costs, ENCODING)
    assert "overruled" in posterior.name or "linear in" in posterior.name
    assert rmse(posterior, TEST, TRUTH) < 1.3 * rmse(online, TEST, TRUTH)


def test_pure_noise_is_overruled_by_name():
    rng = np.random.default_rng(0)
    noise = [(config, meta, float(np.exp(3 * rng.normal()))) for config, meta, _ in ROWS]
    assert "overruled" in TransferCost.from_rows(noise, TASK, regressor="tree").fit(task_costs(25), ENCODING).name


@pytest.mark.parametrize("regressor", [
    pytest.param(name, marks=[pytest.mark.slow] if name in ("boosting", "mlp") else []) for name in REGRESSORS
])  # fmt: skip
def test_every_regressor_learns_the_law(regressor):
    posterior = transfer_from_rows(regressor).fit(task_costs(3), ENCODING)
    constant = float(np.sqrt(np.mean((TRUTH - TRUTH.mean()) ** 2)))
    assert rmse(posterior, TEST, TRUTH) < 0.8 * constant
    for array in (*posterior.log_cost_with_gradient(TEST[:20]), *posterior.leave_one_out()):
        assert np.isfinite(array).all()
    assert (posterior.log_cost(TEST)[1] > 0).all()


@pytest.mark.parametrize("n", [0, 2, 12])
def test_gradients_of_the_linear_ones(n):
    space = every_kind()
    model = TransferCost.from_rows(earlier_rows(space=space), TASK)
    costs = draw(space, n) if n else observed(np.empty((0, len(space))), [])
    d_mean = check_gradients(model.fit(costs, Encoding(space)), inner_points(space, 10))
    assert np.abs(d_mean).max() > 0.1


def test_the_gradient_of_a_network_points_the_right_way():
    posterior = transfer_from_rows("mlp").fit(NONE, ENCODING)
    slope = posterior.log_cost_with_gradient(TEST[:40])[2]
    assert (slope[:, 0] > 0).mean() > 0.9  # more rounds cost more


def test_leave_one_out_of_a_shift_is_what_a_refit_without_the_row_predicts():
    model, costs = transfer_from_rows(), task_costs(2)
    mean, variance = model.fit(costs, ENCODING).leave_one_out()
    refit = model.fit(observed(costs.U[1:], costs.log_cost[1:]), ENCODING)
    there, spread = refit.log_cost(costs.U[:1])
    assert mean[0] == pytest.approx(there[0])
    assert variance[0] == pytest.approx(spread[0])


def test_from_studies():
    studies, metas = [], [{"rows": 100}, {"rows": 1000}, {"rows": 10_000}]
    for task, meta in enumerate(metas):
        study = st.Study(SPACE, seed=0)
        for u in points(SPACE, 20, task):
            gamma = float(product_law(SPACE, u[None, :])[0] + np.log(meta["rows"]) - 5)
            study.add(SPACE.decode(u), 1.0, cost=float(np.exp(gamma)))
        study.add(SPACE.decode(points(SPACE, 1, 50)[0]), 1.0)  # without a cost: skipped
        studies.append(study)
    posterior = TransferCost.from_studies(studies, metas, {"rows": 3000}).fit(NONE, ENCODING)
    assert posterior.name == "transferred (task_linear, 60 rows)"
    assert rmse(posterior, TEST, product_law(SPACE, TEST) + np.log(3000) - 5) < 0.3
    assert TransferCost.from_studies(studies).regressor == "linear"


def test_rows_that_do_not_fit_the_space_are_skipped():
    foreign = [({**config, "rounds": 9999}, meta, cost) for config, meta, cost in ROWS[:10]]
    assert "150 rows" in TransferCost.from_rows(foreign + ROWS, TASK).fit(NONE, ENCODING).name
    with pytest.raises(MethodError, match="none of the 10 rows fits"):
        TransferCost.from_rows(foreign, TASK).fit(NONE, ENCODING)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TransferCost.from_rows([], TASK), "no row"),
        (lambda: TransferCost.from_rows(ROWS, TASK, regressor="oracle"), "must be one of linear"),
        (lambda: TransferCost.from_rows(ROWS), "needs meta-features"),
        (lambda: TransferCost.from_rows([({}, {}, -1.0)], TASK), "row 0 must be positive"),
        (lambda: TransferCost.from_rows([({}, {"rows": "many"}, 1.0)], TASK), "'rows' of row 0"),
        (lambda: TransferCost.from_rows([3], TASK), "row 0 must be"),
        (lambda: TransferCost.from_studies([], [TASK]), "as many metas"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(MethodError, match=message):
        make()


def test_without_scikit_learn_the_error_says_how_to_get_it(monkeypatch):
    honest = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return honest(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MethodError, match=r"pip install \"shoestring\[sklearn\]\""):
        TransferCost.from_rows(ROWS, TASK, regressor="knn").fit(NONE, ENCODING)


def uneven_law(U, rng):
    """What a task has of its own: a shift, a slope of depth, and what no linear model can describe."""
    return 0.3 * rng.normal() + 0.3 * rng.normal() * U[:, SPACE.names.index("depth")] + 0.7 * np.cos(7 * U[:, 5])


@functools.cache
def transfer_from_uneven_tasks():
    rows, rng = [], np.random.default_rng(3)
    for task in range(8):
        meta, U = {"rows": float(10 ** rng.uniform(2, 5)), "columns": float(10 ** rng.uniform(0.5, 2.5))}, points(SPACE, 25, task)
        gamma = product_law(SPACE, U) + task_law(meta) + uneven_law(U, rng) + 0.2 * rng.normal(size=25)
        rows += [(SPACE.decode(u), meta, float(np.exp(value))) for u, value in zip(U, gamma, strict=True)]
    return TransferCost.from_rows(rows, TASK)


@pytest.mark.parametrize("n", [3, 5, 8])
def test_evidence_does_not_make_it_worse(n):
    model, errors = transfer_from_uneven_tasks(), []
    for seed in range(16):
        costs = task_costs(n, seed)
        own = uneven_law(np.vstack([costs.U, TEST]), np.random.default_rng(100 + seed))
        costs, truth = costs.with_gamma(costs.log_cost + own[:n]), TRUTH + own[n:]
        errors.append([rmse(model.fit(data, ENCODING), TEST, truth) for data in (costs, NONE)])
    after, before = np.mean(errors, axis=0)
    assert after < 1.05 * before


def test_the_variance_between_tasks_is_found_by_expectation_maximisation():
    rng, wanted = np.random.default_rng(5), np.array([0.5, 1.0, 0.02])
    designs = []
    for _ in range(300):
        X = np.column_stack([np.ones(40), rng.uniform(-0.5, 0.5, (40, 2))])
        designs.append((X, X @ (np.sqrt(wanted) * rng.normal(size=3)) + 0.3 * rng.normal(size=40)))
    between, within = error_variances(designs, np.array([-1, 0, 1]), np.full(3, 0.25))
    np.testing.assert_allclose(between[:2], wanted[:2], rtol=0.2)
    assert between[2] < 0.06
    assert within == pytest.approx(0.09, rel=0.05)


def test_thousands_of_earlier_rows_are_read_in_linear_time():
    rows, looked_up = ROWS * 3, []

    class Counting(dict):
        def __contains__(self, name):
            looked_up.append(name)
            return super().__contains__(name)

    model = TransferCost(tuple(Row(config, Counting(meta), cost, "0") for config, meta, cost in rows), TASK)
    looked_up.clear()
    model.fit(NONE, ENCODING)
    assert len(looked_up) <= 10 * len(rows)
