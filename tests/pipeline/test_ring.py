"""Slots: legal moves, lendings, and what outlives the ring."""

from __future__ import annotations

import gc
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fake_driver import FakeDriver
from umarray.drivers.base import Kind, host_bytes
from umarray.errors import OutOfMemory
from umarray.pipeline.ring import Ring
from umarray.pipeline.slots import Part, Role, State


def make(driver: Any, count: int = 2) -> Ring:
    ring = Ring(driver, Kind.MANAGED, 100, count, 0, SimpleQueue())
    ring.restart()
    return ring


def lend(ring: Ring, slot: Any, batch: int = 0) -> Any:
    """An array that holds a lease of the slot."""
    slot.hold([Part(batch, 1)])
    return host_bytes(slot.address, slot.nbytes, ring.lend(slot, batch))


def test_slots_have_pages_of_their_own() -> None:
    driver = FakeDriver()
    ring = make(driver, 3)
    assert all(slot.address % driver.page_size == 0 == slot.nbytes % driver.page_size for slot in ring.slots)
    ring.close()
    assert driver.live == {}


def test_a_ring_that_does_not_fit_keeps_nothing() -> None:
    driver = FakeDriver(capacity=3 * 4096)
    with pytest.raises(OutOfMemory):
        Ring(driver, Kind.MANAGED, 4096, 4, 0, SimpleQueue())
    assert driver.live == {}


def test_a_none_wakes_everyone_who_waits() -> None:
    ring, taken = make(FakeDriver()), list[Any]()
    for _ in ring.slots:
        ring.take()
    threads = [threading.Thread(target=lambda: taken.append(ring.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    ring.free.put(None)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert taken == [None] * 3


def test_a_slot_comes_back_when_the_last_view_dies() -> None:
    ring = make(FakeDriver())
    slot = ring.slots[0]
    slot.state = State.READY
    view = lend(ring, slot, 7)[10:20].reshape(2, 5)[1:]
    assert slot.held() and ring._returned.empty() and slot.batch == 7
    del view
    assert ring._returned.get_nowait().slot is slot and not slot.held()


def test_a_slot_comes_back_from_the_garbage_collector() -> None:
    ring = make(FakeDriver())
    slot = ring.slots[0]
    slot.state = State.READY
    cycle: list[Any] = [lend(ring, slot)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert ring._returned.get_nowait().slot is slot


@pytest.mark.parametrize("as_garbage", [False, True])
def test_memory_that_is_held_is_freed_when_the_holder_dies(as_garbage: bool) -> None:
    driver = FakeDriver()
    ring = make(driver)
    slot = ring.slots[0]
    slot.state = State.READY
    kept: list[Any] = [lend(ring, slot), ring]
    if as_garbage:
        kept.append(kept)
    kept[0][:] = 5
    ring.close()
    assert len(driver.live) == 1 and (kept[0] == 5).all()
    del ring, slot, kept
    gc.collect()
    end = time.monotonic() + 10
    while driver.live and time.monotonic() < end:
        time.sleep(0.002)
    assert driver.live == {} and driver.faults == []


def test_freeing_late_waits_for_the_device() -> None:
    driver = FakeDriver()
    ring = make(driver)
    slot = ring.slots[0]
    slot.state = State.READY
    view = lend(ring, slot)
    ring.close()
    gate = driver.hold(0)
    driver.fill(slot.address, 1, slot.nbytes, 0)
    started = threading.Event()
    driver.on_call = lambda call: started.set() if call.name == "synchronize" else None
    del view
    assert started.wait(10) and len(driver.live) == 1
    gate.open()
    end = time.monotonic() + 10
    while driver.live and time.monotonic() < end:
        time.sleep(0.002)
    assert driver.live == {} and driver.faults == []


def test_a_group_s_slot_comes_back_with_its_last_batch() -> None:
    ring = make(FakeDriver())
    slot = ring.slots[0]
    slot.state = State.READY
    slot.hold([Part(0, 1), Part(1, 1)])
    first = ring.lend(slot, 0)
    del first
    assert not ring.take_back(ring._returned.get_nowait())  # the other one was not even lent
    second = ring.lend(slot, 1)
    assert ring.lent == {slot} and slot.held()
    del second
    assert ring.take_back(ring._returned.get_nowait()) and ring.lent == set()


def test_a_lending_that_is_withdrawn_does_not_come_back() -> None:
    ring = make(FakeDriver())
    slot = ring.slots[0]
    slot.state = State.READY
    slot.hold([Part(0, 1)])
    lease = ring.lend(slot, 0)
    ring.withdraw(slot, lease)
    assert slot.unread == 1 and ring.forget_unread() == [slot] and ring.lent == set()
    del lease
    assert ring._returned.empty() or not ring.take_back(ring._returned.get_nowait())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["take", "lend", "drop", "put", "restart"]), max_size=40))
def test_a_slot_is_in_one_pair_of_hands(steps: list[str]) -> None:
    """Against a model: free slots, slots being written, slots lent with a live array, slots that came back."""
    driver = FakeDriver()
    ring = make(driver, 3)
    written: list[Any] = []
    lent: dict[Any, Any] = {}
    back: list[Any] = []
    for step in steps:
        if step == "take" and not ring.free.empty():
            slot = ring.take()
            assert (
                slot is not None and slot not in written and slot not in lent and slot not in [one.slot for one in back]
            )
            slot.go(State.FILLING, Role.PREP)
            slot.go(State.FILLED, Role.PREP)
            slot.go(State.READY, Role.PREP)
            written.append(slot)
        elif step == "lend" and written:
            slot = written.pop(0)
            lent[slot] = lend(ring, slot)
        elif step == "drop" and lent:
            slot = next(iter(lent))
            del lent[slot]
            back.append(ring._returned.get_nowait())
            assert back[-1].slot is slot
        elif step == "put" and back:
            lending = back.pop()
            assert ring.take_back(lending)
            ring.put(lending.slot, Role.CALLER, None)
        elif step == "restart":
            ring.restart()
            written.clear()
        assert ring.free.qsize() + len(written) + len(lent) + len(back) == 3
        assert ring.lent == {*lent, *(one.slot for one in back)}
    lent.clear()
    ring.close()
    assert driver.live == {}
