"""Parameter importance: closed forms, and studies of every kind."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.report.importance import total_variances
from tests.problems import mixed_space, mixed_value, plane, told_study


def ishigami(U, a=7.0, b=0.1):
    """The Ishigami function on [-pi, pi]^3, from points of the unit cube."""
    x = (2.0 * np.asarray(U) - 1.0) * np.pi
    return np.sin(x[:, 0]) + a * np.sin(x[:, 1]) ** 2 + b * x[:, 2] ** 4 * np.sin(x[:, 0])


def ishigami_totals(a=7.0, b=0.1):
    """V T_i of the Ishigami function (Ishigami and Homma 1990)."""
    alone_0, alone_1 = 0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8
    together = b**2 * np.pi**8 * (1 / 18 - 1 / 50)  # of x0 and x2
    return np.array([alone_0 + together, alone_1, together])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_estimator_gives_the_total_indices_of_the_ishigami_function(seed):
    assert total_variances(ishigami, 3, [0, 1, 2], seed) == pytest.approx(ishigami_totals(), rel=0.02)


def test_the_estimator_gives_the_total_indices_of_the_g_function():
    a = np.array([0.0, 0.5, 3.0, 9.0, 99.0])
    alone = 1 / (3 * (1 + a) ** 2)
    totals = [part * np.prod(1 + np.delete(alone, i)) for i, part in enumerate(alone)]

    def g(U):
        return np.prod((np.abs(4 * U - 2) + a) / (1 + a), axis=1)

    assert total_variances(g, 5, list(range(5)), 0) == pytest.approx(totals, rel=0.03, abs=1e-4)


def test_the_study_finds_the_shares_of_an_additive_function():
    study = told_study(plane(3), lambda config: config["x0"] + 2 * config["x1"], 15)
    shares = study.importance()
    assert list(shares) == ["x1", "x0", "x2"]
    assert list(shares.values()) == pytest.approx([0.8, 0.2, 0.0], abs=0.01)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_the_study_finds_the_shares_of_the_ishigami_function():
    study = told_study(plane(3), lambda config: float(ishigami([list(config.values())])[0]), 150)
    shares, totals = study.importance(), ishigami_totals()
    wanted = dict(zip(("x0", "x1", "x2"), totals / totals.sum(), strict=True))
    assert {name: shares[name] for name in wanted} == pytest.approx(wanted, abs=0.06)


def test_a_conditional_parameter_counts_as_often_as_it_is_active():
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "b"}))
    study = told_study(space, lambda config: config.get("x", 0.0), 24)  # f = k x: the totals are E x^2 / 4 and 1 / 24
    assert study.importance() == pytest.approx({"kind": 2 / 3, "x": 1 / 3}, abs=0.02)


def test_the_log_scale_and_the_options_are_uniform():
    space = st.Space(rate=st.Float(1e-4, 1, log=True), kind=st.Choice("a", "b", "c"))
    study = told_study(space, lambda config: math.log10(config["rate"]) + 3 * (config["kind"] == "c"), 25)
    wanted = {"kind": 9 * 2 / 9, "rate": 16 / 12}  # 9 p (1 - p), and 4^2 / 12
    assert study.importance() == pytest.approx({name: part / sum(wanted.values()) for name, part in wanted.items()}, abs=0.02)


def test_fidelities_are_fixed_at_their_target_and_have_no_share():
    study = st.Study(st.Space(epochs=st.Fidelity(1, 9), x=st.Float(0, 1), y=st.Float(0, 1)))
    for k in range(18):
        x, y, epochs = (k * 0.618) % 1, (k * 0.414) % 1, 9 if k % 2 else 3
        study.add({"x": x, "y": y, "epochs": epochs}, x + 20 * (9 - epochs) * y)  # y counts below the target alone
    shares = study.importance()
    assert list(shares) == ["x", "y"]
    assert shares["x"] > 0.9


def test_maximizing_failed_and_running_trials_change_nothing():
    space, told = mixed_space(), {}
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study = told_study(space, lambda config, sign=sign: sign * mixed_value(config), 20, direction=direction)
        told[direction] = study.importance()
    assert told["maximize"] == pytest.approx(told["minimize"])
    study.add({"rate": 0.01, "depth": 3, "kind": "a"}, error="out of memory")
    study.ask()
    assert study.importance() == pytest.approx(told["minimize"], abs=1e-3)


def test_it_is_the_same_each_time():
    first, second = (told_study(plane(2), lambda config: math.sin(5 * config["x0"]) * config["x1"], 12) for _ in range(2))
    assert first.importance() == first.importance() == second.importance()


def test_a_constant_objective_has_equal_shares():
    assert told_study(plane(4), lambda config: 0.1, 9).importance() == {f"x{i}": 0.25 for i in range(4)}


def test_huge_values_do_no_harm():
    study = st.Study(plane(2))
    for k, value in enumerate((-1e300, 1e300, 3.0, 4.0, 5.0)):
        study.add({"x0": k / 4, "x1": (k * 0.618) % 1}, value)
    shares = study.importance()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.0


@pytest.mark.parametrize(("parameters", "trials", "needed"), [(1, 3, 4), (6, 6, 7), (2, 0, 4)])
def test_with_too_few_trials_the_error_says_how_many_are_needed(parameters, trials, needed):
    study = told_study(plane(parameters), lambda config: config["x0"], trials)
    study.add({f"x{i}": 0.5 for i in range(parameters)}, error="out of memory")
    with pytest.raises(st.StudyError, match=f"needs {needed} finished trials; .*evaluate {needed - trials} more"):
        study.importance()


def test_a_stored_study_reads_its_trials_first(tmp_path):
    made = told_study(plane(2), lambda config: config["x1"], 6, storage=tmp_path / "tune.db")
    assert st.Study.load(tmp_path / "tune.db").importance() == made.importance()


def test_a_model_with_hyperparameter_samples_and_a_third_method_have_importance_too():
    study = told_study(plane(2), lambda config: config["x1"], 8, model=st.GP(inference="mcmc", sets=3), method=st.TPE())
    assert study.importance()["x1"] > 0.95
