"""How a host view reaches an array: by where its pages are, how large it is, and what copies and moves cost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, FakeCupy, address, managed
from umarray.calibration import Curve, current
from umarray.calibration.known import set_current
from umarray.drivers.base import Kind
from umarray.places import HOST, Device
from umarray.residency.state import State, state_of
from umarray.residency.ways import Part, Way, choose, look, note_used, on_device_as_told, part_of, rebuilt

Make = Callable[..., FakeDriver]


def part(fake: FakeDriver, x: Any) -> tuple[Part, State]:
    state = state_of(fake)
    found = part_of(x)
    look(found, state)
    return found, state


def way(fake: FakeDriver, x: Any, mode: str = "r+") -> Way:
    found, state = part(fake, x)
    return choose(found, mode, state, 0)[0]


def on_device(fake: FakeDriver, pages: int = 10) -> Any:
    x = managed(fake, pages)
    fake.prefetch(address(x), x.nbytes, Device(0), 0)
    return x


@pytest.mark.parametrize("mode", ["r", "w", "r+"])
def test_pages_are_reached_where_they_are(fake: FakeDriver, mode: str) -> None:
    assert way(fake, managed(fake), mode) is Way.DIRECT
    assert way(fake, on_device(fake), mode) is Way.STAGED
    assert way(fake, FakeCupy(managed(fake, kind=Kind.DEVICE)), mode) is Way.STAGED
    for kind in (Kind.PINNED, Kind.HOST):
        assert way(fake, FakeCupy(managed(fake, kind=kind)), mode) is Way.DIRECT
    assert way(fake, np.ones(5), mode) is Way.DIRECT


def test_one_memory_is_direct_wherever_pages_are(make_fake: Make) -> None:
    fake = make_fake(unified=True)
    assert way(fake, managed(fake)) is Way.DIRECT


@pytest.mark.parametrize(("touched", "expected"), [(4, Way.STAGED), (5, Way.MANAGED), (10, Way.DIRECT)])
def test_pages_that_lie_apart_come_where_most_are(fake: FakeDriver, touched: int, expected: Way) -> None:
    x = on_device(fake)
    fake.host_touch(address(x), touched * PAGE)
    assert way(fake, x) is expected
    gapped = on_device(fake)
    fake.host_touch(address(gapped), PAGE)
    assert way(fake, gapped[::2], "r") is Way.MANAGED  # gathering would take the host's page away


@pytest.mark.parametrize(("moves", "expected"), [(1e-6, Way.MANAGED), (1.0, Way.STAGED)])
def test_what_copies_and_moves_cost_decides_but_for_reading(fake: FakeDriver, moves: float, expected: Way) -> None:
    x, cost = on_device(fake), Curve(((1, moves), (1 << 30, moves)))
    set_current(0, replace(current(0), prefetch_back=cost, prefetch=cost))
    assert way(fake, x, "r+") is expected
    assert way(fake, x, "r") is Way.STAGED  # the device keeps its copy
    set_current(0, replace(current(0), renew_back=cost))
    assert way(fake, x, "w") is expected


def test_too_much_to_be_pinned_comes_home(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["umarray.residency.ways"], "MOST_PINNED", 9 * PAGE)
    assert way(fake, on_device(fake)) is Way.MANAGED and way(fake, on_device(fake, 9)) is Way.STAGED


def test_without_a_page_table_what_was_told_decides(make_fake: Make) -> None:
    fake = make_fake(page_table=False)
    x = managed(fake, 10)
    assert way(fake, x) is Way.MANAGED
    found, state = part(fake, x)
    state.told.note(found.pages, Device(0))
    assert way(fake, x) is Way.STAGED and on_device_as_told(part(fake, x)[0])
    state.told.note([found.pages[0]._replace(stop=found.start + PAGE)], HOST)
    assert way(fake, x) is Way.MANAGED and not on_device_as_told(part(fake, x)[0])


def test_what_the_host_did_is_remembered(make_fake: Make) -> None:
    for devices, remembered in ((1, {Device(0)}), (2, {None})):
        fake = make_fake(devices=devices)
        staged, state = part(fake, on_device(fake))
        staged.way = Way.STAGED
        note_used([staged], state, 0)  # among two devices they stay on the one that has them
        assert set(state.told.places(staged.pages[0])) == remembered
        direct, _ = part(fake, managed(fake))
        note_used([direct], state, 0)
        assert set(state.told.places(direct.pages[0])) == {HOST}


def test_a_nest_is_rebuilt_with_other_leaves() -> None:
    assert rebuilt({"a": 0, "b": [0, (0,)]}, iter([1, 2, 3])) == {"a": 1, "b": [2, (3,)]}  # type: ignore[list-item]


def test_a_part_in_words(fake: FakeDriver) -> None:
    found, state = part(fake, managed(fake, 2))
    found.way, found.why = choose(found, "r", state, 0)
    assert str(found) == "direct: 8.0 KiB, all of its pages are on the host"
