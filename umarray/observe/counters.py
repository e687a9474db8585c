"""One protocol for whatever can tell what moved, and its figures.

A source says what it can see and how exact it is; a figure that it cannot see is None, never 0. A session is one
interval of interest: sessions of one source may nest and overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

from umarray import events
from umarray.drivers.base import Driver


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened in an interval. None: the source cannot see it."""

    device_faults: int | None = None
    """Touches by devices that had to wait; on NVIDIA faults as the card reports them, several for a page at times."""
    host_faults: int | None = None
    bytes_to_device: int | None = None
    """Bytes of pages that moved from the host to devices."""
    bytes_to_host: int | None = None
    bytes_between_devices: int | None = None
    prefetched_bytes: int | None = None
    """Of the bytes that moved: those that prefetches moved."""
    used_bytes: int | None = None
    """Of the bytes prefetched to devices: those on pages that were touched there, by the end of the interval."""
    unused_bytes: int | None = None
    """The others of the bytes prefetched to devices."""
    evicted_bytes: int | None = None
    """Of the bytes that moved to the host: those that made room."""
    duplicated_bytes: int | None = None
    """Of the bytes that moved: copies beside their original (read-mostly)."""
    mapped_bytes: int | None = None
    """Bytes made reachable where they lie."""
    queue_evictions: int | None = None
    """Times that a device's queues were stopped to move memory (AMD)."""
    modelled_seconds: float | None = None
    """What all this would have cost on the card of the emulator's profile: modelled, never felt."""

    def or_else(self, other: Counts) -> Counts:
        """These figures, and the other's where there are none here."""
        mine = {one.name: getattr(self, one.name) for one in fields(self)}
        return Counts(**{name: getattr(other, name) if value is None else value for name, value in mine.items()})

    def minus(self, earlier: Counts) -> Counts:
        """What was added since `earlier`."""
        return Counts(**{one.name: _minus(getattr(self, one.name), getattr(earlier, one.name)) for one in fields(self)})

    @property
    def seen(self) -> tuple[str, ...]:
        """The names of the figures that are known."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name) is not None)


def _minus(now: Any, then: Any) -> Any:
    return None if now is None or then is None else now - then


@dataclass(frozen=True, slots=True)
class About:
    """What a source is."""

    name: str
    exactness: str
    """"exact", "as the driver reports", "sampled", or "requests": what was asked for, which may not have happened."""
    sees: tuple[str, ...]
    """Fields of `Counts` that it fills; "addresses" too, where it tells which pages it was."""
    blind: tuple[str, ...] = ()
    """What it cannot see, a sentence each."""

    def __str__(self) -> str:
        return f"{self.name} ({self.exactness})"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a session has to tell since the last time."""

    records: tuple[events.Record, ...] = ()
    """`events.Migrated`, `Faulted` and `Used`, in order of time."""
    lost: int = 0
    """How many more there were."""


class Session(Protocol):
    """One interval. Safe from any thread; one thread at a time takes."""

    def end(self) -> None:
        """The interval ends now. Cheap: waits for no device."""

    def take(self) -> Taken:
        """The records of the interval that were not taken yet. After `end` all of them; it may wait for these."""

    def counts(self) -> Counts:
        """The figures of the interval, up to now or to its end."""


class Source(Protocol):
    """Whatever can tell what moved."""

    @property
    def about(self) -> About:
        """What it is and what it can see, here and now."""

    def begin(self) -> Session:
        """Begin an interval."""


@dataclass(frozen=True, slots=True)
class Found:
    """What can tell here, the best first, and why others cannot, in words."""

    sources: tuple[Source, ...]
    reasons: tuple[str, ...]


_known: dict[int, tuple[Driver, Found]] = {}


def sources(driver: Driver) -> Found:
    """What can tell of effects here; looked for once a driver."""
    known = _known.get(id(driver))
    if known is None:
        known = _known[id(driver)] = (driver, _look(driver))
    return known[1]


def _look(driver: Driver) -> Found:
    if driver.name not in ("hip", "cuda"):
        return Found((), ("nothing moves in this mode, or nobody tells of it",))
    from umarray.observe import amd, emulated, nvidia  # they implement what this module declares

    if driver.name == "cuda":
        make: Any = nvidia.Nvidia
    else:
        make = emulated.Emulated if emulated.here() else amd.Amd
    try:
        return Found((make(driver),), ())
    except Exception as error:  # whatever a vendor's library raises, watching goes on without it
        return Found((), (f"{make.name} cannot be used: {error}",))
