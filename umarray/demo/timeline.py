"""The demo's picture: can it be drawn, and drawing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from umarray.demo.data import Refused
from umarray.events import StageRan


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
    """Draw the last batches of `records` into a file."""
    from umarray.observe.pictures import timeline

    timeline(records, title=title).save(path)
