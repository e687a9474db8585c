"""On-demand faults that a prefetch, or a host view, would hide."""

from __future__ import annotations

from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import faults_of, nbytes_of, times, to_argument, waited
from umarray.observe.subjects import History, Share
from umarray.places import Host, Place
from umarray.sizes import format_size


def find(case: Case) -> list[Finding]:
    """One finding for an array and the place that waited for it."""
    found = []
    for history in case.histories:
        by_place: dict[Place, list[Share]] = {}
        for share in history.shares:
            if waited(share.move):
                by_place.setdefault(share.move.to, []).append(share)
        found += [_finding(case, history, place, shares) for place, shares in by_place.items()]
    return found


def _finding(case: Case, history: History, to: Place, shares: list[Share]) -> Finding:
    moves = [share.move for share in shares]
    nbytes, faults, calls = nbytes_of(moves), faults_of(moves), times(moves)
    origin = next((move.origin for move in moves if move.carries), None)
    cost = case.cost(moves)
    x, host = history.subject.label, isinstance(to, Host)
    return Finding(
        "on-demand faults",
        history.subject,
        f"{'the host' if host else to} waited for {format_size(nbytes)} of it, fault by fault.",
        f"with um.host_view({x}) as h:" if host else f"with um.prefetch({x}{to_argument(to)}):",
        cost,
        cost - case.costs.moving(nbytes, origin, to, calls),
        evidence={"faults": faults, "moved bytes": nbytes, "prefetches that would do": calls},
        claims=claims(history, (share.number for share in shares)),
    )
