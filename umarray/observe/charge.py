"""Charging what moved to the arrays that it belongs to, by address and time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from umarray import events
from umarray.observe.recording import Stamped
from umarray.places import Host
from umarray.sizes import format_size


@dataclass(frozen=True)
class Charged:
    """What happened to the pages of one array; of pages that arrays share, each has its own bytes."""

    address: int
    nbytes: int
    shape: tuple[int, ...] | None
    """None where only its block is known."""
    dtype: str
    line: str
    """`file:number` of the code that made it, as far as that was tracked."""
    device_faults: int = 0
    host_faults: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    bytes_between_devices: int = 0
    prefetched_bytes: int = 0

    @property
    def faults(self) -> int:
        return self.device_faults + self.host_faults

    @property
    def moved_bytes(self) -> int:
        return self.bytes_to_device + self.bytes_to_host + self.bytes_between_devices

    @property
    def shown(self) -> str:
        """Shape and type, or bytes."""
        return format_size(self.nbytes) if self.shape is None else f"{self.dtype}{list(self.shape)}"

    def __str__(self) -> str:
        made = f" made at {self.line}" if self.line else f" at {self.address:#x}"
        moved = f"to devices {format_size(self.bytes_to_device)}, to the host {format_size(self.bytes_to_host)}"
        return f"{self.shown}{made}: faults {self.faults:,}, {moved}"


@dataclass(slots=True)
class _Owner:
    """An array, or a block, that lived at an address for a time."""

    start: int
    stop: int
    born: float
    died: float
    shape: tuple[int, ...] | None
    dtype: str
    line: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Life:
    """Owners of the same bytes, one after another: a loop makes thousands of them."""

    start: int
    stop: int
    owners: list[_Owner] = field(default_factory=list)
    born: list[float] = field(default_factory=list)
    died: list[float] = field(default_factory=list)
    """The latest of this owner's end and of those before it."""

    def at(self, time: float) -> Iterator[_Owner]:
        """Those that lived then."""
        index = bisect_right(self.born, time)
        while index and self.died[index - 1] >= time:
            index -= 1
            if self.owners[index].died >= time:
                yield self.owners[index]


def _lives(owners: list[_Owner]) -> list[_Life]:
    found: dict[tuple[int, int], _Life] = {}
    for one in sorted(owners, key=lambda one: (one.start, one.stop, one.born)):
        life = found.setdefault((one.start, one.stop), _Life(one.start, one.stop))
        life.died.append(max(life.died[-1], one.died) if life.died else one.died)
        life.owners.append(one)
        life.born.append(one.born)
    return list(found.values())


def charge(records: Iterable[Stamped]) -> tuple[Charged, ...]:
    """What each array had to do with what moved, the most first.

    Parameters
    ----------
    records : iterable of Stamped
        In order of time. Arrays are known from blocks that were made, from scopes that were given them, and by name.

    Notes
    -----
    A record that spans several arrays is shared out by bytes. Bytes that belong to no known array are charged to none.
    """
    records = list(records)
    owners = _owners(records)
    lives = _lives(owners)
    reach, starts = 0, [one.start for one in lives]
    reaches = []  # the furthest stop of this and all before it
    for life in lives:
        reach = max(reach, life.stop)
        reaches.append(reach)
    for stamped in records:
        record = stamped.record
        if isinstance(record, events.Migrated):
            if record.kind not in ("moved", "copied"):
                continue
            names = [_direction(record)] + (["prefetched_bytes"] if record.cause == "prefetch" else [])
            amounts = dict.fromkeys(names, float(record.nbytes))
        elif isinstance(record, events.Faulted):
            amounts = {"host_faults" if isinstance(record.place, Host) else "device_faults": float(record.count)}
        else:
            continue
        nbytes = max(record.nbytes, 1)
        stop, index = record.address + nbytes, bisect_right(starts, record.address + nbytes - 1)
        while index and reaches[index - 1] > record.address:
            index -= 1
            life = lives[index]
            overlap = min(stop, life.stop) - max(record.address, life.start)
            for one in life.at(record.start) if overlap > 0 else ():
                for name, amount in amounts.items():
                    one.figures[name] = one.figures.get(name, 0.0) + amount * overlap / nbytes
    found = [_charged(group) for group in _groups(owners) if any(one.figures for one in group)]
    return tuple(sorted(found, key=lambda one: (-one.moved_bytes, -one.faults, one.address)))


def _owners(records: list[Stamped]) -> list[_Owner]:
    """Blocks as they lived; arrays that scopes were given give their shape to their block, or stand for themselves."""
    always = float("inf")
    blocks: dict[int, _Owner] = {}
    found: list[_Owner] = []
    for at, _, record in records:
        if isinstance(record, events.Made):
            one = _Owner(record.address, record.address + record.nbytes, at, always, None, "", record.line)
            blocks[record.address] = one
            found.append(one)
        elif isinstance(record, events.Gone):
            gone = blocks.pop(record.address, None)
            if gone is not None:
                gone.died = at
    described = set()
    for at, _, record in records:
        operands: tuple[events.Operand | events.Named, ...] = ()
        if isinstance(record, events.Began):
            operands = record.arrays
        elif isinstance(record, events.Named):
            operands = (record,)
        for x in operands:
            key = (x.address, x.nbytes, x.shape, x.dtype)
            if x.nbytes and key not in described:
                described.add(key)
                _describe(found, x, at)
    return found


def _describe(found: list[_Owner], x: events.Operand | events.Named, at: float) -> None:
    stop = x.address + x.nbytes
    for one in found:
        if one.start <= x.address and stop <= one.stop and one.born <= at <= one.died:
            if one.start == x.address and (one.shape is None or one.line == ""):
                one.shape, one.dtype = x.shape, x.dtype
                one.stop = max(stop, one.stop) if one.line == "" else one.stop
            return
    for one in [one for one in found if not one.line and x.address <= one.start and one.stop <= stop]:
        found.remove(one)  # a part of this one that was seen before
    found.append(_Owner(x.address, stop, float("-inf"), float("inf"), x.shape, x.dtype, ""))


def _direction(record: events.Migrated) -> str:
    if isinstance(record.to, Host):
        return "bytes_to_host"
    return "bytes_to_device" if isinstance(record.source, Host) else "bytes_between_devices"


def _groups(owners: list[_Owner]) -> list[list[_Owner]]:
    """Blocks that one line made at one address, again and again, are one array to whoever reads the table."""
    groups: dict[tuple[int, int, str], list[_Owner]] = {}
    for one in owners:
        groups.setdefault((one.start, one.stop, one.line), []).append(one)
    return list(groups.values())


def _charged(group: list[_Owner]) -> Charged:
    figures: dict[str, float] = {}
    for one in group:
        for name, amount in one.figures.items():
            figures[name] = figures.get(name, 0.0) + amount
    known = next((one for one in group if one.shape is not None), group[0])
    whole = {name: round(amount) for name, amount in figures.items()}
    return Charged(known.start, known.stop - known.start, known.shape, known.dtype, known.line, **whole)
