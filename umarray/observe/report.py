"""What a watch saw, frozen: figures with their source, and what each array had to do with them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from umarray import html
from umarray.memory.tracking import Escape
from umarray.observe.charge import Charged
from umarray.observe.counters import About, Counts
from umarray.sizes import format_size

_MOST_ARRAYS = 5  # in the table


@dataclass(frozen=True)
class Requests:
    """umarray's own record: what was asked for or queued. Whether it happened, only a source of effects can say."""

    prefetches: int = 0
    """Calls that the driver took."""
    prefetch_bytes: int = 0
    advice: int = 0
    """Hints that were set or unset."""
    unsupported: int = 0
    """Hints that were no-ops."""
    copied_to_device_bytes: int = 0
    """Bytes queued to be copied explicitly."""
    copied_to_host_bytes: int = 0
    driver_allocations: int = 0
    driver_bytes: int = 0


@dataclass(frozen=True)
class WatchReport(html.Shown):
    """What happened in a block. A figure that nobody here can see is None.

    Notes
    -----
    Everything but `allocations` and what follows from it is of the whole process, all threads. Blocks are those of
    umarray's pools: in the watching thread however they are made, in others those of pools with ``track=True`` and
    those that `umarray.empty` and its like make.
    """

    seconds: float
    counts: Counts
    """What moved."""
    requests: Requests
    """What was asked for."""
    stalls: int
    """Times that umarray kept the host waiting for a device."""
    stall_seconds: float
    allocations: int
    """Blocks that pools handed out."""
    allocated_bytes: int
    peak_bytes: int
    """The most that was alive at one time of what was made inside."""
    alive_bytes: int
    """What was made inside and was alive at the end."""
    escapes: tuple[Escape, ...]
    """What epochs that ended inside left alive, by the line that made it."""
    arrays: tuple[Charged, ...]
    """What moved and what waited, by array, the most first; where a source tells addresses."""
    sources: tuple[About, ...]
    """Who tells of the effects."""
    reasons: tuple[str, ...]
    """Why others cannot."""
    lost: int
    """Records that there was no room for: figures by array, used and unused bytes are then too low."""
    synchronized: bool
    """Whether the work that was queued inside is in it to its end."""

    @property
    def faults(self) -> int | None:
        """Faults of devices and of the host together."""
        seen = [one for one in (self.counts.device_faults, self.counts.host_faults) if one is not None]
        return sum(seen) if seen else None

    @property
    def moved_bytes(self) -> int | None:
        """Bytes that moved, all ways together."""
        counts = self.counts
        ways = (counts.bytes_to_device, counts.bytes_to_host, counts.bytes_between_devices)
        seen = [one for one in ways if one is not None]
        return sum(seen) if seen else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "counts": _dict(self.counts),
            "requests": _dict(self.requests),
            "escapes": [_dict(one) for one in self.escapes],
            "arrays": [{**_dict(one), "shape": None if one.shape is None else list(one.shape)} for one in self.arrays],
            "reasons": list(self.reasons),
            "sources": [{**_dict(one), "sees": list(one.sees), "blind": list(one.blind)} for one in self.sources],
        }

    def rows(self) -> list[tuple[str, str]]:
        """Names and figures of the table; what is not seen or zero, and says nothing by that, is left out."""
        counts, requests = self.counts, self.requests
        rows = [("seconds", f"{self.seconds:.6f}{'' if self.synchronized else ' (queued work may go on)'}")]
        if self.sources:
            rows += [
                ("faults", f"devices {_count(counts.device_faults)}, host {_count(counts.host_faults)}"),
                ("moved", f"to devices {_size(counts.bytes_to_device)}, to the host {_size(counts.bytes_to_host)}"),
            ]
            rows += _if("between devices", counts.bytes_between_devices)
            if counts.prefetched_bytes:
                unused = "" if counts.unused_bytes is None else f", never used {_size(counts.unused_bytes)}"
                used = "" if counts.used_bytes is None else f" (used {_size(counts.used_bytes)}{unused})"
                rows.append(("prefetched", _size(counts.prefetched_bytes) + used))
            rows += _if("evicted", counts.evicted_bytes) + _if("mapped", counts.mapped_bytes)
        else:
            rows.append(("moved", "; ".join(("nobody here can see what moves", *self.reasons))))
        asked = f"{requests.prefetches} prefetches of {_size(requests.prefetch_bytes)}, {requests.advice} hints"
        rows.append(("asked for", f"{asked}{f', {requests.unsupported} unsupported' if requests.unsupported else ''}"))
        rows += _if("copied to devices", requests.copied_to_device_bytes)
        rows += _if("copied to the host", requests.copied_to_host_bytes)
        if self.stalls:
            rows.append(("stalls", f"{self.stalls}, {self.stall_seconds:.6f} s"))
        blocks = f"{self.allocations} blocks, {_size(self.allocated_bytes)}, peak {_size(self.peak_bytes)}"
        rows.append(("allocated", blocks))
        if self.escapes:
            escaped = sum(one.count for one in self.escapes), sum(one.nbytes for one in self.escapes)
            rows.append(("escapes", f"{escaped[0]}, {_size(escaped[1])}"))
        if counts.modelled_seconds:
            rows.append(("modelled cost", f"{counts.modelled_seconds:.6f} s"))
        if self.lost:
            rows.append(("records lost", f"{self.lost}"))
        rows.append(("seen by", ", ".join(map(str, self.sources)) or "umarray's own record (requests)"))
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        lines += [f"  {one}" for one in self.arrays[:_MOST_ARRAYS]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ("array", "made at", "faults", "to devices", "to the host")
        body = [
            (one.shown, one.line, one.faults, _size(one.bytes_to_device), _size(one.bytes_to_host))
            for one in self.arrays[:_MOST_ARRAYS]
        ]
        return html.page("watch", html.pairs(self.rows()), *([html.table(head, body)] if body else []))


def _dict(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _count(value: int | None) -> str:
    return "not seen" if value is None else f"{value:,}"


def _size(value: int | None) -> str:
    return "not seen" if value is None else format_size(value)


def _if(name: str, nbytes: int | None) -> list[tuple[str, str]]:
    return [(name, format_size(nbytes))] if nbytes else []
