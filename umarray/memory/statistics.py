"""What a pool says of itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from umarray import html
from umarray.lines import called
from umarray.memory.tracking import Escape
from umarray.sizes import format_size


@dataclass(frozen=True, slots=True)
class PoolStatistics(html.Shown):
    """A pool at one moment. Bytes are summed over its devices. Fields that need tracking are None without it."""

    kind: str
    """What the memory is: managed, device or host."""
    limit_bytes: int
    """What all arenas together may reach (on the devices that were used)."""
    arena_bytes: int
    """Bytes of the arenas that the driver granted."""
    arenas: int
    carved_bytes: int
    """Bytes of the arenas that are handed to streams: roots, or blocks."""
    current_bytes: int
    """Bytes of the blocks that are alive."""
    misses: int
    """Times that umarray was asked, since what was carved for the stream had no room."""
    driver_allocations: int
    """Arenas that the driver was asked for, over all time."""
    deferred_uses: int
    """Blocks held until a stream has finished with them, in the whole process."""
    plain_bytes: int
    """Live bytes made in `pool.plain()`; they are in no arena."""
    library_bytes: int
    """What the FFT plans of the calling thread hold for work: part of `current_bytes`, and no escapes."""
    peak_bytes: int | None
    """The most that was alive at one time since tracking began."""
    total_bytes: int | None
    """All that was ever allocated since tracking began."""
    allocations: int | None
    """How many blocks that was."""
    escapes: tuple[Escape, ...] | None
    """What escaped the epochs so far, a record a line and epoch."""
    fragmentation: float | None
    """Of the bytes below the highest live block of each arena, the share that is not alive (0: none)."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self._title()]
        lines += [f"  {name:<12}{value}" for name, value in self._rows()]
        lines += [
            f"  escaped     {size} in {count} arrays, {line}, {epoch}" for line, count, size, epoch in self._made()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        made = self._made()
        head = ("escaped arrays made at", "arrays", "bytes", "in")
        return html.page(self._title(), html.pairs(self._rows()), html.table(head, made) if made else "")

    def _title(self) -> str:
        return f"{self.kind} pool: {format_size(self.current_bytes)} alive of at most {format_size(self.limit_bytes)}"

    def _rows(self) -> list[tuple[str, str]]:
        arenas = f"{self.arenas}, {format_size(self.arena_bytes)}; {format_size(self.carved_bytes)} of it carved"
        rows = [("arenas", arenas), ("asked", f"the driver {self.driver_allocations}, umarray {self.misses} times")]
        if self.deferred_uses:
            rows.append(("held", f"{self.deferred_uses} blocks until a stream has finished with them"))
        if self.plain_bytes:
            rows.append(("plain", f"{format_size(self.plain_bytes)} of plain memory, in no arena"))
        if self.library_bytes:
            rows.append(("libraries", f"{format_size(self.library_bytes)} held by FFT plans"))
        if self.peak_bytes is None or self.total_bytes is None:
            rows.append(("tracking", "off: peak, total and escapes are not counted (track=True counts them)"))
            return rows
        rows.append(("peak", format_size(self.peak_bytes)))
        rows.append(("in all", f"{self.allocations:,} blocks, {format_size(self.total_bytes)}"))
        rows.append(("fragmented", f"{self.fragmentation or 0:.0%} of the bytes below the highest live block"))
        return rows

    def _made(self) -> list[tuple[str, int, str, str]]:
        return [(called(one.line), one.count, format_size(one.nbytes), one.epoch) for one in self.escapes or ()]


class Showing(html.Shown):
    """A pool as people see it."""

    def __repr__(self) -> str:
        kind, reserves = getattr(self, "kind", None), list(getattr(self, "_reserves", {}).values())
        if kind is None:
            return "<a pool that could not be made>"
        nbytes, arenas = sum(one.arena_bytes for one in reserves), sum(len(one.slabs) for one in reserves)
        state = "closed " if getattr(self, "_closed", False) else ""
        return f"<{state}{kind.value} pool, {format_size(nbytes)} in {arenas} {'arena' if arenas == 1 else 'arenas'}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        statistics: PoolStatistics = self.statistics()  # type: ignore[attr-defined]
        return statistics._repr_html_()
