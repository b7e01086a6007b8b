"""Export a study to Weights & Biases, offline: one run for each finished trial, in files that ``wandb sync`` uploads.

    project   the study's name, or the one that is given;   group   the study's name
    run       a trial with a result: its config; value, cost, seconds and metrics in the summary; intermediate values as its
              history. A failed trial is a run with exit code 1 and the error in its summary

Nothing is sent: ``wandb sync FOLDER/wandb/offline-run-*`` does that. The id of a run follows from the identity of the study and
the number of the trial, so W&B knows it again. The file ``shoestring-ID.txt`` beside the runs lists the trials that are there
completely: to export again adds those that are new, and replaces one that was interrupted.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from ..data.trial import State, Trial
from ..study_view import StudyView
from .callback import framework

ID_CHARACTERS = 16


def to_wandb(study: StudyView, folder: str | Path = ".", project: str | None = None) -> int:
    """Write the finished trials of a study as offline runs of W&B; returns how many are new there.

    folder    W&B makes its folder ``wandb`` in it
    project   the project on the server to which they will be uploaded; None: the study's name
    """
    wandb = framework("wandb", "wandb", "to_wandb")
    identity, root = study.id, Path(folder) / "wandb"
    root.mkdir(parents=True, exist_ok=True)
    index = root / f"shoestring-{identity}.txt"
    known = {int(line) for line in index.read_text().split()} if index.exists() else set()
    new = [trial for trial in study.history if trial.state in (State.DONE, State.FAILED) and trial.number not in known]
    for trial in new:
        run_id = run_identity(identity, trial.number)
        for half in root.glob(f"offline-run-*-{run_id}"):  # of an export that was interrupted
            shutil.rmtree(half)
        write_run(wandb, study, trial, run_id, folder, project or study.name)
        with index.open("a") as file:
            file.write(f"{trial.number}\n")
    return len(new)


def run_identity(identity: str, number: int) -> str:
    """The id of a run: the same whenever and wherever the trial is exported."""
    return hashlib.sha256(f"{identity}/{number}".encode()).hexdigest()[:ID_CHARACTERS]


def write_run(wandb: Any, study: StudyView, trial: Trial, run_id: str, folder: str | Path, project: str) -> None:
    """One trial as an offline run."""
    settings = wandb.Settings(console="off", silent=True, disable_git=True, x_disable_stats=True, x_disable_meta=True)
    run = wandb.init(
        project=project, group=study.name, name=f"{study.name}-{trial.number}", id=run_id, dir=str(folder), mode="offline",
        config=dict(trial.config), tags=["shoestring", str(trial.state)], settings=settings, reinit="finish_previous",
    )  # fmt: skip
    for place, report in enumerate(trial.reports, start=1):
        at = report["fidelity"]
        run.log({"intermediate": report["value"], **at}, step=round(next(iter(at.values()), place)))
    facts = {"value": trial.value, "cost": trial.cost, "seconds": trial.seconds, "error": trial.error}
    facts |= {f"fold_{k}": fold for k, fold in enumerate(trial.folds or ())}
    facts |= {"trial": trial.number, "study": study.name, "study_id": study.id, "unit": study.unit, "state": str(trial.state)}
    facts |= {"by": trial.suggestion.get("by"), "asked_at": trial.asked_at}
    run.summary.update({key: value for key, value in {**trial.metrics, **facts}.items() if value is not None})
    run.finish(exit_code=0 if trial.state is State.DONE else 1)
