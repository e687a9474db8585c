"""Whether preparation has threads of its own: decided by what they could hide, and by trying it.

Handing a batch from thread to thread has a price: below about half a millisecond a step it costs more than it hides
(measured beside a pinned ring written by hand, 1 to 256 MiB, on an NVIDIA H200). Above, a thread hides at most the
shorter of preparation and what else the caller's thread does; where that thread mostly waits for the device, nothing.
Where it may pay both ways are tried, and what is faster stays until steps change.
"""

from __future__ import annotations

from typing import final

LONG = 50e-3
"""Seconds of preparing one batch, not the first, from which a thread is taken without measuring whole steps."""

TRY_THREADS = 0.5e-3
"""Seconds a step in the caller's thread from which threads are tried."""

HIDES = 0.1
"""The share of a step that threads must be able to hide to be tried."""

TRY_CALLER = 2e-3
"""Seconds a step with threads up to which the caller's thread is tried."""

SHORT = 0.2e-3
"""Seconds a step below which only some batches are timed on the device."""

WINDOW = 16
"""Steps that are measured, at least."""

WINDOW_SECONDS = 5e-3
"""And so long, at least: one interruption must not decide."""

LONG_STEP = 20e-3
"""Steps of so many seconds are measured by a few."""

FEW = 3

CONFIRMED = 2
"""Times that steps are measured before the other way is tried: the first ones may touch memory that is new."""

WORTH = 0.92
"""Threads must take less than so much of a step's time in the caller's thread: they take cores from the program."""

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
        self._holdoff, self._waits, self._measured = 1, 0, 0
        self._last = 0.0
        self._preps: list[float] = []
        self.begin()

    def begin(self) -> None:
        """An iteration begins: nothing is under way."""
        self._skip = 2 * self._lead + 2
        self._last = 0.0
        self._restart()

    def _restart(self) -> None:
        self._steps, self._spent = 0, 0.0
        self._prep = self._wait = 0.0

    def prepared(self, seconds: float, waited: float = 0.0) -> None:
        """Reading the source and preparing, in the caller's thread, took so long, after such a wait for a slot."""
        self._wait += waited
        self._prep += seconds
        if len(self._preps) < 2 and not self._fixed and not self.threads:
            self._preps.append(seconds)  # the first may have compiled something
            if len(self._preps) == 2 and min(self._preps) >= LONG:
                self._change(True)

    def waited(self, seconds: float) -> None:
        """The caller's thread waited so long for the device or for a slot."""
        self._wait += seconds

    def step(self, now: float) -> None:
        """The caller asks for the next batch, at this time of a clock."""
        last, self._last = self._last, now
        if last == 0.0:
            return
        if self._skip > 0:
            self._skip = min(self._skip, FEW) - 1 if now - last >= LONG_STEP else self._skip - 1
            self._restart()
            return
        self._steps += 1
        self._spent += now - last
        enough = FEW if self._spent >= FEW * LONG_STEP else WINDOW
        if self._steps >= enough and self._spent >= WINDOW_SECONDS:
            self._decide(self._spent / self._steps)
            self._restart()

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
            self._measured = 0
        self._times[self.threads] = mean = min(mean, self._times.get(self.threads, mean))
        self._measured += 1
        other = self._times.get(not self.threads)
        if other is None:
            worth = mean <= TRY_CALLER if self.threads else mean >= TRY_THREADS and self._hidden() >= HIDES
            if worth and self._measured >= CONFIRMED:
                self._change(not self.threads)
        elif other < mean * (1 / WORTH if self.threads else WORTH):
            self._change(not self.threads)

    def _hidden(self) -> float:
        """The share of a step that a thread could hide at best."""
        return min(self._prep, self._spent - self._prep - self._wait) / self._spent

    def _change(self, threads: bool) -> None:
        self.threads = threads
        self._skip = 2 * self._lead + 2
        self._measured = 0
        self._restart()
