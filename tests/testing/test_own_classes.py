"""The library's own classes pass the contract suites that it ships."""

import pytest

import shoestring as st
from shoestring.testing import AcquisitionContract, CostModelContract, RuleContract, SurrogateContract

ACQUISITIONS = [st.EI(), st.PI(), st.LCB(), st.EIpu(), st.EIAlpha(0.5), st.EICool(), st.CEI(), st.Gittins()]
LOOK_AHEAD = [st.KG(), st.MES(), st.ES(20, 512), st.PES(), st.CFKG()]
SURROGATES = [st.GP(), st.VFE(6), st.FITC(6)]
RULES = [
    st.Patience(9), st.RegretBound(0.1), st.SureBound(0.1), st.RegretBelow(0.1), st.EIBelow(0.1), st.PIBelow(0.1),
    st.WorthIt(0.1), st.AutoStop(),
]  # fmt: skip
COST_MODELS = [st.AutoCost(), st.LinearCost(), st.LogGPCost(), st.ResidualGPCost()]


def suite(contract, part):
    """A test class for one part."""
    return type(f"Test{type(part).__name__}", (contract,), {"make": lambda self: part})


SUITES = [suite(AcquisitionContract, part) for part in ACQUISITIONS]
SUITES += [pytest.mark.slow(suite(AcquisitionContract, part)) for part in LOOK_AHEAD]
SUITES += [suite(SurrogateContract, part) for part in SURROGATES]
SUITES += [suite(RuleContract, part) for part in RULES]
SUITES += [suite(CostModelContract, part) for part in COST_MODELS]
globals().update({each.__name__: each for each in SUITES})
