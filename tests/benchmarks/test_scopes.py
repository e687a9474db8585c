"""What the benchmark of scopes measures with: its meter, its nests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import scopes
from umarray.drivers.base import Kind, Outcome
from umarray.places import Device
from umarray.residency.spans import arrays_in


def test_the_meter_counts_calls_and_their_time_and_takes_itself_off(make_fake: Any) -> None:
    driver, meter = make_fake(), scopes.Meter()
    block = driver.allocate(4096, Kind.MANAGED)
    with meter.on(driver):
        assert driver.prefetch(block.address, 4096, Device(0), driver.create_stream(0)) is Outcome.ASKED
    assert meter.calls == 1 and meter.seconds > 0
    assert not set(scopes.CALLS) & set(vars(driver))
    driver.free(block)


def test_a_meter_in_which_a_call_fails_counts_it_and_takes_itself_off(make_fake: Any) -> None:
    driver, meter = make_fake(), scopes.Meter()
    with pytest.raises(Exception, match="prefetch"), meter.on(driver):
        driver.fail("prefetch", 801)
        block = driver.allocate(4096, Kind.MANAGED)
        try:
            driver.prefetch(block.address, 4096, Device(0), driver.create_stream(0))
        finally:
            driver.free(block)
    assert meter.calls == 1 and not set(scopes.CALLS) & set(vars(driver))


@pytest.mark.parametrize("count", [1, 10, 11, 100, 1234])
def test_a_nest_holds_every_array_once(count: int) -> None:
    arrays = [np.empty(k) for k in range(count)]
    assert sorted(x.size for x in arrays_in(scopes.nest(arrays))) == list(range(count))
