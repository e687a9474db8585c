"""What every picture is: a figure of matplotlib's that a notebook shows and `save` writes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import Any, final

from umarray import events
from umarray.observe.recording import Stamped

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++", "oo")
GREYS = ("white", "0.8", "0.6")
DPI = 150


@final
class Picture:
    """A picture: the last value of a notebook's cell shows it, `save` writes it.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        To change what is drawn. No part of it is known to pyplot.
    """

    def __init__(self, figure: Any, what: str) -> None:
        self.figure = figure
        self._what = what

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file; its ending says what kind: .png, .svg or .pdf."""
        self.figure.savefig(path, dpi=DPI)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure.savefig(file, format="png", dpi=100)
        return file.getvalue()

    def __repr__(self) -> str:
        return f"<picture: {self._what}; save('FILE.png') writes it>"


def new_figure(width: float, height: float) -> Any:
    """A figure of so many inches, that no window and no global state knows.

    Raises
    ------
    ModuleNotFoundError
        Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ModuleNotFoundError("pictures need matplotlib: install umarray with the extra plot") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend(figure: Any, entries: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """What each pattern stands for, below the picture."""
    from matplotlib.patches import Patch

    patches = [Patch(label=label, **style) for label, style in entries]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=min(3, len(patches)), frameon=False)


def records_of(what: Any) -> Iterator[tuple[float, events.Record]]:
    """Times and records of a watch, a recording (of a trace), or an iterable of records.

    Raises
    ------
    TypeError
        It is none of them.
    """
    found = getattr(what, "recording", what)
    given = getattr(found, "records", found)
    if not isinstance(given, Iterable):
        raise TypeError(f"a picture is drawn of a watch, a recording or records, not of {what!r}")
    for one in given:
        if isinstance(one, events.Record):
            yield one.start if isinstance(one, events.StageRan) else 0.0, one
        elif isinstance(one, Stamped):
            yield one.at, one.record
        else:
            raise TypeError(f"a picture is drawn of a watch, a recording or records, and {one!r} is no record")
