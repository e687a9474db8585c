"""Prefetches on the default stream, which waits for every other stream and keeps every other waiting."""

from __future__ import annotations

from umarray.observe.facts import Prefetch
from umarray.observe.findings.finding import Case, Finding
from umarray.observe.findings.pages import to_argument
from umarray.observe.ranges import Ranges
from umarray.observe.subjects import History

_DEFAULT = (0, 1)  # the legacy default stream's handles


def find(case: Case) -> list[Finding]:
    """One finding for an array that was moved by such a prefetch."""
    asked = [one for one in case.facts.prefetches if one.stream in _DEFAULT and one.supported]
    found = []
    for history in case.histories:
        mine = [one for one in asked if history.overlaps(one.address, one.stop)]
        nbytes, cost = 0, 0.0
        for prefetch in mine:
            moved, seconds = _moved(case, history, prefetch)
            nbytes, cost = nbytes + moved, cost + seconds
        if nbytes:
            to = mine[0].to
            found.append(
                Finding(
                    "prefetch on the default stream",
                    history.subject,
                    "While it moves nothing else runs: the default stream waits for all streams, and they for it.",
                    f"with um.prefetch({history.subject.label}{to_argument(to)}):  # on a stream of umarray's own",
                    cost,
                    cost,
                    evidence={"prefetches": len(mine), "moved bytes": nbytes, "asked at": mine[0].line or "unknown"},
                )
            )
    return found


def _moved(case: Case, history: History, prefetch: Prefetch) -> tuple[int, float]:
    """Bytes that a prefetch moved, and the seconds that it took: each page's first move after it was asked for."""
    pages, nbytes, cost = Ranges([(prefetch.address, prefetch.stop)]), 0, 0.0
    for move in history.moves:
        if move.time >= prefetch.time and move.carries:
            part = pages.take(move.address, move.stop)
            if part and move.cause == "prefetch" and move.to == prefetch.to:
                nbytes += part
                cost += case.costs.moving(part, move.origin, move.to)
    return nbytes, cost
