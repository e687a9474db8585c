"""Facts that are made up: arrays of whole pages, and what happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from umarray.observe.facts import Costs, Facts, Made, Move, Named
from umarray.observe.findings.finding import Case, case_of
from umarray.places import HOST, Device, Place

PAGE = 4096
GPU = Device(0)
COSTS = Costs(fault=20e-6, host_fault=25e-6, call=50e-6, demand=2.8e9, to_device=26e9, to_host=26e9, between=50e9)
BASE = 1 << 20


def moved(first: int, pages: int, origin: Place, to: Place, *, at: float = 0.0, **more: Any) -> Move:
    """A run of pages that moved; on demand, each with a fault, where nothing else is said."""
    cause = more.pop("cause", "fault")
    faults = more.pop("faults", pages if cause == "fault" else 0)
    kind = more.pop("kind", "moved")
    return Move(at, BASE + first * PAGE, pages * PAGE, origin, to, kind, cause, faults, more.pop("write", False))


def used(first: int, pages: int, to: Place, *, at: float = 0.0) -> Move:
    """A run of prefetched pages that was touched."""
    return Move(at, BASE + first * PAGE, pages * PAGE, to, to, "used", "fault", 0, False)


def named(name: str, first: int, pages: int) -> Named:
    """An array of whole pages."""
    return Named(name, BASE + first * PAGE, pages * PAGE, (pages, PAGE), "uint8")


def in_order(moves: Iterable[Move]) -> tuple[Move, ...]:
    """The moves, each a millisecond after the one before."""
    return tuple(replace(move, time=1e-3 * (number + 1)) for number, move in enumerate(moves))


def case(*moves: Move, arrays: Iterable[Named] = (), made: Iterable[Made] = (), **more: Any) -> Case:
    """A case of moves in this order, over an array "x" of as many pages as they touch if none is given."""
    arrays, made = tuple(arrays), tuple(made)
    if not (arrays or made) and moves:
        last = max(move.stop for move in moves)
        arrays = (named("x", 0, (last - BASE) // PAGE),)
    settings: dict[str, Any] = {"ended": 1.0, "page": PAGE, "memory": {0: 1 << 30}, "costs": COSTS, "sees_uses": True}
    return case_of(Facts(moves=in_order(moves), named=arrays, made=made, **{**settings, **more}))


def there_and_back(rounds: int, pages: int, *, write: bool = False) -> list[Move]:
    """Pages that the device and the host take from each other."""
    return [
        move for _ in range(rounds) for move in (moved(0, pages, HOST, GPU), moved(0, pages, GPU, HOST, write=write))
    ]
