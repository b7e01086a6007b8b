"""The history: an immutable view of a study's trials at one moment."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np

from .._format import plural, rounded
from ..space.space import Space
from .intermediate import MAX_VALUES_PER_STUDY, IntermediateValue, all_intermediate_values
from .persistent_list import PersistentList
from .trial import State, Trial
from .trial_table import CODES, TrialTable


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """The trials of a study in order of their number: a sequence that never changes once it is made.

    ``result.history`` and ``study.history`` are histories. Index it, slice it, or loop over it like a list.

    trials        a tuple, or a PersistentList that is no longer written to
    space         the search space
    maximize      whether higher values are better
    shared_table  the study's own table, used as long as it has this ``version``; later a table is made from the trials

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: st.Outcome(c["x"], cost=2), space, 4, method=st.Random()).history
    >>> len(history), history[0].number, [trial.number for trial in history[-2:]]
    (4, 0, [2, 3])
    >>> history.spent, history.evaluations, history.trials_started, history.trials_used, history.trials_added
    (8.0, 4, 4, 4, 0)
    >>> history.best.value == min(trial.value for trial in history)
    True
    >>> history.table.cost[:4].tolist(), history.warm_start, history.intermediate
    ([2.0, 2.0, 2.0, 2.0], None, [])
    """

    trials: Sequence[Trial]
    space: Space
    maximize: bool = False
    shared_table: TrialTable | None = field(default=None, compare=False)
    version: int = field(default=0, compare=False)
    _length: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_length", len(self.trials))

    def __repr__(self) -> str:
        """``History: 40 trials (38 done, 2 failed), best 0.031 (trial 12), spent 512``"""
        counts, best = Counter(trial.state for trial in self.trials), self.best
        text = f"History: {plural(len(self), 'trial')}"
        if counts:
            text += f" ({', '.join(f'{counts[state]} {state}' for state in State if counts[state])})"
        if best is not None:
            text += f", best {rounded(best.value)} (trial {best.number})"
        return f"{text}, spent {rounded(self.spent)}" if counts else text

    @property
    def table(self) -> TrialTable:
        """The trials as arrays. Read only: the arrays are shared."""
        shared = self.shared_table
        return shared if shared is not None and shared.version == self.version else self._own_table

    @cached_property
    def _own_table(self) -> TrialTable:
        return TrialTable.of(self.trials, self.space)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, index: int | slice) -> Trial | tuple[Trial, ...]:
        return tuple(self.trials[index]) if isinstance(index, slice) else self.trials[index]

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @property
    def trials_used(self) -> int:
        """The number of trials that count against a budget of trials: without abandoned ones and results from elsewhere."""
        return self.trials_started - self.trials_added

    @property
    def trials_started(self) -> int:
        """The number of trials that were not abandoned."""
        return len(self) - self.number_of(State.ABANDONED)

    @property
    def trials_added(self) -> int:
        """The number of results from elsewhere."""
        return int(np.count_nonzero(self.table.added[: len(self)]))

    def number_of(self, *states: State) -> int:
        """The number of trials in one of these states.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> _ = study.tell(study.ask(), error="out of memory")
        >>> study.history.number_of(st.State.FAILED), study.history.having(st.State.FAILED)[0].error
        (1, 'out of memory')
        """
        return int(np.count_nonzero(self.table.having(*states)))

    def having(self, *states: State) -> tuple[Trial, ...]:
        """The trials in one of these states."""
        return tuple(self.trials[row] for row in np.flatnonzero(self.table.having(*states)).tolist())

    @cached_property
    def best(self) -> Trial | None:
        """The best finished trial at the target fidelity; at any fidelity while there is none at the target."""
        table = self.table
        done = np.flatnonzero(table.state[: table.count] == CODES[State.DONE])
        at_target = done[table.at_target[done]] if self.space.target else done
        pool = at_target if len(at_target) else done
        values = table.value[pool]
        return self.trials[pool[values.argmax() if self.maximize else values.argmin()]] if len(pool) else None

    def ranked(self) -> list[Trial]:
        """Finished trials at the target fidelity, best first; at any fidelity while there is none at the target.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> for x in (0.4, 0.1, 0.8):
        ...     _ = study.add({"x": x}, value=x)
        >>> [trial.value for trial in study.history.ranked()]
        [0.1, 0.4, 0.8]
        """
        done = self.having(State.DONE)
        pool = [trial for trial in done if self.at_target(trial)] or done
        return sorted(pool, key=lambda trial: float(trial.value or 0.0), reverse=self.maximize)

    @property
    def spent(self) -> float:
        """The cost of all trials so far, failed and abandoned ones included, without results from elsewhere.

        A sum above the largest float is the largest float, as it is in the storage.
        """
        cost, added = self.table.cost[: len(self)], self.table.added[: len(self)]
        with np.errstate(over="ignore"):
            return min(float(cost.sum()) if not added.any() else float(cost[~added].sum()), sys.float_info.max)

    @property
    def warm_start(self) -> Mapping[str, Any] | None:
        """The warm start of the next fit: the model of the last model-based suggestion, None while there is none."""
        has_model = self.table.has_model[: len(self)]
        last = len(self) - 1 - int(np.argmax(has_model[::-1])) if has_model.any() else None
        return None if last is None else self.trials[last].suggestion["model"]

    def head(self, count: int) -> History:
        """The history of the first ``count`` trials, as if each had finished before the next was suggested.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> for x in (0.4, 0.1):
        ...     _ = study.add({"x": x}, value=x)
        >>> first = study.history.head(1)
        >>> first.best.value, len(first.with_trials(study.history[1:]))
        (0.4, 2)
        """
        table = self.table.head(count)
        return History(self.trials[:count], self.space, self.maximize, table, table.version)

    def with_trials(self, trials: Sequence[Trial]) -> History:
        """This history with further trials."""
        longer = PersistentList(self.trials)
        longer.extend(trials)
        return History(longer, self.space, self.maximize)

    @cached_property
    def intermediate(self) -> list[IntermediateValue]:
        """The intermediate values that are used as observations."""
        reporting = self.table.has_reports[: len(self)]
        if not self._target or np.count_nonzero(reporting & ~self.table.having(State.ABANDONED)) > MAX_VALUES_PER_STUDY:
            return []  # with so many trials, not even one value of each
        trials = [self.trials[row] for row in np.flatnonzero(reporting).tolist()]
        return all_intermediate_values(trials, self.trials, self.space, self.table.on_curve)

    def at_target(self, trial: Trial) -> bool:
        """Whether a trial is at the target fidelity.

        >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9)))
        >>> trial = study.add({"x": 0.5, "epochs": 3}, value=0.2)
        >>> study.history.at_target(trial), study.history.results()
        (False, [])
        """
        return all(trial.config[name] == goal for name, goal in self._target)

    @cached_property
    def _target(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.space.target.items())

    def results(self) -> list[float | None]:
        """The values of finished trials at the target fidelity in order of number; None for a failed one."""
        table = self.table
        rows = np.flatnonzero(table.having(State.DONE, State.FAILED) & table.at_target[: len(self)])
        done = table.having(State.DONE)[rows].tolist()
        return [value if known else None for value, known in zip(table.value[rows].tolist(), done, strict=True)]

    @property
    def evaluations(self) -> int:
        """The number of finished trials that the model is fitted to; with fidelities, also those at lower fidelities."""
        done = self.table.having(State.DONE)
        return int(done.sum() if self._target else (done & self.table.at_target[: len(self)]).sum())

    def bests(self) -> list[tuple[float, float]]:
        """The convergence curve: (cost spent, best value so far) after each finished trial at the target fidelity.

        >>> study = st.Study(st.Space(x=st.Float(0, 1)))
        >>> for value in (0.5, 0.7, 0.2):
        ...     _ = study.tell(study.ask(), value, cost=2)
        >>> study.history.bests()
        [(2.0, 0.5), (4.0, 0.5), (6.0, 0.2)]
        """
        steps, spent, best = list[tuple[float, float]](), 0.0, np.nan
        pick = np.fmax if self.maximize else np.fmin
        for trial in self.trials:
            spent = min(spent + trial.charge, sys.float_info.max)
            if trial.state is State.DONE and self.at_target(trial):
                best = float(pick(best, float(trial.value or 0.0)))
                steps.append((spent, best))
        return steps
