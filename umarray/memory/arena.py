"""The ranges of one arena: offsets, owners and fences as plain values. No driver, no lock, no thread.

A free range remembers which owners used it last: its fence. Whoever carves it again must be ordered after them.
Neighbours merge, and their fences with them. Best fit, the lowest address first, keeps the highest offset low.

Each change takes a range out of one structure before it enters another: an exception half-way (Ctrl-C) can lose a
range until the arena goes, but never hand one out twice.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import NamedTuple

UNIT = 512  # bytes; the alignment that CuPy promises

Fence = frozenset[Hashable]
NO_FENCE: Fence = frozenset()


class Carved(NamedTuple):
    """A range that was handed out, and who used it before."""

    offset: int
    nbytes: int
    fence: Fence


def round_up(nbytes: int, unit: int = UNIT) -> int:
    """`nbytes` rounded up to a multiple of `unit`."""
    return -(-nbytes // unit) * unit


class Arena:
    """Free and used ranges of `nbytes` bytes, from offset 0.

    Parameters
    ----------
    nbytes : int
        Positive; the ranges handed out are multiples of 512.

    Notes
    -----
    Not safe from several threads: the caller holds a lock.

    Examples
    --------
    >>> from umarray.memory.arena import Arena
    >>> arena = Arena(4096)
    >>> first = arena.take(1000)
    >>> first.offset, first.nbytes
    (0, 1024)
    >>> arena.give(first.offset, "stream 1")
    1024
    >>> arena.take(512).fence
    frozenset({'stream 1'})
    """

    __slots__ = ("_by_size", "_ends", "_free", "_used", "free_bytes", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._used: dict[int, int] = {}  # start -> nbytes
        self._free: dict[int, tuple[int, Fence]] = {}  # start -> nbytes, fence
        self._ends: dict[int, int] = {}  # end of a free range -> its start
        self._by_size: list[tuple[int, int]] = []  # (nbytes, start), sorted
        self.free_bytes = 0
        self._enter(0, nbytes, NO_FENCE)

    def take(self, nbytes: int, align: int = UNIT) -> Carved | None:
        """Hand out the smallest free range that holds `nbytes`, the lowest of equals; None where there is none."""
        nbytes = round_up(max(nbytes, 1))
        for size, start in self._by_size[bisect_left(self._by_size, (nbytes, 0)) :]:
            offset = round_up(start, align)
            if offset + nbytes <= start + size:
                return self._cut(start, offset, nbytes)
        return None

    def take_largest(self, most: int, least: int = UNIT) -> Carved | None:
        """Hand out up to `most` bytes of one free range, the best fit or else the largest; None below `least`."""
        carved = self.take(most)
        if carved is None and self.largest_free >= least:
            size, start = self._by_size[-1]
            carved = self._cut(start, start, size // UNIT * UNIT)
        return carved

    def give(self, offset: int, *owners: Hashable) -> int:
        """Take back the range that starts at `offset`, last used by `owners`; returns its bytes.

        Raises
        ------
        ValueError
            No range in use starts there; nothing has changed.
        """
        if offset not in self._used:
            raise ValueError(f"no range in use starts at offset {offset}")
        nbytes = self._used.pop(offset)
        start, end, fence = offset, offset + nbytes, frozenset(owners)
        before = self._ends.get(start)
        if before is not None:
            fence |= self._leave(before)[1]
            start = before
        if end in self._free:
            after_bytes, after_fence = self._leave(end)
            end += after_bytes
            fence |= after_fence
        self._enter(start, end - start, fence)
        return nbytes

    def settle(self) -> None:
        """Forget every fence: the caller has waited for all owners."""
        for start, (nbytes, _) in list(self._free.items()):
            self._free[start] = (nbytes, NO_FENCE)

    @property
    def whole(self) -> bool:
        """Nothing is in use."""
        return not self._used

    @property
    def used_bytes(self) -> int:
        return self.nbytes - self.free_bytes

    @property
    def largest_free(self) -> int:
        """Bytes of the largest free range."""
        return self._by_size[-1][0] if self._by_size else 0

    @property
    def pieces(self) -> int:
        """How many free ranges there are."""
        return len(self._free)

    @property
    def high_offset(self) -> int:
        """Where the last range in use ends."""
        last = self._ends.get(self.nbytes)
        return self.nbytes if last is None else last

    def ranges(self) -> list[tuple[int, int, bool]]:
        """Offset, bytes and whether it is in use, of every range, in order."""
        used = [(start, nbytes, True) for start, nbytes in list(self._used.items())]
        return sorted(used + [(start, nbytes, False) for start, (nbytes, _) in list(self._free.items())])

    def fence(self) -> Fence:
        """Everyone who used a range that is free now."""
        return NO_FENCE.union(*(fence for _, fence in self._free.values()))

    def _cut(self, start: int, offset: int, nbytes: int) -> Carved:
        size, fence = self._leave(start)
        if offset > start:
            self._enter(start, offset - start, fence)
        if offset + nbytes < start + size:
            self._enter(offset + nbytes, start + size - offset - nbytes, fence)
        self._used[offset] = nbytes
        return Carved(offset, nbytes, fence)

    def _enter(self, start: int, nbytes: int, fence: Fence) -> None:
        self._free[start] = (nbytes, fence)
        self._ends[start + nbytes] = start
        insort(self._by_size, (nbytes, start))
        self.free_bytes += nbytes

    def _leave(self, start: int) -> tuple[int, Fence]:
        nbytes, fence = self._free[start]
        del self._by_size[bisect_left(self._by_size, (nbytes, start))]
        del self._free[start], self._ends[start + nbytes]
        self.free_bytes -= nbytes
        return nbytes, fence
