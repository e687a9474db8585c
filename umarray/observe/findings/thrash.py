"""A working set that is larger than the device: what is pushed out is fetched again, over and over."""

from __future__ import annotations

from dataclasses import dataclass, field

from umarray.observe.facts import Move
from umarray.observe.findings.finding import Case, Claim, Finding
from umarray.observe.findings.pages import nbytes_of
from umarray.observe.ranges import Ranges
from umarray.observe.subjects import NOBODY, History
from umarray.places import Device
from umarray.sizes import format_size

_FILLED = 0.95  # of the room that there was: the rest is for temporaries


@dataclass(slots=True)
class _Part:
    """What one array has to do with it."""

    history: History
    working: Ranges = field(default_factory=Ranges)
    """Its part of the working set."""
    away: Ranges = field(default_factory=Ranges)
    """Pages that were pushed out and did not come again."""
    moves: list[Move] = field(default_factory=list)
    """Evictions, and what came again."""
    claims: set[Claim] = field(default_factory=set)
    returned: int = 0
    """Bytes that came again."""


def find(case: Case) -> list[Finding]:
    """One finding for a device whose pages were evicted and came again."""
    devices = sorted(
        {one.origin for one in case.facts.moves if one.cause == "eviction" and isinstance(one.origin, Device)}
    )
    return [one for device in devices for one in _on(case, device)]


def _on(case: Case, device: Device) -> list[Finding]:
    parts = [_part(history, device) for history in case.histories]
    parts = [part for part in parts if part.working.nbytes]
    evicted = sum(nbytes_of(m for m in part.moves if m.cause == "eviction") for part in parts)
    returned = sum(part.returned for part in parts)
    if not returned:
        return []
    working = sum(part.working.nbytes for part in parts)
    room = working - sum(part.away.nbytes for part in parts)  # what was there at the end is what fits
    excess = min(working, working - int(_FILLED * room))
    candidates = [part for part in parts if part.history.subject is not NOBODY] or parts
    whole = [part for part in candidates if part.working.nbytes >= excess]
    # Least wanted first: fewest bytes that came again for each of its own.
    out = min(whole or candidates, key=lambda part: part.returned / part.working.nbytes)
    moves = [move for part in parts for move in part.moves]
    cost = case.cost(moves)
    left_out = min(excess, out.working.nbytes)
    passes = 1 + out.returned / out.working.nbytes
    x, share = out.history.subject.label, left_out / out.working.nbytes
    return [
        Finding(
            "thrash from oversubscription",
            out.history.subject,
            f"{format_size(working)} take turns on {device}, where {format_size(room)} fit; leave out "
            f"{format_size(left_out)}, of this array {'all' if share > 0.95 else f'{share:.0%}'}.",
            f"with um.advise({_rest(out, x, share)}, preferred_location=um.HOST, accessed_by=um.{device!r}):",
            cost,
            cost - passes * left_out / case.costs.to_device,
            evidence={
                "working set bytes": working,
                "room bytes": room,
                "evicted bytes": evicted,
                "fetched again bytes": returned,
                "leave out bytes": left_out,
            },
            claims=frozenset(claim for part in parts for claim in part.claims),
        )
    ]


def _part(history: History, device: Device) -> _Part:
    part = _Part(history)
    for share in history.shares:
        move = share.move
        evicted = move.cause == "eviction" and (move.origin == device if move.carries else move.to == device)
        if evicted:
            part.moves.append(move)
            part.claims.add((history.subject, share.number))
            part.away.put(move.address, move.stop)
        elif move.to == device and (move.carries or move.kind == "made"):
            part.working.put(move.address, move.stop)
            again = part.away.take(move.address, move.stop)
            if again:
                part.returned += again
                part.moves.append(move)
                part.claims.add((history.subject, share.number))
    return part


def _rest(part: _Part, x: str, share: float) -> str:
    """The part of an array to leave out, as a program writes it."""
    shape = part.history.subject.shape
    if share > 0.95:
        return x
    return f"{x}[{int(shape[0] * (1 - share))}:]" if shape else f"{x}[{1 - share:.0%} of it on]"
