"""What moving costs on this device, for modelled savings: the emulator's profile, or what is calibrated or assumed."""

from __future__ import annotations

import importlib
import math
import os
from dataclasses import asdict, fields
from typing import Any

from umarray.calibration.curve import Curve
from umarray.calibration.known import current
from umarray.drivers.base import Driver
from umarray.observe.facts import Costs

_SMALL, _LARGE = 128 << 10, 64 << 20
_FAULT = 1e-6  # as the emulator's profile of that card takes it


def costs_of(driver: Driver) -> dict[str, Any]:
    """The figures of `facts.Costs` for a driver's first device, as plain values that a trace can hold.

    Notes
    -----
    A fault's own latency is what the shortest measured run takes beyond its bytes. Not on CUDA, where the faults that
    CUPTI counts are more than the runs of pages they move, and where the rate on demand holds them already.
    """
    if os.environ.get("HIPEMU") == "1":
        figures = importlib.import_module("umarray.hipemu.history").costs()  # not before somebody watches there
        known_here = {one.name for one in fields(Costs)}
        given = {name: value for name, value in figures._asdict().items() if name in known_here}
        return asdict(Costs(**given, source="the emulated card's figures"))
    if not driver.device_count():
        return asdict(Costs(source="assumed: there is no device"))
    known = current(0)
    free = Curve(((1, 0.0),))
    prefetch, back, demand = (getattr(known, name) or free for name in ("prefetch", "prefetch_back", "demand"))
    return asdict(
        Costs(
            fault=_FAULT if driver.name == "cuda" else _start(demand),
            host_fault=_FAULT if driver.name == "cuda" else _start(known.demand_back or free),
            call=_start(prefetch),
            demand=_rate(demand),
            demand_back=_rate(known.demand_back or free),
            to_device=_rate(prefetch),
            to_host=_rate(back),
            between=_rate(prefetch),
            source=f"what was {'measured on' if known.measured else 'assumed for'} {known.device}",
        )
    )


def _rate(curve: Curve) -> float:
    """Bytes a second of what is large."""
    seconds = curve(_LARGE) - curve(_SMALL)
    return (_LARGE - _SMALL) / seconds if seconds > 0 else 1e15  # JSON has no infinity


def _start(curve: Curve) -> float:
    """Seconds of what is small, beyond its bytes."""
    left = curve(_SMALL) - _SMALL / _rate(curve)
    return max(0.0, left) if math.isfinite(left) else 0.0
