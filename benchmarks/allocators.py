"""Allocation: time and memory of umarray's pool beside CuPy's and RMM's, on three traces, one stream and four.

Times are one Python-level allocation with its free, through CuPy's allocator interface. "reserved" is the highest
offset in use, summed over arenas (for other pools: what they hold), over the peak of what was alive; with four streams
"of_streams" is the same over the sum of the streams' own peaks (the median of several epochs, "highest" the worst), and
"alone" what it would be if each stream had an arena of its own: what CuPy's free lists cost by themselves. Driver
allocations are counted at the runtime. A loop whose buffer grows meets sizes that nobody has seen yet: other pools
begin each round of it with nothing cached, and managed ones may hold 768 MiB.

Times should not grow: with 1 to 8 threads, each of which plays the first trace, with 1 to 16 streams, and with up to a
million blocks alive, of which random ones are replaced.

The end of an epoch is timed twice: "cold", after a loop that runs as long as a million allocations and leaves the
processor's caches to others, and "warm", right after the end of an empty inner epoch.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import guard
from benchmarks.common import Measured, Report, Timing, guarded, interleaved, parser
from benchmarks.traces import MANAGED_LIMIT, PEERS_BYTES, ROOM, TRACES, Peers, Spy, Trace, peaks, peers, play, pools
from umarray.drivers import get_driver
from umarray.memory import pool as make_pool
from umarray.memory.pool import Pool

LEARN = 20  # epochs before measuring
THREADS = (1, 2, 4, 8)
STREAMS = (1, 2, 4, 8, 16)
LIVE = (1_000, 10_000, 100_000, 1_000_000)
REPLACED = 20_000  # of the live blocks, in a timed round
BLOCK = 512  # bytes of each second live block; the others have twice as many


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
    with others_here(peers, PEERS_BYTES) as others, make_pool(ROOM) as pool, make_pool(ROOM, track=True) as tracked:
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


@contextmanager
def others_here(make: Callable[[], Peers], nbytes: int) -> Iterator[Peers]:
    """Others' pools, none without a device; they may hold so many bytes of managed memory."""
    driver = get_driver()
    if driver.xp is np:
        yield {}
        return
    with guard.managed(nbytes, driver):
        found = make()
        try:
            yield found
        finally:
            for counter, _ in found.values():
                if counter is not None:
                    counter.free_all_blocks()


def add(report: Report, case: str, timings: dict[str, Timing], allocations: int) -> None:
    """A row a pool, with its ratio to the first."""
    first = next(iter(timings.values())).median
    for variant, timing in timings.items():
        report.add(case, variant, timing.per(allocations), unit="ns", ratio=timing.median / first)


def with_threads(report: Report, trace: Trace, count: int) -> None:
    """All threads at once on one pool, each with the trace; the time is of one allocation of any of them."""
    allocations = count * sum(1 for _, nbytes in trace if nbytes)

    def together(malloc: Callable[[int], Any], pool: Any = None) -> Measured:
        begin = threading.Barrier(count + 1)

        def one() -> None:
            play(malloc, trace[:30], [])  # a thread's first call of the runtime takes milliseconds
            begin.wait()
            play(malloc, trace, [])

        with ThreadPoolExecutor(count) as threads, pool.epoch("timed") if pool is not None else nullcontext():
            started = [threads.submit(one) for _ in range(count)]
            begin.wait()
            start = perf_counter()
            for thread in started:
                thread.result()
            return Measured(perf_counter() - start)

    with others_here(pools, MANAGED_LIMIT) as others, make_pool(ROOM) as pool:
        for _ in range(3 if report.quick else LEARN):
            with pool.epoch("learning"):
                play(pool.malloc, trace, [])
        variants = {name: partial(together, malloc) for name, (_, malloc) in others.items()}
        variants["umarray"] = partial(together, pool.malloc, pool)
        timings = interleaved(variants, report.repetitions, warmup=3, tolerance=None)
    add(report, f"training, {count} thread{'s' if count > 1 else ''}", timings, allocations)


def with_streams(report: Report, trace: Trace, streams: list[Any]) -> None:
    """The trace with each operation on the next stream."""
    allocations = sum(1 for _, nbytes in trace if nbytes)
    with others_here(pools, MANAGED_LIMIT) as others, make_pool(ROOM) as pool:
        for _ in range(3 if report.quick else LEARN):
            with pool.epoch("learning"):
                play(pool.malloc, trace, streams)
        variants = {name: partial(timed, malloc, trace, streams) for name, (_, malloc) in others.items()}
        variants["umarray"] = partial(timed, pool.malloc, trace, streams, pool)
        timings = interleaved(variants, report.repetitions, tolerance=None)
    add(report, f"training, each on the next of {len(streams)}", timings, allocations)


def with_live(report: Report, count: int) -> None:
    """So many blocks are alive; random ones of them are replaced."""
    order = np.random.default_rng(5).integers(0, count, REPLACED // 20 if report.quick else REPLACED).tolist()
    nbytes = count * BLOCK * 3 // 2
    with others_here(pools, nbytes + ROOM // 4) as others, make_pool(nbytes + ROOM // 4) as pool:
        mallocs = {name: malloc for name, (_, malloc) in others.items()} | {"umarray": pool.malloc}
        gc.disable()  # millions of objects are made on purpose
        try:
            blocks = {name: [malloc(BLOCK << k % 2) for k in range(count)] for name, malloc in mallocs.items()}

            def replace(name: str) -> Measured:
                malloc, mine = mallocs[name], blocks[name]
                start = perf_counter()
                for k in order:
                    mine[k] = None
                    mine[k] = malloc(BLOCK << k % 2)
                return Measured(perf_counter() - start)

            variants = {name: partial(replace, name) for name in mallocs}
            timings = interleaved(variants, report.repetitions, tolerance=None)
            blocks.clear()
        finally:
            gc.enable()
    add(report, f"{count:,} blocks alive", timings, len(order))


def epoch_end(report: Report, pool: Pool) -> None:
    """What the end of an epoch costs, everything dead, after few allocations and after many."""
    malloc: Callable[[int], Any] = pool.malloc  # type: ignore[attr-defined]
    counts = (10, 1000) if report.quick else (10, 1_000_000)
    for state in ("cold", "warm"):
        for count in counts:
            seconds = []
            for _ in range(min(report.repetitions, 3) + 2):
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
    report, driver = Report("allocators", arguments), get_driver()
    streams: list[Any] = []
    if driver.xp is not np:
        streams = [driver.xp.cuda.Stream(non_blocking=True) for _ in range(max(STREAMS))]
    else:
        report.skip("others' pools, streams", "there is no device")
    with guarded(driver):
        for name, make in TRACES.items():
            trace = make(report.quick)
            compare(report, name, trace, [])
            if streams:
                with null_stream_after(driver):
                    compare(report, name, trace, streams[:4])
        trace = TRACES["training"](report.quick)
        for count in THREADS[:2] if report.quick else THREADS:
            with_threads(report, trace, count)
        if streams:
            for count in STREAMS[:2] if report.quick else STREAMS:
                with null_stream_after(driver):
                    with_streams(report, trace, streams[:count])
        for count in LIVE[:1] if report.quick else LIVE:
            with_live(report, count)
        with make_pool(ROOM) as pool:
            epoch_end(report, pool)
    report.finish()


@contextmanager
def null_stream_after(driver: Any) -> Iterator[None]:
    try:
        yield
    finally:
        driver.xp.cuda.Stream.null.use()


if __name__ == "__main__":
    main()
