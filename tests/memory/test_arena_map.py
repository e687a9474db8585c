"""What lies where in the arenas: nothing overlaps, nothing is left out, and kinds are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import umarray as um
from umarray import drivers
from umarray.drivers.base import Allocation, Kind
from umarray.drivers.host import HostDriver
from umarray.memory.arena import Arena
from umarray.memory.arena_map import ArenaMap, Run, _runs, arena_maps
from umarray.memory.reserve import Slab
from umarray.places import HOST


@pytest.fixture(autouse=True, scope="module")
def host() -> Iterator[None]:
    before = drivers.set_driver(HostDriver(("a test wants it",)))
    yield
    drivers.set_driver(before)


def kinds(one: ArenaMap) -> list[tuple[str, int]]:
    return [(run.kind, run.nbytes) for run in one.runs]


def test_kinds_of_a_pool_that_tracks() -> None:
    with um.pool("1MiB", track=True) as pool:
        with pool.persistent():
            weights = um.zeros(512, "u1")
        with pool.epoch():
            first = um.zeros(1024, "u1")
        with pool.epoch():
            inner = um.zeros(2048, "u1")
            (one,) = arena_maps(pool)
            assert kinds(one)[:3] == [("persistent", 512), ("escaped", 1024), ("alive", 2048)]
        (one,) = arena_maps(pool)
        assert one.nbytes_of("escaped") == 3072 and one.tracked
        assert one.runs[1].line.startswith(__file__)
        del first
        (one,) = arena_maps(pool)
        assert kinds(one) == [("persistent", 512), ("free", 1024), ("escaped", 2048), ("free", (1 << 20) - 3584)]
    del weights, inner


def test_a_pool_that_does_not_track_knows_what_is_carved() -> None:
    with um.pool("1MiB") as pool:
        assert arena_maps(pool) == ()
        x = um.zeros(512, "u1")
        (one,) = arena_maps(pool)
        assert kinds(one) == [("carved", 512), ("free", (1 << 20) - 512)] and not one.tracked
    del x


def test_what_was_carved_ahead_lies_between_the_blocks() -> None:
    arena = Arena(8192)
    arena.take(4096)
    arena.take(1024)
    arena.give(4096)
    slab = Slab(Allocation(1 << 20, 8192, Kind.HOST, HOST, 1), arena)
    blocks = [(512, Run(0, 1024, "alive", "a.py:1")), (3584, Run(0, 512, "escaped"))]
    assert _runs(slab, blocks) == (
        Run(0, 512, "carved"),
        Run(512, 1024, "alive", "a.py:1"),
        Run(1536, 2048, "carved"),
        Run(3584, 512, "escaped"),
        Run(4096, 4096, "free"),
    )


@given(st.lists(st.tuples(st.integers(1, 5000), st.booleans()), max_size=30))
def test_runs_cover_each_arena_without_gaps(made: list[tuple[int, bool]]) -> None:
    with um.pool("64KiB", track=True) as pool:
        kept: list[Any] = []
        for nbytes, keep in made:
            x = um.empty(nbytes, "u1")
            if keep:
                kept.append(x)
        x = None
        maps = arena_maps(pool)
        for one in maps:
            at = 0
            for run in one.runs:
                assert run.offset == at and run.nbytes > 0
                at += run.nbytes
            assert at == one.nbytes
        assert sum(one.nbytes_of("alive") for one in maps) == sum(-(-x.nbytes // 512) * 512 for x in kept)
