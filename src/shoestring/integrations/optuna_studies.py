"""Studies, both ways: an Optuna study becomes a study of this library, and the other way round.

    here                       in Optuna
    done, at the target        COMPLETE
    done, below the target     PRUNED, with its value at its step
    failed                     FAIL; the error is the user attribute "error". PRUNED, if it is an imported one that was pruned
    running                    RUNNING;   queued  WAITING;   abandoned  FAIL, with the user attribute "error"
    cost, seconds              the user attribute "cost", the duration
    reports                    intermediate values: the step is the fidelity; in a space without one, they are counted from 0
    folds                      as optuna.terminator.report_cross_validation_scores keeps them
    attrs, metrics             user attributes; where a name is taken, with "attrs." or "metrics." before it (``user_attributes``)

Optuna stores no space and no conditions. A study that was exported carries its space as the user attribute SPACE_KEY, and has it
again when it is imported. For all others the space is that of the trials: see ``optuna_spaces``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

try:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError('this needs Optuna: pip install "shoestring[optuna]"') from error

from .._format import plural
from ..data.intermediate import Report, was_pruned
from ..data.outcome import read_attr
from ..data.trial import State, Trial
from ..errors import ConfigError, OutcomeError, SpaceError, StudyError
from ..space.parameters import Fidelity
from ..space.space import Config, Space
from ..storage import Storage, open_storage
from ..study import Study
from .optuna_mirror import MirrorOptions, OptunaTrials
from .optuna_sampler import require_one_objective
from .optuna_spaces import conditions_of, external_value, from_distributions, merged_widest, to_distribution
from .optuna_trials import CV_SCORES_KEY, FOLDS_KEY, ended, read_cost, read_folds

SPACE_KEY = "shoestring:space"  # user attribute of an exported study
UNIT_KEY = "shoestring:unit"  # the same: the unit of its costs
COST_ATTR = "cost"  # user attribute of an exported trial
ERROR_ATTR = "error"  # the same, of one that failed
SKIPPED_STATES = (TrialState.RUNNING, TrialState.WAITING)


# -- from Optuna --------------------------------------------------------------------------------------------------------


def from_optuna(
    study: optuna.Study, *, cost: str | None = "auto", leave_out: Iterable[str] = (), step: str = "step", **options: Any
) -> Study:
    """An Optuna study as a study of this library, with all trials that have ended.

    Values, states, intermediate values, durations, folds and user attributes are kept. The trials count as added: they take
    nothing from a budget. Configs that wait in Optuna are enqueued. Running trials, parameters with one value, and failed trials
    without all parameters are left out. All is checked before anything is written, and a study that has trials is not added to.

    A pruned trial is no result: it becomes a trial at its last step below the highest one, with its value there, and a failed
    trial where it has no such value.

    cost        what a trial has cost: "seconds" (its duration), the name of a user attribute, or None. "auto": seconds, or the
                costs of a study that ``to_optuna`` has exported
    leave_out   names of parameters to leave out
    step        the name of the fidelity, where trials report intermediate values
    options     of ``st.Study``: method, stop, seed, storage, name, ...

    >>> import optuna
    >>> from shoestring.integrations.optuna import from_optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> theirs = optuna.create_study(study_name="demo")
    >>> theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    >>> study = from_optuna(theirs)
    >>> study.name, len(study.history), study.best.value == theirs.best_value
    ('demo', 3, True)
    """
    if not isinstance(study, optuna.Study):
        raise StudyError(f"expected an Optuna study, not {study!r}; read one with optuna.load_study(study_name=..., storage=...)")
    require_one_objective(study)
    trials = study.get_trials(deepcopy=False)
    cost, unit = cost_attribute(study, cost, trials)
    space, shift = space_of(study, trials, set(leave_out), step)
    direction = study.direction.name.lower()
    options = {"name": study.study_name, "direction": direction, **options}
    if unit is not None:
        options.setdefault("unit", unit)
    read = [imported(frozen, space, shift, cost) for frozen in trials if frozen.state not in SKIPPED_STATES]
    queue = waiting_configs(trials, space)
    attrs = readable({name: value for name, value in study.user_attrs.items() if name not in (SPACE_KEY, UNIT_KEY)})
    ours = new_study(space, options)
    with ours.state.lock:
        for trial in read:
            if trial is not None:
                ours.state.add(trial)
    for config in queue:
        ours.enqueue(config)
    for name, value in attrs.items():
        ours.set_attr(name, value)
    return ours


def waiting_configs(trials: Iterable[FrozenTrial], space: Space) -> list[Config]:
    """The configs that wait in Optuna; a ConfigError if one does not fit the space."""
    found: list[Config] = []
    for frozen in trials:
        given = frozen.system_attrs.get("fixed_params") if frozen.state is TrialState.WAITING else None
        config = {name: value for name, value in (given or {}).items() if name in space}
        if not config:
            continue
        try:
            space.complete(config, space.decode(np.full(len(space), 0.5)))
        except ConfigError as error:
            how = "take it out of Optuna's queue first: study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)"
            raise ConfigError(f"trial {frozen.number} waits in Optuna and does not fit: {error}; {how}") from None
        found.append(config)
    return found


def new_study(space: Space, options: Mapping[str, Any]) -> Study:
    """A study to import into; a StudyError if its storage has one of that name with trials: they would be there twice."""
    given = options.get("storage")
    if given is None:
        return Study(space, **options)
    where, name = open_storage(given), options["name"]
    present = where.find(name) if isinstance(name, str) else None
    if present is not None and (present.trials or present.waiting):
        url = where.url
        close_opened(where, given)
        held = f"{plural(present.trials, 'trial')} and {plural(present.waiting, 'waiting config')}"
        how = f"give another name=, go on with it by st.Study.load, or delete it first: shoestring rm {name} --yes --storage ..."
        raise StudyError(f"study {name!r} has {held} in {url} already, and would have some twice; {how}")
    ours = Study(space, **{**options, "storage": where})
    ours._opened_storage = where is not given
    return ours


def close_opened(where: Storage, given: Any) -> None:
    """Close a storage that was opened here; one that was given stays open."""
    if where is not given:
        where.close_connections()


def cost_attribute(study: optuna.Study, cost: str | None, trials: Iterable[FrozenTrial]) -> tuple[str | None, str | None]:
    """Where the costs of trials are, and their unit where it is not seconds; a StudyError if no trial has them."""
    if read_cost(cost) == "auto":
        unit = study.user_attrs.get(UNIT_KEY)
        return (COST_ATTR, unit) if unit is not None else ("seconds", None)
    if cost in (None, "seconds"):
        return cost, None
    complete = [each for each in trials if each.state is TrialState.COMPLETE]
    if complete and not any(cost in each.user_attrs for each in complete):
        known = ", ".join(sorted({name for each in complete for name in each.user_attrs})) or "none"
        how = 'name another one, or give cost="seconds" (durations) or None'
        what = f"no trial of {study.study_name!r} has the user attribute {cost!r}, which cost= names"
        raise StudyError(f"{what}; {how}; there are: {known}")
    return cost, cost


def space_of(study: optuna.Study, trials: Iterable[FrozenTrial], leave_out: set[str], step: str) -> tuple[Space, int]:
    """The space of an Optuna study, and what its fidelity is above the step; a SpaceError names what cannot be expressed."""
    known = OptunaTrials("minimize", MirrorOptions())
    known.update(list(trials))
    steps = known.steps if known.steps is not None and known.steps[0] < known.steps[1] else None
    if (stored := study.user_attrs.get(SPACE_KEY)) is not None:
        return Space.from_json(stored), 0
    distributions: dict[str, list[BaseDistribution]] = {}
    for frozen in known.trials:
        for name, each in frozen.distributions.items():
            if name not in leave_out and not each.single():
                distributions.setdefault(name, []).append(each)
    if not distributions:
        raise StudyError(f"study {study.study_name!r} has no space: no trial has a parameter; run a trial in Optuna first")
    widest = {name: merged_widest(each) for name, each in distributions.items()}
    conditions, unexplained = conditions_of(known.configs, widest)
    if unexplained:
        names = ", ".join(name for group in unexplained for name in group)
        how = "leave them out: from_optuna(study, leave_out=[...])"
        raise SpaceError(f"{names}: only some trials have them, and no other parameter explains which ones; {how}")
    when = {
        name: {parent: [external_value(widest[parent], each) for each in values] for parent, values in entry.items()}
        for name, entry in conditions.items()
    }
    parameters = dict(from_distributions(widest, when))
    if steps is not None and step in parameters:
        raise SpaceError(f"there is a parameter {step!r} already; give the steps another name: from_optuna(study, step=...)")
    shift = 0 if steps is None or steps[0] > 0 else 1 - steps[0]  # steps that begin at 0: the fidelity is the number of steps
    if steps is not None:
        parameters[step] = Fidelity(steps[0] + shift, steps[1] + shift)
    return Space(parameters), shift


def imported(frozen: FrozenTrial, space: Space, shift: int, cost: str | None) -> Trial | None:
    """A finished trial of Optuna as a record in this space; None if it lacks a parameter, as a trial that failed early may."""
    plain = {name: value for name, value in frozen.params.items() if name in space}
    try:
        config = space.check(plain)
    except ConfigError:
        return None
    asked = {name: config[name] for name in space.fidelities}
    began = None if frozen.datetime_start is None else frozen.datetime_start.timestamp()
    fidelity = next(iter(space.fidelities), None)
    trial = Trial(
        0, config, fidelity=asked, reports=imported_reports(frozen, fidelity, shift), added=True, asked_at=began,
        suggestion={"by": "Optuna", "why": "imported"},
    )  # fmt: skip
    steps = None if fidelity is None else space[fidelity]
    low, target = (steps.low, steps.high) if isinstance(steps, Fidelity) else (0.0, None)
    trial = ended(frozen, trial, cost, fidelity, low, target)
    attrs = {name: value for name, value in frozen.user_attrs.items() if name != cost}
    if frozen.state is TrialState.FAIL and ERROR_ATTR in attrs:
        trial = replace(trial, error=str(attrs.pop(ERROR_ATTR)))
    return replace(trial, attrs=readable(attrs))


def imported_reports(frozen: FrozenTrial, fidelity: str | None, shift: int) -> tuple[Report, ...]:
    """The intermediate values that are finite, in order of their steps; without a fidelity, in a space that has none."""
    return tuple(
        {"value": float(value), "fidelity": {} if fidelity is None else {fidelity: step + shift}, "cost": None}
        for step, value in sorted(frozen.intermediate_values.items())
        if math.isfinite(value)
    )


def readable(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """User attributes, those that JSON cannot hold as text."""
    found: dict[str, Any] = {}
    for name, value in attrs.items():
        try:
            found[name] = read_attr(name, value)
        except OutcomeError:
            found[name] = repr(value)
    return found


# -- to Optuna ----------------------------------------------------------------------------------------------------------


def to_optuna(
    study: Study, *, storage: Any = None, name: str | None = None, intermediate: bool = True, **options: Any
) -> optuna.Study:
    """A study of this library as an Optuna study, with all its trials.

    storage        of Optuna: a URL, a storage object, or None: in memory
    name           of the study there; its own by default
    intermediate   False: leave intermediate values out, where steps in Optuna cannot express them
    options        of ``optuna.create_study``: sampler, pruner, load_if_exists

    >>> from shoestring.integrations.optuna import to_optuna
    >>> result = st.minimize(lambda c: c["x"], st.Space(x=st.Float(0, 1)), 3, method=st.Random())
    >>> theirs = to_optuna(result.study, name="exported")
    >>> len(theirs.trials), theirs.best_value == result.best.value
    (3, True)
    """
    if not isinstance(study, Study):
        raise StudyError(f"expected a study of this library, not {study!r}; of a result it is result.study")
    space = study.space
    distributions = {key: to_distribution(key, each) for key, each in space.items() if not isinstance(each, Fidelity)}
    traced = next(iter(space.fidelities), None) if intermediate else None
    if traced is not None:
        check_steps(study, traced)
    trials = [exported(trial, study, distributions, traced, intermediate) for trial in study.history]
    options = {"storage": storage, "study_name": name or study.name, "direction": study.direction, **options}
    theirs = optuna.create_study(**options)
    if present := len(theirs.get_trials(deepcopy=False)):
        how = "give another name=, or delete that study first: optuna.delete_study(study_name=..., storage=...)"
        raise StudyError(f"study {theirs.study_name!r} has {present} trials in Optuna already, and would have some twice; {how}")
    theirs.set_user_attr(SPACE_KEY, space.to_json())
    theirs.set_user_attr(UNIT_KEY, study.unit)
    for key, value in study.attrs.items():
        theirs.set_user_attr(key, value)
    theirs.add_trials(trials)
    for queued in study.state.queue:
        theirs.enqueue_trial({key: value for key, value in queued.config.items() if key in distributions})
    return theirs


def check_steps(study: Study, traced: str) -> None:
    """A SpaceError if the fidelity of reports is no step: Optuna counts steps in whole numbers, of one kind."""
    space, how = study.space, "say intermediate=False to leave intermediate values out"
    if len(space.fidelities) > 1:
        names = ", ".join(space.fidelities)
        raise SpaceError(f"{names} are several fidelities, and a trial in Optuna has one kind of step; {how}")
    fidelity = space[traced]
    if not isinstance(fidelity, Fidelity) or not fidelity.whole:
        raise SpaceError(f"{traced} is a fidelity that is no whole number, which a step in Optuna has to be; {how}")


def exported(
    trial: Trial, study: Study, distributions: Mapping[str, BaseDistribution], traced: str | None, intermediate: bool
) -> FrozenTrial:
    """One trial as Optuna has it."""
    params = {name: value for name, value in trial.config.items() if name in distributions}
    below = trial.state is State.DONE and not study.state.at_target(trial)
    states = {State.DONE: TrialState.PRUNED if below else TrialState.COMPLETE, State.RUNNING: TrialState.RUNNING}
    no_result = trial.state is State.FAILED and was_pruned(trial)  # pruned in Optuna, with no value below the target
    state = TrialState.PRUNED if no_result else states.get(trial.state, TrialState.FAIL)
    steps = exported_steps(trial, study.space, traced) if intermediate else {}
    if traced is not None and below and trial.value is not None:
        steps[int(trial.config[traced])] = trial.value
    value = steps[max(steps)] if state is TrialState.PRUNED and steps else trial.value
    began = datetime.fromtimestamp(trial.asked_at) if trial.asked_at is not None else datetime.fromtimestamp(0)
    took = trial.seconds if trial.seconds is not None else trial.cost if study.unit == "s" else None
    ended = None if trial.state is State.RUNNING else began + timedelta(seconds=took or 0.0)
    return FrozenTrial(
        number=0, trial_id=0, state=state, value=value if state is not TrialState.FAIL else None, values=None,
        datetime_start=began, datetime_complete=ended, params=params, distributions={n: distributions[n] for n in params},
        user_attrs=user_attributes(trial, state), system_attrs={} if trial.folds is None else {CV_SCORES_KEY: list(trial.folds)},
        intermediate_values=steps,
    )  # fmt: skip


def exported_steps(trial: Trial, space: Space, traced: str | None) -> dict[int, float]:
    """The intermediate values by step: the fidelity; in a space without fidelities, their count from 0."""
    if not space.fidelities:
        return {step: float(report["value"]) for step, report in enumerate(trial.reports)}
    return {int(each["fidelity"][traced]): float(each["value"]) for each in trial.reports if traced in each["fidelity"]}


def user_attributes(trial: Trial, state: TrialState) -> dict[str, Any]:
    """The user attributes of an exported trial: attributes, metrics, the cost, and the error of a failed trial.

    "cost" and "error" are names of this library here, and so is "folds" for a list that would be read as folds. An attribute or
    a metric of that name gets "attrs." or "metrics." before it, and so does a metric with the name of an attribute: nothing is
    overwritten.
    """
    found: dict[str, Any] = {} if trial.cost is None else {COST_ATTR: trial.cost}
    if state is TrialState.FAIL:
        found[ERROR_ATTR] = trial.error or str(trial.state)
    for kind, entries in (("attrs", trial.attrs), ("metrics", trial.metrics)):
        for name, value in entries.items():
            misread = name == FOLDS_KEY and read_folds(value) not in (None, trial.folds)
            free = name not in (COST_ATTR, ERROR_ATTR) and not misread
            while not free or name in found:
                name, free = f"{kind}.{name}", True
            found[name] = value
    return found
