"""Transports by which nothing travels: what their slots are, and that they stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray import events
from umarray.drivers.base import Advice, Kind

LIKE = {"x": um.Spec(1024, "int32")}


def run(fake: FakeDriver, transport: str) -> None:
    def prep(item: int, slot: Any) -> None:
        fake.host_touch(slot["x"].ctypes.data, 4096) if managed else None
        slot["x"][...] = item

    def compute(batch: Any) -> int:
        fake.launch(touches=[(batch["x"].ctypes.data, 4096)] if managed else [])
        return int(batch["x"][0])

    managed = fake.mode.value == "managed" and transport == "bus"
    with um.Pipeline(range(9), prep, compute, like=LIKE, transport=transport, workers=1, slots=3) as p:
        assert list(p) == list(range(9))
        assert p.report().bytes_moved == 0
    assert not fake.named("copy", "prefetch", "renew")


def kinds(fake: FakeDriver) -> set[Kind]:
    return {call.args["kind"] for call in fake.named("allocate")}


def test_direct_slots_are_managed_memory(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(unified=True)
    run(fake, "direct")
    assert kinds(fake) == {Kind.MANAGED} and not fake.named("advise")


def test_bus_slots_prefer_the_host_and_are_mapped_by_the_device(make_fake: Callable[..., FakeDriver]) -> None:
    fake, told = make_fake(), list[Any]()
    stop = events.listen(lambda record: told.append(record) if isinstance(record, events.Advised) else None)
    run(fake, "bus")
    stop()
    assert kinds(fake) == {Kind.MANAGED}
    asked = [(call.args["advice"], call.args["place"]) for call in fake.named("advise")]
    assert asked == [(Advice.PREFERRED_LOCATION, um.HOST), (Advice.ACCESSED_BY, um.Device(0))] * 3
    assert len(told) == 6 and all(record.on and record.supported for record in told)


@pytest.mark.parametrize("settings", [{"mode": "explicit"}, {"missing": ["advise"]}])
def test_bus_slots_are_pinned_where_pages_cannot_be_kept(
    make_fake: Callable[..., FakeDriver], settings: dict[str, Any]
) -> None:
    fake = make_fake(**settings)
    with um.Pipeline(range(5), lambda i, slot: None, lambda b: None, like=LIKE, transport="bus", slots=2) as p:
        list(p)
        assert [allocation.kind for allocation in fake.live.values()] == [Kind.PINNED] * 2
    assert fake.live == {}


def test_a_ring_whose_advice_fails_is_given_back(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake()
    fake.fail("advise", 700)
    with pytest.raises(um.DriverError, match="700"):
        with um.Pipeline(range(5), lambda i, slot: None, like=LIKE, transport="bus") as p:
            list(p)
    assert fake.live == {}
