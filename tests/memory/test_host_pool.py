"""A pool over the recording driver: streams that lag, blocks that die anywhere, every byte checked by the last user."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import umarray as um
from tests.fake_driver import FakeDriver
from umarray import drivers
from umarray.drivers.base import host_bytes
from umarray.memory import deferred, lingering
from umarray.memory.host_pool import HostPool

ARENA = 64 << 10


class PoolMachine(RuleBasedStateMachine):
    """Each block is filled on its stream when it is made, and checked by each stream that uses it, at its last use.

    Streams are held and opened at random: a block handed on without a fence is overwritten before its check runs.
    """

    @initialize()
    def start(self) -> None:
        self.before = drivers.current_driver()
        self.fake = FakeDriver(capacity=8 << 20)
        drivers.set_driver(self.fake)
        self.pool = HostPool(ARENA, limit=4 * ARENA, headroom=0)
        self.streams = [self.fake.create_stream(0) for _ in range(3)]
        self.gates: dict[int, Any] = {}
        self.live: dict[int, tuple[Any, int]] = {}
        self.count = 0
        self.wrong: list[str] = []

    def _check(self, address: int, nbytes: int, number: int, stream: int) -> None:
        def look() -> None:
            seen = host_bytes(address, nbytes, None)
            if not (seen == number).all():
                self.wrong.append(f"block {number} on stream {stream:#x} holds {set(seen.tolist())}")

        self.fake.launch(look, stream)

    @rule(stream=st.integers(0, 2), nbytes=st.integers(1, ARENA + 100))
    def make(self, stream: int, nbytes: int) -> None:
        handle = self.streams[stream]
        used = [(block.address, block.address + block.nbytes) for block, _ in self.live.values()]
        with self.fake.use_stream(handle, 0):
            try:
                block = self.pool.malloc(nbytes)
            except um.OutOfMemory as error:
                assert error.requested >= nbytes and error.limit == 4 * ARENA
                return
        for start, end in used:
            assert block.address + block.nbytes <= start or end <= block.address, "a live block was handed out again"
        self.count = self.count % 250 + 1
        while self.count in self.live:
            self.count = self.count % 250 + 1
        number, address = self.count, block.address
        self.fake.launch(lambda: host_bytes(address, nbytes, None).fill(number), handle)
        self.live[number] = (block, nbytes)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.live)))
        block, nbytes = self.live.pop(number)
        self._check(block.address, nbytes, number, block.owner.stream)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), stream=st.integers(0, 2))
    def use_elsewhere_and_drop(self, data: st.DataObject, stream: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.live)))
        block, nbytes = self.live.pop(number)
        other = self.streams[stream]
        self.fake.wait(other, self.fake.record(block.owner.stream, 0))
        self._check(block.address, nbytes, number, other)
        deferred.hold(block, (self.fake.record(other, 0),))

    @rule(stream=st.integers(0, 2))
    def hold_or_open(self, stream: int) -> None:
        if stream in self.gates:
            self.gates.pop(stream).open()
        else:
            self.gates[stream] = self.fake.hold(self.streams[stream])

    @rule(label=st.text(max_size=3))
    def epoch(self, label: str) -> None:
        self._open()
        with self.pool.epoch(label):
            pass

    @rule()
    def statistics(self) -> None:
        held = sum(block.nbytes for block, _ in self.live.values())
        statistics = self.pool.statistics()
        assert held <= statistics.current_bytes <= statistics.arena_bytes <= 4 * ARENA
        assert len(self.live) + statistics.deferred_uses > 0 or statistics.current_bytes == 0

    def _open(self) -> None:
        for gate in self.gates.values():
            gate.open()
        self.gates.clear()

    def teardown(self) -> None:
        if not hasattr(self, "fake"):
            return
        try:
            self._open()
            for number, (block, nbytes) in self.live.items():
                self._check(block.address, nbytes, number, block.owner.stream)
            block = None  # noqa: F841
            self.live.clear()
            assert not self.wrong, self.wrong
            assert not self.fake.faults, self.fake.faults
            assert deferred.drain() == 0
            self.pool.close()
            assert not self.fake.live, "the pool kept memory"
        finally:
            drivers.set_driver(self.before)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_another_stream_waits_on_the_device_and_the_host_does_not(fake: FakeDriver) -> None:
    pool = HostPool(ARENA)
    first, second = fake.create_stream(0), fake.create_stream(0)
    with fake.use_stream(first, 0):
        block = pool.malloc(ARENA)
    gate = fake.hold(first)
    order = []
    fake.launch(lambda: order.append("first"), first)
    del block
    with fake.use_stream(second, 0):
        again = pool.malloc(ARENA)
    fake.launch(lambda: order.append("second"), second)
    assert order == []
    gate.open()
    assert order == ["first", "second"]
    del again
    with fake.use_stream(second, 0):
        before = fake.count("wait")
        pool.malloc(512)
        assert fake.count("wait") == before, "the same stream needs no fence"
    pool.close()


def test_a_stream_that_is_gone_costs_a_device_synchronise(fake: FakeDriver) -> None:
    pool = HostPool(ARENA)
    first, second = fake.create_stream(0), fake.create_stream(0)
    with fake.use_stream(first, 0):
        pool.malloc(512)
    fake.destroy_stream(first, 0)
    with fake.use_stream(second, 0):
        pool.malloc(512)
    assert fake.count("synchronize") == 1
    pool.close()


def test_threads_with_per_thread_default_streams_are_told_apart(make_fake: Any) -> None:
    fake = make_fake(per_thread_default=True)
    pool = HostPool(ARENA)
    pool.malloc(512)
    assert fake.current_stream() == 2
    seen = []

    def other() -> None:
        pool.malloc(512)
        seen.append(fake.count("synchronize"))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(10)
    assert seen == [1], "the first thread's stream has the same handle, and cannot be named from here"
    pool.close()


def test_arrays_and_views_keep_their_memory(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        x = um.zeros(100, "i4")
        view = x[::-2]
        del x
        y = um.empty(100, "i4")
        y[...] = 7
        assert (view == 0).all()
        assert pool.statistics().current_bytes == 1024
        del view
        assert pool.statistics().current_bytes == 512


def test_eight_threads_never_share_a_byte(fake: FakeDriver) -> None:
    pool = HostPool(ARENA, limit=1 << 20, headroom=0)
    wrong: list[int] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        kept: list[Any] = []
        start.wait(10)
        for _ in range(300):
            block = pool.malloc(int(rng.integers(1, 4000)))
            bytes_ = host_bytes(block.address, block.nbytes, block)
            bytes_.fill(number)
            kept.append(bytes_)
            if len(kept) > 10:
                one = kept.pop(int(rng.integers(0, len(kept))))
                wrong.extend(set(one.tolist()) - {number})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    gc.collect()
    pool.close()
    assert lingering.sweep() == 0
    assert not fake.live


def test_a_block_freed_by_the_collector_inside_an_allocation(fake: FakeDriver) -> None:
    pool = HostPool(ARENA, limit=1 << 20, headroom=0)

    class Knot:
        """In a cycle with itself; its end frees a block and makes another."""

        def __init__(self) -> None:
            self.me, self.block = self, pool.malloc(512)

        def __del__(self) -> None:
            made.append(pool.malloc(512))

    made: list[Any] = []
    fake.on_call = lambda call: gc.collect() if call.name == "allocate" else None
    for _ in range(20):
        Knot()
        blocks = [pool.malloc(60 << 10)]
        blocks.append(pool.malloc(60 << 10))
        del blocks
    gc.collect()
    assert len(made) == 20
    addresses = sorted(block.address for block in made)
    assert all(second - first >= 512 for first, second in zip(addresses, addresses[1:], strict=False))
    fake.on_call = None
    made.clear()
    pool.close()
    assert lingering.sweep() == 0 and not fake.live


def test_an_allocation_from_a_finaliser_while_the_lock_is_held(fake: FakeDriver) -> None:
    from umarray.memory.reserve import _guard

    pool = HostPool(ARENA)
    first = pool.malloc(512)
    with _guard:
        inside = pool.malloc(512)  # the same thread enters its own lock again
    assert not first.address <= inside.address < first.address + 512
    assert fake.count("allocate") == 2
    del first, inside
    pool.close()
    assert not fake.live


def test_a_free_calls_no_driver_and_takes_no_lock(fake: FakeDriver) -> None:
    from umarray.memory.reserve import _guard

    pool = HostPool(ARENA)
    block = [pool.malloc(512)]
    calls = len(fake.calls)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with _guard:
            held.set()
            let_go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    block.clear()  # would hang here
    let_go.set()
    thread.join(10)
    assert len(fake.calls) == calls
    pool.close()


@pytest.mark.parametrize("nbytes", [2**63 - 1, 2**63, 2**64 - 512, 2**64 - 1])
def test_absurd_sizes_are_refused_and_change_nothing(fake: FakeDriver, nbytes: int) -> None:
    pool = HostPool(ARENA)
    pool.malloc(100)
    before = pool.statistics()
    with pytest.raises(um.OutOfMemory):
        pool.malloc(nbytes)
    after = pool.statistics()
    assert (before.arena_bytes, before.current_bytes) == (after.arena_bytes, after.current_bytes)
    with pytest.raises(ValueError, match="-1"):
        pool.malloc(-1)
    pool.close()


def test_empty_blocks_alias_nothing(fake: FakeDriver) -> None:
    pool = HostPool(ARENA)
    blocks = [pool.malloc(0) for _ in range(4)]
    assert len({block.address for block in blocks}) == 4
    del blocks
    pool.close()


def test_steady_state_makes_no_driver_allocation(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        allocations = []
        for _ in range(6):
            with pool.epoch():
                blocks = [pool.malloc(50 << 10) for _ in range(5)]
                del blocks
            allocations.append(fake.count("allocate"))
        assert allocations[1] - allocations[0] <= 1
        assert allocations[1:] == [allocations[1]] * 5
        assert pool.statistics().arenas == 1
        assert pool.statistics().driver_allocations == allocations[-1]
