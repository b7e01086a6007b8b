"""A persistent list: copies are cheap and keep their items, so that a history is a snapshot of a study's trials.

Items are stored in pages of PAGE_SIZE, tuples that never change. A copy shares the pages. A change writes one new page, and
earlier copies keep the old one. A copy of a hundred thousand trials is a copy of two hundred references.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar, overload

T = TypeVar("T")

PAGE_SIZE = 512  # items per page: as many are copied for each item that is written


class PersistentList(Sequence[T]):
    """Items that can be appended and replaced, never removed. ``PersistentList(other)`` is a copy."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._pages: list[tuple[T, ...]] = []
        if isinstance(items, PersistentList):
            self._pages += items._pages
        else:
            self.extend(items)

    def __len__(self) -> int:
        return (len(self._pages) - 1) * PAGE_SIZE + len(self._pages[-1]) if self._pages else 0

    def append(self, item: T) -> None:
        self.extend([item])

    def extend(self, items: Iterable[T]) -> None:
        """Append all items, or none if reading them raises."""
        last = (*(self._pages[-1] if self._pages else ()), *items)
        self._pages[-1:] = [last[start : start + PAGE_SIZE] for start in range(0, len(last), PAGE_SIZE)]

    def __setitem__(self, index: int, item: T) -> None:
        page, place = self._locate(index)
        old = self._pages[page]
        self._pages[page] = (*old[:place], item, *old[place + 1 :])

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        page, place = self._locate(index)
        return self._pages[page][place]

    def _locate(self, index: int) -> tuple[int, int]:
        """The page of an item, and its place there."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there is no item {index}; there are {count}")
        return divmod(index % count, PAGE_SIZE)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(tuple(self._pages))

    def __eq__(self, other: object) -> bool:
        """Equal to a persistent list or a tuple of the same items."""
        if not isinstance(other, PersistentList | tuple):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))
