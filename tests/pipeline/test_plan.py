"""Plans: the first one, what disagrees with it, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.calibration import Calibration, Curve
from umarray.calibration.known import set_current
from umarray.pipeline.layout import Layout
from umarray.pipeline.plan import MOST_SLOTS, SLOTS, SLOTS_HOMING, Plan, Planner
from umarray.pipeline.structure import Spec

LAYOUT = Layout(Spec(1 << 20, "uint8"))


def flat(seconds: float) -> Curve:
    return Curve(((1, seconds), (1 << 30, seconds)))


@pytest.fixture
def fake(make_fake: Callable[..., FakeDriver]) -> FakeDriver:
    """Copies should take 2 s, pages there and back 3, reading over the bus 2 x 4."""
    made = make_fake()
    curves: dict[str, Any] = {"copy_in": 2.0, "prefetch": 1.0, "prefetch_back": 2.0, "bus": 4.0}
    set_current(0, Calibration("Fake", True, **{name: flat(seconds) for name, seconds in curves.items()}))
    return made


def after(planner: Planner, plan: Plan, step: float, threads: bool = True, steps: int = 100, **stages: float) -> Plan:
    return planner.next(plan, 0, LAYOUT, steps, step, {"source": 0.0, "prep": 0.0, "transfer": 0.0, **stages}, threads)


@pytest.mark.parametrize(
    ("transport", "slots", "renews", "expected"),
    [
        ("staged", None, False, SLOTS),
        ("managed", None, False, SLOTS_HOMING),
        ("managed", None, True, SLOTS),
        ("managed", 7, False, 7),
        ("bus", None, False, SLOTS),
    ],
)
def test_slots_are_found_or_set(make_fake: Any, transport: str, slots: Any, renews: bool, expected: int) -> None:
    plan = Planner(make_fake(renews=renews), transport, slots).first(0, LAYOUT)
    assert plan == Plan(transport, "asked for", expected)


def test_a_transport_that_keeps_its_promise_stays(fake: FakeDriver) -> None:
    planner = Planner(fake, "auto", 3)
    plan = planner.first(0, LAYOUT)
    assert plan.transport == "staged"
    assert after(planner, plan, 2.1, transfer=2.05) == plan
    assert after(planner, plan, 9.0, compute=9.0, transfer=6.0) == plan  # slow, and hidden


def test_a_transport_that_disagrees_gives_way_and_the_faster_one_stays(fake: FakeDriver) -> None:
    planner = Planner(fake, "auto", 3)
    plan = planner.first(0, LAYOUT)
    other = after(planner, plan, 6.0, transfer=6.0)
    assert other.transport == "managed" and "staged as this pipeline ran" in other.reason
    assert after(planner, other, 4.0, transfer=2.0, back=2.0) == other
    assert after(planner, other, 20.0, transfer=10.0, back=10.0).transport in ("managed", "bus")


def test_a_trial_that_was_worse_is_taken_back(fake: FakeDriver) -> None:
    planner = Planner(fake, "auto", 3)
    plan = planner.first(0, LAYOUT)
    other = after(planner, plan, 6.0, transfer=6.0)
    assert after(planner, other, 12.0, compute=12.0) == plan
    assert after(planner, plan, 6.0, transfer=6.0) == plan  # and is not tried again


def test_what_was_asked_for_by_name_stays(fake: FakeDriver) -> None:
    planner = Planner(fake, "staged", 3)
    plan = planner.first(0, LAYOUT)
    assert after(planner, plan, 60.0, transfer=60.0) == plan


def test_slots_grow_while_it_pays(fake: FakeDriver) -> None:
    planner = Planner(fake, "staged", None)
    plan = planner.first(0, LAYOUT)
    for step in (2.0, 1.8, 1.6):
        plan = after(planner, plan, step, compute=1.0)
    assert plan.slots == MOST_SLOTS
    assert after(planner, plan, 1.7, compute=1.0).slots == MOST_SLOTS - 1
    assert after(Planner(fake, "staged", None), Plan("staged", "", 3), 1.05, compute=1.0).slots == 3
    assert after(Planner(fake, "staged", 3), Plan("staged", "", 3), 2.0, compute=1.0).slots == 3
    assert after(Planner(fake, "staged", None), Plan("staged", "", 3), 2.0, threads=False, compute=1.0).slots == 3


def test_a_plan_without_memory_is_not_tried_again(fake: FakeDriver) -> None:
    planner = Planner(fake, "staged", None)
    plan = planner.first(0, LAYOUT)
    more = after(planner, plan, 2.0, compute=1.0)
    planner.refuse(more)
    assert after(planner, plan, 2.0, compute=1.0) == plan


def test_a_short_iteration_is_no_measurement(fake: FakeDriver) -> None:
    planner = Planner(fake, "auto", None)
    plan = planner.first(0, LAYOUT)
    assert after(planner, plan, 60.0, steps=5, transfer=60.0) == plan
