"""Arenas in which what is free lies in many holes between blocks that live long."""

from __future__ import annotations

from umarray.observe.facts import Facts
from umarray.observe.findings.finding import Case, Finding
from umarray.sizes import format_size

_HOLES = 8  # fewer are no pattern
_LEAST = 1 << 20  # bytes of holes


def find(case: Case) -> list[Finding]:
    """One finding for all that lives when the watch ends, where the holes between blocks are larger than the blocks."""
    alive = [one for one in case.facts.made if one.gone is None]
    holes = _holes(case.facts)
    nbytes = sum(holes)
    if len(holes) < _HOLES or nbytes < max(_LEAST, sum(one.nbytes for one in alive)):
        return []
    return [
        Finding(
            "fragmentation",
            None,
            f"{len(holes)} holes of {format_size(nbytes)} together lie between blocks that are alive: nothing larger "
            f"than {format_size(max(holes))} fits there.",
            'with pool.persistent():  # around what lives long; temporaries in `with pool.epoch("step"):`',
            saving_bytes=nbytes,
            evidence={"holes": len(holes), "holes bytes": nbytes, "alive bytes": sum(one.nbytes for one in alive)},
        )
    ]


def _holes(facts: Facts) -> list[int]:
    """Bytes of each hole between two live blocks, but for what lies between arenas, and between what lives long and the
    rest: no larger than an arena, and not the largest."""
    alive = sorted((one.address, one.stop) for one in facts.made if one.gone is None)
    arena = max((pool.arena_bytes for pool in facts.pools), default=0)
    gaps = [after[0] - before[1] for before, after in zip(alive, alive[1:], strict=False)]
    return sorted(gap for gap in gaps if 0 < gap <= arena)[:-1]
