"""Adding up records as they come, so that figures stay right when the records themselves are too many to keep."""

from __future__ import annotations

from collections import Counter

from umarray import events
from umarray.memory.tracking import Escape
from umarray.observe.report import Requests
from umarray.places import Host


class Tally:
    """What umarray's own records add up to.

    Attributes
    ----------
    stalls, stall_seconds, escapes
        As in `WatchReport`.
    """

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()  # by the names of `Requests`
        self.stalls = 0
        self.stall_seconds = 0.0
        self.escapes: list[Escape] = []

    def add(self, record: events.Record) -> None:
        """Take one in."""
        asked = self._asked
        if isinstance(record, events.Prefetched):
            if record.supported:
                asked["prefetches"] += 1
                asked["prefetch_bytes"] += record.nbytes
            else:
                asked["unsupported"] += 1
        elif isinstance(record, events.Advised):
            asked["advice" if record.supported else "unsupported"] += 1
        elif isinstance(record, events.Copied):
            if isinstance(record.to, Host):
                asked["copied_to_host_bytes"] += record.nbytes
            elif isinstance(record.source, Host):
                asked["copied_to_device_bytes"] += record.nbytes
        elif isinstance(record, events.Waited):
            self.stalls += 1
            self.stall_seconds += record.seconds
        elif isinstance(record, events.Allocated):
            asked["driver_allocations"] += 1
            asked["driver_bytes"] += record.nbytes
        elif isinstance(record, events.EpochEnded):
            self.escapes += [Escape(line, count, nbytes, record.label) for line, count, nbytes in record.lines]

    def requests(self) -> Requests:
        """What was asked for."""
        return Requests(**self._asked)
