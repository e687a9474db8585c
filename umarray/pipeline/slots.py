"""Slots and their states: who may hand one on, and when its memory may be written again.

A slot is in the hands of one thread at a time and is handed on through queues, so its state needs no lock.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, final

from umarray.drivers.base import Allocation, Event
from umarray.errors import PipelineError


class State(Enum):
    """What a slot is doing."""

    __hash__ = object.__hash__  # Enum's own runs Python code, for each move of each slot

    FREE = "free"
    """In its ring's queue; to be written once `Slot.after` is done."""
    FILLING = "filling"
    """Preparation writes it."""
    FILLED = "filled"
    """Written; waits for its turn to travel."""
    READY = "ready"
    """On its way to the device, or there; `Job.ready` says when."""
    LENT = "lent"
    """A batch, or a result, refers to it."""
    HOMING = "homing"
    """Its readers are queued; it has to travel back to the host before it is written."""


class Role(Enum):
    """Who hands a slot on."""

    __hash__ = object.__hash__

    PREP = "prep"
    TRANSFER = "transfer"
    CALLER = "caller"
    BACK = "back"


LEGAL: dict[tuple[State, State], frozenset[Role]] = {
    (State.FREE, State.FILLING): frozenset({Role.PREP}),
    (State.FILLING, State.FREE): frozenset({Role.PREP}),  # the source had no more
    (State.FILLING, State.FILLED): frozenset({Role.PREP}),
    (State.FILLED, State.READY): frozenset({Role.PREP, Role.TRANSFER}),  # by prep where nothing travels
    (State.FILLED, State.FREE): frozenset({Role.TRANSFER}),  # pinned: the copy out of it is queued
    (State.FREE, State.READY): frozenset({Role.TRANSFER}),  # device: the copy into it is queued
    (State.READY, State.LENT): frozenset({Role.CALLER}),
    (State.LENT, State.FREE): frozenset({Role.CALLER}),
    (State.LENT, State.HOMING): frozenset({Role.CALLER}),
    (State.HOMING, State.FREE): frozenset({Role.BACK}),
}
"""The legal moves and who may make them. Besides, `Ring.restart` frees what a run that ended left under way."""


@final
class Lease:
    """One lending of a part of a slot: every array over it holds the lease, so its end is that of the last of them."""

    __slots__ = ("__weakref__",)


@final
class Lending(weakref.ref[Lease]):
    """A reference to a lease, which is put into a queue when the lease ends.

    Notes
    -----
    The queue's own `put` is the callback, so that no Python code runs there: Python loses the exception of a signal,
    such as Ctrl-C, that comes within a finaliser's code, and a lease ends at each step.
    """

    __slots__ = ("batch", "slot")
    slot: Slot
    batch: int


@final
class Slot:
    """Memory for one batch, or for a group of small ones side by side, and its state.

    Attributes
    ----------
    after : Event or None
        What must be done before the memory is written again.
    batch, count : int
        The first batch in it, and how many.
    used : int
        Bytes from its start that the batches take.
    unread : int
        Batches in it that were not lent yet.
    lendings : set of Lending
        Those that have not ended.
    """

    __slots__ = (
        "_memory",
        "_writer",
        "address",
        "after",
        "batch",
        "count",
        "lendings",
        "nbytes",
        "number",
        "state",
        "unread",
        "used",
    )

    def __init__(self, number: int, allocation: Allocation) -> None:
        self.number = number
        self.address = allocation.address
        self.nbytes = allocation.nbytes
        self.state = State.FREE
        self.after: Event | None = None
        self.batch, self.count, self.used = -1, 0, allocation.nbytes
        self.unread = 0
        self.lendings: set[Lending] = set()
        self._memory = [allocation]
        self._writer: weakref.ref[Lease] | None = None

    def go(self, to: State, by: Role) -> None:
        """Change the state; an illegal change is a fault of umarray's own and raises `PipelineError`."""
        if by not in LEGAL.get((self.state, to), ()):
            raise PipelineError(f"slot {self.number} cannot go from {self.state.value} to {to.value} by {by.value}")
        self.state = to

    def hold(self, parts: list[Part]) -> None:
        """These batches are in it, to be lent."""
        self.batch = parts[0].index
        self.count = self.unread = len(parts)

    def held(self) -> bool:
        """Whether an array over the slot is alive, of a batch or of `prep`."""
        return bool(self.leases())

    def leases(self) -> list[Lease]:
        """What the arrays hold that are over the slot."""
        references = [*self.lendings] if self._writer is None else [*self.lendings, self._writer]
        found = [reference() for reference in references]
        return [lease for lease in found if lease is not None]


@dataclass(slots=True)
class Part:
    """A batch in a slot: the number of its item, how many samples it has, and what goes with it."""

    index: int
    length: int
    meta: Any = None
    others: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Job:
    """A slot under way with its batches, and when these may be read."""

    slot: Slot
    parts: list[Part]
    lent: int = 0
    """How many of its batches were lent; the slot may be another job's by then."""
    ready: Event | None = None
    stream: int | None = None
    """The stream that waits for `ready` already, where one does."""
