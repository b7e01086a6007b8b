"""Approvals: which programs the user has allowed ``shoestring resume`` to run.

The program of a study is stored in a database, and so is the space that its arguments come from. Write access to a database must
not decide what runs on this machine. So ``run`` notes what the user has typed, in the user's own configuration folder, and
``resume`` runs the same without a question. For anything else it asks, or refuses where there is no terminal.

A request to run a program is the same as an earlier one if all of this is the same:

    study      the study's identity and its name ({study} may be an argument)
    command    the arguments with their placeholders, and whether the program reads SHOESTRING_CONFIG
    program    the file that the first word means, by the PATH of now
    folder     the working folder, without symbolic links
    variables  the environment variables that make a program load other code, such as PYTHONPATH and LD_PRELOAD
    space      the parameters with their bounds and options: their values become arguments

Other environment variables come from the user's own shell and are not compared. Nor is the content of files: a script may be
edited between two runs.

Each approval is one file, ``~/.config/shoestring/approvals/STUDY-HASH.json``, so that two runs that write at once do not disturb
each other. Only the user may read it. A file that others may write to is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..program.result_reader import Logs, default_log_folder
from ..space.space import Space
from ..state.checkpoints import PRIVATE_FOLDER, write_marker

CODE_VARIABLES = (  # they make the loader or an interpreter run other code
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
    "PYTHONSTARTUP", "PYTHONUSERBASE", "BASH_ENV", "ENV", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS",
    "NODE_PATH", "R_PROFILE", "R_HOME", "JULIA_LOAD_PATH", "JAVA_TOOL_OPTIONS", "CLASSPATH",
)  # fmt: skip
HASH_DIGITS = 32
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
PARTS = {  # of a request, as they are called in a question
    "name": "its name", "command": "its program", "pass_as_json": "how it gets its parameters",
    "program": "the file of its program", "folder": "the working folder", "variables": "the environment", "space": "its space",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Request:
    """All that decides what a run of a study's program does; see the head of this module."""

    study: str
    name: str
    command: Sequence[str]
    pass_as_json: bool
    program: str
    folder: str
    variables: Mapping[str, str]
    space: Mapping[str, Any]

    @property
    def digest(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def path(self) -> Path:
        """The file of the approval."""
        return approval_folder() / f"{self.study}-{self.digest[:HASH_DIGITS]}.json"

    @property
    def is_approved(self) -> bool:
        """Whether the user has allowed exactly this before."""
        found = read_approval(self.path) if self.study else None
        return found is not None and found.get("digest") == self.digest

    def approve(self, logs: str) -> None:
        """Note that the user allows this; ``logs`` is the log folder of the run. An OSError if it cannot be written."""
        folder = self.path.parent
        for each in (*reversed(folder.parents), folder):
            each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        write_marker(self.path, asdict(self) | {"digest": self.digest, "logs": os.path.abspath(logs)})

    @property
    def parameters(self) -> Space:
        return Space.from_json(json.dumps(self.space))

    @property
    def logs(self) -> str:
        """The log folder that was noted with the approval; empty if there is none."""
        noted = (read_approval(self.path) or {}).get("logs") if self.study else None
        return shorter_path(noted) if isinstance(noted, str) else ""

    def changes(self) -> list[str]:
        """What differs from the closest approval of this study, in words; empty if there is none."""
        found = [
            [text for part, text in PARTS.items() if approval.get(part) != json.loads(json.dumps(asdict(self)[part]))]
            for approval in (approvals(self.study) if self.study else ())
        ]
        return min(found, key=len, default=[])


def make_request(study: str, name: str, command: Sequence[str], pass_as_json: bool, space: Space) -> Request:
    """The request to run this command for a study, here and now."""
    program = shutil.which(command[0])
    return Request(
        study=study,
        name=name,
        command=list(command),
        pass_as_json=pass_as_json,
        program=command[0] if program is None else os.path.abspath(program),
        folder=os.path.realpath(os.curdir),
        variables={variable: os.environ[variable] for variable in CODE_VARIABLES if variable in os.environ},
        space={parameter: value.to_dict() for parameter, value in space.items()},
    )


def approval_folder() -> Path:
    """In XDG_CONFIG_HOME, or in ~/.config."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(given) if os.path.isabs(given) else Path("~/.config").expanduser()
    return home / "shoestring" / "approvals"


def approvals(study: str) -> Iterator[dict[str, Any]]:
    """The approvals of a study."""
    for path in sorted(approval_folder().glob(f"{study}-*.json")):
        if (found := read_approval(path)) is not None and found.get("study") == study:
            yield found


def read_approval(path: Path) -> dict[str, Any] | None:
    """An approval; None if there is none, or if another user may have written it."""
    try:
        with path.open(encoding="utf-8") as file:
            if not is_own(os.fstat(file.fileno())) or not is_own(path.parent.stat()):
                return None
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and no other user may write to it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & OTHERS_MAY_WRITE)


def known_log_folders(study: str) -> list[Path]:
    """The log folders of a study's runs on this machine, as noted with their approvals; those of this working folder first."""
    here = os.path.realpath(os.curdir)
    found = sorted(approvals(study), key=lambda each: each.get("folder") != here) if study else []
    return list(dict.fromkeys(Path(each["logs"]) for each in found if isinstance(each.get("logs"), str)))


def shorter_path(path: str) -> str:
    """A path in the working folder without that folder; others as they are."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def find_logs(study: str, name: str) -> Logs:
    """The log folder of a study on this machine: the one that is there and names the study, or else the default one.

    The database may name another one, but it must not decide which files are read or removed.
    """
    known = find_all_logs(study, name)
    return next((logs for logs in known if study and logs.owner == study), known[-1])


def find_all_logs(study: str, name: str) -> list[Logs]:
    """The folders in which a study may have logs on this machine; the last is the default one."""
    folders = [*known_log_folders(study), default_log_folder(name, study).absolute()]
    return [Logs(Path(shorter_path(str(folder))), study) for folder in dict.fromkeys(reversed(folders))][::-1]


def forget(study: str) -> None:
    """Remove the approvals of a study."""
    for path in approval_folder().glob(f"{study}-*.json") if study else ():
        with suppress(OSError):
            path.unlink()
