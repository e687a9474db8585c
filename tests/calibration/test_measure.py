"""Measuring: which figures, in which state of the pages, on how much memory, and what is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import Call, FakeDriver
from umarray.calibration import measure as measuring
from umarray.calibration import samples as sampling
from umarray.calibration.figures import CURVES
from umarray.calibration.measure import SIZES, measure
from umarray.drivers.base import Kind
from umarray.errors import DriverError, OutOfMemory
from umarray.places import HOST, Device

Make = Callable[..., FakeDriver]
MACHINES: dict[str, tuple[dict[str, Any], set[str], set[str]]] = {
    "migrating": ({}, set(CURVES) - {"renew", "renew_back"}, {"staged", "managed", "bus"}),
    "discarding": ({"renews": True}, set(CURVES), {"staged", "managed", "bus"}),
    "one memory": ({"unified": True}, {*sampling._ANYWHERE}, {"direct", "staged"}),
    "no faults": ({"mode": "explicit"}, {*sampling._ANYWHERE}, {"staged", "bus"}),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SIZES", (4096, 65536, 1 << 20))
    monkeypatch.setattr(measuring, "SLOTS", (65536, 1 << 20))
    monkeypatch.setattr(measuring, "REPETITIONS", 2)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_figure_that_a_device_can_have_is_measured(make_fake: Make, machine: str) -> None:
    settings, curves, slots = MACHINES[machine]
    fake = make_fake(**settings)
    found = measure(fake, 0)
    assert {name for name in CURVES if getattr(found, name) is not None} == curves
    assert set(found.slots) == slots and found.measured and found.seconds > 0
    assert all(found.sources[name] == "measured" for name in (*curves, "slots"))
    assert [nbytes for nbytes, _ in found.bus.points] == [4096, 65536, 1 << 20]  # type: ignore[union-attr]
    assert not fake.live and not fake.open_streams() and not fake.streams.pending()


def test_pages_are_where_each_figure_wants_them(fake: FakeDriver) -> None:
    """At each prefetch: where its pages are. One to where they are is the figure for pages that are there."""
    seen: dict[tuple[Any, bool], int] = {}

    def look(call: Call) -> None:
        if call.name == "prefetch":
            place = call.args["place"]
            there = fake.where(call.args["address"], call.args["nbytes"]) == {place}
            seen[place, there] = seen.get((place, there), 0) + 1

    fake.on_call = look
    measure(fake, 0)
    assert seen[Device(0), False] and seen[Device(0), True] and seen[HOST, False]


def test_faults_are_faults_and_copies_are_not(fake: FakeDriver) -> None:
    measure(fake, 0)
    assert fake.page_faults == 3 * (1 + 16 + 256)  # the device's on demand, at each size, three times
    sources = {call.args["source"] for call in fake.named("traverse")}
    assert len(sources) == 3  # managed, pinned and plain memory


def test_it_takes_at_most_256_mib_and_less_where_little_is_free(
    make_fake: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 5 * SIZES[-1] <= 256 << 20
    fake = make_fake(capacity=16 << 20, managed_capacity=16 << 20)
    monkeypatch.setattr(measuring, "SIZES", SIZES)
    monkeypatch.setattr(measuring, "REPETITIONS", 1)
    measure(fake, 0)
    blocks = fake.named("allocate")
    assert {call.args["nbytes"] for call in blocks} == {2 << 20} and len(blocks) == 4
    assert sum(call.args["kind"] is Kind.MANAGED for call in blocks) == 1


def test_without_room_it_says_so_and_leaves_nothing(make_fake: Make) -> None:
    fake = make_fake(capacity=4 << 20)
    with pytest.raises(OutOfMemory, match="calibrating needs"):
        measure(fake, 0)
    fake = make_fake(pinned_capacity=1 << 30)
    fake.fail("traverse", 700)
    with pytest.raises(DriverError, match="700"):
        measure(fake, 0)
    assert not fake.live and not fake.open_streams()


def test_when_the_time_is_up_the_rest_is_assumed_and_says_so(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "PATIENCE", 0.0)
    found = measure(fake, 0)
    assert found.prefetch is not None and found.sources["prefetch"].startswith("not measured; ")
    assert not found.slots


def test_what_the_runtime_refuses_has_no_figure(make_fake: Make) -> None:
    fake = make_fake(missing=["prefetch"])
    found = measure(fake, 0)
    assert found.prefetch is None and found.prefetch_call is None and found.copy_in is not None
    assert "managed" not in found.slots


@pytest.mark.parametrize("blocks", [False, True])
def test_whether_a_prefetch_keeps_its_caller(make_fake: Make, blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still but for a prefetch, and for the wait after one that does not keep its caller."""
    fake, now = make_fake(prefetch_blocks=not blocks), [0.0]

    def look(call: Call) -> None:
        if call.name == ("prefetch" if blocks else "synchronize"):
            now[0] += 1e-6

    fake.on_call = look
    for module in (measuring, sampling):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    assert measure(fake, 0).prefetch_blocks is blocks
