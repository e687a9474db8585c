"""Every test here runs behind the guard: at most 2 GiB of managed memory alive at once, never oversubscribed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import guard
from umarray import drivers
from umarray.drivers.base import Driver


@pytest.fixture(scope="session", autouse=True)
def _guarded() -> Iterator[None]:
    remove = guard.install(drivers.get_driver())
    yield
    remove()


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()
