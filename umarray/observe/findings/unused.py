"""Prefetched to a device and never used there."""

from __future__ import annotations

from dataclasses import dataclass

from umarray.observe.findings.finding import Case, Finding
from umarray.observe.findings.pages import demanded
from umarray.observe.ranges import Ranges
from umarray.observe.subjects import History
from umarray.places import Device, Place

_SCATTERED = 8  # runs of used pages, from which on they are no part


@dataclass(slots=True)
class _Use:
    """What became of what prefetches brought to a place, in bytes."""

    prefetched: int = 0
    unused: int = 0
    back: int = 0
    """Of the unused: what went away again."""
    runs: int = 0
    """Of neighbouring pages that were used one after another."""

    @property
    def scattered(self) -> bool:
        """The used pages lie here and there, so that no prefetch of a part would do."""
        return self.runs >= _SCATTERED


def find(case: Case) -> list[Finding]:
    """One finding for an array and a device; only where the source can tell that a page was used."""
    if not case.facts.sees_uses:
        return []
    found = []
    for history in case.histories:
        places = {move.to for move in history.moves if move.carries and move.cause == "prefetch"}
        for place in sorted(one for one in places if isinstance(one, Device)):
            use = _use(history, place)
            if use.unused:
                found.append(_finding(case, history, place, use))
    return found


def _use(history: History, place: Place) -> _Use:
    waiting, use = Ranges(), _Use()
    for move in history.moves:
        if move.kind == "used" and move.to == place:
            waiting.take(move.address, move.stop)
            use.runs += 1
        elif move.carries and move.to == place and move.cause == "prefetch":
            use.prefetched += move.nbytes
            waiting.put(move.address, move.stop)
        elif (move.origin == place and move.carries) or (move.kind == "dropped" and move.to == place):
            gone = waiting.take(move.address, move.stop)
            use.unused += gone
            use.back += gone if move.kind == "moved" else 0
    use.unused += waiting.nbytes
    return use


def _finding(case: Case, history: History, place: Place, use: _Use) -> Finding:
    origin = next((move.origin for move in history.moves if move.to == place and move.carries), None)
    cost = saving = case.costs.moving(use.unused, origin, place)
    if use.back and origin is not None:
        cost = saving = cost + case.costs.moving(use.back, place, origin)
    x = history.subject.label
    remedy = f"with um.prefetch({x}[used]):  # the part that is used"
    if use.unused >= use.prefetched:
        remedy = f"# leave um.prefetch({x}) out"
    elif use.scattered:  # rows here and there: without the prefetch each would be a fault
        saving -= demanded(case, use.prefetched - use.unused, origin, place)
        remedy = f"# leave um.prefetch({x}) out: few of its pages are used"
    return Finding(
        "prefetched and never used",
        history.subject,
        f"{'None' if use.unused >= use.prefetched else 'Only a part'} of what prefetches brought to {place} was "
        "touched there.",
        remedy,
        cost,
        saving,
        evidence={"prefetched bytes": use.prefetched, "unused bytes": use.unused},
    )
