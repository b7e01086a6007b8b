"""Placeholders for parameters in the arguments of a program."""

from __future__ import annotations

import pytest

import shoestring as st
from shoestring.program import CommandTemplate

SPACE = st.Space(
    lr=st.Float(1e-5, 1e-1, log=True),
    booster=st.Choice("gbtree", "dart", None, [1, 2]),
    drop=st.Float(0, 1, when={"booster": "dart"}),
)
EXTRAS = {"trial": "17", "study": "xgb", "result": "/tmp/r", "checkpoint_dir": "/tmp/c"}


def filled(*arguments: str, **config: object) -> list[str]:
    return CommandTemplate(arguments, SPACE, rest_from_environment=True).fill(config, EXTRAS)


def test_values_go_where_they_are_named() -> None:
    assert filled("run", "--lr={lr}", "{lr}{lr}", "a b;$(c)", lr=1e-05) == ["run", "--lr=1e-05", "1e-051e-05", "a b;$(c)"]
    assert filled("run", "{lr}", lr=0.1 + 0.2) == ["run", "0.30000000000000004"]  # all its digits
    assert filled("run", "{booster}", booster=None) == ["run", "null"]
    assert filled("run", "{booster}", booster=[1, 2]) == ["run", "[1, 2]"]
    assert filled("run", "{booster}", booster="a b; rm -rf {lr}") == ["run", "a b; rm -rf {lr}"]  # not parsed again
    assert filled("run", "-o", "m-{trial}.pt", "{study}", "{result}", "{checkpoint_dir}") == [
        "run", "-o", "m-17.pt", "xgb", "/tmp/r", "/tmp/c",
    ]  # fmt: skip


def test_double_braces_are_braces() -> None:
    assert filled("awk", "{{print $1}}", '{{"lr": {lr}}}', "{{lr}}", lr=0.5) == ["awk", "{print $1}", '{"lr": 0.5}', "{lr}"]


def test_an_argument_that_names_an_inactive_parameter_is_dropped() -> None:
    words = ("run", "--drop", "{drop}", "--rate={drop}", "--both={lr}-{drop}", "{drop}", "-v", "x{drop}", "end")
    assert filled(*words, lr=0.5, booster="gbtree") == ["run", "-v", "end"]
    assert filled(*words, lr=0.5, booster="dart", drop=0.25) == [
        "run", "--drop", "0.25", "--rate=0.25", "--both=0.5-0.25", "0.25", "-v", "x0.25", "end",
    ]  # fmt: skip
    assert filled("run", "--lr={lr}", "{drop}", lr=0.5) == ["run", "--lr=0.5"]  # the option before has a value of its own
    assert filled("run", "-", "{drop}") == ["run", "-"]
    assert filled("run", "--a", "{drop}", "{drop}") == ["run"]


def test_a_parameter_with_the_name_of_an_extra_placeholder_takes_precedence() -> None:
    template = CommandTemplate(("run", "{trial}"), st.Space(trial=st.Int(1, 3)))
    assert template.fill({"trial": 2}, EXTRAS) == ["run", "2"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "after --"),
        (("run", "{lr}"), r"no argument names \{booster\}, \{drop\}"),
        (("run", "{rl}"), r"\{rl\} is not a parameter; there are \{lr\}, \{booster\}, \{drop\}, \{trial\}"),
        (("run", "{lr", "{booster}", "{drop}"), "brace"),
        (("run", "lr}", "{booster}", "{drop}"), "brace"),
        (("run", "{}"), "brace"),
        (("{drop}", "{lr}", "{booster}"), "not always active"),
    ],
)
def test_wrong_arguments_are_rejected_at_once(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(st.ConfigError, match=says):
        CommandTemplate(arguments, SPACE)


def test_without_any_placeholder_the_program_reads_its_environment() -> None:
    assert CommandTemplate(("run", "{trial}"), SPACE).config_from_environment
    assert not CommandTemplate(("run", "{lr}"), SPACE, rest_from_environment=True).config_from_environment
