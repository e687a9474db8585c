"""What was measured, or is assumed, of one device: one frozen value that other rooms read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from umarray import html
from umarray.calibration.curve import Curve
from umarray.sizes import format_size

CURVES = (
    "prefetch",
    "prefetch_back",
    "prefetch_there",
    "prefetch_call",
    "renew",
    "renew_back",
    "copy_in",
    "copy_out",
    "copy_managed",
    "pageable_in",
    "pageable_out",
    "demand",
    "demand_back",
    "bus",
    "host_write",
)
"""Names of the curves, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Calibration(html.Shown):
    """What moving bytes costs between the host and one device, in seconds by bytes.

    Notes
    -----
    `None` for a curve means that this device or runtime has no such thing, or that it was not measured and no default
    is known. Each curve's source is in `sources`.
    """

    device: str
    """Name of the device."""
    measured: bool
    """Measured on this device; otherwise all of it is assumed."""
    prefetch: Curve | None = None
    """A prefetch of pages of the host to the device, until they are there."""
    prefetch_back: Curve | None = None
    """A prefetch of pages of the device to the host, until they are there."""
    prefetch_there: Curve | None = None
    """A prefetch of pages that are there already."""
    prefetch_call: Curve | None = None
    """How long the call of a prefetch to the device keeps its caller."""
    prefetch_blocks: bool | None = None
    """Whether a prefetch keeps its caller until the pages have moved; None where nobody looked."""
    renew: Curve | None = None
    """Making pages of the host resident on the device without their contents."""
    renew_back: Curve | None = None
    """Bringing pages of the device to the host without their contents."""
    copy_in: Curve | None = None
    """A copy from pinned memory into plain device memory."""
    copy_out: Curve | None = None
    """A copy from plain device memory into pinned memory."""
    copy_managed: Curve | None = None
    """A copy from pinned memory into managed pages that lie on the device."""
    pageable_in: Curve | None = None
    """A copy from ordinary memory into plain device memory, until it is done."""
    pageable_out: Curve | None = None
    """A copy from plain device memory into ordinary memory, until it is done."""
    demand: Curve | None = None
    """Page faults: the device reads a run of pages that lie on the host, and they migrate."""
    demand_back: Curve | None = None
    """Page faults: the host reads a run of pages that lie on the device, and they migrate."""
    bus: Curve | None = None
    """The device reads host memory where it lies, over the bus."""
    host_write: Curve | None = None
    """One thread of the host writes memory that lies on the host."""
    slots: Mapping[str, Curve] = field(default_factory=lambda: MappingProxyType({}))
    """One turn of a pipeline's slot, by transport: the host writes it, it reaches the device, the device reads it once,
    and the host may write it again. Take `host_write` off for what a transport adds."""
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Where each figure comes from, by its name."""
    seconds: float = 0.0
    """How long measuring took."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values that JSON can hold."""
        return {
            "device": self.device,
            "measured": self.measured,
            "prefetch_blocks": self.prefetch_blocks,
            "curves": {name: _points(getattr(self, name)) for name in CURVES},
            "slots": {name: _points(curve) for name, curve in self.slots.items()},
            "sources": dict(self.sources),
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """What `as_dict` gave.

        Raises
        ------
        KeyError, TypeError, ValueError
            Values that are none of ours.
        """
        device, measured, blocks = values["device"], values["measured"], values["prefetch_blocks"]
        seconds = float(values["seconds"])
        flags = isinstance(measured, bool) and (blocks is None or isinstance(blocks, bool))
        if not isinstance(device, str) or not flags or not math.isfinite(seconds):
            raise TypeError("not the values of a calibration")
        return cls(
            device,
            measured,
            prefetch_blocks=blocks,
            slots=MappingProxyType({str(name): _required(points) for name, points in values["slots"].items()}),
            sources=MappingProxyType({str(name): str(text) for name, text in values["sources"].items()}),
            seconds=seconds,
            **{name: _curve(values["curves"][name]) for name in CURVES},
        )

    def __str__(self) -> str:
        lines = [f"  {name:<15} {what}  [{source}]" for name, what, source in self._rows()]
        return "\n".join([self._head(), *lines])

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), what, source) for name, what, source in self._rows()]
        return html.page(self._head(), html.table(("what", "time by size", "source"), rows) if rows else "")

    def _head(self) -> str:
        if not any(getattr(self, name) for name in CURVES):
            known = f"nothing is measured, and nothing moves ({self.sources.get('', 'no reason')})"
        elif not self.measured:
            known = "nothing was measured, these are stated defaults"
        else:
            known = f"measured in {self.seconds:.2f} s"
        return f"calibration of {self.device}: {known}"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, figures and source of all that is known."""
        source = self.sources.get
        curves = [(name, getattr(self, name)) for name in CURVES]
        rows = [(name, described(one), source(name, "no source")) for name, one in curves if one is not None]
        if self.prefetch_blocks is not None:
            text = "keeps its caller until" if self.prefetch_blocks else "returns before"
            rows.append(("a prefetch", f"{text} its pages have moved", source("prefetch_blocks", "no source")))
        slots = [
            (f"slot, {name}", described(curve), source("slots", "no source")) for name, curve in self.slots.items()
        ]
        return rows + slots


def described(curve: Curve) -> str:
    """A curve's points for people: time at size, and the rate of the largest."""
    shown = [f"{format_size(nbytes)} {_time(seconds)}" for nbytes, seconds in curve.points]
    nbytes, seconds = curve.points[-1]
    return ", ".join(shown) + (f" ({nbytes / seconds / 1e9:.1f} GB/s)" if seconds else "")


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _points(curve: Curve | None) -> list[list[float]] | None:
    return None if curve is None else [[nbytes, seconds] for nbytes, seconds in curve.points]


def _required(points: Any) -> Curve:
    return Curve(tuple((int(nbytes), float(seconds)) for nbytes, seconds in points))


def _curve(points: Any) -> Curve | None:
    return None if points is None else _required(points)
