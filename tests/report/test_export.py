"""CSV that is safe to open: no cell is a formula, and the file is the user's alone."""

import csv
import io
import os

import pytest

import shoestring as st


@pytest.mark.parametrize("bad", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://a.org")'])
def test_a_text_that_a_spreadsheet_would_compute_is_escaped(bad):
    study = st.Study(st.Space({bad.strip(): st.Choice(bad, "plain"), "n": st.Int(-9, 9)}))
    study.add({bad.strip(): bad, "n": -3}, -0.5, metrics={"m": -1.5}, attrs={"host": bad})
    study.add({bad.strip(): "plain", "n": 2}, error=bad)
    head, first, second = csv.reader(io.StringIO(study.result.to_csv(), newline=""))
    cells = dict(zip(head, first, strict=True))
    assert cells[f"'{bad.strip()}"] == cells["attr_host"] == f"'{bad}"
    assert (cells["n"], cells["value"], cells["metric_m"]) == ("-3", "-0.5", "-1.5")  # numbers stay numbers
    texts = [cell for name, cell in zip(head, first, strict=True) if name not in ("n", "value", "metric_m")]
    cells = [*head, *texts, second[head.index("error")]]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []


def test_a_parameter_with_the_name_of_another_column_gets_a_column_of_its_own():
    study = st.Study(st.Space(value=st.Float(0, 1), error=st.Float(0, 1), x=st.Float(0, 1)))
    study.add({"value": 0.25, "error": 0.5, "x": 0.75}, 3.0)
    head, row, _ = study.result.to_csv().split("\n")
    assert dict(zip(head.split(","), row.split(","), strict=True))["param_value"] == "0.25"
    assert len(set(head.split(","))) == len(head.split(","))


def test_only_the_user_may_read_a_new_file_and_half_a_character_can_be_written(tmp_path):
    study = st.Study(st.Space(x=st.Float(0, 1)))
    study.add({"x": 0.5}, error="half \ud83d")
    before = os.umask(0)
    try:
        study.result.to_csv(tmp_path / "trials.csv")
    finally:
        os.umask(before)
    assert (tmp_path / "trials.csv").stat().st_mode & 0o777 == 0o600
    assert "half \\ud83d" in (tmp_path / "trials.csv").read_text(encoding="utf-8")
