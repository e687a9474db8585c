"""The emulated device as a source: every fault and every page, exactly."""

from __future__ import annotations

import importlib
import os
from typing import Any

from umarray import events
from umarray.drivers.base import Driver
from umarray.observe.counters import About, Counts, Taken
from umarray.observe.usage import Usage
from umarray.places import HOST, Device, Place

ABOUT = About(
    "the emulated device",
    "exact",
    (
        *("device_faults", "host_faults", "bytes_to_device", "bytes_to_host", "bytes_between_devices"),
        *("prefetched_bytes", "used_bytes", "unused_bytes", "evicted_bytes", "duplicated_bytes", "mapped_bytes"),
        *("modelled_seconds", "addresses"),
    ),
    (
        "time: pages move by mapping, so only the modelled seconds say what moving costs",
        "a touch of a page that is there already, unless a prefetch brought it to a device",
    ),
)


def here() -> bool:
    """Whether this process runs on the emulated device."""
    return os.environ.get("HIPEMU") == "1"


def _emulator(module: str) -> Any:
    return importlib.import_module(f"umarray.hipemu.{module}")  # not before somebody watches on the emulated device


class Emulated:
    """The source."""

    about = ABOUT
    name = ABOUT.name

    def __init__(self, driver: Driver) -> None:
        """The driver is of no interest: the emulator is asked itself."""

    def begin(self) -> EmulatedSession:
        return EmulatedSession()


class EmulatedSession:
    """One interval on the emulated device; its history is on as long as one is open."""

    def __init__(self) -> None:
        self._history = _emulator("history")
        self.page: int = _emulator("control").page_bytes()
        self._history.start()
        self._cursor: int = self._history.mark()
        self._before = _totals()
        self._after: Counts | None = None
        self._rest: Taken | None = None
        self._usage = Usage()

    def end(self) -> None:
        if self._after is None:
            self._after = _totals()
            self._rest = self._read()
            self._history.stop()

    def take(self) -> Taken:
        if self._after is None:
            return self._read()
        rest, self._rest = self._rest, None
        return rest or Taken()

    def counts(self) -> Counts:
        now = _totals() if self._after is None else self._after
        return self._usage.counts().or_else(now.minus(self._before))

    def _read(self) -> Taken:
        happened, self._cursor, lost = self._history.read(self._cursor)
        records = [record for one in happened for record in _records(one)]
        self._usage.add(records)
        return Taken(tuple(records), lost)


def _totals() -> Counts:
    now = _emulator("telemetry").read_counters(synchronize=False)
    names = set(ABOUT.sees) - {"addresses", "used_bytes", "unused_bytes"}
    return Counts(**{name: getattr(now, name) for name in names})


def _records(one: Any) -> list[events.Record]:
    to, write = _place(one.to), one.write if one.cause == "fault" else None
    found: list[events.Record] = []
    if one.kind == "used":
        found.append(events.Used(one.address, one.nbytes, to, write, one.first))
    elif one.kind != "faulted":
        source = _place(one.origin)
        found.append(
            events.Migrated(one.address, one.nbytes, source, to, one.cause, one.first, one.last, one.kind, write)
        )
    if one.faults:
        waited = _place(one.origin) if one.kind == "dropped" else to  # its copy was given up for the one that wrote
        found.insert(0, events.Faulted(one.address, one.nbytes, waited, one.faults, one.write, one.first))
    return found


def _place(number: int) -> Place:
    return HOST if number < 0 else Device(number)
