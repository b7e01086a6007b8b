"""Meters: what is counted, in which unit, and what is refused before anything runs."""

import os
import time

import pytest

import shoestring as st
from shoestring.cost import meter as meters
from shoestring.cost.meter import cpu_seconds
from shoestring.state.registry import read_meter

SPACE = st.Space(x=st.Float(0, 1))


class Stepper(st.Meter):
    """Each reading is one more than the one before."""

    unit = "steps"

    def start(self):
        count = iter(range(1000))
        return st.Measurement(lambda: float(next(count)))


def minimize(objective=lambda config: config["x"], budget=3, **options):
    return st.minimize(objective, SPACE, budget, method=st.Random(), progress=False, **options)


def fake_gpus(monkeypatch, models=(), visible=None):
    monkeypatch.setattr(meters, "visible_models", lambda: list(models))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


# -- what is counted -------------------------------------------------------------------------------------------------


def test_cpu_time_counts_work_and_not_sleep():
    measurement = st.CPUTime().start()
    time.sleep(0.05)
    asleep = measurement.read()
    began = time.process_time()
    while time.process_time() - began < 0.05:
        pass
    assert asleep < 0.03
    assert 0.05 <= measurement.read() - asleep < 0.2


def test_cpu_time_counts_children_that_were_waited_for(monkeypatch):
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before = cpu_seconds()
    more = type("Usage", (), {"ru_utime": used.ru_utime + 2.0, "ru_stime": used.ru_stime + 1.0})
    monkeypatch.setattr(resource, "getrusage", lambda who: more)
    assert cpu_seconds() - before == pytest.approx(3.0, abs=0.1)


def test_units_are_scaled():
    assert st.CPUTime("CPU-h")._scale == 1 / 3600
    assert st.GPUTime().in_unit("GPU-h").unit == "GPU-h"


@pytest.mark.parametrize(
    ("visible", "models", "count"),
    [("0,1", (), 2), ("GPU-aa,GPU-bb,GPU-cc", (), 3), ("0,-1,1", (), 1), (None, ("NVIDIA H200", "NVIDIA H200"), 2)],
)
def test_gpu_time_is_the_time_of_every_visible_gpu(monkeypatch, visible, models, count):
    fake_gpus(monkeypatch, models, visible)
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert st.GPUTime().start().read() == 4.0 * count


def test_a_share_of_a_gpu_can_be_given(monkeypatch):
    fake_gpus(monkeypatch)
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert st.GPUTime(gpus=0.5).start().read() == 2.0


def test_a_price_table_adds_machine_cpu_and_gpus(monkeypatch):
    fake_gpus(monkeypatch, ("NVIDIA A100-SXM4-80GB", "NVIDIA L4"))
    clock, cpu = iter([0.0, 1800.0]), iter([0.0, 7200.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(meters, "cpu_seconds", lambda: next(cpu))
    prices = {"machine": 0.4, "cpu": 0.05, "A100": 3.0, "gpu": 1.0}
    assert st.Money(per_hour=prices).start().read() == pytest.approx(0.5 * (0.4 + 3.0 + 1.0) + 2 * 0.05)


@pytest.mark.parametrize(
    ("model", "price"), [("NVIDIA A100-SXM4-40GB", 2.9), ("NVIDIA A10", 0.6), ("NVIDIA L40S", 1.9), ("NVIDIA L4", 0.7)]
)
def test_the_price_of_a_gpu_is_that_of_its_own_model(monkeypatch, model, price):
    fake_gpus(monkeypatch, (model,))
    prices = {"A10": 0.6, "A100": 2.9, "L4": 0.7, "L40": 1.0, "L40S": 1.9}
    assert meters.gpu_rate(prices) == price


def test_nvidia_smi_is_read_as_it_answers(monkeypatch):
    answer = "0, GPU-aaaa-1, NVIDIA H200\n1, GPU-bbbb-2, NVIDIA L4\n"
    monkeypatch.setattr(meters, "installed_gpus", meters.installed_gpus.__wrapped__)  # without its cache
    monkeypatch.setattr(meters.shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    monkeypatch.setattr(meters.subprocess, "run", lambda *args, **options: type("Done", (), {"stdout": answer}))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert meters.visible_models() == ["NVIDIA H200", "NVIDIA L4"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert meters.visible_models() == ["NVIDIA L4"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aaaa")
    assert meters.visible_models() == ["NVIDIA H200"]


# -- in a study ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "unit"),
    [
        ("seconds", "s"), ("cpu", "CPU-s"), (st.GPUTime(gpus=1), "GPU-s"), (st.Money(per_hour=3600.0), "USD"),
        (st.Money(per_hour={"machine": 1, "cpu": 1}, unit="EUR"), "EUR"), ("Money(per_hour=2, unit='CHF')", "CHF"),
    ],
)  # fmt: skip
def test_costs_are_in_the_unit_of_the_meter_and_the_summary_shows_it(cost, unit):
    result = minimize(cost=cost)
    assert (result.unit, result.study.unit) == (unit, unit)
    assert all(trial.cost is not None for trial in result.history)
    assert unit == "s" or f"{unit}\n" in str(result)


def test_the_price_of_the_machine_is_the_time_that_was_measured():
    result = minimize(cost=st.Money(per_hour=3600.0))
    assert [trial.cost for trial in result.history] == [trial.seconds for trial in result.history]


def test_failed_trials_are_measured_too():
    def fails(config):
        raise ValueError("no")

    result = minimize(fails, cost=Stepper(), max_failures=9)
    assert [trial.cost for trial in result.history] == [1.0, 1.0, 1.0]


def test_a_cost_that_the_objective_says_goes_before_the_meter():
    assert minimize(lambda config: st.Outcome(0.5, cost=7.0), 1, cost=Stepper()).spent == 7.0

    def reports(config, trial):
        trial.report(0.5, cost=3.0)
        return 0.5

    assert minimize(reports, 1, cost=Stepper()).spent == 3.0


def test_a_budget_in_the_unit_of_the_meter_ends_the_study():
    result = minimize(budget=st.Budget(cost=4), cost=Stepper())
    assert (len(result.history), result.spent) == (4, 4.0)
    assert "4 steps" in result.stop.reason


def test_reports_carry_the_measured_cost_and_should_stop_looks_at_it():
    def trains(config, trial):
        for epoch in range(1, 100):
            trial.report(1 / epoch)
            if trial.should_stop():
                break
        return 1 / epoch

    trial = minimize(trains, st.Budget(cost=5), cost=Stepper()).history[0]
    costs = [report["cost"] for report in trial.reports]
    assert costs == sorted(costs)
    assert costs[0] == 1.0
    assert len(costs) < 10


def test_what_is_measured_while_a_question_is_answered_is_not_the_trials_cost():
    def asks(config, trial):
        for _ in range(5):
            trial.should_stop()  # each answer takes two readings
        return 0.5

    assert minimize(asks, 1, cost=Stepper()).spent <= 6.0


def test_a_meter_runs_in_the_worker_process():
    def objective(config):
        began = time.process_time()
        while time.process_time() - began < 0.1:
            pass
        return st.Outcome(config["x"], attrs={"process": os.getpid()})

    (trial,) = minimize(objective, 1, cost="cpu", timeout="5m").history
    assert trial.attrs["process"] != os.getpid()
    assert 0.1 <= trial.cost < 0.3  # this process only waits, and has used less


def test_a_trial_whose_reading_was_lost_is_charged_at_the_rate_of_the_others():
    study = st.Study(SPACE, cost="cpu", method=st.Random())
    done = study.tell(study.ask(), 0.5, cost=2.0)
    lost = study.tell(study.ask(), error="the worker was killed")
    assert lost.cost == pytest.approx(2.0 / done.seconds * lost.seconds)


def test_without_a_measured_trial_nothing_is_known_about_a_lost_one():
    study = st.Study(SPACE, cost="cpu", method=st.Random())
    assert study.tell(study.ask(), error="the worker was killed").cost is None


# -- stored and opened again -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", ["cpu", st.Money(per_hour=2.5), st.Money(per_hour={"cpu": 0.1}, unit="EUR")], ids=repr)
def test_a_stored_study_keeps_its_meter(tmp_path, cost):
    made = st.Study(SPACE, cost=cost, storage=tmp_path / "tune.db", name="a")
    assert st.Study.load(tmp_path / "tune.db").meter == made.meter
    assert st.Study(SPACE, storage=tmp_path / "tune.db", name="a").meter == made.meter
    again = st.Study.from_json(made.to_json())
    assert (again.meter, again.unit, again.per_hour) == (made.meter, made.unit, made.per_hour)


def test_a_study_without_a_meter_is_stored_as_before(tmp_path):
    study = st.Study(SPACE, storage=tmp_path / "tune.db", name="a")
    assert "cost" not in study.code
    assert (study.meter, study.unit) == (None, "s")


def test_a_stored_study_in_another_unit_refuses_the_meter(tmp_path):
    st.Study(SPACE, storage=tmp_path / "tune.db", name="a")
    with pytest.raises(st.MethodError, match=r"study 'a' counts cost in s, and CPUTime.* does not; begin another study"):
        st.Study(SPACE, storage=tmp_path / "tune.db", name="a", cost="cpu")


def test_a_meter_without_a_text_must_be_given_again(tmp_path):
    st.Study(SPACE, cost=Stepper(), storage=tmp_path / "tune.db", name="a")
    with pytest.raises(st.MethodError, match="give it again"):
        st.Study(SPACE, storage=tmp_path / "tune.db", name="a")
    assert st.Study(SPACE, cost=Stepper(), storage=tmp_path / "tune.db", name="a").unit == "steps"


# -- errors at the start ---------------------------------------------------------------------------------------------


def never(config):
    raise AssertionError("the objective was called")


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("nonsense", 'there is no nonsense.*give "seconds", "cpu"'), ("money", "needs a price"), (3, "is no meter"),
        ("Money(per_hour=-1)", "must be a positive number"), ("gpu", "no GPU was found here.*GPUTime"),
        (st.Money(per_hour={"gpu": 2}), "no GPU"), (st.Money(per_hour={"H200": 2}), "the price table names H200"),
    ],
)  # fmt: skip
def test_a_wrong_or_missing_meter_is_an_error_before_the_first_trial(monkeypatch, cost, message):
    fake_gpus(monkeypatch)
    with pytest.raises(st.MethodError, match=message):
        minimize(never, cost=cost)


def test_a_gpu_without_a_price_is_named(monkeypatch):
    fake_gpus(monkeypatch, ("NVIDIA L4",))
    with pytest.raises(st.MethodError, match="no price for the GPU 'NVIDIA L4', only for 'A100'"):
        minimize(never, cost=st.Money(per_hour={"A100": 3}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: st.Money(per_hour={}), lambda: st.Money(per_hour={"cpu": 0}), lambda: st.Money(per_hour={"": 1}),
        lambda: st.Money(per_hour=1, unit=""), lambda: st.CPUTime("USD"), lambda: st.GPUTime(gpus=0),
    ],
)  # fmt: skip
def test_a_meter_that_cannot_be_right_is_refused_when_it_is_made(make):
    with pytest.raises(st.MethodError):
        make()


def test_a_budget_in_another_unit_is_refused():
    with pytest.raises(st.MethodError, match="costs are in USD, but CPUTime"):
        minimize(never, "20 USD", cost="cpu")
    with pytest.raises(st.MethodError, match=r"give Money\(..., unit='EUR'\)"):
        minimize(never, "20 EUR", cost=st.Money(per_hour=2))
    with pytest.raises(st.BudgetError, match="a budget in USD, but WallTime"):
        st.Study(SPACE, cost="seconds").minimize(never, "20 USD")
    assert minimize(budget="0.001 CPU-h", cost="cpu", stop=st.Patience(2)).unit == "CPU-h"


def test_a_price_of_an_hour_is_given_once():
    with pytest.raises(st.BudgetError, match="not both"):
        minimize(never, cost="cpu", per_hour=2.0)


def test_trials_in_threads_cannot_be_told_apart_by_cpu_time():
    with pytest.raises(st.MethodError, match="cannot tell trials in threads"):
        minimize(never, cost="cpu", threads=True, workers=2)
    assert minimize(cost="cpu", threads=True, workers=1).unit == "CPU-s"
    assert minimize(cost=st.GPUTime(gpus=1), threads=True, workers=2).unit == "GPU-s"


def test_a_meter_that_fails_where_the_trial_runs_ends_the_run():
    from concurrent.futures import ThreadPoolExecutor

    from shoestring.execution.factory import metered

    class Broken(Stepper):
        def start(self):
            raise OSError("no such counter")

    with ThreadPoolExecutor(1) as pool, pytest.raises(OSError, match="no such counter"):
        minimize(never, cost=Broken(), executor=pool)
    unchecked = metered(never, Broken(), 1, elsewhere=True, shares_process=False)
    with pytest.raises(st.ObjectiveError, match="its cost could not be measured where it runs: no such counter"):
        st.Study(SPACE, method=st.Random()).minimize(unchecked, 3)


def test_texts_and_meters_are_read_alike():
    assert read_meter("CPU") == read_meter("CPUTime()") == st.CPUTime()
    assert read_meter("Energy(unit='kWh')") == st.Energy("kWh")
    assert read_meter(None) is None


# -- where seconds have no price -------------------------------------------------------------------------------------


def test_a_failed_trial_does_not_count_its_seconds_as_dollars(caplog):
    values = iter([0.5, None, 0.25])

    def objective(config):
        value = next(values)
        if value is None:
            raise RuntimeError("out of memory")
        return st.Outcome(value, cost=2.0)

    result = minimize(objective, st.Budget(trials=3, cost=100, unit="USD"))
    assert [trial.cost for trial in result.history] == [2.0, None, 2.0]
    assert result.spent == 4.0
    assert "trial 1 has failed and gave no cost, so it counts as 0 USD" in caplog.text


def test_a_failed_trial_keeps_the_cost_that_it_has_reported():
    def objective(config, trial):
        trial.report(0.5, cost=1.5)
        raise RuntimeError("out of memory")

    assert minimize(objective, st.Budget(trials=2, cost=10, unit="USD"), max_failures=5).spent == 3.0


def test_nan_is_a_failure_without_a_price_too():
    study = st.Study(SPACE, unit="USD", method=st.Random())
    assert study.tell(study.ask(), float("nan")).cost is None


def test_failures_that_cost_nothing_do_not_go_on_for_ever():
    def objective(config):
        raise RuntimeError("out of memory")

    with pytest.raises(st.ObjectiveError, match="100 trials have failed without a cost, so the budget in cost"):
        minimize(objective, "20 USD", fail_fast=False)


@pytest.mark.parametrize(("text", "unit"), [("500 J", "J"), ("0.5 kWh", "kWh"), ("10 GPU-h", "GPU-h"), ("90 CPU-s", "CPU-s")])
def test_the_units_of_meters_can_be_written_in_a_budget(text, unit):
    from shoestring.budget import read_budget

    assert read_budget(text).unit == unit


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        (lambda: 5, "Wrong.start must return st.Measurement"),
        (lambda: st.Measurement(lambda: float("nan")), "Wrong: its reading is nan; the counter .* must return a finite number"),
    ],
)
def test_a_meter_of_ones_own_that_reads_nothing_is_refused_before_the_first_trial(measurement, message):
    class Wrong(st.Meter):
        unit = "steps"

        def start(self):
            return measurement()

    with pytest.raises(st.MethodError, match=message):
        minimize(lambda config: pytest.fail("a trial ran"), cost=Wrong())


def test_a_meter_of_ones_own_without_a_unit_is_refused_before_the_first_trial():
    class Steps(st.Meter):
        def start(self):
            return st.Measurement(lambda: 1.0)

    with pytest.raises(st.MethodError, match=r"Steps: a meter needs the unit of its readings; write unit: str"):
        minimize(lambda config: pytest.fail("a trial ran"), cost=Steps())


def test_a_reading_that_is_no_number_in_the_middle_of_a_trial_fails_the_trial():
    class Broken(st.Meter):
        unit = "steps"
        count = 0

        def start(self):
            self.count += 1
            return st.Measurement(iter([0.0, 1.0 if self.count == 1 else float("nan"), 2.0, 3.0, 4.0]).__next__)

    def objective(config, trial):
        trial.report(1.0)
        return 1.0

    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), cost=Broken())
    study.minimize(objective, 1, fail_fast=False)
    assert "the reading of the study's meter is nan" in study.history[0].error


def test_ask_and_tell_with_a_meter_need_the_cost_since_nothing_runs_that_could_be_measured():
    study = st.Study(st.Space(x=st.Float(0, 1)), st.Random(), cost="cpu", budget="10 CPU-s")
    trial = study.ask()
    with pytest.raises(st.OutcomeError, match=r"trial 0: the study's meter .* cost=\.\.\.\), in CPU-s"):
        study.tell(trial, 1.0)
    assert study.tell(trial, 1.0, cost=4.0).cost == 4.0
    assert study.tell(study.ask(), error="out of memory").state is st.State.FAILED
    assert study.log.spent >= 4.0
