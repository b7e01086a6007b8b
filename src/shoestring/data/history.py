"""What happened: a frozen view of a study's trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np

from ..space.space import Space
from .intermediate import MAX_VALUES_PER_STUDY, IntermediateValue, all_intermediate_values
from .persistent_list import PersistentList
from .trial import State, Trial
from .trial_table import TrialTable


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """The trials of a study in order of their number: a tuple of them, or Pages that nobody writes to any more."""

    trials: Sequence[Trial]
    space: Space
    maximize: bool = False
    shared: TrialTable | None = field(default=None, compare=False, repr=False)  # the study's, as long as they have this stamp
    version: int = field(default=0, compare=False, repr=False)

    @property
    def table(self) -> TrialTable:
        """The trials as arrays: to look at, not to change."""
        return self.shared if self.shared is not None and self.shared.version == self.version else self._own

    @cached_property
    def _own(self) -> TrialTable:
        return TrialTable.of(self.trials, self.space)

    def __len__(self) -> int:
        return len(self.trials)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, index: int | slice) -> Trial | tuple[Trial, ...]:
        return tuple(self.trials[index]) if isinstance(index, slice) else self.trials[index]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @property
    def counted(self) -> int:
        """Trials that were not abandoned."""
        return len(self) - self.number_of(State.ABANDONED)

    def number_of(self, *states: State) -> int:
        return int(np.count_nonzero(self.table.having(*states)))

    def having(self, *states: State) -> tuple[Trial, ...]:
        return tuple(self.trials[row] for row in np.flatnonzero(self.table.having(*states)).tolist())

    @property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        columns = self.table
        done = np.flatnonzero(columns.having(State.DONE))
        pool = done[columns.at_target[done]] if columns.at_target[done].any() else done
        sign = -1.0 if self.maximize else 1.0
        return self.trials[pool[np.argmin(sign * columns.value[pool])]] if len(pool) else None

    def ranked(self) -> list[Trial]:
        """Finished trials at the target fidelity, best first; at any fidelity while there is none at the target."""
        done = self.having(State.DONE)
        pool = [trial for trial in done if self.at_target(trial)] or done
        return sorted(pool, key=lambda trial: float(trial.value or 0.0), reverse=self.maximize)

    @property
    def spent(self) -> float:
        """The cost of all trials so far, failed and abandoned ones included."""
        return float(self.table.cost[: len(self)].sum())

    @property
    def warm_start(self) -> Mapping[str, Any] | None:
        """What the last model-based suggestion left behind."""
        remembers = self.table.has_model[: len(self)]
        last = len(self) - 1 - int(np.argmax(remembers[::-1])) if remembers.any() else None
        return None if last is None else self.trials[last].suggestion["model"]

    def first(self, count: int) -> History:
        """As it was when there were ``count`` trials, had each been finished before the next was asked."""
        columns = self.table.first(count)
        return History(self.trials[:count], self.space, self.maximize, columns, columns.version)

    def also(self, trials: Sequence[Trial]) -> History:
        """With further trials."""
        found = PersistentList(self.trials)
        found.extend(trials)
        return History(found, self.space, self.maximize)

    @cached_property
    def intermediate(self) -> list[IntermediateValue]:
        """What trials reported along the way, as far as it counts as observations."""
        told = self.table.has_reports[: len(self)]
        if not self._target or np.count_nonzero(told & ~self.table.having(State.ABANDONED)) > MAX_VALUES_PER_STUDY:
            return []  # of so many trials not even one report each
        return all_intermediate_values([self.trials[row] for row in np.flatnonzero(told).tolist()], self.trials, self.space)

    def at_target(self, trial: Trial) -> bool:
        return all(trial.config[name] == goal for name, goal in self._target)

    @cached_property
    def _target(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.space.target.items())

    def results(self) -> list[float | None]:
        """The values of finished trials at the target fidelity in order of number; None for a failed one."""
        columns = self.table
        rows = np.flatnonzero(columns.having(State.DONE, State.FAILED) & columns.at_target[: len(self)])
        done = columns.having(State.DONE)[rows].tolist()
        return [value if known else None for value, known in zip(columns.value[rows].tolist(), done, strict=True)]

    @property
    def evaluations(self) -> int:
        """Finished trials that a model of the target learns from: where there are fidelities, those at lower ones too."""
        done = self.table.having(State.DONE)
        return int(done.sum() if self._target else (done & self.table.at_target[: len(self)]).sum())

    def bests(self) -> list[tuple[float, float]]:
        """(cost spent, best value) after each finished trial at the target fidelity, for convergence plots."""
        steps, spent, best = list[tuple[float, float]](), 0.0, np.nan
        pick = np.fmax if self.maximize else np.fmin
        for trial in self.trials:
            spent += trial.cost or 0.0
            if trial.state is State.DONE and self.at_target(trial):
                best = float(pick(best, float(trial.value or 0.0)))
                steps.append((spent, best))
        return steps
