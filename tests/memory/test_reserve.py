"""Arenas of one device: growth, the budget, what comes back, and failures that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.drivers.base import Kind
from umarray.memory.budget import Budget
from umarray.memory.owners import Owner
from umarray.memory.reserve import Range, Reserve

MIB = 1 << 20
A, B = Owner(0, 0), Owner(0, 1)


def make(fake: FakeDriver, first: int = MIB, limit: int = 64 * MIB, **more: Any) -> Reserve:
    return Reserve(fake, Kind.MANAGED, 0, Budget(first, limit, 0), **more)


def give(reserve: Reserve, found: Range) -> None:
    reserve.returned.append((found.slab, found.offset, (found.owner,)))


def test_arenas_double_up_to_the_limit(fake: FakeDriver) -> None:
    reserve = make(fake, limit=6 * MIB)
    sizes = []
    for _ in range(12):
        reserve.obtain(MIB // 2, A)
        sizes.append(reserve.arena_bytes)
    assert sorted(set(sizes)) == [MIB, 3 * MIB, 6 * MIB]
    assert reserve.driver_allocations == fake.count("allocate") == 3
    with pytest.raises(um.OutOfMemory) as caught:
        reserve.obtain(512, A)
    assert (caught.value.requested, caught.value.used, caught.value.limit) == (512, 6 * MIB, 6 * MIB)
    assert "delete arrays" in str(caught.value)


def test_a_request_larger_than_the_next_arena_gets_one_that_fits(fake: FakeDriver) -> None:
    reserve = make(fake)
    found = reserve.obtain(5 * MIB, A)
    assert found.nbytes == 5 * MIB and reserve.arena_bytes == 6 * MIB


def test_a_driver_that_has_less_is_asked_for_less(make_fake: Any) -> None:
    fake = make_fake(capacity=10 * MIB)
    reserve = make(fake, first=32 * MIB)
    reserve.obtain(3 * MIB, A)
    assert 3 * MIB <= reserve.arena_bytes <= 10 * MIB
    with pytest.raises(um.OutOfMemory):
        reserve.obtain(11 * MIB, A)
    assert reserve.arena_bytes <= 10 * MIB


def test_fragments_are_named(fake: FakeDriver) -> None:
    reserve = make(fake, first=4 * MIB, limit=4 * MIB)
    ranges = [reserve.obtain(MIB, A) for _ in range(4)]
    give(reserve, ranges[0])
    give(reserve, ranges[2])
    with pytest.raises(um.OutOfMemory, match=r"2\.0 MiB are free but in pieces of at most 1\.0 MiB"):
        reserve.obtain(2 * MIB, A)


def test_reclaim_is_asked_softly_before_growing_and_hard_before_failing(fake: FakeDriver) -> None:
    reserve = make(fake, first=MIB, limit=MIB)
    held = [reserve.obtain(MIB, A)]
    asked: list[bool] = []

    def reclaim(hard: bool) -> None:
        asked.append(hard)
        if hard:
            give(reserve, held.pop())

    assert reserve.obtain(MIB, A, reclaim=reclaim).nbytes == MIB
    assert asked == [False, True]
    assert fake.count("allocate") == 1


def test_a_fence_that_fails_gives_the_range_back_with_its_fence(fake: FakeDriver) -> None:
    reserve = make(fake)
    first, second = (Owner(0, fake.create_stream(0)) for _ in range(2))
    give(reserve, reserve.obtain(MIB, first))
    fake.fail("wait", 700)
    fake.fail("synchronize", 700)
    with pytest.raises(um.DriverError):
        reserve.obtain(MIB, second)
    waits = fake.count("wait")
    reserve.obtain(MIB, second)
    assert fake.count("wait") == waits + 1, "the fence was forgotten"
    assert fake.count("allocate") == 1


def test_release_waits_for_whoever_may_still_work_there(fake: FakeDriver) -> None:
    reserve = make(fake)
    stream = fake.create_stream(0)
    found = reserve.obtain(MIB, Owner(0, stream))
    keep = reserve.obtain(MIB, A)
    give(reserve, found)
    assert reserve.release() == MIB
    names = [call.name for call in fake.calls]
    assert names.index("synchronize") < names.index("free")
    assert keep.address in range(keep.slab.allocation.address, keep.slab.allocation.address + 2 * MIB)
    assert len(reserve.slabs) == 1


def test_several_idle_arenas_become_one(fake: FakeDriver) -> None:
    reserve = make(fake)
    ranges = [reserve.obtain(MIB, A) for _ in range(7)]
    assert len(reserve.slabs) == 3
    for found in ranges:
        give(reserve, found)
    reserve.consolidate()
    assert not reserve.slabs
    for _ in range(7):
        reserve.obtain(MIB, A)
    assert [slab.allocation.nbytes for slab in reserve.slabs] == [7 * MIB]
    reserve.consolidate()
    assert len(reserve.slabs) == 1


def test_each_arena_is_advised(fake: FakeDriver) -> None:
    make(fake).obtain(512, A)
    (first, second) = fake.named("advise")
    assert [call.args["nbytes"] for call in (first, second)] == [MIB, MIB]
    reserve = make(fake, coarse_grain=False)
    reserve.obtain(512, A)
    assert fake.count("advise") == 3
    reserve.obtain(4 * MIB, A)
    assert fake.count("advise") == 4


def test_what_must_not_reach_the_driver_is_asked_first(fake: FakeDriver) -> None:
    reserve = make(fake)
    give(reserve, reserve.obtain(MIB // 2, A))

    def refuse(nbytes: int) -> None:
        raise um.NotSupported(str(nbytes))

    reserve.before_driver = refuse
    calls = len(fake.calls)
    give(reserve, reserve.obtain(MIB // 2, A))  # room, and no fence: no driver
    with pytest.raises(um.NotSupported):
        reserve.obtain(MIB // 2, B)  # a fence
    with pytest.raises(um.NotSupported):
        reserve.obtain(2 * MIB, A)  # growth
    assert len(fake.calls) == calls


def test_peaks_by_owner(fake: FakeDriver) -> None:
    reserve = make(fake)
    first, second = reserve.obtain(1024, A), reserve.obtain(2048, A)
    reserve.obtain(512, B)
    give(reserve, first)
    assert reserve.clear_peaks() == {A: 3072, B: 512}
    assert reserve.clear_peaks() == {A: 2048, B: 512}
    give(reserve, second)
    assert reserve.used_bytes == 512


def test_whole_arenas_that_are_too_small_go_for_one_that_is_large_enough(fake: FakeDriver) -> None:
    reserve = make(fake, limit=7 * MIB)
    ranges = [reserve.obtain(MIB, A) for _ in range(7)]
    assert len(reserve.slabs) == 3
    for found in ranges[1:]:
        give(reserve, found)
    calls = fake.count("free")
    with pytest.raises(um.OutOfMemory):
        reserve.obtain(7 * MIB, A)
    assert fake.count("free") == calls, "what cannot help is left alone"
    assert reserve.obtain(6 * MIB, A).nbytes == 6 * MIB
    assert reserve.arena_bytes == 7 * MIB and fake.count("free") == calls + 2
