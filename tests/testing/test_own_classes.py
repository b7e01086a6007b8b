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


def slow(check):
    @pytest.mark.slow
    def later(self):
        check(self)

    return later


# One check of a stored study compares its trials with those of another study of the same seed, and replays them.
PART_OF_ANOTHER = ("test_the_same_seed_gives_the_same_trials", "test_replay_computes_the_same_suggestions")
WHOLE_STUDIES = (
    "test_a_study_runs_with_failed_and_pending_trials_and_never_repeats_a_config",
    "test_a_study_runs_with_failed_and_pending_trials",
    "test_the_same_seed_gives_the_same_trials_and_replay_agrees",
    "test_a_stored_study_goes_on_as_if_it_had_not_been_closed",
    "test_a_cost_aware_study_runs_within_a_budget_in_cost_and_replay_agrees",
)
LIKE_ANOTHER = (  # their studies differ by a formula alone
    st.PI, st.LCB, st.EIAlpha, st.EICool, st.CEI, st.Gittins, st.LinearCost, st.LogGPCost, st.ResidualGPCost, st.FITC,
)  # fmt: skip


def suite(contract, part):
    """A test class for one part."""
    names = PART_OF_ANOTHER + (WHOLE_STUDIES if isinstance(part, LIKE_ANOTHER) else ())
    later = {name: slow(getattr(contract, name)) for name in names if hasattr(contract, name)}
    return type(f"Test{type(part).__name__}", (contract,), {"make": lambda self: part, **later})


SUITES = [suite(AcquisitionContract, part) for part in ACQUISITIONS]
SUITES += [pytest.mark.slow(suite(AcquisitionContract, part)) for part in LOOK_AHEAD]
SUITES += [suite(SurrogateContract, part) for part in SURROGATES]
SUITES += [suite(RuleContract, part) for part in RULES]
SUITES += [suite(CostModelContract, part) for part in COST_MODELS]
globals().update({each.__name__: each for each in SUITES})
