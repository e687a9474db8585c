"""Pools that were closed or dropped while blocks of theirs live: kept until nothing of them is in use.

A finaliser may run anywhere, so it only appends here; `sweep` is called where umarray is entered anyway.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Protocol


class Lingerer(Protocol):
    """What can be kept."""

    def finish(self) -> bool:
        """Give everything back if nothing is in use; whether that was so. Called until it says True."""


_pools: deque[Lingerer] = deque()


def keep(pool: Lingerer) -> None:
    """Keep `pool` until nothing of it is in use. Only appends: safe in a finaliser."""
    _pools.append(pool)


def sweep() -> int:
    """Let go of the pools of which nothing is in use any more; returns how many are still kept."""
    for _ in range(len(_pools)):
        try:
            pool = _pools.popleft()
        except IndexError:  # another thread sweeps too
            break
        done = False
        with suppress(Exception):  # a device in error, a forked child: whoever uses it next is told
            done = pool.finish()
        if not done:
            _pools.append(pool)
    return len(_pools)


def kept() -> int:
    """How many pools are kept."""
    return len(_pools)
