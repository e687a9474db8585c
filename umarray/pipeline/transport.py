"""Transports: how a batch reaches the device, one class each.

| transport | a slot is | to the device | before preparation writes again |
|---|---|---|---|
| host | ordinary memory | nothing moves | the last reader is done |
| staged | pinned memory, and its batch a second slot of device memory | a copy | the copy out of it is done |
| managed | managed memory | a prefetch | compute done, then a prefetch back to the host is done |

The transfer thread calls `move`, the back thread `bring_home`, each inside a stream of its own; the thread that
iterates calls `release`. None of these allocates.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from umarray import events
from umarray.drivers.base import Driver, Event, Kind, Outcome
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.ring import Job, Ring, Role, Slot, State
from umarray.places import HOST, Device, Place


class Transport(Protocol):
    """What a pipeline asks of a transport."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> int: ...
    @property
    def writing(self) -> Ring:
        """The slots that preparation writes."""

    @property
    def reading(self) -> Ring:
        """The slots that batches lie in: another ring, or the same."""

    @property
    def stream(self) -> int | None:
        """The transfer thread's stream; None where nothing travels."""

    @property
    def back_stream(self) -> int | None:
        """The back thread's stream; None where nothing travels back."""

    @property
    def bytes_moved(self) -> int:
        """Bytes asked to be copied or migrated, both ways."""

    def move(self, job: Job) -> bool:
        """Queue the way to the device of a job whose slot is filled; False where the pipeline stops first."""

    def release(self, slot: Slot, read: Event) -> bool:
        """Every reader of a batch's slot was queued before the event; True where `bring_home` must follow."""

    def bring_home(self, slot: Slot) -> None:
        """Queue the way back to the host of a slot."""

    def close(self) -> None:
        """Give streams and slots back. The caller has waited for the device."""


class HostTransport:
    """No device: a batch is read where it was written."""

    name = "host"
    stream = None
    back_stream = None
    bytes_moved = 0

    def __init__(self, driver: Driver, device: int, layout: Layout, count: int, returned: SimpleQueue[Any]) -> None:
        self.device = device
        self.writing = self.reading = Ring(driver, Kind.HOST, layout.nbytes, count, device, returned)

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


class StagedTransport:
    """Pinned slots, copied on the transfer stream into slots of plain device memory."""

    name = "staged"
    back_stream = None

    def __init__(
        self, driver: Driver, device: int, layout: Layout, count: int, returned: SimpleQueue[Any], clock: Clock
    ) -> None:
        self.device = device
        self.bytes_moved = 0
        self._driver = driver
        self._layout = layout
        self._clock = clock
        self.writing = Ring(driver, Kind.PINNED, layout.nbytes, count, device, returned)
        try:
            self.reading = Ring(driver, Kind.DEVICE, layout.nbytes, count, device, returned)
            try:
                self.stream: int = driver.create_stream(device)
            except BaseException:
                self.reading.close()
                raise
        except BaseException:
            self.writing.close()
            raise

    def move(self, job: Job) -> bool:
        source, target = job.slot, self.reading.take()
        if target is None:
            return False
        driver, stream = self._driver, self.stream
        if target.after is not None:
            driver.wait(stream, target.after)
        start = driver.record(stream, self.device, timed=True)
        moved = 0
        for offset, nbytes in self._layout.used(job.length):
            driver.copy(target.address + offset, source.address + offset, nbytes, stream)
            moved += nbytes
        job.ready = driver.record(stream, self.device, timed=True)
        self._clock.queued("transfer", job.index, start, job.ready)
        self.bytes_moved += moved
        target.go(State.READY, Role.TRANSFER)
        job.slot = target
        self.writing.put(source, Role.TRANSFER, job.ready)
        if events.listeners:
            events.emit(events.Copied(moved, HOST, Device(self.device)))
        return True

    def release(self, slot: Slot, read: Event) -> bool:
        self.reading.put(slot, Role.CALLER, read)
        return False

    def bring_home(self, slot: Slot) -> None:
        raise AssertionError("nothing travels back")

    def close(self) -> None:
        _all(
            lambda: self._driver.destroy_stream(self.stream, self.device),
            self.reading.close,
            self.writing.close,
        )


class ManagedTransport:
    """Managed slots, prefetched to the device, and home again before they are written anew."""

    name = "managed"

    def __init__(
        self, driver: Driver, device: int, layout: Layout, count: int, returned: SimpleQueue[Any], clock: Clock
    ) -> None:
        self.device = device
        self._driver = driver
        self._clock = clock
        self._moved = {"transfer": 0, "back": 0}  # one thread writes each
        self.writing = self.reading = Ring(driver, Kind.MANAGED, layout.nbytes, count, device, returned)
        try:
            self.stream: int = driver.create_stream(device)
            try:
                self.back_stream: int = driver.create_stream(device)
            except BaseException:
                driver.destroy_stream(self.stream, device)
                raise
        except BaseException:
            self.writing.close()
            raise

    @property
    def bytes_moved(self) -> int:
        return sum(self._moved.values())

    def move(self, job: Job) -> bool:
        job.ready = self._prefetch(job.slot, Device(self.device), self.stream, "transfer", job.index)
        job.slot.after = job.ready  # for a batch that is never read
        job.slot.go(State.READY, Role.TRANSFER)
        return True

    def release(self, slot: Slot, read: Event) -> bool:
        slot.after = read
        slot.go(State.HOMING, Role.CALLER)
        return True

    def bring_home(self, slot: Slot) -> None:
        assert slot.after is not None
        self._driver.wait(self.back_stream, slot.after)
        home = self._prefetch(slot, HOST, self.back_stream, "back", slot.batch)
        self.writing.put(slot, Role.BACK, home)

    def _prefetch(self, slot: Slot, place: Place, stream: int, stage: str, index: int) -> Event:
        start = self._driver.record(stream, self.device, timed=True)
        outcome = self._driver.prefetch(slot.address, slot.nbytes, place, stream)
        end = self._driver.record(stream, self.device, timed=True)
        self._clock.queued(stage, index, start, end)
        asked = outcome is Outcome.ASKED
        if asked:
            self._moved[stage] += slot.nbytes
        if events.listeners:
            events.emit(events.Prefetched(slot.address, slot.nbytes, place, asked))
        return end

    def close(self) -> None:
        _all(
            lambda: self._driver.destroy_stream(self.back_stream, self.device),
            lambda: self._driver.destroy_stream(self.stream, self.device),
            self.writing.close,
        )


def _all(*steps: Callable[[], None]) -> None:
    """Take every step, also after one that fails; then raise the first failure."""
    failure: BaseException | None = None
    for step in steps:
        try:
            step()
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure
