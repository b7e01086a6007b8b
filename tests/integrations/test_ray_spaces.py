"""Search spaces of Ray Tune, both ways."""

import warnings

import pytest

import shoestring as st
from shoestring.integrations.ray_spaces import flattened, nested, read_ray_space, space_from_ray, space_to_ray

EVERYTHING = st.Space(
    {
        "lr": st.Float(1e-4, 1.0, log=True),
        "share": st.Float(0.0, 1.0),
        "dropout": st.Float(0.1, 0.5, step=0.1),
        "model/depth": st.Int(1, 9),
        "model/width": st.Int(8, 64, step=8),
        "model/head/kind": st.Choice("a", None, [64, 64]),
        "batch": st.Int(16, 512, log=True),
    }
)


@pytest.fixture(scope="module")
def tune():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray has warnings of its own, of many kinds
        return pytest.importorskip("ray.tune", reason="ray[tune] is not installed", exc_type=ImportError)


def test_names_of_nested_dicts_are_joined_and_split_again():
    given = {"a": 1, "model": {"depth": 2, "head": {"kind": "x"}}}
    assert dict(flattened(given)) == {"a": 1, "model/depth": 2, "model/head/kind": "x"}
    assert nested(dict(flattened(given))) == given


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
def test_a_parameter_that_is_also_a_dict_is_an_error(names):
    with pytest.raises(st.SpaceError, match="a"):
        nested(dict.fromkeys(names, 1))


def test_a_space_comes_back_as_it_was(tune):
    assert dict(space_from_ray(space_to_ray(EVERYTHING))) == dict(EVERYTHING)


def test_samples_of_tune_are_configs_of_the_space_and_reach_its_ends(tune):
    written = dict(flattened(space_to_ray(st.Space(n=st.Int(1, 3), q=st.Int(2, 6, step=2), s=st.Float(0, 0.5, step=0.25)))))
    assert {written["n"].sample() for _ in range(99)} == {1, 2, 3}
    assert {written["q"].sample() for _ in range(99)} <= {2, 4, 6}  # older versions of Ray never draw the upper bound
    assert {written["s"].sample() for _ in range(99)} == {0.0, 0.25, 0.5}


def test_ranges_of_tune_with_their_bounds(tune):
    space = space_from_ray(
        {
            "uniform": tune.uniform(0, 2), "log": tune.loguniform(1e-3, 1), "q": tune.quniform(0.2, 1.0, 0.2),
            "int": tune.randint(1, 9), "logint": tune.lograndint(1, 9), "qint": tune.qrandint(3, 11, 4),
            "qone": tune.qrandint(1, 9, 1), "one": tune.randint(4, 5), "kind": tune.choice(["a", "b"]), "fixed": 7,
        }
    )  # fmt: skip
    assert dict(space) == {
        "uniform": st.Float(0, 2), "log": st.Float(1e-3, 1, log=True), "q": st.Float(0.2, 1.0, step=0.2),
        "int": st.Int(1, 8), "logint": st.Int(1, 8, log=True), "qint": st.Int(4, 8, step=4),
        "qone": st.Int(1, 8), "one": st.Choice(4), "kind": st.Choice("a", "b"), "fixed": st.Choice(7),
    }  # fmt: skip


def test_the_searcher_leaves_constants_out():
    assert read_ray_space({"x": st.Float(0, 1), "fixed": 7, "deep": {"also": [1, 2]}}).space.names == ("x",)


def test_what_cannot_be_expressed_is_an_error_that_names_it(tune):
    for given, message in [
        (tune.randn(0, 1), "x: a normal distribution has no bounds and no counterpart"),
        (tune.qrandn(0, 1, 0.5), "x: a normal distribution has no bounds"),
        (tune.qloguniform(0.1, 1, 0.1), "x: steps of 0.1 on a log scale have no counterpart"),
        (tune.qlograndint(2, 8, 2), "x: steps of 2 on a log scale have no counterpart"),
        (tune.sample_from(lambda config: 1), "x: sample_from has no counterpart"),
        (tune.grid_search([1, 2]), r"x: grid_search has no counterpart.*write tune.choice\(\[1, 2\]\)"),
        (tune.search.sample.Categorical([1, 2]).grid(), "x: grid_search has no counterpart"),
        ([tune.uniform(0, 1)], "x: a distribution inside of a list has no counterpart"),
        (tune.choice([max, min]), "x: its options .* are not all JSON values"),
        (tune.qrandint(5, 7, 4), "x: there is no value between 5 and 7"),
    ]:
        with pytest.raises(st.SpaceError, match=message):
            space_from_ray({"x": given})
    with pytest.raises(st.SpaceError, match="model/x: sample_from"):
        space_from_ray({"model": {"x": tune.sample_from(lambda config: 1)}})


def test_what_tune_cannot_express_is_an_error_that_names_it(tune):
    for parameters, message in [
        ({"x": st.Fidelity(1, 9), "y": st.Float(0, 1)}, "x: a fidelity has no counterpart in Ray Tune"),
        ({"k": st.Choice("a", "b"), "x": st.Float(0, 1, when={"k": "a"})}, "x: a condition has no counterpart in Ray Tune"),
        ({"x": st.Int(1, 9, step=2)}, "x: steps of 2 from 1 have no counterpart.*let low be a multiple of 2"),
    ]:
        with pytest.raises(st.SpaceError, match=message):
            space_to_ray(st.Space(parameters))


def test_only_a_dict_and_only_a_space():
    with pytest.raises(st.SpaceError, match="a search space of Ray Tune is a dict"):
        space_from_ray([1])
    with pytest.raises(st.SpaceError, match=r"expected an st\.Space"):
        space_to_ray({"x": 1})
    with pytest.raises(st.SpaceError, match="nothing to search"):
        read_ray_space({"fixed": 7})
