"""Which allocation holds an address: a table of our own, since runtimes answer wrongly (HIP 6 and later)."""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right, insort

from umarray.drivers.base import Allocation, Kind
from umarray.places import Place


class AllocationTable:
    """Live allocations by address. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._by_start: dict[int, Allocation] = {}
        self._serials = itertools.count(1)

    def add(self, address: int, nbytes: int, kind: Kind, place: Place) -> Allocation:
        """Enter a new allocation and return it with its serial."""
        with self._lock:
            allocation = Allocation(address, nbytes, kind, place, next(self._serials))
            insort(self._starts, address)
            self._by_start[address] = allocation
            return allocation

    def remove(self, allocation: Allocation) -> None:
        """Forget an allocation.

        Raises
        ------
        ValueError
            It is not in the table: freed before, or never ours.
        """
        with self._lock:
            if self._by_start.get(allocation.address) != allocation:
                raise ValueError(f"{allocation} is not allocated: freed before, or never from this driver")
            del self._by_start[allocation.address]
            del self._starts[bisect_right(self._starts, allocation.address) - 1]

    def find(self, address: int) -> Allocation | None:
        """The allocation whose range holds `address`."""
        with self._lock:
            at = bisect_right(self._starts, address) - 1
            if at < 0:
                return None
            allocation = self._by_start[self._starts[at]]
        return allocation if address < allocation.address + allocation.nbytes else None

    def __len__(self) -> int:
        return len(self._starts)
