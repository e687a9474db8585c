"""Whether preparation has threads of its own: decided by how long steps take, and by trying the other way.

Handing a batch from thread to thread has a price: below about half a millisecond a step it costs more than it hides
(measured beside a pinned ring written by hand, 1 to 256 MiB, on an NVIDIA H200). In between, the two ways are tried in
turn, and what is faster stays until steps change.
"""

from __future__ import annotations

from typing import final

LONG = 0.5e-3
"""Seconds of preparing one batch from which threads are certain to pay."""

TRY_THREADS = 0.1e-3
"""Seconds a step in the caller's thread from which threads are tried."""

TRY_CALLER = 2e-3
"""Seconds a step with threads up to which the caller's thread is tried."""

SHORT = 0.2e-3
"""Seconds a step below which only some batches are timed on the device."""

WINDOW = 16
"""Steps that are measured, at least."""

WINDOW_SECONDS = 5e-3
"""And so long, at least: one interruption must not decide."""

BETTER = 0.97
"""The other way must take less than so much of a step's time."""

CHANGED = 1.5
"""Steps that take so many times more or less than when it was decided: both ways are tried again."""


@final
class Pace:
    """Decides from the times of steps.

    Parameters
    ----------
    workers : int or None
        Threads that the user asked for, 0 for none; None leaves it to this.
    lead : int
        Batches that may be under way: as many steps after a change are not measured.
    live : bool
        The source is an iterator, which may wait for something: the first batches are prepared by a thread.

    Attributes
    ----------
    threads : bool
        The decision: preparation has threads of its own.
    short : bool
        Steps are very short.
    """

    def __init__(self, workers: int | None, lead: int, live: bool) -> None:
        self._fixed = workers is not None
        self.threads = live if workers is None else workers > 0
        self.short = False
        self._lead = lead
        self._times: dict[bool, float] = {}
        self._holdoff, self._waits = 1, 0
        self._last = 0.0
        self.begin()

    def begin(self) -> None:
        """An iteration begins: nothing is under way."""
        self._skip = 2 * self._lead + 2
        self._steps, self._spent, self._last = 0, 0.0, 0.0

    def prepared(self, seconds: float) -> None:
        """Preparing one batch in the caller's thread took so long."""
        if not self._fixed and not self.threads and seconds >= LONG:
            self._change(True)

    def step(self, now: float) -> None:
        """The caller asks for the next batch, at this time of a clock."""
        last, self._last = self._last, now
        if last == 0.0:
            return
        if self._skip > 0:
            self._skip -= 1
            return
        self._steps += 1
        self._spent += now - last
        if self._steps >= WINDOW and self._spent >= WINDOW_SECONDS:
            self._decide(self._spent / self._steps)
            self._steps, self._spent = 0, 0.0

    def _decide(self, mean: float) -> None:
        self.short = mean < SHORT
        if self._fixed:
            return
        before = self._times.get(self.threads)
        if before is not None and not 1 / CHANGED < mean / before < CHANGED:
            self._waits += 1
            if self._waits < self._holdoff:
                return
            self._holdoff, self._waits = 2 * self._holdoff, 0  # the more often it changes, the less often it is tried
            self._times.clear()
        self._times.setdefault(self.threads, mean)
        other = self._times.get(not self.threads)
        if other is None:
            if mean <= TRY_CALLER if self.threads else mean >= TRY_THREADS:
                self._change(not self.threads)
        elif other < self._times[self.threads] * BETTER:
            self._change(not self.threads)

    def _change(self, threads: bool) -> None:
        self.threads = threads
        self._skip = 2 * self._lead + 2
        self._steps, self._spent = 0, 0.0
