"""Shadows for the arrays of a host view: one for those that touch, so that one copy serves them all."""

from __future__ import annotations

from umarray.drivers.base import Kind
from umarray.errors import OutOfMemory
from umarray.residency.shadow import Gathered, Shadow
from umarray.residency.state import State
from umarray.residency.streams import Lane
from umarray.residency.ways import Part, Way


def staged(parts: list[tuple[Part, Lane]], state: State, scope: int) -> list[Shadow]:
    """Make shadows, each copied on its lane, and lay the parts' arrays over them.

    Raises
    ------
    OutOfMemory
        There is no pinned memory for plain device memory. Managed memory is left to come home then, and says so.

    Notes
    -----
    Arrays without gaps that touch or overlap share a shadow: what is written by one is seen by the other, as it would
    be in their own memory.
    """
    shadows: list[Shadow] = []
    run: list[Part] = []
    stop, before = 0, None
    for part, lane in sorted(parts, key=lambda pair: pair[0].start):
        if run and not (lane == before and part.start <= stop and part.gapless and run[0].gapless):
            shadows += _shadow(run, stop, before, state, scope)
            run = []
        stop = max(stop, part.stop) if run else part.stop
        before = lane
        run.append(part)
    return shadows + _shadow(run, stop, before, state, scope)


def _shadow(run: list[Part], stop: int, lane: Lane | None, state: State, scope: int) -> list[Shadow]:
    if not run or lane is None:
        return []
    first = run[0]
    try:
        if first.gapless:
            shadow = Shadow(state.driver, first.start, stop, lane, state.pinned, scope)
        else:
            shadow = Gathered(state.driver, first.x, first.layout, lane, state.pinned, scope)
    except OutOfMemory as error:
        if any(part.kind is not Kind.MANAGED for part in run):
            raise
        for part in run:
            part.way, part.why = Way.MANAGED, f"there is no pinned memory for a copy ({error})"
        return []
    for part in run:
        part.array = shadow.array(part.layout)
    return [shadow]
