"""Which array each page belonged to, at the time: what moved, shared out to the arrays that it happened to.

Arrays are known from the blocks that pools made (with the line), from names, and from what scopes were given. Arrays
that one line made are one subject: a loop's temporaries are one thing to whoever reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple, TypeAlias

from umarray.observe.facts import Facts, Move, Named
from umarray.sizes import format_size


@dataclass(frozen=True, slots=True)
class Subject:
    """An array, or the arrays that one line made."""

    name: str
    """In the caller's or the notebook's namespace; empty where it has none."""
    line: str
    """`file:number` that made it; empty where that was not tracked."""
    address: int
    nbytes: int
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    count: int = 1
    """How many arrays the line made."""

    @property
    def label(self) -> str:
        """What to call it in a line of code."""
        return self.name or "x"

    def __str__(self) -> str:
        if not self.nbytes:
            return "memory that no array is known for"
        what = f"{self.dtype}{list(self.shape)}" if self.shape is not None else format_size(self.nbytes)
        named = f"{self.name} ({what})" if self.name else what
        many = f", {self.count} of them," if self.count > 1 else ","
        return named + (f"{many} made at {self.line}" if self.line else f" at {self.address:#x}")


class Share(NamedTuple):
    """A subject's part of a move."""

    number: int
    """Of the move, in `Facts.moves`."""
    move: Move
    """Cut to the subject's pages."""
    contested: bool
    """The page holds other arrays too."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a subject's pages, in order."""

    subject: Subject
    ranges: tuple[tuple[int, int], ...] = ()
    """Where its arrays lay."""
    shares: tuple[Share, ...] = ()

    @property
    def moves(self) -> list[Move]:
        return [share.move for share in self.shares]

    def overlaps(self, start: int, stop: int) -> bool:
        """Whether one of its arrays lies in a range."""
        return any(start < last and first < stop for first, last in self.ranges)


@dataclass(slots=True)
class _Life:
    """An array at an address, from `born` to `died`."""

    start: int
    stop: int
    born: float
    died: float
    key: object
    line: str = ""
    named: Named | None = None
    assigned: str = ""


_Piece: TypeAlias = tuple[_Life | None, int, int, bool]
"""Who lives there, from where to where, and whether others do too."""


@dataclass(slots=True)
class _Gathered:
    lives: list[_Life] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)


NOBODY = Subject("", "", 0, 0)


def histories(facts: Facts) -> tuple[History, ...]:
    """The history of every array that something happened to, and at last that of pages that belong to none."""
    lives = _lives(facts)
    where = _Index(lives)
    gathered: dict[object, _Gathered] = {}
    for one in lives:
        gathered.setdefault(one.key, _Gathered()).lives.append(one)
    nobody = _Gathered()
    for index, move in enumerate(facts.moves):
        for life, start, stop, contested in _parts(move, where, facts.page, facts.grain):
            group = nobody if life is None else gathered[life.key]
            group.shares.append(Share(index, cut(move, start, stop), contested))
    found = [_history(group) for group in gathered.values() if group.shares]
    if nobody.shares:
        found.append(History(NOBODY, (), tuple(nobody.shares)))
    return tuple(found)


def cut(move: Move, start: int, stop: int) -> Move:
    """The part of a move between two addresses, with its part of the faults."""
    start, stop = max(start, move.address), min(stop, move.stop)
    if (start, stop) == (move.address, move.stop):
        return move
    faults = round(move.faults * (stop - start) / move.nbytes)
    return replace(move, address=start, nbytes=stop - start, faults=faults)


def _lives(facts: Facts) -> list[_Life]:
    lives = [
        _Life(
            one.address,
            one.stop,
            one.time,
            inf if one.gone is None else one.gone,
            one.line or one.address,
            one.line,
            assigned=one.name,
        )
        for one in facts.made
    ]
    blocks = _Index(lives)
    alone: dict[tuple[int, int], _Life] = {}
    for named in sorted(facts.named, key=lambda one: (-bool(one.name), -one.nbytes)):
        if not named.nbytes:
            continue
        hosts = [one for one in blocks.overlapping(named.address, named.stop) if _inside(named, one)]
        for life in hosts:
            if life.named is None or (not life.named.name and named.name):
                life.named = named
        if not hosts and not any(_inside(named, one) for one in alone.values()):
            alone[named.address, named.stop] = _Life(named.address, named.stop, -inf, inf, named, "", named)
    return lives + list(alone.values())


def _inside(named: Named, life: _Life) -> bool:
    return life.start <= named.address and named.stop <= life.stop


class _Index:
    """Finds what lay at an address."""

    def __init__(self, lives: Iterable[_Life]) -> None:
        slots: dict[tuple[int, int], list[_Life]] = {}
        for life in lives:
            slots.setdefault((life.start, life.stop), []).append(life)
        self._keys = sorted(slots)
        self._slots = [sorted(slots[key], key=lambda one: one.born) for key in self._keys]
        self._reach: list[int] = []  # the furthest end of this slot and all before it
        for _, stop in self._keys:
            self._reach.append(max(stop, self._reach[-1] if self._reach else 0))

    def overlapping(self, start: int, stop: int, at: float | None = None) -> list[_Life]:
        """Lives that touch a range; those at a time only, where one is given."""
        found: list[_Life] = []
        index = bisect_right(self._keys, (stop - 1, inf))
        while index and self._reach[index - 1] > start:
            index -= 1
            if self._keys[index][1] <= start:
                continue
            slot = self._slots[index]
            if at is None:
                found += slot
            else:
                last = bisect_right(slot, at, key=lambda one: one.born)
                found += [one for one in slot[max(0, last - 1) : last] if at <= one.died]
        return found[::-1]


def _parts(move: Move, where: _Index, page: int, grain: int) -> list[_Piece]:
    """A move's pages by who lives there; a page with several belongs to the one with most of its bytes."""
    lives = where.overlapping(move.address, move.stop, move.time)
    winners: dict[int, tuple[int, _Life]] = {}
    crowd: dict[int, int] = {}
    for life in lives:
        for first in {life.start // page * page, (life.stop - 1) // page * page}:
            inside = min(life.stop, first + page) - max(life.start, first)
            crowd[first] = crowd.get(first, 0) + 1
            if first not in winners or inside > winners[first][0]:
                winners[first] = (inside, life)
    parts: list[_Piece] = []
    for life in lives:
        first, last = life.start // page * page, -(-life.stop // page) * page
        start, stop = first, last
        for edge in sorted({first, last - page}):
            if crowd[edge] > 1:
                if winners[edge][1] is life:
                    parts.append((life, edge, edge + page, True))
                start, stop = (edge + page, stop) if edge == first else (start, edge)
        if start < stop:
            parts.append((life, start, stop, False))
    pieces = [
        (life, max(start, move.address), min(stop, move.stop), contested)
        for life, start, stop, contested in sorted(parts, key=lambda one: one[1])
        if start < move.stop and stop > move.address
    ]
    return _with_gaps(pieces, move, grain)


def _with_gaps(pieces: list[_Piece], move: Move, grain: int) -> list[_Piece]:
    """The pieces, cut where they overlap, and what lies between them; gaps below the grain go with the piece before."""
    found: list[_Piece] = []
    at = move.address
    for life, start, stop, contested in pieces:
        if at < start < at + grain and found:
            found[-1] = (*found[-1][:2], start, found[-1][3])
        elif at < start < at + grain:
            start = at
        elif start > at:
            found.append((None, at, start, False))
        if stop > at:
            found.append((life, max(at, start), stop, contested))
            at = stop
    if found and at < move.stop < at + grain:
        found[-1] = (*found[-1][:2], move.stop, found[-1][3])
    elif at < move.stop:
        found.append((None, at, move.stop, False))
    return found


def _history(group: _Gathered) -> History:
    lives = group.lives
    named = next((one.named for one in reversed(lives) if one.named is not None), None)
    largest = max(lives, key=lambda one: one.stop - one.start)
    shapes = {one.named.shape for one in lives if one.named is not None}
    subject = Subject(
        _name(named.name if named is not None else "", largest.assigned, len(lives)),
        largest.line,
        largest.start,
        largest.stop - largest.start,
        named.shape if named is not None and len(shapes) == 1 else None,
        named.dtype if named is not None and len(shapes) == 1 else "",
        len(lives),
    )
    return History(subject, tuple((one.start, one.stop) for one in lives), tuple(group.shares))


def _name(found: str, assigned: str, count: int) -> str:
    """What holds one of several arrays (``kept[2]``) is no name for them all: then it is what their line assigns."""
    return (assigned or found) if count > 1 else (found or assigned)
