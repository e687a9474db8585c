"""Read-mostly advice on an array that is written: every write throws the copies away, and they are made anew."""

from __future__ import annotations

from umarray.observe.facts import Move
from umarray.observe.findings.finding import Case, Finding, claims
from umarray.observe.findings.pages import demanded, distinct, faults_of, nbytes_of
from umarray.observe.subjects import History, Share
from umarray.places import HOST, Device, Host, Place


def find(case: Case) -> list[Finding]:
    """One finding for an array whose copies were dropped by writes and made again."""
    found = []
    advices = [one for one in case.facts.advices if one.advice == "read_mostly"]
    for history in case.histories:
        shares = [
            share
            for share in history.shares
            if any(
                one.time <= share.move.time <= one.until
                and one.address < share.move.stop
                and share.move.address < one.stop
                for one in advices
            )
        ]
        writes = [share for share in shares if share.move.write and share.move.faults]
        copies = [share for share in shares if share.move.kind == "copied"]
        again = nbytes_of(share.move for share in copies) - sum(
            distinct(share.move for share in copies if share.move.to == place)
            for place in {share.move.to for share in copies}
        )
        if writes and again > 0:
            found.append(_finding(case, history, writes, copies, again))
    return found


def _finding(case: Case, history: History, writes: list[Share], copies: list[Share], again: int) -> Finding:
    shares = sorted({share.number: share for share in [*writes, *copies]}.values())
    moves = [share.move for share in shares]
    copied = [share.move for share in copies]
    cost, pages = case.cost(moves), distinct(copied)
    to = next((move.to for move in copied if isinstance(move.to, Device)), Device(0))
    by_host = any(isinstance(_who(share.move), Host) for share in writes)
    x = history.subject.label
    left = demanded(case, pages, HOST, to)
    if by_host:
        left += case.costs.moving(nbytes_of(copied), HOST, to)
    remedy = f'with um.host_view({x}, "r+") as h:  # and no read_mostly=True' if by_host else "# no read_mostly=True"
    return Finding(
        "read-mostly, and written",
        history.subject,
        "Each write throws the copies away, and the next reader makes them again.",
        remedy,
        cost,
        cost - left,
        evidence={
            "write faults": faults_of(share.move for share in writes),
            "copied bytes": nbytes_of(copied),
            "copied again bytes": again,
        },
        claims=claims(history, (share.number for share in shares)),
    )


def _who(move: Move) -> Place | None:
    """Who waited: a copy that was dropped is not the writer's."""
    return move.origin if move.kind == "dropped" else move.to
