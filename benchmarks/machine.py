"""Facts about the machine and the software, without which a time in milliseconds means nothing."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rows import versions


def cpu_model() -> str:
    """The processor's name where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def facts() -> dict[str, Any]:
    return {
        "cpu_count": os.cpu_count(),
        "cpu_model": cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
