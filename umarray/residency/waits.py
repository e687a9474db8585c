"""Waits of the host for devices: for streams that were told, or for all there is, counted and told."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from umarray import events
from umarray.drivers.base import Driver
from umarray.drivers.streams import as_stream
from umarray.residency.state import state_of


class Waits:
    """What waits for devices, and counts it."""

    _serial = 0  # of its records

    def __init__(self, streams: list[tuple[int, int | None]] | None) -> None:
        self._streams = streams
        self.waits, self.waited = 0, 0.0

    def _wait_for_devices(self, driver: Driver, devices: list[int]) -> None:
        """Wait for the streams told, else for all of each device."""
        if self._streams is not None:
            for stream, device in self._streams:
                told = devices[0] if device is None else device
                self._wait_for(driver, stream, told, "a host view waits for a stream")
        else:
            for device in devices:
                state_of(driver).streams.settle(device)
                self._wait_for(driver, None, device, "a host view waits for the whole device")

    def _wait_for(self, driver: Driver, stream: int | None, device: int, reason: str) -> None:
        start = perf_counter()
        driver.synchronize(stream, device)
        seconds = perf_counter() - start
        self.waits += 1
        self.waited += seconds
        if events.listeners:
            events.emit(events.Waited(seconds, reason, device, self._serial))


def given_streams(streams: Any) -> list[tuple[int, int | None]]:
    """Handles and devices of one stream or of several.

    Raises
    ------
    TypeError, ValueError
        As `as_stream`.
    """
    if isinstance(streams, Iterable) and not hasattr(streams, "ptr"):
        return [as_stream(one) for one in streams]
    return [as_stream(streams)]
