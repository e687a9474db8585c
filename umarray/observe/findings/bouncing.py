"""An array that goes back and forth between places, page by page."""

from __future__ import annotations

from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import Visited, code, demanded, distinct, faults_of, nbytes_of, on_demand, waited
from umarray.observe.subjects import History, Share
from umarray.places import Device, Host


def find(case: Case) -> list[Finding]:
    """One finding for an array of which pages went to and fro on demand, and did it again."""
    found = []
    for history in case.histories:
        visited = Visited(case.facts.page)
        for move in history.moves:
            if on_demand(move):
                visited.add(move)
        bouncing = [share for share in history.shares if waited(share.move) and visited.bouncing(share.move)]
        if bouncing:
            found.append(_finding(case, history, bouncing, visited))
    return found


def _finding(case: Case, history: History, shares: list[Share], visited: Visited) -> Finding:
    moves = [share.move for share in shares]
    cost, x, costs = case.cost(moves), history.subject.label, case.costs
    between = [move for move in moves if isinstance(move.origin, Device) and isinstance(move.to, Device)]
    rounds = max(1, visited.rounds(moves))
    if 2 * nbytes_of(between) > nbytes_of(moves):
        places = sorted({place for move in between for place in (move.origin, move.to) if isinstance(place, Device)})
        written = any(move.write for move in moves)
        if written:
            others = places[1:] if len(places) > 2 else places[1]
            remedy = f"with um.advise({x}, preferred_location={code(places[0])}, accessed_by={_several(others)}):"
            left = costs.moving(distinct(moves), None, places[0], calls=1)
        else:
            remedy = f"with um.advise({x}, read_mostly=True):"
            pages = distinct(moves)
            left = sum(demanded(case, pages, place, place) for place in places[1:])
        what = f"It goes from device to device whenever another one touches it ({_names(places)})."
    else:
        home = [move for move in moves if isinstance(move.to, Host) and move.carries]
        away = next(move.to for move in moves if isinstance(move.to, Device) and move.carries)
        remedy = f'with um.host_view({x}, "r+") as h:  # its pages stay on the device'
        first = distinct(moves)
        left = demanded(case, first, home[0].to, away)
        left += costs.moving(nbytes_of(home), away, home[0].to) + costs.moving(nbytes_of(home), home[0].to, away)
        what = f"It goes back and forth between the host and {away}, fault by fault."
    return Finding(
        "bouncing",
        history.subject,
        what,
        remedy,
        cost,
        cost - left,
        evidence={"rounds": rounds, "faults": faults_of(moves), "moved bytes": nbytes_of(moves)},
        claims=claims(history, (share.number for share in shares)),
    )


def _several(places: Device | list[Device]) -> str:
    return code(places) if isinstance(places, Device) else f"[{', '.join(code(one) for one in places)}]"


def _names(places: list[Device]) -> str:
    return ", ".join(str(one.id) for one in places)
