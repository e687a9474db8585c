"""Owners: which streams are surely one, and how one is ordered after another."""

from __future__ import annotations

import threading

from tests.fake_driver import FakeDriver
from umarray import events
from umarray.memory.arena import Arena
from umarray.memory.owners import Owner, order_after, owner_of


def test_one_stream_is_in_order_with_itself_whatever_the_lane(fake: FakeDriver) -> None:
    first, second = owner_of(0, 5, lane="main"), owner_of(0, 5, lane="persistent")
    assert first.same_stream(second) and first != second
    order_after(fake, first, second)
    assert not fake.named("record", "wait", "synchronize")


def test_others_are_waited_for_on_the_device(fake: FakeDriver) -> None:
    first, second = fake.create_stream(0), fake.create_stream(0)
    order_after(fake, owner_of(0, first), owner_of(0, second))
    assert [(call.name, call.stream) for call in fake.named("record", "wait")] == [("record", first), ("wait", second)]
    assert not fake.named("synchronize")


def test_a_stream_that_may_be_gone_is_never_named(fake: FakeDriver) -> None:
    stream = fake.create_stream(0)
    external = owner_of(0, stream, lasting=False)
    for after in (owner_of(0, fake.create_stream(0)), owner_of(0, stream), external):
        assert not external.same_stream(after)
        order_after(fake, external, after)
    assert fake.count("synchronize") == 3 and not fake.named("record", "wait")


def test_waiting_for_a_device_is_told(fake: FakeDriver) -> None:
    told: list[events.Record] = []
    stop = events.listen(told.append)
    try:
        order_after(fake, owner_of(0, 5, lasting=False), owner_of(0, 0))
    finally:
        stop()
    (waited,) = told
    assert isinstance(waited, events.Waited) and waited.device == 0 and "cannot be named" in waited.reason


def test_devices_and_threads_are_told_apart() -> None:
    seen: list[Owner] = []
    thread = threading.Thread(target=lambda: seen.append(owner_of(0, 2)))
    thread.start()
    thread.join(10)
    mine = owner_of(0, 2)
    assert mine == owner_of(0, 2) and mine.same_stream(owner_of(0, 2))
    assert mine != seen[0] and not mine.same_stream(seen[0])
    assert owner_of(0, 5) != owner_of(1, 5) and not owner_of(0, 5).same_stream(owner_of(1, 5))


def test_a_stream_that_may_be_destroyed_is_another_owner_than_a_lasting_one_of_its_handle(fake: FakeDriver) -> None:
    """A destroyed stream's handle came back: a fence that kept only one of the two would not wait for both."""
    lasting, gone = owner_of(0, 16), owner_of(0, 16, lasting=False)
    assert len({lasting, gone}) == 2
    arena = Arena(2048)
    for offset, owner in ((arena.take(1024).offset, gone), (arena.take(1024).offset, lasting)):
        arena.give(offset, owner)
    assert arena.take(2048).fence == {lasting, gone}
    assert not lasting.same_stream(gone) and not gone.same_stream(lasting) and not gone.same_stream(gone)
    order_after(fake, gone, lasting)
    assert fake.count("synchronize") == 1 and fake.count("record") == 0
