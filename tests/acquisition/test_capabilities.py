"""What each acquisition declares of itself: the search and the stopping rules rely on it."""

import pytest

import shoestring as st
from shoestring.acquisition.base import Acquisition

IMPROVEMENT = {st.EI, st.LogEI, st.PI, st.LCB}
COST_AWARE = {st.EQI, st.EIpu, st.EIAlpha, st.EICool, st.CEI, st.Gittins, st.CostAdjustedEI}
KNOWLEDGE_GRADIENT = {st.KG, st.CFKG, st.DKG, st.CFDKG}
ENTROPY = {st.ES, st.PES, st.MES}
ALL = IMPROVEMENT | COST_AWARE | KNOWLEDGE_GRADIENT | ENTROPY | {st.StochasticKG}

DECLARED = {
    "log_space": ALL - {st.LCB, st.Gittins},
    "uses_cost": COST_AWARE | {st.CFKG, st.CFDKG, st.StochasticKG},
    "needs_budget": {st.EICool},
    "chooses_fidelity": {st.CFKG, st.CFDKG, st.StochasticKG},
    "values_batches": KNOWLEDGE_GRADIENT,
    "averages_samples": {st.CEI, st.Gittins, st.CostAdjustedEI, st.StochasticKG} | KNOWLEDGE_GRADIENT | ENTROPY,
    "seeks_information": {st.StochasticKG} | KNOWLEDGE_GRADIENT | ENTROPY,
}


@pytest.mark.parametrize("capability", DECLARED)
def test_each_acquisition_declares_what_it_can_do(capability):
    assert {kind for kind in ALL if getattr(kind, capability)} == DECLARED[capability]


@pytest.mark.parametrize("kind", sorted(ALL, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_each_acquisition_has_a_surface(kind):
    assert issubclass(kind, Acquisition)
    assert kind().has_surface


def test_the_only_price_is_that_of_the_gittins_index():
    assert st.Gittins(0.2).price == 0.2
    assert {kind for kind in ALL if kind().price is not None} == set()
