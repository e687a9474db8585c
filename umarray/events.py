"""What happened, as frozen records, for whoever listens.

A place that has something to tell writes ``if events.listeners: events.emit(events.Prefetched(...))``: with nobody
listening that is one truth test. A listener that raises is dropped and logged; it never breaks the program.

The design is trio's instruments made smaller: one callable a listener, the record's type says what happened.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from umarray.places import Place

_log = logging.getLogger("umarray")


@dataclass(frozen=True, slots=True)
class Record:
    """Base of every record."""


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


@dataclass(frozen=True, slots=True)
class Waited(Record):
    """The host waited for a device, and why."""

    seconds: float
    reason: str


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


Listener: TypeAlias = Callable[[Record], None]

listeners: tuple[Listener, ...] = ()
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
        except Exception:
            _drop(listener)
            _log.exception("an observer raised and was dropped: %r", listener)


def _drop(listener: Listener) -> None:
    global listeners
    with _lock:
        listeners = tuple(one for one in listeners if one is not listener)
