"""The energy meter: what a machine draws while an objective runs.

Sources, in this order:

    RAPL         the counters of the processor, in the files of ``/sys/class/powercap``: its packages, and the memory where it is
                 counted apart. Linux on Intel and AMD; since 2020 most systems allow only root to read them
    NVML         the counters of NVIDIA GPUs, added to the above where ``pynvml`` is installed (the package nvidia-ml-py)
    codecarbon   an estimate from the load and the kind of the processor, where RAPL cannot be read

A RAPL counter begins again at 0 when it is full, which takes minutes on a large machine. So a thread reads it several times a
minute while a measurement goes on.

With several trials at once on a machine, each of them is charged its share: the energy of the processor, times the CPU time of
the trial's process over the CPU time of all processes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from ..errors import MethodError
from .meter import Measurement, Meter, cpu_seconds, visible_ids

POWERCAP = "/sys/class/powercap"
PROC_STAT = Path("/proc/stat")
MICROJOULES, MILLIJOULES = 1e-6, 1e-3
JOULES = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "kWh": 3.6e6, "joules": 1.0}
POLL_SECONDS = 20.0  # between readings of the counters: 262 kJ, the usual range, last for 130 s at 2 kW
AUTO, RAPL, NVML, CODECARBON = SOURCES = "auto", "rapl", "nvml", "codecarbon"


@dataclass(frozen=True)
class Energy(Meter):
    """The energy that a machine draws while the objective runs. As text ``cost="energy"``.

    Measured by the processor's RAPL counters where they can be read, else estimated by codecarbon
    (``pip install "shoestring[energy]"``).

    unit       "J", "kJ", "MJ", "Wh" or "kWh"
    source     "rapl", "codecarbon", or "nvml" for the GPUs alone; "auto" takes RAPL, or else codecarbon
    gpus       whether the energy of the visible NVIDIA GPUs is added to that of the processor, if pynvml is installed
    powercap   the folder with the RAPL counters, where a container has it in another place
    share      whether a trial is charged its share of the processor, by CPU time: several run at once

    >>> st.Energy(unit="kWh").unit
    'kWh'
    """

    unit: str = "J"
    source: str = AUTO
    gpus: bool = True
    powercap: str = POWERCAP
    share: bool = False
    UNITS: ClassVar[dict[str, float]] = JOULES

    def __post_init__(self) -> None:
        self._require_known_unit()
        if self.source not in SOURCES:
            raise MethodError(f'Energy: source must be "auto", "rapl", "nvml" or "codecarbon", not {self.source!r}')

    @property
    def whole_process(self) -> bool:
        return True

    def for_workers(self, count: int) -> Self:
        return replace(self, share=True) if count > 1 else self

    def start(self) -> Measurement:
        if self.source == NVML:
            joules = nvidia_counter()
            if joules is None:
                raise MethodError("the energy of GPUs cannot be measured here: no NVIDIA GPU answers; pip install nvidia-ml-py")
            return Measurement(joules, self._scale)
        problem = "" if self.source == CODECARBON else rapl_problem(Path(self.powercap))
        if self.source != CODECARBON and not problem:
            return RaplMeasurement(Path(self.powercap), nvidia_counter() if self.gpus else None, self._scale, self.share)
        if self.source != RAPL and importlib.util.find_spec("codecarbon") is not None:
            return CodecarbonMeasurement(self._scale)
        estimate = 'install codecarbon, which estimates it: pip install "shoestring[energy]"'
        if self.source == CODECARBON:
            raise MethodError(f"energy cannot be estimated here: codecarbon is not installed; {estimate}")
        raise MethodError(f"energy cannot be measured here: {problem}; {estimate}" if self.source == AUTO else
                          f"energy cannot be measured here: {problem}; or give source=\"auto\"")


# -- RAPL ----------------------------------------------------------------------------------------------------------------


def rapl_zones(folder: Path) -> list[Path]:
    """The counters that together are the processor and its memory, each counted once.

    ``intel-rapl:0`` is a package, ``intel-rapl:0:1`` a part of it. The memory (dram) is not part of its package's counter, all
    other parts are. The zone ``psys``, of the whole board, holds the packages again.
    """
    found = []
    for zone in sorted(folder.glob("*-rapl*:*")):
        if "mmio" in zone.name or not (zone / "energy_uj").exists():
            continue
        name, depth = zone_name(zone), zone.name.count(":")
        if (depth == 1 and name != "psys") or (depth == 2 and name == "dram"):
            found.append(zone)
    return found


def zone_name(zone: Path) -> str:
    with contextlib.suppress(OSError):
        return (zone / "name").read_text(encoding="ascii").strip()
    return ""


def rapl_problem(folder: Path) -> str:
    """Why the counters cannot be read; empty if they can."""
    zones = rapl_zones(folder)
    if not zones:
        return f"there are no RAPL counters in {folder} (a virtual machine often has none)"
    try:
        for zone in zones:
            for file in (zone / "energy_uj", zone / "max_energy_range_uj"):
                int(file.read_text(encoding="ascii"))
    except OSError as error:
        return f"{file} cannot be read ({error.strerror}): root can allow it, chmod o+r {folder}/*/{file.name}"
    except ValueError:
        return f"{file} holds no number"
    return ""


class RaplCounter:
    """The joules of some counters since it was made: a counter that began again at 0 has not gone back."""

    def __init__(self, zones: list[Path]) -> None:
        self._files = [zone / "energy_uj" for zone in zones]
        self._ranges = [self._number(zone / "max_energy_range_uj") for zone in zones]
        self._last = [self._number(file) for file in self._files]
        self._total, self._lock = 0, threading.Lock()

    @staticmethod
    def _number(file: Path) -> int:
        return int(file.read_text(encoding="ascii"))

    def joules(self) -> float:
        with self._lock:
            now = [self._number(file) for file in self._files]
            for new, old, full in zip(now, self._last, self._ranges, strict=True):
                self._total += new - old if new >= old else new - old + full
            self._last = now
            return self._total * MICROJOULES


class RaplMeasurement(Measurement):
    """A measurement by RAPL, and by NVML for GPUs, with the thread that reads the counters before they are full."""

    def __init__(self, folder: Path, gpu_joules: Callable[[], float] | None, scale: float, share: bool) -> None:
        self._rapl, self._gpu_joules, self._share = RaplCounter(rapl_zones(folder)), gpu_joules, share
        self._gpu_start = 0.0 if gpu_joules is None else gpu_joules()
        self._own_start, self._all_start = (cpu_seconds(), busy_seconds()) if share else (0.0, 0.0)
        self._ended = threading.Event()
        super().__init__(self._rapl.joules, scale)
        threading.Thread(target=self._poll, name="shoestring energy", daemon=True).start()

    def _poll(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            self._rapl.joules()

    def read(self) -> float:
        cpu = super().read()
        if self._share:
            busy = busy_seconds() - self._all_start
            cpu *= min(1.0, (cpu_seconds() - self._own_start) / busy) if busy > 0 else 0.0
        gpu = 0.0 if self._gpu_joules is None else self._gpu_joules() - self._gpu_start
        return cpu + gpu * self._scale

    def close(self) -> None:
        self._ended.set()


def busy_seconds() -> float:
    """CPU time of all processes of this machine since it was started."""
    user, nice, system, _, _, irq, softirq, steal = PROC_STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    ticks = sum(map(int, (user, nice, system, irq, softirq, steal)))
    return ticks / float(os.sysconf("SC_CLK_TCK"))


# -- NVML ----------------------------------------------------------------------------------------------------------------


def nvidia_counter() -> Callable[[], float] | None:
    """A function for the joules that the visible NVIDIA GPUs have drawn so far; None if they cannot be read."""
    if importlib.util.find_spec("pynvml") is None:
        return None
    nvml: Any = import_module("pynvml")
    try:
        nvml.nvmlInit()
        handles = list(gpu_handles(nvml))

        def joules() -> float:
            return float(sum(nvml.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in handles)) * MILLIJOULES

        joules()
    except nvml.NVMLError:  # no driver, or a GPU from before 2017, which has no such counter
        return None
    return joules if handles else None


def gpu_handles(nvml: Any) -> Iterator[Any]:
    """The visible GPUs, by number or by the beginning of their UUID, as CUDA_VISIBLE_DEVICES names them."""
    every = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    ids = visible_ids()
    if ids is None:
        yield from every
        return
    for index, handle in enumerate(every):
        uuid = nvml.nvmlDeviceGetUUID(handle)
        uuid = uuid.decode() if isinstance(uuid, bytes) else uuid
        if any(entry == str(index) or (not entry.isdecimal() and uuid.startswith(entry)) for entry in ids):
            yield handle


# -- codecarbon ----------------------------------------------------------------------------------------------------------


_trackers: dict[int, Any] = {}  # by process: to find out what the machine has takes seconds


def carbon_tracker() -> Any:
    """The tracker of this process. It asks no server and writes no file."""
    if os.getpid() not in _trackers:
        codecarbon: Any = import_module("codecarbon")
        _trackers.clear()
        _trackers[os.getpid()] = codecarbon.OfflineEmissionsTracker(
            country_iso_code="USA", save_to_file=False, log_level="error", allow_multiple_runs=True, tracking_mode="process"
        )  # the country is that of its emissions, which are not used
    return _trackers[os.getpid()]


class CodecarbonMeasurement(Measurement):
    """A measurement by codecarbon: a row of its tasks, each from one reading to the next."""

    def __init__(self, scale: float) -> None:
        self._tracker, self._joules, self._lock, self._open = carbon_tracker(), 0.0, threading.Lock(), True
        self._tracker.start_task()
        super().__init__(self._so_far, scale)

    def _so_far(self) -> float:
        with self._lock:
            if self._open:
                self._joules += float(self._tracker.stop_task().energy_consumed) * JOULES["kWh"]
                self._tracker.start_task()
            return self._joules

    def close(self) -> None:
        with self._lock:
            if self._open:
                self._open = False
                self._tracker.stop_task()
