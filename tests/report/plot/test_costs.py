"""Plots of costs, and of the Pareto front of expected improvement and cost."""

import shoestring as st
from tests.search.cost_problem import SPACE, study_with_costs


def test_plots_of_front_and_costs(tmp_path):
    study = study_with_costs(10, method=st.EIpu())
    st.plot.pareto(study, path=tmp_path / "front.png")
    ax = st.plot.costs(study, path=tmp_path / "costs.png")
    assert (tmp_path / "front.png").stat().st_size > 5000
    assert "USD" in ax.get_xlabel()
    assert "no cost" in st.plot.costs(st.Study(SPACE), ax=st.plot.new_axes()).get_title(loc="left")
