"""The contract of transports, on the host and on the recording driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contracts.transport_contract import TransportContract
from umarray import drivers
from umarray.drivers.host import HostDriver
from umarray.pipeline.transport import take_all


class TestHost(TransportContract):
    transport = "host"
    travels = moves = False

    @pytest.fixture
    def driver(self) -> Iterator[Any]:
        before = drivers.set_driver(HostDriver())
        yield drivers.get_driver()
        drivers.set_driver(before)


class OnTheFake(TransportContract):
    """On the recording driver: in `mode`, with the abilities."""

    mode: str
    abilities: dict[str, bool] = {}

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake(self.mode, **self.abilities)


class TestStagedExplicit(OnTheFake):
    transport = "staged"
    mode = "explicit"


class TestManaged(OnTheFake):
    """Pages come home by a prefetch that keeps its caller: each way has a thread."""

    transport = "managed"
    mode = "managed"
    abilities = {"prefetch_blocks": True}


class TestManagedRenewed(OnTheFake):
    """Pages come home without their bytes."""

    transport = "managed"
    mode = "managed"
    abilities = {"renews": True}


class TestManagedOnAnAPU(OnTheFake):
    """Nothing has to move there: a prefetch is a no-op that says so."""

    transport = "managed"
    moves = False
    mode = "managed"
    abilities = {"unified": True}


class TestBus(OnTheFake):
    transport = "bus"
    travels = moves = False
    mode = "managed"


class TestBusExplicit(OnTheFake):
    """Pinned memory, read where it lies."""

    transport = "bus"
    travels = moves = False
    mode = "explicit"


class TestDirect(OnTheFake):
    transport = "direct"
    travels = moves = False
    mode = "managed"
    abilities = {"unified": True}


def test_every_step_is_taken_and_the_first_failure_comes_out() -> None:
    taken: list[int] = []

    def step(number: int) -> None:
        taken.append(number)
        if number:
            raise KeyError(number)

    with pytest.raises(KeyError, match="1"):
        take_all(*(lambda number=number: step(number) for number in range(3)))
    assert taken == [0, 1, 2]
