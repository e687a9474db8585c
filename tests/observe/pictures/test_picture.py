"""What every picture is, whatever is drawn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import umarray as um
from umarray.events import StageRan
from umarray.memory import Pool
from umarray.observe import pictures
from umarray.observe.pictures.picture import Picture, new_figure, records_of
from umarray.observe.recording import Header, Recording, Stamped

pytest.importorskip("matplotlib")
RAN = [StageRan(stage, index, index + 0.0, index + 0.5) for index in range(3) for stage in ("prep", "compute")]


def some_pool() -> Pool:
    pool: Pool = um.pool("1MiB", track=True)
    pool.array_of_bytes(1000)
    return pool


DRAW: dict[str, Callable[[], Picture]] = {
    "timeline": lambda: pictures.timeline(RAN),
    "faults": lambda: pictures.faults([(1, 2), (3, 4)]),
    "arena_map": lambda: pictures.arena_map(some_pool()),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_notebook_shows_it_and_save_writes_it(name: str, tmp_path: Path) -> None:
    picture = DRAW[name]()
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture).startswith("<picture: ") and "object at 0x" not in repr(picture)
    for ending, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        picture.save(tmp_path / f"picture{ending}")
        assert (tmp_path / f"picture{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", DRAW)
def test_its_axes_say_what_they_measure(name: str) -> None:
    for axes in DRAW[name]().figure.axes:
        assert axes.get_ylabel()
        assert axes.get_xlabel() or axes is not DRAW[name]().figure.axes[-1]
        if name != "faults":
            assert "(" in axes.get_xlabel()  # a unit


@pytest.mark.parametrize("name", DRAW)
def test_it_is_drawn_in_black_and_white(name: str) -> None:
    import numpy as np

    figure = DRAW[name]().figure
    figure.canvas.draw()
    red, green, blue, _ = np.moveaxis(np.asarray(figure.canvas.buffer_rgba()).astype(int), -1, 0)
    assert abs(red - green).max() <= 2 and abs(green - blue).max() <= 2


def test_pyplot_is_left_alone() -> None:
    code = """
import sys
from umarray.memory import Pool
from umarray.observe import pictures
assert "matplotlib" not in sys.modules
pictures.faults([(1, 2)])._repr_png_()
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_without_matplotlib_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)  # type: ignore[arg-type]
    with pytest.raises(ModuleNotFoundError, match="the extra plot"):
        new_figure(1, 1)


def test_records_come_from_a_watch_a_recording_or_a_list() -> None:
    recording = Recording(Header(0.0), tuple(Stamped(one.start, 7, one) for one in RAN))

    class Watch:
        pass

    watch: Any = Watch()
    watch.recording = recording
    expected = [(one.start, one) for one in RAN]
    for what in (RAN, iter(RAN), recording, watch):
        assert list(records_of(what)) == expected


@pytest.mark.parametrize("draw", [pictures.timeline, pictures.residency, pictures.faults])
@pytest.mark.parametrize("bad", [3, None, [3], ["text"]])
def test_what_cannot_be_drawn_is_quoted(draw: Callable[[Any], Picture], bad: Any) -> None:
    with pytest.raises(TypeError, match="watch.*(3|None|'text')"):
        draw(bad)
