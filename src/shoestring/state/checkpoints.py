"""Checkpoint folders: where a configuration keeps its files, so that it can continue from them.

All trials of one run (``data/training_run``) share a folder: when Hyperband promotes a configuration from 3 epochs to 9, or
another method comes back to it, the objective finds what it saved. A folder's name is the beginning of a hash of the study's
identity, of the configuration without the fidelities over which it can continue, and of the run if it is not the first of its
configuration. So it can be found again in another process, and no other study has it. Where no fidelity is declared resumable,
the name does not depend on any fidelity.

Beside each folder lies a small file, its marker, that names the study and the configuration. Files without a marker, or with that
of another study or configuration, are not given to an objective: it would continue from a state that is not its own, and report
its value. The marker is not in the folder, since programs look whether their folder is empty.

By default the folders are in a temporary folder. When the process ends, empty folders are removed from it; what an objective has
saved there stays until the system cleans its temporary files.

Where a fidelity says ``resumable=True``, files are for going on, and are removed when that is over (``Checkpoints.tidy``): when
their run has reached the target, and when all files of the study take more than a limit. The files of the best trial stay. A
marker says then that the files were removed. A temporary folder is removed with its process, since no other would find it.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..data.history import History
from ..data.training_run import training_runs
from ..data.trial import Trial
from ..errors import MethodError, StudyError
from ..space.space import Space

HASH_DIGITS = 12  # two of a million configurations share a folder with probability 0.002
MARKER_SUFFIX = ".json"
LIMIT_VARIABLE = "SHOESTRING_CHECKPOINT_LIMIT"  # such as 500 MB or 10 GB
DEFAULT_LIMIT = 10 * 10**9  # bytes that the checkpoints of a study with resumable=True take at most
BYTES_OF = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600  # for this user alone

_making_root = threading.Lock()


class Checkpoints:
    """The folders of one study, under ``root`` or, by default, under a temporary folder; made when they are first needed.

    identity   gives the identity of the study; by default a new one
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, identity: Callable[[], str] | None = None) -> None:
        self.root = None if root is None else read_root(root)
        unknown = str(uuid.uuid4())
        self.identity = identity or (lambda: unknown)
        self._checked: set[Path] = set()  # whose markers this process has read or written
        self._tidied: set[Path] = set()  # whose files this process has removed

    def folder(self, config: Mapping[str, Any], space: Space, run: int | None = None) -> Path:
        """The folder of a configuration, made if it is not there; a StudyError if it is there and belongs to another one.

        ``run``: the number of its run, if that is not the first of the configuration.
        """
        if self.root is None:
            with _making_root:  # two threads that need it at once must not get two
                if self.root is None:
                    self.root = temporary_root()
                    if removes_files(space):
                        atexit.register(remove_root, self.root, os.getpid())
        folder = self.path(config, space, run)
        if folder not in self._checked or not folder.is_dir():
            owner = {"study": self.identity(), "config": json.loads(space.key(bare_config(config, space)))}
            make_folder(folder, owner if run is None else {**owner, "run": run})
            self._checked.add(folder)
        return folder

    def path(self, config: Mapping[str, Any], space: Space, run: int | None = None) -> Path:
        """Where the folder of a configuration is, or would be; for a study with a ``root``."""
        assert self.root is not None
        return self.root / folder_name(config, space, self.identity(), run)

    def trial_folder(self, trial: Trial, space: Space) -> Path:
        """The folder of a trial, which is that of its run."""
        return self.folder(trial.config, space, trial.suggestion.get("run"))

    def holds(self, trial: Trial, space: Space) -> bool:
        """Whether a later trial can go on from this one: what it has saved is still there.

        A trial that has saved nothing here may keep its files elsewhere: it is believed, unless its folder was removed.
        """
        saved = bool(trial.suggestion.get("saved"))
        if self.root is None:  # a temporary folder of another process
            return not saved
        folder = self.path(trial.config, space, trial.suggestion.get("run"))
        if (read_marker(folder.with_suffix(MARKER_SUFFIX)) or {}).get("removed"):
            return False
        return not saved or not is_empty(folder)

    def tidy(self, history: History, limit: int | None = None) -> list[int]:
        """Remove the files of runs that cannot go on, and of others while all take more than ``limit`` bytes.

        The files of the best trial and of running ones stay. Of the others, the oldest and worst go first: by the sum of both
        ranks. Returns the rows of the runs' furthest trials that can no longer be continued. ``limit`` of None: no limit.
        """
        space = history.space
        if self.root is None or not removes_files(space) or not self.root.is_dir():
            return []
        best, runs = history.best, [run for run in training_runs(history) if run.furthest is not None and not run.running]
        kept = None if best is None else self.path(best.config, space, best.suggestion.get("run"))
        folders = {run.furthest: self._path_of(history[run.rows[0]], space) for run in runs if run.furthest is not None}
        removed = list[int]()
        for run in runs:
            if run.complete and run.furthest is not None and folders[run.furthest] != kept:
                self._remove_files(folders[run.furthest])
        if limit is None:
            return removed
        sizes = {path: folder_bytes(path) for path in self._own_folders()}
        excess = sum(sizes.values()) - limit
        for row in removal_order([run.furthest for run in runs if run.furthest is not None and not run.complete], history):
            folder = folders[row]
            if excess <= 0:
                break
            if folder != kept and sizes.get(folder, 0):
                self._remove_files(folder)
                excess -= sizes[folder]
                removed.append(row)
        return removed

    def size(self) -> int:
        """The bytes that the files of this study take."""
        there = self.root is not None and self.root.is_dir()
        return sum(folder_bytes(path) for path in self._own_folders()) if there else 0

    def _path_of(self, trial: Trial, space: Space) -> Path:
        return self.path(trial.config, space, trial.suggestion.get("run"))

    def _own_folders(self) -> list[Path]:
        """The folders of this study that are there."""
        assert self.root is not None
        markers = [each for each in self.root.glob(f"*{MARKER_SUFFIX}") if each.with_suffix("").is_dir()]
        return [each.with_suffix("") for each in markers if (read_marker(each) or {}).get("study") == self.identity()]

    def _remove_files(self, folder: Path) -> None:
        """Remove a folder; its marker stays and says so. The marker is written first: half of the files are no checkpoint."""
        if folder in self._tidied and not folder.is_dir():
            return
        self._tidied.add(folder)
        marker = folder.with_suffix(MARKER_SUFFIX)
        found = read_marker(marker)
        if found and not found.get("removed"):
            write_marker(marker, {**found, "removed": True})
        shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> int:
        """Remove the folders whose marker names this study, with all that is in them, and count them. Other files stay."""
        if self.root is None or not self.root.is_dir():
            return 0
        removed = 0
        for marker in self.root.glob(f"*{MARKER_SUFFIX}"):
            if (read_marker(marker) or {}).get("study") == self.identity():
                if marker.with_suffix("").is_dir():
                    shutil.rmtree(marker.with_suffix(""), ignore_errors=True)
                    removed += 1
                marker.unlink(missing_ok=True)
        with suppress(OSError):  # it holds other files
            self.root.rmdir()
        return removed


def make_folder(folder: Path, owner: Mapping[str, Any]) -> None:
    """Make a folder with its marker, or make sure that the one that is there belongs to ``owner``.

    The marker is written first. So a folder that has files but no marker was not made here, also after a crash.
    """
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    marker = folder.with_suffix(MARKER_SUFFIX)
    found = read_marker(marker)
    if found is None and is_empty(folder):
        write_marker(marker, owner)
    elif without_removal(found or read_marker(marker)) != owner:  # again, since another process may be making the same folder
        whose = "nothing says of which study" if found is None else f"they are of study {found.get('study')}"
        raise StudyError(
            f"the checkpoint folder {folder} has files, but {whose}: a trial that continued from them would report the value of "
            f"another one. Move {folder} and {marker.name} away, or choose another folder by checkpoints=..."
        )
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def without_removal(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Whose folder a marker says it is, whether its files were removed or not."""
    return None if found is None else {name: value for name, value in found.items() if name != "removed"}


def removes_files(space: Space) -> bool:
    """Whether files are removed when they are of no use any more: where a fidelity says that they are for going on."""
    return bool(space.resumable) and not space.resumable_if_saved


def removal_order(rows: Sequence[int], history: History) -> list[int]:
    """Trials whose files may be removed, in that order: the oldest and worst first, by the sum of both ranks."""
    sign = -1.0 if history.maximize else 1.0
    by_value = sorted(rows, key=lambda row: -sign * float(history.table.value[row]))
    ranks = {row: age + by_value.index(row) for age, row in enumerate(sorted(rows))}
    return sorted(rows, key=lambda row: (ranks[row], row))


def folder_bytes(folder: Path) -> int:
    """What the files in a folder take."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was removed meanwhile
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def read_limit() -> int:
    """The bytes that the checkpoints of a study may take: as the environment says, or 10 GB."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+\.?\d*)\s*([kmgt]?b)", text.lower())
    if found is None:
        raise MethodError(f"{LIMIT_VARIABLE}={text!r} is not a size; write a number with its unit, such as 500 MB or 10 GB")
    return int(float(found[1]) * BYTES_OF[found[2]])


def size_text(size: int) -> str:
    """10 GB, 500 MB, 25 B"""
    unit = max((name for name in BYTES_OF if BYTES_OF[name] <= max(size, 1)), key=BYTES_OF.__getitem__)
    return f"{size / BYTES_OF[unit]:g} {unit.upper()}"


def is_empty(folder: Path) -> bool:
    """Whether there is no such folder, or nothing in it."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def write_marker(path: Path, content: Mapping[str, Any]) -> None:
    """Write a marker as a whole or not at all. Of several processes that write the same one, one wins."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with open(unfinished, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE)) as file:
        json.dump(content, file)
    os.replace(unfinished, path)


def read_marker(path: Path) -> dict[str, Any] | None:
    """What a marker says; None if there is none, an empty dict if it cannot be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def temporary_root() -> Path:
    """A new temporary folder for the checkpoints of a study."""
    root = Path(tempfile.mkdtemp(prefix="shoestring-"))
    atexit.register(remove_empty_folders, root, os.getpid())
    return root


def remove_root(root: Path, process: int) -> None:
    """Remove a temporary folder with all that is in it. Only the process that made it does so."""
    if process == os.getpid():
        shutil.rmtree(root, ignore_errors=True)


def remove_empty_folders(root: Path, process: int) -> None:
    """Remove the empty folders in ``root``, and ``root`` itself if it is empty then. Only the process that made it does so."""
    if process == os.getpid() and root.is_dir():
        for folder in [path for path in root.iterdir() if path.is_dir()]:
            with suppress(OSError):  # it holds files
                folder.rmdir()
                folder.with_suffix(MARKER_SUFFIX).unlink(missing_ok=True)
        with suppress(OSError):
            root.rmdir()


def bare_config(config: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """A configuration without the fidelities over which it can continue; without any, where none is declared resumable."""
    left_out = space.resumable or space.fidelities
    return {name: value for name, value in config.items() if name not in left_out}


def folder_name(config: Mapping[str, Any], space: Space, study: str, run: int | None = None) -> str:
    """The same for all fidelities of a run of a study, in every process."""
    text = f"{study}\n{space.key(bare_config(config, space))}"
    return hashlib.sha256((text if run is None else f"{text}\nrun {run}").encode()).hexdigest()[:HASH_DIGITS]


def read_root(root: str | os.PathLike[str]) -> Path:
    """An absolute path, since an objective may change the working directory; it need not exist yet."""
    text = os.fspath(root) if isinstance(root, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise MethodError(f'checkpoints={root!r} is not a path; write checkpoints="folder", or leave it out for a temporary one')
    try:
        path = Path(text).expanduser().absolute()
        is_file = path.exists() and not path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # its name is too long, or ~NAME is no user
        reason = getattr(error, "strerror", None) or error
        raise MethodError(f"checkpoints={text[:80]!r} cannot be a folder: {reason}; give another one") from None
    if is_file:
        raise MethodError(f"checkpoints={str(root)!r} is a file; give a folder")
    return path
