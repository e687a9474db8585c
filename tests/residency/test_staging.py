"""Shadows of several arrays: which share one, and what becomes of them without pinned memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, managed
from umarray.drivers.base import Kind
from umarray.errors import OutOfMemory
from umarray.residency.shadow import Gathered
from umarray.residency.staging import staged
from umarray.residency.state import state_of
from umarray.residency.streams import Lane
from umarray.residency.ways import Part, Way, look, part_of


def parts(fake: FakeDriver, *arrays: Any) -> list[tuple[Part, Lane]]:
    state, found = state_of(fake), []
    for x in arrays:
        part = part_of(x)
        look(part, state)
        part.way = Way.STAGED
        found.append((part, state.streams.lane(0)))
    return found


def test_arrays_that_touch_or_overlap_share_a_shadow(fake: FakeDriver) -> None:
    x = managed(fake, 10, "u1")
    found = parts(fake, x[6000:7000], x[:5000], x[5000:6000], x[100:200], x[8000:])
    shadows = staged(found, state_of(fake), 0)
    assert len(shadows) == 2 and all(part.array is not None for part, _ in found)
    first, second = found[1][0].array, found[3][0].array
    assert first is not None and second is not None
    first[100] = 9
    assert second[0] == 9
    assert sorted(call.args["nbytes"] for call in fake.named("allocate")[1:]) == [7000, 10 * PAGE - 8000]


def test_arrays_with_gaps_or_of_another_stream_have_their_own(fake: FakeDriver) -> None:
    x, stream = managed(fake, 10, "u1"), fake.create_stream(0)
    found = parts(fake, x[:1000], x[1000:2000:2], x[2000:3000], x[3000:4000])
    found[3] = (found[3][0], Lane(stream, 0))
    shadows = staged(found, state_of(fake), 0)
    assert len(shadows) == 4 and sum(isinstance(one, Gathered) for one in shadows) == 1


def test_without_pinned_memory_managed_arrays_come_home_and_plain_ones_cannot(
    make_fake: Callable[..., FakeDriver],
) -> None:
    fake = make_fake(pinned_capacity=0)
    found = parts(fake, managed(fake))
    assert staged(found, state_of(fake), 0) == []
    assert found[0][0].way is Way.MANAGED and "no pinned memory" in found[0][0].why and found[0][0].array is None
    with pytest.raises(OutOfMemory):
        staged(parts(fake, managed(fake, kind=Kind.DEVICE)), state_of(fake), 0)
    assert staged([], state_of(fake), 0) == []
