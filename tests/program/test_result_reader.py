"""The result that a program prints on its last line, or writes to its result file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import shoestring as st
from shoestring.program.result_reader import parse_result, read_result, tail

NUMBERS = [("0.5", 0.5), ("-1e-3", -1e-3), ("+.5", 0.5), ("3.", 3.0), ("-inf", -math.inf), ("7", 7.0)]
OTHERS = ["done", "loss: 0.5", "1_000", "0x10", "true", "null", "[1]", '"0.5"', "{", "{}", '{"loss": 1}', "[" * 99999]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers(text: str, value: float) -> None:
    assert parse_result(text, "it").outcome.value == value


def test_nan_is_a_value_too() -> None:
    assert math.isnan(parse_result("NaN", "it").outcome.value or 0.0)
    assert math.isnan(parse_result('{"value": NaN}', "it").outcome.value or 0.0)


def test_objects() -> None:
    assert parse_result('{"value": 1, "cost": 2.5, "epoch": 3}', "it").outcome == st.Outcome(1, cost=2.5)
    folds = parse_result('{"folds": [1, 2], "gradient": {"lr": 0.5}}', "it")
    assert (folds.error, folds.outcome.value, folds.outcome.folds, folds.outcome.gradient) == (None, None, [1, 2], {"lr": 0.5})
    more = parse_result('{"value": 1, "metrics": {"accuracy": 0.93}, "attrs": {"host": "gpu3"}}', "it").outcome
    assert (more.metrics, more.attrs) == ({"accuracy": 0.93}, {"host": "gpu3"})
    failed = parse_result('{"error": "out of memory", "cost": 3}', "it")
    assert (failed.error, failed.outcome.cost) == ("out of memory", 3)


@pytest.mark.parametrize("text", OTHERS)
def test_anything_else_is_an_error_that_shows_it(text: str) -> None:
    error = parse_result(text, "the last line").error
    assert error is not None
    assert error.startswith("the last line")
    assert text[:4] in error
    assert len(error) < 300


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"value": "0.5"}', '"value": "0.5", which is not a number'),
        ('{"value": true}', '"value": true, which is not a number'),
        ('{"value": 1, "metrics": 2}', '"metrics": 2; write it like {"accuracy": 0.93}'),
        ('{"value": 1, "attrs": []}', '"attrs": []; write it like {"host": "gpu3"}'),
    ],
)
def test_a_field_of_a_wrong_type_is_an_error_that_names_it(text: str, says: str) -> None:
    assert says in str(parse_result(text, "it").error)


def test_the_file_takes_precedence_over_the_last_line_that_is_not_empty(tmp_path: Path) -> None:
    result, output = tmp_path / "result", tmp_path / "out"
    assert "no result" in str(read_result(result, output).error)
    output.write_bytes(b"epoch 1\r\nbad \xff\n0.25\n\n  \n")
    assert read_result(result, output).outcome.value == 0.25
    result.write_text(" \n")
    assert read_result(result, output).outcome.value == 0.25
    result.write_text('{\n  "value": 0.5\n}\n')
    assert read_result(result, output).outcome.value == 0.5
    result.write_text("half a th")
    assert "file result" in str(read_result(result, output).error)


def test_a_long_output_is_read_from_its_end(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_bytes(b"x" * (3 << 20) + b"\n" + b'{"folds": [%s]}\n' % b", ".join([b"0.125"] * 10_000))
    result = read_result(tmp_path / "none", output)
    assert len(result.outcome.folds or ()) == 10_000
    assert tail(tmp_path / "none", 10) == ""


def test_a_result_file_that_is_too_long_is_not_read_as_a_whole(tmp_path: Path) -> None:
    result = tmp_path / "result"
    with result.open("wb") as file:
        file.write(b"0.5\n")
        file.truncate(1 << 40)  # it takes no room on the disk, and would take a terabyte of memory
    error = read_result(result, tmp_path / "out").error
    assert error is not None
    assert error.startswith("the file result has more than 16 MB; write a number")
