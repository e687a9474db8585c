"""The guard before managed memory on a real card refuses in time, and counts right."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import guard
from umarray.drivers.base import Kind
from umarray.errors import DriverError

MiB = 1 << 20


@pytest.fixture
def driver(make_fake: Any) -> Any:
    fake = make_fake(capacity=64 * MiB, poison=False)
    remove, before = guard.install(fake), guard.alive()
    yield fake
    remove()
    assert guard.alive() == before


def test_managed_memory_is_counted_while_it_lives(driver: Any) -> None:
    before = guard.alive()
    block, plain = driver.allocate(MiB, Kind.MANAGED), driver.allocate(MiB, Kind.DEVICE)
    assert guard.alive() == before + MiB
    driver.free(block)
    driver.free(plain)
    assert guard.alive() == before


def test_over_half_of_what_is_free_is_refused_before_the_driver_is_asked(driver: Any) -> None:
    with pytest.raises(guard.TooMuch, match="over half"):
        driver.allocate(33 * MiB, Kind.MANAGED)
    assert driver.count("allocate") == 0


def test_two_gibibytes_alive_are_the_limit(driver: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(guard, "LIMIT", guard.alive() + 4 * MiB)
    with guard.managed(3 * MiB, driver), pytest.raises(guard.TooMuch, match="limit"):
        driver.allocate(2 * MiB, Kind.MANAGED)
    driver.free(driver.allocate(2 * MiB, Kind.MANAGED))


def test_a_refused_allocation_does_not_count(driver: Any) -> None:
    before = guard.alive()
    driver.fail("allocate", 801)
    with pytest.raises(DriverError):
        driver.allocate(MiB, Kind.MANAGED)
    assert guard.alive() == before
