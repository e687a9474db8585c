"""What NVIDIA's CUPTI tells of managed memory: every transfer and every group of faults, with address and cause.

Needs `cupti-python` of the toolkit's major version (and `pyelftools`, which it imports) and the toolkit's libcupti.
The fields are those of CUpti_ActivityUnifiedMemoryCounter3 (CUPTI documentation): of a transfer `value` is its bytes
and `flags` its cause; of faults of a device `value` is how many and `flags` how it accessed; a fault of the host is a
record of its own, whose `value` is the program counter. Times are those of `cuptiGetTimestamp`, in nanoseconds.

A thread of NVIDIA's driver brings the records, some time later. So whoever must have all of them sends a canary
(`Collector.settle`): a page that the host takes from the device. When that is told, all that was before has been.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import WeakSet

from umarray.drivers.base import Allocation, Driver, Kind, host_bytes
from umarray.errors import NotSupported
from umarray.places import HOST, Device, Place

CAUSES = {1: "prefetch", 2: "coherence", 3: "speculative", 4: "eviction", 5: "access counters"}
"""CUpti_ActivityUnifiedMemoryMigrationCause. 1 is a call of the user's: a prefetch. 2 is what a fault moves."""
WRITES = {1: False, 2: True, 3: True}
"""CUpti_ActivityUnifiedMemoryAccessType: read, write, atomic; others say neither."""
OPEN = 1 << 63  # the end of an interval that goes on
PATIENCE = 10.0  # seconds until a canary must have been told
_BUFFER = 8 << 20  # bytes
_EVERY = 0.001  # seconds between two looks for the canary
_DEAF = 5  # of them without an answer until it is sent again


class Told(NamedTuple):
    """A record of CUPTI's."""

    kind: str
    """"transfer", "device faults" or "host fault"."""
    address: int
    value: int
    """Bytes, faults, or 1."""
    source: Place
    to: Place
    cause: str
    write: bool | None
    start: int
    """CUPTI's nanoseconds."""
    end: int


class Window:
    """The records of one interval, as they come in.

    Notes
    -----
    Belongs to its collector for as long as anybody holds it.
    """

    def __init__(self, began: int, most: int) -> None:
        self.began, self.ended = began, OPEN
        self._told: deque[Told] = deque(maxlen=most)
        self._count = 0
        self._lock = threading.Lock()

    def add(self, one: Told) -> None:
        """Take in one record, if it is of the interval."""
        if self.began <= one.start < self.ended:
            with self._lock:
                self._told.append(one)
                self._count += 1

    def take(self) -> tuple[list[Told], int]:
        """The records since the last time, in order of time, and how many more there were."""
        with self._lock:
            told, count = sorted(self._told, key=lambda one: one.start), self._count
            self._told.clear()
            self._count = 0
        return told, count - len(told)


class Collector:
    """CUPTI's counters, switched on for the rest of the process. Managed memory of before is not counted.

    Raises
    ------
    NotSupported
        `cupti-python` or libcupti is missing, or CUPTI refuses: another profiler has it, or the driver allows counters
        to administrators only.
    """

    def __init__(self, devices: int) -> None:
        try:
            self._cupti: Any = importlib.import_module("cupti.cupti")
        except ImportError as error:
            raise NotSupported(f"CUPTI needs cupti-python and pyelftools (the extra `counters`): {error}") from None
        kinds = self._cupti.ActivityUnifiedMemoryCounterKind
        self._devices = devices
        self._up, self._down = int(kinds.BYTES_TRANSFER_HTOD), int(kinds.BYTES_TRANSFER_DTOH)
        self._across = int(kinds.BYTES_TRANSFER_DTOD)
        self._device_faults, self._host_faults = int(kinds.GPU_PAGE_FAULT), int(kinds.CPU_PAGE_FAULT_COUNT)
        self._windows: WeakSet[Window] = WeakSet()
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._canary: Allocation | None = None
        self._stream = 0
        self._chirped = threading.Event()
        wanted = [self._up, self._down, self._device_faults, self._host_faults]
        wanted += [self._across] if devices > 1 else []
        try:
            self._switch_on([(device, kind) for device in range(devices) for kind in wanted])
        except Exception as error:
            raise NotSupported(f"CUPTI's counters of managed memory cannot be switched on: {error}") from None
        at = self.now()
        self.to_seconds = time.perf_counter() - at * 1e-9
        """To be added to CUPTI's seconds, for `time.perf_counter`."""

    def _switch_on(self, wanted: list[tuple[int, int]]) -> None:
        cupti = self._cupti
        config = cupti.ActivityUnifiedMemoryCounterConfig(len(wanted))
        for index, (device, kind) in enumerate(wanted):
            one = config[index]
            one.scope = int(cupti.ActivityUnifiedMemoryCounterScope.PROCESS_SINGLE_DEVICE)
            one.kind, one.device_id, one.enable = kind, device, 1
        cupti.activity_register_callbacks(lambda: (_BUFFER, 0), self.completed)
        cupti.activity_configure_unified_memory_counter(config.ptr, len(wanted))
        cupti.activity_enable(cupti.ActivityKind.UNIFIED_MEMORY_COUNTER)

    def now(self) -> int:
        """CUPTI's nanoseconds."""
        return int(self._cupti.get_timestamp())

    def open(self, most: int) -> Window:
        """An interval that begins now; it keeps the last `most` records."""
        window = Window(self.now(), most)
        with self._lock:
            self._windows.add(window)
        return window

    def completed(self, activities: Iterable[Any]) -> None:
        """What CUPTI calls with records."""
        with self._lock:
            windows = list(self._windows)
        for activity in activities:
            one = self._read(activity)
            if one is None:
                continue
            if self._is_canary(one.address):
                if one.kind == "host fault":
                    self._chirped.set()
                continue
            for window in windows:
                window.add(one)

    def _read(self, activity: Any) -> Told | None:
        kind = int(getattr(activity, "counter_kind", -1))
        address, value, flags = int(activity.address), int(activity.value), int(getattr(activity, "flags_", 0))
        times = int(activity.start), int(activity.end)
        if kind in (self._up, self._down, self._across):  # only the kind tells the host: its number is no fixed one
            source = HOST if kind == self._up else self._device(activity.src_id, activity.dst_id)
            to = HOST if kind == self._down else self._device(activity.dst_id, activity.src_id)
            return Told("transfer", address, value, source, to, CAUSES.get(flags, "other"), None, *times)
        if kind == self._device_faults:
            device = self._device(activity.src_id, activity.dst_id)
            return Told("device faults", address, value, device, device, "fault", WRITES.get(flags), *times)
        if kind == self._host_faults:
            return Told("host fault", address, 1, HOST, HOST, "fault", None, *times)
        return None

    def _device(self, *numbers: int) -> Device:
        """The first of these numbers that is one of a device."""
        return Device(next((int(number) for number in numbers if 0 <= number < self._devices), 0))

    def flush(self) -> None:
        """Have CUPTI hand over what it has."""
        self._cupti.activity_flush_all(1)

    def settle(self, driver: Driver) -> bool:
        """Wait until all that has happened has been told; whether it was, within `PATIENCE`.

        Notes
        -----
        Works on a page and a stream of its own and waits for no other. The canary is sent again and again, since the
        counters need a while to come on after they were switched on.
        """
        with self._settling:
            if self._canary is None:
                self._stream = driver.create_stream(0)
                self._canary = driver.allocate(driver.page_size, Kind.MANAGED, 0)
            canary, page = self._canary, host_bytes(self._canary.address, self._canary.nbytes, None)
            self._chirped.clear()
            give_up = time.monotonic() + PATIENCE
            while time.monotonic() < give_up:
                driver.prefetch(canary.address, canary.nbytes, Device(0), self._stream)
                driver.synchronize(self._stream, 0)
                page[:] = 1
                for _ in range(_DEAF):
                    self.flush()
                    if self._chirped.wait(_EVERY):
                        return True
        return False

    def _is_canary(self, address: int) -> bool:
        canary = self._canary
        return canary is not None and canary.address <= address < canary.address + canary.nbytes


_collector: Collector | None = None
_lock = threading.Lock()


def collector(devices: int) -> Collector:
    """The process's collector, switched on at the first call.

    Raises
    ------
    NotSupported
        As for `Collector`.
    """
    global _collector
    with _lock:
        if _collector is None:
            _collector = Collector(devices)
        return _collector
