"""What watches are told of blocks: made with which line, and gone.

Trackers tell it (`tracking.Tracker`); a watch opens a `BlockLog` for as long as it is interested. While one is open,
every pool tracks what it hands out itself (`active.flags`).
"""

from __future__ import annotations

import threading
from collections import deque
from time import perf_counter
from typing import NamedTuple, Protocol

_lock = threading.Lock()
logs: tuple[BlockLog, ...] = ()
"""The open ones. Empty costs a truth test."""


class Teller(Protocol):
    """What tells: a tracker."""

    def settle(self) -> None:
        """Take note of the blocks that have gone."""


class Happened(NamedTuple):
    """A block was made, or seen to be gone."""

    at: float
    """`time.perf_counter` seconds; of one that is gone: when that was noticed, before its memory was used again."""
    gone: bool
    address: int
    nbytes: int
    line: tuple[str, int]
    """File and number of the code that made it."""


class BlockLog:
    """What happened to blocks since it was opened. Counts are of blocks that were made since then.

    Parameters
    ----------
    most : int
        How many happenings are kept; the oldest go first. The counts stay right.

    Notes
    -----
    Safe from any thread. Its lock is a leaf; it may be taken again by a finaliser that allocates.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._lock = threading.RLock()
        self._happened: deque[Happened] = deque(maxlen=most)
        self._alive: dict[tuple[int, int], tuple[int, int, tuple[str, int]]] = {}
        self._tellers: dict[int, Teller] = {}  # kept, so that an id stands for one of them
        self._taken = 0  # of all that were told
        self._told = 0
        self.allocations = self.total_bytes = self.current_bytes = self.peak_bytes = 0

    def open(self) -> None:
        """Be told from now on."""
        global logs
        with _lock:
            logs = (*logs, self)

    def close(self) -> None:
        """Be told no more."""
        global logs
        with _lock:
            logs = tuple(one for one in logs if one is not self)

    def made(self, tracker: Teller, serial: int, address: int, nbytes: int, line: tuple[str, int]) -> None:
        """A tracker hands out a block."""
        with self._lock:
            self._tellers[id(tracker)] = tracker
            self.allocations += 1
            self.total_bytes += nbytes
            self.current_bytes += nbytes
            if self.current_bytes > self.peak_bytes:
                self.peak_bytes = self.current_bytes
            self._alive[id(tracker), serial] = (address, nbytes, line)
            self._told += 1
            self._happened.append(Happened(perf_counter(), False, address, nbytes, line))

    def gone(self, tracker: Teller, serial: int) -> None:
        """A tracker noticed that a block is gone; one that was made before is of no interest."""
        with self._lock:
            made = self._alive.pop((id(tracker), serial), None)
            if made is not None:
                self.current_bytes -= made[1]
                self._told += 1
                self._happened.append(Happened(perf_counter(), True, *made))

    def settle(self) -> None:
        """Let the trackers take note of what has gone."""
        for tracker in list(self._tellers.values()):
            tracker.settle()

    def take(self) -> tuple[list[Happened], int]:
        """What happened since the last time, and how many more there were that had to be dropped."""
        with self._lock:
            new = self._told - self._taken
            kept = list(self._happened)
            self._happened.clear()
            self._taken = self._told
            return kept, new - len(kept)
