"""A few slots that take turns.

The queues are `queue.SimpleQueue`: its put takes no Python lock, so that a slot may also come back from the garbage
collector, in any thread, at any moment. Staged slots come in two rings, one that preparation writes (pinned) and one
that batches lie in (device memory); elsewhere both rings are the same one.
"""

from __future__ import annotations

import _thread
import weakref
from queue import SimpleQueue
from typing import Any, final

from umarray.drivers.base import Driver, Event, Kind
from umarray.pipeline.slots import Lease, Lending, Role, Slot, State


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
        """Begin with every slot that is not lent; no thread may be at work on the ring."""
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

    def lend(self, slot: Slot, batch: int) -> Lease:
        """A lease of a batch in the slot; when all that holds it is gone, its `Lending` is put into `returned`."""
        if slot.state is not State.LENT:
            slot.go(State.LENT, Role.CALLER)
            self.lent.add(slot)
        slot.unread -= 1
        lease = Lease()
        lending = Lending(lease, self._returned.put)
        lending.slot, lending.batch = slot, batch
        slot.lendings.add(lending)
        return lease

    def writer(self, slot: Slot) -> Lease:
        """What the arrays hold that `prep` writes the slot by; they outlive the ring as a batch's do."""
        lease = Lease()
        slot._writer = weakref.ref(lease)
        return lease

    def withdraw(self, slot: Slot, lease: Lease) -> None:
        """Undo a lending of which nobody has an array, though a traceback may hold the lease."""
        slot.lendings = {lending for lending in slot.lendings if lending() is not lease}
        slot.unread += 1

    def forget_unread(self) -> list[Slot]:
        """No batch will be lent that was not yet; returns the slots that are read with that, still `State.LENT`."""
        for slot in self.slots:
            slot.unread = 0
        read = [slot for slot in self.lent if not slot.lendings]
        self.lent.difference_update(read)
        return read

    def take_back(self, lending: Lending) -> bool:
        """Enter that no array holds a lease any more; whether the whole slot is read, being still `State.LENT`."""
        slot = lending.slot
        if lending not in slot.lendings:  # withdrawn
            return False
        slot.lendings.remove(lending)
        if slot.lendings or slot.unread:
            return False
        self.lent.discard(slot)
        return True

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
