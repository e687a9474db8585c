"""What findings are drawn from, as frozen values: what moved, what was asked, which arrays there were, the costs.

A finding is a function of `Facts` and of nothing else, so it is the same live, from a trace file, and on facts that
were made up. Times are `time.perf_counter` seconds of the process that was watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from umarray.places import Host, Place

_BATCH = 2 << 20  # bytes that a prefetch moves at once
ON_DEMAND = ("fault", "speculative", "coherence", "access counters")
"""Causes that come of a touch, and not of a request."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes at an address, at a time."""

    time: float
    address: int
    nbytes: int

    @property
    def stop(self) -> int:
        """The byte after the last."""
        return self.address + self.nbytes


@dataclass(frozen=True, slots=True)
class Move(Span):
    """What happened to a run of neighbouring pages, at `time` to the first of them.

    Notes
    -----
    `kind`: "moved" from `origin` to `to`; "copied" beside the original (read-mostly); "mapped", so that `to` reaches
    them at `origin`; "made", first touched or prefetched, with nothing to move; "dropped", the copy at `to` given up
    because of a write at `origin`, or to make room; "used", first touched at `to` after a prefetch had brought them;
    "faulted", where a source tells faults apart from what they moved.
    """

    origin: Place | None
    to: Place
    kind: str
    cause: str
    """"fault", "prefetch", "eviction", "advice", "copy"; of drivers also "speculative" (more than was touched),
    "coherence" (the other side touched it), "access counters"."""
    faults: int = 0
    """How many touches had to wait."""
    write: bool | None = None
    """The touch was a write; None where the source cannot tell."""

    @property
    def carries(self) -> bool:
        """Whether bytes went from one place to another."""
        return self.kind in ("moved", "copied")


@dataclass(frozen=True, slots=True)
class Prefetch(Span):
    """A prefetch that was asked for."""

    to: Place
    supported: bool = True
    stream: int | None = None
    """The stream that was named; None for one of umarray's own."""
    line: str = ""
    """`file:number` that asked."""


@dataclass(frozen=True, slots=True)
class Advice(Span):
    """Advice that stood from `time` to `until`."""

    advice: str
    place: Place | None
    until: float
    line: str = ""


@dataclass(frozen=True, slots=True)
class View(Span):
    """A host view that was open: "r", "w" (every element is written) or "r+"."""

    mode: str
    until: float
    waited: float = 0.0
    """Seconds in which it waited for a device before it opened."""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Made(Span):
    """A block that arrays were made in, at `time`, by `line`; `gone` is when it was seen to be free again."""

    line: str
    gone: float | None = None
    name: str = ""
    """What the line assigns it to."""


@dataclass(frozen=True, slots=True)
class Named:
    """An array that had a name when the watch began or ended, or was given to a scope (then without a name)."""

    name: str
    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def stop(self) -> int:
        """The byte after the last."""
        return self.address + self.nbytes


@dataclass(frozen=True, slots=True)
class Escaped:
    """Arrays made by one line inside an epoch and alive at its end."""

    line: str
    count: int
    nbytes: int
    epoch: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool when the watch ended."""

    kind: str
    arena_bytes: int
    current_bytes: int
    fragmentation: float | None = None
    """Of the bytes below the highest live block of each arena, the share that is not alive."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The model: seconds, and bytes a second."""

    fault: float = 20e-6
    """A touch by a device that has to wait, beside the bytes."""
    host_fault: float = 25e-6
    call: float = 50e-6
    """A prefetch call, before a byte moves."""
    demand: float = 2.8e9
    """On-demand migration to a device."""
    to_device: float = 26e9
    """A prefetch, from the host."""
    to_host: float = 26e9
    between: float = 50e9
    """From device to device."""
    demand_back: float = 2.8e9
    """On-demand migration to the host."""
    batch: float = 0.0
    """For each run of pages that a prefetch moves, up to 2 MiB."""
    source: str = "the emulator's figures for an MI210"

    def rate(self, origin: Place | None, to: Place) -> float:
        """Bytes a second of a prefetch."""
        if isinstance(to, Host):
            return self.to_host
        return self.to_device if origin is None or isinstance(origin, Host) else self.between

    def moving(self, nbytes: int, origin: Place | None, to: Place, calls: int = 0) -> float:
        """Seconds in which `calls` prefetches move bytes."""
        batches = -(-nbytes // _BATCH)
        return calls * self.call + batches * self.batch + nbytes / self.rate(origin, to)

    def demanding(self, nbytes: int, origin: Place | None, to: Place, faults: int) -> float:
        """Seconds in which `faults` touches move bytes."""
        host = isinstance(to, Host)
        rate = min(self.demand_back if host else self.demand, self.rate(origin, to))
        return faults * (self.host_fault if host else self.fault) + nbytes / rate

    def of(self, move: Move) -> float:
        """Seconds that a move cost, without a prefetch's call."""
        nbytes = move.nbytes if move.carries else 0
        if move.cause in ON_DEMAND:
            return self.demanding(nbytes, move.origin, move.to, move.faults)
        if move.cause == "eviction":
            return nbytes / self.rate(move.origin, move.to)
        return self.moving(nbytes, move.origin, move.to)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a watch, or a trace, knows."""

    began: float = 0.0
    ended: float = 0.0
    page: int = 4096
    """Bytes of a page that migrates."""
    grain: int = 0
    """Bytes that a driver moves along with what was touched, at the most, where it does not tell them apart."""
    memory: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each device."""
    source: str = ""
    """Who told of the moves, in words."""
    sees_uses: bool = False
    """The source tells the first touch of what was prefetched."""
    lost: int = 0
    """Records that there was no room for."""
    costs: Costs = Costs()
    moves: tuple[Move, ...] = ()
    """In the order in which they happened."""
    prefetches: tuple[Prefetch, ...] = ()
    advices: tuple[Advice, ...] = ()
    views: tuple[View, ...] = ()
    made: tuple[Made, ...] = ()
    named: tuple[Named, ...] = ()
    escapes: tuple[Escaped, ...] = ()
    pools: tuple[Pool, ...] = ()

    @property
    def seconds(self) -> float:
        """How long was watched."""
        return self.ended - self.began
