"""The contract of transports over the real ROCm wheel and the emulated device."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.transport_contract import TransportContract
from umarray import drivers
from umarray.drivers.base import Driver, Mode


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


class TestStaged(TransportContract):
    transport = "staged"


class TestManaged(TransportContract):
    transport = "managed"

    @pytest.fixture(autouse=True)
    def _where_it_can_work(self, driver: Any) -> None:
        if driver.mode is not Mode.MANAGED:
            pytest.skip("this device does not fault")
