"""Parameters, methods and stopping rules as text on the command line."""

from __future__ import annotations

import pytest

import shoestring as st
from shoestring.cli.options import read_parameter, read_toml_parameter
from shoestring.state.registry import METHODS, RULES, read_method, read_stop


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("lr=log:1e-5:1e-1", st.Float(1e-5, 1e-1, log=True)),
        ("drop=0:0.5", st.Float(0, 0.5)),
        ("x=-5:5", st.Float(-5, 5)),
        ("x=float:0:1", st.Float(0, 1)),
        ("mix=0:1:0.1", st.Float(0, 1, step=0.1)),
        ("depth=int:2:12", st.Int(2, 12)),
        ("n=int:log:16:1024", st.Int(16, 1024, log=True)),
        ("n=log:int:16:1024", st.Int(16, 1024, log=True)),
        ("units=int:32:512:32", st.Int(32, 512, step=32)),
        ("act=relu,tanh", st.Choice("relu", "tanh")),
        ("flag=true,false,null", st.Choice(True, False, None)),
        ("size=16,32,0.5", st.Choice(16, 32, 0.5)),
        ('text="1",1', st.Choice("1", 1)),
        ("time=10:30,11:45", st.Choice("10:30", "11:45")),
        ("path=a=b,c", st.Choice("a=b", "c")),
        ('layers=[[64, 64], [128], "a,b"]', st.Choice([64, 64], [128], "a,b")),
        ("rate_drop=0:0.5 when booster=dart", st.Float(0, 0.5, when={"booster": "dart"})),
        ("k=int:1:3 when booster=dart,gblinear and depth=3", st.Int(1, 3, when={"booster": ["dart", "gblinear"], "depth": 3})),
        ('k=["a when b", "c"] when flag=true', st.Choice("a when b", "c", when={"flag": True})),
        ('k=a,b when of=["x, y"]', st.Choice("a", "b", when={"of": "x, y"})),
    ],
)
def test_a_parameter_is_what_its_text_says(text: str, parameter: st.Float) -> None:
    name, found = read_parameter(text)
    assert name == text.partition("=")[0]
    assert found.to_dict() == parameter.to_dict()


@pytest.mark.parametrize(
    ("text", "fidelity"),
    [
        ("epochs=1:50", st.Fidelity(1, 50)),
        ("rows=log:100:10000", st.Fidelity(100, 10000, log=True)),
        ("share=0:1", st.Fidelity(0, 1)),
        ("epochs=1:81 target=27", st.Fidelity(1, 81, target=27)),
        ("epochs=1:50 resumable", st.Fidelity(1, 50, resumable=True)),
        ("epochs=1:50 resumable=false", st.Fidelity(1, 50, resumable=False)),
        ("epochs=1:81 resumable target=27", st.Fidelity(1, 81, target=27, resumable=True)),
        ("epochs=log:1:81 target=27 resumable", st.Fidelity(1, 81, log=True, target=27, resumable=True)),
    ],
)
def test_fidelities(text: str, fidelity: st.Fidelity) -> None:
    assert read_parameter(text, fidelity=True)[1].to_dict() == fidelity.to_dict()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lr", "NAME=SPEC"),
        ("=1:2", "NAME=SPEC"),
        ("lr=", "NAME=SPEC"),
        ("lr=0.1", "one option only"),
        ("lr=log:1e-5", "lr: 'log:1e-5' cannot be read"),
        ("lr=log:a:b", "cannot be read"),
        ("lr=1:2:3:4", "cannot be read"),
        ("lr=int:float:1:2", "cannot be read"),
        ("lr=a:b", "cannot be read"),
        ("lr=log:0:1", "low > 0"),
        ("lr=2:1", "must be below"),
        ("lr=log:1:10:2", "not both"),
        ("lr=a,,b", "empty option"),
        ("lr=[1, 2", "not a JSON list"),
        ("lr=[1, 2] or so", "cannot be read"),
        ("lr=0:1 when booster", "when booster=dart"),
        ("lr=1:inf", "finite"),
    ],
)
def test_the_error_for_unreadable_text_shows_how_to_write_it(text: str, says: str) -> None:
    with pytest.raises(st.SpaceError, match=says.replace("(", r"\(")):
        read_parameter(text)


@pytest.mark.parametrize("text", ["epochs=1,50", "epochs=1:50 when a=b", "epochs=1:50 target=x", "epochs=a:b"])
def test_a_fidelity_is_a_range_without_conditions(text: str) -> None:
    with pytest.raises(st.SpaceError, match="epochs"):
        read_parameter(text, fidelity=True)


def test_tables_of_a_toml_file_mean_the_same() -> None:
    assert read_toml_parameter("lr", "log:1e-5:1e-1") == st.Float(1e-5, 1e-1, log=True)
    assert read_toml_parameter("lr", {"low": 1e-5, "high": 0.1, "log": True}) == st.Float(1e-5, 1e-1, log=True)
    assert read_toml_parameter("depth", {"low": 2, "high": 12, "int": True}) == st.Int(2, 12)
    assert read_toml_parameter("act", ["relu", "tanh"]).to_dict() == st.Choice("relu", "tanh").to_dict()
    drop = st.Float(0, 0.5, when={"booster": "dart"}).to_dict()
    assert read_toml_parameter("drop", {"low": 0, "high": 0.5, "when": {"booster": "dart"}}).to_dict() == drop
    assert read_toml_parameter("drop", {"low": 0, "high": 0.5, "when": "booster=dart"}).to_dict() == drop
    assert read_toml_parameter("epochs", {"low": 1, "high": 50, "target": 20}, fidelity=True) == st.Fidelity(1, 50, target=20)
    table = {"low": 1, "high": 50, "resumable": True}
    assert read_toml_parameter("epochs", table, fidelity=True) == st.Fidelity(1, 50, resumable=True)
    for wrong in (3, {"low": 1}, {"low": 1, "high": 2, "lgo": True}):
        with pytest.raises(st.SpaceError, match=r"^lr: "):
            read_toml_parameter("lr", wrong)


def test_every_public_method_and_rule_can_be_named() -> None:
    assert set(METHODS) | set(RULES) <= set(st.__all__)
    for name in METHODS:
        if name not in ("TPE", "BORE"):  # they need optional packages
            assert type(read_method(name)).__name__ == name
    assert read_method("auto") == "auto"
    assert read_method("kg") == st.KG()
    assert read_method(" EIAlpha(0.25) ") == st.EIAlpha(0.25)
    assert read_method("CEI(lam=0.3)") == st.CEI(0.3)
    assert read_stop("AUTO") == "auto"
    assert read_stop("none") is None
    assert read_stop("Patience(30)") == st.Patience(30)
    assert read_stop("SureBound(0.01) | patience(50)") == st.SureBound(0.01) | st.Patience(50)
    assert read_stop("(SureBound(0.01) | Patience(50)) & EIBelow(1e-3, after=30)") == (
        (st.SureBound(0.01) | st.Patience(50)) & st.EIBelow(1e-3, after=30)
    )


@pytest.mark.parametrize(
    "text",
    [
        "Nothing", "Patience(30)", "Study", "EI() or EI()", "__import__('os').system('touch bomb')", "EI.__class__",
        "EIAlpha(open('x'))", "EIAlpha(**{})", "EIAlpha(alpha=EI())", "EI(", "", "lambda: 1", "EI(1, 2, 3)", "EI() | KG()",
        "[EI()]", "(" * 5000,
    ],
)  # fmt: skip
def test_a_method_is_parsed_and_never_evaluated(text: str) -> None:
    with pytest.raises(st.MethodError, match="method"):
        read_method(text)
