"""Many training jobs side by side on one GPU: a step is captured once as a CUDA graph and replayed, each job on its own stream.

A small network leaves most of a GPU idle, and its steps last as long as their kernels' launches. Replaying a captured step takes
one launch, and streams overlap. Nothing waits for the GPU until a job is over: a job writes its errors to memory on the
device. On a processor, for tests, a step is a plain call and jobs run one after the other.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch

# Read at the first use of the GPU; with the usual 8, streams share queues and wait for each other.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

WARM_UP = 3  # calls before a capture: libraries choose their algorithms and take their memory then
STEPS_A_PIECE = 4  # training steps that are queued at once
# Pieces of a job that may be queued on the device. A launch into a full queue blocks the launching thread, and with it all jobs.
PIECES_AHEAD = 3


class Job(Protocol):
    """``pieces`` puts a few training steps on the current stream each time; ``collect`` is called when all of them are over."""

    def pieces(self) -> Iterator[None]: ...

    def collect(self) -> None: ...


Maker = Callable[[], Job]  # builds the job on the current stream


def generator(device: str, seed: int) -> Any:
    """A source of random numbers of its own, so that jobs on different streams share none."""
    return torch.Generator(device=device).manual_seed(seed)


def captured(function: Callable[[], None], device: str, source: Any) -> Callable[[], None]:
    """The function as a graph on a GPU, itself elsewhere. It is called a few times first: reset what it changes afterwards."""
    if device == "cpu":
        return function
    for _ in range(WARM_UP):
        function()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(source)
    # Not torch.cuda.graph(): it waits for the whole device, and other jobs are running.
    graph.capture_begin(capture_error_mode="relaxed")
    function()
    graph.capture_end()
    replay: Callable[[], None] = graph.replay
    return replay


class Lane:
    """One stream and the job on it."""

    def __init__(self, device: str) -> None:
        self.stream = None if device == "cpu" else torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.job: Job | None = None
        self._left: Iterator[None] | None = None
        self._marks: deque[Any] = deque()

    def current(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def begin(self, maker: Maker) -> None:
        with self.current():
            self.job = maker()
            self._left = self.job.pieces()

    def advance(self) -> bool:
        """Queue another piece if there is room; collect and be free if all are over. Says whether anything was done."""
        while self._marks and self._marks[0].query():
            self._marks.popleft()
        if self.job is None:
            return False
        if self._left is not None and len(self._marks) < PIECES_AHEAD:
            with self.current():
                if next(self._left, "over") == "over":
                    self._left = None
                if self.stream is not None:
                    mark = torch.cuda.Event()  # type: ignore[no-untyped-call]
                    mark.record()
                    self._marks.append(mark)
            return True
        if self._left is None and not self._marks:
            with self.current():
                self.job.collect()
            self.job = None
            return True
        return False


def run(jobs: deque[Maker], device: str, count: int, last_start: float, end: float, tick: Callable[[], None]) -> None:
    """Run jobs until none is left; none is begun after ``last_start``, and all are given up at ``end`` (``time.monotonic``).

    A job's ``collect`` may add jobs. ``tick`` is called about once a second, for instance to save.
    """
    lanes = [Lane(device) for _ in range(count if device != "cpu" else 1)]
    ticked = time.monotonic()
    while (now := time.monotonic()) < end:
        busy = False
        for lane in lanes:
            if lane.job is None and jobs and now < last_start:
                lane.begin(jobs.popleft())
            busy = lane.advance() or busy
        if all(lane.job is None for lane in lanes) and (not jobs or now >= last_start):
            return
        if not busy:
            time.sleep(0.0005)
        if now - ticked > 1.0:
            ticked = now
            tick()
