"""Processes that do something at the same moment, each having made ready before; none of them is left when it is over.

They come from a server that has loaded Shoestring already.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

context = multiprocessing.get_context("forkserver")
PRELOAD = ("shoestring", "shoestring.storage.sqlite", "shoestring.storage.sql", "benchmarks.reliability.team")


@dataclass(frozen=True)
class Failed:
    """What a process returns that was stopped by an exception, or died."""

    why: str


def together(work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], seconds: float = 900.0) -> list[Any]:
    """The results of ``work(gate, *call)`` in the order of the calls; where there is none, a Failed.

    Each call makes ready, calls ``gate.wait()`` and goes on when all are there.
    """
    context.set_forkserver_preload([*PRELOAD, work.__module__])
    gate, answers = context.Barrier(len(calls)), context.SimpleQueue()
    processes = [context.Process(target=_do, args=(work, call, gate, answers, place)) for place, call in enumerate(calls)]
    until, results = time.monotonic() + seconds, dict[int, Any]()
    try:
        for process in processes:
            process.start()
        while len(results) < len(calls) and time.monotonic() < until:
            gone = not any(process.is_alive() for process in processes)
            while not answers.empty():
                place, result = answers.get()
                results[place] = result
            if gone:
                break
            time.sleep(0.01)
    finally:
        for process in processes:
            if process.pid is not None:
                process.join(5.0 if len(results) == len(calls) else 0.0)
                process.kill()
                process.join()
            process.close()
    return [results.get(place, Failed("it gave no answer")) for place in range(len(calls))]


def _do(work: Callable[..., Any], call: tuple[Any, ...], gate: Any, answers: Any, place: int) -> None:
    try:
        result = work(gate, *call)
    except BaseException as error:
        gate.abort()  # the others need not wait for this one
        result = Failed(f"{type(error).__name__}: {error}")
    answers.put((place, result))


def failures(results: Sequence[Any]) -> list[str]:
    return [result.why for result in results if isinstance(result, Failed)]
