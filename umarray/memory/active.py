"""Which pool a thread allocates from, and how: a stack for each thread."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from umarray.errors import ClosedError
from umarray.memory import watched

if TYPE_CHECKING:
    from umarray.memory.pool import Pool

_thread = threading.local()
_installed: list[Pool] = []


class Flags(NamedTuple):
    """How a thread allocates from a pool."""

    persistent: bool = False
    plain: bool = False
    tracked: bool = False


class Entry:
    """One level of a thread's stack.

    Notes
    -----
    Entries may be left in any order: the allocator of a lower one comes back only when those above it are left too.
    """

    __slots__ = ("allocating", "dropped", "flags", "left", "makes_current", "pool", "stack")

    def __init__(
        self,
        pool: Pool,
        allocating: AbstractContextManager[Any] | None,
        flags: Flags,
        stack: list[Entry],
        makes_current: bool,
    ) -> None:
        self.pool, self.allocating, self.flags, self.stack = pool, allocating, flags, stack
        self.makes_current = makes_current
        self.left = self.dropped = False

    def here(self) -> bool:
        """Whether it is one of the calling thread's."""
        return self.stack is _stack()

    def leave(self, *, with_inner: bool = False) -> None:
        """Make what was current before current again.

        `with_inner` leaves the pool's entries above this one too (those of a generator that stands still inside an
        epoch, say): their own `leave` finds nothing to do then.
        """
        if self.dropped:
            return
        if self.left:
            raise ClosedError("this pool was left before")
        if not self.here():
            raise RuntimeError("this was entered in another thread, and must be left there")
        self.left = True
        for entry in self.stack[self.stack.index(self) + 1 :] if with_inner else ():
            if entry.pool is self.pool and not entry.left:
                entry.left = entry.dropped = True
        while self.stack and self.stack[-1].left:
            allocating = self.stack.pop().allocating
            if allocating is not None:
                allocating.__exit__(None, None, None)


def enter(
    pool: Pool, allocating: AbstractContextManager[Any] | None, flags: Flags, *, makes_current: bool = True
) -> Entry:
    """Make `pool` the calling thread's; without `makes_current`, only the way it allocates from this pool."""
    stack = _stack()
    if allocating is not None:
        allocating.__enter__()
    entry = Entry(pool, allocating, flags, stack, makes_current)
    stack.append(entry)
    return entry


def current() -> Pool | None:
    """The calling thread's pool, else the process's, else None."""
    for entry in reversed(_stack()):
        if entry.makes_current and not entry.left:
            return entry.pool
    return _installed[-1] if _installed else None


def pools() -> list[Pool]:
    """The calling thread's pools, the innermost first, and the process's."""
    return [entry.pool for entry in reversed(_stack()) if not entry.left] + _installed[-1:]


def flags(pool: Pool) -> Flags:
    """How the calling thread allocates from `pool`; tracked, where anybody watches."""
    found = next((entry.flags for entry in reversed(_stack()) if not entry.left and entry.pool is pool), Flags())
    return found._replace(tracked=True) if watched.logs and not found.tracked else found


def install(pool: Pool) -> None:
    """Make `pool` the process's."""
    _installed.append(pool)


def uninstall(pool: Pool) -> None:
    """Undo `install`."""
    if pool in _installed:
        _installed.remove(pool)


def _stack() -> list[Entry]:
    try:
        return _thread.stack  # type: ignore[no-any-return]
    except AttributeError:
        stack: list[Entry] = []
        _thread.stack = stack
        return stack
