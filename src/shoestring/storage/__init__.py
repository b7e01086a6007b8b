"""Where studies are kept: ``open_storage(address)``, and what it gives (``base`` holds the contract)."""

from .base import Changes, Lease, Limits, Settings, Storage, Stored, StudyRecord, Waiting
from .memory import MemoryStorage
from .url import open_storage

__all__ = [
    "open_storage",
    "Storage",
    "MemoryStorage",
    "StudyRecord",
    "Settings",
    "Stored",
    "Waiting",
    "Changes",
    "Lease",
    "Limits",
]
