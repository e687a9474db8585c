"""What a pipeline has open: one engine at a time, another one by plan, and everything given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.errors import OutOfMemory
from umarray.pipeline.plan import Plan, Planner
from umarray.pipeline.report import Clock
from umarray.pipeline.rig import Rig
from umarray.pipeline.structure import Spec

LIKE = Spec(1024, "int32")


def make(driver: FakeDriver, **settings: bool) -> Rig:
    return Rig(
        driver, Planner(driver, "staged", None), None, Clock(driver), **({"out": False, "groups": False} | settings)
    )


def test_before_it_is_open_the_plan_is_what_it_would_be(fake: FakeDriver) -> None:
    rig = make(fake)
    assert rig.plan(LIKE) == Plan("staged", "asked for", 3) and rig.engine is None and rig.bytes_moved() == 0
    assert rig.open(LIKE) is rig.engine and rig.slot_bytes == 6 * 4096
    rig.close()
    assert rig.engine is None and fake.live == {}


def test_an_outbox_that_fails_leaves_nothing(fake: FakeDriver) -> None:
    rig = make(fake, out=True)
    made: list[Any] = []

    def on_call(call: Any) -> None:
        if call.name == "create_stream":
            made.append(call)
            if len(made) == 2:
                raise um.DriverError("create_stream", 700, "told by the test")

    fake.on_call = on_call
    with pytest.raises(um.DriverError):
        rig.open(LIKE)
    fake.on_call = None
    assert rig.engine is None and fake.live == {} and fake.open_streams() == set()


def test_small_batches_have_room_for_a_group(fake: FakeDriver) -> None:
    rig = make(fake, groups=True)
    assert rig.open(LIKE).group == 16 and rig.slot_bytes == 6 * 16 * 4096
    rig.close()


@pytest.fixture
def wants(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan], None]:
    def want(plan: Plan) -> None:
        monkeypatch.setattr(Planner, "next", lambda self, before, *rest: plan)

    return want


def test_another_plan_opens_another_engine(fake: FakeDriver, wants: Callable[[Plan], None]) -> None:
    rig = make(fake)
    first = rig.open(LIKE)
    first.transport.bytes_moved = 5  # type: ignore[misc]
    wants(Plan("bus", "a test", 4))
    rig.replan(True)
    assert rig.engine is not first and rig.plan() == Plan("bus", "a test", 4)
    assert len(fake.live) == 4 and rig.bytes_moved() == 5
    rig.close()
    assert fake.live == {}


def test_a_plan_without_memory_is_taken_back(
    make_fake: Callable[..., FakeDriver], wants: Callable[[Plan], None]
) -> None:
    fake = make_fake(pinned_capacity=3 * 4096)
    rig = make(fake)
    rig.open(LIKE)
    wants(Plan("staged", "a test", 4))
    rig.replan(True)
    assert rig.plan() == Plan("staged", "asked for", 3) and len(fake.live) == 6
    rig.close()
    with pytest.raises(OutOfMemory):
        make(make_fake(pinned_capacity=4096)).open(LIKE)


def test_results_that_hold_slots_keep_the_plan(fake: FakeDriver, wants: Callable[[Plan], None]) -> None:
    with um.Pipeline(range(3), lambda i, slot: None, lambda b: b["x"], like={"x": LIKE}, transport="staged") as p:
        kept = list(p)[0]
        wants(Plan("bus", "a test", 4))
        assert p.transport == "staged" and next(iter(p)) is not None and p.transport == "staged"
        del kept
        assert len(list(p)) == 3 and p.transport == "bus" and p.report().reason == "a test"
