"""A pipeline's stages as a timeline, drawn from the records that it emits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from umarray.demo.data import Refused
from umarray.events import StageRan

_SHOWN = 8  # batches
_STAGES = ("prep", "transfer", "compute")
_LEFT_OUT = ("source",)  # reading row numbers takes no time that one could see
_HATCHES = ("", "////", "....", "xxxx")


def check(path: Path) -> None:
    """Make sure, before any work, that a plot can be drawn and `path` be written.

    Raises
    ------
    Refused
        Matplotlib is not installed, the name's ending is no format of a plot, or the file cannot be written.
    """
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise Refused(f"--plot {str(path)!r} must end in .png, .svg or .pdf")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise Refused("--plot needs matplotlib: pip install '.[plot]' from the clone") from None
    was_there = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise Refused(f"--plot {str(path)!r} cannot be written: {error.strerror}") from None
    if not was_there:
        path.unlink()


def draw(records: Sequence[StageRan], path: Path, title: str) -> None:
    """Draw the last batches of `records`: a row a stage, a numbered bar a batch, told apart without colour."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window, no global state
    from matplotlib.figure import Figure

    shown = [record for record in last_batches(records, _SHOWN) if record.stage not in _LEFT_OUT]
    stages = list(dict.fromkeys((*_STAGES, *(record.stage for record in shown))))
    begin = min((record.start for record in shown), default=0.0)
    figure = Figure(figsize=(10, 1.2 + 0.8 * len(stages)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for record in shown:
        row = stages.index(record.stage)
        left, width = (record.start - begin) * 1e3, (record.end - record.start) * 1e3
        shade = ("white", "0.8")[record.index % 2]
        axes.barh(row, width, 0.7, left, color=shade, edgecolor="black", hatch=_HATCHES[row % len(_HATCHES)])
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(left + width / 2, row, str(record.index), ha="center", va="center", size=8, bbox=box, clip_on=True)
    for row in set(range(len(stages))) - {stages.index(record.stage) for record in shown}:
        axes.text(0.5, row, "nothing to do", transform=axes.get_yaxis_transform(), ha="center", va="center", size=8)
    axes.set_yticks(range(len(stages)), stages)
    axes.set_ylim(len(stages) - 0.5, -0.5)
    axes.set_xlabel("time since the first batch shown (ms)")
    axes.set_ylabel("stage")
    axes.set_title(title)
    figure.savefig(path, dpi=150)


def last_batches(records: Sequence[StageRan], count: int) -> list[StageRan]:
    """The records of the last `count` batches."""
    newest = max((record.index for record in records), default=0)
    return [record for record in records if record.index > newest - count]
