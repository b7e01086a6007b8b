"""Storages, which keep studies: ``open_storage(address)`` opens one, and ``base`` holds the contract that each one meets."""

from .base import Changes, Lease, Limits, QueuedConfig, Settings, Storage, StoredTrial, StudyRecord
from .memory import MemoryStorage
from .url import open_storage

__all__ = [
    "open_storage",
    "Storage",
    "MemoryStorage",
    "StudyRecord",
    "Settings",
    "StoredTrial",
    "QueuedConfig",
    "Changes",
    "Lease",
    "Limits",
]
