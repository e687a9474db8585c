"""Which transport a pipeline uses, and why."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

from umarray import calibration
from umarray.drivers.base import Driver, Mode
from umarray.errors import NotSupported
from umarray.pipeline.in_place import BusTransport, DirectTransport, HostTransport
from umarray.pipeline.layout import Layout
from umarray.pipeline.managed import ManagedTransport
from umarray.pipeline.report import Clock
from umarray.pipeline.staged import StagedTransport
from umarray.pipeline.transport import Transport
from umarray.sizes import format_size

KNOWN = ("auto", "host", "staged", "managed", "bus", "direct")

GROUP_BYTES = 4 << 20
"""Batches below this are grouped up to it where they may be: queueing a copy and its events takes the host 10 us, which
is half of the copy's own time at 1 MiB."""

MOST_IN_A_GROUP = 16


def check(name: Any, driver: Driver) -> str:
    """The name of a transport, or "auto".

    Raises
    ------
    ValueError
        There is no such transport; the text lists those that there are.
    NotSupported
        It cannot work in this process.
    """
    if not isinstance(name, str) or name not in KNOWN:
        raise ValueError(f"unknown transport {name!r}: there are {', '.join(KNOWN)}")
    if name != "auto" and name not in possible(driver):
        mode = driver.mode
        why = {
            Mode.HOST: "there is no device",
            Mode.EXPLICIT: "batches have to reach the device, which does not fault",
            Mode.MANAGED: "batches have to reach the device, which has memory of its own",
        }[mode]
        raise NotSupported(f"transport {name!r} cannot work in {mode.value} mode ({why}): use transport='auto'")
    return name


def possible(driver: Driver) -> tuple[str, ...]:
    """The transports that can work in this process, on its current device."""
    if driver.mode is Mode.HOST:
        return ("host",)
    if driver.mode is Mode.EXPLICIT:
        return ("staged", "bus")
    if driver.traits(driver.current_device()).unified:
        return ("direct", "staged", "managed", "bus")
    return ("staged", "managed", "bus")


def costs(nbytes: int, device: int, names: tuple[str, ...]) -> tuple[dict[str, float], bool]:
    """Seconds that each transport needs a batch, beside preparation and compute; and whether this was measured.

    Notes
    -----
    Ways to the device and back of different batches overlap, but share the bus and the kernel's page tables: a managed
    slot counts both. Reading over the bus is part of compute, cannot be hidden behind it, and happens as often as
    compute reads: it counts twice.
    """
    known = calibration.current(device)
    back = known.prefetch_back if known.renew_back is None else known.renew_back
    ways = {
        "direct": [] if "direct" in names else None,
        "staged": [known.copy_in],
        "managed": [known.prefetch, back],
        "bus": [known.bus, known.bus],
    }
    found = {}
    for name in names:
        curves = ways.get(name)
        if curves is not None and None not in curves:
            found[name] = sum(curve(nbytes) for curve in curves if curve is not None)
    return found, known.measured


def best(driver: Driver, device: int, nbytes: int, seen: dict[str, float]) -> tuple[str, str]:
    """The transport to use for batches of so many bytes, and the reason.

    Parameters
    ----------
    seen : dict of str to float
        Seconds a batch that transports really took here, which count in place of what calibration says.
    """
    names = possible(driver)
    if names == ("host",):
        return "host", "there is no device, so nothing has to move"
    if "direct" in names:
        return "direct", "the device shares the host's memory, so nothing has to move"
    found, measured = costs(nbytes, device, names)
    found |= {name: seconds for name, seconds in seen.items() if name in names}
    if not found:
        return "staged", "nothing is known of this device's costs"
    name = min(found, key=lambda one: found[one])
    told = ", ".join(f"{one} {found[one] * 1e3:.3g} ms" for one in sorted(found, key=lambda one: found[one]))
    source = "as calibrated" if measured else "by stated defaults, as nothing was measured (umarray.calibrate does)"
    if seen:
        source = f"{', '.join(seen)} as this pipeline ran, the rest {source}"
    return name, f"a batch of {format_size(nbytes)} costs {told}: {source}"


def group_size(layout: Layout) -> int:
    """How many batches are side by side in a slot, where small ones may be grouped."""
    return max(1, min(MOST_IN_A_GROUP, GROUP_BYTES // layout.stride))


def make(
    name: str,
    driver: Driver,
    device: int,
    layout: Layout,
    nbytes: int,
    count: int,
    returned: SimpleQueue[Any],
    clock: Clock,
) -> Transport:
    """A transport with its slots of `nbytes` and its streams. Raises `OutOfMemory`, keeping nothing."""
    if name == "staged":
        return StagedTransport(driver, device, layout, nbytes, count, returned, clock)
    if name == "managed":
        return ManagedTransport(driver, device, layout, nbytes, count, returned, clock)
    in_place = {"host": HostTransport, "direct": DirectTransport, "bus": BusTransport}[name]
    return in_place(driver, device, nbytes, count, returned)
