"""Cost meters: what an evaluation costs, measured where its objective runs.

    meter       units            what is counted                                            as text
    WallTime    s                the time from the call of the objective to its return      "seconds"
    CPUTime     CPU-s, CPU-h     CPU time of the process and of the children it waited for  "cpu"
    GPUTime     GPU-s, GPU-h     the same time as WallTime, for each GPU that is visible    "gpu"
    Energy      J, Wh, kWh, ...  what the machine draws (``energy.py``)                     "energy"
    Money       USD, ...         a price for each hour: of the machine, a CPU, a GPU

A meter is a specification, and can be pickled. ``check`` says whether it can be read on this machine, before any trial runs.
``start`` begins one measurement, in the process that evaluates the trial.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

from .._format import listed
from .._validation import is_number, number_between
from ..errors import MethodError

SECONDS_PER_HOUR = 3600.0
MACHINE, CPU, GPU = "machine", "cpu", "gpu"  # keys of a price table; any other key is the model of a GPU
SMI_SECONDS = 20.0  # for nvidia-smi to answer


class Measurement:
    """One measurement of a meter, begun when it was made.

    counter   a function whose difference from the beginning is what was used; any thread may call it
    scale     what a reading is multiplied by

    >>> odometer = iter([40.0, 52.0])
    >>> st.Measurement(lambda: next(odometer), scale=0.5).read()
    6.0
    """

    def __init__(self, counter: Callable[[], float], scale: float = 1.0) -> None:
        self._counter, self._scale = counter, scale
        self._start = counter()

    def read(self) -> float:
        """The amount so far."""
        used = self._counter() - self._start
        return (0.0 if used < 0.0 else used) * self._scale  # what is not a number stays so: such a cost is refused

    def close(self) -> None:
        """End what the measurement needs, such as a thread. It can be read until then.

        A subclass that needs nothing leaves it as it is.
        """


class Meter(ABC):
    """A cost meter: give it as ``cost=`` to a study, ``st.minimize`` or ``st.maximize``.

    Derive from it to measure something else: define ``start``, and ``unit`` as a field or an attribute.

    unit    the unit of its readings, which becomes the study's unit of cost
    UNITS   the units that it can count in, and how many of the smallest each of them is

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Calls(st.Meter):
    ...     unit: str = "calls"
    ...     def start(self):
    ...         return st.Measurement(lambda: 1.0)
    >>> study = st.Study(st.Space(x=st.Float(0, 1)), cost=Calls(), method=st.Random())
    >>> study.minimize(lambda config: config["x"], budget=2).unit
    'calls'
    """

    unit: str
    UNITS: ClassVar[Mapping[str, float]] = {}

    @abstractmethod
    def start(self) -> Measurement:
        """Begin a measurement in this process; a MethodError if that is not possible here."""

    def check(self) -> None:
        """Raise MethodError if it cannot be read on this machine: what is missing, and how to get it."""
        measurement, kind = self.start(), type(self).__name__
        if not isinstance(measurement, Measurement):
            raise MethodError(f"{kind}.start must return st.Measurement(counter), not {measurement!r}")
        reading = measurement.read()
        measurement.close()
        if not is_number(reading) or not math.isfinite(reading):
            raise MethodError(f"{kind}: its reading is {reading!r}; the counter of its measurement must return a finite number")

    @property
    def by_time_alone(self) -> bool:
        """Whether the measured time is all that counts. Then the loop counts it itself, and nothing has to be started."""
        return False

    @property
    def hourly_price(self) -> float | None:
        """What an hour costs, where time is all that counts and is not counted in seconds."""
        return None

    @property
    def whole_process(self) -> bool:
        """Whether a reading is that of a whole process: then trials in threads of one process cannot be told apart."""
        return False

    def in_unit(self, unit: str) -> Self:
        """The same meter with readings in another unit; a MethodError if it has no such unit."""
        if unit == self.unit:
            return self
        if unit not in self.UNITS:
            known = listed(list(self.UNITS) or [self.unit])
            raise MethodError(f"costs are in {unit}, but {self!r} counts in {known}; give one unit, or another cost=")
        return replace(self, unit=unit)  # type: ignore[type-var]  # every meter with UNITS is a dataclass

    def for_workers(self, count: int) -> Self:
        """The meter for trials of which so many run on one machine at once."""
        return self

    @property
    def _scale(self) -> float:
        """From the smallest unit to that of the readings."""
        return 1.0 / self.UNITS[self.unit]

    def _require_known_unit(self) -> None:
        if self.unit not in self.UNITS:
            raise MethodError(f"{type(self).__name__}: unit={self.unit!r} is not known; there are {listed(list(self.UNITS))}")


@dataclass(frozen=True)
class MeteredObjective:
    """An objective and the meter that its evaluations are measured with."""

    objective: Callable[..., Any]
    meter: Meter

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.objective(*args, **options)


# -- time ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WallTime(Meter):
    """Seconds from the call of the objective to its return. This is what counts without a meter; as text ``cost="seconds"``.

    >>> st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 2, cost="seconds", method=st.Random()).unit
    's'
    """

    unit: str = "s"
    UNITS: ClassVar[Mapping[str, float]] = {"s": 1.0}

    def __post_init__(self) -> None:
        self._require_known_unit()

    @property
    def by_time_alone(self) -> bool:
        return True

    def start(self) -> Measurement:
        return Measurement(time.perf_counter)


@dataclass(frozen=True)
class CPUTime(Meter):
    """CPU time: of all threads of the process that runs the objective, and of the child processes that it waited for.

    As text ``cost="cpu"``. A process that is started and not waited for is not counted.

    unit   "CPU-s" or "CPU-h"

    >>> result = st.minimize(lambda c: sum(range(9)), st.Space(x=st.Float(0, 1)), 2, cost="cpu", method=st.Random())
    >>> result.unit
    'CPU-s'
    """

    unit: str = "CPU-s"
    UNITS: ClassVar[Mapping[str, float]] = {"CPU-s": 1.0, "CPU-h": SECONDS_PER_HOUR}

    def __post_init__(self) -> None:
        self._require_known_unit()

    @property
    def whole_process(self) -> bool:
        return True

    def start(self) -> Measurement:
        return Measurement(cpu_seconds, self._scale)


@dataclass(frozen=True)
class GPUTime(Meter):
    """GPU seconds: the time of an evaluation, times the number of GPUs that its process can see. As text ``cost="gpu"``.

    GPUs are those of ``CUDA_VISIBLE_DEVICES`` where that is set, or else those that ``nvidia-smi`` lists. A GPU counts whether it
    computes or not, as it does on a bill.

    unit   "GPU-s" or "GPU-h"
    gpus   how many GPUs a trial has, where that is known: 0.5 if two trials share one. None: as many as are visible

    >>> st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 2, cost=st.GPUTime(gpus=2), method=st.Random()).unit
    'GPU-s'
    """

    unit: str = "GPU-s"
    gpus: float | None = None
    UNITS: ClassVar[Mapping[str, float]] = {"GPU-s": 1.0, "GPU-h": SECONDS_PER_HOUR}

    def __post_init__(self) -> None:
        self._require_known_unit()
        number_between(self.gpus, "GPUTime: gpus", 0.0, low_included=False, optional=True)

    def start(self) -> Measurement:
        return Measurement(time.perf_counter, self._scale * (self.gpus or require_gpus("GPUTime(gpus=1)")))


def cpu_seconds() -> float:
    """CPU time of this process and of the children that it waited for, since they began."""
    try:
        import resource  # Linux and macOS have it
    except ImportError:
        raise MethodError('cost="cpu" needs Linux or macOS: this system does not count the CPU time of child processes') from None
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# -- money ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Money(Meter):
    """Money: a price for each hour, of the machine or of what a trial uses of it.

    per_hour  a number, the price of an hour of the machine. Or a table of prices: "machine" for an hour of time, "cpu" for an
              hour of CPU time, "gpu" for an hour of each visible GPU, or the model of a GPU, such as "A100", in place of "gpu".
              The prices are added
    unit      the currency

    >>> space, price = st.Space(x=st.Float(0, 1)), st.Money(per_hour=2.5)
    >>> result = st.minimize(lambda c: c["x"], space, st.Budget(trials=2, cost=20), cost=price, method=st.Random())
    >>> result.unit, 0 < result.spent
    ('USD', True)
    >>> st.Money(per_hour={"machine": 0.10, "cpu": 0.04}).unit
    'USD'
    """

    per_hour: float | Mapping[str, float]
    unit: str = "USD"

    def __post_init__(self) -> None:
        prices = self.per_hour if isinstance(self.per_hour, Mapping) else {MACHINE: self.per_hour}
        if not prices:
            raise MethodError('Money: the price table is empty; write per_hour={"machine": 0.4} or per_hour=0.4')
        for device, price in prices.items():
            if not isinstance(device, str) or not device.strip():
                raise MethodError(f'Money: a price is of "machine", "cpu", "gpu" or the model of a GPU, not of {device!r}')
            if not is_number(price) or not 0 < price < float("inf"):
                raise MethodError(f"Money: the price of an hour ({device}) must be a positive number, not {price!r}")
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise MethodError(f'Money: unit must be a currency, such as "USD", not {self.unit!r}')

    @property
    def prices(self) -> Mapping[str, float]:
        return self.per_hour if isinstance(self.per_hour, Mapping) else {MACHINE: self.per_hour}

    @property
    def by_time_alone(self) -> bool:
        return set(self.prices) == {MACHINE}

    @property
    def hourly_price(self) -> float | None:
        return self.prices[MACHINE] if self.by_time_alone else None

    @property
    def whole_process(self) -> bool:
        return CPU in self.prices

    def in_unit(self, unit: str) -> Self:
        if unit != self.unit:
            raise MethodError(f"costs are in {unit}, but {self!r} counts in {self.unit}; give Money(..., unit={unit!r})")
        return self

    def start(self) -> Measurement:
        rates = {device: price / SECONDS_PER_HOUR for device, price in self.prices.items()}
        cpu, time_rate = rates.pop(CPU, 0.0), rates.pop(MACHINE, 0.0)
        if rates:
            time_rate += gpu_rate(rates)
        if not cpu:
            return Measurement(time.perf_counter, time_rate)
        return Measurement(lambda: time_rate * time.perf_counter() + cpu * cpu_seconds())


def gpu_rate(rates: Mapping[str, float]) -> float:
    """The price of a second of all visible GPUs: each by its model, or else by "gpu"."""
    if set(rates) == {GPU}:
        return rates[GPU] * require_gpus('Money(per_hour={"machine": ...})')
    models, total = visible_models(), 0.0
    if not models:
        raise MethodError(f"{no_gpu()}, and the price table names {listed(list(rates))}; give a price for 'machine' instead")
    for model in models:
        named = [name for name in rates if name != GPU and is_named(name, model)]
        found = max(named, key=len, default=GPU)  # "L40S" before "L40", whatever their order
        if found not in rates:
            known = listed([repr(name) for name in rates])
            raise MethodError(f"Money: there is no price for the GPU {model!r}, only for {known}; add it, or one for 'gpu'")
        total += rates[found]
    return total


def is_named(name: str, model: str) -> bool:
    """Whether a key of a price table is in the name of a GPU, as whole words: "A10" is not in "NVIDIA A100"."""
    return re.search(rf"(?<![a-z0-9]){re.escape(name.lower())}(?![a-z0-9])", model.lower()) is not None


# -- GPUs ----------------------------------------------------------------------------------------------------------------


def require_gpus(instead: str) -> float:
    """The number of visible GPUs; a MethodError if there are none."""
    listed_ids = visible_ids()
    count = len(visible_models()) if listed_ids is None else len(listed_ids)
    if not count:
        raise MethodError(f"{no_gpu()}; if there is one, say so: cost=st.{instead}")
    return float(count)


def no_gpu() -> str:
    """Why no GPU is visible."""
    if visible_ids() is not None:
        return f"no GPU is visible here: CUDA_VISIBLE_DEVICES is {os.environ.get('CUDA_VISIBLE_DEVICES')!r}"
    return "no GPU was found here: CUDA_VISIBLE_DEVICES is not set, and nvidia-smi lists none"


def visible_ids() -> list[str] | None:
    """The entries of CUDA_VISIBLE_DEVICES; None if it is not set. As CUDA does, what follows -1 is ignored."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None or text.strip() == "all":
        return None
    found = list[str]()
    for entry in (part.strip() for part in text.split(",")):
        if not entry or entry.startswith("-"):
            break
        found.append(entry)
    return found


def visible_models() -> list[str]:
    """The models of the visible GPUs, by nvidia-smi; empty without it."""
    rows, ids = installed_gpus(), visible_ids()
    if ids is None:
        return [model for _, _, model in rows]
    return [model for entry in ids for index, uuid, model in rows if entry == index or uuid.startswith(entry)]


@cache  # the program takes up to a second, and every trial of a process asks
def installed_gpus() -> tuple[tuple[str, str, str], ...]:
    """Index, UUID and model of each GPU that nvidia-smi lists; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        query = [program, "--query-gpu=index,uuid,name", "--format=csv,noheader"]
        text = subprocess.run(query, capture_output=True, text=True, timeout=SMI_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = [line.split(",", 2) for line in text.splitlines() if line.count(",") >= 2]
    return tuple((index.strip(), uuid.strip(), model.strip()) for index, uuid, model in rows)


# -- from text -----------------------------------------------------------------------------------------------------------


WORDS: dict[str, str] = {"seconds": "WallTime", "cpu": "CPUTime", "gpu": "GPUTime", "energy": "Energy", "money": "Money"}
HOW_TO_WRITE = 'give "seconds", "cpu", "gpu", "energy", st.Money(per_hour=...) or another meter'


def meter_text(text: str) -> str:
    """The call that a word stands for: "cpu" is ``CPUTime``; any other text unchanged."""
    word = text.strip().lower()
    if word == "money":
        raise MethodError('cost="money" needs a price: st.Money(per_hour=2.5), or a table, per_hour={"cpu": 0.04, "gpu": 2.5}')
    return WORDS.get(word, text)
