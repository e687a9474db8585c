"""Arrays of one host view that share memory: nothing that is written through one of them is lost."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, FakeCupy, address, managed
from umarray.drivers.base import Kind
from umarray.residency.overlaps import agree, check_together
from umarray.residency.ways import Part, Way, part_of


def parts(*arrays: Any, ways: tuple[Way, ...] = ()) -> list[Part]:
    found = [part_of(x) for x in arrays]
    for part, way in zip(found, ways, strict=False):
        part.way = way
    return found


def test_writing_arrays_that_share_elements_is_refused_where_one_has_gaps() -> None:
    x = np.zeros((10, 10))
    for pair in ((x[:, :6], x[:, 5:]), (x[::2], x), (x[0], x[:, 0]), (x[::2], x[::4]), (x[::-2], x[1:2])):
        with pytest.raises(ValueError, match=r"arrays of shapes \(.*share elements, and one has gaps"):
            check_together(parts(*pair))
    check_together(parts(x[:, :5], x[:, 5:], x[0:0], x[0][:0]))
    check_together(parts(x[::2], x[1::2]))
    check_together(parts(x, x[2:4], x))  # without gaps they share a copy


@pytest.mark.parametrize("kind", [Kind.MANAGED, Kind.DEVICE, Kind.HOST])
def test_it_is_refused_in_every_kind_of_memory_and_reading_is_not(fake: FakeDriver, kind: Kind) -> None:
    x = managed(fake, kind=kind)
    pair = [x[::2], x]
    for mode in ("w", "r+"):
        with pytest.raises(ValueError, match="share elements"):
            um.host_view(pair, mode)
    with um.host_view(pair) as (first, second):
        assert first[1] == second[2]


def test_arrays_that_share_memory_go_one_way_or_all_are_copies() -> None:
    x = np.zeros(100)
    found = parts(x[:30], x[20:50], x[40:60], x[60:], ways=(Way.DIRECT, *[Way.STAGED] * 3))
    agree(found)
    assert [part.way for part in found] == [Way.DIRECT, Way.MANAGED, Way.MANAGED, Way.STAGED]
    assert "shares memory" in found[1].why and not found[3].why
    copies = parts(x, x[:50], ways=(Way.STAGED, Way.STAGED))
    agree(copies)
    assert {part.way for part in copies} == {Way.STAGED}


def test_arrays_of_two_devices_that_share_memory_are_no_copies() -> None:
    x = np.zeros(100)
    found = parts(FakeCupy(x), FakeCupy(x[:50], device=1), ways=(Way.STAGED, Way.STAGED))
    agree(found)
    assert {part.way for part in found} == {Way.MANAGED}


@pytest.mark.parametrize("large", [True, False])
def test_nothing_is_lost_where_one_array_would_be_copied_and_another_not(
    fake: FakeDriver, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = managed(fake, 10, "u1")
    um.move(x, to=0)
    if large:
        monkeypatch.setattr(sys.modules["umarray.residency.ways"], "MOST_PINNED", 4 * PAGE)
    else:  # the small one's pages are all on the host, the others are not
        fake.host_touch(address(x), PAGE)
    with um.host_view([FakeCupy(x), FakeCupy(x[:PAGE])], "r+") as (whole, head):
        whole[5] = 7
        head[6] = 8
        assert head[5] == 7 and whole[6] == 8
    assert (x[5], x[6]) == (7, 8)
