"""The options of the look-ahead plot, and the errors for wrong ones."""

import math

import pytest

import shoestring as st
from shoestring.report.plot.lookahead_data import surrogate_slice
from tests.problems import mixed_space, mixed_value, told_study


def look(study, **options):
    return surrogate_slice(study.context, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"along": "kind"}, st.MethodError, "choose one of rate, depth, extra, deep"),
        ({"along": "nonsense"}, st.MethodError, "choose one of rate"),
        ({"at": {"nonsense": 1}}, st.ConfigError, "unknown parameter 'nonsense'"),
        ({"at": {"rate": 5.0}}, st.ConfigError, "outside its bounds"),
        ({"at": 0.5}, st.ConfigError, "a dict of parameter values"),
        ({"at": {"kind": "a", "extra": 0.1}}, st.ConfigError, "extra is not active here"),
        ({"method": st.KG}, st.MethodError, r"write KG\(\)"),
        ({"method": "auto"}, st.MethodError, r"give one such as st.EI\(\)"),
        ({"method": [st.EI(), st.Random()]}, st.MethodError, "no acquisition"),
        ({"method": []}, st.MethodError, "leave it out"),
        ({"method": st.EICool()}, st.MethodError, "needs to know the budget"),
        ({"outcome": math.nan}, st.OutcomeError, "finite"),
        ({"outcome": "low"}, st.OutcomeError, "finite number"),
    ],
    ids=repr,
)
def test_errors_say_how_to_fix_the_mistake(options, error, message):
    study = told_study(mixed_space(), mixed_value, 10)
    with pytest.raises(error, match=message):
        look(study, **({"method": st.EI()} | options))


def test_an_axis_that_is_not_active_there_is_refused():
    space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1), extra=st.Float(0, 1, when={"kind": "b"}))
    study = st.Study(space)
    for k in range(6):
        study.add({"kind": "a", "x": k / 5}, (k / 5 - 0.4) ** 2)
    with pytest.raises(st.MethodError, match=r"extra is not active at the recommended config \(kind = a.*choose one of x"):
        look(study, along="extra")
    with pytest.raises(st.ConfigError, match="extra is missing"):
        look(study, method=st.EI(), at={"kind": "b"})


def test_a_space_without_numbers_has_no_axis():
    study = st.Study(st.Space(kind=st.Choice("a", "b"), rows=st.Fidelity(1, 9)))
    with pytest.raises(st.MethodError, match="a Float or an Int"):
        look(study)
    with pytest.raises(st.MethodError, match="choose one of x"):
        look(st.Study(st.Space(x=st.Float(0, 1), rows=st.Fidelity(1, 9))), along="rows")
