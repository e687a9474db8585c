"""CuPy's own pool over our arenas: the real ROCm wheel on the emulated device; run by tests/test_under_emulation.py."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
import pytest

import umarray as um
from tests.emulated.gates import Gate
from umarray import hipemu
from umarray.drivers import get_driver
from umarray.drivers.base import Mode
from umarray.drivers.gpu_calls import stream_class
from umarray.memory import active, cupy_pool, cupy_roots, deferred, lingering
from umarray.memory.cupy_pool import DeviceMemoryPool
from umarray.memory.cupy_roots import PoolOutOfMemory

MIB = 1 << 20
ARENA = 16 * MIB


@pytest.fixture
def pool() -> Iterator[Any]:
    with um.pool(ARENA) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    cupy.cuda.Device().synchronize()
    gc.collect()
    deferred.drain()
    assert deferred.held() == 0
    assert lingering.sweep() == 0, "a pool is still kept"


def streams(count: int) -> list[Any]:
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


def driver_allocations() -> int:
    return hipemu.calls("hipMallocManaged", "hipMalloc")


# CuPy's face


def test_it_is_a_cupy_pool_whose_hot_path_is_cupys(pool: Any) -> None:
    assert isinstance(pool, cupy.cuda.MemoryPool)
    assert type(pool).malloc is cupy.cuda.MemoryPool.malloc
    assert cupy.cuda.get_allocator().__self__ is pool


def test_its_counts_mean_what_they_mean_on_any_pool(pool: Any) -> None:
    assert (pool.used_bytes(), pool.free_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (0, 0, 0, 0)
    x, y = cupy.empty(1000, "u1"), cupy.empty(MIB // 2, "u1")
    assert pool.used_bytes() == 1024 + MIB // 2
    assert pool.total_bytes() == pool.used_bytes() + pool.free_bytes()
    assert pool.n_free_blocks() >= 1
    del x, y
    assert pool.used_bytes() == 0 and pool.total_bytes() == pool.free_bytes() > 0
    pool.free_all_blocks()
    assert (pool.used_bytes(), pool.free_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (0, 0, 0, 0)
    assert pool.statistics().arena_bytes == 0
    with pytest.warns(DeprecationWarning):
        pool.free_all_free()


def test_free_all_blocks_of_one_stream_leaves_the_others(pool: Any) -> None:
    first, second = streams(2)
    for stream in (first, second):
        with stream:
            cupy.empty(1000, "u1")
    before = pool.total_bytes()
    pool.free_all_blocks(stream=first)
    assert 0 < pool.total_bytes() < before


def test_a_limit_holds_on_a_primed_pool_and_on_all_lanes(pool: Any) -> None:
    cupy.empty(1000, "u1")
    pool.set_limit(size=4 * MIB)
    assert pool.get_limit() == 4 * MIB
    kept = []
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        for _ in range(20):
            kept.append(cupy.empty(MIB // 2, "u1"))
    assert 3 * MIB <= pool.used_bytes() <= 4 * MIB
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError), pool.persistent():
        cupy.empty(3 * MIB, "u1")
    pool.set_limit(size=0)
    kept.append(cupy.empty(5 * MIB, "u1"))
    del kept


def test_a_small_limit_serves_no_more_than_itself() -> None:
    with um.pool(64 * MIB) as pool:
        pool.set_limit(size=MIB)
        x = cupy.empty(MIB // 4, "u1")
        assert pool.total_bytes() <= MIB
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            cupy.empty(MIB, "u1")
        del x


def test_a_third_and_a_third_and_then_two_thirds_of_a_limit(pool: Any) -> None:
    pool.set_limit(size=10 * MIB)
    x, y = cupy.empty(3 * MIB, "u1"), cupy.empty(3 * MIB, "u1")
    del y
    z = cupy.empty(6 * MIB, "u1")
    assert pool.used_bytes() == 9 * MIB
    del x, z


def test_hooks_are_told_of_blocks_and_not_of_roots(pool: Any) -> None:
    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "test"

        def __init__(self) -> None:
            self.seen: list[Any] = []

        def malloc_postprocess(self, **told: Any) -> None:
            self.seen.append(("malloc", told["size"], told["mem_size"]))

        def free_postprocess(self, **told: Any) -> None:
            self.seen.append(("free", told["mem_size"]))

        def alloc_postprocess(self, **told: Any) -> None:
            self.seen.append(("alloc", told["mem_size"]))

    with Hook() as hook:
        x = cupy.empty(1000, "u1")
        y = cupy.empty(100, "u1")
        del x, y
    assert hook.seen == [
        ("alloc", 1024),
        ("malloc", 1000, 1024),
        ("malloc", 100, 512),
        ("free", 1024),
        ("free", 512),
    ]


def test_per_device(pool: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    x = cupy.empty(1000, "u1")
    with cupy.cuda.Device(1):
        assert pool.used_bytes() == 0
        pool.set_limit(size=MIB)
        y = cupy.empty(5000, "u1")
        assert pool.used_bytes() == 5120 and y.device.id == 1
    assert pool.used_bytes() == 1024 and pool.get_limit() == 0
    assert pool.statistics().current_bytes == 6144
    del x, y


def test_zero_bytes(pool: Any) -> None:
    x = cupy.empty((0, 3))
    assert x.size == 0 and pool.used_bytes() == 0
    assert um.zeros((0, 2)).shape == (0, 2)


# Out of memory


def test_out_of_memory_is_cupys_error_and_ours_and_changes_nothing() -> None:
    with um.pool(ARENA, limit=ARENA, headroom=0) as pool:
        x = cupy.empty(ARENA // 2, "u1")
        used, total = pool.used_bytes(), pool.statistics().arena_bytes
        with pytest.raises(um.OutOfMemory) as caught:
            cupy.empty(ARENA, "u1")
        error = caught.value
        assert isinstance(error, cupy.cuda.memory.OutOfMemoryError) and isinstance(error, MemoryError)
        assert (error.requested, error.limit) == (ARENA, ARENA)
        assert (pool.used_bytes(), pool.statistics().arena_bytes) == (used, total)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is PoolOutOfMemory and str(again) == str(error) and again.used == error.used
        del x
        y = cupy.empty(ARENA, "u1")  # what was free in pieces has come back
        del y


def test_garbage_and_deferred_uses_are_let_go_before_out_of_memory() -> None:
    with um.pool(ARENA, limit=ARENA, headroom=0):
        knot: list[Any] = [cupy.empty(ARENA // 2 + MIB, "u1")]
        knot.append(knot)
        del knot
        x = cupy.empty(ARENA // 2 + MIB, "u1")
        um.record_use(x, 0)
        del x
        x = cupy.empty(ARENA // 2 + MIB, "u1")
        del x


@pytest.mark.parametrize("nbytes", [2**62, 2**63 - 1, 2**63, 2**64 - 1024])
def test_absurd_sizes(pool: Any, nbytes: int) -> None:
    with pytest.raises(um.OutOfMemory) as caught:
        pool.malloc(nbytes)
    assert caught.value.requested >= nbytes
    assert pool.used_bytes() == 0 and pool.total_bytes() == 0


def test_arenas_that_are_whole_but_too_small_make_room_for_a_large_one() -> None:
    with um.pool(4 * MIB, limit=28 * MIB, headroom=0) as pool:
        kept = [cupy.empty(size * MIB, "u1") for size in (4, 8, 16)]
        kept.clear()
        assert pool.statistics().arenas == 3
        x = cupy.empty(27 * MIB, "u1")
        assert pool.statistics().arenas == 1
        del x


# Streams


def test_a_range_that_changes_streams_waits_for_the_work_of_the_first() -> None:
    with um.pool(ARENA, limit=ARENA, headroom=0) as pool:
        first, second = streams(2)
        with first:
            x = pool.malloc(ARENA)
            gate = Gate(first)
            x.memset_async(7, ARENA, first)
            del x
        with second:
            y = pool.malloc(ARENA)
            y.memset_async(9, ARENA, second)
        assert not second.done
        gate.open()
        second.synchronize()
        seen = np.empty(ARENA, "u1")
        y.copy_to_host(seen.ctypes.data, ARENA)
        assert (seen == 9).all()
        assert driver_allocations() and pool.statistics().driver_allocations == 1
        del y


def test_a_stream_that_dies_before_its_arrays_and_its_handle_comes_back(pool: Any) -> None:
    kept = []
    for number in range(300):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            pointer = pool.malloc(4096)
            pointer.memset_async(number % 251, 4096, stream)
            kept.append((number % 251, pointer))
        del stream, pointer
    cupy.cuda.Device().synchronize()
    seen = np.empty(4096, "u1")
    for number, pointer in kept:
        pointer.copy_to_host(seen.ctypes.data, 4096)
        assert (seen == number).all()
    assert pool.statistics().arena_bytes <= 8 * ARENA
    del kept, pointer


def test_the_handle_of_a_stream_that_owns_memory_does_not_come_back(pool: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    handle = stream.ptr
    with stream:
        pool.malloc(1000)
    del stream
    gc.collect()
    assert handle not in [other.ptr for other in streams(100)]
    pool.free_all_blocks()


def test_external_streams_are_not_named_again(pool: Any) -> None:
    driver = get_driver()
    handle = driver.create_stream(0)
    with stream_class(cupy)(handle, 0):  # cupy.cuda.ExternalStream, which warns in CuPy 14
        pool.malloc(1000)
    driver.destroy_stream(handle, 0)
    pool.free_all_blocks()
    with streams(1)[0]:
        pool.malloc(1000)


def test_a_stream_over_anothers_handle_does_not_count_as_lasting(pool: Any) -> None:
    """CuPy 14's Stream.from_external is a Stream; it marks itself, which is all that tells it from CuPy's own."""
    stream = streams(1)[0]
    with stream:
        pool.malloc(1000)
        assert [owner.lasting for owner in pool.reserve_of(0).carved] == [True]
        stream._foreign_stream_ref = object()
        pool.free_all_blocks()
        pool.malloc(1000)
        assert [owner.lasting for owner in pool.reserve_of(0).carved] == [True, False]
    stream._foreign_stream_ref = None  # as in a stream of CuPy's own, which reads it when it goes


def test_a_use_on_another_stream_holds_the_block(pool: Any) -> None:
    mine, other = streams(2)
    with mine:
        x = cupy.empty(MIB, "u1")
        x.data.memset_async(7, MIB, mine)
        mine.synchronize()
        gate = Gate(other)
        target = cupy.cuda.alloc_pinned_memory(MIB)
        x.data.copy_to_host_async(__import__("ctypes").c_void_p(target.ptr), MIB, other)
        um.record_use(x[5:], other)
        address = x.data.ptr
        del x
        assert pool.statistics().deferred_uses == 1
        y = cupy.empty(MIB, "u1")
        assert y.data.ptr != address
        y.data.memset_async(9, MIB, mine)
        mine.synchronize()
        gate.open()
        other.synchronize()
        assert (np.frombuffer(target, "u1", MIB) == 7).all()
        del y


def test_uses_on_streams_of_another_device_are_recorded_there(pool: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    x = cupy.empty(1000, "u1")
    with cupy.cuda.Device(1):
        other = streams(1)[0]
        gate = Gate(other)
    um.record_use(x, other)
    del x
    assert pool.statistics().deferred_uses == 1, "recorded on another stream than the one that is held"
    gate.open()
    other.synchronize()
    assert pool.statistics().deferred_uses == 0
    x = cupy.empty(1000, "u1")
    with cupy.cuda.Device(1):
        gate = Gate(other)
        cupy.cuda.Stream.null.wait_event(other.record())
        um.record_use(x, cupy.cuda.Stream.null)
    del x
    cupy.cuda.Device().synchronize()
    assert pool.statistics().deferred_uses == 1, "recorded on the default stream of the array's device"
    gate.open()
    with cupy.cuda.Device(1):
        cupy.cuda.Stream.null.synchronize()
    assert pool.statistics().deferred_uses == 0


def test_a_finaliser_that_allocates_while_cupy_takes_in_a_root_gets_its_own(monkeypatch: Any) -> None:
    with um.pool(ARENA) as pool:
        given: list[Any] = []
        take_in = cupy_roots._plain_malloc

        def interrupted(inner: Any, nbytes: int) -> Any:
            monkeypatch.undo()
            given.append(pool.malloc(nbytes + 512))  # as a finaliser might, in the garbage collector
            return take_in(inner, nbytes)

        monkeypatch.setattr(cupy_roots, "_plain_malloc", interrupted)
        first = pool.malloc(1000)
        assert len(given) == 1
        ranges = {
            slab.allocation.address + offset: nbytes
            for slab in pool.reserve_of(0).slabs
            for offset, nbytes in slab.arena._used.items()
        }
        assert ranges[given[0].ptr] >= given[0].mem.size, "it was given a root that is smaller than what it asked for"
        assert first.ptr in ranges
        del first
        given.clear()


# Epochs


def trace(pool: Any, on: list[Any]) -> None:
    rng = np.random.default_rng(0)
    kept: dict[int, Any] = {}
    for index in range(600):
        with on[index % len(on)]:
            kept[index % 40] = pool.malloc(int(2 ** rng.uniform(9, 19)))


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("first", ["16MiB", "256KiB"])
def test_steady_state_asks_neither_us_nor_the_driver(count: int, first: str) -> None:
    on = streams(count)
    with um.pool(first) as pool:
        for _ in range(25):
            with pool.epoch():
                trace(pool, on)
        before, misses = driver_allocations(), pool.statistics().misses
        for _ in range(4):
            with pool.epoch():
                trace(pool, on)
        assert driver_allocations() == before
        assert pool.statistics().misses - misses <= (0 if count == 1 else 4 * count)
        assert pool.statistics().arenas == 1


def test_escapes_keep_their_memory_while_epochs_go_on(pool: Any) -> None:
    kept: list[Any] = []
    for number in range(8):
        with pool.epoch():
            trace(pool, [cupy.cuda.Stream.null])
            x = cupy.empty(3000 * (number + 1), "u1")
            x.data.memset(number, x.nbytes)
            kept.append(x)
            del x
    for number, x in enumerate(kept):
        assert (x.get() == number).all()
    ranges = sorted((x.data.ptr, x.data.ptr + x.nbytes) for x in kept)
    assert all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:], strict=False))
    kept.clear()


def test_escapes_are_found_and_named(pool: Any) -> None:
    with pytest.warns(um.EscapeWarning, match=r"1 array \(4\.0 KiB\).*test_cupy_pool\.py"):
        with pool.epoch(on_escape="warn") as epoch:
            x = cupy.empty(4096, "u1")
            with pool.persistent():
                weights = cupy.empty(100, "u1")
            cupy.empty(100, "u1")
    assert [escape.nbytes for escape in epoch.escapes] == [4096]
    assert cupy.cuda.get_allocator().__self__ is pool
    view = x[10:]
    del x
    with pytest.raises(um.EscapeError), pool.epoch(on_escape="raise"):
        y = cupy.empty(10, "u1")
    del view, y, weights


def test_an_epoch_of_a_pool_that_was_set_globally_tracks_too() -> None:
    before = cupy.cuda.get_allocator()
    pool = um.ManagedMemoryPool(ARENA)
    cupy.cuda.set_allocator(pool.malloc)
    try:
        with pytest.raises(um.EscapeError), pool.epoch(on_escape="raise"):
            x = cupy.empty(10, "u1")
        assert um.empty(10).data.mem.device_id == 0
        assert pool.used_bytes() == 512
        del x
    finally:
        cupy.cuda.set_allocator(before)


def test_tracking(pool: Any) -> None:
    with um.pool(ARENA, track=True) as tracked:
        x, y = cupy.empty(1000, "u1"), cupy.empty(3000, "u1")
        view = x[5:]
        del x, y
        z = cupy.empty(512, "u1")
        statistics = tracked.statistics()
        assert (statistics.current_bytes, statistics.peak_bytes, statistics.total_bytes) == (1536, 4096, 4608)
        assert statistics.allocations == 3 and 0 <= statistics.fragmentation < 1
        del view, z


def test_four_threads_each_with_a_stream(pool: Any) -> None:
    wrong: list[Any] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        stream = cupy.cuda.Stream(non_blocking=True)
        kept: list[Any] = []
        start.wait(20)
        with stream:
            for _ in range(150):
                nbytes = int(rng.integers(1, 50_000))
                pointer = pool.malloc(nbytes)
                pointer.memset_async(number, nbytes, stream)
                kept.append((pointer, nbytes))
                if len(kept) > 8:
                    pointer, nbytes = kept.pop(int(rng.integers(0, len(kept))))
                    seen = np.empty(nbytes, "u1")
                    stream.synchronize()
                    pointer.copy_to_host(seen.ctypes.data, nbytes)
                    wrong.extend(set(seen.tolist()) - {number})
                    del pointer
                if rng.random() < 0.05:
                    pool.free_all_blocks()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


# The end of a pool


def test_a_pool_dropped_or_closed_with_live_arrays(pool: Any) -> None:
    cupy.empty(10, "u1")[::-1].get()  # the arena of `pool`, and CuPy's pinned memory
    live, parts = hipemu.live_allocations(), len(cupy_pool._parts)
    for end in (lambda made: None, lambda made: made.close()):
        made = um.ManagedMemoryPool(ARENA)
        seen = weakref.ref(made)
        x = cupy.ndarray((1000,), "u1", made.malloc(1000))
        x.set(np.full(1000, 7, "u1"))
        end(made)
        del made
        gc.collect()
        assert lingering.sweep() == 1
        view = x[::-1]
        del x
        assert (view.get() == 7).all()
        del view
        assert lingering.sweep() == 0
        gc.collect()
        assert seen() is None and hipemu.live_allocations() == live and len(cupy_pool._parts) == parts


def test_a_pool_that_dies_in_a_cycle_gives_its_memory_back() -> None:
    live, parts = hipemu.live_allocations(), len(cupy_pool._parts)

    class Program:
        def __init__(self, inside: bool) -> None:
            self.pool = um.ManagedMemoryPool(ARENA)
            self.callback = self.run
            array = self.run()
            array.set(np.full(1000, 7, "u1"))
            with self.pool.persistent(), self.pool.plain():
                self.plain = cupy.empty(1000, "u1")
            if inside:
                self.array = array
            else:
                outside.append(array)

        def run(self) -> Any:
            return cupy.ndarray((1000,), "u1", self.pool.malloc(1000))

    outside: list[Any] = []
    for inside in (True, False):
        Program(inside)
        gc.collect()
    gc.collect()
    assert lingering.sweep() == 1, "the one whose array is outside"
    assert (outside[0].get() == 7).all()
    outside.clear()
    assert lingering.sweep() == 0
    gc.collect()
    assert hipemu.live_allocations() <= live + 1  # CuPy's pinned memory
    assert len(cupy_pool._parts) == parts


def test_dropped_pools_give_everything_back() -> None:
    live = hipemu.live_allocations()
    for _ in range(5):
        made = um.ManagedMemoryPool(ARENA)
        made.malloc(1000)
        del made
    gc.collect()
    assert lingering.sweep() == 0
    assert hipemu.live_allocations() == live


def test_a_closed_pool_says_so() -> None:
    made = um.ManagedMemoryPool(ARENA)
    malloc = made.malloc
    malloc(1000)
    made.close()
    for call in (malloc, made.malloc):
        with pytest.raises(um.ClosedError, match="closed"):
            call(1000)


def test_rounds_of_alloc_and_free_all_leave_nothing(pool: Any) -> None:
    live, used = hipemu.live_allocations(), hipemu.used_bytes(0)
    for _ in range(50):
        cupy.empty(4 * MIB, "u1")
        pool.free_all_blocks()
        assert pool.total_bytes() == 0
    assert (hipemu.live_allocations(), hipemu.used_bytes(0)) == (live, used)


# Installing


def test_install_takes_the_place_of_cupys_default_pool() -> None:
    allocator, default = cupy.cuda.get_allocator(), cupy.get_default_memory_pool()
    pool = um.install(ARENA)
    assert um.install(ARENA) is pool
    assert cupy.get_default_memory_pool() is pool and cupy.cuda.get_allocator().__self__ is pool
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(cupy.empty(10, "u1").data.mem))
    thread.start()
    thread.join(20)
    assert pool.statistics().misses == 1
    cupy.get_default_memory_pool().free_all_blocks()
    um.uninstall()
    assert cupy.cuda.get_allocator() == allocator and cupy.get_default_memory_pool() is default
    seen.clear()


def test_allocators_are_restored_exactly(pool: Any) -> None:
    before = cupy.cuda.get_allocator()
    with pytest.raises(KeyError), um.pool(ARENA):
        raise KeyError
    assert cupy.cuda.get_allocator() == before


def allocator_of_the_process() -> Any:
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(cupy.cuda.get_allocator()))
    thread.start()
    thread.join(20)
    return seen[0]


def test_installing_and_uninstalling_inside_a_block_reach_the_process(pool: Any) -> None:
    mine, before = cupy.cuda.get_allocator(), allocator_of_the_process()
    installed = um.install(ARENA)
    assert allocator_of_the_process() == installed.malloc != mine
    assert cupy.cuda.get_allocator() == mine and active.current() is pool
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc), pytest.raises(KeyError), um.pool(ARENA):
        um.uninstall()
        raise KeyError
    assert allocator_of_the_process() == before and cupy.cuda.get_allocator() == mine
    assert installed.closed


def test_a_pool_that_a_thread_left_open_changes_no_other_threads_allocator(pool: Any) -> None:
    mine = cupy.cuda.get_allocator()
    forgotten = um.pool(ARENA)
    thread = threading.Thread(target=forgotten.__enter__)
    thread.start()
    thread.join(20)
    seen = weakref.ref(forgotten)
    del forgotten, thread
    gc.collect()
    assert seen() is None or lingering.sweep() == 0
    assert seen() is None
    assert cupy.cuda.get_allocator() == mine


def test_a_closed_installed_or_default_pool_is_made_anew() -> None:
    before = allocator_of_the_process()
    first = um.install(ARENA)
    first.close()
    second = um.install(ARENA)
    assert second is not first and cupy.empty(10).data.mem.device_id == 0
    um.uninstall()
    assert allocator_of_the_process() == before
    um.memory.default_pool().close()
    assert um.empty(10).shape == (10,)


def test_another_allocator_set_after_install_is_left_alone() -> None:
    before = cupy.cuda.get_allocator()
    um.install(ARENA)
    other = cupy.cuda.MemoryPool()
    cupy.cuda.set_allocator(other.malloc)
    um.uninstall()
    assert cupy.cuda.get_allocator() == other.malloc
    cupy.cuda.set_allocator(before)


# Kinds and plain memory


def test_plain_memory_is_plain(pool: Any) -> None:
    plain, managed = hipemu.calls("hipMalloc"), hipemu.calls("hipMallocManaged")
    with pool.plain():
        x = cupy.empty(1000, "u1")
    assert hipemu.calls("hipMalloc") == plain + 1 and hipemu.calls("hipMallocManaged") == managed
    assert pool.statistics().plain_bytes == 1024 and pool.used_bytes() == 0
    assert cupy.cuda.get_allocator().__self__ is pool
    del x
    y = cupy.empty(1000, "u1")
    kind = {Mode.MANAGED: "managed", Mode.EXPLICIT: "device"}[get_driver().mode]
    assert pool.statistics().kind == kind
    del y


def test_plain_arrays_outlive_their_pool() -> None:
    pool = um.ManagedMemoryPool(ARENA)
    with pool.plain():
        x = cupy.empty(1000, "u1")
    x.set(np.full(1000, 7, "u1"))
    del pool
    assert lingering.sweep() == 1
    assert (x.get() == 7).all()
    del x


def test_a_device_pool_beside_managed_mode() -> None:
    before = hipemu.calls("hipMallocManaged")
    pool = DeviceMemoryPool(ARENA)
    pool.malloc(1000)
    assert hipemu.calls("hipMallocManaged") == before
    assert pool.statistics().kind == "device"


def test_managed_memory_is_refused_where_nothing_faults() -> None:
    from umarray.memory.cupy_pool import ManagedMemoryPool

    if get_driver().mode is Mode.MANAGED:
        ManagedMemoryPool(ARENA)
    else:
        with pytest.raises(um.NotSupported, match="explicit"):
            ManagedMemoryPool(ARENA)


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_from_a_pool(pool: Any, order: Any) -> None:
    page = get_driver().page_size
    x = um.empty((3, 5), "f4", order, page_aligned=True)
    assert x.data.ptr % page == 0 and x.flags[f"{order}_CONTIGUOUS"] and isinstance(x, cupy.ndarray)
    source = np.arange(60.0).reshape(3, 4, 5)
    for view in (source, source.T, source[::-1, ::2], source[:, :0], source[1, 2, 3]):
        copy = um.asarray(view)
        assert isinstance(copy, cupy.ndarray) and np.array_equal(um.asnumpy(copy), view)
        assert um.asarray(copy) is copy
    assert pool.used_bytes() > 0
    del x, copy


def test_without_a_pool_arrays_are_of_the_modes_memory() -> None:
    x = um.empty(1000)
    found = get_driver().find(x.data.ptr)
    assert found is not None and found.kind.value == um.memory.default_pool().statistics().kind
    del x


def test_frees_take_no_lock_of_ours(pool: Any) -> None:
    from umarray.memory.reserve import _guard

    cupy.empty(100)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with _guard:
            held.set()
            let_go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    roots: list[Any] = [cupy.empty(100, "u1")]
    roots.clear()
    cupy.cuda.MemoryPool.free_all_blocks(pool)  # drops roots: their finalisers run under CuPy's lock
    let_go.set()
    thread.join(30)
