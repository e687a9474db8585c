"""How often pages moved, and in which direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from umarray.observe.facts import ON_DEMAND, Move
from umarray.observe.findings.finding import Case
from umarray.observe.ranges import Ranges
from umarray.places import HOST, Device, Host, Place


@dataclass(slots=True)
class Visits:
    """Of one page: how often it came on demand, by where to."""

    to_host: int = 0
    to_device: int = 0
    """From the host."""
    between: int = 0
    """From one device to another."""

    @property
    def rounds(self) -> int:
        """How often it went back and forth."""
        return max(min(self.to_host, self.to_device), self.between // 2)

    @property
    def bounces(self) -> bool:
        """It did so more than once: a first visit and its way back are no habit."""
        return min(self.to_host, self.to_device) >= 2 or self.between >= 3


@dataclass(slots=True)
class Visited:
    """Of all pages: their visits."""

    page: int
    visits: dict[int, Visits] = field(default_factory=dict)

    def add(self, move: Move) -> None:
        """A run of pages moved on demand."""
        for number in range(move.address // self.page, -(-move.stop // self.page)):
            one = self.visits.get(number)
            if one is None:
                one = self.visits[number] = Visits()
            if isinstance(move.to, Host):
                one.to_host += 1
            elif isinstance(move.origin, Device):
                one.between += 1
            else:
                one.to_device += 1

    def bouncing(self, move: Move) -> bool:
        """Whether most of a run's pages bounce."""
        numbers = range(move.address // self.page, -(-move.stop // self.page))
        return 2 * sum(self.visits[number].bounces for number in numbers if number in self.visits) > len(numbers)

    def rounds(self, moves: Iterable[Move]) -> int:
        """The most often that a page of these went back and forth."""
        numbers = {n for move in moves for n in range(move.address // self.page, -(-move.stop // self.page))}
        return max((self.visits[number].rounds for number in numbers if number in self.visits), default=0)


def on_demand(move: Move) -> bool:
    """Bytes that went from one place to another because somebody touched them."""
    return move.carries and move.cause in ON_DEMAND


def waited(move: Move) -> bool:
    """The same, or a fault that is told apart from what it moved."""
    return on_demand(move) or move.kind == "faulted"


def nbytes_of(moves: Iterable[Move]) -> int:
    """Bytes that moved."""
    return sum(move.nbytes for move in moves if move.carries)


def demanded(case: Case, nbytes: int, origin: Place | None, to: Place) -> float:
    """Seconds in which pages come on demand, once each."""
    return case.costs.demanding(nbytes, origin, to, -(-nbytes // case.facts.page))


def faults_of(moves: Iterable[Move]) -> int:
    """Touches that waited."""
    return sum(move.faults for move in moves)


def distinct(moves: Iterable[Move]) -> int:
    """Bytes of the pages that moved, each counted once."""
    ranges = Ranges()
    for move in moves:
        ranges.put(move.address, move.stop)
    return ranges.nbytes


def times(moves: Iterable[Move]) -> int:
    """How many prefetches would have moved the same: one, or as many as the same page came again."""
    counts: Counter[Place] = Counter()
    known: dict[Place, Ranges] = {}
    for move in moves:
        if move.carries:
            counts[move.to] += move.nbytes
            known.setdefault(move.to, Ranges()).put(move.address, move.stop)
    return max(1, *(round(counts[place] / known[place].nbytes) for place in counts)) if counts else 1


def code(place: Place) -> str:
    """A place as a program writes it."""
    return "um.HOST" if place is HOST else f"um.{place!r}"


def to_argument(place: Place) -> str:
    """`to=` of a prefetch, where it must be said."""
    return "" if place == Device(0) else f", to={code(place)}"
