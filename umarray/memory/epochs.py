"""Epochs: spans of a program at whose end an arena is made whole again."""

from __future__ import annotations

import gc
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakSet

from umarray import events
from umarray.errors import ClosedError, EscapeError, EscapeWarning
from umarray.lines import called
from umarray.memory import active, deferred, lingering
from umarray.memory.active import Entry
from umarray.memory.tracking import Escape, calling_line
from umarray.sizes import format_size

if TYPE_CHECKING:
    from umarray.memory.pool import Pool

ON_ESCAPE = ("retain", "warn", "raise")
MOST_ESCAPES = 1000  # records kept for the statistics


class Epoch:
    """One `with` block of `pool.epoch()`.

    Attributes
    ----------
    label : str
        What the epoch is called in warnings, errors and records.
    escapes : tuple of Escape or None
        After the end: what was made inside and is still alive, a record a line; None where nothing was tracked.

    Notes
    -----
    Belongs to the thread that enters it. Only the end of the outermost of all that overlap touches the arenas.
    """

    def __init__(self, pool: Pool, label: str, on_escape: str) -> None:
        if on_escape not in ON_ESCAPE:
            raise ValueError(f"on_escape {on_escape!r} is unknown: it takes {', '.join(map(repr, ON_ESCAPE))}")
        if not isinstance(label, str):
            raise TypeError(f"an epoch's label must be text, not {label!r}")
        self.label = label
        self.escapes: tuple[Escape, ...] | None = None
        self._pool = pool
        self._on_escape = on_escape
        self._state = "new"
        self._thread = 0
        self._since = 0
        self._serial = 0
        self._activation: Entry | None = None

    def __enter__(self) -> Epoch:
        if self._state != "new":
            raise ClosedError(f"epoch {self.label!r} was entered before: make a new one for each time")
        self._pool.check_open()
        self._thread = threading.get_ident()
        self._activation = self._pool.track_here() if self._on_escape != "retain" else None
        self._pool.epochs.begin(self)
        self._since = self._pool.tracker.next_serial
        self._state = "open"
        if events.listeners:
            self._serial = events.next_serial()
            events.emit(events.Began(self._serial, "epoch", self.label, calling_line()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state != "open":
            raise ClosedError(f"epoch {self.label!r} is not open")
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"epoch {self.label!r} must end in the thread that entered it")
        self._state = "closed"
        pool = self._pool
        with ExitStack() as undo:
            undo.callback(pool.epochs.end, self, pool.relay)
            if self._activation is not None:
                undo.callback(self._activation.leave)
            deferred.drain()
            lingering.sweep()
            self.escapes = self._escaped()
        if events.listeners:
            nbytes = None if self.escapes is None else sum(escape.nbytes for escape in self.escapes)
            count = None if self.escapes is None else sum(escape.count for escape in self.escapes)
            lines = tuple((one.line, one.count, one.nbytes) for one in self.escapes or ())
            events.emit(events.EpochEnded(self.label, count, nbytes, lines))
            events.emit(events.Ended(self._serial, "epoch"))
        if self.escapes and self._on_escape == "warn":
            for escape in pool.epochs.not_told(self.escapes):
                warnings.warn(f"epoch {self.label!r}: {_told(escape)}", EscapeWarning, stacklevel=2)
        elif self.escapes and self._on_escape == "raise" and error is None:
            listed = "; ".join(_told(escape) for escape in self.escapes)
            raise EscapeError(
                f"epoch {self.label!r} ended with arrays alive: {listed}. Delete their names before the end, "
                "make what shall stay in `with pool.persistent():`, or choose on_escape='retain'"
            )

    def _escaped(self) -> tuple[Escape, ...] | None:
        pool, asked = self._pool, self._on_escape != "retain"
        if not (asked or pool.tracking or active.flags(pool).tracked):
            return None
        escapes = pool.tracker.escaped(self._since, self.label, pool.library_blocks())
        if escapes and asked:
            gc.collect()  # arrays in reference cycles are dead, not escaped
            escapes = pool.tracker.escaped(self._since, self.label, pool.library_blocks())
        pool.epochs.escapes.extend(escapes)
        return escapes


class _Depth(threading.local):
    depth = 0


class Epochs:
    """How many epochs of a pool are open, and what was told of their escapes. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = _Depth()
        self._open: WeakSet[Epoch] = WeakSet()  # one that is dropped open (a generator's) ends with it
        self._told: set[str] = set()
        self.escapes: deque[Escape] = deque(maxlen=MOST_ESCAPES)

    def begin(self, epoch: Epoch) -> None:
        """Count one in."""
        with self._lock:
            self._open.add(epoch)
        self._thread.depth = self.depth() + 1

    def end(self, epoch: Epoch, relay: Callable[[], None]) -> None:
        """Count one out; the last of all that overlap calls `relay`."""
        self._thread.depth = self.depth() - 1
        with self._lock:
            self._open.discard(epoch)
            outermost = not self._open
        if outermost:
            relay()

    def since(self) -> int | None:
        """The first serial of the oldest epoch that is open; None where none is."""
        with self._lock:
            return min((epoch._since for epoch in self._open), default=None)

    def depth(self) -> int:
        """How many the calling thread is in."""
        return self._thread.depth

    def not_told(self, escapes: Iterable[Escape]) -> list[Escape]:
        """Those whose line has not been warned about yet; it has from now on."""
        with self._lock:
            new = [escape for escape in escapes if escape.line not in self._told]
            self._told.update(escape.line for escape in new)
        return new


def _told(escape: Escape) -> str:
    what = "1 array" if escape.count == 1 else f"{escape.count} arrays"
    return f"{what} ({format_size(escape.nbytes)}) made at {called(escape.line)} escaped"
