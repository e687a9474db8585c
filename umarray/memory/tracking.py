"""Tracking: which blocks are alive, their peak, and those that escaped an epoch, with the line that made them.

It costs time in every allocation, so pools track only where they were told to.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import NamedTuple

from umarray.memory import watched

_HERE = Path(__file__).resolve().parent.parent
_OURS = tuple(f"{_HERE / room}/" for room in ("memory", "residency", "pipeline", "observe", "calibration"))


@dataclass(frozen=True, slots=True)
class Escape:
    """Arrays made by one line inside an epoch and alive at its end."""

    line: str
    """`file:number` of the code that made them."""
    count: int
    nbytes: int
    epoch: str


_libraries: dict[str, bool] = {}  # by file name


# Of a live block: address, bytes, (file, line), persistent, thread, in an epoch. A plain tuple: it is made in malloc.
_Made = tuple[int, int, tuple[str, int], bool, int, bool]


class Block:
    """Keeps what it stands for alive, and tells the tracker when it goes. Its finaliser only appends."""

    __slots__ = ("__weakref__", "_gone", "_serial", "inner")

    def __init__(self, inner: object, gone: deque[int], serial: int) -> None:
        self.inner, self._gone, self._serial = inner, gone, serial

    def __del__(self) -> None:
        self._gone.append(self._serial)


class Live(NamedTuple):
    """A live block, as it was made."""

    serial: int
    address: int
    nbytes: int
    line: str
    persistent: bool
    in_epoch: bool


class Tracker:
    """Live blocks of a pool.

    Notes
    -----
    Safe from any thread; a free only appends.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._live: dict[int, _Made] = {}
        self._gone: deque[int] = deque()
        self.next_serial = 0
        self.current_bytes = self.peak_bytes = self.total_bytes = 0

    def made(self, inner: object, address: int, nbytes: int, persistent: bool, in_epoch: bool) -> Block:
        """Enter a block; hold on to the result as long as it lives."""
        made = (address, nbytes, _caller(sys._getframe(1)), persistent, get_ident(), in_epoch)
        with self._lock:
            if self._gone:
                self._settle()
            serial = self.next_serial
            self.next_serial = serial + 1
            self.total_bytes += nbytes
            self.current_bytes = current = self.current_bytes + nbytes
            if current > self.peak_bytes:
                self.peak_bytes = current
            self._live[serial] = made
            for log in watched.logs:
                log.made(self, serial, address, nbytes, made[2])
        return Block(inner, self._gone, serial)

    def holes(self, spans: Iterable[tuple[int, int]]) -> float:
        """Of the bytes below the highest live block of each (start, end), the share that is not alive."""
        blocks = self.live()
        span = alive = 0
        for start, end in spans:
            inside = [(address, nbytes) for address, nbytes in blocks if start <= address < end]
            alive += sum(nbytes for _, nbytes in inside)
            span += max((address + nbytes - start for address, nbytes in inside), default=0)
        return 1 - alive / span if span else 0.0

    def settle(self) -> None:
        """Take note of the blocks that have gone."""
        with self._lock:
            self._settle()

    def live(self) -> list[tuple[int, int]]:
        """Address and bytes of every live block."""
        with self._lock:
            self._settle()
            return [made[:2] for made in list(self._live.values())]

    def blocks(self) -> list[Live]:
        """Every live block, the oldest first."""
        with self._lock:
            self._settle()
            made = list(self._live.items())
        return [
            Live(serial, address, nbytes, "{}:{}".format(*line), persistent, in_epoch)
            for serial, (address, nbytes, line, persistent, _, in_epoch) in made
        ]

    def escaped(self, since: int, epoch: str, libraries: Iterable[int] = ()) -> tuple[Escape, ...]:
        """What was made from serial `since` on by this thread, or by one in no epoch of its own, and is alive.

        `libraries` are addresses that a library's cache holds: not escapes of the user's.
        """
        cached, here = frozenset(libraries), get_ident()
        counts: Counter[tuple[str, int]] = Counter()
        nbytes: Counter[tuple[str, int]] = Counter()
        with self._lock:
            self._settle()
            for serial, (address, size, line, persistent, thread, in_epoch) in list(self._live.items()):
                mine = thread == here or not in_epoch
                if serial >= since and mine and not persistent and address not in cached:
                    counts[line] += 1
                    nbytes[line] += size
        return tuple(Escape(f"{line[0]}:{line[1]}", count, nbytes[line], epoch) for line, count in counts.items())

    def _settle(self) -> None:
        while self._gone:
            serial = self._gone.popleft()
            made = self._live.pop(serial, None)
            if made is not None:
                self.current_bytes -= made[1]
                for log in watched.logs:
                    log.gone(self, serial)


def calling_line() -> str:
    """`file:number` of the nearest caller that is neither umarray nor an array library."""
    return "{}:{}".format(*_caller(sys._getframe(1)))


def _caller(frame: FrameType) -> tuple[str, int]:
    while True:
        filename = frame.f_code.co_filename
        library = _libraries.get(filename)
        if library is None:
            library = _libraries[filename] = _is_library(filename)
        if not library or frame.f_back is None:
            return filename, frame.f_lineno
        frame = frame.f_back


def _is_library(filename: str) -> bool:
    return filename.startswith(_OURS) or any(f"/{name}/" in filename for name in ("cupy", "cupyx", "numpy"))
