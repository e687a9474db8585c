"""What a pool says of itself: every field, each against something else than the pool's own count."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.memory import statistics
from umarray.memory.statistics import PoolStatistics

ARENA = 64 << 10
TRACKED = {"peak_bytes", "total_bytes", "allocations", "escapes", "fragmentation"}


def test_every_field_is_described_or_plain_of_itself() -> None:
    body = next(node for node in ast.parse(inspect.getsource(statistics)).body if isinstance(node, ast.ClassDef)).body
    described = {
        before.target.id  # type: ignore[attr-defined]
        for before, after in zip(body, body[1:], strict=False)
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr)
    }
    assert {field.name for field in fields(PoolStatistics)} - described == {"arenas"}


def test_they_agree_with_the_driver(fake: FakeDriver) -> None:
    with um.pool(ARENA, limit="1MiB", headroom=0) as pool:
        kept = [um.empty(60 << 10, "u1") for _ in range(3)]
        said = pool.statistics()
        assert said.driver_allocations == said.arenas == fake.count("allocate") == 2
        assert said.arena_bytes == sum(allocation.nbytes for allocation in fake.live.values())
        assert said.current_bytes == said.carved_bytes == 3 * (60 << 10)
        assert (said.limit_bytes, said.misses, said.deferred_uses) == (1 << 20, 2, 0)
        assert (said.plain_bytes, said.library_bytes) == (0, 0)
        kept.clear()
        assert pool.statistics().current_bytes == 0
        assert said.current_bytes == 3 * (60 << 10), "a snapshot stays what it was"


@pytest.mark.parametrize("track", [False, True])
def test_what_needs_tracking_is_none_without_it(fake: FakeDriver, track: bool) -> None:
    with um.pool(ARENA, track=track) as pool:
        um.zeros(1)
        said = pool.statistics()
        assert {field.name for field in fields(said) if getattr(said, field.name) is None} == (
            set() if track else TRACKED
        )
        with pytest.raises(FrozenInstanceError):
            said.misses = 3


def test_as_dict_is_fit_for_json(fake: FakeDriver) -> None:
    with um.pool(ARENA, track=True) as pool:
        with pool.epoch("one"):
            x = um.zeros(1)
        told: dict[str, Any] = json.loads(json.dumps(pool.statistics().as_dict()))
        assert [escape["epoch"] for escape in told["escapes"]] == ["one"]
        assert set(told) == {field.name for field in fields(PoolStatistics)}
        del x
