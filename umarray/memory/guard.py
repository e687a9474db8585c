"""The lock around the arenas.

The garbage collector is off while it is held. Should it still run a finaliser there that allocates (another thread may
have switched it on), the thread enters its own lock again, and is told so.
"""

from __future__ import annotations

import gc
import threading


class Guard:
    """A lock that keeps the garbage collector out, and says when it was entered again by its own thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._collecting = False

    def __enter__(self) -> bool:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._collecting = gc.isenabled()
            gc.disable()
        return self._depth > 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._collecting:
            gc.enable()
        self._lock.release()

    def reset(self) -> None:
        """In a forked child: another thread of the parent's may have held it, and is not here to let it go."""
        if self._depth and self._collecting:
            gc.enable()
        self._lock, self._depth = threading.RLock(), 0
