"""umarray's own record of where pages were last asked to be; it says nothing about where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from umarray.drivers.base import Allocation
from umarray.places import Place
from umarray.residency.spans import Span
from umarray.residency.turns import Turns

_FEW = 64  # runs from which on those of freed allocations are looked for


class _Asked(NamedTuple):
    start: int
    stop: int
    serial: int
    place: Place


class LastAsked:
    """The place last asked for, by page run.

    Notes
    -----
    Safe from any thread; readers need no lock, the sorted runs being replaced as a whole. Runs of allocations that were
    freed are dropped when the record has doubled, so it stays as small as what is alive.
    """

    def __init__(self, find: Callable[[int], Allocation | None]) -> None:
        self._find = find
        self._runs: tuple[_Asked, ...] = ()
        self._turns = Turns()
        self._look_at = _FEW

    def note(self, span: Span, place: Place) -> None:
        """Pages of `span` were asked to move to `place`."""
        new = _Asked(span.start, span.stop, span.allocation.serial, place)
        self._turns.submit(lambda: self._put(new), wait=False)

    def places(self, span: Span) -> dict[Place | None, int]:
        """Bytes of `span` by the place last asked for; None where nobody asked."""
        found: dict[Place | None, int] = {}
        for run in self._runs:
            nbytes = min(run.stop, span.stop) - max(run.start, span.start)
            if nbytes > 0 and run.serial == span.allocation.serial:
                found[run.place] = found.get(run.place, 0) + nbytes
        rest = span.nbytes - sum(found.values())
        return {**found, None: rest} if rest else found

    def nbytes_at(self, place: Place) -> int:
        """Bytes of living allocations that were last asked to be at `place`."""
        return sum(run.stop - run.start for run in self._runs if run.place == place and self._alive(run))

    def _put(self, new: _Asked) -> None:
        runs = []
        for run in self._runs:
            if run.start < new.start:
                runs.append(run._replace(stop=min(run.stop, new.start)))
            if run.stop > new.stop:
                runs.append(run._replace(start=max(run.start, new.stop)))
        joined: list[_Asked] = []
        for run in sorted([*runs, new], key=lambda run: run.start):
            last = joined[-1] if joined else None
            if last is not None and last.stop == run.start and last[2:] == run[2:]:
                joined[-1] = last._replace(stop=run.stop)
            else:
                joined.append(run)
        if len(joined) > self._look_at:
            joined = [run for run in joined if self._alive(run)]
            self._look_at = max(_FEW, 2 * len(joined))
        self._runs = tuple(joined)

    def _alive(self, run: _Asked) -> bool:
        allocation = self._find(run.start)
        return allocation is not None and allocation.serial == run.serial
