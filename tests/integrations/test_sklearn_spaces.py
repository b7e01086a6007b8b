"""Lists and distributions as scikit-learn's users write them, read as parameters of ours."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import shoestring as st
from shoestring.integrations.distributions import TAIL_PROBABILITY, read_parameter, read_space
from tests.names import without_address

SCALERS = [StandardScaler(), MinMaxScaler(), None]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (stats.uniform(2, 3), st.Float(2.0, 5.0)),
        (stats.uniform(), st.Float(0.0, 1.0)),
        (stats.uniform, st.Float(0.0, 1.0)),
        (stats.uniform(-1e-8, 2e-8), st.Float(-1e-8, 1e-8)),
        (stats.loguniform(1e-5, 10), st.Float(1e-5, 10.0, log=True)),
        (stats.reciprocal(1e-5, 10), st.Float(1e-5, 10.0, log=True)),
        (stats.loguniform(0.9, 1.1), st.Float(0.9, 1.1, log=True)),
        (stats.loguniform(1e-3, 1, scale=10), st.Float(1e-2, 10.0, log=True)),
        (stats.randint(3, 9), st.Int(3, 8)),
        (stats.randint(0, 10**6), st.Int(0, 10**6 - 1)),
        (stats.randint(3, 4), st.Choice(3)),
        (stats.poisson(2), st.Int(0, 8)),
        (st.Float(0, 1, log=False), st.Float(0, 1)),
        (st.Choice("a", "b"), st.Choice("a", "b")),
        ([1, 10, 100], st.Choice(1, 10, 100)),
        (np.array([1, 10, 100]), st.Choice(1, 10, 100)),
        (range(3), st.Choice(0, 1, 2)),
        (("auto", None, True, 1, 1.0, 1), st.Choice("auto", None, True, 1, 1.0)),
        (["only"], st.Choice("only")),
    ],
)
def test_what_is_a_parameter_of_ours(given, read):
    parameter, reader = read_parameter("p", given)
    if isinstance(read, st.Choice):
        assert parameter == read
        assert [type(option) for option in parameter.options] == [type(option) for option in read.options]
    else:
        assert type(parameter) is type(read)
        assert (parameter.low, parameter.high) == pytest.approx((read.low, read.high), rel=1e-12)
        assert parameter.log == read.log
    assert reader is None


@pytest.mark.parametrize(
    "given",
    [stats.norm(5, 2), stats.expon(scale=3), stats.beta(2, 5), stats.loguniform(1, 9, loc=4)],
    ids=["norm", "expon", "beta", "shifted loguniform"],
)
def test_other_continuous_distributions_are_searched_by_their_quantiles(given):
    parameter, reader = read_parameter("p", given)
    assert (parameter.low, parameter.high) == (TAIL_PROBABILITY, 1 - TAIL_PROBABILITY)
    assert reader(0.5) == pytest.approx(given.median())
    assert all(math.isfinite(reader(end)) for end in (parameter.low, parameter.high))


def test_wide_discrete_distributions_are_searched_by_their_quantiles_too():
    given = stats.geom(0.001)
    parameter, reader = read_parameter("p", given)
    assert isinstance(parameter, st.Float)
    assert reader(0.5) == given.median()
    assert type(reader(0.5)) is int


def test_a_distribution_of_your_own_needs_ppf_alone():
    class Triangle:
        def ppf(self, q):
            return np.sqrt(q)

    parameter, reader = read_parameter("p", Triangle())
    assert isinstance(parameter, st.Float)
    assert reader(0.25) == 0.5


def test_objects_come_back_as_they_were():
    translation = read_space({"scaler": SCALERS, "sizes": [(8,), (8, 8)], "missing": [math.nan, -1]})
    params = translation.params({"scaler": 1, "sizes": 0, "missing": 0})
    assert params["scaler"] is SCALERS[1]
    assert params["sizes"] == (8,)
    assert math.isnan(params["missing"])
    assert translation.params({"scaler": 2, "sizes": 1, "missing": 1}) == {"scaler": None, "sizes": (8, 8), "missing": -1}


def test_a_space_of_ours_is_taken_as_it_is():
    space = st.Space(kernel=st.Choice("linear", "rbf"), log_cost=st.Float(1e-3, 1, log=True, when={"kernel": "rbf"}))
    translation = read_space(space)
    assert translation.space is space
    assert translation.params({"kernel": "linear"}) == {"kernel": "linear"}


def test_a_list_of_dicts_is_a_space_in_parts():
    parts = [
        {"kernel": ["linear"], "C": stats.loguniform(0.1, 10)},
        {"kernel": ["rbf", "poly"], "C": stats.loguniform(1, 100), "degree": st.Int(2, 4, when={"kernel": "poly"})},
    ]
    translation = read_space(parts)
    seen = [translation.params(trial.config) for trial in draw(translation.space, 40)]
    assert {tuple(sorted(params)) for params in seen} == {("C", "kernel"), ("C", "degree", "kernel")}
    assert all(params["kernel"] == "poly" for params in seen if "degree" in params)
    assert all(params["C"] <= 10 for params in seen if params["kernel"] == "linear")
    assert all(params["C"] >= 1 for params in seen if params["kernel"] != "linear")


def draw(space, count):
    study = st.Study(space, method=st.Random(), seed=0)
    return [study.ask() for _ in range(count)]


class OnlySamples:
    def rvs(self, random_state=None):
        return 1.0

    def __repr__(self):
        return "OnlySamples()"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"C": 3}, r"C: 3 is neither a list nor a distribution; give a list of values \(a single one as \[3\]\)"),
        ({"C": "rbf"}, r"C: 'rbf' is neither .* \['rbf'\]"),
        ({"C": {"low": 1}}, "C: .* is neither"),
        ({"C": []}, "C: the list is empty"),
        ({"C": OnlySamples()}, r"C: OnlySamples\(\) can be sampled but has no ppf.*st.Float"),
        ({"C": stats.loguniform}, "C: the quantiles .* cannot be computed"),
        ({"C": stats.uniform(0, -1)}, "C: the quantiles .* are not finite"),
        ({}, "the space is empty"),
        ([], "the space is empty"),
        ("C", "expected an st.Space, a dict"),
        (None, "expected an st.Space, a dict"),
        ([st.Float(0, 1)], "expected an st.Space, a dict"),
    ],
    ids=without_address,
)
def test_what_cannot_be_read_is_named_with_its_remedy(written, message):
    with pytest.raises(st.SpaceError, match=message):
        read_space(written)
