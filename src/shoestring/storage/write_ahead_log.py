"""Damage in the write-ahead log of a SQLite file (-wal), found before SQLite opens it.

SQLite reads the log up to the first page whose checksum is wrong, and takes the rest for what a power failure has left of writes
that were never confirmed. That is right after a power failure. But if a byte has changed, a part is cut off, or the log was
deleted, then confirmed writes are gone, and SQLite does not say so. Here is what shows the difference:

    -shm    the index of the log, which all processes share. It holds how many pages of the log were committed. It stays when the
            processes are killed. If the log has fewer whole pages, or is missing, then confirmed writes are gone.
    -wal    pages that were committed (their header says so), behind a page that is not whole. Processes that are killed do not
            leave such a log, since the log is written from front to back.

Both can also be left by a power failure: then the disk has some writes and lacks earlier ones. So where the log is older than the
start of the machine, what was found is logged, and the log is copied before SQLite opens it; otherwise it is an error.

Not found: a log that was cut at the end of a write, where the -shm file is gone too; a tune.db that was copied alone.

Formats (https://www.sqlite.org/walformat.html): the log is a header of 32 bytes and frames, each with a header of 24 bytes and a
page. Two sums s, t modulo 2^32 run over all of it, pair of words by pair of words (x, y):  s += x + t,  t += y + s.  They are
linear in the words, so a frame is one product with a matrix of weights.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import StorageError

log = logging.getLogger("shoestring")

MAGIC = 0x377F0682  # and one more if the words of the checksums are big-endian
HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
INDEX_HEADER_BYTES = 48  # of the -shm file, which has it twice, and then the number of pages that are in the main file already
FRAMES_PER_READ = 1024
TRIES, PAUSE_SECONDS = 5, 0.02  # a log that others write to at this moment is read again
WORD = 1 << 32

Content = TypeVar("Content")


@dataclass(frozen=True)
class LogContent:
    """What a log holds, in frames. ``later`` are committed frames behind one that is not whole."""

    salts: bytes
    committed: int
    later: int


@dataclass(frozen=True)
class LogIndex:
    """What the -shm file says about the log: the committed frames, and how many of them the main file has."""

    salts: bytes
    committed: int
    merged: int


def require_whole_log(path: str) -> None:
    """A StorageError if writes were lost from the log of this database (its real path). Nothing is changed."""
    problem = find_damage(path)
    if problem is None:
        return
    said = f"{path}-wal, which belongs to {path}, is damaged: {problem}"
    if _older_than_the_machine(path):
        copy = f"{path}-wal.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
        if os.path.exists(f"{path}-wal"):
            shutil.copyfile(f"{path}-wal", copy)
            said += f" (a copy is in {copy})"
        log.warning("%s; this is usual after a power failure, and then only writes that were not confirmed are missing", said)
        return
    merge = f"import sqlite3; sqlite3.connect({path!r}).execute('PRAGMA wal_checkpoint(TRUNCATE)')"
    raise StorageError(
        f"{said}; results that were stored would be missing; nothing was changed; restore {path} and {path}-wal together, or "
        f'keep a copy of both and go on with what can be read, after: python -c "{merge}"'
    )


def find_damage(path: str) -> str | None:
    """What is missing from the log, in words; None if nothing is, or if that cannot be told."""
    if not os.path.exists(f"{path}-wal") and not os.path.exists(f"{path}-shm"):
        return None
    last: tuple[object, ...] | None = None
    for _ in range(TRIES):
        index = None if _is_open_here(f"{path}-shm") else _read(f"{path}-shm", read_index)  # first: the log is ahead of it
        content = _read(f"{path}-wal", read_log)
        problem = compare(content, index, os.path.getsize(f"{path}-wal") if os.path.exists(f"{path}-wal") else 0)
        if problem is None:
            return None
        if (found := (_moment(path), problem)) == last:
            return problem
        last = found
        time.sleep(PAUSE_SECONDS)
    return None  # others write to it all the time, so it is in use


def compare(content: LogContent | None, index: LogIndex | None, size: int) -> str | None:
    """What is missing from a log, by what it holds and by what its index says."""
    if content is None:
        if size > HEADER_BYTES:
            return "its first 32 bytes cannot be read"
        missing = 0 if index is None else index.committed - index.merged
        return f"it is missing or empty, and {missing} pages were in it" if missing > 0 else None
    if index is not None and index.salts == content.salts:
        missing = index.committed - content.committed
        return f"{missing} of its {index.committed} pages are missing or not whole" if missing > 0 else None
    if content.later:
        return f"behind page {content.committed} there is one that is not whole, and then {content.later} more writes"
    return None


# -- the log -----------------------------------------------------------------------------------------------------------


def read_log(path: str) -> LogContent | None:
    """What a log holds; None if it has no readable header."""
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            return None
        magic, page_size = int.from_bytes(header[:4], "big"), int.from_bytes(header[8:12], "big")
        if magic & ~1 != MAGIC or page_size < 512 or page_size > 65536 or page_size & (page_size - 1):
            return None
        order = ">u4" if magic & 1 else "<u4"
        sums = _advance((0, 0), np.frombuffer(header[:24], order))
        if sums != _big_endian_pair(header[24:32]):
            return None
        salts, frame_bytes = header[16:24], FRAME_HEADER_BYTES + page_size
        weights, matrix = _weights((8 + page_size) // 8)
        whole, frame, committed, later = True, 0, 0, 0
        while len(part := file.read(FRAMES_PER_READ * frame_bytes)) >= frame_bytes:
            frames = np.frombuffer(part, np.uint8, len(part) // frame_bytes * frame_bytes).reshape(-1, frame_bytes)
            covered = np.hstack([frames[:, :8], frames[:, FRAME_HEADER_BYTES:]])  # not the salts and the checksum itself
            own_parts = covered.view(order).astype(np.uint32) @ weights
            for row, own in zip(frames, own_parts, strict=True):
                frame += 1
                if row[8:16].tobytes() != salts:  # of the log's earlier content: all that follows is older
                    return LogContent(salts, committed, later)
                commits = bool(row[4:8].any())
                if whole:
                    sums = _apply(matrix, sums, (int(own[0]), int(own[1])))
                    whole = sums == _big_endian_pair(row[16:24].tobytes())
                    committed = frame if whole and commits else committed
                elif commits:
                    later += 1
    return LogContent(salts, committed, later)


def _weights(pairs: int) -> tuple[NDArray[np.uint32], tuple[int, int, int, int]]:
    """The weights of the words of a frame in the two sums, and the matrix by which the frame changes the sums before it."""
    found = np.empty((2 * pairs, 2), np.uint32)
    a, b, c, d = 1, 0, 0, 1  # what a pair at this place, counted from the end, is multiplied with
    for pair in range(pairs - 1, -1, -1):
        found[2 * pair] = (a + b) % WORD, (c + d) % WORD  # x is added to both sums
        found[2 * pair + 1] = b, d  # y to the second
        a, b, c, d = (a + b) % WORD, (a + 2 * b) % WORD, (c + d) % WORD, (c + 2 * d) % WORD
    return found, (a, b, c, d)


def _apply(matrix: tuple[int, int, int, int], sums: tuple[int, int], own: tuple[int, int]) -> tuple[int, int]:
    a, b, c, d = matrix
    return (a * sums[0] + b * sums[1] + own[0]) % WORD, (c * sums[0] + d * sums[1] + own[1]) % WORD


def _advance(sums: tuple[int, int], words: NDArray[np.uint32]) -> tuple[int, int]:
    """The sums after some words."""
    weights, matrix = _weights(len(words) // 2)
    own = words.astype(np.uint32) @ weights
    return _apply(matrix, sums, (int(own[0]), int(own[1])))


def _big_endian_pair(content: bytes) -> tuple[int, int]:
    return int.from_bytes(content[:4], "big"), int.from_bytes(content[4:8], "big")


# -- its index ---------------------------------------------------------------------------------------------------------


def read_index(path: str) -> LogIndex | None:
    """What the -shm file says; None if it is not initialized or not whole. Its words are in the order of the machine."""
    with open(path, "rb") as file:
        first, second, rest = file.read(INDEX_HEADER_BYTES), file.read(INDEX_HEADER_BYTES), file.read(4)
    if len(rest) < 4 or first != second:
        return None
    content = first + second + rest
    words = np.frombuffer(content, np.uint32)
    if not content[12] or _advance((0, 0), words[:10]) != (int(words[10]), int(words[11])):
        return None
    return LogIndex(content[32:40], int(words[4]), int(words[24]))


def _is_open_here(path: str) -> bool:
    """Whether this process may have the file open. To close a second descriptor would end the locks on the first one (POSIX)."""
    try:
        there = os.stat(path)
        for name in os.listdir("/proc/self/fd"):
            try:
                found = os.stat(f"/proc/self/fd/{name}")
            except OSError:  # closed meanwhile
                continue
            if (found.st_dev, found.st_ino) == (there.st_dev, there.st_ino):
                return True
    except FileNotFoundError:
        return not Path("/proc/self/fd").is_dir()
    except OSError:
        return True
    return False


# -- the files ---------------------------------------------------------------------------------------------------------


def _read(path: str, read: Callable[[str], Content | None]) -> Content | None:
    try:
        return read(path)
    except OSError:  # there is none, or SQLite will say why it cannot be read
        return None


def _moment(path: str) -> tuple[object, ...]:
    """Which state of the files this is."""
    found: list[object] = []
    for name in (f"{path}-wal", f"{path}-shm"):
        try:
            status = os.stat(name)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _older_than_the_machine(path: str) -> bool:
    """Whether the machine was started after the log was last written, so that a power failure may have come in between."""
    try:
        started = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return max(os.stat(name).st_mtime for name in (f"{path}-wal", f"{path}-shm") if os.path.exists(name)) < started
    except (AttributeError, OSError, ValueError):  # no such clock: it cannot be told
        return True
