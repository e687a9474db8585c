"""The driver of a process without a device: NumPy arrays, and hints that are counted no-ops."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from umarray import events
from umarray.drivers.base import (
    Advice,
    Allocation,
    Array,
    Attribute,
    Event,
    Kind,
    MemoryInfo,
    Mode,
    Outcome,
    Traits,
    host_array,
    host_bytes,
)
from umarray.drivers.table import AllocationTable
from umarray.errors import NotSupported, OutOfMemory
from umarray.places import HOST, Place


class _Moment:
    """An event where all work is done when its call returns."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = perf_counter()

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        return None


class HostDriver:
    """`Driver` over ordinary memory; work is done when its call returns, so streams and events order nothing."""

    name = "host"
    mode = Mode.HOST
    page_size = mmap.PAGESIZE
    xp: Any = np

    def __init__(self, reasons: tuple[str, ...] = (), *, table: AllocationTable | None = None) -> None:
        self.reasons = reasons
        self._table = AllocationTable() if table is None else table
        self._maps: dict[int, mmap.mmap] = {}  # single steps of a dict are atomic: a free takes no lock

    def versions(self) -> dict[str, str]:
        return {}

    def advice(self) -> tuple[str, ...]:
        return ()

    def device_count(self) -> int:
        return 0

    def traits(self, device: int) -> Traits:
        raise NotSupported(f"there is no device {device}: this process runs in host mode ({'; '.join(self.reasons)})")

    def current_device(self) -> int:
        return 0

    def memory_info(self, place: Place) -> MemoryInfo:
        return host_memory()

    def allocate(self, nbytes: int, kind: Kind, device: int | None = None) -> Allocation:
        try:
            pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, ValueError, OverflowError) as error:
            info = host_memory()
            raise OutOfMemory(nbytes, info.total - info.free, info.total, f"mmap: {error}") from None
        address = np.frombuffer(pages, dtype=np.uint8).ctypes.data
        allocation = self._table.add(address, nbytes, kind, HOST)
        self._maps[allocation.serial] = pages
        if events.listeners:
            events.emit(events.Allocated(address, nbytes, kind.value, HOST))
        return allocation

    def free(self, allocation: Allocation) -> None:
        self._table.remove(allocation)
        self._maps.pop(allocation.serial).close()
        if events.listeners:
            events.emit(events.Freed(allocation.address, allocation.nbytes, allocation.kind.value, HOST))

    def find(self, address: int) -> Allocation | None:
        return self._table.find(address)

    def as_array(
        self,
        address: int,
        nbytes: int,
        owner: object,
        device: int | None = None,
        dtype: Any = np.uint8,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        return host_array(address, nbytes, owner, dtype, shape)

    def prefetch(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        return Outcome.UNSUPPORTED

    def renew(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        return Outcome.UNSUPPORTED

    def advise(self, address: int, nbytes: int, advice: Advice, place: Place, on: bool) -> Outcome:
        return Outcome.UNSUPPORTED

    def read_range(self, address: int, nbytes: int, attribute: Attribute) -> None:
        return None

    def host_share(self, address: int, nbytes: int) -> float:
        return 1.0

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        host_bytes(target, nbytes, None)[:] = host_bytes(source, nbytes, None)

    def fill(self, address: int, value: int, nbytes: int, stream: int) -> None:
        host_bytes(address, nbytes, None)[:] = value

    def traverse(self, source: int, target: int, nbytes: int, stream: int, device: int) -> None:
        np.add(host_bytes(source, nbytes, None).view("u4"), 1, out=host_bytes(target, nbytes, None).view("u4"))

    def create_stream(self, device: int) -> int:
        return 0

    def destroy_stream(self, stream: int, device: int) -> None:
        return None

    def current_stream(self, device: int | None = None) -> int:
        return 0

    @contextmanager
    def use_stream(self, stream: int, device: int) -> Iterator[None]:
        yield

    def record(self, stream: int, device: int, *, timed: bool = False) -> Event:
        return _Moment()

    def wait(self, stream: int, event: Event) -> None:
        return None

    def elapsed(self, start: Event, end: Event) -> float:
        assert isinstance(start, _Moment) and isinstance(end, _Moment)
        return end.at - start.at

    def synchronize(self, stream: int | None = None, device: int | None = None) -> None:
        return None


def host_memory() -> MemoryInfo:
    """Memory that this process may still use, and in all: the machine's, or its cgroup's where that is less."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free, total = (int(fields[key].split()[0]) * 1024 for key in ("MemAvailable", "MemTotal"))
    for limit_file, usage_file in _cgroup_files():
        try:
            limit, usage = int(limit_file.read_text()), int(usage_file.read_text())
        except (OSError, ValueError):  # no such controller here, or its limit reads "max"
            continue
        if limit < total:
            total, free = limit, min(free, max(0, limit - usage))
    return MemoryInfo(free, total)


def _cgroup_files() -> Iterator[tuple[Path, Path]]:
    """Limit and usage files of this process's cgroup and of its parents, version 2 and then version 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage = Path("/sys/fs/cgroup"), "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        folder = root / path.lstrip("/")
        for parent in (folder, *folder.parents):
            if parent == root.parent or not str(parent).startswith(os.fspath(root)):
                break
            yield parent / limit, parent / usage
