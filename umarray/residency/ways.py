"""How a host view reaches one array: by the array's own memory, after its pages came home, or by a pinned shadow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from umarray.calibration import Calibration, current
from umarray.drivers.base import Array, Kind
from umarray.places import HOST, Device, Place
from umarray.residency.shadow import HostArray
from umarray.residency.spans import Layout, Span, layout_of, spans_of
from umarray.residency.state import State
from umarray.sizes import format_size

MOST_PINNED = 256 << 20
"""Bytes of one view from which on pages move instead: page-locking costs about 0.25 s a GiB, and takes memory away."""


_MOST_DECIDED = 1000


class Way(Enum):
    """How the host reaches an array."""

    DIRECT = "direct"  # the very memory, where it is
    MANAGED = "managed"  # the very memory, after its pages came home
    STAGED = "staged"  # pinned memory, copied from the device and back


@dataclass(slots=True)
class Part:
    """One array of a host view, and how it is reached."""

    x: Array
    layout: Layout
    start: int  # the layout's range
    stop: int
    gapless: bool
    """No byte of its range lies between its elements."""
    way: Way = Way.DIRECT
    why: str = ""
    pages: list[Span] = field(default_factory=list)
    """Its pages in managed memory."""
    told: set[Place | None] = field(default_factory=set)
    """Where they were asked to be, or used, as far as umarray was told; None for what nobody named."""
    kind: Kind = Kind.HOST
    array: HostArray | None = None

    def __str__(self) -> str:
        return f"{self.way.value}: {format_size(self.stop - self.start)}, {self.why}"


def part_of(x: Array) -> Part:
    """An array, not yet looked at."""
    layout = layout_of(x)
    start, stop = layout.range
    return Part(x, layout, start, stop, stop - start <= layout.nbytes)


def contiguous(x: Array) -> bool:
    """Whether an array is known to lie in memory row by row."""
    return bool(getattr(getattr(x, "flags", None), "c_contiguous", False))


def look(part: Part, state: State) -> None:
    """Find out what kind of memory an array lies in, its pages, and what is known of them."""
    driver = state.driver
    found = driver.find(part.start)
    part.kind = found.kind if found is not None else Kind.HOST if part.layout.device is None else Kind.DEVICE
    if part.kind is Kind.MANAGED:
        part.pages = spans_of([part.x], driver.find, driver.page_size).outward()
        for span in part.pages:
            part.told.update(state.told.places(span))


def on_device_as_told(part: Part) -> bool:
    """Whether all pages of an array were asked to be on a device, or used there, as far as umarray was told."""
    return bool(part.told) and all(isinstance(place, Device) for place in part.told)


def choose(part: Part, mode: str, state: State, device: int) -> tuple[Way, str]:
    """How the host reaches an array now; nothing is queued on the device that could move it meanwhile."""
    driver, kind = state.driver, part.kind
    if not driver.device_count() or kind in (Kind.HOST, Kind.PINNED):
        return Way.DIRECT, "memory of the host"
    if kind is Kind.DEVICE:
        return Way.STAGED, "plain device memory"
    if driver.traits(device).unified:
        return Way.DIRECT, "host and device share one memory"
    share = driver.host_share(part.start, part.stop - part.start)
    if share == 1:
        return Way.DIRECT, "all of its pages are on the host"
    if share is None and not on_device_as_told(part):
        return Way.MANAGED, "nothing is known of where its pages are"
    if share and (share >= 0.5 or not part.gapless):
        return Way.MANAGED, f"{share:.0%} of its pages are on the host, and the others come there"
    nbytes = min(part.stop - part.start, part.layout.nbytes)
    if nbytes > MOST_PINNED:
        return Way.MANAGED, f"more than {format_size(MOST_PINNED)} would be page-locked"
    costs = current(device)
    known = state.decided.get((mode, nbytes))
    if known is not None and known[0] is costs:
        decided: tuple[Way, str] = known[1]
        return decided
    if len(state.decided) >= _MOST_DECIDED:
        state.decided.clear()
    found = _cheaper(mode, nbytes, costs)
    state.decided[mode, nbytes] = (costs, found)
    return found


def _cheaper(mode: str, nbytes: int, costs: Calibration) -> tuple[Way, str]:
    """Copies through pinned memory or moving pages, for an array on the device."""
    source = "measured" if costs.measured else "assumed"
    if mode == "r" or None in (costs.copy_out, costs.copy_managed, costs.prefetch_back, costs.prefetch):
        return Way.STAGED, "its pages lie on the device, and stay there"
    assert costs.copy_out and costs.copy_managed and costs.prefetch_back and costs.prefetch
    copies = costs.copy_managed(nbytes) + (costs.copy_out(nbytes) if mode == "r+" else 0.0)
    home = costs.renew_back if mode == "w" else costs.prefetch_back
    if home is None:
        return Way.STAGED, "its pages lie on the device, and this runtime would move their stale bytes"
    moves = home(nbytes) + costs.prefetch(nbytes)
    text = f"copies take {copies * 1e6:.0f} us, moving pages home and back {moves * 1e6:.0f} us ({source})"
    return (Way.STAGED if copies <= moves else Way.MANAGED), f"its pages lie on the device; {text}"


def note_used(parts: list[Part], state: State, device: int) -> None:
    """Remember where the pages are by what the host did."""
    for part in parts:
        if part.way is not Way.STAGED:
            _note(part, state, HOST)
        elif state.driver.device_count() == 1:
            _note(part, state, Device(device))  # among several, they stay on the one that has them


def _note(part: Part, state: State, place: Place) -> None:
    if part.told != {place}:
        state.told.note(part.pages, place)


def rebuilt(nest: Any, leaves: Iterator[HostArray]) -> Any:
    """A nest of the same shape with other leaves, in order."""
    if isinstance(nest, dict):
        return {name: rebuilt(value, leaves) for name, value in nest.items()}
    if isinstance(nest, (list, tuple)):
        values = [rebuilt(value, leaves) for value in nest]
        return type(nest)(*values) if hasattr(nest, "_fields") else type(nest)(values)
    return next(leaves)
