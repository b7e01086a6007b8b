"""Spaces of ConfigSpace, both ways: by its JSON format, and with the package itself."""

import json

import pytest

import shoestring as st
from shoestring.integrations.configspace_spaces import MAX_LISTED_VALUES, space_from_configspace, space_to_configspace

ConfigSpace = pytest.importorskip("ConfigSpace", reason="ConfigSpace is not installed")

EVERYTHING = st.Space(
    lr=st.Float(1e-4, 1.0, log=True),
    dropout=st.Float(0.0, 0.5),
    share=st.Float(0.0, 1.0, step=0.25),
    depth=st.Int(1, 9),
    batch=st.Int(16, 512, log=True),
    width=st.Int(4, 16, step=4),
    act=st.Choice("relu", "tanh", None),
    fixed=st.Choice(3),
    slope=st.Float(0.0, 1.0, when={"act": ["relu", "tanh"], "depth": 3}),
    bend=st.Choice("a", "b", when={"act": "tanh"}),
)
KIND = {"type": "categorical", "name": "kind", "choices": ["a", "b", "c"]}
SIZE = {"type": "ordinal", "name": "size", "sequence": ["s", "m", "l"]}
COUNT = {"type": "uniform_int", "name": "count", "lower": 1, "upper": 4}
SHARE = {"type": "uniform_float", "name": "share", "lower": 0.0, "upper": 1.0}
X = {"type": "uniform_float", "name": "x", "lower": 0.0, "upper": 1.0}


def read(*parameters, conditions=(), **rest):
    return space_from_configspace({"hyperparameters": list(parameters), "conditions": list(conditions), "forbiddens": [], **rest})


def condition(kind, parent, value):
    key = "values" if kind == "IN" else "value"
    return {"type": kind, "child": "x", "parent": parent, key: value}


# -- both ways ---------------------------------------------------------------------------------------------------------


def test_a_space_comes_back_from_json_as_it_was():
    text = json.dumps(space_to_configspace(EVERYTHING, name="demo"))
    assert dict(space_from_configspace(text)) == dict(EVERYTHING)


def test_a_space_comes_back_from_the_package_as_it_was_and_its_samples_fit():
    theirs = ConfigSpace.ConfigurationSpace.from_serialized_dict(space_to_configspace(EVERYTHING, name="demo"))
    assert dict(space_from_configspace(theirs)) == dict(EVERYTHING)
    theirs.seed(0)
    for sample in theirs.sample_configuration(30):
        assert set(EVERYTHING.check(dict(sample))) == set(sample)


def test_a_file_of_the_package_is_read(tmp_path):
    theirs = ConfigSpace.ConfigurationSpace(space={"lr": (0.1, 2.0), "n": (1, 9), "kind": ["a", "b"], "fixed": 3})
    theirs.add(ConfigSpace.EqualsCondition(theirs["lr"], theirs["kind"], "a"))
    theirs.to_json(tmp_path / "space.json")
    wanted = {"kind": st.Choice("a", "b"), "n": st.Int(1, 9), "fixed": st.Choice(3), "lr": st.Float(0.1, 2.0, when={"kind": "a"})}
    for given in (tmp_path / "space.json", str(tmp_path / "space.json"), (tmp_path / "space.json").read_text(), theirs):
        assert dict(space_from_configspace(given)) == wanted


def test_a_space_that_was_read_can_be_searched():
    space = read(KIND, X, conditions=[condition("EQ", "kind", "a")])
    result = st.minimize(lambda config: config.get("x", 1.0), space, 4, method=st.Random())
    assert len(result.history) == 4


# -- parameters --------------------------------------------------------------------------------------------------------


def test_an_ordinal_parameter_with_even_numbers_keeps_its_order():
    def ordinal(*values):
        return read({"type": "ordinal", "name": "o", "sequence": list(values)})["o"]

    assert ordinal(2, 4, 6) == st.Int(2, 6, step=2)
    assert ordinal(0.1, 0.2, 0.3) == st.Float(0.1, 0.3, step=0.1)
    assert ordinal(1, 2, 4) == st.Choice(1, 2, 4)
    assert ordinal(6, 4, 2) == st.Choice(6, 4, 2)
    assert ordinal("s", "m", "l") == st.Choice("s", "m", "l")


def test_steps_of_older_files_are_steps():
    assert read({**SHARE, "q": 0.25})["share"] == st.Float(0.0, 1.0, step=0.25)
    assert read({**COUNT, "q": None, "default": 2})["count"] == st.Int(1, 4)


def test_equal_weights_are_none():
    assert read({**KIND, "weights": [1, 1, 1]})["kind"] == read({**KIND, "weights": None})["kind"]


@pytest.mark.parametrize(("kind", "fix"), [("normal_float", "uniform_float"), ("beta_int", "uniform_int")])
def test_a_density_is_an_error_that_names_it(kind, fix):
    density = kind.split("_")[0]
    with pytest.raises(st.SpaceError, match=f"n: a {density} distribution has no counterpart.*write it as {fix}"):
        read({"type": kind, "name": "n", "lower": 0, "upper": 9, "mu": 3, "sigma": 1})


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({**KIND, "weights": [0.2, 0.4, 0.4]}, "kind: weights of categories have no counterpart"),
        ({**KIND, "probabilities": [0.2, 0.4, 0.4]}, "kind: weights of categories have no counterpart"),
        ({**SHARE, "lower": 0.1, "log": True, "q": 0.1}, "share: q=0.1 on a log scale has no counterpart"),
        ({"type": "uniform_int", "name": "n", "lower": 1}, "n: a uniform_int hyperparameter needs 'upper'"),
        ({"type": "fancy", "name": "n"}, "n: cannot read a hyperparameter of type 'fancy'"),
        ({"type": "constant", "value": 1}, "expected an object with a name and a type"),
        ("n", "expected an object with a name and a type"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_it(item, message):
    with pytest.raises(st.SpaceError, match=message):
        read(item)


def test_forbidden_clauses_are_an_error_that_names_them():
    inner = [{"type": "EQUALS", "name": "kind", "value": "a"}, {"type": "IN", "name": "x", "values": [1]}]
    clause = {"type": "AND", "clauses": inner}
    with pytest.raises(st.SpaceError, match=r"forbidden clauses have no counterpart.*EQUALS.*'kind'.* and IN .*'x'.*and 1 more"):
        read(KIND, X, forbiddens=[clause, clause])


# -- conditions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "when"),
    [
        (condition("EQ", "kind", "a"), {"kind": "a"}),
        (condition("IN", "kind", ["a", "b"]), {"kind": ["a", "b"]}),
        (condition("NEQ", "kind", "b"), {"kind": ["a", "c"]}),
        (condition("LT", "count", 3), {"count": [1, 2]}),
        (condition("GT", "count", 3), {"count": 4}),
        (condition("GT", "size", "s"), {"size": ["m", "l"]}),
        ({"type": "AND", "conditions": [condition("EQ", "kind", "a"), condition("LT", "count", 2)]}, {"kind": "a", "count": 1}),
        ({"type": "AND", "conditions": [condition("GT", "count", 1), condition("LT", "count", 4)]}, {"count": [2, 3]}),
        ({"type": "OR", "conditions": [condition("EQ", "kind", "a"), condition("EQ", "kind", "c")]}, {"kind": ["a", "c"]}),
    ],
)
def test_conditions_become_when(given, when):
    assert read(KIND, SIZE, COUNT, X, conditions=[{"child": "x", **given}])["x"].when == when


def test_several_conditions_on_a_parameter_must_all_be_met():
    space = read(KIND, COUNT, X, conditions=[condition("EQ", "kind", "a"), condition("EQ", "count", 2)])
    assert space["x"].when == {"kind": "a", "count": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (condition("GT", "share", 0.5), "x: its condition is on share, which is continuous"),
        (condition("EQ", "kind", "z"), "x: its condition cannot be met: kind = 'z' is not one of its options"),
        (condition("LT", "count", 1), "x: its condition cannot be met: no value of count is LT 1"),
        (condition("LT", "kind", "b"), "x: LT needs a parent with an order, and kind is categorical"),
        (condition("EQ", "gone", 1), "x: its condition names 'gone'"),
        (condition("ODD", "kind", "a"), "x: cannot read a condition of type 'ODD'"),
        (
            {"type": "OR", "child": "x", "conditions": [condition("EQ", "kind", "a"), condition("EQ", "count", 1)]},
            r"x: an OR over several parents \(count, kind\) has no counterpart",
        ),
        (
            {"type": "AND", "child": "x", "conditions": [condition("EQ", "kind", "a"), condition("EQ", "kind", "b")]},
            "x: its conditions on kind contradict each other",
        ),
        ({"type": "EQ", "child": "gone", "parent": "kind", "value": "a"}, "a condition is on 'gone'"),
    ],
)
def test_conditions_that_cannot_be_expressed_are_errors_that_name_them(given, message):
    with pytest.raises(st.SpaceError, match=message):
        read(KIND, COUNT, SHARE, X, conditions=[given])


def test_a_comparison_over_too_many_values_is_an_error():
    many = {"type": "uniform_int", "name": "many", "lower": 1, "upper": 5000}
    with pytest.raises(st.SpaceError, match=f"many, which has 5000 values.*at most {MAX_LISTED_VALUES}"):
        read(many, X, conditions=[condition("LT", "many", 3000)])


# -- what is given, and what cannot be written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no/such/file.json", "cannot read the ConfigSpace in 'no/such/file.json': No such file"),
        ("{not json", "it is not JSON"),
        ({"parameters": []}, 'expected a ConfigSpace: a JSON file, or a dict with "hyperparameters"'),
        (7, "expected a ConfigSpace"),
    ],
)
def test_something_else_is_an_error_that_says_what_is_expected(given, message):
    with pytest.raises(st.SpaceError, match=message):
        space_from_configspace(given)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (st.Fidelity(1, 50), "x: a fidelity has no counterpart in ConfigSpace"),
        (st.Int(0, 10_000, step=2), "x: 5001 steps are too many to list"),
        (st.Choice(True, 1), "x: the option 1 and an equal one of another type are one option"),
        (st.Choice(0, False), "x: the option False and an equal one of another type are one option"),
    ],
)
def test_what_cannot_be_written_is_an_error_that_names_it(parameter, message):
    with pytest.raises(st.SpaceError, match=message):
        space_to_configspace(st.Space(x=parameter, y=st.Float(0, 1)))


def test_only_a_space_is_written():
    with pytest.raises(st.SpaceError, match=r"expected an st\.Space"):
        space_to_configspace({"x": st.Float(0, 1)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "EQ", "child": "x", "parent": "kind"}, r"x: a condition of type 'EQ' needs an entry 'value'; this one is \{"),
        ({"type": "NEQ", "child": "x", "parent": "kind"}, "x: a condition of type 'NEQ' needs an entry 'value'"),
        ({"type": "IN", "child": "x", "parent": "kind"}, "x: a condition of type 'IN' needs a list 'values' that is not empty"),
        ({"type": "EQ", "parent": "kind", "value": "a"}, "a condition of type 'EQ' needs an entry 'child'"),
        ({"type": "EQ", "child": "x", "value": "a"}, "x: a condition of type 'EQ' needs an entry 'parent'"),
        ({"child": "x", "parent": "kind", "value": "a"}, "x: a condition of type None needs an entry 'type'"),
        ({"type": "AND", "child": "x"}, "x: a condition of type 'AND' needs a list 'conditions'"),
        ({"type": "AND", "conditions": []}, "a condition of type 'AND' needs a list 'conditions' that is not empty"),
        ("kind == a", "cannot read this condition: 'kind == a'; expected an object"),
    ],
)
def test_a_condition_that_lacks_an_entry_is_an_error_that_names_it(given, message):
    with pytest.raises(st.SpaceError, match=message):
        read(KIND, X, conditions=[given])


def test_two_hyperparameters_of_one_name_are_an_error():
    with pytest.raises(st.SpaceError, match="there are two hyperparameters 'x'; give one of them another name"):
        read(X, KIND, {**X, "upper": 2.0})
