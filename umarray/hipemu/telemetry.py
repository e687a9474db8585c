"""Counters of the emulated machine: faults and bytes, in all and by device."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from .control import library

__all__ = ["Counters", "PlaceCounters", "counters", "read_counters"]

_FIELDS = (
    "faults",
    "new_pages",
    "bytes_to_device",
    "bytes_to_host",
    "bytes_between_devices",
    "prefetched_bytes",
    "evicted_bytes",
    "duplicated_bytes",
    "mapped_bytes",
    "dropped_bytes",
)


@dataclass(frozen=True)
class PlaceCounters:
    """What happened at one place: a device, or the host."""

    faults: int = 0
    """Touches that had to wait; a first touch of a page is one."""
    new_pages: int = 0
    """Pages that came to be here at their first touch or prefetch, with nothing to move."""
    bytes_to_device: int = 0
    """Bytes from the host to this device."""
    bytes_to_host: int = 0
    """Bytes from this device to the host."""
    bytes_between_devices: int = 0
    """Bytes from another device to this one."""
    prefetched_bytes: int = 0
    """Of the bytes that came here: those a prefetch moved."""
    evicted_bytes: int = 0
    """Of the bytes from this device to the host: those that made room."""
    duplicated_bytes: int = 0
    """Of the bytes that came here: copies beside another (read-mostly)."""
    mapped_bytes: int = 0
    """Bytes made reachable from here where they lie (accessed-by, preferred location)."""
    dropped_bytes: int = 0
    """Copies given up here, by a write elsewhere or to make room."""
    modelled_seconds: float = 0.0
    """Modelled: what all this would have cost on the card of the profile."""


@dataclass
class Counters:
    """What happened on the emulated machine; after ``with counters() as c`` what happened inside.

    The totals are sums over the devices; `host_faults` is the host's own.
    """

    by_device: dict[int, PlaceCounters] = field(default_factory=dict)
    host: PlaceCounters = field(default_factory=PlaceCounters)

    @property
    def device_faults(self) -> int:
        """Faults of all devices."""
        return self._sum("faults")

    @property
    def host_faults(self) -> int:
        """Faults of the host."""
        return self.host.faults

    @property
    def new_pages(self) -> int:
        """Pages touched or prefetched for the first time, anywhere."""
        return self._sum("new_pages") + self.host.new_pages

    @property
    def bytes_to_device(self) -> int:
        """Bytes from the host to the devices."""
        return self._sum("bytes_to_device")

    @property
    def bytes_to_host(self) -> int:
        """Bytes from the devices to the host."""
        return self._sum("bytes_to_host")

    @property
    def bytes_between_devices(self) -> int:
        """Bytes from one device to another."""
        return self._sum("bytes_between_devices")

    @property
    def prefetched_bytes(self) -> int:
        """Bytes that prefetches moved, in all directions."""
        return self._sum("prefetched_bytes") + self.host.prefetched_bytes

    @property
    def evicted_bytes(self) -> int:
        """Bytes moved to the host to make room on a device."""
        return self._sum("evicted_bytes")

    @property
    def duplicated_bytes(self) -> int:
        """Bytes copied beside their original (read-mostly)."""
        return self._sum("duplicated_bytes") + self.host.duplicated_bytes

    @property
    def mapped_bytes(self) -> int:
        """Bytes made reachable where they lie."""
        return self._sum("mapped_bytes")

    @property
    def dropped_bytes(self) -> int:
        """Copies given up."""
        return self._sum("dropped_bytes") + self.host.dropped_bytes

    @property
    def modelled_seconds(self) -> float:
        """Modelled: what all this would have cost on the card of the profile, one thing after another."""
        return sum(c.modelled_seconds for c in self.by_device.values()) + self.host.modelled_seconds

    @property
    def migrated_bytes(self) -> int:
        """Bytes that moved, in all directions."""
        return self.bytes_to_device + self.bytes_to_host + self.bytes_between_devices

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # what IPython and notebooks print
        printer.text(str(self))

    def _sum(self, name: str) -> int:
        return sum(int(getattr(c, name)) for c in self.by_device.values())

    def _minus(self, earlier: Counters) -> None:
        self.by_device = {d: _difference(c, earlier.by_device[d]) for d, c in self.by_device.items()}
        self.host = _difference(self.host, earlier.host)

    def __str__(self) -> str:
        """Return a short table, zeros left out."""
        lines = []
        for name, row in [("host", self.host), *((f"device {d}", c) for d, c in self.by_device.items())]:
            shown = [f"{f.name} {getattr(row, f.name):,}" for f in fields(row) if getattr(row, f.name)]
            lines.append(f"{name}: {', '.join(shown) or 'nothing'}")
        return "\n".join(lines)


def _difference(now: PlaceCounters, then: PlaceCounters) -> PlaceCounters:
    return PlaceCounters(**{f.name: getattr(now, f.name) - getattr(then, f.name) for f in fields(now)})


def _row(place: int) -> PlaceCounters:
    raw = (ctypes.c_uint64 * (len(_FIELDS) + 1))()
    library().hipemu_counters(place, raw, len(raw))
    return PlaceCounters(**dict(zip(_FIELDS, raw[:-1], strict=True)), modelled_seconds=raw[-1] * 1e-9)


def read_counters(*, synchronize: bool = True) -> Counters:
    """Return the counters since the process began.

    Parameters
    ----------
    synchronize : bool
        Wait for all queued work first. Without it, work in flight is counted in part.
    """
    if synchronize:
        library().hipemu_synchronize()
    devices = int(library().hipemu_device_count())
    return Counters({d: _row(d) for d in range(devices)}, _row(-1))


@contextlib.contextmanager
def counters(*, synchronize: bool = True) -> Iterator[Counters]:
    """Count what happens in a block: its value holds the difference once the block has ended.

    Examples
    --------
    >>> with counters() as c:  # doctest: +SKIP
    ...     y = 2 * x
    >>> c.device_faults  # doctest: +SKIP
    512
    """
    before = read_counters(synchronize=synchronize)
    result = Counters()
    try:
        yield result
    finally:
        after = read_counters(synchronize=synchronize)
        result.by_device, result.host = after.by_device, after.host
        result._minus(before)
