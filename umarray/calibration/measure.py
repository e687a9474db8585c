"""Measuring what moving bytes costs on one device: a few buffers, a few sizes, medians, well under two seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from umarray.calibration.curve import Curve
from umarray.calibration.defaults import defaults
from umarray.calibration.figures import CURVES, Calibration
from umarray.calibration.samples import Bench, Sample, samples
from umarray.drivers.base import Driver, Kind, Mode, host_bytes
from umarray.errors import OutOfMemory
from umarray.places import HOST, Device
from umarray.progress import bar
from umarray.sizes import format_size

SIZES = (64 << 10, 2 << 20, 32 << 20)
"""Bytes at which curves are measured; the last is as large as each of the five buffers, 160 MiB in all."""
SLOTS = (1 << 20, 4 << 20, 16 << 20)
REPETITIONS = 5
PATIENCE = 1.6
"""Seconds after which nothing more is begun; what was not measured then keeps its default, and says so."""
_ENOUGH = 0.03  # seconds for one figure at one size, after which two samples have to do: the first is dropped
_SHARE = 8  # a buffer takes at most this part of what is free on the device and on the host
_LEAST = 1 << 20
_BLOCKS = 0.8  # a call that lasts this share of the whole prefetch waits for it


def measure(driver: Driver, device: int, progress: bool | None = None) -> Calibration:
    """Measure a device's costs.

    Parameters
    ----------
    progress : bool, optional
        Show a bar; by default where somebody looks.

    Raises
    ------
    OutOfMemory, DriverError
        There is no room for buffers of a MiB, or a call failed; nothing is left behind.

    Notes
    -----
    At most 160 MiB (32 of them managed), less where little is free. Keep the device idle meanwhile.
    """
    assumed = defaults(driver, device)
    figures, slots = samples(driver, device)
    with buffers(driver, device) as (bench, largest):
        sizes = tuple(size for size in SIZES if size < largest) + (largest,)
        bench.read(bench.plain, 4096)  # compiles the kernel, once for all times
        bench.idle()
        start = perf_counter()
        found: tuple[dict[str, Curve], dict[str, Curve]] = ({}, {})
        with bar(len(figures) + len(slots), "calibrating", unit="figure", asked=progress) as shown:
            turns = [size for size in SLOTS if size <= largest]
            for names, at, into in ((figures, sizes, found[0]), (slots, turns, found[1])):
                for name, sample in names.items():
                    shown.say(name)
                    curve = _curve(bench, sample, at, start)
                    if curve is not None:
                        into[name] = curve
                    shown.update()
        seconds = perf_counter() - start
    return _assembled(assumed, found[0], found[1], set(figures), seconds)


def _curve(bench: Bench, sample: Sample, sizes: Any, start: float) -> Curve | None:
    """The medians at some sizes; None where nothing was measured. Sizes for which no time is left are passed over."""
    points: list[tuple[int, float]] = []
    for nbytes in sizes:
        begun = perf_counter()
        left = start + PATIENCE - begun
        if left <= 0 or (points and 2 * nbytes / points[-1][0] * points[-1][1] > left):
            break
        taken: list[float] = []
        for number in range(1 + REPETITIONS):
            if number > 1 and perf_counter() - begun > _ENOUGH:
                break
            seconds = sample(bench, nbytes)
            if seconds is None:
                return None
            taken += [seconds] if number else []
        points.append((nbytes, median(taken)))
    return Curve.of(points) if points else None


def _assembled(
    assumed: Calibration, found: dict[str, Curve], turns: dict[str, Curve], figures: set[str], seconds: float
) -> Calibration:
    sources = dict.fromkeys(found, "measured")
    missing = {name for name in figures if name not in found and getattr(assumed, name) is not None}
    sources |= {name: f"not measured; {assumed.sources.get(name, 'no source')}" for name in missing}
    sources["slots"] = "measured"
    curves: dict[str, Any] = {
        name: found.get(name, getattr(assumed, name) if name in missing else None) for name in CURVES
    }
    blocks = assumed.prefetch_blocks
    if "prefetch" in found and "prefetch_call" in found:
        largest = found["prefetch"].points[-1][0]
        blocks = found["prefetch_call"](largest) > _BLOCKS * found["prefetch"](largest)
        sources["prefetch_blocks"] = "measured"
    elif blocks is not None:
        sources["prefetch_blocks"] = assumed.sources.get("prefetch_blocks", "no source")
    return replace(
        assumed,
        measured=True,
        prefetch_blocks=blocks,
        slots=MappingProxyType(turns),
        sources=MappingProxyType(sources),
        seconds=seconds,
        **curves,
    )


@contextmanager
def buffers(driver: Driver, device: int) -> Iterator[tuple[Bench, int]]:
    """The buffers, and the bytes of each; all is given back, whatever happens."""
    free = min(driver.memory_info(Device(device)).free, driver.memory_info(HOST).free)
    nbytes = min(SIZES[-1], free // _SHARE // driver.page_size * driver.page_size)
    if nbytes < _LEAST:
        raise OutOfMemory(_LEAST, 0, nbytes, f"calibrating needs buffers of {format_size(_LEAST)}: free some memory")
    with ExitStack() as stack:

        def block(kind: Kind) -> int:
            allocation = driver.allocate(nbytes, kind, device)
            stack.callback(driver.free, allocation)
            return allocation.address

        managed = block(Kind.MANAGED) if driver.mode is Mode.MANAGED else 0
        plain, sink, pinned = block(Kind.DEVICE), block(Kind.DEVICE), block(Kind.PINNED)
        stream = driver.create_stream(device)
        stack.callback(driver.destroy_stream, stream, device)
        stack.callback(driver.synchronize, None, device)
        ordinary = np.ones(nbytes, np.uint8)
        host_bytes(pinned, nbytes, None)[:] = 1
        yield Bench(driver, device, stream, managed, plain, sink, pinned, ordinary), nbytes
