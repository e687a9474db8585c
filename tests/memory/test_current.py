"""The pool of a thread and the pool of the process; uses on other streams."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.drivers.base import host_bytes
from umarray.memory import active, deferred
from umarray.memory.current import default_pool, installed

ARENA = "64KiB"


@pytest.fixture(autouse=True)
def _nothing_installed() -> Any:
    yield
    um.uninstall()


def test_installing_again_with_equal_arguments_gives_the_same(fake: FakeDriver) -> None:
    pool = um.install(ARENA, track=True)
    assert um.install(ARENA, track=True) is pool is installed()
    with pytest.raises(RuntimeError, match="uninstall"):
        um.install("1MiB")
    um.zeros(1)
    assert pool.statistics().misses == 1
    um.uninstall()
    assert pool.closed and installed() is None
    um.uninstall()
    assert um.install(ARENA, track=True) is not pool


def test_a_threads_pool_goes_before_the_processs(fake: FakeDriver) -> None:
    everywhere = um.install(ARENA)
    with um.pool(ARENA) as mine:
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(active.current()))
        thread.start()
        thread.join(10)
        assert active.current() is mine and seen == [everywhere]
    assert active.current() is everywhere


def test_what_was_before_is_back_after_an_exception(fake: FakeDriver) -> None:
    with pytest.raises(KeyError), um.pool(ARENA):
        raise KeyError
    assert active.current() is None


def test_a_failed_install_installs_nothing(fake: FakeDriver) -> None:
    with pytest.raises(ValueError, match="'much'"):
        um.install("much")
    with pytest.raises(TypeError):
        um.install(nonsense=1)
    assert installed() is None and active.current() is None


def test_a_block_in_use_on_another_stream_is_not_handed_out(fake: FakeDriver) -> None:
    mine, other = fake.create_stream(0), fake.create_stream(0)
    with um.pool(ARENA), fake.use_stream(mine, 0):
        x = um.empty(1000, "u1")
        x[...] = 7
        address = x.ctypes.data
        gate = fake.hold(other)
        seen: list[set[int]] = []
        fake.launch(lambda: seen.append(set(host_bytes(address, 1000, None).tolist())), other)
        um.record_use(x[10:20], other)
        del x
        y = um.empty(1000, "u1")
        y[...] = 9
        assert y.ctypes.data != address
        assert deferred.held() == 1
        gate.open()
        assert seen == [{7}]
        assert deferred.drain() == 0
        z = um.empty(1000, "u1")
        assert z.ctypes.data == address
        del y, z


def test_deferred_blocks_are_drained_by_statistics_epochs_and_record_use(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:

        def defer() -> None:
            gate = fake.hold(0)
            um.record_use(um.zeros(1), 0)
            gate.open()
            assert deferred.held() == 1

        defer()
        assert pool.statistics().deferred_uses == 0
        defer()
        with pool.epoch():
            pass
        assert deferred.held() == 0
        defer()
        um.record_use(um.zeros(1))
        assert deferred.held() == 0


def test_a_use_is_recorded_on_the_device_of_its_stream(make_fake: Any) -> None:
    fake = make_fake(devices=2)
    stream = fake.create_stream(1)
    with um.pool(ARENA):
        x = um.zeros(1)
        um.record_use(x, SimpleNamespace(ptr=stream, device_id=1), SimpleNamespace(cuda_stream=stream, device_index=1))
        assert [(call.stream, call.device) for call in fake.named("record")] == [(stream, 1), (stream, 1)]
        um.record_use(x, SimpleNamespace(ptr=0, device_id=-1), 0)
        assert [(call.stream, call.device) for call in fake.named("record")[2:]] == [(0, 0), (0, 0)]
        del x


@pytest.mark.parametrize("x", [3, [1, 2], "text", None])
def test_record_use_takes_arrays(fake: FakeDriver, x: Any) -> None:
    with pytest.raises(TypeError):
        um.record_use(x, 0)
    assert deferred.held() == 0


def test_record_use_names_a_bad_stream_and_holds_nothing(fake: FakeDriver) -> None:
    for stream, error in (("s", TypeError), (-1, ValueError), (True, TypeError), (1.5, TypeError)):
        with pytest.raises(error, match=repr(stream)):
            um.record_use(np.zeros(1), 0, stream)
    assert deferred.held() == 0


@pytest.mark.parametrize("mode", ["managed", "explicit", "host"])
def test_the_pool_fits_the_mode(make_fake: Any, mode: str) -> None:
    make_fake(mode)
    with um.pool(ARENA) as pool:
        um.zeros(1)
        assert pool.statistics().kind == {"managed": "managed", "explicit": "device", "host": "host"}[mode]
    assert isinstance(um.ManagedMemoryPool(ARENA), um.ManagedMemoryPool)


def test_without_any_pool_arrays_come_from_a_default_one(fake: FakeDriver) -> None:
    x = um.zeros(100)
    assert default_pool().statistics().current_bytes == 1024
    assert fake.find(x.ctypes.data) is not None
    with um.pool(ARENA) as pool:
        y = um.zeros(100)
        assert pool.statistics().current_bytes == 1024
    del x, y
    assert default_pool().statistics().current_bytes == 0
