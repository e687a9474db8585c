from __future__ import annotations

import pytest

from tests.observe.test_residence import D0, D1, KIB, moved, named
from umarray.observe.pictures.residency import residency
from umarray.observe.recording import Header, Recording, Stamped
from umarray.places import HOST

pytest.importorskip("matplotlib")


def recording() -> Recording:
    told = [
        named("x", 0, 2048 * KIB),
        named("y", 1 << 30, 1024 * KIB),
        moved(1, 0, 2048 * KIB, HOST, D0),
        moved(2, 1 << 30, 512 * KIB, HOST, D1),
    ]
    return Recording(Header(0.0), tuple(Stamped(at, 0, record) for at, record in told))


def test_a_row_an_array_with_its_unit() -> None:
    rows = residency(recording()).figure.axes
    assert [axes.get_title("left") for axes in rows] == ["x, 2.0 MiB", "y, 1.0 MiB"]
    assert {axes.get_ylabel() for axes in rows} == {"MiB"} and rows[-1].get_xlabel() == "time (ms)"


def test_devices_are_told_apart_without_colour() -> None:
    picture = residency(recording())
    texts = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert texts == ["at device 0", "at device 1"]
    assert len({patch.get_hatch() for patch in picture.figure.legends[0].get_patches()}) == 2


def test_nothing_to_draw_is_told() -> None:
    with pytest.raises(ValueError, match="no array"):
        residency(Recording(Header(0.0), ()))
