"""Cost as a study sees it: cost-aware methods, budgets in cost, and what a resumed study knows of both."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.search.auto import why_costs_do_not_matter
from tests.search.cost_problem import SPACE, price, train

METHODS = [
    "auto", st.EIpu(), st.CEI(0.2),
    *(pytest.param(method, marks=pytest.mark.slow) for method in (st.EICool(), st.Gittins(), st.EIAlpha(0.3), st.Gittins(0.05))),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_every_method_runs_within_a_budget_in_cost(method):
    result = st.minimize(train, SPACE, st.Budget(cost=20, unit="USD"), method=method, cost_model=st.LinearCost(), stop=None)
    assert result.stop.kind == "budget"
    assert result.unit == "USD"
    assert 18 < result.spent <= 20 * 1.02
    assert "USD of 20 USD" in str(result)
    assert all("cost" in trial.suggestion for trial in result.history[st.study.INITIAL_TRIALS :])


def test_near_the_end_what_does_not_fit_is_not_started():
    """The last trials cost less than what was left: nothing is overshot by more than the cost model errs."""
    result = st.minimize(train, SPACE, st.Budget(cost=3), cost_model=st.KnownCost(price))
    spent = np.cumsum([trial.cost for trial in result.history])
    after_start = spent[st.study.INITIAL_TRIALS :]
    assert (after_start <= 3 * (1 + 1e-9)).all()
    left = 3 - result.spent
    assert left < 0.02 or "cheapest trial" in result.stop.reason


def test_overshoot_is_stated():
    costs = iter([1.0, 1.0, 1.0, 9.0])
    budget = st.Budget(cost=10, unit="GPU-h")
    result = st.minimize(lambda config: st.Outcome(0.5, cost=next(costs)), SPACE, budget, method=st.Random())
    assert result.spent == 12
    assert "2 GPU-h over" in str(result)


@pytest.mark.parametrize("method", [
    st.Random(), st.Sobol(), st.EI(), pytest.param(st.BORE(), marks=pytest.mark.slow), st.TPE(), "auto",
], ids=repr)  # fmt: skip
def test_no_method_starts_what_is_not_expected_to_fit(method):
    result = st.minimize(lambda config: st.Outcome(0.5, cost=3.0), SPACE, st.Budget(cost=32, unit="USD"), method=method)
    assert result.spent == 30
    assert result.stop.kind == "budget"
    expensive = st.minimize(train, SPACE, st.Budget(cost=30, unit="USD"), method=method, seed=1)
    assert expensive.spent < 45


def test_a_known_cost_is_kept_to_from_the_first_trial():
    space, budget = st.Space(n=st.Float(1, 100)), st.Budget(cost=30)
    known = st.KnownCost(lambda config: config["n"])
    for method in ("auto", st.Random(), st.EI()):
        result = st.minimize(lambda c: st.Outcome(0.5, cost=c["n"]), space, budget, method=method, cost_model=known, seed=3)
        assert result.spent <= 30.5


def test_seconds_have_a_price():
    import time

    def slow(config):
        time.sleep(0.02)
        return 0.5

    budget = st.Budget(cost=0.5, unit="USD", per_hour=18000.0)  # five dollars a second
    result = st.minimize(slow, SPACE, budget, method=st.Random())
    assert result.history[0].cost == pytest.approx(5 * result.history[0].seconds)
    assert 2 <= len(result.history) <= 6
    with pytest.raises(st.BudgetError, match="per_hour"):
        st.Budget(cost=1, per_hour=-1)


def test_seconds_counted_in_another_unit_are_warned_about(caplog):
    with caplog.at_level("WARNING", logger="shoestring"):
        st.minimize(lambda config: 0.5, SPACE, st.Budget(trials=3, cost=5, unit="USD"), method=st.Random())
    assert len(caplog.records) == 1
    assert "per_hour" in caplog.text


def test_a_resumed_study_knows_its_budget():
    study = st.Study(SPACE, st.EICool(), initial=2, budget=st.Budget(cost=50, unit="USD", per_hour=2.0))
    for cost in (1.0, 2.0, 3.0):
        study.tell(study.ask(), cost, cost=cost)
    again = st.Study.from_json(study.to_json(), method=st.EICool())
    assert again.budget == study.budget
    assert again.per_hour == 2.0
    assert again.ask().config == study.ask().config


@pytest.mark.slow
def test_cost_awareness_saves_cost_at_the_same_number_of_trials():
    plain = [st.minimize(train, SPACE, 25, method=st.EI(), seed=seed).spent for seed in range(4)]
    aware = [st.minimize(train, SPACE, 25, method=st.EIpu(), seed=seed, cost_model=st.LinearCost()).spent for seed in range(4)]
    assert np.mean(aware) < 0.8 * np.mean(plain)


def context(cost, n=10, **options):
    study = st.Study(SPACE, **options)
    rng = np.random.default_rng(0)
    for u in SPACE.snap(rng.random((n, len(SPACE)))):
        config = SPACE.decode(u)
        study.add(config, train(config).value, cost=cost(config, rng))
    return study.context


@pytest.mark.parametrize(
    ("cost", "matter"),
    [
        (lambda config, rng: price(config), True),
        (lambda config, rng: 2.0, False),
        (lambda config, rng: 2.0 * math.exp(0.05 * rng.standard_normal()), False),
        (lambda config, rng: 2.0 * math.exp(rng.standard_normal()), False),
    ],
    ids=["predicted", "equal", "alike", "at random"],
)
def test_auto_uses_costs_only_when_they_differ_in_a_way_that_can_be_predicted(cost, matter):
    assert (why_costs_do_not_matter(context(cost, 20)) is None) is matter


def test_auto_ignores_measured_times_too_short_to_matter():
    study = st.Study(SPACE)
    study.minimize(lambda config: train(config).value, 12)
    assert why_costs_do_not_matter(study.context)


def test_cooling_without_a_budget_is_an_error_that_says_what_to_do():
    with pytest.raises(st.MethodError, match="budget"):
        st.Study(SPACE, st.EICool()).ask()  # before anything is paid for
    study = st.Study(SPACE, st.EICool(), initial=1, budget=st.Budget(cost=50))
    study.tell(study.ask(), 0.5, cost=1.0)
    study.ask()


@pytest.mark.parametrize("cost", [-1, math.nan, math.inf, "much"])
def test_a_cost_that_cannot_be_is_refused_and_the_trial_stays_open(cost):
    study = st.Study(SPACE)
    trial = study.ask()
    with pytest.raises(st.OutcomeError):
        study.tell(trial, 0.5, cost=cost)
    assert study.history[0].state is st.State.RUNNING
    study.tell(trial, 0.5, cost=1.0)


@pytest.mark.parametrize("model", ["gp", st.LinearCost, 3, None])
def test_what_is_not_a_cost_model_is_refused(model):
    with pytest.raises(st.MethodError, match="cost_model"):
        st.Study(SPACE, cost_model=model)


def test_trials_without_a_cost_and_failed_ones_do_not_stop_anything():
    study = st.Study(SPACE, st.CEI(0.3), seed=1, initial=5, cost_model=st.LinearCost())
    rng = np.random.default_rng(0)
    for number in range(13):
        trial = study.ask()
        if number % 5 == 4:
            study.tell(trial, error="out of memory", cost=price(trial.config))
        elif number % 5 == 3:
            study.tell(trial, error="timed out", cost=0.2, censored=True)
        else:
            study.tell(trial, train(trial.config).value + 0.01 * rng.standard_normal(), cost=price(trial.config))
    for u in SPACE.snap(rng.random((3, 4))):
        study.add(SPACE.decode(u), 0.7)
    assert study.history[3].censored
    assert study.ask().suggestion["cost"] > 0


def test_a_resumed_cost_aware_study_goes_on_as_if_it_had_not_stopped():
    options = {"method": st.Gittins(), "model": None}
    whole = st.Study(SPACE, st.Gittins(), seed=4, initial=5)
    whole.minimize(train, 10)
    part = st.Study(SPACE, st.Gittins(), seed=4, initial=5)
    part.minimize(train, 7)
    again = st.Study.from_json(part.to_json(), **options)
    again.minimize(train, 10)
    assert [trial.config for trial in again.history] == [trial.config for trial in whole.history]


def test_a_resumed_study_takes_its_cost_model_again():
    part = st.Study(SPACE, st.EIpu(), seed=4, initial=5, cost_model=st.KnownCost(price))
    part.minimize(train, 6)
    again = st.Study.from_json(part.to_json(), st.EIpu(), cost_model=st.KnownCost(price))
    assert again.ask().suggestion["cost"] == part.ask().suggestion["cost"]


def test_a_pending_trial_does_not_reserve_the_whole_budget_after_a_few_costs_that_differ_much():
    # the mean of a log-normal after the costs 2, 2, 2, 1 and 0.0001 is far above all of them
    study = st.Study(st.Space(x=st.Float(0, 1), y=st.Int(2, 12)), st.Random(), seed=0, budget="50 USD", unit="USD")
    running = study.ask()
    for cost in (2.0, 2.0, 2.0, 1.0, 1e-4):
        study.tell(study.ask(), 0.5, cost=cost)
    assert study.ask().number == running.number + 6
