"""The OpenAPI description of ask and tell over HTTP, at ``/openapi.json``."""

from __future__ import annotations

from typing import Any

from .api import DEFAULT_LEASE, MAX_TRIALS_IN_ANSWER

NUMBER: dict[str, Any] = {"type": "number"}
TEXT: dict[str, Any] = {"type": "string"}
OBJECT: dict[str, Any] = {"type": "object"}
NAME = {"name": "name", "in": "path", "required": True, "schema": TEXT, "description": "the name of the study"}
VIEW = {**NAME, "name": "view", "description": "the name of the picture"}
ERRORS = {
    "401": "the token is missing or wrong",
    "403": "the token is read-only",
    "404": "there is no such study or trial",
    "409": "it is refused: the trial has another result already, the study was stopped, or its budget is used up",
    "422": "the request cannot be read; the answer says what, where, and how to fix it",
    "503": "the storage does not answer now; send the same request again",
}


def description(version: str) -> dict[str, Any]:
    """The whole document."""
    text = "Ask for the next settings to evaluate, tell what came of them. Each trial is reserved for its lease."
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shoestring", "version": version, "description": text},
        "security": [{"token": []}],
        "paths": {
            "/api/studies": {"get": call("listStudies", "The studies.", OBJECT)},
            "/api/studies/{name}": {"get": call("getStudy", "One study without its trials.", OBJECT, NAME)},
            "/api/studies/{name}/trials": {
                "get": call("getTrials", "Trials from a number on.", reference("Trials"), NAME, *paging())
            },
            "/api/studies/{name}/views/{view}": {
                "get": call("getView", "The numbers of a picture.", OBJECT, NAME, VIEW)
            },
            "/api/studies/{name}/ask": {"post": call("ask", "The next trial.", reference("Asked"), NAME, body=reference("Ask"))},
            "/api/studies/{name}/renew": {
                "post": call("renew", "More time for a running trial.", reference("Renewed"), NAME, body=reference("Renew"))
            },
            "/api/studies/{name}/report": {
                "post": call("report", "An intermediate value of a trial.", reference("Reported"), NAME, body=reference("Report"))
            },
            "/api/studies/{name}/tell": {
                "post": call("tell", "Report a result; twice is once.", reference("Trial"), NAME, body=reference("Tell"))
            },
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    }  # fmt: skip


def call(name: str, summary: str, answer: dict[str, Any], *parameters: Any, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The description of one call."""
    responses: dict[str, Any] = {"200": {"description": "done", "content": as_json(answer)}}
    responses |= {code: {"description": text, "content": as_json(reference("Error"))} for code, text in ERRORS.items()}
    found: dict[str, Any] = {"operationId": name, "summary": summary, "parameters": list(parameters), "responses": responses}
    return found if body is None else found | {"requestBody": {"content": as_json(body)}}


def as_json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def paging() -> list[dict[str, Any]]:
    whole = {"type": "integer", "minimum": 0}
    return [
        {"name": "from", "in": "query", "schema": whole, "description": "the first number"},
        {"name": "count", "in": "query", "schema": whole | {"maximum": MAX_TRIALS_IN_ANSWER}, "description": "how many"},
    ]


def record(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def schemas() -> dict[str, Any]:
    """The objects that requests and answers consist of."""
    whole = {"type": "integer", "minimum": 0}
    states = {"type": "string", "enum": ["running", "done", "failed", "abandoned"]}
    optional: dict[str, Any] = {"type": ["string", "null"]}
    halted = optional | {"description": "why the study was stopped; then end the trial when you can, and ask no more"}
    lease = {"description": "how long the trial is reserved", "oneOf": [TEXT, NUMBER], "default": DEFAULT_LEASE}
    trial: dict[str, Any] = {
        "number": whole, "state": states, "value": {"type": ["number", "null"]}, "cost": {"type": ["number", "null"]},
        "seconds": {"type": ["number", "null"]}, "config": OBJECT, "metrics": OBJECT, "attrs": OBJECT,
        "error": {"type": ["string", "null"]}, "late": {"type": "boolean", "description": "its lease had ended"},
    }  # fmt: skip
    return {
        "Ask": record(lease=lease),
        "Asked": record(study=TEXT, number=whole, config=OBJECT, fidelity=OBJECT, lease_seconds=NUMBER, lease_token=optional),
        "Renew": record(("number",), number=whole, lease_token=TEXT, lease=lease),
        "Renewed": record(number=whole, lease_seconds=NUMBER, halted=halted),
        "Report": record(("number", "value"), number=whole, lease_token=TEXT, value=NUMBER, fidelity=OBJECT, cost=NUMBER),
        "Reported": record(number=whole, reports=whole, halted=halted),
        "Tell": record(
            ("number",), number=whole, value=NUMBER, folds={"type": "array", "items": NUMBER}, cost=NUMBER, gradient=OBJECT,
            metrics=OBJECT, attrs=OBJECT, error=TEXT, censored={"type": "boolean"},
        ),
        "Trial": record(**trial),
        "Trials": record(trials={"type": "array", "items": reference("Trial")}, next={"type": ["integer", "null"]}),
        "Error": record(("error",), error=TEXT, where=TEXT, fix=TEXT),
    }  # fmt: skip
