"""Classes from outside the package pass the contract suites, are stored by name, replayed, and known to the command line."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shoestring as st
from shoestring.testing import AcquisitionContract, RuleContract, SurrogateContract

PLUGIN = Path(__file__).parent / "plugin"
sys.path.insert(0, str(PLUGIN))

import thrifty  # noqa: E402

SPACE = st.Space(x=st.Float(0, 1), kind=st.Choice("a", "b"))


class TestThompson(AcquisitionContract):
    def make(self):
        return thrifty.Thompson(64)


class TestScheduledLCB(AcquisitionContract):
    def make(self):
        return thrifty.ScheduledLCB()


class TestBayesianLinear(SurrogateContract):
    def make(self):
        return thrifty.BayesianLinear()


class TestTargetReached(RuleContract):
    def make(self):
        return thrifty.TargetReached(0.1)


def test_each_is_short():
    tree = ast.parse((PLUGIN / "thrifty.py").read_text(encoding="utf-8"))
    lines = {node.name: node.end_lineno - node.lineno + 1 for node in tree.body if isinstance(node, ast.ClassDef)}
    assert all(count < 40 for count in lines.values())
    assert lines["LinearPosterior"] + lines["BayesianLinear"] < 40


COMMANDS = """
import json, sys
from shoestring.cli.main import main
for words in json.loads(sys.argv[1]):
    main([*words, "--json"], standalone_mode=False)
    print()
"""


def shoestring_in_another_process(*commands, cwd):
    """What commands print, one after the other in a process that knows the classes by their entry points alone."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PLUGIN), *sys.path[1:]])}
    command = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read, rest, documents = json.JSONDecoder(), done.stdout.strip(), []
    while rest:
        document, end = read.raw_decode(rest)
        documents.append(document)
        rest = rest[end:].strip()
    return documents


@pytest.mark.parametrize(
    "method", [thrifty.Thompson(32), pytest.param(thrifty.ScheduledLCB(0.2), marks=pytest.mark.slow)], ids=repr
)
def test_a_study_with_them_is_loaded_replayed_and_asked_in_another_process(tmp_path, method):
    url = f"sqlite:///{tmp_path}/tune.db"
    study = st.Study(
        SPACE, method, stop=thrifty.TargetReached(-1.0), model=thrifty.BayesianLinear(), storage=url, name="outside", initial=3
    )
    study.minimize(lambda config: st.Outcome(config["x"] + (config["kind"] == "a"), cost=1.0), 6, progress=False)
    again = st.Study.load(url, "outside")
    assert (again.method.acquisition, again.model, again.rule) == (method, thrifty.BayesianLinear(), thrifty.TargetReached(-1.0))
    assert again.replay().first_difference is None
    expected = st.Study.from_json(study.to_json(), method, model=thrifty.BayesianLinear()).ask().config
    commands = [[word, "outside", "--storage", url] for word in ("ask", "replay")]
    asked, replayed = shoestring_in_another_process(*commands, cwd=tmp_path)
    assert asked["config"] == expected
    assert replayed["first_difference"] is None


# -- what is missing is said when the study is made ----------------------------------------------------------------------


class Nothing(st.Acquisition):
    pass


class OnlySurface:
    def surface(self, belief, rng):
        return lambda U, gradient: (U.sum(axis=1), None)


class Crashes(st.Acquisition):
    def select(self, belief, optimizer):
        return belief.no_such_thing


class ReturnsAPoint(st.Acquisition):
    def select(self, belief, optimizer):
        return optimizer.candidates(1)[0]


class NoFit:
    pass


class DuckModel:
    def fit(self, Z, y):
        return None


class ReturnsNothing(st.Surrogate):
    def fit(self, Z, y, groups=None, **options):
        return None


class Halfway(st.SurrogatePosterior):
    noise = 0.1

    def mean_and_variance(self, X):
        return X.sum(axis=1), X.sum(axis=1) + 1

    def covariance(self, X, Y=None):
        return X @ X.T


class HalfAModel(st.Surrogate):
    def fit(self, Z, y, groups=None, **options):
        return st.Fit(Halfway())


class OldRule:
    def check(self, history, space):
        return st.Verdict(False, "no")


class NoCheck:
    pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": Nothing()}, r"surface\(self, belief, rng\)"),
        ({"method": OnlySurface()}, r"st\.Acquisition"),
        ({"method": Crashes()}, "no_such_thing"),
        ({"method": ReturnsAPoint()}, r"st\.Selection"),
        ({"model": NoFit()}, "not a model"),
        ({"model": DuckModel()}, r"st\.Surrogate"),
        ({"model": ReturnsNothing()}, r"st\.Fit"),
        ({"model": HalfAModel()}, "condition"),
        ({"model": thrifty.BayesianLinear(), "method": st.KG()}, r"KG needs covariances"),
        ({"stop": OldRule()}, r"check\(self, history, belief\)"),
        ({"stop": NoCheck()}, r"check\(history, belief\)"),
        ({"stop": thrifty.TargetReached}, "is a class"),
        ({"cost_model": NoFit()}, "not a cost model"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else given,
)
def test_what_is_missing_is_said_when_the_study_is_made(options, said):
    with pytest.raises(st.MethodError, match=said):
        st.Study(SPACE, **options)


def test_with_a_fidelity_auto_needs_a_gaussian_process():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    with pytest.raises(st.MethodError, match="knowledge gradient"):
        st.Study(space, model=thrifty.BayesianLinear())


def test_what_is_registered_must_be_a_part_and_must_not_take_a_name_of_the_library():
    with pytest.raises(st.MethodError, match=r"st\.Acquisition"):
        st.register(NoFit)
    with pytest.raises(st.MethodError, match="another name"):
        st.register(type("EI", (st.Acquisition,), {}))


def test_a_class_without_a_name_has_to_be_given_again(tmp_path):
    class Unnamed(thrifty.Thompson):
        pass

    url = f"sqlite:///{tmp_path}/tune.db"
    st.Study(SPACE, Unnamed(), storage=url, name="unnamed")
    with pytest.raises(st.MethodError, match=r"st\.register"):
        st.Study.load(url, "unnamed")
    assert isinstance(st.Study.load(url, "unnamed", method=Unnamed()).method.acquisition, Unnamed)
