"""Deferred uses: blocks that a stream still works on after their arrays may be gone.

A pool hands a freed block out again on the stream that it was allocated on, and knows nothing of other streams. So
what another stream uses is held here, with an event recorded there, until that event is done.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from umarray.drivers.base import Event


class Use(NamedTuple):
    """A block, and what must be done before it may go."""

    block: object
    events: tuple[Event, ...]


_uses: deque[Use] = deque()


def hold(block: object, events: tuple[Event, ...]) -> None:
    """Keep `block` until all of `events` are done."""
    _uses.append(Use(block, events))


def drain() -> int:
    """Let go of the blocks whose events are done; returns how many are still held. Never waits."""
    for _ in range(len(_uses)):
        try:
            use = _uses.popleft()
        except IndexError:  # another thread drains too
            break
        if not _done(use.events):
            _uses.append(use)
    return len(_uses)


def held() -> int:
    """How many blocks are held."""
    return len(_uses)


def _done(events: tuple[Event, ...]) -> bool:
    try:
        return all(event.done() for event in events)
    except Exception:
        return False  # a device in error: whoever uses it next is told; the block is safer kept
