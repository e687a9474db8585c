"""Residency of the largest arrays over time: how much of each was at a device."""

from __future__ import annotations

from typing import Any

from umarray.observe.pictures.picture import HATCHES, Picture, legend, new_figure, records_of
from umarray.observe.residence import residences

_SHADES = ("0.75", "0.9", "0.6", "white")


def residency(what: Any, *, arrays: int = 6, title: str = "residency of the largest arrays") -> Picture:
    """Draw a row an array: the bytes of it that devices reached without a fault, over time.

    Parameters
    ----------
    what : watch or recording
        Of a driver whose source tells addresses.
    arrays : int
        How many, the largest.

    Raises
    ------
    ValueError
        No array that is known moved.
    """
    records = list(records_of(what))
    found = residences(records, most=arrays)
    if not found:
        raise ValueError("no array that is known by name or from a scope moved, or nobody here sees what moves")
    begin = min(at for at, _ in records)
    last = max(*(at for at, _ in records), *(time for one in found for time in one.times))
    devices = found[0].devices
    figure = new_figure(10, 1.5 + 1.0 * len(found))
    rows = figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for axes, one in zip(rows, found, strict=True):
        times = [(time - begin) * 1e3 for time in (begin, *one.times, last)]
        base = [0.0] * len(times)
        for number, device in enumerate(devices):
            held = [level[number] / 2**20 for level in one.bytes_at]
            top = [low + more for low, more in zip(base, [held[0], *held, held[-1]], strict=True)]
            axes.fill_between(times, base, top, step="post", linewidth=0.8, **_style(device))
            base = top
        axes.set_ylim(0, max(*base, one.nbytes / 2**20) * 1.08)
        axes.axhline(one.nbytes / 2**20, color="black", linewidth=0.8, linestyle=":")
        axes.set_ylabel("MiB")
        axes.set_title(f"{one.name}, {one.nbytes / 2**20:.1f} MiB", loc="left", size=9)
    rows[-1].set_xlim(0, max((last - begin) * 1e3, 1e-3))
    rows[-1].set_xlabel("time (ms)")
    figure.suptitle(title, size=11)
    legend(figure, [(f"at device {device}", _style(device)) for device in devices])
    return Picture(figure, f"residency of {len(found)} arrays")


def _style(device: int) -> dict[str, Any]:
    shade, hatch = _SHADES[device % len(_SHADES)], HATCHES[(device + 1) % len(HATCHES)]
    return {"facecolor": shade, "edgecolor": "black", "hatch": hatch}
