"""The stack of pools of each thread."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from umarray.errors import ClosedError
from umarray.memory import active


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_leaving_in_any_order_restores_what_was_there(order: tuple[int, ...]) -> None:
    allocator = ["before"]

    @contextmanager
    def using(name: str) -> Iterator[None]:
        previous, allocator[0] = allocator[0], name
        yield
        allocator[0] = previous

    pools: list[Any] = [object() for _ in range(3)]
    entries = [active.enter(pool, using(str(index)), active.Flags()) for index, pool in enumerate(pools)]
    left: set[int] = set()
    for index in order:
        entries[index].leave()
        left.add(index)
        open_ = [number for number in range(3) if number not in left]
        assert active.current() is (pools[open_[-1]] if open_ else None)
        assert allocator[0] == (str(open_[-1]) if open_ else "before")
    with pytest.raises(ClosedError):
        entries[0].leave()


def test_flags_are_those_of_the_pools_innermost_entry() -> None:
    pool: Any = object()
    assert active.flags(pool) == active.Flags()
    entry = active.enter(pool, None, active.Flags(persistent=True))
    assert active.flags(pool).persistent and not active.flags(pool).plain
    entry.leave()
    assert active.flags(pool) == active.Flags()


def test_a_pools_inner_entries_are_left_with_it_where_asked() -> None:
    pool: Any = object()
    other: Any = object()
    outer, inner, foreign = (active.enter(one, None, active.Flags()) for one in (pool, pool, other))
    outer.leave(with_inner=True)
    assert active.current() is other, "another pool's stays"
    foreign.leave()
    assert active.current() is None
    inner.leave()
    assert active.current() is None
