"""A disk that loses or scrambles what was not flushed, at any moment: SQLite's own way of testing crashes.

SQLite reaches files through a VFS, a table of functions. Here the usual one is wrapped (ctypes), and each write, truncation,
flush and deletion of a database's files is recorded. Flushes that Python makes (``os.fdatasync``) are recorded too. Then the
power fails after any of these steps: what each file held at its last flush is on the disk; of each later write, some sectors are
there, some are not, and some hold other bytes.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

OK, SECTOR_BYTES = 0, 512
VFS_BYTES, METHODS_BYTES = 168, 152  # of sqlite3_vfs and sqlite3_io_methods, version 3
X_OPEN, X_DELETE = 40, 48  # offsets of functions in sqlite3_vfs
X_CLOSE, X_WRITE, X_TRUNCATE, X_SYNC = 8, 24, 32, 40  # in sqlite3_io_methods
VOID, INT, INT64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
OPEN = ctypes.CFUNCTYPE(INT, VOID, VOID, VOID, INT, VOID)
DELETE = ctypes.CFUNCTYPE(INT, VOID, VOID, INT)
CLOSE = ctypes.CFUNCTYPE(INT, VOID)
WRITE = ctypes.CFUNCTYPE(INT, VOID, VOID, INT, INT64)
TRUNCATE = ctypes.CFUNCTYPE(INT, VOID, INT64)
SYNC = ctypes.CFUNCTYPE(INT, VOID, INT)

_kept = []  # what SQLite may still call: never freed


@dataclass
class Disk:
    """What happened to the files of one database, in order: (what, name, ...), with ``note`` for steps of the test itself."""

    database: str
    steps: list[tuple] = field(default_factory=list)

    def record(self, what, name, *more):
        if name.startswith(self.database) and not name.endswith("-shm"):
            self.steps.append((what, name[len(self.database) :], *more))

    def note(self, what):
        self.steps.append(("note", what))

    def noted(self, end):
        """What was noted before a step."""
        return [step[1] for step in self.steps[:end] if step[0] == "note"]

    def after_a_crash(self, end, luck):
        """The files after a power failure behind so many steps: suffix -> content."""
        files, pending = {}, {}
        for what, name, *more in self.steps[:end]:
            if what == "note":
                continue
            if what == "delete":
                files.pop(name, None)
                pending.pop(name, None)
            elif what == "sync":
                files[name] = _applied(files.get(name, b""), pending.pop(name, []))
            else:
                pending.setdefault(name, []).append((what, *more))
        for name, writes in pending.items():
            files[name] = _applied(files.get(name, b""), [torn for each in writes for torn in _torn(each, luck)])
        return files


def _applied(content, writes):
    found = bytearray(content)
    for what, *more in writes:
        if what == "truncate":
            del found[more[0] :]
            continue
        start, data = more
        found.extend(b"\0" * (start - len(found)))
        found[start : start + len(data)] = data
    return bytes(found)


def _torn(write, luck):
    """What the disk has of a write that was not flushed."""
    fate = luck.choice(["kept", "lost", "torn"])
    if fate == "kept" or write[0] == "truncate":
        return [write] if fate == "kept" else []
    if fate == "lost":
        return []
    _, start, data = write
    parts = [(start + at, data[at : at + SECTOR_BYTES]) for at in range(0, len(data), SECTOR_BYTES)]
    scrambled = [(at, luck.randbytes(len(part)) if luck.random() < 0.3 else part) for at, part in parts if luck.random() < 0.6]
    return [("write", at, part) for at, part in scrambled]


def library():
    """The SQLite that Python uses; None if it is not a library of its own, or there is no /proc."""
    sqlite3.connect(":memory:").close()
    try:
        found = re.search(r"\S*libsqlite3\S*", Path("/proc/self/maps").read_text())
    except OSError:
        return None
    if found is None or ctypes.sizeof(VOID) != 8:
        return None
    loaded = ctypes.CDLL(found.group())
    loaded.sqlite3_vfs_find.restype = VOID
    loaded.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    loaded.sqlite3_vfs_register.argtypes = [VOID, INT]
    return loaded


@contextmanager
def recorded(database, monkeypatch):
    """All that SQLite and ``os.fdatasync`` do to the files of a database (its real path) inside the block."""
    disk, sqlite = Disk(str(database)), library()
    usual = sqlite.sqlite3_vfs_find(None)
    wrapped = ctypes.create_string_buffer(ctypes.string_at(usual, VFS_BYTES), VFS_BYTES)
    _set_pointer(ctypes.addressof(wrapped), 24, ctypes.cast(name := ctypes.create_string_buffer(b"recorded"), VOID).value)
    names, methods = {}, {}
    flush = os.fdatasync

    def fdatasync(descriptor):
        flush(descriptor)
        disk.record("sync", os.readlink(f"/proc/self/fd/{descriptor}"))

    def function(kind, table, offset, replacement):
        before = kind(_pointer(table, offset))
        new = kind(lambda *given: replacement(before, *given))
        _kept.append((before, new))
        return ctypes.cast(new, VOID).value

    def x_open(before, vfs, path, file, flags, answer):
        result = before(vfs, path, file, flags, answer)
        if result == OK and path:
            names[file] = os.fsdecode(ctypes.string_at(path))
            usual_methods = _pointer(file, 0)
            if usual_methods not in methods:
                copy = ctypes.create_string_buffer(ctypes.string_at(usual_methods, METHODS_BYTES), METHODS_BYTES)
                for kind, offset, replacement in replacements:
                    _set_pointer(ctypes.addressof(copy), offset, function(kind, usual_methods, offset, replacement))
                methods[usual_methods] = copy
                _kept.append(copy)
            _set_pointer(file, 0, ctypes.addressof(methods[usual_methods]))
        return result

    def x_close(before, file):
        names.pop(file, None)
        return before(file)

    def x_write(before, file, data, size, start):
        disk.record("write", names[file], start, ctypes.string_at(data, size))
        return before(file, data, size, start)

    def x_truncate(before, file, size):
        disk.record("truncate", names[file], size)
        return before(file, size)

    def x_sync(before, file, flags):
        result = before(file, flags)
        disk.record("sync", names[file])
        return result

    def x_delete(before, vfs, path, sync):
        disk.record("delete", os.fsdecode(ctypes.string_at(path)))
        return before(vfs, path, sync)

    replacements = [(CLOSE, X_CLOSE, x_close), (WRITE, X_WRITE, x_write), (SYNC, X_SYNC, x_sync)]
    replacements += [(TRUNCATE, X_TRUNCATE, x_truncate)]
    _set_pointer(ctypes.addressof(wrapped), X_OPEN, function(OPEN, usual, X_OPEN, x_open))
    _set_pointer(ctypes.addressof(wrapped), X_DELETE, function(DELETE, usual, X_DELETE, x_delete))
    _kept.append((wrapped, name, names, methods))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fdatasync)
        assert sqlite.sqlite3_vfs_register(ctypes.addressof(wrapped), 1) == OK
        try:
            yield disk
        finally:
            sqlite.sqlite3_vfs_register(usual, 1)
            sqlite.sqlite3_vfs_unregister(VOID(ctypes.addressof(wrapped)))


def _pointer(table, offset):
    return ctypes.c_void_p.from_address(table + offset).value


def _set_pointer(table, offset, value):
    ctypes.c_void_p.from_address(table + offset).value = value


def luck(seed):
    return random.Random(seed)
