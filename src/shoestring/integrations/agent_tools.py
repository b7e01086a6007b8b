"""The tools that an agent gets: make a study, ask, tell, look, stop. Each takes and returns JSON.

They are those of ask and tell over HTTP (``web/api.py``), with the same promises: leases, the same result told twice is one
result, conflicts are said, and no trial is asked beyond the budget. A study that an agent makes needs a budget. No tool runs a
program, reads a file or deletes anything.

A tool is described by a JSON schema. A wrong call is a ``Problem``: what is wrong, where, and a call that works.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..budget import HOW_TO_WRITE, Budget, read_budget
from ..data.trial import State
from ..errors import MethodError, NothingFits, ShoestringError, SpaceExhausted, StorageError, StudyError
from ..execution.runner import check_budget
from ..report.views import view
from ..search.budget_filter import filter_by_budget
from ..space.space import Space
from ..state.registry import read_method, read_stop
from ..study import Study
from ..termination.base import Verdict
from ..web import api
from ..web.api import Problem
from ..web.catalog import Catalog, NoStudy
from ..web.openapi import schemas

MAX_NAME_CHARACTERS = 200
DEFAULT_TRIALS_SHOWN = 50
NAMES_IN_ERROR = 10
HOW_TO_GIVE_A_BUDGET = 'give 40 (trials), "10m" (time) or "20 USD" (cost)'

Arguments = Mapping[str, Any]
Json = dict[str, Any]

TEXT: Json = {"type": "string"}
STUDY: Json = {"type": "string", "description": "the name of the study", "maxLength": MAX_NAME_CHARACTERS}
SPACE_EXAMPLE = {
    "lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
    "depth": {"kind": "int", "low": 2, "high": 12},
    "act": {"kind": "choice", "options": ["relu", "tanh"]},
}
FIDELITY_EXAMPLE = {"epochs": {"kind": "fidelity", "low": 1, "high": 81}}
PARAMETER: Json = {
    "type": "object",
    "required": ["kind"],
    "additionalProperties": False,
    "properties": {
        "kind": {"enum": ["float", "int", "choice", "fidelity"]},
        "low": {"type": "number"},
        "high": {"type": "number"},
        "log": {"type": "boolean", "description": "on a log scale"},
        "step": {"type": ["number", "null"], "description": "in steps of this size"},
        "options": {"type": "array", "minItems": 2, "description": "the values of a choice"},
        "when": {"type": ["object", "null"], "description": 'only under a condition: {"booster": "dart"}'},
        "target": {"type": ["number", "null"], "description": "of a fidelity: the value that counts; the highest by default"},
        "resumable": {"type": ["boolean", "null"], "description": "of a fidelity: a trial can go on from a lower one"},
    },
}


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool: its name, what it does, the schema of its arguments, a call that works, and the function that does it."""

    name: str
    about: str
    properties: Json
    required: tuple[str, ...]
    example: Json
    run: Callable[[Catalog, Arguments], Json]
    read_only: bool = False
    repeatable: bool = False  # to call it twice with the same arguments does no more than to call it once

    @property
    def schema(self) -> Json:
        return {
            "type": "object", "properties": self.properties, "required": list(self.required), "additionalProperties": False,
        }  # fmt: skip

    @property
    def how_to_call(self) -> str:
        return f"call {self.name} for example with {json.dumps(self.example)}"


def call(catalog: Catalog, tool: AgentTool, arguments: Arguments) -> Json:
    """The answer of a tool. Raises Problem if there is none."""

    def answer() -> Json:
        try:
            return tool.run(catalog, arguments)
        except NoStudy as error:
            names = [record.name for record in catalog.records()][:NAMES_IN_ERROR]
            fix = f"give one of {', '.join(names)}" if names else "make one with create_study"
            raise Problem(404, f"there is no study {str(error)!r}", "study", fix) from None

    status, document = api.answered(answer)
    if status != 200:
        fix = tool.how_to_call if document["fix"] in ("", "see the message") else document["fix"]
        where = "arguments" if document["where"] == "body" else document["where"].removeprefix("body.")
        raise Problem(status, document["error"], where, fix)
    return document


# -- the tools ---------------------------------------------------------------------------------------------------------


def list_studies(catalog: Catalog, given: Arguments) -> Json:
    return api.studies(catalog)


def create_study(catalog: Catalog, given: Arguments) -> Json:
    """A new study. Everything is checked before it is stored, and a copy in memory has to make its first suggestion."""
    name, again = given["name"], "choose another name, or use this study with ask and tell"
    if not name.strip():
        raise Problem(422, "the name is empty", "name", "give a short name, such as xgb")
    if catalog.storage.find(name) is not None:
        raise Problem(409, f"there is a study {name!r} already", "name", again)
    try:
        space = Space.from_json(given["space"])
    except ShoestringError as error:
        fix = f"describe each parameter as here: {json.dumps(SPACE_EXAMPLE)}"
        raise Problem(422, str(error), "space", fix) from None
    try:
        budget = study_budget(read_budget(given["budget"]), given.get("unit"))
    except ShoestringError as error:
        raise Problem(422, str(error).replace(HOW_TO_WRITE, HOW_TO_GIVE_A_BUDGET), "budget", HOW_TO_GIVE_A_BUDGET) from None
    code = {}
    for part, read in (("method", read_method), ("stop", read_stop)):
        try:
            code[part] = read(given.get(part) or "auto")
        except ShoestringError as error:
            raise Problem(422, str(error), part, f'leave {part} out, or write "auto"') from None
    options = {key: given[key] for key in ("direction", "unit", "per_hour", "seed") if given.get(key) is not None}
    try:
        check_first_suggestion(Study(space, budget=budget, **code, **options))
        Study(space, storage=catalog.storage, name=name, budget=budget, **code, **options).close()
    except StorageError:
        raise
    except ShoestringError as error:
        raise Problem(422, str(error), "arguments", "correct what the message names, or leave it out") from None
    return api.one_study(catalog, name) | {"next": f'call ask with {{"study": {json.dumps(name)}}}'}


def check_first_suggestion(study: Study) -> None:
    """Raise Problem if the method cannot work in the space: no trial of such a study could be asked."""
    try:
        study.ask()
    except MethodError as error:
        how = 'leave method out, or change it (without "st.") or the space as the message says'
        fix = f"{how}; a fidelity in the space is {json.dumps(FIDELITY_EXAMPLE)}"
        raise Problem(422, str(error), "method", fix) from None


def study_budget(budget: Budget, unit: str | None) -> Budget:
    """The budget of a study that is asked and told. A time limits the sum of the evaluations' times: no run measures another."""
    if budget.seconds is None:
        return budget
    if unit not in (None, "s"):
        how = f'give the budget in {unit}, or leave unit out: then "10m" limits the time of the evaluations'
        raise Problem(422, f"the budget is a time, and costs are in {unit}", "budget", how)
    return Budget(cost=budget.seconds, unit="s")


def ask(catalog: Catalog, given: Arguments) -> Json:
    lease = {"lease": given["lease"]} if given.get("lease") is not None else {}
    found = api.ask(catalog, given["study"], lease)
    return found | {"next": f"evaluate this config, then call tell with study, number {found['number']} and value, or error"}


def tell(catalog: Catalog, given: Arguments) -> Json:
    return api.tell(catalog, given["study"], {name: value for name, value in given.items() if name != "study"})


def summary(catalog: Catalog, given: Arguments) -> Json:
    """The study without its trials, and the facts of the live line."""
    found = api.one_study(catalog, given["study"])
    now = view(catalog.study(given["study"]), "live", fit=False)
    return found | {"facts": {fact["label"]: fact["text"] for fact in now["facts"]}, "running": now["running"]}


def trials(catalog: Catalog, given: Arguments) -> Json:
    first, count = given.get("from", 0), given.get("count", DEFAULT_TRIALS_SHOWN)
    return api.trials(catalog, given["study"], str(first), str(count))


def importance(catalog: Catalog, given: Arguments) -> Json:
    """The share of each parameter; a model is fitted."""
    study = catalog.asking_study(given["study"])
    try:
        return {"study": study.name, "importance": study.importance()}
    except StudyError as error:
        raise Problem(409, str(error), "study", "tell the results of more trials first") from None


def expect_next(catalog: Catalog, given: Arguments) -> Json:
    """What the next trial would be and what is expected of it, why, and whether it is time to stop. Opens no trial."""
    study, halted = catalog.asking_study(given["study"]), catalog.record(given["study"]).halted
    with study.state.lock:
        study.state.refresh()
        document: Json = {"study": study.name, "unit": study.unit, "waiting": len(study.state.queue), **study.explain().to_dict()}
        document["stop_now"] = False
        verdict = reason_to_stop(study, halted)
        if verdict is not None:
            return finished(document, verdict.reason)
        if study.rule is not None and study.log.best is not None:
            verdict = study.suggester.check_rule(study.budget)
            document["stop_now"], document["stop"] = verdict.stop, verdict.reason
        if study.state.queue:
            queued = study.state.queue[0]
            return document | {"next": {"config": dict(queued.config), "why": "enqueued"}}
        context = study.context
        try:
            found = study.method.suggest(context)
            found = filter_by_budget(found, context) if context.cost_limited else found
        except SpaceExhausted as end:
            return finished(document, str(end))
        except NothingFits as end:  # what runs may turn out cheaper than expected
            return finished(document, str(end), stop_now=not study.log.number_of(State.RUNNING))
    gain, cost = found.gain, found.cost
    return document | {
        "next": {
            "config": found.config, "why": found.why, "expected_value": found.predicted, "expected_gain": gain,
            "expected_cost": cost, "expected_gain_per_cost": gain / cost if gain is not None and cost else None,
        },
    }  # fmt: skip


def reason_to_stop(study: Study, halted: str | None) -> Verdict | None:
    """Why no further trial can be asked: the study was stopped, or its budget is used up; None if one can."""
    if halted is not None:
        return Verdict(True, f"the study was stopped: {halted}", kind="halted")
    if study.budget is None:
        return None
    verdict = check_budget(study.budget, study.log, study.seconds, study.unit)
    return verdict if verdict.stop else None


def finished(document: Json, reason: str, *, stop_now: bool = True) -> Json:
    """The answer where there is no next trial: why, and nothing about how it would be chosen."""
    return document | {"stop_now": stop_now, "stop": reason, "next": None, "method": None, "why": reason, "rejected": {}}


def stop(catalog: Catalog, given: Arguments) -> Json:
    """All workers of the study stop after the trials that they run now; asks are refused."""
    record = catalog.record(given["study"])
    reason = (given.get("reason") or "").strip()[:MAX_NAME_CHARACTERS] or "stopped by an agent"
    catalog.storage.revise(record.id, halted=reason)
    return summary(catalog, given)


def of_a_study(**further: Json) -> Json:
    return {"study": STUDY, **further}


TELL_PROPERTIES = {name: each for name, each in schemas()["Tell"]["properties"].items() if name in api.TELL_FIELDS}
TOOLS = (
    AgentTool(
        name="list_studies", about="List the studies with their sizes, what they have spent and whether they were stopped.",
        properties={}, required=(), example={}, run=list_studies, read_only=True,
    ),
    AgentTool(
        name="create_study", about=(
            "Make a study: what can be varied (space), what it may cost in all (budget), and whether the value is to be "
            "minimized or maximized. The budget is 40 (trials), '10m' (time of the evaluations) or '20 USD' (cost in any unit)."
        ),
        properties={
            "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS},
            "space": {"type": "object", "minProperties": 1, "additionalProperties": PARAMETER},
            "budget": {"type": ["string", "integer"], "description": "40 trials, '10m' or '20 USD', for the whole study"},
            "direction": {"enum": ["minimize", "maximize"]},
            "method": {**TEXT, "description": "auto, EI, KG, Hyperband, Random, ..."},
            "stop": {**TEXT, "description": "auto, none, Patience(30), ..."},
            "unit": {**TEXT, "description": "of costs, such as USD; seconds by default"},
            "per_hour": {"type": "number", "exclusiveMinimum": 0, "description": "what an hour costs in that unit"},
            "seed": {"type": "integer", "minimum": 0},
        },
        required=("name", "space", "budget"), example={"name": "xgb", "space": SPACE_EXAMPLE, "budget": 40}, run=create_study,
    ),
    AgentTool(
        name="ask", about=(
            "Get the next settings to evaluate: number and config. They are reserved for the lease, and told with tell. "
            "You evaluate them yourself: nothing is run for you."
        ),
        properties=of_a_study(lease={"type": ["string", "number"], "description": "'30m' or seconds; 1 h by default"}),
        required=("study",), example={"study": "xgb"}, run=ask,
    ),
    AgentTool(
        name="tell", about=(
            "Report what came of a trial: value (or folds, the values of a cross-validation), or error for a failed one. Also "
            "its cost in the unit of the study, needed unless that is seconds or it has per_hour. Twice the same is one result."
        ),
        properties=of_a_study(**TELL_PROPERTIES), required=("study", "number"),
        example={"study": "xgb", "number": 3, "value": 0.25, "cost": 2.0}, run=tell, repeatable=True,
    ),
    AgentTool(
        name="summary", about="Look at a study: best trial, what was spent of the budget, what runs, how far from stopping.",
        properties=of_a_study(), required=("study",), example={"study": "xgb"}, run=summary, read_only=True,
    ),
    AgentTool(
        name="trials", about="Look at the trials of a study, from a number on.",
        properties=of_a_study(
            **{"from": {"type": "integer", "minimum": 0}},
            count={"type": "integer", "minimum": 1, "maximum": api.MAX_TRIALS_IN_ANSWER, "default": DEFAULT_TRIALS_SHOWN},
        ),
        required=("study",), example={"study": "xgb", "from": 0, "count": 50}, run=trials, read_only=True,
    ),
    AgentTool(
        name="importance", about="The share of each parameter in what makes the value change. Needs some finished trials.",
        properties=of_a_study(), required=("study",), example={"study": "xgb"}, run=importance, read_only=True,
    ),
    AgentTool(
        name="expect_next", about=(
            "What is expected of the next trial: its config, value, gain and cost, why it is chosen, and whether it is time to "
            "stop: by the stopping rule, or because no trial is left (the budget is used up, or the study was stopped). It "
            "reserves nothing."
        ),
        properties=of_a_study(), required=("study",), example={"study": "xgb"}, run=expect_next, read_only=True,
    ),
    AgentTool(
        name="stop", about="Stop a study: its workers end after the trials that they run now, and ask is refused from then on.",
        properties=of_a_study(reason=TEXT), required=("study",), example={"study": "xgb", "reason": "good enough"}, run=stop,
        repeatable=True,
    ),
)  # fmt: skip
