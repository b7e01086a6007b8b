"""Trials and leases that the checks of a storage write."""

from __future__ import annotations

import uuid
from typing import Any

from ..data.trial import State, Trial
from ..storage import Lease


def running(number: int, **fields: Any) -> Trial:
    """A running trial. Its config follows from its number."""
    return Trial(number, {"x": number / 8, "act": "relu"}, suggestion={"by": "random"}, asked_at=1.7e9, **fields)


def done(number: int, value: float = 1.0, cost: float = 1.0, **fields: Any) -> Trial:
    return running(number).finish(State.DONE, value=value, cost=cost, **fields)


def failed(number: int, error: str = "it broke", cost: float = 1.0) -> Trial:
    return running(number).finish(State.FAILED, error=error, cost=cost)


def abandoned(number: int, cost: float | None = None) -> Trial:
    return running(number).finish(State.ABANDONED, cost=cost)


def lease(seconds: float = 60.0, worker: str = "worker") -> Lease:
    """A new lease."""
    return Lease(worker, uuid.uuid4().hex, seconds)
