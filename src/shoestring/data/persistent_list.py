"""A list of which a copy costs next to nothing, so that whoever looks at a study's trials keeps what he saw.

Items stand on pages of SIZE, each a tuple that never changes. A copy has the same pages; a change writes one page anew, and
copies that were made before keep the old one. A hundred thousand trials are copied as two hundred pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar, overload

T = TypeVar("T")

PAGE_SIZE = 512  # items on a page: as many are copied for each that is written


class PersistentList(Sequence[T]):
    """Items that can be appended and replaced, never removed. ``Pages(other)`` is a copy."""

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
        found = (*(self._pages[-1] if self._pages else ()), *items)
        self._pages[-1:] = [found[first : first + PAGE_SIZE] for first in range(0, len(found), PAGE_SIZE)]

    def __setitem__(self, index: int, item: T) -> None:
        page, place = self._place(index)
        old = self._pages[page]
        self._pages[page] = (*old[:place], item, *old[place + 1 :])

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        page, place = self._place(index)
        return self._pages[page][place]

    def _place(self, index: int) -> tuple[int, int]:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there is no item {index}; there are {count}")
        return divmod(index % count, PAGE_SIZE)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(tuple(self._pages))

    def __eq__(self, other: object) -> bool:
        """Equal to a tuple of the same items too."""
        if not isinstance(other, PersistentList | tuple):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))
