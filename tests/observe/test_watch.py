from __future__ import annotations

import copy
import functools
import gc
import json
import logging
import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from tests.observe.fake_source import FakeSource
from tests.residency.arrays import managed
from umarray import events
from umarray.drivers.base import Mode
from umarray.errors import ClosedError
from umarray.memory import watched
from umarray.observe import counters
from umarray.observe.watch import last_watch
from umarray.places import HOST, Device


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> FakeSource:
    source = FakeSource()
    monkeypatch.setattr(counters, "sources", lambda driver: counters.Found((source,), ()))
    return source


def test_it_counts_what_happens_inside(fake: FakeDriver, source: FakeSource) -> None:
    x = managed(fake)
    with um.watch() as w, um.prefetch(x):
        pass
    um.move(x, to=HOST)
    report = w.report
    assert (report.requests.prefetches, report.requests.prefetch_bytes) == (1, x.nbytes)
    assert (report.counts.device_faults, report.counts.bytes_to_device, report.counts.host_faults) == (3, 8192, None)
    assert report.faults == 3 and report.moved_bytes == 8192 and report.seconds > 0
    assert w.report is report and (source.begun, source.ended) == (1, 1)


def test_tracking_is_on_inside() -> None:
    with um.pool("1MiB") as pool:
        before = um.zeros(100, "u1")
        with um.watch() as w:
            x = um.zeros(1000, "u1")
            del x
            y = um.zeros(500, "u1")
        after = um.zeros(100, "u1")
    report = w.report
    assert (report.allocations, report.allocated_bytes, report.peak_bytes, report.alive_bytes) == (2, 1536, 1024, 512)
    assert pool.tracker.next_serial == 2 and not watched.logs
    del before, y, after


def test_a_pool_that_is_entered_inside_is_counted_too() -> None:
    with um.watch() as w:
        with um.pool("1MiB") as pool:
            x = um.zeros(10)
            with pool.epoch("train"):
                y = um.zeros(10)
    assert w.report.allocations == 2
    (escape,) = w.report.escapes
    assert (escape.count, escape.epoch, escape.line.rpartition(":")[0]) == (1, "train", __file__)
    del x, y


def test_arrays_are_charged(fake: FakeDriver, source: FakeSource) -> None:
    with um.pool("1MiB"), um.watch() as w:
        x = um.zeros(1024, "f4")
        start = x.ctypes.data
        at = perf_counter()
        source.told = [events.Migrated(start, 4096, HOST, Device(0), "fault", at, at)]
        with um.prefetch(x):
            pass
    (row,) = w.report.arrays
    assert (row.address, row.shape, row.dtype, row.bytes_to_device) == (start, (1024,), "float32", 4096)
    assert row.line.startswith(__file__)


def test_sync_waits_for_every_device_at_both_ends(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake(devices=2)
    with um.watch(sync=True) as w:
        first = [(call.device, call.stream) for call in fake.calls if call.name == "synchronize"]
    both = [(call.device, call.stream) for call in fake.calls if call.name == "synchronize"]
    assert {device for device, _ in first} == {0, 1} and both == 2 * first
    assert w.report.synchronized


def test_without_sync_nothing_waits(fake: FakeDriver) -> None:
    gate = fake.hold(None, 0)
    try:
        with um.watch() as w:
            pass
        assert not w.report.synchronized and w.recording.header.ended
        assert not [call for call in fake.calls if call.name == "synchronize"]
    finally:
        gate.open()


@pytest.mark.host_mode
def test_on_the_host_there_is_nothing_to_wait_for() -> None:
    with um.watch(sync=True) as w:
        pass
    assert w.report.synchronized and w.report.sources == () and w.report.reasons


def test_watches_nest_and_overlap() -> None:
    outer, inner = um.watch(), um.watch()
    outer.__enter__()
    events.emit(events.Waited(1.0, "outer"))
    inner.__enter__()
    events.emit(events.Waited(2.0, "both"))
    outer.__exit__(None, None, None)
    events.emit(events.Waited(4.0, "inner"))
    inner.__exit__(None, None, None)
    assert (outer.report.stall_seconds, inner.report.stall_seconds) == (3.0, 6.0)
    assert not events.listeners and last_watch() is inner


def test_it_hears_every_thread() -> None:
    with um.watch() as w:
        threads = [threading.Thread(target=lambda: events.emit(events.Waited(1.0, "there"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert w.report.stalls == 4
    assert len({one.thread for one in w.recording.records if isinstance(one.record, events.Waited)}) >= 1


def test_exceptions_pass() -> None:
    with pytest.raises(KeyError, match="mine"), um.watch() as w:
        events.emit(events.Waited(1.0, "why"))
        raise KeyError("mine")
    assert w.report.stalls == 1 and not events.listeners


def test_an_exception_of_the_block_is_not_replaced_by_one_of_the_device(
    fake: FakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="umarray"), pytest.raises(KeyError):
        with um.watch(sync=True):
            fake.fail("synchronize", 700)
            raise KeyError
    assert "700" in caplog.text and not events.listeners


def test_an_error_of_the_device_comes_out_of_a_block_that_succeeded(fake: FakeDriver) -> None:
    with pytest.raises(um.DriverError), um.watch(sync=True):
        fake.fail("synchronize", 700)
    assert not events.listeners and not watched.logs


def test_a_source_that_fails_breaks_nothing(fake: FakeDriver, source: FakeSource) -> None:
    for fails in ("begin", "take", "counts", "end"):
        source.fails = fails
        with um.watch() as w:
            pass
        assert w.report.counts.host_faults is None


def test_as_a_decorator_each_call_is_watched_anew() -> None:
    @um.watch()
    def step(n: int, *, k: int = 1) -> int:
        """A step."""
        for _ in range(n):
            events.emit(events.Waited(1.0, "why"))
        return n * k

    assert step.watch is None and step.__name__ == "step" and step.__doc__ == "A step."  # type: ignore[attr-defined]
    assert step(2, k=3) == 6 and step.watch.report.stalls == 2  # type: ignore[attr-defined]
    assert step(1) == 1 and step.watch.report.stalls == 1  # type: ignore[attr-defined]
    assert last_watch() is step.watch  # type: ignore[attr-defined]


def test_a_decorated_function_may_call_itself() -> None:
    @um.watch()
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    assert down(5) == 5 and not events.listeners


def test_a_recursive_functions_watch_is_the_outermost_calls() -> None:
    @um.watch()
    def down(n: int) -> None:
        events.emit(events.Waited(1.0, "why"))
        if n:
            down(n - 1)

    down(3)
    assert down.watch.report.stalls == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", [1, int, None])
def test_what_is_no_function_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="decorates a function"):
        um.watch()(bad)


def test_functions_that_only_begin_when_called_are_refused() -> None:
    def generator() -> Any:
        yield 1

    async def coroutine() -> None:
        pass

    async def stream() -> Any:
        yield 1

    for function in (generator, coroutine, stream, functools.partial(generator)):
        with pytest.raises(TypeError, match="inside it instead"):
            um.watch()(function)


def test_forgetting_the_parentheses_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write @um\.watch\(\)"):

        @um.watch  # type: ignore[arg-type]
        def step() -> None:
            pass


def test_it_can_be_read_while_it_is_open() -> None:
    with um.watch() as w:
        events.emit(events.Waited(1.0, "why"))
        assert w.report.stalls == 1 and w.recording.header.ended is None
        events.emit(events.Waited(1.0, "why"))
        assert w.report.stalls == 2
    assert w.report.stalls == 2 and len([x for x in w.recording.records if isinstance(x.record, events.Waited)]) == 2


def test_it_is_entered_once_and_left_once() -> None:
    w = um.watch()
    with pytest.raises(ClosedError):
        w.__exit__(None, None, None)
    with pytest.raises(ClosedError):
        w.report  # noqa: B018
    with w:
        with pytest.raises(ClosedError):
            w.__enter__()
    with pytest.raises(ClosedError):
        w.__enter__()
    with pytest.raises(ClosedError):
        w.__exit__(None, None, None)


def test_it_keeps_no_array_alive(fake: FakeDriver) -> None:
    with um.watch() as w:
        x = managed(fake)
        gone = weakref.ref(x)
        with um.prefetch(x):
            pass
        del x
    gc.collect()
    assert gone() is None and w.report.requests.prefetches == 1


def test_it_prints_before_inside_and_after() -> None:
    w = um.watch()
    assert "not entered" in str(w) and "not entered" in w._repr_html_()
    with w:
        assert "seconds" in str(w)
    assert "allocated" in str(w) and "<table" in w._repr_html_() and repr(w) == "<watch, closed>"
    assert json.loads(json.dumps(w.as_dict()))["stalls"] == 0


def test_it_refuses_to_be_copied() -> None:
    with pytest.raises(TypeError, match="as_dict"):
        copy.copy(um.watch())


def test_results_do_not_depend_on_it(make_fake: Callable[..., FakeDriver]) -> None:
    for mode in (Mode.MANAGED, Mode.EXPLICIT):
        make_fake(mode)
        with um.watch(), um.pool("1MiB"):
            x = um.zeros(10)
            x += 1
            assert float(x.sum()) == 10.0
