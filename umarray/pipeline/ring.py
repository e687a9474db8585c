"""Slots and their states: who may hand one on, and when its memory may be written again.

A slot is in the hands of one thread at a time and is handed on through queues, so its state needs no lock. The queues
are `queue.SimpleQueue`: its put takes no Python lock, so that a slot may also come back from the garbage collector,
in any thread, at any moment.

Staged slots come in two rings, one that preparation writes (pinned) and one that batches lie in (device memory);
elsewhere both rings are the same one.
"""

from __future__ import annotations

import _thread
import weakref
from dataclasses import dataclass, field
from enum import Enum
from queue import SimpleQueue
from typing import Any, final

from umarray.drivers.base import Allocation, Array, Driver, Event, Kind
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
    """One lending of a slot: every array over the slot holds it, so its end is the end of the last of them."""

    __slots__ = ("__weakref__",)


@final
class Lending(weakref.ref[Lease]):
    """A reference to a lease, which is put into a queue when the lease ends.

    Notes
    -----
    The queue's own `put` is the callback, so that no Python code runs there: Python loses the exception of a signal,
    such as Ctrl-C, that comes within a finaliser's code, and a lease ends at each step.
    """

    __slots__ = ("slot",)
    slot: Slot


@final
class Slot:
    """Memory for one batch, and its state.

    Attributes
    ----------
    after : Event or None
        What must be done before the memory is written again.
    """

    __slots__ = ("_lease", "_memory", "_writer", "address", "after", "batch", "nbytes", "number", "state")

    def __init__(self, number: int, allocation: Allocation) -> None:
        self.number = number
        self.address = allocation.address
        self.nbytes = allocation.nbytes
        self.state = State.FREE
        self.after: Event | None = None
        self.batch = -1
        self._memory = [allocation]
        self._lease: Lending | None = None
        self._writer: weakref.ref[Lease] | None = None

    def go(self, to: State, by: Role) -> None:
        """Change the state; an illegal change is a fault of umarray's own and raises `PipelineError`."""
        if by not in LEGAL.get((self.state, to), ()):
            raise PipelineError(f"slot {self.number} cannot go from {self.state.value} to {to.value} by {by.value}")
        self.state = to

    def held(self) -> bool:
        """Whether an array over the slot is alive, of a batch or of `prep`."""
        return bool(self.leases())

    def leases(self) -> list[Lease]:
        """What the arrays hold that are over the slot."""
        found = [reference() for reference in (self._lease, self._writer) if reference is not None]
        return [lease for lease in found if lease is not None]


@dataclass(slots=True)
class Job:
    """A batch under way: which item, in which slot, and when it may be read."""

    index: int
    slot: Slot
    length: int
    meta: Any = None
    others: list[Any] = field(default_factory=list)
    ready: Event | None = None


@final
class Ring:
    """A few slots of one kind of memory that take turns.

    Parameters
    ----------
    driver : Driver
        Allocates them: page-aligned memory of their own.
    nbytes, count : int
        Bytes of a slot, and how many.
    returned : SimpleQueue
        Where a `Lending` is put when its last array has died.

    Raises
    ------
    OutOfMemory
        Nothing is kept then.
    """

    def __init__(
        self, driver: Driver, kind: Kind, nbytes: int, count: int, device: int, returned: SimpleQueue[Any]
    ) -> None:
        self._driver = driver
        self._device = device
        self._returned = returned
        self.kind = kind
        self.slots: list[Slot] = []
        self.lent: set[Slot] = set()
        self.free: SimpleQueue[Slot | None] = SimpleQueue()
        whole = -(-nbytes // driver.page_size) * driver.page_size
        try:
            for number in range(count):
                self.slots.append(Slot(number, driver.allocate(whole, kind, device)))
        except BaseException:
            self.close()
            raise

    def restart(self) -> None:
        """Begin with every slot that no array refers to; no thread may be at work on the ring."""
        self.free = SimpleQueue()
        for slot in self.slots:
            if slot not in self.lent:
                slot.state = State.FREE
                self.free.put(slot)

    def take(self) -> Slot | None:
        """The next free slot, waiting for one; None once a None was put into `free`, which wakes everyone who waits."""
        free = self.free
        slot = free.get()
        if slot is None:
            free.put(None)  # for the next one who asks
        return slot

    def put(self, slot: Slot, by: Role, after: Event | None) -> None:
        """Hand in a slot that may be written again once `after` is done."""
        slot.after = after
        slot.go(State.FREE, by)
        self.free.put(slot)

    def lend(self, slot: Slot, batch: int) -> Array:
        """The slot's bytes as an array; when it and every view of it are gone, its lending is put into `returned`."""
        slot.go(State.LENT, Role.CALLER)
        lease = Lease()
        slot.batch = batch
        slot._lease = Lending(lease, self._returned.put)
        slot._lease.slot = slot
        self.lent.add(slot)
        try:
            return self._driver.as_array(slot.address, slot.nbytes, lease, self._device)
        except BaseException:
            self.take_back(slot)  # the traceback keeps the lease
            self.put(slot, Role.CALLER, slot.after)
            raise

    def writer(self, slot: Slot) -> Lease:
        """What the arrays hold that `prep` writes the slot by; they outlive the ring as a batch's do."""
        lease = Lease()
        slot._writer = weakref.ref(lease)
        return lease

    def take_back(self, slot: Slot) -> None:
        """Enter that no array refers to the slot any more; it is still `State.LENT`."""
        self.lent.discard(slot)
        slot._lease = None

    def _orphaned(self, slot: Slot) -> None:
        # May run inside the garbage collector, under any lock: so no driver call here, and no Python lock.
        if slot._memory and not slot.held():
            try:
                _thread.start_new_thread(self._release_late, (slot,))
            except RuntimeError:  # the interpreter is ending, and the memory with it
                pass

    def _release_late(self, slot: Slot) -> None:
        self._driver.synchronize(device=self._device)  # whatever the array's last user queued, on any stream
        self._release(slot)

    def _release(self, slot: Slot) -> None:
        try:
            allocation = slot._memory.pop()
        except IndexError:  # another thread was first
            return
        self._driver.free(allocation)

    def close(self) -> None:
        """Free the slots; one that an array still refers to is freed when the last of these dies.

        Notes
        -----
        Nothing may be queued on the device for them: the caller has waited.
        """
        failure: BaseException | None = None
        for slot in self.slots:
            leases = slot.leases()
            # Finalizers and not references with callbacks: these also run when all of this is garbage together.
            for lease in leases:
                weakref.finalize(lease, self._orphaned, slot).atexit = False
            if not leases:
                try:
                    self._release(slot)
                except BaseException as error:
                    failure = failure or error
        if failure is not None:
            raise failure
