"""AMD's kernel driver as a source: migrations, faults and queue evictions, from the KFD's event files."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from pathlib import Path
from weakref import WeakSet

from umarray import events
from umarray.drivers import amdgpu, kfd
from umarray.drivers.base import Driver
from umarray.observe.counters import About, Counts, Taken
from umarray.places import HOST, Device, Host, Place

MOST = 200_000

_SEES = (
    *("device_faults", "host_faults", "bytes_to_device", "bytes_to_host", "bytes_between_devices"),
    *("prefetched_bytes", "evicted_bytes", "queue_evictions", "addresses"),
)
ABOUT = About(
    "AMD's kernel driver (KFD)",
    "as the driver reports",
    _SEES,
    (
        "how much of a range really moved: the driver names whole ranges, in which pages may have been there already",
        "touches of pages that are there already: whether a prefetched page was used",
        "events that did not fit its buffer, which it drops without a word",
    ),
)
_CAUSES = {"prefetch": "prefetch", "device fault": "fault", "host fault": "fault", "eviction": "eviction"}


class Amd:
    """The source. Opens the event files when somebody first watches, and closes them with the last.

    Parameters
    ----------
    driver : Driver
        Its devices are matched with the topology's nodes by their order.
    root : Path
        Of the file system.

    Raises
    ------
    OSError
        There is no KFD, or it may not be opened.
    """

    about = ABOUT
    name = ABOUT.name

    def __init__(self, driver: Driver, root: Path = Path("/")) -> None:
        found = amdgpu.visible(amdgpu.nodes(root), os.environ)
        if not found:
            raise OSError(f"{root / 'sys/class/kfd'} names no GPU")
        os.close(os.open(root / "dev/kfd", os.O_RDWR | os.O_CLOEXEC))
        self._root = root
        self._places: dict[int, Place] = {0: HOST, **{node.gpu_id: Device(i) for i, node in enumerate(found)}}
        self._sessions: WeakSet[AmdSession] = WeakSet()
        self._lock = threading.Lock()
        self._reader: kfd.Reader | None = None
        self.page = os.sysconf("SC_PAGE_SIZE")

    def begin(self) -> AmdSession:
        session = AmdSession(self, _boot_time())
        with self._lock:
            self._sessions.add(session)
            if self._reader is None:
                gpus = [gpu_id for gpu_id in self._places if gpu_id]
                self._reader = kfd.Reader(kfd.open_events(gpus, self._root), self.tell, self.page)
        return session

    def tell(self, one: kfd.Happening) -> None:
        """Hand on what the driver said."""
        for session in list(self._sessions):
            session.add(one)

    def drain(self) -> None:
        """Read what there is."""
        reader = self._reader
        if reader is not None:
            reader.drain()

    def ended(self, session: AmdSession) -> None:
        """A session is over; the last one closes the files."""
        with self._lock:
            self._sessions.discard(session)
            reader, self._reader = (None, self._reader) if self._sessions else (self._reader, None)
        if reader is not None:
            reader.close()

    def place(self, gpu_id: int) -> Place:
        """The place of a GPU's id; of one that this process does not see, the next number that is free."""
        return self._places.setdefault(gpu_id, Device(len(self._places) - 1))


class AmdSession:
    """One interval. The driver writes an event before what it tells of is over, so the end finds all of them."""

    def __init__(self, source: Amd, began: int) -> None:
        self._source, self._began = source, began
        self._to_seconds = time.perf_counter() - began * 1e-9
        self._told: deque[kfd.Happening] = deque(maxlen=MOST)
        self._count = 0
        self._lock = threading.Lock()
        self._over = False
        self._starts: dict[tuple[int, int, int], int] = {}
        self._totals = dict.fromkeys(_SEES[:-1], 0)

    def add(self, one: kfd.Happening) -> None:
        """Take in what the driver said, if it is of the interval."""
        if one.ns >= self._began:
            with self._lock:
                self._told.append(one)
                self._count += 1

    def end(self) -> None:
        if not self._over:
            self._source.drain()
            self._over = True
            self._source.ended(self)

    def take(self) -> Taken:
        if not self._over:
            self._source.drain()
        with self._lock:
            told, count = sorted(self._told, key=lambda one: one.ns), self._count
            self._told.clear()
            self._count = 0
        records = [record for one in told for record in self._records(one)]
        return Taken(tuple(records), count - len(told))

    def counts(self) -> Counts:
        return Counts(**self._totals)

    def _records(self, one: kfd.Happening) -> list[events.Record]:
        at = one.ns * 1e-9 + self._to_seconds
        if isinstance(one, kfd.Eviction):
            self._totals["queue_evictions"] += 1
            return []
        if isinstance(one, kfd.Fault):
            self._totals["device_faults"] += 1
            return [events.Faulted(one.address, self._source.page, self._source.place(one.node), 1, one.write, at)]
        key = (one.address, one.source, one.to)
        if one.began:
            self._starts[key] = one.ns
            return []
        began = self._starts.pop(key, one.ns) * 1e-9 + self._to_seconds
        if one.failed:
            return []
        source, to = self._source.place(one.source), self._source.place(one.to)
        self._totals[_direction(source, to)] += one.nbytes
        if one.trigger in ("prefetch", "eviction"):
            self._totals["prefetched_bytes" if one.trigger == "prefetch" else "evicted_bytes"] += one.nbytes
        cause = _CAUSES.get(one.trigger, "other")
        found: list[events.Record] = [events.Migrated(one.address, one.nbytes, source, to, cause, began, at)]
        if one.trigger == "host fault":  # the driver has no event of its own for it
            self._totals["host_faults"] += 1
            found.insert(0, events.Faulted(one.address, one.nbytes, HOST, 1, None, began))
        return found


def _direction(source: Place, to: Place) -> str:
    if isinstance(to, Host):
        return "bytes_to_host"
    return "bytes_to_device" if isinstance(source, Host) else "bytes_between_devices"


def _boot_time() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
