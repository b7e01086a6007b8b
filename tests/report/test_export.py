"""CSV that is safe to open: no cell is a formula, and the file is the user's alone."""

import csv
import io
import json
import os
import sys

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


def example_study():
    """All kinds of cells: conditional, mixed, nested, missing, half a character."""
    space = st.Space(x=st.Float(0, 1), n=st.Int(1, 9), act=st.Choice("a", 1, None), z=st.Float(0, 1, when={"act": "a"}))
    study = st.Study(space)
    study.add({"x": 0.5, "n": 3, "act": "a", "z": 0.25}, 1.5, cost=2.0, metrics={"m": 0.5}, attrs={"sizes": [1, 2], "ok": True})
    study.add({"x": 0.25, "n": 4, "act": 1}, error="half \ud83d")
    return study


def test_json_lines_hold_all_of_a_trial_and_are_written_for_this_user_alone(tmp_path):
    study = example_study()
    text = study.result.to_jsonl(tmp_path / "trials.jsonl")
    again = [st.Trial.from_dict(json.loads(line)) for line in text.splitlines()]
    assert again == list(study.history)
    assert (tmp_path / "trials.jsonl").read_text(encoding="utf-8") == text
    assert (tmp_path / "trials.jsonl").stat().st_mode & 0o077 == 0


def test_parquet_has_the_columns_of_the_data_frame(tmp_path):
    pytest.importorskip("pyarrow")
    study = example_study()
    study.result.to_parquet(tmp_path / "trials.parquet")
    pandas = pytest.importorskip("pandas")
    found, frame = pandas.read_parquet(tmp_path / "trials.parquet"), study.result.to_dataframe()
    assert list(found.columns) == list(frame.columns)
    assert found["n"].tolist() == [3, 4]
    assert found["act"].tolist() == ['"a"', "1"]  # a column of several kinds is JSON
    assert (found["attr_sizes"][0], found["attr_ok"][0], found["metric_m"][0]) == ("[1, 2]", True, 0.5)
    assert found["z"].isna().tolist() == [False, True]
    assert found["error"][1] == "half \\ud83d"
    assert str(found["asked_at"].dtype).startswith("datetime64[us, UTC")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        example_study().result.to_parquet(tmp_path / "trials.parquet")
