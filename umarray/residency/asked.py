"""umarray's own record of where pages were last asked to be; it says nothing about where they are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

from umarray.drivers.base import Allocation
from umarray.places import Place
from umarray.residency.spans import Span
from umarray.residency.turns import Turns

_start = attrgetter("start")
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

    def note(self, spans: Iterable[Span], place: Place) -> None:
        """Pages of `spans`, which do not overlap, were asked to move to `place`."""
        new = sorted(_Asked(span.start, span.stop, span.allocation.serial, place) for span in spans)
        if new:
            self._turns.submit(lambda: self._put(new), wait=False)

    def places(self, span: Span) -> dict[Place | None, int]:
        """Bytes of `span` by the place last asked for; None where nobody asked."""
        found: dict[Place | None, int] = {}
        runs = self._runs
        first = max(0, bisect_right(runs, span.start, key=_start) - 1)
        if runs and runs[first].start <= span.start and span.stop <= runs[first].stop:  # nearly always
            one = runs[first]
            return {one.place if one.serial == span.allocation.serial else None: span.stop - span.start}
        for run in runs[first : bisect_left(runs, span.stop, key=_start)]:
            nbytes = min(run.stop, span.stop) - max(run.start, span.start)
            if nbytes > 0 and run.serial == span.allocation.serial:
                found[run.place] = found.get(run.place, 0) + nbytes
        rest = span.nbytes - sum(found.values())
        return {**found, None: rest} if rest else found

    def nbytes_at(self, place: Place) -> int:
        """Bytes of living allocations that were last asked to be at `place`."""
        alive: dict[int, bool] = {}  # by serial: many runs lie in one allocation
        total = 0
        for run in self._runs:
            if run.place == place:
                if run.serial not in alive:
                    alive[run.serial] = self._alive(run)
                total += run.stop - run.start if alive[run.serial] else 0
        return total

    def _put(self, new: list[_Asked]) -> None:
        """Enter sorted runs: those that lie between the first and the last of them are looked at, and no others."""
        runs = self._runs
        first = max(0, bisect_right(runs, new[0].start, key=_start) - 2)
        last = min(len(runs), bisect_left(runs, new[-1].stop, key=_start) + 1)
        kept = deque(runs[first:last])
        rest: list[_Asked] = []
        for one in new:
            while kept and kept[0].start < one.stop:
                run = kept.popleft()
                if run.start < one.start:
                    rest.append(run._replace(stop=min(run.stop, one.start)))
                if run.stop > one.stop:
                    kept.appendleft(run._replace(start=one.stop))
            rest.append(one)
        joined: list[_Asked] = []
        for run in (*rest, *kept):
            before = joined[-1] if joined else None
            if before is not None and before.stop == run.start and before[2:] == run[2:]:
                joined[-1] = before._replace(stop=run.stop)
            else:
                joined.append(run)
        joined = [*runs[:first], *joined, *runs[last:]]
        if len(joined) > self._look_at:
            joined = [run for run in joined if self._alive(run)]
            self._look_at = max(_FEW, 2 * len(joined))
        self._runs = tuple(joined)

    def _alive(self, run: _Asked) -> bool:
        allocation = self._find(run.start)
        return allocation is not None and allocation.serial == run.serial
