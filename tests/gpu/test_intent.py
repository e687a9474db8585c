"""access, role, host views and calibration on a real card: where pages are by the host's page table, what moved."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.gpu.arrays import array, host_write
from umarray import drivers
from umarray.calibration.figures import CURVES
from umarray.drivers.base import Attribute, Driver, Mode
from umarray.places import HOST, Device

pytestmark = pytest.mark.skipif(
    drivers.get_driver().mode is not Mode.MANAGED or drivers.get_driver().traits(0).unified,
    reason="nothing migrates on this device",
)
SMALL = 8 << 20  # bytes


@pytest.fixture
def x(driver: Driver) -> Any:
    x = array(driver, SMALL // 4)
    x += 1  # compiles its kernel
    driver.synchronize()
    host_write(x, 0)
    return x


def on_host(driver: Driver, x: Any) -> float | None:
    driver.synchronize()
    return driver.host_share(x.data.ptr, x.nbytes)


def standing(driver: Driver, x: Any) -> tuple[Any, ...]:
    return tuple(
        driver.read_range(x.data.ptr, x.nbytes, one)
        for one in (Attribute.READ_MOSTLY, Attribute.PREFERRED_LOCATION, Attribute.ACCESSED_BY)
    )


def test_the_page_table_tells_where_pages_are(driver: Driver, x: Any) -> None:
    assert on_host(driver, x) == 1
    with um.prefetch(x):
        pass
    assert on_host(driver, x) == 0
    host_write(x[: len(x) // 2], 1)
    assert on_host(driver, x) == 0.5
    x += 1
    assert on_host(driver, x) == 0
    um.move(x, to=HOST)
    assert on_host(driver, x) == 1


def test_access_brings_what_is_missing_and_asks_for_nothing_that_is_there(driver: Driver, x: Any) -> None:
    y = array(driver, SMALL // 4)
    with um.access(reads=[x], writes=[y]) as first:
        driver.xp.add(x, 1, out=y)
    assert first.tally.asked >= 1 and on_host(driver, x) == on_host(driver, y) == 0
    with um.access(reads=[x], writes=[y]) as second:
        driver.xp.add(x, 1, out=y)
    assert second.tally.calls == 0 and "nothing" in str(second)
    assert float(y[0]) == float(y[-1]) == 1


def test_overwritten_pages_are_renewed_and_hold_what_is_written(driver: Driver) -> None:
    if not driver.traits(0).renew:
        pytest.skip("this runtime cannot discard")
    y = array(driver, SMALL // 4)
    host_write(y, 1)
    with um.access(writes=[y]) as plan:
        y[...] = 3
    assert plan.tally.bytes_renewed == SMALL and "without contents" in str(plan)
    assert bool((y == 3).all()) and on_host(driver, y) == 0


@pytest.mark.parametrize("mode", ["r", "w", "r+"])
@pytest.mark.parametrize("wait", [True, False])
def test_a_loop_with_host_views_leaves_pages_on_the_device(driver: Driver, x: Any, mode: str, wait: bool) -> None:
    x += 1
    for turn in range(3):
        with um.host_view(x, mode, wait=wait) as h:
            if mode != "r":
                h[...] = turn
        x += 1
    assert on_host(driver, x) == 0
    assert float(x[0]) == float(x[-1]) == (4 if mode == "r" else 3)


def test_arrays_that_touch_are_one_copy(driver: Driver, x: Any) -> None:
    from umarray import events

    x += 1
    half, told = len(x) // 2, list[Any]()
    stop = events.listen(told.append)
    try:
        with um.host_view((x[half:], x[:half]), "w") as (second, first):
            first[...], second[...] = 1, 2
    finally:
        stop()
    assert [one.nbytes for one in told if isinstance(one, events.Copied)] == [SMALL]
    assert float(x[0]) == 1 and float(x[-1]) == 2


@pytest.mark.parametrize("name", ["weights", "batch", "table", "cold"])
def test_a_role_holds_and_leaves_nothing(driver: Driver, x: Any, name: str) -> None:
    with um.role(x, name) as role:
        assert standing(driver, x) != (False, False, ()) and name in str(role)
        assert float((x + 1).max()) == 1
        on_the_host = on_host(driver, x)
        assert on_the_host == (1 if "on the host" in role.picked else 0)
    assert standing(driver, x) == (False, False, ()) and role.tally.not_restored == 0


def test_a_new_arena_prefers_its_device(driver: Driver) -> None:
    with um.pool("8MiB"):
        y = um.zeros(1000)
        assert driver.read_range(y.data.ptr, y.nbytes, Attribute.PREFERRED_LOCATION) == Device(0)
        del y


def test_calibration_takes_less_than_two_seconds_and_256_mib(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UMARRAY_CACHE", str(tmp_path))
    from umarray.calibration import current
    from umarray.calibration.known import set_current

    before = current()
    asked, allocate = list[int](), driver.allocate
    monkeypatch.setattr(driver, "allocate", lambda n, *rest: asked.append(n) or allocate(n, *rest))
    try:
        start = perf_counter()
        found = um.calibrate(force=True)
        seconds = perf_counter() - start
    finally:
        set_current(0, before)
    assert seconds < 2 and sum(asked) <= 256 << 20 and found.measured
    missing = {name for name in CURVES if getattr(found, name) is None}
    assert missing <= {"renew", "renew_back"}
    assert all(source == "measured" for name, source in found.sources.items()), found.sources
    assert found.copy_in is not None and found.demand is not None and found.prefetch is not None
    assert found.prefetch(32 << 20) < found.demand(32 << 20) and found.copy_in.rate(32 << 20) > 5e9
    assert np.isfinite(found.seconds)
