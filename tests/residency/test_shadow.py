"""The pinned stand-in of plain device memory: what is copied, and what becomes of its blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import Call, FakeDriver
from tests.residency.arrays import address, managed
from umarray import events
from umarray.drivers.base import Kind, Mode
from umarray.places import HOST, Device
from umarray.residency.shadow import PinnedMemory


def test_a_broadcast_is_copied_once_and_not_as_often_as_it_repeats(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x = np.broadcast_to(managed(fake, kind=Kind.DEVICE)[:1024], (1 << 20, 1024))
    with um.host_view(x) as h:
        assert h.shape == x.shape
    assert [call.args["nbytes"] for call in fake.named("copy")] == [4096]


def test_w_brings_nothing_and_r_takes_nothing_back(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x = managed(fake, kind=Kind.DEVICE)
    for mode, copies in (("r", 1), ("w", 1), ("r+", 2)):
        fake.calls.clear()
        with um.host_view(x, mode) as h:
            if mode != "r":
                h[...] = 1
        assert fake.count("copy") == copies
    fake.calls.clear()
    with um.host_view(x[::2]):
        pass
    assert [call.args["nbytes"] for call in fake.named("copy")] == [x.nbytes // 2]  # gathered first


def test_the_view_may_outlive_the_block_and_its_memory_is_used_again(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x = managed(fake, kind=Kind.DEVICE)
    x[...] = 3
    with um.host_view(x) as h:
        kept = h[2:]
    del h
    x[...] = 4
    with um.host_view(x) as h:
        assert (kept == 3).all() and (h == 4).all()
    first = h.ctypes.data
    del h, kept
    with um.host_view(x[: len(x) - 5]) as h:
        assert h.ctypes.data in {first, *(block.address for block in fake.live.values())}
    del h
    for _ in range(5):
        with um.host_view(x):
            pass
    assert sum(block.kind is Kind.PINNED for block in fake.live.values()) <= 2
    assert sum(block.kind is Kind.DEVICE for block in fake.live.values()) == 1


@pytest.mark.parametrize("view", [slice(None), slice(None, None, 2)])
@pytest.mark.parametrize("leaving", [False, True])
def test_copies_are_waited_for_before_anybody_goes_on(
    make_fake: Callable[..., FakeDriver], view: slice, leaving: bool
) -> None:
    """Our stream is held; it goes on only when the view waits for it. What was freed too early would be a fault."""
    fake = make_fake(Mode.EXPLICIT)
    x = managed(fake, kind=Kind.DEVICE)[view]
    with um.host_view(x):  # makes our stream
        pass
    own = next(iter(fake.open_streams()))
    scope, waited = um.host_view(x, "r+", streams=[]), list[int]()
    h = scope.__enter__() if leaving else None
    gate = fake.hold(own)

    def let_go(call: Call) -> None:
        if call.name == "synchronize":
            waited.append(1)
            gate.open()

    fake.on_call = let_go
    if h is not None:
        scope.__exit__(None, None, None)
    else:
        scope.__enter__()
        scope.__exit__(None, None, None)
    assert waited
    fake.on_call = None
    gate.open()


def test_blocks_are_used_again_where_they_fit_and_given_back_where_not(fake: FakeDriver) -> None:
    pinned = PinnedMemory(fake)
    block = pinned.take(1000)
    first = block.address
    del block
    assert fake.count("free") == 0  # a finaliser calls no driver
    block = pinned.take(600)
    assert block.address == first and fake.count("allocate") == 1
    del block
    block = pinned.take(400)
    assert fake.count("allocate") == 2 and fake.count("free") == 0
    del block
    pinned.KEPT = 500  # the smaller one, which was used last, stays
    assert pinned.take(401).nbytes == 401 and len(fake.live) == 2 and fake.count("free") == 1


def test_blocks_that_are_used_together_are_used_together_again(fake: FakeDriver) -> None:
    pinned = PinnedMemory(fake)
    for _ in range(5):
        blocks = [pinned.take(nbytes) for nbytes in (1000, 1000, 300)]
        assert len({block.address for block in blocks}) == 3
        del blocks
    assert (fake.count("allocate"), fake.count("free")) == (3, 0)


def test_blocks_from_many_threads_are_never_shared(fake: FakeDriver) -> None:
    pinned, begin, lock, used, clashes = PinnedMemory(fake), threading.Barrier(4), threading.Lock(), set[int](), []

    def work() -> None:
        begin.wait(10)
        for _ in range(100):
            block = pinned.take(100)
            with lock:
                if block.address in used:
                    clashes.append(block.address)
                used.add(block.address)
            with lock:
                used.remove(block.address)
            del block

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not clashes and not any(thread.is_alive() for thread in threads)


def test_copies_are_told(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(Mode.EXPLICIT)
    x, told = managed(fake, kind=Kind.DEVICE), list[Any]()
    stop = events.listen(told.append)
    try:
        with um.host_view(x, "r+"):
            pass
    finally:
        stop()
    copies = [one for one in told if isinstance(one, events.Copied)]
    scope, there = told[0].serial, address(x)
    assert copies == [
        events.Copied(x.nbytes, Device(0), HOST, there, scope),
        events.Copied(x.nbytes, HOST, Device(0), there, scope),
    ]
