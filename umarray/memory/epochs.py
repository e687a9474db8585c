"""Epochs: spans of a program at whose end an arena is made whole again."""

from __future__ import annotations

import gc
import threading
import warnings
from types import TracebackType
from typing import TYPE_CHECKING

from umarray import events
from umarray.errors import ClosedError, EscapeError, EscapeWarning
from umarray.memory.tracking import Escape
from umarray.sizes import format_size

if TYPE_CHECKING:
    from umarray.memory.pool import Pool

ON_ESCAPE = ("retain", "warn", "raise")


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
        self._activation: object = None

    def __enter__(self) -> Epoch:
        if self._state != "new":
            raise ClosedError(f"epoch {self.label!r} was entered before: make a new one for each time")
        self._pool.check_open()
        self._thread = threading.get_ident()
        tracker = self._pool.begin_epoch(self, self._on_escape != "retain")
        self._state = "open"
        if tracker is not None:
            self._since = tracker.next_serial
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state != "open":
            raise ClosedError(f"epoch {self.label!r} is not open")
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"epoch {self.label!r} must end in the thread that entered it")
        self._state = "closed"
        self.escapes = self._pool.end_epoch(self, self._since, self._on_escape != "retain")
        if events.listeners:
            nbytes = None if self.escapes is None else sum(escape.nbytes for escape in self.escapes)
            count = None if self.escapes is None else sum(escape.count for escape in self.escapes)
            events.emit(events.EpochEnded(self.label, count, nbytes))
        if self.escapes and self._on_escape == "warn":
            for escape in self._pool.not_told(self.escapes):
                warnings.warn(f"epoch {self.label!r}: {_told(escape)}", EscapeWarning, stacklevel=2)
        elif self.escapes and self._on_escape == "raise" and error is None:
            listed = "; ".join(_told(escape) for escape in self.escapes)
            raise EscapeError(
                f"epoch {self.label!r} ended with arrays alive: {listed}. Delete their names before the end, "
                "make what shall stay in `with pool.persistent():`, or choose on_escape='retain'"
            )


def collect() -> None:
    """Arrays in reference cycles are dead, not escaped: collect them before anything is said."""
    gc.collect()


def _told(escape: Escape) -> str:
    what = "1 array" if escape.count == 1 else f"{escape.count} arrays"
    return f"{what} ({format_size(escape.nbytes)}) made at {escape.line} escaped"
