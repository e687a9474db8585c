"""Rounds of one shape: the host writes the inputs, the device computes; and the ways in which inputs get there.

A round's time begins when the host has written, and ends when the device has computed. What the writing took is told
apart: pages that lie on the device are slow to write, and managed memory pays there too.

========================== ==========================================================================================
explicit, pinned           inputs in pinned memory, copied asynchronously into plain device arrays: written by hand
explicit, pageable         inputs in NumPy arrays, ``ndarray.set``: what most programs do
managed, on demand         CuPy's managed memory, written by the host, nothing said
managed, prefetched        the same, and a prefetch call an array: the textbook's way, by hand
umarray, access            arrays of a pool of umarray's, written by the host, `um.access` around the work
umarray, host_view         the same, written in `um.host_view`, `um.access` around the work
umarray, host_view queued  the same with ``wait=False``: on exit copies are queued, and nothing waits
========================== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import umarray as um
from benchmarks import guard
from benchmarks.common import Measured, Report, Stopwatch, guarded
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Kind, Mode, host_bytes
from umarray.places import Device

Compute = Callable[[Sequence[Any], Any], None]
_SAMPLES = 64  # elements in each direction that are compared
WARMUP = 3  # rounds; until then pools still touch memory that they never used


class Work:
    """What a round does: `sources` are the inputs on the host, `compute(inputs, out)` runs on the device.

    Parameters
    ----------
    scratch : int
        Bytes that `compute` allocates, at most, at once.
    """

    def __init__(
        self, driver: Driver, sources: Sequence[Any], shape: tuple[int, ...], compute: Compute, scratch: int = 0
    ) -> None:
        self.driver, self.sources, self.shape, self.compute, self.scratch = driver, sources, shape, compute, scratch
        self.nbytes = sum(source.nbytes for source in sources) + int(np.prod(shape)) * sources[0].itemsize

    def write(self, turn: int, targets: Sequence[Any]) -> None:
        """The host's part: every element of every input, other numbers each time, so that a stale byte is found."""
        factor = np.float32(1 + turn % 4 / 4)
        for source, target in zip(self.sources, targets, strict=True):
            np.multiply(source, factor, out=target)

    def sample(self, out: Any) -> Any:
        """Some of the result, for the check that all ways computed the same."""
        flat = out.reshape(-1, out.shape[-1])
        return flat[:: max(1, len(flat) // _SAMPLES), :: max(1, flat.shape[1] // _SAMPLES)].copy().get()


class Way:
    """A way for inputs to reach the device; called, it goes one round."""

    def __init__(self, work: Work, stack: ExitStack) -> None:
        self.work, self.driver, self.xp, self.turn = work, work.driver, work.driver.xp, 0
        self.allocator: Any = None  # of what `compute` makes; CuPy's own by default
        self.set_up(stack)

    def set_up(self, stack: ExitStack) -> None:
        """Make `inputs`, on the device, and `out`; `stack` ends what is to be ended."""
        raise NotImplementedError

    def __call__(self) -> Measured:
        self.turn += 1
        with self.xp.cuda.using_allocator(self.allocator) if self.allocator else ExitStack():
            return self.round()

    def round(self) -> Measured:
        with Stopwatch() as writing:
            self.work.write(self.turn, self.host)
        with Stopwatch(self.driver.synchronize) as watch:
            self.bring(watch)
            self.work.compute(self.inputs, self.out)
        return watch.measured(self.work.sample(self.out), write=writing)

    host: Sequence[Any]
    inputs: Sequence[Any]
    out: Any

    def bring(self, watch: Stopwatch) -> None:
        """Let the inputs reach the device."""


class Pinned(Way):
    def set_up(self, stack: ExitStack) -> None:
        work, driver = self.work, self.driver
        self.inputs = [self.xp.empty(source.shape, source.dtype) for source in work.sources]
        self.out = self.xp.empty(work.shape, work.sources[0].dtype)
        self.host, self.pinned = [], []
        for source in work.sources:
            pinned = driver.allocate(source.nbytes, Kind.PINNED)
            stack.callback(driver.free, pinned)
            self.pinned.append(pinned)
            self.host.append(host_bytes(pinned.address, source.nbytes, None).view(source.dtype).reshape(source.shape))

    def bring(self, watch: Stopwatch) -> None:
        stream = self.driver.current_stream()
        for array, host in zip(self.inputs, self.pinned, strict=True):
            self.driver.copy(array.data.ptr, host.address, host.nbytes, stream)
            watch.copied(host.nbytes)


class Pageable(Way):
    def set_up(self, stack: ExitStack) -> None:
        self.inputs = [self.xp.empty(source.shape, source.dtype) for source in self.work.sources]
        self.out = self.xp.empty(self.work.shape, self.work.sources[0].dtype)
        self.host = [np.empty_like(source) for source in self.work.sources]

    def bring(self, watch: Stopwatch) -> None:
        for array, host in zip(self.inputs, self.host, strict=True):
            array.set(host)
            watch.copied(host.nbytes)


class OnDemand(Way):
    """CuPy's managed memory, as one gets it with ``cupy.cuda.set_allocator(MemoryPool(malloc_managed).malloc)``."""

    def set_up(self, stack: ExitStack) -> None:
        work, cuda = self.work, self.xp.cuda
        limit = work.scratch + work.nbytes
        stack.enter_context(guard.managed(2 * limit, self.driver))
        pool = cuda.MemoryPool(cuda.malloc_managed)
        pool.set_limit(size=2 * limit)
        stack.callback(pool.free_all_blocks)
        self.allocator = pool.malloc
        with cuda.using_allocator(pool.malloc):
            self.inputs = [self.xp.empty(source.shape, source.dtype) for source in work.sources]
            self.out = self.xp.empty(work.shape, work.sources[0].dtype)
        self.host = [_host_of(array) for array in self.inputs]


class Prefetched(OnDemand):
    def bring(self, watch: Stopwatch) -> None:
        stream = self.driver.current_stream()
        for array in self.inputs:
            self.driver.prefetch(array.data.ptr, array.nbytes, Device(0), stream)


class Access(Way):
    """umarray's pool. The host writes past umarray where `raw`, else in a host view."""

    raw = True

    def set_up(self, stack: ExitStack) -> None:
        work = self.work
        pool = um.pool(work.nbytes + work.scratch + (32 << 20))
        stack.callback(pool.close)
        self.allocator = pool.malloc
        self.inputs = [um.empty(source.shape, source.dtype, pool=pool) for source in work.sources]
        self.out = um.empty(work.shape, work.sources[0].dtype, pool=pool)
        with um.access(writes=[*self.inputs, self.out]):
            for array in (*self.inputs, self.out):
                array[...] = 0
        self.driver.synchronize()
        self.host = [_host_of(array) for array in self.inputs] if self.raw else []

    def round(self) -> Measured:
        with Stopwatch() as writing:
            self.work.write(self.turn, self.host)
        with Stopwatch(self.driver.synchronize) as watch:
            self.work_in_access()
        return watch.measured(self.work.sample(self.out), write=writing)

    def work_in_access(self) -> None:
        with um.access(reads=self.inputs, writes=self.out):
            self.work.compute(self.inputs, self.out)


class HostView(Access):
    raw, wait = False, True

    def round(self) -> Measured:
        view = um.host_view(list(self.inputs), "w", streams=[], wait=self.wait)  # the last round was waited for
        with Stopwatch() as writing:
            self.work.write(self.turn, view.__enter__())
        with Stopwatch(self.driver.synchronize) as watch:
            view.__exit__(None, None, None)
            self.work_in_access()
        return watch.measured(self.work.sample(self.out), write=writing)


class Queued(HostView):
    wait = False


def _host_of(array: Any) -> Any:
    """A managed array's memory as the host sees it, past umarray."""
    return host_bytes(array.data.ptr, array.nbytes, array).view(array.dtype).reshape(array.shape)


@contextmanager
def ways(work: Work) -> Iterator[dict[str, Way]]:
    """The ways that this machine has; the first is what the others are compared with."""
    found: dict[str, type[Way]] = {"explicit, pinned": Pinned, "explicit, pageable": Pageable}
    if work.driver.mode is Mode.MANAGED:
        found |= {"managed, on demand": OnDemand, "managed, prefetched": Prefetched, "umarray, access": Access}
    found |= {"umarray, host_view": HostView, "umarray, host_view queued": Queued}
    made: dict[str, Way] = {}
    with ExitStack() as stack:
        for name, way in found.items():
            made[name] = way(work, stack)
        try:
            yield dict(made)
        finally:
            work.driver.synchronize()
            for one in made.values():
                one.host, one.inputs, one.out = [], [], None
            made.clear()


def measure(report: Report, cases: Iterable[tuple[str, Callable[[Driver], Work]]], tolerance: float) -> None:
    """Go through the cases, each with all its ways, and finish the report."""
    driver = get_driver()
    if driver.mode is Mode.HOST:
        report.skip(report.name, "in host mode nothing has to reach a device")
    else:
        with guarded(driver):
            for case, work in cases:
                with ways(work(driver)) as variants:
                    report.compare(case, variants, tolerance=tolerance, warmup=WARMUP)
                    del variants
    report.finish()
