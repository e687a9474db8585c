"""A map of a pool's arenas: blocks, free space and escapes, a bar an arena."""

from __future__ import annotations

from typing import Any

from umarray.memory import Pool
from umarray.memory.arena_map import ALIVE, CARVED, ESCAPED, FREE, LIBRARY, PERSISTENT, ArenaMap, arena_maps
from umarray.observe.pictures.picture import Picture, legend, new_figure
from umarray.sizes import format_size

STYLES = {
    ALIVE: {"facecolor": "0.8", "edgecolor": "black"},
    PERSISTENT: {"facecolor": "0.8", "edgecolor": "black", "hatch": "////"},
    LIBRARY: {"facecolor": "0.8", "edgecolor": "black", "hatch": "...."},
    ESCAPED: {"facecolor": "0.25", "edgecolor": "black"},
    CARVED: {"facecolor": "white", "edgecolor": "0.4", "hatch": ".."},
    FREE: {"facecolor": "white", "edgecolor": "black"},
}
SAID = {
    ALIVE: "alive",
    PERSISTENT: "alive, persistent",
    LIBRARY: "held by a library",
    ESCAPED: "escaped from its epoch",
    CARVED: "carved for a stream, free",
    FREE: "free",
}
_NARROW = 0.004  # of a bar: below it a block's edges would hide what it is
_MOST = 16  # arenas


def arena_map(pool: Pool, *, title: str | None = None) -> Picture:
    """Draw each arena of a pool, from its first byte to its last.

    Parameters
    ----------
    pool : pool
        One made with ``track=True`` shows its blocks and which of them escaped; another one shows only what is carved
        for streams, alive or not.

    Raises
    ------
    ValueError
        The pool has no arena yet.
    """
    if not isinstance(pool, Pool):
        raise TypeError(f"arena_map takes a pool of umarray's, not {pool!r}")
    maps = arena_maps(pool)
    if not maps:
        raise ValueError(f"{pool!r} has nothing to draw: it gets its first arena with its first array")
    shown = maps[:_MOST]
    figure = new_figure(10, 1.6 + 0.62 * len(shown))
    axes = figure.add_subplot()
    unit, name = _unit(max(one.nbytes for one in shown))
    for row, one in enumerate(shown):
        _bar(axes, row, one, unit)
    axes.set_yticks(range(len(shown)), [_label(row, one) for row, one in enumerate(shown)])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0, max(one.nbytes for one in shown) / unit)
    axes.set_xlabel(f"offset in the arena ({name})")
    axes.set_ylabel("arena")
    axes.set_title(_title(pool, maps) if title is None else title)
    kinds = [kind for kind in SAID if any(one.nbytes_of(kind) for one in shown)]
    said = SAID if shown[0].tracked else {**SAID, CARVED: "carved for a stream (alive or not: not tracked)"}
    sizes = {kind: format_size(sum(one.nbytes_of(kind) for one in shown)) for kind in kinds}
    legend(figure, [(f"{said[kind]}: {sizes[kind]}", STYLES[kind]) for kind in kinds])
    return Picture(figure, f"map of {len(shown)} of {len(maps)} arenas")


def _bar(axes: Any, row: int, one: ArenaMap, unit: int) -> None:
    """The runs, narrow neighbours of one kind drawn as one and without an edge."""
    narrow = one.nbytes * _NARROW
    drawn: list[tuple[int, int, str, bool]] = []  # offset, bytes, kind, with an edge
    for run in one.runs:
        edged = run.nbytes >= narrow
        last = drawn[-1] if drawn else None
        if last is not None and not edged and not last[3] and last[2] == run.kind:
            drawn[-1] = (last[0], last[1] + run.nbytes, run.kind, False)
        else:
            drawn.append((run.offset, run.nbytes, run.kind, edged))
    for offset, nbytes, kind, edged in drawn:
        style = STYLES[kind] if edged else {**STYLES[kind], "edgecolor": "none", "hatch": None}
        axes.barh(row, nbytes / unit, 0.7, offset / unit, linewidth=0.6, **style)
    axes.barh(row, one.nbytes / unit, 0.7, 0, facecolor="none", edgecolor="black", linewidth=1.0)


def _label(row: int, one: ArenaMap) -> str:
    return f"{row}: device {one.device}\n{format_size(one.nbytes)}"


def _title(pool: Pool, maps: tuple[ArenaMap, ...]) -> str:
    more = f", the first {_MOST}" if len(maps) > _MOST else ""
    return f"{pool.kind.value} pool: {len(maps)} {'arena' if len(maps) == 1 else 'arenas'}{more}"


def _unit(nbytes: int) -> tuple[int, str]:
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= 2 * size:
            return size, name
    return 1, "bytes"
