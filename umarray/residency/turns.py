"""Requests carried out one at a time, in order, by whichever thread comes first: no lock is waited for by an exit.

A scope may end anywhere: in a finaliser that the garbage collector runs in the middle of our own bookkeeping, or in a
thread that holds a lock of the driver's. So a request is put on a deque, and whoever has the turn carries out all that
lie there. A thread that needs the effect (an entry) waits for the turn; one that does not (an exit) leaves its request
to the thread that has it. A request made inside a turn by the thread that has it is carried out by that same turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Turns:
    """Runs callables one at a time.

    Notes
    -----
    A callable must not raise. Safe from any thread and from finalisers. No request is lost: the thread that has the
    turn looks again after it gave the turn back.
    """

    def __init__(self) -> None:
        self._requests: deque[Callable[[], None]] = deque()
        self._turn = threading.Lock()
        self._owner: int | None = None

    def submit(self, request: Callable[[], None], *, wait: bool) -> None:
        """Carry out `request`, or leave it to the thread that has the turn; with `wait`, return when it was done."""
        self._requests.append(request)
        if self._owner == threading.get_ident():
            return
        if wait:
            with self._turn:  # whoever took our request has carried it out once we have the turn
                self._carry_out()
        while self._requests and self._turn.acquire(blocking=False):
            try:
                self._carry_out()
            finally:
                self._turn.release()

    def _carry_out(self) -> None:
        self._owner = threading.get_ident()
        try:
            while self._requests:
                self._requests.popleft()()
        finally:
            self._owner = None
