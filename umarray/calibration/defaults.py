"""What is assumed of a device on which nothing was measured; every figure with its source."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from umarray.calibration.curve import Curve
from umarray.calibration.figures import CURVES, Calibration
from umarray.drivers.base import Driver, Traits

_K, _M = 1 << 10, 1 << 20

_H200 = "measured on an NVIDIA H200 (CUDA 13, driver 580)"
_PCIE4 = "assumed: a PCIe 4.0 x16 link moves 26 of its 32 GB/s (the link: AMD's CDNA 2 white paper)"
_GUESS = "a guess of the right order for XNACK on MI200, until someone measures it"
_ONE = "host and device share one memory: nothing moves"

_US = 1e-6


def _curve(*points: tuple[int, float]) -> Curve:
    return Curve(tuple((nbytes, microseconds * _US) for nbytes, microseconds in points))


_Curves = dict[str, Any]

_CUDA: _Curves = {
    "prefetch": _curve((64 * _K, 28), (2 * _M, 113), (32 * _M, 723), (256 * _M, 5300)),
    "prefetch_back": _curve((64 * _K, 54), (2 * _M, 164), (32 * _M, 1780), (256 * _M, 14_900)),
    "prefetch_there": _curve((64 * _K, 10), (2 * _M, 10), (32 * _M, 26)),
    "prefetch_call": _curve((64 * _K, 16), (2 * _M, 35), (32 * _M, 327)),
    "copy_in": _curve((64 * _K, 10), (2 * _M, 47), (32 * _M, 613)),
    "copy_out": _curve((64 * _K, 9), (2 * _M, 46), (32 * _M, 613)),
    "copy_managed": _curve((64 * _K, 16), (2 * _M, 55), (32 * _M, 676)),
    "pageable_in": _curve((64 * _K, 25), (2 * _M, 145), (32 * _M, 2320)),
    "pageable_out": _curve((64 * _K, 18), (2 * _M, 168), (32 * _M, 1910)),
    "demand": _curve((64 * _K, 146), (2 * _M, 381), (32 * _M, 4340)),
    "demand_back": _curve((64 * _K, 61), (2 * _M, 274), (32 * _M, 4230)),
    "bus": _curve((64 * _K, 3), (2 * _M, 41), (32 * _M, 609)),
    "host_write": _curve((64 * _K, 6), (2 * _M, 60), (32 * _M, 1220)),
}
_RENEWING: _Curves = {
    "renew": _curve((64 * _K, 25), (2 * _M, 36), (32 * _M, 231)),
    "renew_back": _curve((64 * _K, 32), (2 * _M, 109), (32 * _M, 1550)),
}
_MIGRATING = ("prefetch", "prefetch_back", "prefetch_there", "prefetch_call", "copy_managed", "demand", "demand_back")
_HIP: _Curves = {
    "prefetch": Curve.line(50e-6, 26e9),
    "prefetch_back": Curve.line(50e-6, 26e9),
    "prefetch_there": Curve.line(10e-6, 1e12),
    "prefetch_call": Curve.line(50e-6, 26e9),
    "copy_in": Curve.line(10e-6, 26e9),
    "copy_out": Curve.line(10e-6, 26e9),
    "copy_managed": Curve.line(10e-6, 26e9),
    "pageable_in": Curve.line(20e-6, 8e9),
    "pageable_out": Curve.line(20e-6, 8e9),
    "demand": Curve.line(20e-6, 2.8e9),
    "demand_back": Curve.line(25e-6, 2.8e9),
    "bus": Curve.line(5e-6, 20e9),
    "host_write": Curve.line(1e-6, 10e9),
}
_HIP_MEASURABLE = frozenset({"prefetch", "prefetch_back", "copy_in", "copy_out", "copy_managed"})
_FREE = Curve(((1, 0.0),))


def defaults(driver: Driver, device: int) -> Calibration:
    """What is assumed of a device; in host mode, that nothing costs anything."""
    if not driver.device_count():
        return Calibration("no device", False, sources=MappingProxyType({"": "; ".join(driver.reasons)}))
    traits = driver.traits(device)
    if traits.unified:
        return _unified(traits)
    hip = traits.coarse_grain or driver.name == "hip"
    curves = dict(_HIP if hip else _CUDA)
    if not traits.prefetch:
        for name in _MIGRATING:
            del curves[name]
    if traits.renew:
        curves |= _RENEWING
    sources = {name: _source(name, hip) for name in curves}
    if traits.prefetch:
        sources["prefetch_blocks"] = "ROCm 6.1 and 6.2, read in their sources" if hip else _H200
    return Calibration(
        traits.name,
        False,
        prefetch_blocks=traits.prefetch_blocks if traits.prefetch else None,
        slots=MappingProxyType(_slots(curves)),
        sources=MappingProxyType({**sources, "slots": "the sum of its parts as assumed here"}),
        **curves,
    )


def _source(name: str, hip: bool) -> str:
    if name in ("renew", "renew_back"):
        return f"{_H200}; assumed of others"
    if hip:
        return _PCIE4 if name in _HIP_MEASURABLE else _GUESS
    return _H200


def _slots(curves: _Curves) -> dict[str, Curve]:
    """One turn of a slot as the sum of its parts, at three sizes."""
    sizes = (1 * _M, 4 * _M, 16 * _M)
    parts = {
        "staged": ("host_write", "copy_in"),
        "managed": ("host_write", "prefetch", "prefetch_back"),
        "bus": ("host_write", "bus"),
    }
    return {
        name: Curve.of((size, sum(curves[part](size) for part in used)) for size in sizes)
        for name, used in parts.items()
        if all(part in curves for part in used)
    }


def _unified(traits: Traits) -> Calibration:
    curves: _Curves = {name: _FREE for name in CURVES if name not in ("host_write", "renew", "renew_back")}
    return Calibration(
        traits.name,
        False,
        prefetch_blocks=False,
        slots=MappingProxyType({"direct": _FREE}),
        sources=MappingProxyType({name: _ONE for name in (*curves, "prefetch_blocks", "slots")}),
        **curves,
    )
