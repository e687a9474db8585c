"""What lies where in a pool's arenas: live blocks, escapes, what is carved for streams, and free space."""

from __future__ import annotations

from dataclasses import dataclass, replace

from umarray.memory.pool import Pool
from umarray.memory.reserve import Slab

FREE, CARVED, ALIVE, PERSISTENT, LIBRARY, ESCAPED = "free", "carved", "alive", "persistent", "library", "escaped"


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring bytes of one kind."""

    offset: int
    nbytes: int
    kind: str
    """"free"; "carved" for a stream (in a pool that does not track, alive or not); of a pool that tracks: "alive",
    "persistent" (made in `pool.persistent()`), "library" (held by an FFT plan), "escaped" (made in an epoch that has
    ended)."""
    line: str = ""
    """`file:number` that made the block."""


@dataclass(frozen=True, slots=True)
class ArenaMap:
    """One arena."""

    device: int
    address: int
    nbytes: int
    tracked: bool
    runs: tuple[Run, ...]
    """From its first byte to its last, without gaps."""

    def nbytes_of(self, kind: str) -> int:
        """Bytes of one kind."""
        return sum(run.nbytes for run in self.runs if run.kind == kind)


def arena_maps(pool: Pool) -> tuple[ArenaMap, ...]:
    """The arenas of a pool at this moment; while other threads allocate, nearly so.

    Examples
    --------
    >>> import umarray as um
    >>> from umarray.memory.arena_map import arena_maps
    >>> with um.pool("1MiB", track=True) as pool:
    ...     x = um.zeros(1000)
    ...     arena_maps(pool)[0].nbytes_of("alive")
    8192
    """
    pool.statistics()  # takes in what came back
    blocks = _blocks(pool) if pool.tracking else []
    found = []
    for device, reserve in sorted(pool._reserves.items()):
        for slab in reserve.slabs:
            start, stop = slab.allocation.address, slab.allocation.address + slab.allocation.nbytes
            inside = [(address - start, run) for address, run in blocks if start <= address < stop]
            found.append(ArenaMap(device, start, stop - start, pool.tracking, _runs(slab, inside)))
    return tuple(found)


def _blocks(pool: Pool) -> list[tuple[int, Run]]:
    """Addresses of live blocks and what they are."""
    since, libraries, found = pool.epochs.since(), frozenset(pool.library_blocks()), []
    for block in pool.tracker.blocks():
        escaped = block.in_epoch and (since is None or block.serial < since)
        kind = PERSISTENT if block.persistent else ESCAPED if escaped else ALIVE
        kind = LIBRARY if block.address in libraries else kind
        found.append((block.address, Run(0, block.nbytes, kind, block.line)))
    return sorted(found, key=lambda one: one[0])


def _runs(slab: Slab, blocks: list[tuple[int, Run]]) -> tuple[Run, ...]:
    """An arena's ranges, and where blocks are known, these in place of what was carved for them."""
    runs: list[Run] = []
    for offset, nbytes, used in slab.arena.ranges():
        at, stop = offset, offset + nbytes
        for start, block in blocks if used else ():
            if at <= start < stop:
                if start > at:
                    runs.append(Run(at, start - at, CARVED))
                size = min(block.nbytes, stop - start)
                runs.append(replace(block, offset=start, nbytes=size))
                at = start + size
        if at < stop:
            runs.append(Run(at, stop - at, CARVED if used else FREE))
    return tuple(runs)
