"""Stated defaults: every figure has a source, and what a device cannot do has no figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.calibration.defaults import defaults
from umarray.calibration.figures import CURVES
from umarray.drivers.host import HostDriver

Make = Callable[..., FakeDriver]
MIGRATING = ("prefetch", "prefetch_back", "prefetch_there", "prefetch_call", "copy_managed", "demand", "demand_back")


@pytest.mark.parametrize("settings", [{}, {"coarse_grain": False}, {"unified": True}, {"mode": "explicit"}])
def test_every_figure_has_a_source(make_fake: Make, settings: dict[str, Any]) -> None:
    found = defaults(make_fake(**settings), 0)
    for name in CURVES:
        assert (getattr(found, name) is not None) == (name in found.sources), name
    assert not found.measured and found.sources["slots"]
    assert (found.prefetch_blocks is not None) == ("prefetch_blocks" in found.sources)


def test_cuda_and_hip_are_told_apart(make_fake: Make) -> None:
    hip, cuda = (defaults(make_fake(coarse_grain=flag, prefetch_blocks=flag), 0) for flag in (True, False))
    assert hip.prefetch != cuda.prefetch and (hip.prefetch_blocks, cuda.prefetch_blocks) == (True, False)
    assert cuda.prefetch is not None and cuda.prefetch(256 << 20) == pytest.approx(5.3e-3)  # as measured


def test_without_faults_there_are_copies_and_nothing_migrates(make_fake: Make) -> None:
    found = defaults(make_fake("explicit"), 0)
    assert [getattr(found, name) for name in MIGRATING] == [None] * len(MIGRATING)
    assert found.copy_in is not None and set(found.slots) == {"staged", "bus"} and found.prefetch_blocks is None


def test_one_memory_costs_nothing_to_move(make_fake: Make) -> None:
    found = defaults(make_fake(unified=True), 0)
    assert found.prefetch is not None and found.prefetch(1 << 30) == 0 and set(found.slots) == {"direct"}


def test_the_host_has_nothing_and_says_why() -> None:
    found = defaults(HostDriver(("a test",)), 0)
    assert all(getattr(found, name) is None for name in CURVES) and not found.slots
    assert "nothing is measured" in str(found) and "a test" in str(found)
