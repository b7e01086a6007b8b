"""Stage two: go through a recorded run again and store what each variant says along it. One line of JSON a run and variant."""

import math
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cost_aware import lines
from benchmarks.termination import catalog
from benchmarks.termination.recordings import Recording
from benchmarks.termination.variants import FIRST, VARIANTS


@dataclass(frozen=True)
class Series:
    """``values`` after ``FIRST``, ``FIRST + every``, ... evaluations; None is infinite."""

    problem: str
    method: str
    seed: int
    variant: str
    evaluations: int
    every: int
    values: list[float | None]
    seconds: float

    @property
    def key(self) -> tuple[str, str, int]:
        return self.problem, self.method, self.seed

    @property
    def steps(self) -> list[int]:
        return steps(self.evaluations, self.every)


def steps(evaluations: int, every: int) -> list[int]:
    return list(range(FIRST, evaluations + 1, every))


def replay(recording: Recording, variant: str, every: int) -> Series:
    chosen = VARIANTS[variant]
    every = chosen.every or every
    problem = catalog.load(recording.problem, recording.seed)
    history, began = recording.history(problem), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = chosen.series(problem, history, steps(recording.evaluations, every))
    values = [float(f"{value:.6g}") if math.isfinite(value) else None for value in found]
    seconds = round(time.perf_counter() - began, 2)
    return Series(*recording.key, variant, recording.evaluations, every, values, seconds)


def path_of(folder: Path, variant: str, method: str) -> Path:
    return folder / "series" / variant / f"{method}.jsonl"


def read(folder: Path, variant: str, method: str, evaluations: int) -> list[Series]:
    found: dict[tuple[str, str, int], Series] = {}
    for entry in lines.read(path_of(folder, variant, method)):
        series = Series(**entry)
        if series.evaluations == evaluations:
            found.setdefault(series.key, series)
    return list(found.values())


def replay_missing(folder: Path, recordings: Iterable[Recording], variants: Sequence[str], every: int) -> None:
    """Replay what is recorded and not yet replayed, seeds outermost; a variant that cannot be computed is passed over."""
    from shoestring import ShoestringError

    stored: dict[tuple[str, str], set[tuple[str, str, int]]] = {}
    broken: set[str] = set()
    for recording in sorted(recordings, key=lambda found: found.seed):
        for variant in variants:
            limit = VARIANTS[variant].seeds
            if variant in broken or (limit is not None and recording.seed >= limit):
                continue
            at = (variant, recording.method)
            if at not in stored:
                stored[at] = {series.key for series in read(folder, *at, recording.evaluations)}
            if recording.key in stored[at]:
                continue
            try:
                series = replay(recording, variant, every)
            except (AttributeError, ImportError, ShoestringError) as problem:
                broken.add(variant)
                print(f"{variant} is left out: {problem}", file=sys.stderr, flush=True)
                continue
            lines.append(path_of(folder, *at), asdict(series))
            print(
                f"{time.strftime('%H:%M:%S')} replayed seed {recording.seed} {recording.problem} {recording.method} {variant}: "
                f"{series.seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
