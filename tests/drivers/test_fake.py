"""The recording driver keeps the same contract as the real ones, in every trait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.driver_contract import DriverContract
from tests.fake_driver import FakeDriver


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="managed"),
        pytest.param({"mode": "explicit"}, id="explicit"),
        pytest.param({"devices": 2, "page_size": 1 << 16}, id="two devices, big pages"),
        pytest.param({"prefetch_blocks": True, "readable_ranges": False}, id="blocks, unreadable"),
        pytest.param({"unified": True}, id="unified"),
        pytest.param({"missing": ["prefetch"]}, id="no prefetch"),
        pytest.param({"per_thread_default": True}, id="per-thread default stream"),
    ],
)
class TestFake(DriverContract):
    @pytest.fixture
    def driver(self, settings: dict[str, Any]) -> Any:
        fake = FakeDriver(**settings)
        yield fake
        assert not fake.faults
