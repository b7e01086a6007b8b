"""Checkpoint folders: where a configuration keeps its files, so that it can continue from them.

All trials of one configuration share a folder, at every fidelity: when Hyperband promotes a configuration from 3 epochs to 9, or
another method comes back to it, the objective finds what it saved. A folder's name is the beginning of a hash of the study's
identity and of the configuration without its fidelities. So it can be found again in another process, and no other study has it.

Beside each folder lies a small file, its marker, that names the study and the configuration. Files without a marker, or with that
of another study or configuration, are not given to an objective: it would continue from a state that is not its own, and report
its value. The marker is not in the folder, since programs look whether their folder is empty.

By default the folders are in a temporary folder. When the process ends, empty folders are removed from it; what an objective has
saved there stays until the system cleans its temporary files.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import MethodError, StudyError
from ..space.space import Space

HASH_DIGITS = 12  # two of a million configurations share a folder with probability 0.002
MARKER_SUFFIX = ".json"
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

    def folder(self, config: Mapping[str, Any], space: Space) -> Path:
        """The folder of a configuration, made if it is not there; a StudyError if it is there and belongs to another one."""
        if self.root is None:
            with _making_root:  # two threads that need it at once must not get two
                self.root = self.root or temporary_root()
        folder = self.path(config, space)
        if folder not in self._checked or not folder.is_dir():
            make_folder(folder, {"study": self.identity(), "config": json.loads(space.key(bare_config(config, space)))})
            self._checked.add(folder)
        return folder

    def path(self, config: Mapping[str, Any], space: Space) -> Path:
        """Where the folder of a configuration is, or would be; for a study with a ``root``."""
        assert self.root is not None
        return self.root / folder_name(config, space, self.identity())

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
    elif (found or read_marker(marker)) != owner:  # again, since another process may be making the same folder
        whose = "nothing says of which study" if found is None else f"they are of study {found.get('study')}"
        raise StudyError(
            f"the checkpoint folder {folder} has files, but {whose}: a trial that continued from them would report the value of "
            f"another one. Move {folder} and {marker.name} away, or choose another folder by checkpoints=..."
        )
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


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
    """A configuration without its fidelities."""
    return {name: value for name, value in config.items() if name not in space.fidelities}


def folder_name(config: Mapping[str, Any], space: Space, study: str) -> str:
    """The same for all fidelities of a configuration of a study, in every process."""
    return hashlib.sha256(f"{study}\n{space.key(bare_config(config, space))}".encode()).hexdigest()[:HASH_DIGITS]


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
