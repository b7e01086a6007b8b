"""A recorded run with all that was computed along it: what the figures are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.termination import catalog, replay
from benchmarks.termination.measures import Judged, judge
from benchmarks.termination.recordings import Recording, read
from benchmarks.termination.replay import Series
from benchmarks.termination.rules import Rule
from benchmarks.termination.variants import VARIANTS


@dataclass(frozen=True)
class Case:
    """``series`` by variant; ``optimum`` is None where it is not known."""

    recording: Recording
    optimum: float | None
    series: dict[str, Series]

    def under(self, rule: Rule) -> Judged | None:
        """What the rule would have made of the run; None where its numbers are missing."""
        series = None if rule.variant is None else self.series.get(rule.variant)
        if rule.variant is not None and series is None:
            return None
        run = self.recording
        return judge(run.values, run.costs, run.tests, rule.stop(run, series), self.optimum)

    def thinned(self, every: int) -> "Case":
        """As if every variant had been asked no more often than that."""
        return replace(self, series={name: thin(series, every) for name, series in self.series.items()})


def thin(series: Series, every: int) -> Series:
    if series.every >= every or every % series.every:
        return series
    return replace(series, every=every, values=series.values[:: every // series.every])


def gather(folder: Path, suite: str, names: Sequence[str], methods: Sequence[str], evaluations: int) -> list[Case]:
    """Every recorded run of the suite, in order of searcher, problem and seed."""
    found: list[Case] = []
    for method in methods:
        series = {name: {item.key: item for item in replay.read(folder, name, method, evaluations)} for name in VARIANTS}
        for recording in sorted(read(folder, method, evaluations), key=lambda run: (run.problem, run.seed)):
            if recording.problem in names:
                optimum = None if suite in catalog.CROSSVAL else catalog.load(recording.problem, recording.seed).optimum
                mine = {name: known[recording.key] for name, known in series.items() if recording.key in known}
                found.append(Case(recording, optimum, mine))
    return found
