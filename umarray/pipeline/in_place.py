"""Transports by which nothing travels: a batch is read where it was written."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

from umarray import events
from umarray.drivers.base import Advice, Driver, Event, Kind, Mode, Outcome
from umarray.pipeline.ring import Ring
from umarray.pipeline.slots import Job, Role, Slot, State
from umarray.places import HOST, Device, Place


class InPlace:
    """One ring of slots, which preparation writes and batches lie in."""

    name: str
    stream = None
    back_stream = None
    keeps_caller = False
    bytes_moved = 0

    def __init__(
        self, driver: Driver, kind: Kind, nbytes: int, count: int, device: int, returned: SimpleQueue[Any]
    ) -> None:
        self.device = device
        self.writing = self.reading = Ring(driver, kind, nbytes, count, device, returned)

    def move(self, job: Job) -> bool:
        job.slot.go(State.READY, Role.PREP)
        return True

    def release(self, slot: Slot, read: Event) -> bool:
        self.reading.put(slot, Role.CALLER, read)
        return False

    def bring_home(self, slot: Slot) -> None:
        raise AssertionError("nothing travels back")

    def close(self) -> None:
        self.writing.close()


class HostTransport(InPlace):
    """No device: ordinary memory."""

    name = "host"

    def __init__(self, driver: Driver, device: int, nbytes: int, count: int, returned: SimpleQueue[Any]) -> None:
        super().__init__(driver, Kind.HOST, nbytes, count, device, returned)


class DirectTransport(InPlace):
    """Managed memory of a device that shares the host's: each reaches the same bytes."""

    name = "direct"

    def __init__(self, driver: Driver, device: int, nbytes: int, count: int, returned: SimpleQueue[Any]) -> None:
        super().__init__(driver, Kind.MANAGED, nbytes, count, device, returned)


class BusTransport(InPlace):
    """Host memory that the device reads over the bus.

    Notes
    -----
    In managed mode: managed memory whose pages prefer the host and are mapped by the device, so that reading them moves
    none. Where there is none of that, or the runtime refuses the advice: pinned memory, which a device reads where it
    lies too.
    """

    name = "bus"

    def __init__(self, driver: Driver, device: int, nbytes: int, count: int, returned: SimpleQueue[Any]) -> None:
        if driver.mode is Mode.MANAGED:
            super().__init__(driver, Kind.MANAGED, nbytes, count, device, returned)
            try:
                stay = all([_stays(driver, slot, device) for slot in self.writing.slots])
            except BaseException:
                self.writing.close()
                raise
            if stay:
                return
            self.writing.close()
        super().__init__(driver, Kind.PINNED, nbytes, count, device, returned)


def _stays(driver: Driver, slot: Slot, device: int) -> bool:
    """Ask that a slot's pages stay on the host and the device reads them there; whether both could be asked."""
    asked = True
    hints: tuple[tuple[Advice, Place], ...] = (
        (Advice.PREFERRED_LOCATION, HOST),
        (Advice.ACCESSED_BY, Device(device)),
    )
    for advice, place in hints:
        done = driver.advise(slot.address, slot.nbytes, advice, place, True) is Outcome.ASKED
        if events.listeners:
            events.emit(events.Advised(slot.address, slot.nbytes, advice.name.lower(), place, True, done))
        asked = asked and done
    return asked
