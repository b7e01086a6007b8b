"""Evidence about learning curves: ranks early and at the end, and predictions of ends against complete runs alone."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.search.auto import prepared, read_search_method
from shoestring.search.halving_start import is_start
from shoestring.surrogate.curves_evidence import (
    CLEAR_AGREEMENT,
    left_out_density,
    log_density,
    rank_agreement,
    ranks_agree,
    value_until,
)
from shoestring.surrogate.curves_study import CurveFit
from shoestring.surrogate.gp import GP

EPOCHS = 27
SPACE = st.Space(x=st.Float(0, 1), y=st.Float(0, 1), epochs=st.Fidelity(1, EPOCHS))


def run(early, late):
    """A curve with one early value, before the first time that is compared, and its value at the end."""
    return {1 / EPOCHS: early, 1.0: late}


def test_ranks_are_compared_pair_by_pair():
    assert rank_agreement([]) == rank_agreement([run(1, 1)]) == (1.0, 0)  # nothing speaks against it
    assert rank_agreement([run(1, 1), run(2, 2), run(3, 3)]) == (1.0, 3)
    assert rank_agreement([run(1, 3), run(2, 2), run(3, 1)]) == (0.0, 3)
    assert rank_agreement([run(1, 1), run(2, 3), run(3, 2)]) == (pytest.approx(2 / 3), 3)
    assert rank_agreement([run(1, 2), run(1, 3)]) == (1.0, 0)  # a tie decides nothing


def test_at_most_times_the_order_has_to_be_that_of_the_end():
    crossing = [{1 / 27: 1, 1 / 9: 3, 1 / 3: 3, 1.0: 3}, {1 / 27: 2, 1 / 9: 2, 1 / 3: 2, 1.0: 2}]
    assert rank_agreement(crossing) == (1.0, 1)
    late = [{1 / 27: 1, 1 / 9: 1, 1 / 3: 3, 1.0: 3}, {1 / 27: 2, 1 / 9: 2, 1 / 3: 2, 1.0: 2}]
    assert rank_agreement(late) == (0.0, 1)


def test_a_failed_run_is_the_worst_at_the_end():
    assert rank_agreement([run(1, math.inf), run(2, 5)]) == (0.0, 1)
    assert rank_agreement([run(3, math.inf), run(2, 5)]) == (1.0, 1)
    assert rank_agreement([run(1, math.inf), run(2, math.inf)]) == (1.0, 0)  # two of them tell nothing
    assert ranks_agree([run(1, math.inf), run(2, 5)])  # it may have failed for another reason
    assert not ranks_agree([run(1, math.inf), run(1, math.inf), run(1, math.inf), run(2, 5)])
    assert not ranks_agree([run(1, 3), run(2, 2)])


def test_runs_without_early_values_decide_nothing():
    assert math.isnan(value_until({0.5: 1.0}, 1 / 3))
    assert rank_agreement([{0.5: 1.0, 1.0: 2.0}, {0.5: 2.0, 1.0: 1.0}]) == (1.0, 0)


def test_the_density_of_left_out_values_is_that_of_conditioning_on_the_others():
    rng = np.random.default_rng(0)
    Z, groups = rng.random((9, 2)), np.arange(2)
    y = np.sin(5 * Z[:, 0]) + Z[:, 1] + 0.05 * rng.normal(size=9)
    fitted = GP().fit(Z, y, groups).posterior
    K = fitted.kernel.covariance(fitted.kernel.scale(Z)) + fitted.noise * np.eye(9)
    mean = y - K @ fitted.alpha  # what the model takes to be known of every value: its constant mean
    expected = 0.0
    for i in range(4):
        rest = np.delete(np.arange(9), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        off = y[i] - mean[i] - weights @ (y - mean)[rest]
        expected += log_density(off, K[i, i] - weights @ K[rest, i])
    assert left_out_density(Z, y, groups, 4) == pytest.approx(expected, rel=1e-6)


# -- in a study --------------------------------------------------------------------------------------------------------


def end(config):
    return (config["x"] - 0.6) ** 2 + 0.5 * (config["y"] - 0.4) ** 2 + 0.1


def misleading(config, epoch):
    """Until the middle, what looks best is worst."""
    return 0.5 + (2 * epoch / EPOCHS - 1) * (end(config) - 0.5)


def regular(config, epoch):
    return end(config) + 0.5 * math.exp(-epoch / 4)


def train(config, trial, curve):
    value = math.nan
    for epoch in range(1, config["epochs"] + 1):
        value = curve(config, epoch)
        trial.report(value, epochs=epoch, cost=float(epoch))
        if trial.should_stop():
            break
    return st.Outcome(value, cost=float(epoch))


def studied(curve, full_runs=25):
    study = st.Study(SPACE, seed=2, stop=None, budget=st.Budget(cost=full_runs * EPOCHS))
    study.minimize(lambda config, trial: train(config, trial, curve), study.budget, progress=False)
    return study


@pytest.fixture(scope="module")
def misled():
    return studied(misleading)


def test_where_early_values_mislead_no_run_ends_early_and_complete_runs_alone_count(misled):
    context = misled.suggester.context()
    curves = context.fits.curves
    assert rank_agreement(list(curves.data.ended.values()))[0] < CLEAR_AGREEMENT
    assert not curves.trusted
    assert context.fits.learnt.at_target.all()
    assert len(context.fits.learnt.y) == int(curves.data.at_target.sum())
    later = [trial for trial in misled.history if "complete runs alone" in trial.suggestion.get("decision", {}).get("why", "")]
    assert len(later) > 3
    assert all(trial.config["epochs"] == EPOCHS for trial in later)
    assert "complete runs alone" in misled.explain().why
    assert end(misled.recommend().config) < 0.13


def test_it_is_the_same_after_an_interruption(misled, tmp_path):
    trials = len(misled.history)

    def part(count):
        def halt(study, trial):
            if len(study.history) >= count:
                study.halt("enough")

        budget = misled.budget
        study = st.Study(SPACE, seed=2, stop=None, storage=tmp_path / "a.db", name="part", budget=budget)
        study.minimize(lambda config, trial: train(config, trial, misleading), budget, callbacks=[halt], progress=False)
        return study

    part(trials // 2)
    again = part(trials)
    assert [trial.config for trial in again.history] == [trial.config for trial in misled.history]


def test_regular_curves_are_trusted():
    study = studied(regular, 15)
    context = study.suggester.context()
    assert context.fits.curves.trusted
    assert context.fits.learnt is context.data
    assert any(trial.config["epochs"] < EPOCHS for trial in study.history if not is_start(trial))


def test_a_method_that_is_made_for_curves_is_not_asked(misled, monkeypatch):
    monkeypatch.setattr(misled.suggester, "method", read_search_method(st.TraceKG()))
    context = misled.suggester.context(misled.history)
    assert context.fits.curves.trusted
    assert context.fits.learnt is context.data


def test_without_a_complete_result_everything_counts(misled):
    """An interrupted run that had reported at the target is a curve to the end, but no result."""
    context = misled.suggester.context()
    data = context.data.select(np.flatnonzero(~context.data.at_target))
    assert data.finished
    fits = context.with_data(data).fits
    assert not fits.curves.trusted
    assert fits.learnt is data


def test_what_was_stopped_for_early_values_may_be_tried_again(monkeypatch):
    study = studied(regular, 20)
    stopped = np.array(list(study.history.table.pruned.values()))
    assert len(stopped)
    monkeypatch.setattr(CurveFit, "trusted", False)  # as if complete runs had shown that early values mislead
    context = st.Study.from_json(study.to_json()).suggester.context()
    assert context.visited.contains(stopped).all()
    assert not prepared(context).visited.contains(stopped).any()
