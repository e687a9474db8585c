"""Allocation: time and memory of umarray's pool beside CuPy's and RMM's, on three traces, one stream and four.

Times are one Python-level allocation with its free, through CuPy's allocator interface. "reserved" is the highest
offset in use, summed over arenas (for other pools: what they hold), over the peak of what was alive; with four streams
"of_streams" is the same over the sum of the streams' own peaks (the median of several epochs, "highest" the worst), and
"alone" what it would be if each stream had an arena of its own: what CuPy's free lists cost by themselves. Driver
allocations are counted at the runtime. A loop whose buffer grows meets sizes that nobody has seen yet: other pools
begin each round of it with nothing cached, and managed ones may hold 1 GiB.

The end of an epoch is timed twice: "cold", after a loop that runs as long as a million allocations and leaves the
processor's caches to others, and "warm", right after the end of an empty inner epoch.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common import Measured, Report, Timing, interleaved, parser
from umarray.drivers import get_driver
from umarray.memory import pool as make_pool
from umarray.memory.pool import Pool

Trace = list[tuple[int, int]]  # (slot, bytes): 0 bytes free what is in the slot, else the slot is filled anew
ROOM = 256 << 20  # the first arena of ours
MANAGED_LIMIT = 1 << 30  # for others' managed pools: a shared card is not filled by a benchmark
LEARN = 20  # epochs before measuring


def training(quick: bool) -> Trace:
    """Forward passes that keep activations, backward passes that let them go; blocks of layers of a few sizes."""
    rng = np.random.default_rng(1)
    layers = 8 if quick else 24
    sizes = np.resize(rng.integers(1, 64, 6) * 16384, layers)
    trace: Trace = []
    for _ in range(2 if quick else 40):
        for layer, nbytes in enumerate(sizes):
            trace += [(layer, int(nbytes)), (layers, int(nbytes)), (layers, 0)]
        for layer in reversed(range(layers)):
            trace += [(layers, int(sizes[layer])), (layer, 0), (layers, 0)]
    return trace


def growing(quick: bool) -> Trace:
    """A buffer that grows by 64 KiB a step (the new one is made before the old one goes), between small temporaries."""
    trace: Trace = []
    for step in range(20 if quick else 400):
        trace += [(2 + small, 1024 * (1 + small)) for small in range(6)]
        trace += [(step % 2, (step + 1) << 16), ((step + 1) % 2, 0)]
        trace += [(2 + small, 0) for small in range(6)]
    return [*trace, (0, 0), (1, 0)]


def random(quick: bool) -> Trace:
    """Log-uniform sizes from 512 B to 2 MiB, 200 alive."""
    rng = np.random.default_rng(4)
    count = 400 if quick else 10_000
    sizes, slots = 2 ** rng.uniform(9, 21, count), rng.integers(0, 200, count)
    return [(int(slot), int(nbytes)) for slot, nbytes in zip(slots, sizes, strict=True)]


TRACES: dict[str, Callable[[bool], Trace]] = {"training": training, "growing": growing, "random": random}


def play(malloc: Callable[[int], Any], trace: Trace, streams: list[Any]) -> None:
    """Run a trace, each operation on the next stream; with none, on the current one."""
    blocks: list[Any] = [None] * (1 + max(slot for slot, _ in trace))
    if not streams:
        for slot, nbytes in trace:
            blocks[slot] = malloc(nbytes) if nbytes else None
        return
    count = len(streams)
    for index, (slot, nbytes) in enumerate(trace):
        streams[index % count].use()
        blocks[slot] = malloc(nbytes) if nbytes else None


def peaks(trace: Trace, count: int) -> tuple[int, int]:
    """Peak of what is alive, and the sum of the streams' own peaks, in units of 512 bytes as pools round."""
    live: dict[int, tuple[int, int]] = {}
    now, most = [0] * count, [0] * count
    total = 0
    for index, (slot, nbytes) in enumerate(trace):
        new = (index % count, -(-nbytes // 512) * 512)
        if nbytes:
            now[new[0]] += new[1]
        total, most = max(total, sum(now)), [max(pair) for pair in zip(most, now, strict=True)]
        if slot in live:
            stream, old = live.pop(slot)
            now[stream] -= old
        if nbytes:
            live[slot] = new
    return total, sum(most)


def highest(pool: Any, malloc: Callable[[int], Any], trace: Trace, streams: list[Any]) -> int:
    """The highest offset in use while the trace runs, summed over the pool's arenas."""
    tops: dict[int, int] = {}

    def spying(nbytes: int) -> Any:
        block = malloc(nbytes)
        address = getattr(block, "ptr", None) or getattr(block, "inner", block).address
        for slab in (slab for reserve in pool._reserves.values() for slab in reserve.slabs):
            start = slab.allocation.address
            if start <= address < start + slab.allocation.nbytes:
                tops[start] = max(tops.get(start, 0), address + -(-nbytes // 512) * 512 - start)
        return block

    with pool.epoch("watched"):
        play(spying, trace, streams)
    return sum(tops.values())


def alone(trace: Trace, streams: list[Any]) -> int:
    """The highest offsets of the streams, each with an arena of its own that holds its part of the trace."""
    total = 0
    for chosen in range(len(streams)):
        with make_pool(ROOM // 4) as pool:
            blocks: dict[int, Any] = {}
            top = 0
            for turn in range(2):  # the second finds one root as large as the arena
                with pool.epoch("alone"):
                    top = 0
                    for index, (slot, nbytes) in enumerate(trace):
                        mine = bool(nbytes) and index % len(streams) == chosen
                        block = pool.malloc(nbytes) if mine else None
                        if mine and turn:
                            start = pool.reserve_of(0).slabs[0].allocation.address
                            top = max(top, block.ptr + -(-nbytes // 512) * 512 - start)
                        blocks[slot] = block
                    del block
                    blocks.clear()
            total += top
    return total


class Spy:
    """Counts the driver's allocations where the runtime is called."""

    NAMES = ("malloc", "mallocManaged", "mallocAsync")

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def watching(self) -> Iterator[Spy]:
        runtime = getattr(get_driver(), "runtime", None)
        before = {name: getattr(runtime, name) for name in self.NAMES if hasattr(runtime, name)}
        for name, call in before.items():
            setattr(runtime, name, partial(self._counted, call))
        try:
            yield self
        finally:
            for name, call in before.items():
                setattr(runtime, name, call)

    def _counted(self, call: Callable[..., Any], *args: Any) -> Any:
        self.count += 1
        return call(*args)


def peers(streams: int) -> dict[str, tuple[Any, Callable[[int], Any]]]:
    """Other pools that are here: what counts their bytes (or None), and their malloc."""
    import cupy

    managed = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    managed.set_limit(size=MANAGED_LIMIT)
    plain = cupy.cuda.MemoryPool()
    found = {"MemoryPool(malloc_managed)": (managed, managed.malloc), "MemoryPool()": (plain, plain.malloc)}
    with suppress(Exception):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # experimental, says CuPy
            pool = cupy.cuda.MemoryAsyncPool()
        pool.malloc(512)
        found["MemoryAsyncPool"] = (pool, pool.malloc)
    found["raw malloc_managed"] = (None, cupy.cuda.malloc_managed)
    with suppress(ImportError):
        import rmm
        from rmm.allocators.cupy import rmm_cupy_allocator

        for name, make in (
            ("RMM pool", lambda: rmm.mr.PoolMemoryResource(rmm.mr.ManagedMemoryResource(), initial_pool_size=ROOM)),
            ("RMM arena", lambda: rmm.mr.ArenaMemoryResource(rmm.mr.ManagedMemoryResource(), arena_size=ROOM)),
        ):
            with suppress(Exception):
                found[name] = (None, _rmm_malloc(rmm, make(), rmm_cupy_allocator))
    return found


def _rmm_malloc(rmm: Any, resource: Any, allocator: Callable[[int], Any]) -> Callable[[int], Any]:
    def malloc(nbytes: int) -> Any:
        rmm.mr.set_current_device_resource(resource)
        return allocator(nbytes)

    return malloc


def timed(
    malloc: Callable[[int], Any], trace: Trace, streams: list[Any], pool: Any = None, cached: Any = None
) -> Measured:
    """One epoch of the trace; switching streams is taken off. `cached` is a pool that shall begin with nothing."""
    idle = 0.0
    if cached is not None:
        cached.free_all_blocks()
    if streams:
        start = perf_counter()
        for index in range(len(trace)):
            streams[index % len(streams)].use()
        idle = perf_counter() - start
    start = perf_counter()
    if pool is None:
        play(malloc, trace, streams)
    else:
        with pool.epoch("timed"):
            play(malloc, trace, streams)
    return Measured(perf_counter() - start - idle)


def compare(report: Report, name: str, trace: Trace, streams: list[Any]) -> None:
    """All pools on one trace."""
    count = max(1, len(streams))
    alive, of_streams = peaks(trace, count)
    case = f"{name}, {count} stream{'s' if count > 1 else ''}"
    allocations = sum(1 for _, nbytes in trace if nbytes)
    spy = Spy()
    with make_pool(ROOM) as pool, make_pool(ROOM, track=True) as tracked:
        others = peers(count) if get_driver().xp is not np else {}
        for one in (pool, tracked):
            for _ in range(3 if report.quick else LEARN):
                with one.epoch("learning"):
                    play(one.malloc, trace, streams)
        variants: dict[str, Callable[[], Measured]] = {}
        for other, (counter, malloc) in others.items():
            variants[other] = partial(timed, malloc, trace, streams, None, counter if name == "growing" else None)
        variants["umarray"] = partial(timed, pool.malloc, trace, streams, pool)
        variants["umarray, tracked"] = partial(timed, tracked.malloc, trace, streams, tracked)
        gc.collect()
        timings = interleaved(variants, report.repetitions, tolerance=None)
        first = next(iter(timings.values())).median
        misses = pool.statistics().misses
        with spy.watching():
            for _ in range(3):
                timed(pool.malloc, trace, streams, pool)
        for variant, timing in timings.items():
            more: dict[str, Any] = {"ratio": timing.median / first}
            if variant == "umarray":
                more |= {"driver_allocations": spy.count, "misses": pool.statistics().misses - misses}
                tops = sorted(highest(pool, pool.malloc, trace, streams) for _ in range(report.repetitions))
                more |= {"reserved": tops[len(tops) // 2] / alive}
                if streams:
                    more |= {"of_streams": tops[len(tops) // 2] / of_streams, "highest": tops[-1] / of_streams}
                    more |= {"alone": alone(trace, streams) / of_streams}
            elif variant in others and others[variant][0] is not None:
                more["reserved"] = others[variant][0].total_bytes() / alive
            report.add(case, variant, timing.per(allocations), unit="ns", **more)
        for counter, _ in others.values():
            if counter is not None:
                counter.free_all_blocks()


def epoch_end(report: Report, pool: Pool) -> None:
    """What the end of an epoch costs, everything dead, after few allocations and after many."""
    malloc: Callable[[int], Any] = pool.malloc  # type: ignore[attr-defined]
    counts = (10, 1000) if report.quick else (10, 1_000_000)
    for state in ("cold", "warm"):
        for count in counts:
            seconds = []
            for _ in range(report.repetitions + 2):
                epoch = pool.epoch("ends")
                epoch.__enter__()
                for _ in range(count):
                    malloc(4096)
                if count < counts[-1]:
                    sum(range(20 * counts[-1]))  # as long as the other count takes
                if state == "warm":
                    with pool.epoch("empty"):
                        pass
                start = perf_counter()
                epoch.__exit__(None, None, None)
                seconds.append(perf_counter() - start)
            report.add(f"end of an epoch, {state}", f"after {count} allocations", Timing.of(seconds[2:]), unit="us")


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report = Report("allocators", arguments)
    streams: list[Any] = []
    if get_driver().xp is not np:
        cupy = sys.modules["cupy"]
        if not arguments.quick:
            with suppress(ImportError):
                from benchmarks import guard

                guard.install(get_driver())
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    for name, make in TRACES.items():
        trace = make(report.quick)
        compare(report, name, trace, [])
        if streams:
            try:
                compare(report, name, trace, streams)
            finally:
                cupy.cuda.Stream.null.use()
    with make_pool(ROOM) as pool:
        epoch_end(report, pool)
    report.finish()


if __name__ == "__main__":
    main()
