"""Where the pages of arrays were over time, worked out from what migrated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from umarray.events import Began, Migrated, Named, Record
from umarray.places import Device, Place

MOST_PAGES = 4096  # an array: larger ones are followed in coarser pieces
MOST_TIMES = 2000  # an array: what happens closer together is told at once
MOST_PARTS = 64  # a run of neighbouring pages, which went one after another


@dataclass(frozen=True, slots=True)
class Residence:
    """How many bytes of one array each device could reach without a fault, over time."""

    name: str
    """Its name where it had one, else shape and type."""
    nbytes: int
    devices: tuple[int, ...]
    times: tuple[float, ...]
    """`time.perf_counter` seconds; from each on the bytes of the same index hold."""
    bytes_at: tuple[tuple[int, ...], ...]
    """Bytes at each of `devices`, for each time."""


def residences(records: Iterable[tuple[float, Record]], *, most: int = 6) -> tuple[Residence, ...]:
    """The largest arrays that a recording names and that moved, the largest first.

    Parameters
    ----------
    records : iterable of (seconds, record)
        In order of time. Arrays are known by name (`events.Named`) or from scopes that were given them.
    most : int
        How many arrays.

    Notes
    -----
    What lay where before the first record is told from where the first move of each page came; a page that never moved
    counts for no device. Arrays are followed in at most 4,096 pieces; a piece of which a part moved counts as moved.
    """
    listed = list(records)
    moves = [(at, record) for at, record in listed if isinstance(record, Migrated)]
    devices = sorted({place.id for _, one in moves for place in (one.source, one.to) if isinstance(place, Device)})
    found = []
    for name, address, nbytes in _arrays(record for _, record in listed):
        touched = [
            (at, one) for at, one in moves if one.address < address + nbytes and address < one.address + one.nbytes
        ]
        if touched:
            found.append(_follow(name, address, nbytes, touched, devices))
        if len(found) == most:
            break
    return tuple(found)


def _arrays(records: Iterable[Record]) -> list[tuple[str, int, int]]:
    """Name, address and bytes of what is known, the largest first; of several at one place the one with a name."""
    known: dict[tuple[int, int], str] = {}
    for record in records:
        if isinstance(record, Began):
            for one in record.arrays:
                known.setdefault((one.address, one.nbytes), f"{' x '.join(map(str, one.shape))} {one.dtype}")
        elif isinstance(record, Named):
            known[record.address, record.nbytes] = record.name
    largest = sorted(known.items(), key=lambda item: -item[0][1])
    chosen: list[tuple[str, int, int]] = []
    for (address, nbytes), name in largest:
        if nbytes and not any(start <= address and address + nbytes <= start + size for _, start, size in chosen):
            chosen.append((name, address, nbytes))
    return chosen


def _follow(
    name: str, address: int, nbytes: int, moves: Sequence[tuple[float, Migrated]], devices: list[int]
) -> Residence:
    pieces = min(MOST_PAGES, max(1, nbytes // 512))
    size = nbytes / pieces
    there = np.zeros((len(devices), pieces), bool)
    first = np.ones(pieces, bool)

    def piece(at: int) -> int:
        return round((at - address) / size)

    steps = sorted(
        (one.start + (one.end - one.start) * part / parts, number, piece(start), piece(stop), one)
        for number, (_, one) in enumerate(moves)
        for part, parts, start, stop in _parts(one, address, nbytes)
    )
    for _, _, low, high, one in steps:
        if one.kind != "made" and (row := _row(devices, one.source)) is not None:
            there[row, low:high] |= first[low:high]
        first[low:high] = False
    times, levels = [min(one.start for *_, one in steps)], [_levels(there, size)]
    tick = (steps[-1][0] - times[0]) / MOST_TIMES
    for at, _, low, high, one in steps:
        _apply(there, slice(low, high), one, devices)
        level = _levels(there, size)
        if at - times[-1] < tick and len(times) > 1:
            levels[-1] = level
        elif level != levels[-1]:
            times.append(at)
            levels.append(level)
    return Residence(name, nbytes, tuple(devices), tuple(times), tuple(levels))


def _parts(one: Migrated, address: int, nbytes: int) -> Iterator[tuple[int, int, int, int]]:
    """A run in parts, the pages of which went one after another: (number, of how many, start, stop) within an array."""
    parts = max(1, min(MOST_PARTS, one.nbytes // 4096))
    for part in range(parts):
        start = max(address, one.address + one.nbytes * part // parts)
        stop = min(address + nbytes, one.address + one.nbytes * (part + 1) // parts)
        if start < stop:
            yield part + 1, parts, start, stop


def _apply(
    there: np.ndarray[tuple[int, int], np.dtype[np.bool_]], span: slice, one: Migrated, devices: list[int]
) -> None:
    to = _row(devices, one.to)
    if one.kind in ("moved", "made"):
        there[:, span] = False
    if to is not None:
        there[to, span] = one.kind != "dropped"


def _row(devices: list[int], place: Place) -> int | None:
    return devices.index(place.id) if isinstance(place, Device) else None


def _levels(there: np.ndarray[tuple[int, int], np.dtype[np.bool_]], size: float) -> tuple[int, ...]:
    return tuple(round(int(row.sum()) * size) for row in there)
