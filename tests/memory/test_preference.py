"""What a new arena is advised: at home on its device, coarse-grained where one device has it; never an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray import log
from umarray.drivers.base import Advice, Kind
from umarray.memory.preference import prefer
from umarray.places import Device

Make = Callable[..., FakeDriver]
HOME, COARSE = Advice.PREFERRED_LOCATION, Advice.COARSE_GRAIN


def advised(fake: FakeDriver, coarse_grain: bool | None = None, kind: Kind = Kind.MANAGED, device: int = 0) -> Any:
    block = fake.allocate(8192, kind, device)
    prefer(fake, block, coarse_grain)
    found = fake.named("advise")
    assert all(call.args["place"] == Device(device) and call.args["on"] for call in found)
    assert all((call.args["address"], call.args["nbytes"]) == (block.address, 8192) for call in found)
    return [call.args["advice"] for call in found]


@pytest.mark.parametrize(
    ("settings", "coarse_grain", "expected"),
    [
        ({}, None, [HOME, COARSE]),
        ({}, False, [HOME]),
        ({"coarse_grain": False}, None, [HOME]),
        ({"coarse_grain": False}, True, [HOME, COARSE]),  # asked for in so many words: the driver counts it
        ({"devices": 2}, None, [HOME]),
        ({"devices": 2}, True, [HOME, COARSE]),
        ({"unified": True, "coarse_grain": False}, None, []),
        ({"mode": "explicit"}, None, []),
    ],
)
def test_what_is_advised(make_fake: Make, settings: dict[str, Any], coarse_grain: Any, expected: list[Advice]) -> None:
    assert advised(make_fake(**settings), coarse_grain) == expected


def test_it_prefers_the_device_that_it_is_of(make_fake: Make) -> None:
    assert advised(make_fake(devices=2), device=1) == [HOME]


@pytest.mark.parametrize("kind", [Kind.DEVICE, Kind.PINNED])
def test_memory_that_does_not_migrate_is_left(fake: FakeDriver, kind: Kind) -> None:
    block = fake.allocate(8192, kind)
    prefer(fake, block, None)
    assert fake.count("advise") == 0


def test_advice_that_fails_is_logged_and_breaks_nothing(fake: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    log.forget()
    fake.fail("advise", 700)
    assert advised(fake) == [HOME]
    assert "a new arena could not be advised" in caplog.text
