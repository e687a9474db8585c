"""Small arrays that share a page, and are wanted in different places."""

from __future__ import annotations

from umarray.observe.findings.finding import Case, Claim, Finding
from umarray.observe.findings.pages import Visited, faults_of, nbytes_of, on_demand, waited
from umarray.observe.subjects import NOBODY, History, Share


def find(case: Case) -> list[Finding]:
    """One finding for the arrays that share pages which go back and forth."""
    groups: dict[tuple[int, ...], list[tuple[History, Share]]] = {}
    visited = Visited(case.facts.page)
    contested = [
        (history, share)
        for history in case.histories
        for share in history.shares
        if share.contested and waited(share.move) and history.subject is not NOBODY
    ]
    for _, share in contested:
        if on_demand(share.move):
            visited.add(share.move)
    for history, share in contested:
        if visited.bouncing(share.move):
            on_it = tuple(
                index for index, one in enumerate(case.histories) if one.overlaps(share.move.address, share.move.stop)
            )
            groups.setdefault(on_it, []).append((history, share))
    return [_finding(case, group, visited) for group in groups.values()]


def _finding(case: Case, group: list[tuple[History, Share]], visited: Visited) -> Finding:
    moves = [share.move for _, share in group]
    cost, subject = case.cost(moves), group[0][0].subject
    first = {move.address: move for move in reversed(moves) if move.carries}.values()
    claimed: frozenset[Claim] = frozenset((history.subject, share.number) for history, share in group)
    rounds, x = visited.rounds(moves), subject.label
    return Finding(
        "arrays that share a page",
        subject,
        "A page that it shares with a neighbour goes where either is used, and is missed by the other.",
        f"{x} = um.empty({'shape' if subject.shape is None else subject.shape}, "
        f"{subject.dtype or 'dtype'!r}, page_aligned=True)",
        cost,
        cost - case.cost(first),
        evidence={
            "pages": len({move.address // case.facts.page for move in moves}),
            "rounds": rounds,
            "faults": faults_of(moves),
            "moved bytes": nbytes_of(moves),
        },
        claims=claimed,
    )
