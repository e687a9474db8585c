from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import umarray as um
from umarray import drivers
from umarray.drivers.host import HostDriver
from umarray.observe.pictures.arena import STYLES, arena_map

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def legend_of(picture: Any) -> list[str]:
    return [text.get_text() for text in picture.figure.legends[0].get_texts()]


def test_blocks_free_space_and_escapes() -> None:
    with um.pool("1MiB", track=True) as pool:
        with pool.persistent():
            weights = um.zeros(8192, "u1")
        with pool.epoch():
            escaped = um.zeros(16384, "u1")
        alive = um.zeros(4096, "u1")
        picture = arena_map(pool)
    said = legend_of(picture)
    assert said == [
        "alive: 4.0 KiB",
        "alive, persistent: 8.0 KiB",
        "escaped from its epoch: 16.0 KiB",
        "free: 996.0 KiB",
    ]
    (axes,) = picture.figure.axes
    assert axes.get_xlabel() == "offset in the arena (KiB)"
    assert sum(bar.get_width() for bar in axes.patches[:-1]) == pytest.approx(1024)
    del weights, escaped, alive


def test_a_pool_that_does_not_track_says_what_it_cannot_tell() -> None:
    with um.pool("1MiB") as pool:
        x = um.zeros(1000)
        assert "not tracked" in legend_of(arena_map(pool))[0]
        del x


def test_narrow_blocks_are_drawn_together() -> None:
    with um.pool("4MiB", track=True) as pool:
        many = [um.zeros(512, "u1") for _ in range(400)]
        (axes,) = arena_map(pool).figure.axes
    assert len(axes.patches) < 10
    del many


def test_patterns_can_be_told_apart_without_colour() -> None:
    looks = {(str(style["facecolor"]), str(style.get("hatch")), style["edgecolor"]) for style in STYLES.values()}
    assert len(looks) == len(STYLES)


def test_nothing_to_draw_is_told() -> None:
    with um.pool("1MiB") as pool, pytest.raises(ValueError, match="first array"):
        arena_map(pool)
    with pytest.raises(TypeError, match="'no pool'"):
        arena_map("no pool")  # type: ignore[arg-type]
