"""Which bytes that were prefetched to devices were used: followed from records of migrations and first touches."""

from __future__ import annotations

from collections.abc import Iterable

from umarray import events
from umarray.observe.counters import Counts
from umarray.places import Device, Place

Range = tuple[int, int]


class Usage:
    """Follows pages that were prefetched to a device until they are touched where they were brought, or leave.

    Examples
    --------
    >>> from umarray import HOST, Device
    >>> usage = Usage()
    >>> usage.add([events.Migrated(0, 8192, HOST, Device(0), "prefetch", 1.0, 1.0)])
    >>> usage.add([events.Used(4096, 4096, Device(0), None, 2.0)])
    >>> usage.counts().used_bytes, usage.counts().unused_bytes
    (4096, 4096)
    """

    def __init__(self) -> None:
        self._waiting: dict[Place, list[Range]] = {}
        self._brought = self._used = 0

    def add(self, records: Iterable[events.Record]) -> None:
        """Take in what happened, in order."""
        for record in records:
            if isinstance(record, events.Used):
                self._used += self._leave(record.place, (record.address, record.address + record.nbytes))
            elif isinstance(record, events.Migrated):
                span = (record.address, record.address + record.nbytes)
                if record.kind == "moved":
                    self._leave(record.source, span)
                elif record.kind == "dropped":
                    self._leave(record.to, span)
                if record.cause == "prefetch" and record.kind in ("moved", "copied") and isinstance(record.to, Device):
                    self._brought += record.nbytes
                    self._leave(record.to, span)
                    self._waiting.setdefault(record.to, []).append(span)

    def counts(self) -> Counts:
        """`used_bytes` and `unused_bytes` so far."""
        return Counts(used_bytes=self._used, unused_bytes=self._brought - self._used)

    def _leave(self, place: Place, span: Range) -> int:
        """Take a range out of those that wait at a place; how many bytes of it were there."""
        kept, found = [], 0
        for start, stop in self._waiting.get(place, ()):
            low, high = max(start, span[0]), min(stop, span[1])
            if low >= high:
                kept.append((start, stop))
                continue
            found += high - low
            kept += [part for part in ((start, low), (high, stop)) if part[0] < part[1]]
        if found:
            self._waiting[place] = kept
        return found
