"""Traces of allocations, the allocators that are played on, and how their driver calls are counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from umarray.drivers import get_driver

Trace = list[tuple[int, int]]  # (slot, bytes): 0 bytes free what is in the slot, else the slot is filled anew
ROOM = 256 << 20  # the first arena of ours
MANAGED_LIMIT = 768 << 20  # for others' managed pools: a shared card is not filled by a benchmark


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


Peers = dict[str, tuple[Any, Callable[[int], Any]]]
"""Other pools: what counts their bytes (or None), and their malloc."""
PEERS_BYTES = MANAGED_LIMIT + 2 * ROOM + (96 << 20)
"""Managed memory that all of `peers` may hold together: a pool's limit, two of RMM's, and what is raw."""


def pools() -> Peers:
    """CuPy's pools on managed and on plain memory."""
    import cupy

    managed = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    managed.set_limit(size=MANAGED_LIMIT)
    plain = cupy.cuda.MemoryPool()
    return {"MemoryPool(malloc_managed)": (managed, managed.malloc), "MemoryPool()": (plain, plain.malloc)}


def peers() -> Peers:
    """Every other pool that is here; the first is what ours is compared with."""
    import cupy

    found = pools()
    others = async_pool()
    if others is not None:
        found["MemoryAsyncPool"] = (others, others.malloc)
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


def async_pool() -> Any:
    """The driver's own pool through CuPy, where there is one (not on HIP), else None."""
    import cupy

    with suppress(Exception):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # experimental, says CuPy
            pool = cupy.cuda.MemoryAsyncPool()
        pool.malloc(512)
        return pool
    return None


def _rmm_malloc(rmm: Any, resource: Any, allocator: Callable[[int], Any]) -> Callable[[int], Any]:
    def malloc(nbytes: int) -> Any:
        rmm.mr.set_current_device_resource(resource)
        return allocator(nbytes)

    return malloc
