"""Bytes that moved although they were about to be overwritten."""

from __future__ import annotations

from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import distinct, faults_of, nbytes_of, on_demand, times
from umarray.observe.subjects import History, Share
from umarray.places import Host, Place

_WHOLE = 0.9  # of an array, from which on first writes mean that it is overwritten and not only written to


def find(case: Case) -> list[Finding]:
    """One finding for an array and a place at which it was overwritten: every page's first touch there was a write."""
    found = []
    for history in case.histories:
        by_place: dict[Place, list[Share]] = {}
        for share in history.shares:
            if on_demand(share.move):
                by_place.setdefault(share.move.to, []).append(share)
        for place, shares in by_place.items():
            written = [share for share in shares if share.move.write]
            size = history.subject.nbytes // case.facts.page * case.facts.page
            if (
                size
                and distinct(share.move for share in written) >= _WHOLE * size
                and len(written) >= _WHOLE * len(shares)
            ):
                found.append(_finding(case, history, place, written))
    return found


def _finding(case: Case, history: History, place: Place, shares: list[Share]) -> Finding:
    moves = [share.move for share in shares]
    nbytes, cost, x = nbytes_of(moves), case.cost(moves), history.subject.label
    host = isinstance(place, Host)
    who = "The host" if host else str(place)
    return Finding(
        "stale bytes moved",
        history.subject,
        f"{who} overwrites all of it: what it held was brought there for nothing.",
        f'with um.host_view({x}, "w") as h:' if host else f"with um.access(writes=[{x}]):",
        cost,
        cost - case.costs.moving(nbytes, moves[0].origin, place, calls=times(moves)),
        evidence={"faults": faults_of(moves), "stale bytes": nbytes},
        claims=claims(history, (share.number for share in shares)),
    )
