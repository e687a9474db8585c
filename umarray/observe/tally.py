"""Adding up records as they come, so that figures stay right when the records themselves are too many to keep."""

from __future__ import annotations

from dataclasses import dataclass, field

from umarray import events
from umarray.memory.tracking import Escape
from umarray.observe.report import Requests
from umarray.places import Host


@dataclass(slots=True)
class Tally:
    """What umarray's own records add up to."""

    prefetches: int = 0
    prefetch_bytes: int = 0
    advice: int = 0
    unsupported: int = 0
    copied_to_device_bytes: int = 0
    copied_to_host_bytes: int = 0
    driver_allocations: int = 0
    driver_bytes: int = 0
    stalls: int = 0
    stall_seconds: float = 0.0
    escapes: list[Escape] = field(default_factory=list)

    def add(self, record: events.Record) -> None:
        """Take one in."""
        if isinstance(record, events.Prefetched):
            if record.supported:
                self.prefetches += 1
                self.prefetch_bytes += record.nbytes
            else:
                self.unsupported += 1
        elif isinstance(record, events.Advised):
            self.advice += record.supported
            self.unsupported += not record.supported
        elif isinstance(record, events.Copied):
            if isinstance(record.to, Host):
                self.copied_to_host_bytes += record.nbytes
            elif isinstance(record.source, Host):
                self.copied_to_device_bytes += record.nbytes
        elif isinstance(record, events.Waited):
            self.stalls += 1
            self.stall_seconds += record.seconds
        elif isinstance(record, events.Allocated):
            self.driver_allocations += 1
            self.driver_bytes += record.nbytes
        elif isinstance(record, events.EpochEnded):
            self.escapes += [Escape(line, count, nbytes, record.label) for line, count, nbytes in record.lines]

    def requests(self) -> Requests:
        """What was asked for."""
        return Requests(
            self.prefetches,
            self.prefetch_bytes,
            self.advice,
            self.unsupported,
            self.copied_to_device_bytes,
            self.copied_to_host_bytes,
            self.driver_allocations,
            self.driver_bytes,
        )
