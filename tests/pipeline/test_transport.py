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


class TestStagedExplicit(TransportContract):
    transport = "staged"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("explicit")


class TestManaged(TransportContract):
    """Pages come home by a prefetch that keeps its caller: each way has a thread."""

    transport = "managed"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed", prefetch_blocks=True)


class TestManagedRenewed(TransportContract):
    """Pages come home without their bytes."""

    transport = "managed"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed", renews=True)


class TestManagedOnAnAPU(TransportContract):
    """Nothing has to move there: a prefetch is a no-op that says so."""

    transport = "managed"
    moves = False

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed", unified=True)


class TestBus(TransportContract):
    transport = "bus"
    travels = moves = False

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed")


class TestBusExplicit(TransportContract):
    """Pinned memory, read where it lies."""

    transport = "bus"
    travels = moves = False

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("explicit")


class TestDirect(TransportContract):
    transport = "direct"
    travels = moves = False

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed", unified=True)


def test_every_step_is_taken_and_the_first_failure_comes_out() -> None:
    taken: list[int] = []

    def step(number: int) -> None:
        taken.append(number)
        if number:
            raise KeyError(number)

    with pytest.raises(KeyError, match="1"):
        take_all(*(lambda number=number: step(number) for number in range(3)))
    assert taken == [0, 1, 2]
