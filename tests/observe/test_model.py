"""Where the model's figures come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fake_driver import FakeDriver
from umarray.drivers import get_driver
from umarray.observe.facts import Costs
from umarray.observe.model import costs_of


def test_a_device_has_its_calibration_or_what_is_assumed(fake: FakeDriver, monkeypatch: Any) -> None:
    monkeypatch.delenv("HIPEMU", raising=False)
    costs = Costs(**costs_of(fake))
    assert costs.source.startswith("what was assumed for ")
    assert costs.demand < costs.to_device and costs.call > 0 and costs.fault > 0


def test_figures_go_into_a_trace(make_fake: Callable[..., FakeDriver]) -> None:
    for driver in (make_fake(), make_fake(unified=True)):
        assert Costs(**json.loads(json.dumps(costs_of(driver), allow_nan=False)))


def test_without_a_device_it_says_so() -> None:
    driver = get_driver()
    if not driver.device_count():
        assert "no device" in costs_of(driver)["source"]
