"""The recording driver is worth trusting: its lag, poison, pages and records."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.fake_driver import POISON, FakeDriver
from umarray.drivers.base import Advice, Attribute, Driver, Kind, Mode, Outcome, host_bytes
from umarray.errors import DriverError, OutOfMemory
from umarray.places import HOST, Device


def test_it_is_a_driver(fake: FakeDriver) -> None:
    assert isinstance(fake, Driver)


def test_work_on_a_stream_that_nobody_holds_is_done_at_once(fake: FakeDriver) -> None:
    block = fake.allocate(4096, Kind.MANAGED)
    fake.fill(block.address, 7, 4096, fake.create_stream(0))
    assert (host_bytes(block.address, 4096, None) == 7).all()


def test_held_work_waits_for_its_gate_and_keeps_its_order(fake: FakeDriver) -> None:
    stream, order = fake.create_stream(0), list[int]()
    gate = fake.hold(stream)
    for index in range(3):
        fake.launch(lambda index=index: order.append(index), stream)
    event = fake.record(stream, 0)
    assert order == [] and not event.done()
    gate.open()
    assert order == [0, 1, 2] and event.done()


def test_a_stream_waits_for_an_event_of_another(fake: FakeDriver) -> None:
    first, second, order = fake.create_stream(0), fake.create_stream(0), list[str]()
    gate = fake.hold(first)
    fake.launch(lambda: order.append("first"), first)
    fake.wait(second, fake.record(first, 0))
    fake.launch(lambda: order.append("second"), second)
    fake.launch(lambda: order.append("third"), fake.create_stream(0))
    assert order == ["third"]
    gate.open()
    assert order == ["third", "first", "second"]


@pytest.mark.parametrize("how", ["event", "stream", "device"])
def test_a_host_wait_ends_when_another_thread_opens_the_gate(fake: FakeDriver, how: str) -> None:
    stream, done = fake.create_stream(0), list[int]()
    gate = fake.hold(stream)
    fake.launch(lambda: done.append(1), stream)
    event = fake.record(stream, 0)
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        {"event": event.wait, "stream": lambda: fake.synchronize(stream), "device": fake.synchronize}[how]()
        done.append(2)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(10) and done == []
    gate.open()
    thread.join(10)
    assert not thread.is_alive() and done == [1, 2]


def test_freed_memory_is_poisoned_and_work_that_touches_it_is_a_fault() -> None:
    fake = FakeDriver()
    block = fake.allocate(4096, Kind.DEVICE)
    view = fake.as_array(block.address, 4096, None)
    gate = fake.hold(0)
    fake.fill(block.address, 1, 4096, 0)
    fake.free(block)
    gate.open()
    assert (view == POISON).all() and len(fake.faults) == 1


def test_capacity_is_a_device_s_and_a_refusal_changes_nothing() -> None:
    fake = FakeDriver(devices=2, capacity=1 << 20)
    fake.allocate(1 << 20, Kind.DEVICE, 0)
    with pytest.raises(OutOfMemory):
        fake.allocate(1, Kind.MANAGED, 0)
    assert fake.memory_info(Device(0)).free == 0
    assert fake.memory_info(Device(1)).free == 1 << 20 and len(fake.live) == 1


def test_a_destroyed_stream_s_handle_is_recycled_and_its_work_still_runs(fake: FakeDriver) -> None:
    stream, order = fake.create_stream(0), list[int]()
    gate = fake.hold(stream)
    fake.launch(lambda: order.append(1), stream)
    fake.destroy_stream(stream, 0)
    assert fake.create_stream(0) == stream
    fake.launch(lambda: order.append(2), stream)
    assert order == [2]
    gate.open()
    assert order == [2, 1]


def test_a_thread_s_own_default_stream_has_one_handle_and_two_queues(make_fake: Any) -> None:
    fake = make_fake(per_thread_default=True)
    gate, done = fake.hold(fake.current_stream()), list[str]()
    fake.launch(lambda: done.append("here"))
    thread = threading.Thread(target=lambda: fake.launch(lambda: done.append("there"), fake.current_stream()))
    thread.start()
    thread.join(10)
    assert done == ["there"]
    gate.open()


def test_prefetch_moves_whole_pages_in_stream_order_and_is_read_back(fake: FakeDriver) -> None:
    block, stream = fake.allocate(4 * 4096, Kind.MANAGED), fake.create_stream(0)
    gate = fake.hold(stream)
    assert fake.prefetch(block.address + 4097, 10, Device(0), stream) is Outcome.ASKED
    assert fake.where(block.address + 4096) == {False}
    gate.open()
    assert fake.where(block.address + 4096, 4096) == {Device(0)} and fake.where(block.address, 4096) == {False}
    assert fake.read_range(block.address + 4096, 4096, Attribute.LAST_PREFETCH_LOCATION) == Device(0)
    assert fake.read_range(block.address, 8192, Attribute.LAST_PREFETCH_LOCATION) is False
    fake.launch(stream=stream, touches=[(block.address + 4096, 4096)])
    assert fake.page_faults == 0
    fake.host_touch(block.address, 8192)
    assert fake.page_faults == 2


def test_advice_is_kept_per_page(fake: FakeDriver) -> None:
    block = fake.allocate(2 * 4096, Kind.MANAGED)
    for advice, place in ((Advice.READ_MOSTLY, HOST), (Advice.PREFERRED_LOCATION, HOST), (Advice.ACCESSED_BY, HOST)):
        assert fake.advise(block.address, 4096, advice, place, True) is Outcome.ASKED
    assert fake.read_range(block.address, 4096, Attribute.READ_MOSTLY) is True
    assert fake.read_range(block.address, 8192, Attribute.READ_MOSTLY) is False
    assert fake.read_range(block.address, 4096, Attribute.PREFERRED_LOCATION) is HOST
    assert fake.read_range(block.address, 4096, Attribute.ACCESSED_BY) == (HOST,)
    fake.advise(block.address, 4096, Advice.PREFERRED_LOCATION, HOST, False)
    assert fake.read_range(block.address, 4096, Attribute.PREFERRED_LOCATION) is False


@pytest.mark.parametrize(
    "settings", [{"missing": ["prefetch", "advise", "read_range"]}, {"unified": True, "readable_ranges": False}]
)
def test_what_is_missing_is_a_no_op_that_says_so(make_fake: Any, settings: dict[str, Any]) -> None:
    fake = make_fake(**settings)
    block = fake.allocate(4096, Kind.MANAGED)
    assert fake.prefetch(block.address, 4096, Device(0), 0) is Outcome.UNSUPPORTED
    assert fake.read_range(block.address, 4096, Attribute.READ_MOSTLY) is None
    plain = fake.allocate(4096, Kind.DEVICE)
    assert fake.prefetch(plain.address, 4096, Device(0), 0) is Outcome.UNSUPPORTED


def test_calls_are_recorded_and_failures_injected(fake: FakeDriver) -> None:
    stream = fake.create_stream(0)
    fake.fail("copy", 700)
    source = np.arange(4, dtype=np.uint8)
    target = np.zeros_like(source)
    with pytest.raises(DriverError, match="700"):
        fake.copy(target.ctypes.data, source.ctypes.data, 4, stream)
    assert not target.any()
    fake.copy(target.ctypes.data, source.ctypes.data, 4, stream)
    assert (target == source).all() and fake.count("copy") == 2
    assert (fake.named("copy")[0].stream, fake.named("copy")[0].device) == (stream, 0)


def test_a_kernel_that_fails_comes_out_at_the_next_wait(fake: FakeDriver) -> None:
    fake.launch(lambda: 1 // 0, 0)
    with pytest.raises(ZeroDivisionError):
        fake.synchronize(0)


def test_current_stream_follows_use_stream_and_devices(make_fake: Any) -> None:
    fake = make_fake(Mode.EXPLICIT, devices=2)
    stream = fake.create_stream(1)
    with fake.use_stream(stream, 1):
        assert (fake.current_device(), fake.current_stream(), fake.current_stream(0)) == (1, stream, 0)
    assert (fake.current_device(), fake.current_stream()) == (0, 0)
    with pytest.raises(DriverError), fake.use_stream(stream, 0):
        pass
