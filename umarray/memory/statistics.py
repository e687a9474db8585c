"""What a pool says of itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from umarray.memory.tracking import Escape


@dataclass(frozen=True, slots=True)
class PoolStatistics:
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
