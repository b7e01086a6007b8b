"""The plots of convergence and history: their content, and that drawing needs no display and changes no backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoestring as st
from tests.report.plot.pictures import line

pytest.importorskip("matplotlib")

SPACE = st.Space(x=st.Float(0, 1))


def study_of(*values: float | str, direction: Any = "minimize", cost: float = 2.0) -> st.Study:
    """A study with these results; a text is an error."""
    study = st.Study(SPACE, direction=direction)
    for k, value in enumerate(values):
        config = {"x": (k + 0.5) / len(values)}
        study.add(config, **({"error": value} if isinstance(value, str) else {"value": value}), cost=cost)
    return study


def test_draws_best_trials_and_failures_against_cost(tmp_path: Path) -> None:
    study = study_of(5.0, 3.0, "boom", 4.0, 2.0)
    ax = st.plot.convergence(study, path=tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 5_000
    assert line(ax, "trial") == ([2, 4, 8, 10], [5, 3, 4, 2])
    assert line(ax, "best so far") == ([2, 4, 8, 10, 10], [5, 3, 3, 2, 2])
    assert line(ax, "failed")[0] == [6]
    assert ax.get_xlabel() == "spent (s)"
    assert "lower is better" in ax.get_ylabel()
    assert "best 2" in ax.get_title(loc="left")


def test_history_draws_every_trial_by_its_number() -> None:
    study = study_of(5.0, 3.0, "boom", 4.0, 2.0)
    study.ask()
    ax = st.plot.history(study, ax=st.plot.new_axes())
    assert line(ax, "trial") == ([0, 1, 3, 4], [5, 3, 4, 2])
    assert line(ax, "best so far") == ([0, 1, 3, 4, 5], [5, 3, 3, 2, 2])
    assert line(ax, "best") == ([4], [2])
    assert (line(ax, "failed")[0], line(ax, "running")[0]) == ([2], [5])
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("trial", "6 trials, best 2")


def test_history_against_cost_and_for_maximizing() -> None:
    ax = st.plot.history(study_of(1.0, 3.0, 2.0, direction="maximize"), ax=st.plot.new_axes(), against="cost")
    assert line(ax, "best so far") == ([2, 4, 6, 6], [1, 3, 3, 3])
    assert ax.get_xlabel() == "spent (s)"
    with pytest.raises(st.MethodError, match='"trials" or "cost"'):
        st.plot.history(study_of(1.0), against="time")


def test_values_of_lower_fidelities_are_not_compared() -> None:
    study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)))
    for epochs, value in ((3, 0.1), (9, 5.0), (3, 0.2), (9, 4.0)):
        study.add({"x": value / 9, "epochs": epochs}, value)
    ax = st.plot.history(study, ax=st.plot.new_axes())
    assert line(ax, "lower fidelity") == ([0, 2], [0.1, 0.2])
    assert line(ax, "best so far") == ([1, 3, 3], [5, 4, 4])


def test_results_from_elsewhere_cost_nothing() -> None:
    study = study_of(5.0, 3.0)
    study.tell(study.ask(), 2.0, cost=7.0)
    assert line(st.plot.convergence(study, ax=st.plot.new_axes()), "trial") == ([0, 0, 7], [5, 3, 2])


def test_maximize_goes_up() -> None:
    ax = st.plot.convergence(study_of(1.0, 3.0, 2.0, direction="maximize"), ax=st.plot.new_axes())
    assert line(ax, "best so far")[1] == [1, 3, 3, 3]
    assert "higher is better" in ax.get_ylabel()


def test_takes_a_result_and_its_unit() -> None:
    result = st.minimize(
        lambda config: st.Outcome(config["x"] - 5, cost=3.0), SPACE, st.Budget(trials=4, unit="USD"), method=st.Random()
    )
    ax = st.plot.convergence(result, ax=st.plot.new_axes())
    assert ax.get_xlabel() == "spent (USD)"
    assert len(line(ax, "trial")[0]) == 4


@pytest.mark.parametrize(("cost", "unit"), [(10.0, "s"), (100.0, "min"), (5000.0, "h")])
def test_time_is_in_the_unit_people_would_use(cost: float, unit: str) -> None:
    ax = st.plot.convergence(study_of(3.0, 2.0, 1.0, cost=cost), ax=st.plot.new_axes())
    assert ax.get_xlabel() == f"spent ({unit})"
    assert line(ax, "trial")[0][-1] == pytest.approx(3 * cost / {"s": 1, "min": 60, "h": 3600}[unit])


def test_one_huge_value_does_not_flatten_the_others() -> None:
    ax = st.plot.convergence(study_of(3.0, 1e300, 2.0, 2.5, 1.0, 1.5), ax=st.plot.new_axes())
    assert max(line(ax, "trial")[1]) < 20.0


def test_values_over_many_powers_of_ten_get_a_log_scale() -> None:
    assert st.plot.convergence(study_of(100.0, 1.0, 1e-2, 1e-3, 30.0), ax=st.plot.new_axes()).get_yscale() == "log"
    assert st.plot.convergence(study_of(3.0, 2.0, 1.0), ax=st.plot.new_axes()).get_yscale() == "linear"
    assert st.plot.convergence(study_of(100.0, 0.0, -1.0), ax=st.plot.new_axes()).get_yscale() == "linear"


@pytest.mark.parametrize("values", [(), ("boom", "boom"), (1.0,), (1.0, 1.0, 1.0), (-1e300, 1e300)])
def test_odd_histories_are_drawn_too(values: tuple[Any, ...], tmp_path: Path) -> None:
    st.plot.convergence(study_of(*values), path=tmp_path / "odd.svg")
    assert (tmp_path / "odd.svg").is_file()


def test_saving_needs_neither_pyplot_nor_a_display(tmp_path: Path) -> None:
    code = """
import sys
import shoestring as st
study = st.Study(st.Space(x=st.Float(0, 1)))
study.add({"x": 0.5}, 1.0, cost=1.0)
st.plot.convergence(study, path="c.png")
assert "matplotlib.pyplot" not in sys.modules  # so no backend has been chosen either
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=environment, check=True, timeout=60)
    assert (tmp_path / "c.png").is_file()


def test_without_a_path_pyplot_owns_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    ax = st.plot.convergence(study_of(2.0, 1.0))
    assert pyplot.fignum_exists(ax.figure.number)
    pyplot.close(ax.figure)


def test_without_matplotlib_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    for options in ({"path": tmp_path / "c.png"}, {}):
        with pytest.raises(ImportError, match=r'pip install "shoestring\[plots\]"'):
            st.plot.convergence(study_of(1.0), **options)


def test_many_trials_are_drawn_without_an_error(tmp_path: Path) -> None:
    study = study_of(*np.random.default_rng(0).random(2_000).tolist())
    st.plot.convergence(study, path=tmp_path / "many.png")
    assert (tmp_path / "many.png").is_file()
