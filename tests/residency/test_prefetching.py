"""How pages are asked to move: how many, on which stream, in which order with other work, from which thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.residency.arrays import PAGE, address, managed, prefetches
from umarray.places import HOST, Device

# Order


def test_pages_move_after_the_work_so_far_and_a_kernel_after_entry_finds_them(fake: FakeDriver) -> None:
    x = managed(fake)
    here, nbytes = address(x), x.nbytes
    fake.host_touch(here, nbytes)
    gate, seen = fake.hold(), list[Any]()
    fake.launch(lambda: seen.append(fake.where(here, nbytes)))
    faults = fake.page_faults
    with um.prefetch(x, back=HOST):
        fake.launch(lambda: seen.append(fake.where(here, nbytes)), touches=[(here, nbytes)])
    assert seen == []  # the host waited for nothing
    gate.open()
    assert seen == [{HOST}, {Device(0)}] and fake.page_faults == faults
    assert fake.where(here, nbytes) == {HOST}


def test_without_wait_nothing_waits_for_the_pages(fake: FakeDriver) -> None:
    x = managed(fake)
    seen = list[int]()
    with um.prefetch(x):  # makes our stream
        pass
    own = next(iter(fake.open_streams()))
    gate = fake.hold(own)
    with um.prefetch(x, to=HOST, wait=False):
        fake.launch(lambda: seen.append(1))
        assert seen == [1]
    with um.prefetch(x, to=HOST):
        fake.launch(lambda: seen.append(2))
        assert seen == [1]
    gate.open()
    assert seen == [1, 2]


@pytest.mark.parametrize("as_given", [int, lambda s: type("Cupy", (), {"ptr": s, "device_id": 0})()])
def test_a_given_stream_is_used_and_joined(fake: FakeDriver, as_given: Callable[[int], Any]) -> None:
    x, stream, seen = managed(fake), fake.create_stream(0), list[int]()
    gate = fake.hold(stream)
    with um.prefetch(x, stream=as_given(stream)):
        fake.launch(lambda: seen.append(1))
    assert {call.stream for call in fake.named("prefetch")} == {stream} and seen == []
    gate.open()
    assert seen == [1]


def test_the_current_stream_given_needs_no_event(fake: FakeDriver) -> None:
    x = managed(fake)
    um.move(x, stream=fake.current_stream())
    assert fake.count("record") == 0 and len(prefetches(fake)) == 1


def test_pages_of_another_device_join_its_current_stream_too(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    x, seen = managed(fake), list[int]()
    with um.prefetch(x, to=1):
        pass
    own = next(iter(fake.open_streams()))
    gate = fake.hold(own)
    with um.prefetch(x, to=1):
        fake.launch(lambda: seen.append(0), device=0)
        fake.launch(lambda: seen.append(1), device=1)
    assert seen == []
    gate.open()
    assert sorted(seen) == [0, 1]


def test_our_stream_is_made_once_a_device(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    x = managed(fake)
    for to in (0, 1, HOST, 0, 1):
        um.move(x, to=to)
    assert fake.count("create_stream") == 2


# A prefetch that keeps its caller


def test_a_blocking_prefetch_is_called_from_a_thread_of_ours(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(prefetch_blocks=True)
    x = managed(fake)
    with um.prefetch(x):
        assert fake.where(address(x), x.nbytes) == {Device(0)}
    assert {call.thread for call in fake.named("prefetch")}.isdisjoint({threading.get_ident()})


def test_a_blocking_prefetch_without_wait_keeps_nobody(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(prefetch_blocks=True)
    x = managed(fake)
    gate, arrived = fake.hold(), threading.Event()
    fake.on_call = lambda call: arrived.set() if call.name == "prefetch" else None
    with um.prefetch(x, wait=False) as scope:
        assert arrived.wait(10)
        assert fake.where(address(x), x.nbytes) == {HOST}
        gate.open()
    with um.prefetch(x, to=HOST):  # the same thread: it comes after the first
        pass
    assert scope.tally.asked == 1


def test_a_failure_that_nobody_waits_for_is_counted_and_logged(
    make_fake: Callable[..., FakeDriver], caplog: pytest.LogCaptureFixture
) -> None:
    fake = make_fake(prefetch_blocks=True)
    x = managed(fake)
    fake.fail("prefetch", 700)
    with um.prefetch(x, wait=False) as scope:
        um.move(x)
    assert scope.tally.failed == 1 and "700" in caplog.text and "1 failed" in str(scope)


def test_a_prefetch_larger_than_the_room_is_clipped_and_told(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(capacity=1 << 20, managed_capacity=1 << 24)
    fake.memory_info = lambda place: type("Info", (), {"free": 10 * PAGE + 5, "total": 1 << 20})()  # type: ignore[method-assign]
    x = managed(fake, 512)
    with um.prefetch(x) as scope:
        assert prefetches(fake) == [(address(x), 10 * PAGE, Device(0))]
    assert scope.tally.bytes_clipped == 502 * PAGE and "not prefetched for want of room" in str(scope)
    um.move(x[: 20 * 1024])  # home
    assert um.move(x[20 * 1024 :], to=0).bytes_clipped == 482 * PAGE
    assert um.move(x[: 30 * 1024], to=0).bytes_clipped == 10 * PAGE  # 10 free, 10 asked to be there: those may go
