"""Prefetches that came too late: the pages they were asked for were already moving, fault by fault."""

from __future__ import annotations

from umarray.observe.facts import Prefetch
from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import faults_of, nbytes_of, on_demand, to_argument
from umarray.observe.ranges import Ranges
from umarray.observe.subjects import History, Share, cut
from umarray.places import Device


def find(case: Case) -> list[Finding]:
    """One finding for an array; what counts is what first happened to each page after the prefetch was asked for."""
    found = []
    for history in case.histories:
        late: list[Share] = []
        asked = 0
        for prefetch in case.facts.prefetches:
            if isinstance(prefetch.to, Device) and prefetch.supported:
                overtaken = _overtaken(history, prefetch)
                late += overtaken
                asked += bool(overtaken)
        if late:
            found.append(_finding(case, history, late, asked))
    return found


def _overtaken(history: History, prefetch: Prefetch) -> list[Share]:
    """Parts of moves on demand that did what the prefetch was to do."""
    open_pages, found = Ranges([(prefetch.address, prefetch.stop)]), []
    for share in history.shares:
        move = share.move
        if move.time < prefetch.time or move.kind not in ("moved", "copied", "made"):
            continue
        part = open_pages.take(move.address, move.stop)
        if part and on_demand(move) and move.to == prefetch.to:
            start = max(move.address, prefetch.address)
            found.append(share._replace(move=cut(move, start, min(start + part, move.stop))))
    return found


def _finding(case: Case, history: History, late: list[Share], asked: int) -> Finding:
    moves = [share.move for share in late]
    nbytes, cost = nbytes_of(moves), case.cost(share.move for share in late)
    first = moves[0]
    return Finding(
        "prefetched too late",
        history.subject,
        "A kernel reached its pages before the prefetch did, so they came on demand all the same.",
        f"with um.prefetch({history.subject.label}{to_argument(first.to)}):  # before its first kernel",
        cost,
        cost - case.costs.moving(nbytes, first.origin, first.to),
        evidence={"late prefetches": asked, "faults": faults_of(moves), "late bytes": nbytes},
        claims=claims(history, (share.number for share in late)),
    )
