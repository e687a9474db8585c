"""The demo and the examples on the emulated device."""

from __future__ import annotations

import pytest

from tests.contracts.programs_contract import ProgramsContract
from umarray import drivers
from umarray.drivers.base import Driver


class TestPrograms(ProgramsContract):
    EPOCHS = 2


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()
