"""Faults a step: how often the device and the host had to wait for a page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from umarray.events import Began, Faulted
from umarray.observe.pictures.picture import Picture, legend, new_figure, records_of
from umarray.places import Host

DEVICE = {"facecolor": "0.75", "edgecolor": "black", "hatch": "////"}
HOST = {"facecolor": "white", "edgecolor": "black", "hatch": "...."}


def faults(steps: Any, *, labels: Sequence[str] | None = None, title: str = "faults a step") -> Picture:
    """Draw two bars a step: faults of the devices, and of the host.

    Parameters
    ----------
    steps : iterable, or watch, or recording
        For each step its watch, or the watch's report, or a pair (device faults, host faults). Of one watch, or one
        recording (of a trace), the steps are its epochs, each until the next begins: work is queued, and may fault
        when its epoch has ended.
    labels : sequence of str, optional
        What the steps are called; their numbers from 0 otherwise.

    Raises
    ------
    ValueError
        There is no step, or nobody saw the faults of one, or there are more or fewer labels than steps.
    TypeError
        There is something else than steps.
    """
    recording = getattr(steps, "recording", steps)
    epochs = hasattr(recording, "records")
    if not epochs and not isinstance(steps, Iterable):
        raise TypeError(f"steps are watches, their reports or pairs of counts, not {steps!r}")
    counted = [_pair(step) for step in (_epochs(recording) if epochs else steps)]
    if not counted:
        raise ValueError(f"there is no {'epoch' if epochs else 'step'} to draw: give a watch for each step")
    names = [str(number) for number in range(len(counted))] if labels is None else list(labels)
    if len(names) != len(counted):
        raise ValueError(f"{len(names)} labels for {len(counted)} steps")
    figure = new_figure(min(12, max(5, 2 + 0.6 * len(counted))), 3.4)
    axes = figure.add_subplot()
    for side, style in enumerate((DEVICE, HOST)):
        places = [number + (side - 0.5) * 0.4 for number in range(len(counted))]
        heights = [pair[side] for pair in counted]
        bars = axes.bar(places, heights, 0.4, linewidth=0.8, **style)
        if len(counted) <= 16:
            axes.bar_label(bars, [f"{height:,}" for height in heights], size=7, padding=1)
    every = -(-len(counted) // 25)
    axes.set_xticks(range(0, len(counted), every), names[::every])
    axes.set_xlim(-0.6, len(counted) - 0.4)
    axes.set_ylim(0, max(1, *(max(pair) for pair in counted)) * 1.12)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="0.85", linewidth=0.8)
    axes.set_xlabel("step")
    axes.set_ylabel("faults (count)")
    axes.set_title(title)
    legend(figure, [("of the devices", DEVICE), ("of the host", HOST)])
    return Picture(figure, f"faults of {len(counted)} steps")


def _epochs(recording: Any) -> list[tuple[int, int]]:
    """Faults of the devices and of the host from each epoch's beginning to the next one's."""
    starts, found = [], []
    for at, record in records_of(recording):
        if isinstance(record, Began) and record.action == "epoch":
            starts.append(at)
        elif isinstance(record, Faulted):
            found.append(record)
    counts = [[0, 0] for _ in starts]
    for record in found:
        number = bisect_right(starts, record.start) - 1
        if number >= 0:
            counts[number][isinstance(record.place, Host)] += record.count
    return [(device, host) for device, host in counts]


def _pair(step: Any) -> tuple[int, int]:
    if isinstance(step, tuple):
        device, host = step
        return int(device), int(host)
    counts = getattr(getattr(step, "report", step), "counts", None)
    if counts is None:
        raise TypeError(f"a step is a watch, its report or a pair of counts, not {step!r}")
    if counts.device_faults is None and counts.host_faults is None:
        raise ValueError("nobody saw the faults of a step: this driver has no source that tells of them")
    return counts.device_faults or 0, counts.host_faults or 0
