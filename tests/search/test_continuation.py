"""Going on with an old run and beginning a new one are candidates of the same search."""

import numpy as np
import pytest

import shoestring as st
from shoestring.search.continuation import continuation_points, points_ahead

SPACE = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=True))
LINEAR = st.KnownCost(lambda config: config["epochs"])


def begun(method, xs=(0.1, 0.3, 0.5, 0.7, 0.9), epochs=10, **options):
    """A study in which some configs were trained for a while."""
    study = st.Study(SPACE, method=method, initial=3, **options)
    for x in xs:
        study.enqueue({"x": x, "epochs": epochs})
        study.tell(study.ask(), (x - 0.3) ** 2 + 1 / epochs, cost=epochs)
    return study


def test_the_points_ahead_lead_from_what_was_reached_to_the_target():
    points = points_ahead(np.array([SPACE.encode({"x": 0.5, "epochs": epochs}) for epochs in (10, 49, 50)]), SPACE)
    configs = [SPACE.decode(u) for u in points]
    assert {config["x"] for config in configs} == {0.5}
    assert [config["epochs"] for config in configs] == [15, 20, 30, 40, 50, 50]


def test_the_most_promising_runs_come_first_and_running_ones_are_left_out():
    study = begun(st.CFKG())
    context = study.context
    points = continuation_points(context.data, SPACE, context.fits.belief)
    assert SPACE.decode(points[0])["x"] == pytest.approx(0.3, abs=0.21)
    study.enqueue({"x": 0.3, "epochs": 20})
    study.ask()
    context = study.context
    points = continuation_points(context.data, SPACE, context.fits.belief)
    assert 0.3 not in {SPACE.decode(u)["x"] for u in points}


@pytest.mark.parametrize("method", [st.CFKG(), st.EIpu()], ids=["CFKG", "EIpu"])
def test_a_method_goes_on_with_a_run_where_that_pays(method):
    study = begun(method, cost_model=LINEAR)
    seen = []
    while len(seen) < 4 and not any(goes_on for goes_on, _, _ in seen):
        trial = study.ask()
        done = 0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"]
        seen.append((trial.resumed_from is not None, trial.suggestion["cost"], trial.config["epochs"] - done))
        study.tell(trial, (trial.config["x"] - 0.3) ** 2 + 1 / trial.config["epochs"], cost=trial.config["epochs"] - done)
    assert any(goes_on for goes_on, _, _ in seen)
    assert [expected for _, expected, _ in seen] == pytest.approx([paid for *_, paid in seen])


def test_while_no_cost_is_known_the_rest_is_assumed_to_be_what_is_left_of_the_fidelity():
    from shoestring.acquisition.kg_fidelity import assumed_cost_weighted_surface
    from shoestring.cost.incremental import StartedRuns

    start, other = ({"x": x, "epochs": 10} for x in (0.5, 0.6))
    points = np.array([SPACE.encode(each | {"epochs": 50}) for each in (start, other)])
    started = StartedRuns(SPACE.encode(start)[None, :], SPACE)
    flat = lambda U, gradient: (np.zeros(len(U)), np.zeros(U.shape) if gradient else None)  # noqa: E731
    surface = assumed_cost_weighted_surface(flat, SPACE, started)
    rest, whole = np.exp(-surface(points, False)[0])
    assert rest / whole == pytest.approx(40 / 50, rel=0.01)
    slope, step = surface(points, True)[1], 1e-4
    move = np.array([0.0, step])
    numeric = (surface(points - move, False)[0] - surface(points - 2 * move, False)[0]) / step
    assert slope[:, 1] == pytest.approx(numeric, rel=0.05)


def test_the_budget_holds_what_is_left_of_a_pending_continuation():
    study = begun(st.CFKG(), cost_model=LINEAR, budget=st.Budget(cost=200))
    study.enqueue({"x": 0.3, "epochs": 50})
    study.ask()
    assert study.context.reserved == pytest.approx(40.0)


def test_a_batch_continues_each_run_once():
    study = begun(st.CFKG(), xs=(0.3, 0.7), cost_model=LINEAR)
    batch = study.ask_many(2)
    continued = [trial.resumed_from.number for trial in batch if trial.resumed_from is not None]
    assert len(set(continued)) == len(continued)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_promotions_pay_for_the_rest_alone(asynchronous):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 27, resumable=True))

    def train(config, trial):
        done = 0 if trial.resumed_from is None else trial.resumed_from.fidelity["epochs"]
        return st.Outcome(config["x"] + 1 / config["epochs"], cost=config["epochs"] - done)

    result = st.minimize(train, space, 50, method=st.Hyperband(asynchronous=asynchronous))
    furthest = {}
    for trial in result.history:
        furthest[trial.config["x"]] = trial.config["epochs"]
        rung = trial.suggestion["plan"]["rung"]
        assert (trial.resumed_from is not None) == (rung > 0)
    assert result.spent == sum(furthest.values())


def test_a_hyperband_bracket_counts_what_is_left_of_promoted_trials():
    from shoestring.search.hyperband import Bracket, Rung

    bracket = Bracket((Rung(9, 1), Rung(3, 3), Rung(1, 9)))
    assert bracket.budget == 27
    assert bracket.used([9, 3, 1], goes_on=True) == 9 + 3 * 2 + 6
