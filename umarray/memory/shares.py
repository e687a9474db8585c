"""How much of an arena each stream should get, learned from epoch to epoch.

CuPy keeps the free memory of streams apart, so each stream carves from roots of its own. One stream alone gets all
there is. Several share: what each needed in an epoch is what it gets at the start of the next, and while that is only
known roughly (roots that were added one by one hold more than was alive) the sizes are narrowed by bisection, a step
an epoch. A stream whose root was too small gets more at once, and the lesson is kept.

CuPy picks among free chunks of one size in no fixed order, so the need varies a little from epoch to epoch. Once a size
is known, a miss is served by a root of its own until the end of the epoch; a size that falls short more often than not
grows by a sixty-fourth, and a stream that outgrows it by a quarter is learned anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from umarray.memory.arena import round_up
from umarray.memory.owners import Owner

LEAST_ROOT = 4096  # a smaller root is not worth its entry
FIRST_ROOT = 1 << 20  # of a stream of which nothing is known; its further roots double what it holds
CLOSE = 128  # a size is known when its bounds are within 1/128


@dataclass(slots=True)
class _Want:
    low: int  # was too little
    high: int  # was enough
    now: int  # what this epoch is given
    known: bool = False  # narrowed down
    shortfalls: int = 0  # epochs that it fell short in, less those that it did not

    def count(self, short: bool) -> bool:
        """Count an epoch with a known size; gives `short` back."""
        self.shortfalls = max(0, self.shortfalls + (1 if short else -1))
        if self.shortfalls == 3:
            self.shortfalls = 0
            self.now = self.low = self.high = round_up(self.now + self.now // 64)
        return short


class Shares:
    """The sizes of the roots of one device.

    Notes
    -----
    Not safe from several threads at once; a lost update costs a miss, no more.
    """

    def __init__(self) -> None:
        self._wants: dict[Owner, _Want] = {}
        self._active: set[Owner] = set()
        self._short: set[Owner] = set()

    def share(self, owner: Owner, missed: int, held: int, free: int) -> int:
        """Bytes to carve for `owner` beside a miss of `missed` bytes; 0 for none.

        `held` is what it has already, without the miss; `free` what the arenas have left.
        """
        first = owner not in self._active
        self._active.add(owner)
        want = self._wants.get(owner)
        if want is None:
            part = min(free // (2 * len(self._active)), max(FIRST_ROOT, 2 * missed, held))
            return part if part >= missed else 0
        if first and len(self._wants) > 1:
            return max(0, want.now - held - missed)
        self._short.update(() if first else (owner,))
        if len(self._wants) == 1:
            return free
        return 0 if want.known else max(missed, want.now // 32)

    def learn(self, peaks: dict[Owner, int]) -> bool:
        """Take in what each owner held at most in the epoch that ended; whether the roots should be made anew."""
        anew = False
        for owner in self._active:
            peak, want = peaks.get(owner, 0), self._wants.get(owner)
            if want is None:
                self._wants[owner] = want = _Want(0, peak, 0)
            elif want.known and peak <= want.now * 5 // 4:
                anew |= want.count(owner in self._short)
                continue
            elif owner in self._short:
                want.low = want.now
                if want.now >= want.high:  # it grew: begin again
                    want.high, want.known = max(peak, want.now), False
            else:
                want.high = min(want.high, want.now)
            before, want.now = want.now, want.high
            if len(self._active) > 1 and want.high - want.low > max(LEAST_ROOT, want.high // CLOSE):
                want.now = round_up((want.low + want.high) // 2)
            else:
                want.known = True
            anew |= want.now != before or owner in self._short
        for owner in [owner for owner in self._wants if owner not in self._active]:
            del self._wants[owner]
        if anew:
            self._active.clear()
        self._short.clear()
        return anew
