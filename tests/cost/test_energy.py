"""The energy meter: RAPL counters in a folder as Linux has them, NVML and codecarbon as stand-ins."""

import sys
import threading
import types

import pytest

import shoestring as st
from shoestring.cost import energy

SPACE = st.Space(x=st.Float(0, 1))
FULL = 1_000_000


def zone(folder, name, label, microjoules):
    path = folder / name
    path.mkdir(parents=True)
    (path / "name").write_text(f"{label}\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    (path / "max_energy_range_uj").write_text(f"{FULL}\n")
    return path


@pytest.fixture
def powercap(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(energy.importlib.util, "find_spec", lambda name: None)
    folder = tmp_path / "powercap"
    zone(folder, "intel-rapl:0", "package-0", 900_000)
    zone(folder, "intel-rapl:0:0", "core", 500_000)  # a part of the package: not counted again
    zone(folder, "intel-rapl:0:1", "dram", 100)
    zone(folder, "intel-rapl:1", "psys", 5_000)  # the whole board: holds the package again
    (folder / "intel-rapl").mkdir()
    return folder


def write(folder, name, microjoules):
    (folder / name / "energy_uj").write_text(f"{microjoules}\n")


def test_packages_and_memory_are_counted_once_each(powercap):
    assert [path.name for path in energy.rapl_zones(powercap)] == ["intel-rapl:0", "intel-rapl:0:1"]
    measurement = st.Energy(powercap=str(powercap)).start()
    write(powercap, "intel-rapl:0", 950_000)
    write(powercap, "intel-rapl:0:0", 999_000)
    write(powercap, "intel-rapl:0:1", 20_100)
    write(powercap, "intel-rapl:1", 999_000)
    assert measurement.read() == pytest.approx(0.07)
    measurement.close()


def test_a_counter_that_began_again_at_zero_has_not_gone_back(powercap):
    counter = energy.RaplCounter(energy.rapl_zones(powercap))
    for reading, joules in ((50_000, 0.15), (900_000, 1.0), (100_000, 1.2)):
        write(powercap, "intel-rapl:0", reading)
        assert counter.joules() == pytest.approx(joules)


def test_the_counters_are_read_while_the_trial_runs(powercap, monkeypatch):
    monkeypatch.setattr(energy, "POLL_SECONDS", 0.005)
    read = threading.Event()
    measurement = st.Energy(powercap=str(powercap)).start()
    counted = measurement._rapl.joules
    monkeypatch.setattr(measurement._rapl, "joules", lambda: (read.set(), counted())[1])
    assert read.wait(5)
    measurement.close()


def test_energy_in_kilowatt_hours(powercap):
    measurement = st.Energy("kWh", powercap=str(powercap)).start()
    write(powercap, "intel-rapl:0", 936_000)
    assert measurement.read() == pytest.approx(0.036 / 3.6e6)
    measurement.close()


def test_of_several_trials_at_once_each_has_its_share_by_cpu_time(powercap, monkeypatch):
    own, every = iter([10.0, 11.0]), iter([100.0, 104.0])
    monkeypatch.setattr(energy, "cpu_seconds", lambda: next(own))
    monkeypatch.setattr(energy, "busy_seconds", lambda: next(every))
    measurement = st.Energy(powercap=str(powercap)).for_workers(2).start()
    write(powercap, "intel-rapl:0", 980_000)
    assert measurement.read() == pytest.approx(0.08 / 4)
    measurement.close()
    assert st.Energy().for_workers(1) == st.Energy()


@pytest.mark.skipif(not energy.PROC_STAT.exists(), reason="needs /proc")
def test_the_cpu_time_of_all_processes_grows():
    first = energy.busy_seconds()
    assert 0 < first <= energy.busy_seconds()


def test_a_study_counts_energy_and_shows_its_unit(powercap):
    level = iter(range(900_001, 999_999, 10_000))

    def objective(config):
        write(powercap, "intel-rapl:0", next(level))
        return config["x"]

    meter = st.Energy(powercap=str(powercap))
    result = st.minimize(objective, SPACE, st.Budget(cost=0.03, unit="J"), cost=meter, method=st.Random(), stop=None)
    assert [round(trial.cost, 6) for trial in result.history] == [1e-6, 0.01, 0.01, 0.01]
    assert "0.03 J" in str(result)
    assert st.minimize(lambda c: 0.5, SPACE, 1, cost=st.Energy("kWh", powercap=str(powercap)), method=st.Random()).unit == "kWh"


def test_a_machine_without_counters_is_told_so_at_the_start(powercap, tmp_path):
    with pytest.raises(st.MethodError, match=r"no RAPL counters in .*pip install \"shoestring\[energy\]\""):
        st.minimize(lambda c: 0.5, SPACE, 3, cost=st.Energy(powercap=str(tmp_path / "none")))
    with pytest.raises(st.MethodError, match="codecarbon is not installed"):
        st.Energy(source="codecarbon").check()
    with pytest.raises(st.MethodError, match="no NVIDIA GPU answers; pip install nvidia-ml-py"):
        st.Energy(source="nvml").check()
    with pytest.raises(st.MethodError, match="source must be"):
        st.Energy(source="meter")


def test_counters_that_may_not_be_read_are_named_with_the_way_to_allow_it(powercap, monkeypatch):
    kept = energy.Path.read_text

    def refuse(path, **options):
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return kept(path, **options)

    monkeypatch.setattr(energy.Path, "read_text", refuse)
    with pytest.raises(st.MethodError, match=r"Permission denied.*chmod o\+r"):
        st.Energy(powercap=str(powercap), source="rapl").check()


# -- NVML and codecarbon ---------------------------------------------------------------------------------------------


def fake_nvml(energies):
    class NVMLError(Exception):
        pass

    return types.SimpleNamespace(
        NVMLError=NVMLError, nvmlInit=lambda: None, nvmlDeviceGetCount=lambda: len(energies),
        nvmlDeviceGetHandleByIndex=lambda index: index, nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}-abc",
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: energies[handle],
    )  # fmt: skip


def test_visible_gpus_are_added_to_the_processor(powercap, monkeypatch):
    energies = [1000, 50_000]
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(energies))
    monkeypatch.setattr(energy.importlib.util, "find_spec", lambda name: object() if name == "pynvml" else None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    measurement = st.Energy(powercap=str(powercap)).start()
    energies[:] = [9000, 52_000]
    assert measurement.read() == pytest.approx(2.0)
    measurement.close()
    alone = st.Energy("kJ", source="nvml").start()
    energies[:] = [9000, 55_000]
    assert alone.read() == pytest.approx(0.003)
    without = st.Energy(powercap=str(powercap), gpus=False).start()
    energies[:] = [9000, 99_000]
    assert without.read() == 0.0
    without.close()


class FakeTracker:
    def __init__(self, **options):
        self.options, self.running, self.tasks = options, False, 0

    def start_task(self):
        assert not self.running
        self.running, self.tasks = True, self.tasks + 1

    def stop_task(self):
        assert self.running
        self.running = False
        return types.SimpleNamespace(energy_consumed=1e-6)  # kWh


def test_without_counters_codecarbon_estimates(powercap, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "codecarbon", types.SimpleNamespace(OfflineEmissionsTracker=FakeTracker))
    monkeypatch.setattr(energy.importlib.util, "find_spec", lambda name: object() if name == "codecarbon" else None)
    monkeypatch.setattr(energy, "_trackers", {})
    meter = st.Energy(powercap=str(tmp_path / "none"))
    measurement = meter.start()
    assert measurement.read() == pytest.approx(3.6)
    assert measurement.read() == pytest.approx(7.2)
    measurement.close()
    measurement.close()
    tracker = energy.carbon_tracker()
    assert not tracker.running
    assert tracker.options["save_to_file"] is False
    assert meter.start()._tracker is tracker  # to make one takes seconds


def test_a_counter_without_its_range_is_said_before_the_first_trial(powercap):
    (powercap / "intel-rapl:0" / "max_energy_range_uj").unlink()
    with pytest.raises(st.MethodError, match="max_energy_range_uj cannot be read"):
        st.Energy(source="rapl", powercap=str(powercap)).check()
