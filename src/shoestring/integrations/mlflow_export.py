"""Export a study to MLflow: one run for each finished trial.

    experiment      the study's name, or the one that is given
    run             a trial with a result: its config as parameters; value, cost, seconds and metrics as metrics; intermediate
                    values as steps of the metric ``value``. A failed trial is a run with the status FAILED
    tags            shoestring.study, shoestring.id (the study's identity), shoestring.trial (the number), shoestring.state,
                    shoestring.unit, shoestring.by and, of a failed trial, shoestring.error

The study is only read, and MLflow is not called while it runs. A run goes by the identity of the study and the number of the
trial, so to export again adds the trials that are new. A run that an earlier export has not finished is deleted and made again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..data.trial import State, Trial
from ..study_view import StudyView
from .callback import framework

STUDY, IDENTITY, TRIAL = "shoestring.study", "shoestring.id", "shoestring.trial"
MAX_METRICS, MAX_PARAMETERS = 1000, 100  # in one call, as MLflow allows
MAX_TEXT = 5000  # characters of a parameter or a tag, as every store of MLflow allows
_FORBIDDEN = re.compile(r"[^\w\-. :/]")


def to_mlflow(study: StudyView, tracking_uri: str | None = None, experiment: str | None = None) -> int:
    """Write the finished trials of a study to MLflow; returns how many are new there.

    tracking_uri   of MLflow: "sqlite:///mlflow.db", "http://localhost:5000", ...; None: as MLflow is set up
    experiment     its name; None: that of the study
    """
    mlflow = framework("mlflow", "mlflow-skinny", "to_mlflow")
    client = mlflow.MlflowClient(tracking_uri=tracking_uri)
    history, identity, name = study.history, study.id, experiment or study.name
    found = client.get_experiment_by_name(name)
    where = client.create_experiment(name) if found is None else found.experiment_id
    known = exported_trials(client, where, identity)
    new = [trial for trial in history if trial.state in (State.DONE, State.FAILED) and trial.number not in known]
    for trial in new:
        write_run(client, mlflow.entities, where, trial, tags_of(study, identity, trial))
    best = history.best
    client.set_experiment_tag(where, "shoestring.direction", study.direction)
    client.set_experiment_tag(where, "shoestring.best_trial", "" if best is None else str(best.number))
    return len(new)


def exported_trials(client: Any, experiment: str, identity: str) -> set[int]:
    """The numbers of the trials that are there. A run that was not finished is deleted: it is made again."""
    found, page = set[int](), None
    while True:
        runs = client.search_runs([experiment], f"tags.`{IDENTITY}` = '{identity}'", page_token=page)
        for run in runs:
            if run.info.status in ("FINISHED", "FAILED"):
                found.add(int(run.data.tags[TRIAL]))
            else:
                client.delete_run(run.info.run_id)
        page = runs.token
        if not page:
            return found


def tags_of(study: StudyView, identity: str, trial: Trial) -> dict[str, str]:
    """The tags by which a run is found again, and facts about its trial."""
    tags = {
        STUDY: study.name, IDENTITY: identity, TRIAL: str(trial.number), "shoestring.state": str(trial.state),
        "shoestring.unit": study.unit, "shoestring.by": str(trial.suggestion.get("by", "")),
    }  # fmt: skip
    if trial.error:
        tags["shoestring.error"] = trial.error[:MAX_TEXT]
    return tags


def write_run(client: Any, entities: Any, experiment: str, trial: Trial, tags: dict[str, str]) -> None:
    """One trial as a run. It is only finished at the end: what was interrupted can be told from what is whole."""
    started = None if trial.asked_at is None else int(trial.asked_at * 1000)
    name = f"{tags[STUDY]}-{trial.number}"
    run = client.create_run(experiment, start_time=started, tags=tags, run_name=name).info.run_id
    ended = None if started is None else started + int((trial.seconds or 0.0) * 1000)
    at = ended or 0
    metrics = [entities.Metric(key, value, at, step) for key, value, step in metrics_of(trial)]
    parameters = [entities.Param(*each) for each in unique_keys({key: str(value) for key, value in trial.config.items()})]
    for part in parts(metrics, MAX_METRICS):
        client.log_batch(run, metrics=part)
    for part in parts(parameters, MAX_PARAMETERS):
        client.log_batch(run, params=part)
    client.set_terminated(run, "FINISHED" if trial.state is State.DONE else "FAILED", end_time=ended)


def metrics_of(trial: Trial) -> Iterator[tuple[str, float, int]]:
    """The metrics of a run: name, value and step. Intermediate values and the result are steps of ``value``."""
    step = 0
    for place, report in enumerate(trial.reports, start=1):
        step = round(next(iter(report["fidelity"].values()), place))
        yield "value", float(report["value"]), step
    if trial.value is not None and (not trial.reports or trial.reports[-1]["value"] != trial.value):
        fidelity = round(next(iter(trial.fidelity.values()), 0))
        yield "value", trial.value, max(step, fidelity)
    facts = {"cost": trial.cost, "seconds": trial.seconds, **{f"fold_{k}": fold for k, fold in enumerate(trial.folds or ())}}
    named = {key: value for key, value in trial.metrics.items() if key not in ("value", *facts)}
    for key, value in (*facts.items(), *unique_keys(named)):
        if value is not None and math.isfinite(value):
            yield key, float(value), 0


def unique_keys(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names as MLflow allows them, no two of them alike; texts are cut to its length."""
    used = set[str]()
    for key, value in found.items():
        allowed = _FORBIDDEN.sub("_", key).strip()[:200] or "_"
        while allowed in used:
            allowed += "_"
        used.add(allowed)
        yield allowed, value[:MAX_TEXT] if isinstance(value, str) else value


def parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
