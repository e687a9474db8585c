"""Faults that `explain` finds on a real card, with their remedies; small arrays, nothing oversubscribed.

The saving that was modelled is checked against the seconds of the same work without a watch, within a factor of three:
the figures of the model are the card's by default, and no calibration's.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

import umarray as um
from tests.gpu.arrays import SIZE, array, host_write
from umarray import drivers
from umarray.drivers.base import Driver, Mode
from umarray.observe.explain import Explanation, explain
from umarray.observe.findings import Finding
from umarray.observe.watch import watch

pytestmark = pytest.mark.skipif(
    drivers.get_driver().mode is not Mode.MANAGED or drivers.get_driver().name != "cuda",
    reason="needs a CUDA device that faults and migrates",
)


@pytest.fixture(scope="module", autouse=True)
def _counters(_guarded: None) -> None:
    pytest.importorskip("cupti")
    with watch():  # switches the counters on before the arrays are made
        pass


@pytest.fixture
def table(driver: Driver) -> Any:
    table = array(driver)
    table.sum()  # compiled
    driver.synchronize()
    host_write(table, 1)
    return table


def seen(work: Callable[[], object]) -> Explanation:
    with watch(sync=True) as w:
        work()
    found = explain(w)
    print(found)
    return found


def find(found: Explanation, title: str) -> Finding:
    matching = [one for one in found if one.title == title]
    assert len(matching) == 1, str(found)
    return matching[0]


def timed(driver: Driver, table: Any, work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        host_write(table, 1)
        driver.synchronize()
        start = perf_counter()
        work()
        driver.synchronize()
        times.append(perf_counter() - start)
    return sorted(times)[1]


def test_on_demand_faults(driver: Driver, table: Any) -> None:
    def prefetched() -> None:
        with um.prefetch(table):
            table.sum()

    finding = find(seen(table.sum), "on-demand faults")
    assert finding.subject is not None and finding.subject.name == "table"
    assert finding.evidence["moved bytes"] == SIZE and finding.remedy == "with um.prefetch(table):"
    host_write(table, 1)
    assert not seen(prefetched)
    real = timed(driver, table, table.sum) - timed(driver, table, prefetched)
    assert real / 3 <= finding.saving <= real * 3, (finding.saving, real)


def test_bouncing_between_host_and_device(driver: Driver, table: Any) -> None:
    def by_hand() -> None:
        for turn in range(3):
            table.sum()
            driver.synchronize()
            host_write(table, turn)

    def by_view() -> None:
        for turn in range(3):
            table.sum()
            with um.host_view(table, "w") as h:
                h[...] = turn

    finding = find(seen(by_hand), "bouncing")
    assert 3 <= int(finding.evidence["rounds"]) <= 6  # a driver may move a page twice in a pass
    assert all(one.title != "bouncing" for one in seen(by_view))


def test_a_prefetch_on_the_default_stream(driver: Driver, table: Any) -> None:
    def prefetch(**stream: Any) -> None:
        with um.prefetch(table, **stream):
            table.sum()

    finding = find(seen(lambda: prefetch(stream=0)), "prefetch on the default stream")
    assert finding.evidence["moved bytes"] == SIZE
    host_write(table, 1)
    assert not seen(prefetch)


def test_escapes(driver: Driver) -> None:
    kept = []

    def step() -> None:
        with pool.epoch("step"):
            activation = um.zeros(1 << 20, "u1")
            kept.append(activation)
            del activation

    with um.pool("4MiB", track=True) as pool:
        finding = find(seen(step), "escapes")
        assert finding.saving_bytes == 1 << 20 and finding.evidence["held by"] == "kept[0]"
        kept.clear()


def test_a_loop_with_its_scopes_has_no_finding(driver: Driver, table: Any) -> None:
    def loop() -> None:
        with um.prefetch(table):
            for _ in range(5):
                table.sum()

    assert not seen(loop)
