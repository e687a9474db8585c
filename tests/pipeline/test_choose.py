"""Which transport, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_driver import FakeDriver
from umarray.calibration import Calibration, Curve
from umarray.calibration.known import set_current
from umarray.drivers.host import HostDriver
from umarray.errors import NotSupported
from umarray.pipeline.choose import GROUP_BYTES, KNOWN, MOST_IN_A_GROUP, best, check, costs, group_size
from umarray.pipeline.layout import Layout
from umarray.pipeline.structure import Spec

MIB = 1 << 20


def driver(mode: str) -> Any:
    return HostDriver() if mode == "host" else FakeDriver(mode.removesuffix(", one memory"), unified="," in mode)


@pytest.mark.parametrize(
    ("mode", "works", "auto"),
    [
        ("host", {"host"}, "host"),
        ("explicit", {"staged", "bus"}, "staged"),
        ("managed", {"staged", "managed", "bus"}, "staged"),
        ("managed, one memory", {"staged", "managed", "bus", "direct"}, "direct"),
    ],
)
def test_a_mode_has_its_transports(make_fake: Any, mode: str, works: set[str], auto: str) -> None:
    if mode != "host":
        make_fake(mode.removesuffix(", one memory"), unified="," in mode)  # whose calibration is asked
    name, reason = best(driver(mode), 0, 64 * MIB, {})
    assert name == auto and len(reason) > 20
    for name in set(KNOWN) - {"auto"}:
        if name in works:
            assert check(name, driver(mode)) == name
        else:
            with pytest.raises(NotSupported, match=f"transport '{name}'.*{mode.split(',')[0]} mode.*transport='auto'"):
                check(name, driver(mode))
    assert check("auto", driver(mode)) == "auto"


@pytest.mark.parametrize("name", ["Staged", "", None, 3, b"auto", ["auto"], float("nan")])
def test_an_unknown_name_is_told_those_that_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown transport .*: there are auto, host, staged, managed, bus, direct"):
        check(name, HostDriver())


def flat(seconds: float) -> Curve:
    return Curve(((1, seconds), (1 << 30, seconds)))


@pytest.fixture
def known(make_fake: Callable[..., FakeDriver]) -> Callable[..., FakeDriver]:
    """A driver whose device 0 was calibrated to these seconds, whatever the size."""

    def make(**curves: float) -> FakeDriver:
        fake = make_fake()
        set_current(0, Calibration("Fake", True, **{name: flat(seconds) for name, seconds in curves.items()}))
        return fake

    return make


def test_calibration_decides(known: Callable[..., FakeDriver]) -> None:
    fake = known(copy_in=3.0, prefetch=1.0, prefetch_back=1.5, bus=2.0)
    name, reason = best(fake, 0, MIB, {})
    assert name == "managed" and "managed 2.5e+03 ms, staged 3e+03 ms, bus 4e+03 ms" in reason
    assert "as calibrated" in reason and "1.0 MiB" in reason


def test_pages_that_come_home_without_their_bytes_count_as_such(known: Callable[..., FakeDriver]) -> None:
    fake = known(copy_in=2.0, prefetch=1.0, prefetch_back=1.5, renew_back=0.5)
    found, measured = costs(MIB, 0, ("staged", "managed", "bus"))
    assert found == {"staged": 2.0, "managed": 1.5} and measured
    assert best(fake, 0, MIB, {})[0] == "managed"


def test_what_steps_took_counts_more_than_calibration(known: Callable[..., FakeDriver]) -> None:
    fake = known(copy_in=2.0, prefetch=1.0, prefetch_back=0.5, bus=5.0)
    name, reason = best(fake, 0, MIB, {"managed": 9.0})
    assert name == "staged" and "managed as this pipeline ran" in reason


def test_without_calibration_the_defaults_are_said_to_be_such(make_fake: Callable[..., FakeDriver]) -> None:
    assert "nothing was measured" in best(make_fake(), 0, MIB, {})[1]


@pytest.mark.parametrize(
    ("nbytes", "together"), [(64, MOST_IN_A_GROUP), (MIB, GROUP_BYTES // MIB), (GROUP_BYTES, 1), (64 * MIB, 1)]
)
def test_small_batches_are_grouped(nbytes: int, together: int) -> None:
    assert group_size(Layout(Spec(nbytes, "uint8"))) == together
