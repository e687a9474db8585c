"""What tests that count pages on the emulated device share."""

from __future__ import annotations

from typing import Any

import pytest

from umarray import drivers, hipemu
from umarray.drivers.base import Driver, Mode


@pytest.fixture
def driver() -> Driver:
    """The driver, of a machine whose pages are as large as it thinks."""
    found, page = drivers.get_driver(), hipemu.page_bytes()
    if found.page_size != page:
        pytest.skip(f"the machine's pages have {page} bytes, the driver's {found.page_size}: counts would not be exact")
    return found


@pytest.fixture
def migrating(driver: Driver) -> Any:
    """CuPy on a machine whose pages migrate."""
    if driver.mode is not Mode.MANAGED or driver.traits(0).unified:
        pytest.skip("nothing migrates on this machine")
    return driver.xp


@pytest.fixture
def two(driver: Driver, cupy: Any) -> Any:
    """The test's `cupy`, on a machine of two devices or more."""
    if driver.device_count() < 2:
        pytest.skip("this machine has one device")
    return cupy
