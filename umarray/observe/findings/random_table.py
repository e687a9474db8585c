"""A table read at random rows, a page at a time."""

from __future__ import annotations

from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import distinct, faults_of, nbytes_of, on_demand, times, to_argument
from umarray.observe.ranges import Ranges
from umarray.observe.subjects import History, Share
from umarray.places import Device
from umarray.sizes import format_size

_PAGES = 16  # an array of fewer is no table
_JUMPS = 0.25  # of the faults, from which on the order is no sweep
_SWEPT = 0.9  # of the pages between the first and the last: from there on that was read whole, in whatever order


def find(case: Case) -> list[Finding]:
    """One finding for an array whose pages come to a device in no order, for reading."""
    found = []
    for history in case.histories:
        if history.subject.nbytes < _PAGES * case.facts.page:
            continue
        by_device: dict[Device, list[Share]] = {}
        for share in history.shares:
            if on_demand(share.move) and isinstance(share.move.to, Device) and share.move.write is not True:
                by_device.setdefault(share.move.to, []).append(share)
        for device, shares in by_device.items():
            jumps = _jumps(shares)
            many = jumps >= _PAGES and jumps >= _JUMPS * faults_of(share.move for share in shares)
            if many and _scattered(shares):
                found.append(_finding(case, history, device, shares, jumps))
    return found


def _scattered(shares: list[Share]) -> bool:
    """Whether pages that were not read remain between those that were. Order alone proves nothing: the threads of a
    device run in any, and drivers move pages in pieces."""
    read = Ranges((share.move.address, share.move.stop) for share in shares)
    parts = list(read)
    return len(parts) >= _PAGES and read.nbytes < _SWEPT * (parts[-1][1] - parts[0][0])


def _jumps(shares: list[Share]) -> int:
    """How often the next run of pages did not follow the one before."""
    moves = [share.move for share in shares]
    return sum(before.stop != after.address for before, after in zip(moves, moves[1:], strict=False))


def _finding(case: Case, history: History, device: Device, shares: list[Share], jumps: int) -> Finding:
    moves = [share.move for share in shares]
    cost, size, x = case.cost(moves), history.subject.nbytes, history.subject.label
    fits = size <= 0.9 * case.facts.memory.get(device.id, size * 2)
    evidence = {"faults": faults_of(moves), "jumps": jumps, "pages read bytes": distinct(moves), "table bytes": size}
    if fits:
        remedy = f"with um.advise({x}, read_mostly=True), um.prefetch({x}{to_argument(device)}):"
        left = case.costs.moving(size, moves[0].origin, device, calls=times(moves))
        what = f"{device} reads it at random, a fault for each page; whole it is {format_size(size)}, one prefetch."
    else:
        remedy = f"with um.advise({x}, preferred_location=um.HOST, accessed_by=um.{device!r}):"
        left = nbytes_of(moves) / case.costs.to_device
        what = f"{device} reads it at random, a fault for each page, and whole it does not fit: reach it over the bus."
    return Finding(
        "a table read at random",
        history.subject,
        what,
        remedy,
        cost,
        cost - left,
        evidence=evidence,
        claims=claims(history, (share.number for share in shares)),
    )
