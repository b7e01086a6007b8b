"""A study of Optuna as this library sees it: the finished and running trials as a history, brought up to date trial by trial.

    OptunaTrials   what is known of an Optuna study: its distributions, its conditions, its steps, and the mirrors made from it
    Mirror         a space, and the trials as records of this library and as a table; it suggests, and it gives the belief

An Optuna study has no search space. The space is that of the finished trials: all their parameters, with the conditions that
explain when each was sampled (``optuna_spaces``). Parameters that nothing explains get a mirror of their own for each group that
is sampled together. When a new trial changes that space, the mirror is made anew; otherwise a trial costs one row.

    COMPLETE   done, at the target
    PRUNED     done, at the step of its last intermediate value, which is below the target; without one, failed
    FAIL       failed: the search avoids such regions
    RUNNING    pending, with the values that were suggested to it

Where trials report intermediate values, the space gets a fidelity, STEP: the step of a report, counted from 1. Its target is the
highest step; where a trial was pruned there, one more, so that a pruned trial never counts as a result (``OptunaTrials.span``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from ..acquisition.cost_adjusted import CostAdjustedEI
from ..acquisition.cost_aware import EIAlpha
from ..acquisition.improvement import LogEI
from ..budget import Budget
from ..data.history import History
from ..data.persistent_list import PersistentList
from ..data.trial import State, Suggestion, Trial
from ..data.trial_table import TrialTable
from ..errors import ConfigError, NothingFits, SpaceExhausted
from ..search.auto import COST_EXPONENT, Auto, read_search_method, why_costs_do_not_matter
from ..search.base import SearchContext
from ..search.bayes import Bayes
from ..search.budget_filter import filter_by_budget
from ..space.parameters import Fidelity
from ..space.space import Config, Parameter, Space
from ..study import Study
from .optuna_spaces import (
    Conditions,
    can_be_searched,
    conditions_of,
    external_value,
    holds,
    in_numbers,
    internal_value,
    merged,
    merged_widest,
)
from .optuna_trials import STEP, last_step, to_trial

log = logging.getLogger("shoestring")

PARAMS_KEY = "shoestring:params"  # system attribute: the internal values that were suggested to a running trial
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


@dataclass(frozen=True, kw_only=True)
class MirrorOptions:
    """How mirrors are made: what a study of this library gets, and which cost a trial has.

    cost   "seconds" (the duration), the name of a user attribute, or None: costs are left out
    """

    method: Any = "auto"
    seed: int = 0
    initial: int = 8
    cost: str | None = "seconds"
    budget: Budget | None = None
    cost_model: Any = "auto"
    model: Any = None


class Mirror:
    """Trials of an Optuna study in one space: a history that grows, and a study of this library that suggests from it."""

    def __init__(
        self, distributions: Mapping[str, BaseDistribution], conditions: Conditions, steps: tuple[int, int] | None,
        direction: Any, options: MirrorOptions,
    ) -> None:  # fmt: skip
        self.distributions, self.conditions, self.steps, self.options = dict(distributions), conditions, steps, options
        parameters: dict[str, Parameter] = {
            name: in_numbers(name, each, conditions.get(name)) for name, each in self.distributions.items()
        }
        if steps is not None:
            parameters[STEP] = Fidelity(1, steps[1] - steps[0] + 1, resumable=False)
        self.space = Space(parameters)
        self.chooses = isinstance(read_search_method(options.method), Auto)
        method = LogEI() if self.chooses and steps is not None else options.method  # a method that knows learning curves
        told = options.budget is not None and options.budget.unit is not None  # a unit of its own
        unit = options.cost if options.cost not in (None, "seconds") and not told else None
        self.study = Study(
            self.space, method, stop=None, seed=options.seed, direction=direction, budget=options.budget, unit=unit,
            initial=options.initial, cost_model=options.cost_model, model=options.model,
        )  # fmt: skip
        self.trials: PersistentList[Trial] = PersistentList()
        self.table = TrialTable(self.space)
        self.rows: dict[int, int] = {}  # number in Optuna -> row
        self.ended: set[int] = set()  # numbers in Optuna of trials that have ended, with a row or without
        self.exhausted = False  # whether it was said that nothing is left to try
        self._context: tuple[int, SearchContext] | None = None

    # -- trials --------------------------------------------------------------------------------------------------------

    def update(self, trials: Iterable[FrozenTrial]) -> None:
        """Take over what has happened: each trial that has ended, once, and the values of those that run."""
        new: list[Trial] = []
        for frozen in trials:
            number = frozen.number
            if number in self.ended:
                continue
            ended = frozen.state in FINISHED
            if not ended and (number in self.rows or frozen.state is not TrialState.RUNNING):
                continue
            config = self.config_of(frozen)
            row = self.rows.get(number)
            if row is not None:
                self._flush(new)
                self._replace(row, frozen, config)
            elif config is not None:
                row = len(self.trials) + len(new)
                new.append(to_trial(frozen, row, config, self.steps, self.options.cost))
                self.rows[number] = row
            if ended:
                self.ended.add(number)
        self._flush(new)

    def _flush(self, new: list[Trial]) -> None:
        if new:
            self.table.put_all(len(self.trials), new)
            self.trials.extend(new)
            new.clear()

    def _replace(self, row: int, frozen: FrozenTrial, config: Config | None) -> None:
        """A pending trial has ended; one without all parameters is a trial that tells nothing."""
        before = self.trials[row]
        if config is None:
            trial = replace(before, state=State.ABANDONED)
        else:
            trial = to_trial(frozen, row, config, self.steps, self.options.cost)
            trial = replace(trial, suggestion={**before.suggestion, **trial.suggestion})
        self.put(row, trial)

    def put(self, row: int, trial: Trial) -> None:
        """Write a trial into a row: the next, or one that is there."""
        self.table.put(row, trial)
        if row == len(self.trials):
            self.trials.append(trial)
        else:
            self.trials[row] = trial

    def config_of(self, frozen: FrozenTrial) -> Config | None:
        """The config of a trial, by internal values; None if it does not fit this space."""
        config: Config = {}
        suggested: Mapping[str, Any] = {}
        if frozen.state is TrialState.RUNNING:
            suggested = frozen.system_attrs.get(PARAMS_KEY) or {}
        for name in self.distributions:
            if name in frozen.params:
                if type(frozen.distributions[name]) is not type(self.distributions[name]):
                    return None
                config[name] = internal_value(frozen.distributions[name], frozen.params[name])
            elif name in suggested:
                config[name] = suggested[name]
        try:
            return self.space.check(config)
        except ConfigError:
            return None

    @property
    def history(self) -> History:
        """The trials so far, as stopping rules and models see them."""
        maximize = self.study.direction == "maximize"
        return History(PersistentList(self.trials), self.space, maximize, self.table, self.table.version)

    def context(self) -> SearchContext:
        """All that a method or a rule may look at; kept until the trials change, so that they share its fits."""
        version = self.table.version
        if self._context is None or self._context[0] != version:
            self._context = version, self.study.suggester.context(self.history, budget=self.options.budget)
        return self._context[1]

    # -- suggestions ---------------------------------------------------------------------------------------------------

    def suggest(self, number: int) -> dict[str, Any]:
        """Internal values for trial ``number`` of Optuna, which is pending from now on; random where nothing new is left to try.

        Randomness comes from the seed and from Optuna's number, which no two workers share.
        """
        context = replace(self.context(), number=number)
        method = self.study.suggester.method
        if self.chooses and context.space.fidelities:
            method = self._chosen(context)
        try:
            found = method.suggest(context)
            found = filter_by_budget(found, context) if context.cost_limited else found
        except (SpaceExhausted, NothingFits) as end:
            if not self.exhausted:
                self.exhausted = True
                log.warning("%s; further suggestions are random, since Optuna asks for more", end)
            u = self.space.at_target(self.space.snap(context.rng.random((1, len(self.space)))))
            found = Suggestion(self.space.decode(u[0]), by="Random", why=str(end))
        self._add_pending(number, found)
        return {name: value for name, value in found.config.items() if name != STEP}

    def _chosen(self, context: SearchContext) -> Bayes:
        """What ``Auto`` would choose without fidelities: an Optuna trial decides by itself how many steps it makes."""
        if context.in_initial_design or why_costs_do_not_matter(context) is not None:
            return Bayes(LogEI(), cautious=True)
        return Bayes(EIAlpha(COST_EXPONENT) if context.cost_limited else CostAdjustedEI(), cautious=True)

    def _add_pending(self, number: int, found: Suggestion) -> None:
        row = self.rows.get(number, len(self.trials))
        config = self.space.check({**found.config, **self.space.target})
        trial = Trial(row, config, fidelity=dict(self.space.target), suggestion=found.to_dict())
        self.put(row, trial)
        self.rows[number] = row


@dataclass
class OptunaTrials:
    """What is known of one Optuna study, and the mirrors that were made of it.

    known       the distributions of each parameter: of the last two trials that have it, and the widest range before
    configs     the parameters of complete trials: they have met every parameter that they needed
    steps       the lowest and the highest step of an intermediate value
    pruned_at   the highest step that a pruned trial has reached
    """

    direction: str
    options: MirrorOptions
    trials: Sequence[FrozenTrial] = ()
    known: dict[str, list[BaseDistribution]] = field(default_factory=dict)
    configs: list[Mapping[str, Any]] = field(default_factory=list)
    steps: tuple[int, int] | None = None
    pruned_at: int | None = None
    _seen: set[int] = field(default_factory=set)
    _space: dict[str, BaseDistribution] | None = None
    _structures: dict[frozenset[str], tuple[Conditions, list[list[str]], int]] = field(default_factory=dict)
    _mirrors: dict[frozenset[str], Mirror] = field(default_factory=dict)

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Read the trials that have ended since the last time."""
        self.trials = trials
        for frozen in trials:
            if frozen.number in self._seen or frozen.state not in FINISHED:
                continue
            self._seen.add(frozen.number)
            for name, distribution in frozen.distributions.items():
                self._learn(name, distribution)
            if frozen.state is TrialState.COMPLETE:
                self.configs.append(frozen.params)
            if frozen.intermediate_values:
                low, high = min(frozen.intermediate_values), max(frozen.intermediate_values)
                low, high = (low, high) if self.steps is None else (min(low, self.steps[0]), max(high, self.steps[1]))
                self.steps = low, high
            if frozen.state is TrialState.PRUNED and (reached := last_step(frozen)) is not None:
                self.pruned_at = reached if self.pruned_at is None else max(reached, self.pruned_at)

    @property
    def span(self) -> tuple[int, int] | None:
        """The first step and the target, which complete trials alone have reached; None where one step is all there is."""
        if self.steps is None:
            return None
        low, high = self.steps
        high += self.pruned_at == high
        return (low, high) if low < high else None

    def _learn(self, name: str, distribution: BaseDistribution) -> None:
        known = self.known.setdefault(name, [])
        if known[-2:] == [distribution] * 2:
            return
        if known and known[-1] != distribution:
            known[:] = [merged_widest(known)]
        known.append(distribution)
        self._space = None

    @property
    def search_space(self) -> dict[str, BaseDistribution]:
        """The distributions of all parameters that can be searched, in order of name."""
        if self._space is None:
            found = {name: merged(known) for name, known in sorted(self.known.items())}
            self._space = {name: each for name, each in found.items() if can_be_searched(name, each)}
        return dict(self._space)

    def mirrors(self, space: Mapping[str, BaseDistribution]) -> list[Mirror]:
        """One mirror for the parameters of a space that belong together, and one for each group that nothing explains."""
        conditions, groups = self._structure(space)
        lone = {name for group in groups for name in group}
        main = [name for name in space if name not in lone]
        return [self._mirror({name: space[name] for name in names}, conditions) for names in (main, *groups) if names]

    def _structure(self, space: Mapping[str, BaseDistribution]) -> tuple[Conditions, list[list[str]]]:
        """The conditions and the groups that nothing explains, found anew only when a trial contradicts them."""
        key, count = frozenset(space), len(self.configs)
        found = self._structures.get(key)
        if found is not None:
            conditions, groups, upto = found
            lone = {name for group in groups for name in group}
            main = {name: each for name, each in space.items() if name not in lone}
            if all(holds(conditions, main, config) for config in self.configs[upto:]):
                self._structures[key] = conditions, groups, count
                return conditions, groups
        if all(name in config for config in self.configs for name in space):
            conditions, groups = {}, []
        else:
            conditions, groups = conditions_of(self.configs, space)
        self._structures[key] = conditions, groups, count
        return conditions, groups

    def _mirror(self, space: Mapping[str, BaseDistribution], conditions: Conditions) -> Mirror:
        key = frozenset(space)
        own = {name: when for name, when in conditions.items() if name in space}
        steps = self.span
        found = self._mirrors.get(key)
        if found is None or (found.distributions, found.conditions, found.steps) != (dict(space), own, steps):
            found = self._mirrors[key] = Mirror(space, own, steps, self.direction, self.options)
        found.update(self.trials)
        return found


def external_params(mirror: Mirror, config: Mapping[str, Any]) -> dict[str, Any]:
    """Internal values as Optuna has them."""
    return {name: external_value(mirror.distributions[name], value) for name, value in config.items()}
