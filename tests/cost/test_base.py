"""What a cost model has to be: the library's, and those of third parties."""

import numpy as np
import pytest

import shoestring as st
from shoestring.cost.base import CostModel, CostPosterior, check_cost_model, needs_no_data, to_warm_start
from shoestring.cost.linear import LinearCost
from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from tests.cost.laws import boosting_space, draw

LIBRARY = [st.AutoCost(), st.LinearCost(), st.LogGPCost(), st.ResidualGPCost(), st.KnownCost(lambda config: 1.0)]


class Plain:
    """A posterior that derives from nothing."""

    name = "plain"

    def log_cost(self, U):
        return np.zeros(len(U)), np.ones(len(U))

    def log_cost_with_gradient(self, U):
        return *self.log_cost(U), np.zeros(U.shape), np.zeros(U.shape)

    def leave_one_out(self):
        return np.zeros(0), np.ones(0)


class OnlyFit:
    """A cost model that derives from nothing."""

    def fit(self, costs, encoding, warm_start=None):
        return Plain()


class OtherArguments:
    def fit(self, costs):
        return Plain()


@pytest.mark.parametrize("model", LIBRARY, ids=lambda model: type(model).__name__)
def test_the_models_of_the_library_derive_from_the_base_class(model):
    assert isinstance(model, CostModel)
    check_cost_model(model)
    assert needs_no_data(model) == isinstance(model, st.KnownCost)
    assert isinstance(model.fit(draw(boosting_space(), 8), Encoding(boosting_space())), CostPosterior)


def test_a_class_that_only_has_fit_is_accepted_and_has_the_defaults():
    model = OnlyFit()
    check_cost_model(model)
    assert not needs_no_data(model)
    assert to_warm_start(model.fit(None, None), 3) == {"kind": "Plain", "trials": 3, "theta": []}


def test_a_study_runs_with_a_class_that_only_has_fit():
    space = st.Space(x=st.Float(0, 1))
    study = st.Study(space, st.EIpu(), cost_model=OnlyFit(), initial=3, seed=0)
    result = study.minimize(lambda config: st.Outcome((config["x"] - 0.3) ** 2, cost=2.0), 6)
    assert result.history[-1].suggestion["model"]["cost"]["kind"] == "Plain"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (LinearCost, r"write LinearCost\(\)"),
        (3, r"not a cost model.*fit\(self, costs, encoding, warm_start=None\)"),
        (OtherArguments(), r"other arguments; write fit\(self, costs, encoding, warm_start=None\)"),
    ],
)
def test_what_cannot_be_a_cost_model_is_refused_when_the_study_is_made(wrong, message):
    with pytest.raises(MethodError, match=message):
        check_cost_model(wrong)
    with pytest.raises(MethodError, match=message):
        st.Study(st.Space(x=st.Float(0, 1)), cost_model=wrong)
