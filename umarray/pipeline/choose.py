"""Which transport a pipeline uses, and why."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

from umarray.drivers.base import Driver, Mode
from umarray.errors import NotSupported
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.transport import HostTransport, ManagedTransport, StagedTransport, Transport

KNOWN = ("auto", "host", "staged", "managed")
LATER = ("bus", "direct")


def choose(name: Any, driver: Driver) -> tuple[str, str]:
    """The transport's name and the reason for it.

    Raises
    ------
    ValueError
        There is no such transport; the text lists those that there are.
    NotSupported
        It cannot work in this process.
    """
    if name in LATER:
        raise NotSupported(f"transport {name!r} is not there yet; use one of {', '.join(KNOWN)}")
    if not isinstance(name, str) or name not in KNOWN:
        raise ValueError(f"unknown transport {name!r}: there are {', '.join(KNOWN)}")
    mode = driver.mode
    if name == "auto":
        if mode is Mode.HOST:
            return "host", "there is no device, so nothing has to move"
        return "staged", "a copy from pinned memory is the fastest way measured so far; nothing was measured here"
    if (name == "host") is not (mode is Mode.HOST):
        why = "there is no device" if mode is Mode.HOST else "batches have to reach the device"
        raise NotSupported(f"transport {name!r} cannot work in {mode.value} mode ({why}): use transport='auto'")
    if name == "managed" and mode is not Mode.MANAGED:
        raise NotSupported(f"transport 'managed' needs managed mode, this is {mode.value} mode: use transport='auto'")
    return name, "asked for"


def make(
    name: str, driver: Driver, device: int, layout: Layout, count: int, returned: SimpleQueue[Any], clock: Clock
) -> Transport:
    """A transport with its slots and streams. Raises `OutOfMemory`, keeping nothing."""
    if name == "staged":
        return StagedTransport(driver, device, layout, count, returned, clock)
    if name == "managed":
        return ManagedTransport(driver, device, layout, count, returned, clock)
    return HostTransport(driver, device, layout, count, returned)
