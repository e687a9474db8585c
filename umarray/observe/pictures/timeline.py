"""A pipeline's stages over time: what overlaps, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from umarray.events import StageRan
from umarray.observe.pictures.picture import GREYS, HATCHES, Picture, new_figure, records_of

STAGES = ("prep", "transfer", "compute")
LEFT_OUT = ("source",)  # taking the next item: too short to see
_NARROW = 0.02  # of the picture


def timeline(what: Any, *, batches: int = 8, title: str = "pipeline") -> Picture:
    """Draw the last batches of a pipeline: a row a stage, a numbered bar a batch, told apart without colour.

    Parameters
    ----------
    what : watch, recording, or iterable of events.StageRan
        What was recorded while the pipeline ran.
    batches : int
        How many, the last ones.

    Raises
    ------
    ValueError
        No stage ran in what was given.
    """
    ran = [record for _, record in records_of(what) if isinstance(record, StageRan)]
    if not ran:
        raise ValueError("no stage of a pipeline ran in what was given: iterate the pipeline within um.watch()")
    shown = [record for record in last_batches(ran, batches) if record.stage not in LEFT_OUT]
    stages = list(dict.fromkeys((*STAGES, *(record.stage for record in shown))))
    begin = min((record.start for record in shown), default=0.0)
    span = max((record.end for record in shown), default=0.0) - begin
    figure = new_figure(10, 1.2 + 0.8 * len(stages))
    axes = figure.add_subplot()
    for record in shown:
        row = stages.index(record.stage)
        left, width = (record.start - begin) * 1e3, (record.end - record.start) * 1e3
        shade, hatch = GREYS[record.index % 2], HATCHES[row % len(HATCHES)]
        axes.barh(row, width, 0.7, left, color=shade, edgecolor="black", hatch=hatch)
        _number(axes, record.index, left + width / 2, row, narrow=record.end - record.start < _NARROW * span)
    for row in set(range(len(stages))) - {stages.index(record.stage) for record in shown}:
        axes.text(0.5, row, "nothing to do", transform=axes.get_yaxis_transform(), ha="center", va="center", size=8)
    axes.set_yticks(range(len(stages)), stages)
    axes.set_ylim(len(stages) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="0.85", linewidth=0.8)
    axes.set_xlabel("time since the first batch shown (ms)")
    axes.set_ylabel("stage")
    axes.set_title(title)
    return Picture(figure, f"timeline of {len({record.index for record in shown})} batches")


def _number(axes: Any, index: int, middle: float, row: int, *, narrow: bool) -> None:
    """A batch's number in its bar, or where that is too narrow above or below it, in turn."""
    style: dict[str, Any]
    if narrow:
        up = index % 2 == 0
        place, style = row - 0.37 if up else row + 0.37, {"va": "bottom" if up else "top"}
    else:
        place, style = row, {"va": "center", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}
    axes.text(middle, place, str(index), ha="center", size=8, clip_on=True, **style)


def last_batches(records: Sequence[StageRan], count: int) -> list[StageRan]:
    """The records of the last `count` batches."""
    newest = max((record.index for record in records), default=0)
    return [record for record in records if record.index > newest - count]
