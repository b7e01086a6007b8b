"""What ``revise`` makes of a study, worked out in one place so that no two storages differ in it.

A storage reads how the study stands, has it revised, and writes that down, all in one transaction: so nobody overwrites what
somebody else has written in the meantime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

from ..errors import Behind
from .base import Settings
from .text import to_text
from .totals import amount


@dataclass(frozen=True, slots=True)
class Standing:
    """What can be revised of a study; ``settings`` and ``halted`` are JSON."""

    settings: str
    halted: str | None = None
    halts: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Revision:
    """What somebody wants to be different, checked before anything is locked; ``halted`` is JSON, ... for as it is."""

    settings: Mapping[str, Any]
    if_still: Mapping[str, Any]
    halted: str | EllipsisType | None
    seconds: float

    @property
    def repeatable(self) -> bool:
        """Whether to do it twice is the same as to do it once, whatever others do in between."""
        return not self.settings and not self.if_still and isinstance(self.halted, EllipsisType)

    def of(self, before: Standing) -> Standing:
        """How the study stands afterwards: the same if there is nothing to change. Raises Behind."""
        after = replace(before, seconds=max(before.seconds, self.seconds))
        if self.settings or self.if_still:
            known = json.loads(before.settings)
            self._require_unchanged(known)
            after = replace(after, settings=to_text({**known, **self.settings}, "the settings of a study"))
        if not isinstance(self.halted, EllipsisType):
            after = replace(after, halted=self.halted, halts=before.halts + (self.halted is not None))
        return after

    def _require_unchanged(self, known: Mapping[str, Any]) -> None:
        for name, value in self.if_still.items():
            if known.get(name) != value:
                raise Behind(f"the study's {name} has been changed by somebody else; look again")


def revision(
    settings: Settings | None, halted: str | EllipsisType | None, seconds: float, if_still: Settings | None, study: int
) -> Revision:
    """From the arguments of ``revise``; a StorageError for what cannot be kept."""
    given = json.loads(to_text({**(settings or {})}, f"the settings of study {study}"))
    still = json.loads(to_text({**(if_still or {})}, f"the settings of study {study}"))
    wish = halted if halted is None or isinstance(halted, EllipsisType) else to_text(halted, "the wish to stop")
    return Revision(given, still, wish, amount(seconds, "seconds") or 0.0)
