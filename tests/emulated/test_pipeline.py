"""The contract of transports over the real ROCm wheel and the emulated device, and what each moves there."""

from __future__ import annotations

from typing import Any

import pytest

import umarray as um
from tests.contracts.transport_contract import TransportContract
from umarray import drivers, hipemu
from umarray.drivers.base import Driver
from umarray.pipeline import choose

PAGES = 32
BATCHES = 12


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


class Possible(TransportContract):
    @pytest.fixture(autouse=True)
    def _where_it_can_work(self, driver: Any) -> None:
        if self.transport not in choose.possible(driver):
            pytest.skip("cannot work on this device")


class TestStaged(Possible):
    transport = "staged"


class TestManaged(Possible):
    transport = "managed"

    @pytest.fixture(autouse=True)
    def _whether_pages_move(self, driver: Any) -> None:
        self.moves = driver.traits(0).prefetch


class TestBus(Possible):
    transport = "bus"
    travels = moves = False


class TestDirect(Possible):
    transport = "direct"
    travels = moves = False


class Lab:
    """Two iterations over the same slots, the second one counted: every page of a batch is written and read."""

    def __init__(self, driver: Driver, transport: str, workers: int) -> None:
        if transport not in choose.possible(driver):
            pytest.skip("cannot work on this device")
        elements = PAGES * driver.page_size // 4
        self.driver = driver
        self.pipeline = um.Pipeline(
            range(BATCHES),
            self.prep,
            lambda batch: batch["x"].sum(),
            like={"x": um.Spec(elements, "int32")},
            transport=transport,
            workers=workers,
            slots=3,
        )
        with self.pipeline as p:
            list(p)
            driver.synchronize()
            with hipemu.counters() as self.counters:
                totals = [int(total) for total in p]
                driver.synchronize()
        assert totals == [item * elements for item in range(BATCHES)]
        self.bytes = BATCHES * PAGES * driver.page_size

    def prep(self, item: int, slot: Any) -> None:
        slot["x"][...] = item


@pytest.mark.parametrize("workers", [0, 1])
def test_managed_slots_fault_nowhere_and_go_and_come_once(driver: Driver, workers: int) -> None:
    lab = Lab(driver, "managed", workers)
    c = lab.counters
    assert c.device_faults == 0 and c.host_faults == c.host.new_pages  # a group may reach pages never touched before
    if driver.traits(0).prefetch:
        assert lab.bytes <= c.bytes_to_device <= lab.bytes * 1.5
        back = 0 if driver.traits(0).renew else lab.bytes
        assert back <= c.bytes_to_host <= back * 1.5


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("transport", ["bus", "direct", "staged"])
def test_what_does_not_migrate_makes_no_fault_and_moves_no_page(driver: Driver, transport: str, workers: int) -> None:
    c = Lab(driver, transport, workers).counters
    assert c.device_faults == 0 and c.host_faults == c.host.new_pages
    assert c.bytes_to_device == c.bytes_to_host == 0


def test_auto_takes_what_the_device_calls_for(driver: Driver) -> None:
    lab = Lab(driver, "auto", 1)
    assert lab.pipeline.transport == ("direct" if driver.traits(0).unified else "staged")
