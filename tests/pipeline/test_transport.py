"""The contract of transports, on the host and on the recording driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contracts.transport_contract import TransportContract
from umarray import drivers
from umarray.drivers.host import HostDriver


class TestHost(TransportContract):
    transport = "host"

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


class TestStagedManaged(TransportContract):
    transport = "staged"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed")


class TestManaged(TransportContract):
    transport = "managed"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed")


class TestManagedOnAnAPU(TransportContract):
    """Nothing has to move there: a prefetch is a no-op that says so."""

    transport = "managed"

    @pytest.fixture
    def driver(self, make_fake: Any) -> Any:
        return make_fake("managed", unified=True)

    def test_the_report_counts_steps_stages_and_bytes(self) -> None:
        pytest.skip("moves no bytes")
