"""CuPy's own pool over our arenas on a real card: fences held open by a busy kernel, FFT, graphs, epochs, ends."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.gpu.arrays import busy
from umarray import events
from umarray.drivers.base import Driver, Mode
from umarray.memory import deferred, lingering
from umarray.memory.current import pool_class

cupy = pytest.importorskip("cupy")

MIB = 1 << 20
ARENA = 64 * MIB


@pytest.fixture
def pool() -> Iterator[Any]:
    with um.pool(ARENA) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    cupy.cuda.Stream.null.use()
    cupy.cuda.Device().synchronize()
    gc.collect()
    deferred.drain()
    lingering.sweep()


@pytest.fixture
def arenas() -> Iterator[list[events.Allocated]]:
    """The arenas that the driver granted during the test."""
    seen: list[events.Allocated] = []
    stop = events.listen(lambda record: seen.append(record) if isinstance(record, events.Allocated) else None)
    yield seen
    stop()


def streams(count: int) -> list[Any]:
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


def read(pointer: Any, nbytes: int) -> np.ndarray[Any, Any]:
    seen = np.empty(nbytes, "u1")
    cupy.cuda.runtime.deviceSynchronize()
    cupy.cuda.runtime.memcpy(seen.ctypes.data, pointer.ptr, nbytes, cupy.cuda.runtime.memcpyDefault)
    return seen


# CuPy's face


def test_arrays_come_from_one_arena_of_the_modes_memory(pool: Any, driver: Driver, arenas: list[Any]) -> None:
    x = cupy.arange(1_000_000, dtype="f4")
    y = (x * 2 + 1).sum()
    assert float(y) == pytest.approx(float((np.arange(1_000_000, dtype="f4") * 2 + 1).sum()), rel=1e-5)
    found = driver.find(x.data.ptr)
    assert found is not None and found.kind.value == ("managed" if driver.mode is Mode.MANAGED else "device")
    assert [record.nbytes for record in arenas] == [ARENA]
    assert cupy.cuda.get_allocator().__self__ is pool
    assert type(pool).malloc is cupy.cuda.MemoryPool.malloc
    del x, y


def test_its_counts_mean_what_they_mean_on_any_pool(pool: Any) -> None:
    x, y = cupy.empty(1000, "u1"), cupy.empty(MIB // 2, "u1")
    assert pool.used_bytes() == 1024 + MIB // 2
    assert pool.total_bytes() == pool.used_bytes() + pool.free_bytes()
    assert pool.n_free_blocks() >= 1
    del x, y
    assert pool.used_bytes() == 0
    pool.free_all_blocks()
    assert (pool.used_bytes(), pool.free_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (0, 0, 0, 0)
    assert pool.statistics().arena_bytes == 0


def test_a_limit_holds(pool: Any) -> None:
    cupy.empty(1000, "u1")
    pool.set_limit(size=4 * MIB)
    kept = []
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        for _ in range(20):
            kept.append(cupy.empty(MIB // 2, "u1"))
    assert 3 * MIB <= pool.used_bytes() <= 4 * MIB
    del kept
    pool.set_limit(size=10 * MIB)
    x, y = cupy.empty(3 * MIB, "u1"), cupy.empty(3 * MIB, "u1")
    del y
    z = cupy.empty(6 * MIB, "u1")
    assert pool.get_limit() == 10 * MIB and pool.used_bytes() == 9 * MIB
    del x, z


def test_out_of_memory_is_both_errors_and_changes_nothing() -> None:
    with um.pool(ARENA, limit=ARENA) as pool:
        x = cupy.empty(ARENA // 2, "u1")
        used = pool.used_bytes()
        with pytest.raises(um.OutOfMemory) as caught:
            cupy.empty(ARENA, "u1")
        assert isinstance(caught.value, cupy.cuda.memory.OutOfMemoryError)
        assert caught.value.requested == ARENA and caught.value.limit == ARENA
        assert pool.used_bytes() == used
        del x, caught
        gc.collect()
        y = cupy.empty(ARENA, "u1")
        del y


@pytest.mark.parametrize("nbytes", [2**62, 2**63 - 1, 2**63, 2**64 - 1024])
def test_absurd_sizes(pool: Any, nbytes: int) -> None:
    with pytest.raises(MemoryError):
        pool.malloc(nbytes)
    assert pool.used_bytes() == 0


# Streams


def test_a_range_that_changes_streams_waits_for_the_work_of_the_first(driver: Driver) -> None:
    with um.pool(ARENA, limit=ARENA) as pool:
        first, second = streams(2)
        with first:
            pool.malloc(512)
            pool.free_all_blocks()
            x = pool.malloc(ARENA)
            x.memset_async(1, ARENA, first)
            first.synchronize()
        with busy(driver, first.ptr) as let_go:
            with first:
                x.memset_async(7, ARENA, first)
            del x
            with second:
                y = pool.malloc(ARENA)
                y.memset_async(9, ARENA, second)
            assert not second.done
            let_go()
            second.synchronize()
            first.synchronize()
        assert (read(y, ARENA) == 9).all()
        del y


def test_a_use_on_another_stream_holds_the_block(pool: Any, driver: Driver) -> None:
    mine, other = streams(2)
    with mine:
        x = cupy.full(MIB, 7, "u1")
        out = cupy.empty(MIB, "u1")
        x + x  # its kernel is compiled before the stream is held
        mine.synchronize()
    with other:
        cupy.copyto(out, x)
        other.synchronize()
    out.fill(0)
    cupy.cuda.Device().synchronize()
    with busy(driver, other.ptr) as let_go:
        out.data.copy_from_device_async(x.data, MIB, other)
        um.record_use(x[5:], other)
        address = x.data.ptr
        with mine:
            del x
            y = cupy.empty(MIB, "u1")
            assert y.data.ptr != address
            y.data.memset_async(9, MIB, mine)
            mine.synchronize()
        let_go()
        other.synchronize()
    assert (read(out.data, MIB) == 7).all()
    assert pool.statistics().deferred_uses == 0
    del y, out


def test_per_thread_default_streams_are_told_apart(driver: Driver) -> None:
    if driver.name != "cuda":
        pytest.skip("HIP has no per-thread default stream")
    with um.pool(ARENA, limit=ARENA) as pool:
        done, opened = threading.Event(), threading.Event()
        early: list[bool] = []

        def other() -> None:
            with cupy.cuda.Device(0):
                cupy.cuda.Stream.ptds.use()
                pointer = pool.malloc(ARENA)
                early.append(not opened.is_set())
                del pointer
            done.set()

        with cupy.cuda.Stream.ptds:
            x = pool.malloc(ARENA)
            with busy(driver, cupy.cuda.Stream.ptds.ptr) as let_go:
                del x
                thread = threading.Thread(target=other)
                thread.start()
                done.wait(1.0)
                opened.set()
                let_go()
                thread.join(60)
        assert early == [False], "another thread got the memory of a stream that was still busy"


def test_streams_that_die_before_their_arrays(pool: Any) -> None:
    kept = []
    for number in range(300):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            pointer = pool.malloc(4096)
            pointer.memset_async(number % 251, 4096, stream)
        kept.append((number % 251, pointer))
        del stream, pointer
    for number, pointer in kept:
        assert (read(pointer, 4096) == number).all()
    assert pool.statistics().arena_bytes <= 4 * ARENA
    del kept, pointer


def test_a_graph_is_captured_over_a_warm_arena_and_a_cold_one_says_so(pool: Any, driver: Driver) -> None:
    if driver.name != "cuda":
        pytest.skip("HIP cannot say whether a stream is capturing")
    stream = streams(1)[0]
    x = cupy.arange(1000, dtype="f4")
    cupy.cuda.Device().synchronize()
    with stream:
        y = x * 2
        del y
        stream.synchronize()
        stream.begin_capture()
        try:
            y = x * 2
            with pytest.raises(um.NotSupported, match="capture"):
                pool.malloc(2 * ARENA)
        finally:
            graph = stream.end_capture()
        graph.launch()
        stream.synchronize()
        assert (y.get() == np.arange(1000) * 2).all()
    del y, x, graph


# Epochs


def trace(pool: Any, on: list[Any]) -> None:
    rng = np.random.default_rng(0)
    kept: dict[int, Any] = {}
    for index in range(600):
        on[index % len(on)].use()
        kept[index % 40] = pool.malloc(int(2 ** rng.uniform(9, 19)))
    cupy.cuda.Stream.null.use()


@pytest.mark.parametrize("count", [1, 4])
def test_steady_state_makes_no_driver_allocation(pool: Any, count: int, arenas: list[Any]) -> None:
    on = streams(count)
    for _ in range(25):
        with pool.epoch():
            trace(pool, on)
    before, misses = len(arenas), pool.statistics().misses
    for _ in range(4):
        with pool.epoch():
            trace(pool, on)
    assert len(arenas) == before
    assert pool.statistics().misses - misses <= (0 if count == 1 else 4 * count)


def test_a_training_like_program_over_epochs(pool: Any, arenas: list[Any]) -> None:
    rng = np.random.default_rng(0)
    with pool.persistent():
        weights = um.asarray(rng.random((256, 256), dtype="f4") / 256)
    expected = um.asnumpy(weights)
    for number in range(6):
        with pool.epoch(f"epoch {number}", on_escape="raise"):
            x = um.asarray(rng.random((128, 256), dtype="f4"))
            gradient = x.T @ (x @ weights)
            host = um.asnumpy(x)
            weights -= 1e-3 * gradient
            expected -= 1e-3 * (host.T @ (host @ expected))
            del x, gradient
        if number == 2:
            before = len(arenas)
    assert len(arenas) == before
    assert np.allclose(um.asnumpy(weights), expected, rtol=1e-2, atol=1e-4)
    del weights


def test_ffts_over_epochs_are_right_and_their_plans_are_no_escapes(pool: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in ((1 << 16,), (1_000_003,), (512, 512)):
        host = rng.random(shape, dtype="f4")
        expected = np.fft.fftn(host)
        for _ in range(2):
            with pool.epoch("fft", on_escape="raise"):
                x = um.asarray(host)
                y = cupy.fft.fftn(x)
                error = np.abs(um.asnumpy(y) - expected).max() / np.abs(expected).max()
                assert error < 1e-5
                del x, y
    statistics = pool.statistics()
    assert statistics.library_bytes <= statistics.current_bytes
    cupy.fft.config.get_plan_cache().clear()
    assert pool.used_bytes() == 0 and pool.statistics().library_bytes == 0


def test_fft_plans_are_let_go_before_out_of_memory() -> None:
    with um.pool(ARENA, limit=ARENA) as pool:
        y = cupy.fft.fft(cupy.ones(1_000_003, "c8"))
        del y
        held = pool.used_bytes()
        x = cupy.empty(ARENA, "u1")
        assert pool.used_bytes() == ARENA
        del x
        cupy.fft.config.get_plan_cache().clear()
        assert held >= 0


def test_the_installed_pool_is_what_cupy_frees_on_its_retry() -> None:
    allocator, default = cupy.cuda.get_allocator(), cupy.get_default_memory_pool()
    pool = um.install(ARENA)
    try:
        assert cupy.get_default_memory_pool() is pool
        x = cupy.ones(1000)
        del x
        cupy.get_default_memory_pool().free_all_blocks()
        assert pool.total_bytes() == 0
    finally:
        um.uninstall()
    assert cupy.cuda.get_allocator() == allocator and cupy.get_default_memory_pool() is default


# The end of a pool, and what others make of its memory


@pytest.mark.parametrize("end", ["dropped", "closed"])
def test_a_pool_that_ends_with_live_arrays_keeps_them(driver: Driver, end: str) -> None:
    made = um.ManagedMemoryPool(ARENA)
    with cupy.cuda.using_allocator(made.malloc):
        x = cupy.full(1000, 7, "u1")
    if end == "closed":
        made.close()
    del made
    gc.collect()
    assert lingering.sweep() >= 1
    view = x[::-1]
    del x
    assert (view.get() == 7).all()
    kept = lingering.kept()
    del view
    assert lingering.sweep() == kept - 1


def test_a_pool_that_dies_in_a_cycle_gives_its_memory_back() -> None:
    freed: list[events.Freed] = []
    stop = events.listen(lambda record: freed.append(record) if isinstance(record, events.Freed) else None)

    class Program:
        def __init__(self, outside: list[Any] | None) -> None:
            self.pool = pool_class()(ARENA)
            self.callback = self.run
            array = self.run()
            array.fill(7)
            if outside is None:
                self.array = array
            else:
                outside.append(array)

        def run(self) -> Any:
            return cupy.ndarray((1000,), "u1", self.pool.malloc(1000))

    try:
        outside: list[Any] = []
        Program(None)
        Program(outside)
        gc.collect()
        gc.collect()
        assert lingering.sweep() == 1 and len(freed) == 1
        assert (outside[0].get() == 7).all()
        outside.clear()
        assert lingering.sweep() == 0 and len(freed) == 2
    finally:
        stop()


def test_a_stream_over_anothers_handle_is_not_named_again(pool: Any, driver: Driver) -> None:
    if not hasattr(cupy.cuda.Stream, "from_external"):
        pytest.skip("CuPy before 14")

    class Foreign:
        handle = driver.create_stream(0)

        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, self.handle)

    with cupy.cuda.Stream.from_external(Foreign()):
        pool.malloc(1000)
        assert [owner.lasting for owner in pool.reserve_of(0).carved] == [False]
    driver.synchronize()
    driver.destroy_stream(Foreign.handle, 0)
    pool.free_all_blocks()
    with streams(1)[0]:
        pool.malloc(1000)


def test_uninstalling_inside_a_block_reaches_the_process(pool: Any) -> None:
    def of_the_process() -> Any:
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(cupy.cuda.get_allocator()))
        thread.start()
        thread.join(20)
        return seen[0]

    before, mine = of_the_process(), cupy.cuda.get_allocator()
    installed = um.install(ARENA)
    assert of_the_process() == installed.malloc
    um.uninstall()
    assert of_the_process() == before and cupy.cuda.get_allocator() == mine


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("", None, 0), ("false", None, 0), ("128MiB", None, 128 * MIB), ("1048576", "256MiB", 0)],
)
def test_the_environments_limit(monkeypatch: pytest.MonkeyPatch, text: str, limit: Any, expected: int) -> None:
    monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", text)
    with um.pool(ARENA, limit=limit) as pool:
        x = cupy.empty(10 * MIB, "u1")
        with pool.persistent():
            y = cupy.empty(10 * MIB, "u1")
        assert pool.get_limit() == expected
        del x, y


def test_dropped_pools_give_everything_back(driver: Driver) -> None:
    made: Any = None
    lingering.sweep()
    freed: list[Any] = []
    stop = events.listen(lambda record: freed.append(record) if isinstance(record, events.Freed) else None)
    for _ in range(5):
        made = um.ManagedMemoryPool(ARENA)
        made.malloc(1000)
        made = None
    gc.collect()
    lingering.sweep()
    stop()
    assert [record.nbytes for record in freed] == [ARENA] * 5


def test_plain_memory_is_plain_and_outlives_its_pool(driver: Driver) -> None:
    pool = um.ManagedMemoryPool(ARENA)
    with pool.plain():
        x = cupy.full(1000, 7, "u1")
    found = driver.find(x.data.ptr)
    assert found is None or found.kind.value == "device"  # None: nobody knows it, so it is not managed
    del pool
    gc.collect()
    lingering.sweep()
    assert (x.get() == 7).all()
    del x


def test_eight_threads(pool: Any) -> None:
    wrong: list[Any] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        stream = cupy.cuda.Stream(non_blocking=True)
        kept: list[Any] = []
        start.wait(60)
        with cupy.cuda.Device(0), stream:
            for _ in range(200):
                nbytes = int(rng.integers(1, 50_000))
                pointer = pool.malloc(nbytes)
                pointer.memset_async(number, nbytes, stream)
                kept.append((pointer, nbytes))
                if len(kept) > 8:
                    pointer, nbytes = kept.pop(int(rng.integers(0, len(kept))))
                    stream.synchronize()
                    seen = np.empty(nbytes, "u1")
                    cupy.cuda.runtime.memcpy(seen.ctypes.data, pointer.ptr, nbytes, cupy.cuda.runtime.memcpyDefault)
                    wrong.extend(set(seen.tolist()) - {number})
                if rng.random() < 0.02:
                    pool.free_all_blocks()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not wrong
