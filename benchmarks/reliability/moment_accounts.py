"""Whether a study has survived attacks on its workers: nothing lost, nothing twice, nobody stuck for longer than twice the lease.

The lines of the journal are those of ``attacked``, the attacks those of ``moments``. Their times are by one steady clock. The
time of day is used only where the storage says when a trial was asked and the journal does not.

A process that is suspended in the middle of a write keeps a SQLite file locked, and nobody can take the lock from it. Calls that
wait for such a process for longer than twice the lease are counted apart, with the longest of them.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

Line = dict[str, Any]
Stored = tuple[Sequence[Line], int, Sequence[str]]  # trials, how many configs wait, damage
Span = tuple[float, float]

WRONG = (
    "lost", "doubled", "made_up", "thrown_away", "forgotten", "left_open", "stuck", "slow_recovery", "strange_checkpoints",
    "errors", "crashes", "damage",
)  # fmt: skip
WRITE_BYTES = (-1, 120)  # locks of one who is in the middle of a write: the main file, and the write lock in the -shm file
MAX_LEASES = 2
TEXTS = 6  # of errors and warnings that are kept


def judge_all(attacks: Sequence[Line], lines: Sequence[Line], stored: Callable[[str], Stored], lease: float) -> dict[str, Any]:
    """The sums over all studies of a drill; each is judged by itself, since trial numbers begin again."""
    every = []
    for study in sorted({line["study"] for line in attacks}):
        own = [line for line in lines if line["study"] == study]
        every.append(judge([line for line in attacks if line["study"] == study], own, stored(study), lease))
    found: dict[str, Any] = {"wrong": {name: sum(each["wrong"][name] for each in every) for name in WRONG}}
    for name in ("longest_call", "longest_call_by_clock", "longest_recovery"):
        found[f"{name}_seconds"] = round(max((each[name] for each in every), default=0.0), 3)
    found |= {name: sum(each[name] for each in every) for name in ("trials", "done", "given_up", "evaluated", "told")}
    stops, calls = (sum(each[name] for each in every) for name in ("stopped_writers", "calls_that_waited"))
    longest = round(max((each["longest_wait"] for each in every), default=0.0), 3)
    found["in_the_middle_of_a_write"] = {"stopped": stops, "calls_over_the_limit": calls, "longest_seconds": longest}
    for name in ("error", "said"):
        texts = Counter(_plain(line[name]) for line in lines if name in line)
        found[f"{name}_texts"] = dict(texts.most_common(TEXTS))
    return found


def judge(attacks: Sequence[Line], lines: Sequence[Line], stored: Stored, lease: float) -> dict[str, Any]:
    """Counts for one study; all under ``wrong`` must be 0.

    lost            told, and not stored with that value
    doubled         a number twice, evaluated or told twice, or a config of two trials neither of which was given up
    made_up         done with a value that no evaluation of it had
    thrown_away     evaluated by a worker that was not killed, and not stored with that value
    forgotten       given up after an attack, and its config is not asked again (nor was given up for good)
    left_open       running or waiting at the end
    stuck           a call of a worker took longer than twice the lease: without its own suspension, the time in which the
                    machine had no core for it, and the middle of a write (see above)
    slow_recovery   a trial of a killed worker was asked again later than twice the lease after the kill; the same for one that is
                    suspended, unless it goes on before
    """
    trials, waiting, damage = stored
    trials = [trial for trial in trials if trial["state"] != "waiting"]
    by_number = {trial["number"]: trial for trial in trials}
    done = [trial for trial in trials if trial["state"] == "done"]
    told, evaluated = ([line for line in lines if name in line] for name in ("told", "evaluated"))
    values = {(line["evaluated"], line["value"]) for line in evaluated}
    killed = {line["killed"] for line in attacks if "killed" in line}
    configs = Counter(_text(trial["config"]) for trial in trials if trial["config"] and not trial["given_up"])
    calls = _Calls(attacks, lines, lease)
    recoveries, forgotten = _recoveries(attacks, lines, trials, calls.writing)
    wrong = {
        "lost": sum(not _kept(by_number.get(line["told"]), line["value"]) for line in told),
        "doubled": (len(trials) - len(by_number))
        + _again(line["told"] for line in told)
        + _again(line["evaluated"] for line in evaluated)
        + sum(count - 1 for count in configs.values()),
        "made_up": sum((trial["number"], trial["value"]) not in values for trial in done),
        "thrown_away": sum(
            line["by"] not in killed and not _kept(by_number.get(line["evaluated"]), line["value"]) for line in evaluated
        ),
        "forgotten": forgotten,
        "left_open": sum(trial["state"] == "running" for trial in trials) + waiting,
        "stuck": calls.stuck,
        "slow_recovery": sum(seconds > MAX_LEASES * lease for seconds in recoveries),
        "strange_checkpoints": sum("strange" in line for line in lines),
        "errors": sum("error" in line for line in lines),
        "crashes": sum("crashed" in line for line in attacks),
        "damage": len(damage),
    }
    return {
        "wrong": wrong, "trials": len(trials), "done": len(done), "given_up": sum(trial["given_up"] for trial in trials),
        "evaluated": len(evaluated), "told": len(told), "longest_recovery": max(recoveries, default=0.0),
        "longest_call": calls.longest, "longest_call_by_clock": calls.longest_by_clock, "stopped_writers": len(calls.writing),
        "calls_that_waited": calls.waited, "longest_wait": calls.longest_wait,
    }  # fmt: skip


class _Calls:
    """How long the calls of the workers took, and the longest by the clock alone, on however busy a machine.

    writing   when a process was suspended in the middle of a write;   waited  calls that took too long since they waited for it
    """

    def __init__(self, attacks: Sequence[Line], lines: Sequence[Line], lease: float) -> None:
        stops = [line for line in attacks if "stopped" in line]
        own: dict[int, list[Span]] = {}
        for line in stops:
            own.setdefault(line["stopped"], []).append((line["at"], line["until"]))
        self.writing = [(line["at"], line["until"]) for line in stops if set(line["locks"]) & set(WRITE_BYTES)]
        ended = [line for line in lines if "moment" in line]
        cut_off = [line for line in attacks if ("killed" in line or "stuck" in line) and line["moment"] != "elsewhere"]
        self.stuck = self.waited = 0
        self.longest = self.longest_wait = self.longest_by_clock = 0.0
        for line in [*ended, *cut_off]:
            call = line["began"], line["at"]
            seconds = call[1] - call[0] - _overlap(call, own.get(line["by"], ())) - line.get("queued", 0.0)
            self.longest_by_clock = max(self.longest_by_clock, seconds + line.get("queued", 0.0))
            free = seconds - _overlap(call, self.writing)
            if seconds > MAX_LEASES * lease >= free:
                self.waited, self.longest_wait = self.waited + 1, max(self.longest_wait, seconds)
                continue
            self.longest, self.stuck = max(self.longest, seconds), self.stuck + (free > MAX_LEASES * lease)


def _recoveries(
    attacks: Sequence[Line], lines: Sequence[Line], trials: Sequence[Line], writing: Sequence[Span]
) -> tuple[list[float], int]:
    """How long it took until the trials of attacked workers were asked again, and how many never were."""
    asked = {line["asked"]: line for line in lines if "asked" in line}
    failed_by_itself = {line["by"] for line in lines if "error" in line}
    followers: dict[int, Line] = {}
    by_config: dict[str, list[Line]] = {}
    for trial in trials:
        by_config.setdefault(_text(trial["config"]), []).append(trial)
        if trial.get("origin") is not None:
            followers[trial["origin"]] = trial
    if not followers:
        for same in by_config.values():
            same.sort(key=lambda trial: trial["number"])
            followers |= {one["number"]: after for one, after in pairwise(same) if one["config"]}
    found, forgotten = list[float](), 0
    for trial in trials:
        line, after = asked.get(trial["number"]), followers.get(trial["number"])
        by = None if line is None else line["by"]
        if after is None:
            final = trial["state"] in ("done", "running") or (trial["state"] == "failed" and trial.get("for_good", False))
            forgotten += trial["given_up"] and not final and by not in failed_by_itself
            continue
        again = asked.get(after["number"])
        if line is None or again is None:  # it was killed before it could say so
            found.append(max(0.0, (after["asked_at"] or math.inf) - (trial["asked_at"] or math.inf)))
            continue
        end = min([again["at"], *(each["at"] for each in lines if each.get("told") == trial["number"] and each["by"] == by)])
        mine = [each for each in attacks if each.get("by") == by and line["at"] <= each["at"] < end]
        if mine:
            attack = max(mine, key=lambda each: float(each["at"]))  # the last one is why
            until = min(again["at"], attack.get("until", math.inf))
            found.append(until - attack["at"] - _overlap((attack["at"], until), writing))
    return found, forgotten


def _kept(trial: Line | None, value: float | None) -> bool:
    return trial is not None and trial["state"] == "done" and trial["value"] == value


def _text(config: Any) -> str:
    return json.dumps(dict(config), sort_keys=True)


def _again(numbers: Iterable[int]) -> int:
    return sum(count - 1 for count in Counter(numbers).values())


def _overlap(span: Span, others: Sequence[Span]) -> float:
    """How many seconds of a span are in one of the others, which may overlap each other."""
    inside = sorted((max(span[0], one), min(span[1], two)) for one, two in others if two > span[0] and one < span[1])
    seconds, reached = 0.0, -math.inf
    for one, two in inside:
        seconds += max(0.0, two - max(one, reached))
        reached = max(reached, two)
    return seconds


def _plain(text: str) -> str:
    """A message without its numbers, so that those of a kind are counted together."""
    return "".join("#" if letter.isdigit() else letter for letter in text)[:200]
