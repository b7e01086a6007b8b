"""What the demo says at its end: for people, for programs, and as a picture."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from .. import Result, __version__
from .speech import rows_text

EXAMPLE = Path("examples") / "first_study.py"
ONE_LINER = "import shoestring as st; print(st.minimize(lambda c: (c['x'] - 2) ** 2, st.Space(x=st.Float(-5, 5)), budget=20))"


@dataclass(frozen=True)
class Errors:
    """Shares of images read wrongly, in percent."""

    validation: float
    test: float


def summary(result: Result) -> str:
    """The library's own summary, without its advice for people who hold the result in Python."""
    return rows_text([(label, text) for label, text in result.rows() if label != "go on"])


def comparison(default: Errors, best: Errors) -> str:
    """Default and best settings side by side, and the difference in words."""
    lines = [f"{'error':<18}{'validation':>12}{'test':>10}"]
    for label, errors in (("default settings", default), ("best found", best)):
        lines.append(f"{label:<18}{errors.validation:>10.2f} %{errors.test:>8.2f} %")
    saved = 100.0 * (1.0 - best.test / default.test) if default.test > 0 else 0.0
    gained = f"{saved:.0f} % fewer test errors than with the default settings"
    lines.append(click.style(gained, bold=True) if saved > 0 else "no gain on the test images yet; try a larger --budget")
    return "\n".join(lines)


def as_json(result: Result, seed: int, default: Errors, best: Errors | None, picture: Path | None) -> dict[str, Any]:
    return {
        "shoestring": __version__,
        "command": "demo",
        "seed": seed,
        "trials": len(result.history),
        "spent": result.spent,
        "unit": result.unit,
        "stop": result.stop.reason,
        "stop_kind": result.stop.kind,
        "error_percent": {"default": asdict(default), "best": None if best is None else asdict(best)},
        "config": result.history.best.config if result.history.best else None,
        "picture": None if picture is None else str(picture),
        "history": [
            {"number": trial.number, "state": str(trial.state), "value": trial.value, "cost": trial.cost}
            for trial in result.history
        ],
    }


def convergence_picture(result: Result, default: float, path: Path) -> None:
    """The convergence plot, with the error of the default settings as a line to compare with."""
    from .. import plot

    ax = plot.new_axes()
    ax.axhline(default, color="#777777", linestyle="--", linewidth=1.3, label="default settings", zorder=1)
    plot.convergence(result, ax=ax)
    ax.set_xlabel("training time spent (s)", fontsize=plot.FONT)
    ax.set_ylabel("validation error (%)", fontsize=plot.FONT)
    ax.figure.savefig(path)


def next_command() -> str:
    """A command that works from here: an example if this is a checkout, else one line of Python."""
    python = min(sys.executable or "python", os.path.relpath(sys.executable or "python"), key=len)
    return f"{python} {EXAMPLE}" if EXAMPLE.is_file() else f'{python} -c "{ONE_LINER}"'
