"""What happened, as frozen records, for whoever listens.

A place that has something to tell writes ``if events.listeners: events.emit(events.Prefetched(...))``: with nobody
listening that is one truth test. A listener that raises is dropped and logged; it never breaks the program.

The design is trio's instruments made smaller: one callable a listener, the record's type says what happened.

Three families: what a program began and ended (`Began`, `Ended`), what umarray asked for or did itself (`Prefetched`,
`Advised`, `Copied`, `Waited`, `Allocated`, ...), and effects that a device or its driver told of (`Migrated`,
`Faulted`, `Used`), which nobody emits: who watches reads them from its sources. Times are `time.perf_counter` seconds.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from umarray.log import warn_once
from umarray.places import Place


@dataclass(frozen=True, slots=True)
class Record:
    """Base of every record."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array as a scope was given it. No reference to it is kept."""

    address: int
    """Its lowest byte."""
    nbytes: int
    """From its lowest byte to its highest."""
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Began(Record):
    """A block began: a scope, a host view or an epoch; or a call that asks at once (move). `Ended` has its serial."""

    serial: int
    action: str
    """"prefetch", "advise", "access", "host_view", "move", "epoch", ...: the name of the function; or a stage of a
    pipeline as it runs on the host: "prep", "transfer" (queueing it) or "compute"."""
    label: str
    """What the user called it: an epoch's label, a view's mode, a batch's index; else empty."""
    line: str
    """`file:number` of the code that made it; empty where that is not known."""
    place: Place | None = None
    stream: int | None = None
    """The stream that was named; None for one of umarray's own."""
    arrays: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended(Record):
    """The end of what began with this serial."""

    serial: int
    action: str


@dataclass(frozen=True, slots=True)
class Allocated(Record):
    """The driver made an allocation (an arena, a slot), not a block carved from one."""

    address: int
    nbytes: int
    kind: str
    place: Place


@dataclass(frozen=True, slots=True)
class Freed(Record):
    """The driver took an allocation back."""

    address: int
    nbytes: int
    kind: str
    place: Place


@dataclass(frozen=True, slots=True)
class Prefetched(Record):
    """A prefetch was asked for: a request, not its effect. `supported` is False for a counted no-op."""

    address: int
    nbytes: int
    to: Place
    supported: bool
    stream: int | None = None
    """The stream that the pages move on."""
    scope: int = 0
    """Serial of the `Began` that it belongs to; 0: of none."""


@dataclass(frozen=True, slots=True)
class Advised(Record):
    """An advice was set (`on`) or unset: a request, not its effect."""

    address: int
    nbytes: int
    advice: str
    place: Place
    on: bool
    supported: bool


@dataclass(frozen=True, slots=True)
class Copied(Record):
    """Bytes were queued to be copied explicitly between two addresses."""

    nbytes: int
    source: Place
    to: Place
    address: int = 0
    """On the device's side; 0 where several places are copied to or from."""
    scope: int = 0


@dataclass(frozen=True, slots=True)
class Waited(Record):
    """The host waited for a device, and why; told when the wait is over."""

    seconds: float
    reason: str
    device: int | None = None
    scope: int = 0


@dataclass(frozen=True, slots=True)
class StageRan(Record):
    """One stage of a pipeline ran on one batch; times are `time.perf_counter` seconds."""

    stage: str
    index: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class EpochEnded(Record):
    """An epoch ended; bytes and count of what escaped are None where tracking was off."""

    label: str
    escapes: int | None
    escaped_bytes: int | None
    lines: tuple[tuple[str, int, int], ...] = ()
    """What escaped, by the line that made it: `file:number`, how many, bytes."""


@dataclass(frozen=True, slots=True)
class Made(Record):
    """A pool handed out a block; known of pools, and in threads, that track. Nobody emits it: a watch holds it."""

    address: int
    nbytes: int
    line: str


@dataclass(frozen=True, slots=True)
class Gone(Record):
    """A block that was made died, at this moment or a little earlier."""

    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Migrated(Record):
    """An effect: the same happened to a run of neighbouring pages, one after another."""

    address: int
    nbytes: int
    source: Place
    to: Place
    cause: str
    """"fault", "prefetch", "eviction", "advice", "copy" (an explicit one), "speculative" (ahead of a fault, by the
    driver), "coherence", "access counters", "other" (the source says no more)."""
    start: float
    end: float
    kind: str = "moved"
    """"moved"; "copied" (the bytes stay at `source` too: read-mostly); "mapped" (`to` reaches them at `source`); "made"
    (first touched or prefetched: nothing to move); "dropped" (the copy at `to` was given up)."""
    write: bool | None = None
    """The touch behind it was a write; None where the source does not tell."""


@dataclass(frozen=True, slots=True)
class Faulted(Record):
    """An effect: a place touched pages that it could not reach, and waited."""

    address: int
    nbytes: int
    """Bytes of the pages, as far as the source tells; 0 where it does not."""
    place: Place
    count: int
    write: bool | None
    start: float


@dataclass(frozen=True, slots=True)
class Used(Record):
    """An effect: the first touch, by the place that they were prefetched to, of prefetched pages."""

    address: int
    nbytes: int
    place: Place
    write: bool | None
    start: float


@dataclass(frozen=True, slots=True)
class Named(Record):
    """An array had a name where a watch began or ended."""

    name: str
    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str


Listener: TypeAlias = Callable[[Record], None]

listeners: tuple[Listener, ...] = ()
next_serial = itertools.count(1).__next__
"""Serials of `Began`, one for the whole process."""
_lock = threading.Lock()


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` with every record from now on; returns a function that ends it.

    Notes
    -----
    Safe from any thread. The listener runs in the thread in which the thing happened, which may be a pipeline's.
    """
    global listeners
    with _lock:
        listeners = (*listeners, listener)
    return lambda: _drop(listener)


def emit(record: Record) -> None:
    """Hand `record` to every listener; one that raises is dropped and logged."""
    for listener in listeners:
        try:
            listener(record)
        except Exception as error:
            _drop(listener)
            name = getattr(listener, "__qualname__", type(listener).__qualname__)
            warn_once("an observer, %s, raised and was dropped", name, error=error, about=name)


def _drop(listener: Listener) -> None:
    global listeners
    with _lock:
        listeners = tuple(one for one in listeners if one is not listener)
