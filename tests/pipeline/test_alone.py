"""Stages run alone: each once, in order, waited for, and with the slots as they were."""

from __future__ import annotations

from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.errors import PipelineError

LIKE = {"x": um.Spec((4, 2), "int32")}


def fill(item: int, slot: Any) -> None:
    slot["x"][...] = item


@pytest.mark.parametrize(
    ("transport", "out", "stages"),
    [
        ("staged", None, {"prep", "transfer", "compute"}),
        ("staged", um.HOST, {"prep", "transfer", "compute", "out"}),
        ("managed", None, {"prep", "transfer", "compute", "back"}),
    ],
)
def test_each_stage_has_its_seconds(fake: FakeDriver, transport: str, out: Any, stages: set[str]) -> None:
    seen: list[int] = []

    def compute(batch: Any) -> Any:
        seen.append(int(batch["x"][0, 0]))
        return batch["x"] + 1

    with um.Pipeline(range(6), fill, compute, like=LIKE, transport=transport, out=out) as p:
        seconds = p.ideal(9)
        assert seconds.keys() == stages and min(seconds.values()) >= 0 and seen == [9] * 4
        assert p.report().steps == 0 and p.report().bytes_moved == 0
        assert len(list(p)) == 6
        assert p.report().ideal_measured
    assert fake.live == {}


@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_a_stage_that_raises_leaves_the_slots_as_they_were(fake: FakeDriver, transport: str) -> None:
    def compute(batch: Any) -> int:
        if batch.index < 0:
            raise ArithmeticError("alone")
        return int(batch.index)

    with um.Pipeline(range(6), fill, compute, like=LIKE, transport=transport, slots=2) as p:
        for _ in range(5):
            with pytest.raises(ArithmeticError, match="alone"):
                p.ideal(9)
        assert list(p) == list(range(6))


def test_results_that_hold_every_slot_are_told(fake: FakeDriver) -> None:
    kept: list[Any] = []
    with um.Pipeline(range(9), fill, lambda batch: kept.append(batch["x"]), like=LIKE, slots=2) as p:
        with pytest.raises(PipelineError, match="held by results"):
            p.ideal(1)
        kept.clear()
        assert len([kept.clear() for _ in p]) == 9
