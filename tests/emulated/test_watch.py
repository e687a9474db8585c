"""Watching on the emulated device: exact figures, charged to the arrays that they belong to."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

import umarray as um
from umarray import drivers, events
from umarray.drivers.base import Mode, host_bytes
from umarray.observe.chrome import to_chrome
from umarray.observe.counters import sources
from umarray.observe.levels import levels
from umarray.observe.trace import read_trace
from umarray.places import HOST, Device

hipemu = pytest.importorskip("umarray.hipemu")
pytestmark = pytest.mark.skipif(not hipemu.active(), reason="runs on the emulated device only")

PAGES = 16


@pytest.fixture(scope="module")
def page() -> int:
    return int(hipemu.page_bytes())


@pytest.fixture
def x(page: int) -> Iterator[Any]:
    """An array of its own pages, at home on the host, its kernel compiled."""
    driver = drivers.get_driver()
    if driver.mode is not Mode.MANAGED or driver.traits(0).unified:
        pytest.skip("nothing migrates on this machine")
    with um.pool("4MiB"):
        yield _array(page, PAGES)


def _array(page: int, pages: int) -> Any:
    made = um.empty(pages * page, "u1", page_aligned=True)
    made += 1
    with um.host_view(made, "w") as h:
        h[:] = 0
    um.move(made, to=HOST)
    drivers.get_driver().synchronize()
    return made


def test_on_demand(x: Any, page: int) -> None:
    with um.watch(sync=True) as w:
        x += 1
    counts = w.report.counts
    assert (counts.device_faults, counts.host_faults) == (PAGES, 0)
    assert (counts.bytes_to_device, counts.bytes_to_host, counts.bytes_between_devices) == (PAGES * page, 0, 0)
    assert (counts.prefetched_bytes, counts.used_bytes, counts.unused_bytes) == (0, 0, 0)
    assert counts.modelled_seconds and counts.modelled_seconds > 0
    assert w.report.sources[0].exactness == "exact" and w.report.lost == 0


def test_prefetched_and_used(x: Any, page: int) -> None:
    with um.watch(sync=True) as w, um.prefetch(x):
        x += 1
    counts = w.report.counts
    assert (counts.device_faults, counts.prefetched_bytes) == (0, PAGES * page)
    assert (counts.used_bytes, counts.unused_bytes) == (PAGES * page, 0)


def test_prefetched_and_used_in_part(x: Any, page: int) -> None:
    part = x[: 3 * page]
    with um.watch(sync=True) as w, um.prefetch(x):
        part += 1
    counts = w.report.counts
    assert (counts.used_bytes, counts.unused_bytes) == (3 * page, (PAGES - 3) * page)


def test_prefetched_and_never_used(x: Any, page: int) -> None:
    with um.watch(sync=True) as w, um.prefetch(x, back=HOST):
        pass
    counts = w.report.counts
    assert (counts.used_bytes, counts.unused_bytes) == (0, PAGES * page)
    assert (counts.bytes_to_device, counts.bytes_to_host) == (PAGES * page, PAGES * page)
    assert w.report.requests.prefetch_bytes == counts.prefetched_bytes == 2 * PAGES * page


def test_the_hosts_faults(x: Any, page: int) -> None:
    with um.prefetch(x):
        x += 1
    drivers.get_driver().synchronize()
    with um.watch(sync=True) as w:
        assert int(host_bytes(x.data.ptr, page, x)[0]) == 1
    counts = w.report.counts
    assert (counts.host_faults, counts.bytes_to_host) == (1, page)
    assert [(one.address, one.host_faults) for one in w.report.arrays] == [(x.data.ptr, 1)]


def test_a_host_view_is_a_stall(x: Any) -> None:
    with um.watch(sync=True) as w, um.host_view(x) as h:
        assert int(h[0]) == 0
    assert w.report.stalls >= 1


def test_transfers_are_charged_to_their_arrays(x: Any, page: int) -> None:
    y = _array(page, 4)
    with um.watch(sync=True) as w, um.prefetch(y):
        x += 1
        y += 1
    rows = {one.address: one for one in w.report.arrays}
    mine, other = rows[x.data.ptr], rows[y.data.ptr]
    assert (mine.device_faults, mine.bytes_to_device, mine.prefetched_bytes) == (PAGES, PAGES * page, 0)
    assert (other.device_faults, other.bytes_to_device, other.prefetched_bytes) == (0, 4 * page, 4 * page)
    assert other.shape == y.shape and mine.shape == x.shape


def test_an_array_made_inside_is_charged_with_its_line(x: Any, page: int) -> None:
    with um.watch(sync=True) as w:
        y = um.empty(2 * page, "u1", page_aligned=True)
        y[...] = 1
        drivers.get_driver().synchronize()
    row = next(one for one in w.report.arrays if one.address == y.data.ptr)
    assert row.line.startswith(__file__) and row.device_faults == 2


def test_blocks_that_cupys_own_functions_make_are_counted() -> None:
    cupy: Any = drivers.get_driver().xp
    with um.pool("4MiB") as pool:
        with um.watch() as w:
            y = cupy.empty(1000, "u1")
            del y
            z = cupy.empty(5000, "u1")
        after = cupy.empty(1000, "u1")
    report = w.report
    assert (report.allocations, report.allocated_bytes, report.peak_bytes) == (2, 1024 + 5120, 5120)
    made = [one.record for one in w.recording.records if isinstance(one.record, events.Made)]
    assert all(one.line.startswith(__file__) for one in made) and pool.tracker.next_serial == 2
    del z, after


def test_nothing_happens_in_a_quiet_block(x: Any) -> None:
    with um.prefetch(x):
        x += 1
    with um.watch(sync=True) as w:
        x += 1
    assert w.report.faults == 0 and w.report.moved_bytes == 0 and w.report.arrays == ()


def test_watches_nest_and_each_has_its_own(x: Any, page: int) -> None:
    with um.watch(sync=True) as outer:
        x += 1
        with um.watch(sync=True) as inner:
            um.move(x, to=HOST)
            drivers.get_driver().synchronize()
        with um.watch(sync=True) as second:
            x += 1
    assert outer.report.counts.device_faults == 2 * PAGES
    assert (inner.report.counts.device_faults, inner.report.counts.bytes_to_host) == (0, PAGES * page)
    assert (second.report.counts.device_faults, second.report.counts.bytes_to_host) == (PAGES, 0)


def test_watches_in_threads(x: Any, page: int) -> None:
    seen: list[int | None] = []

    def work() -> None:
        with um.pool("4MiB"):
            y = _array(page, 2)
            with um.watch(sync=True) as w:
                y += 1
            seen.extend(one.device_faults for one in w.report.arrays if one.address == y.data.ptr)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [2, 2, 2]


def test_effects_lie_in_the_interval_and_before_the_requests_end(x: Any) -> None:
    start = perf_counter()
    with um.watch(sync=True) as w:
        x += 1
    effects = [one for one in w.recording.records if isinstance(one.record, events.Migrated | events.Faulted)]
    assert effects and all(start <= one.at <= perf_counter() for one in effects)


def test_watching_changes_no_figure(x: Any, page: int) -> None:
    def step() -> None:
        um.move(x, to=HOST)
        with um.prefetch(x[: 8 * page]):
            x.__iadd__(1)

    figures = []
    step()
    for watched in (False, True):
        with hipemu.counters() as c:
            if watched:
                with um.watch():
                    step()
            else:
                step()
        figures.append((c.device_faults, c.host_faults, c.bytes_to_device, c.bytes_to_host, c.prefetched_bytes))
    assert figures[0] == figures[1] and figures[0][0] == PAGES - 8


def test_a_trace_holds_the_same_and_becomes_a_chrome_trace(x: Any, page: int, tmp_path: Path) -> None:
    with um.trace(tmp_path / "t.jsonl"), um.prefetch(x[: 4 * page]):
        x += 1
        drivers.get_driver().synchronize()
    found = read_trace(tmp_path / "t.jsonl")
    records = [one.record for one in found.records]
    moved = [one for one in records if isinstance(one, events.Migrated) and one.kind == "moved"]
    assert sum(one.nbytes for one in moved) == PAGES * page
    assert sum(one.count for one in records if isinstance(one, events.Faulted)) == PAGES - 4
    assert sum(one.nbytes for one in records if isinstance(one, events.Used)) == 4 * page
    assert "device_faults" in found.header.sees and found.header.mode == "managed"
    to_chrome(found, tmp_path / "t.json")
    names = {one["name"] for one in json.loads((tmp_path / "t.json").read_text())["traceEvents"]}
    assert {"moved: prefetch", "moved: fault", "first touch", "prefetch"} <= names


def test_a_crash_of_the_device_leaves_a_readable_trace(tmp_path: Path) -> None:
    script = (
        "import os, sys, time, umarray as um, cupy\n"
        "with um.pool('4MiB'), um.trace(sys.argv[1]):\n"
        "    x = cupy.zeros(1 << 16, 'u1'); x += 1; um.asnumpy(x)\n"
        "    deadline = time.monotonic() + 20\n"
        "    while b'Migrated' not in open(sys.argv[1], 'rb').read() and time.monotonic() < deadline:\n"
        "        time.sleep(0.02)\n"
        "    os.abort()\n"
    )
    driver = drivers.get_driver()
    if driver.mode is not Mode.MANAGED or driver.traits(0).unified:
        pytest.skip("nothing migrates on this machine")
    child = subprocess.run([sys.executable, "-c", script, tmp_path / "t"], capture_output=True, timeout=120)
    assert child.returncode != 0
    found = read_trace(tmp_path / "t")
    assert found.header.ended is None and any(isinstance(one.record, events.Migrated) for one in found.records)


def test_the_source_and_the_level(x: Any) -> None:
    driver = drivers.get_driver()
    (source,) = sources(driver).sources
    assert source.about.exactness == "exact" and "addresses" in source.about.sees
    level = levels(driver)[0]
    assert (level.device, level.used, level.source) == (Device(0), hipemu.used_bytes(0), "the emulated device")


def test_on_an_apu_nothing_moves(page: int) -> None:
    if not drivers.get_driver().traits(0).unified:
        pytest.skip("host and device have memories of their own")
    with um.pool("4MiB"), um.watch(sync=True) as w:
        y = _array(page, 4)
        with um.prefetch(y):
            y += 1
    assert w.report.moved_bytes == 0 and w.report.requests.unsupported >= 1


def test_without_page_faults_copies_are_seen(tmp_path: Path) -> None:
    if drivers.get_driver().mode is not Mode.EXPLICIT:
        pytest.skip("this machine faults and migrates")
    with um.pool("4MiB"), um.watch(sync=True) as w:
        y = um.zeros(1000, "u1")
        with um.host_view(y, "r+") as h:
            h[:] = 1
    asked = w.report.requests
    assert (asked.copied_to_host_bytes, asked.copied_to_device_bytes) == (1000, 1000)
    assert w.report.faults == 0
