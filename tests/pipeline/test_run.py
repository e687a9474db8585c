"""Order: nothing is written before its last reader is done, whichever stage lags. Streams are held by gates."""

from __future__ import annotations

import gc
import itertools
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import umarray as um
from tests import fake_streams
from tests.fake_driver import FakeDriver
from tests.fake_streams import FakeEvent, Gate
from umarray import drivers
from umarray.drivers.base import host_bytes
from umarray.pipeline import choose, feed
from umarray.pipeline.feed import Feed
from umarray.pipeline.pace import Pace

LIKE = {"x": um.Spec((16, 64), "int32")}
PATIENCE = 10.0


@pytest.fixture(autouse=True)
def _less_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_streams, "PATIENCE", PATIENCE)


class Lab:
    """A pipeline whose kernels note what they find in their slot when they run, and whose preparation is watched."""

    def __init__(self, fake: FakeDriver, transport: str, slots: int, workers: int = 1, **arguments: Any) -> None:
        self.fake = fake
        self.found: dict[int, set[int]] = {}
        self.places: dict[int, Any] = {}
        self.prepared: set[int] = set()
        self.stalled = threading.Event()  # preparation waits for the device, or has gone too far
        self.too_far = 10**9
        wait = fake.streams.host_wait

        self.on_wait: Callable[[], None] = lambda: None  # the iterating thread is about to wait for the device

        def host_wait(event: FakeEvent) -> None:
            if not event.finished and threading.current_thread().name.startswith("umarray-pipeline-prep"):
                self.stalled.set()
            elif not event.finished and threading.current_thread() is threading.main_thread():
                self.on_wait()
            wait(event)

        fake.streams.host_wait = host_wait  # type: ignore[method-assign]
        arguments.setdefault("compute", self.compute)
        self.pipeline = um.Pipeline(
            range(24), self.prep, like=LIKE, transport=transport, slots=slots, workers=workers, **arguments
        )

    def prep(self, item: int, slot: Any) -> None:
        address = slot["x"].ctypes.data
        if self.pipeline.transport == "managed":
            self.places[item] = self.fake.where(address, slot["x"].nbytes)
            self.fake.host_touch(address, slot["x"].nbytes)
        slot["x"][...] = item
        self.prepared.add(item)
        if item >= self.too_far:
            self.stalled.set()

    def compute(self, batch: Any) -> int:
        address, nbytes, index = batch["x"].ctypes.data, batch["x"].nbytes, batch.index
        touches = [(address, nbytes)] if self.pipeline.transport == "managed" else []
        self.fake.launch(lambda: self.note(index, address, nbytes), touches=touches)
        return int(index)

    def note(self, index: int, address: int, nbytes: int) -> None:
        self.found[index] = set(host_bytes(address, nbytes, None).view(np.int32).tolist())

    def stream(self, stage: str) -> int:
        engine, outbox = self.pipeline._rig.engine, self.pipeline._rig.outbox
        assert engine is not None
        stream = {
            "compute": 0,
            "transfer": engine.transport.stream,
            "back": engine.transport.back_stream,
            "out": outbox and outbox._stream,
        }[stage]
        assert stream is not None
        return stream

    def check(self) -> None:
        self.fake.synchronize()
        assert self.found == {index: {index} for index in range(24)}


def streams_of(transport: str) -> list[str]:
    return ["compute", "transfer", "back"] if transport == "managed" else ["compute", "transfer"]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


CASES = [(transport, stage) for transport in ("staged", "managed") for stage in streams_of(transport)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("slots", [2, 5])
@pytest.mark.parametrize(("transport", "stage"), CASES)
def test_a_slot_is_not_written_while_a_stage_that_reads_it_lags(
    fake: FakeDriver, transport: str, stage: str, slots: int, workers: int
) -> None:
    lab = Lab(fake, transport, slots, workers)
    with lab.pipeline as p:
        assert list(p) == list(range(24))
        lab.found.clear(), lab.prepared.clear()
        # Staged: device slots take their turn in stream order, so that preparation runs one ring further ahead.
        lab.too_far = slots * 2 if (transport, stage) == ("staged", "compute") else slots
        gate = fake.hold(lab.stream(stage))
        lab.stalled.clear()
        results = iter(p)
        ahead = [next(results) for _ in range(slots)]
        assert lab.stalled.wait(PATIENCE)
        assert max(lab.prepared) < lab.too_far
        if stage != "back":
            assert lab.found == {}
        gate.open()
        assert [*ahead, *results] == list(range(24))
    lab.check()


@pytest.mark.parametrize("slots", [2, 3])
def test_a_managed_slot_is_home_when_it_is_written_and_away_when_it_is_read(fake: FakeDriver, slots: int) -> None:
    lab = Lab(fake, "managed", slots)
    with lab.pipeline as p:
        list(p)
    lab.check()
    assert [lab.places[item] for item in range(slots, 24)] == [{um.HOST}] * (24 - slots)
    assert fake.page_faults == slots  # the first touch of each slot by the host, and none by the device
    assert p.report().bytes_moved == 2 * 24 * 4096


class Inbox:
    """The inbox of an iterating thread that opens the gate where nothing else lets it go on."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.put, self.empty = inner.put, inner.empty
        self.gate: Gate | None = None

    def open(self) -> None:
        if self.gate is not None:
            self.gate.open()
        self.gate = None

    def get(self, timeout: float | None = None) -> Any:
        if self.gate is not None:
            try:
                return self.inner.get(timeout=0.02)  # time for a fault to show
            except queue.Empty:
                self.open()
        return self.inner.get(timeout=timeout)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_stage_may_lag_at_any_step(make_fake: Callable[..., FakeDriver], data: st.DataObject) -> None:
    slots = data.draw(st.integers(2, 5), "slots")
    transport, mode = data.draw(
        st.sampled_from([("staged", "explicit"), ("staged", "managed"), ("managed", "managed")])
    )
    workers = data.draw(st.integers(0, 3), "workers")
    lags = data.draw(st.lists(st.tuples(st.sampled_from(streams_of(transport)), st.integers(0, 7)), max_size=12))
    lab = Lab(make_fake(mode), transport, slots, workers)
    with lab.pipeline as p:
        results, seen = iter(p), list[int]()
        assert p._rig.engine is not None
        inbox = p._rig.engine.inbox = Inbox(p._rig.engine.inbox)  # type: ignore[assignment]
        lab.on_wait = inbox.open
        for stage, steps in lags:
            inbox.open()
            inbox.gate = lab.fake.hold(lab.stream(stage))
            seen += itertools.islice(results, steps)
        inbox.open()
        assert [*seen, *results] == list(range(24))
    lab.check()


def test_a_result_on_its_way_to_the_host_is_kept_until_it_has_arrived(make_fake: Callable[..., FakeDriver]) -> None:
    fake = make_fake("explicit")
    fetching = threading.Event()

    buffer = np.zeros((2, 64), "int32")

    def compute(batch: Any) -> Any:
        buffer[...] = batch["x"][:2] + 1000  # the same array each time, while the copy of the one before lags
        return buffer

    lab = Lab(fake, "staged", 2, compute=compute, out=um.HOST)
    wait = fake.streams.host_wait

    def host_wait(event: FakeEvent) -> None:
        if not event.finished and threading.current_thread() is threading.main_thread():
            fetching.set()
        wait(event)

    fake.streams.host_wait = host_wait  # type: ignore[method-assign]
    with lab.pipeline as p:
        results = iter(p)
        assert (next(results) == 1000).all()
        gate = fake.hold(lab.stream("out"))
        opener = threading.Thread(target=lambda: (fetching.wait(PATIENCE), gate.open()))
        opener.start()
        got = [*results]
        opener.join(PATIENCE)
    assert fetching.is_set()
    assert [set(result.ravel().tolist()) for result in got] == [{1000 + item} for item in range(1, 24)]


def test_work_on_a_result_that_shares_a_slot_is_waited_for(make_fake: Callable[..., FakeDriver]) -> None:
    """The loop's body reads the result on the current stream, which lags, and then drops it."""
    lab = Lab(make_fake("managed"), "managed", 2, compute=lambda batch: batch["x"])
    with lab.pipeline as p:
        lab.too_far, seen = 2, 0
        gate = lab.fake.hold(0)
        results = iter(p)
        for view in results:
            address, nbytes, index = view.ctypes.data, view.nbytes, seen
            lab.fake.launch(lambda i=index, a=address, n=nbytes: lab.note(i, a, n))
            seen += 1
            del view
            if seen == 2:
                assert lab.stalled.wait(PATIENCE) and max(lab.prepared) < 2
                gate.open()
    lab.check()


def test_every_call_names_a_stream_of_ours_or_the_current_one(fake: FakeDriver) -> None:
    mine = fake.create_stream(0)
    lab = Lab(fake, "managed", 3)
    with fake.use_stream(mine, 0), lab.pipeline as p:
        list(p)
        ours = {lab.stream("transfer"), lab.stream("back")}
    for name, streams in (("prefetch", ours), ("wait", ours | {mine}), ("record", ours | {mine}), ("launch", {mine})):
        assert {call.stream for call in fake.named(name)} <= streams and fake.named(name)
    fake.destroy_stream(mine, 0)


@pytest.mark.parametrize("transport", ["staged", "managed", "bus"])
@pytest.mark.parametrize("blocks", [False, True])
def test_preparation_threads_queue_the_way_and_do_nothing_that_keeps_them(
    make_fake: Callable[..., FakeDriver], transport: str, blocks: bool
) -> None:
    fake, threads = make_fake("managed", prefetch_blocks=blocks), dict[int, str]()

    def prep(item: int, slot: Any) -> None:
        threads[threading.get_ident()] = threading.current_thread().name

    with um.Pipeline(range(9), prep, lambda batch: None, like=LIKE, transport=transport, workers=2) as p:
        list(p)
    assert threads and threading.get_ident() not in threads
    called = {call.name for call in fake.calls if call.thread in threads}
    if (transport, blocks) == ("staged", False) or (transport, blocks) == ("staged", True):
        assert called == {"copy", "record", "wait"}
    elif transport == "managed" and not blocks:
        assert called == {"prefetch", "record"}
    else:
        assert not called
    queued = {call.thread for call in fake.named("copy", "prefetch")}
    assert transport == "bus" or threading.get_ident() not in queued or not blocks


# Errors


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("transport", ["staged", "managed"])
@pytest.mark.parametrize("call", ["allocate", "create_stream", "record", "wait", "copy", "prefetch", "as_array"])
@pytest.mark.parametrize("nth", [0, 1, 4])
def test_a_call_of_the_driver_that_fails_comes_out_and_all_is_released(
    fake: FakeDriver, transport: str, call: str, nth: int, workers: int
) -> None:
    if (transport, call) in (("staged", "prefetch"), ("managed", "copy")):
        return
    counted: list[Any] = []

    def on_call(made: Any) -> None:
        if made.name == call:
            counted.append(made)
            if len(counted) == nth + 1:
                raise um.DriverError(call, 700, "told by the test")

    lab = Lab(fake, transport, 3, workers, out=um.HOST)
    fake.on_call = on_call
    try:
        with lab.pipeline as p:
            list(p)
    except um.DriverError as error:
        assert error.code == 700
        del error
    else:
        assert len(counted) <= nth  # there was no such call
    fake.on_call = None
    wait_until(lambda: fake.live == {})
    assert fake.open_streams() == set()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("umarray-pipeline-")] == []


@pytest.mark.parametrize("workers", [0, 1])
def test_closing_from_another_thread_ends_the_loop_and_is_no_end_of_the_source(fake: FakeDriver, workers: int) -> None:
    computing, closed = threading.Event(), threading.Event()

    def compute(batch: Any) -> int:
        if batch.index == 2:
            computing.set()
            wait_until(lambda: p._run is None or p._run.left)  # close() waits for this compute
        return int(batch.index)

    lab = Lab(fake, "staged", 3, workers, compute=compute)
    with lab.pipeline as p:
        closer = threading.Thread(target=lambda: (computing.wait(PATIENCE), p.close(), closed.set()))
        closer.start()
        results = iter(p)
        with pytest.raises(um.ClosedError, match="closed"):
            for _ in range(24):
                next(results)
        assert closed.wait(PATIENCE)
        closer.join(PATIENCE)
    assert fake.live == {} and fake.open_streams() == set()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_forked_child_is_told_and_touches_nothing(fake: FakeDriver, workers: int) -> None:
    lab = Lab(fake, "staged", 3, workers)
    with lab.pipeline as p:
        results = iter(p)
        assert next(results) == 0
        child = os.fork()
        if child == 0:
            try:
                next(results)
            except um.ForkedProcess as error:
                os._exit(0 if "parent process" in str(error) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(results) == list(range(1, 24))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("what", ["close", "iterate"])
def test_prep_cannot_close_or_iterate_its_own_pipeline(fake: FakeDriver, workers: int, what: str) -> None:
    def prep(item: int, slot: Any) -> None:
        p.close() if what == "close" else next(iter(p))

    with um.Pipeline(range(9), prep, like=LIKE, workers=workers) as p, pytest.raises(um.PipelineError, match="its own"):
        list(p)


def test_the_stream_may_change_within_a_group(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot of a group is written again only when the readers on every stream are done."""
    monkeypatch.setattr(choose, "MOST_IN_A_GROUP", 3)
    monkeypatch.setattr(feed, "GROUP_SECONDS", PATIENCE)
    lab, usual, other = Lab(fake, "staged", 2, workers=0), fake.create_stream(0), fake.create_stream(0)
    gate = fake.hold(other)
    lab.on_wait = gate.open
    with lab.pipeline as p:
        results, got = iter(p), []
        for turn in range(24):  # groups of 1, 3, 3, ...: the middle one of a group reads on a stream that is held
            with fake.use_stream(other if turn == 2 else usual, 0):
                got.append(next(results))
        gate.open()
        assert got == list(range(24))
    lab.check()
    for stream in (usual, other):
        fake.destroy_stream(stream, 0)


@pytest.mark.watchdog(30)
def test_the_caller_waits_for_the_last_batches_without_spinning(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, calls = make_fake("managed", prefetch_blocks=True), list[int]()
    lab, prepare = Lab(fake, "managed", 3, workers=0), Feed.prepare

    def counted(self: Feed, most: int = 1) -> None:
        calls.append(most)
        if len(calls) > 100:
            gate.open()
        return prepare(self, most)

    monkeypatch.setattr(Feed, "prepare", counted)
    with lab.pipeline as p:
        results = iter(p)
        assert p._rig.engine is not None
        inbox = p._rig.engine.inbox = Inbox(p._rig.engine.inbox)  # type: ignore[assignment]
        gate = inbox.gate = lab.fake.hold(lab.stream("transfer"))
        assert list(results) == list(range(24))
    assert len(calls) <= 25
    lab.check()


def test_the_first_error_wins(fake: FakeDriver) -> None:
    prep_failed = threading.Event()

    def prep(item: int, slot: Any) -> None:
        if item == 2:
            prep_failed.set()
            raise LookupError("prep, first")

    def compute(batch: Any) -> None:
        assert prep_failed.wait(PATIENCE)
        wait_until(lambda: p._run is not None and p._run._crew.error is not None)
        raise ArithmeticError("compute, second")

    settings = {"like": LIKE, "workers": 1}
    with um.Pipeline(range(9), prep, compute, **settings) as p, pytest.raises(LookupError, match="prep, first"):
        list(p)


def test_the_error_says_its_stage_and_batch(fake: FakeDriver) -> None:
    def prep(item: int, slot: Any) -> None:
        slot["x"][...] = np.zeros((3, 3))

    with um.Pipeline(range(9), prep, like=LIKE) as p, pytest.raises(ValueError, match="broadcast") as caught:
        list(p)
    if hasattr(caught.value, "__notes__"):
        assert caught.value.__notes__ == ["raised in the stage 'prep' of batch 0 of an umarray.Pipeline"]


def test_an_error_of_closing_does_not_replace_one_in_flight(fake: FakeDriver) -> None:
    with pytest.raises(KeyError, match="in flight"), um.Pipeline(range(9), Lab.prep, like=LIKE) as p:
        p._rig.open(LIKE)
        fake.fail("destroy_stream", 700)
        raise KeyError("in flight")
    fake._failures.clear()


def test_an_error_of_closing_comes_out_where_nothing_is_in_flight(fake: FakeDriver) -> None:
    lab = Lab(fake, "managed", 2)
    with pytest.raises(um.DriverError, match="700"), lab.pipeline as p:
        list(p)
        fake.fail("destroy_stream", 700)
    assert fake.live == {}


@pytest.fixture
def _no_python_in_the_garbage_collector() -> Iterator[None]:
    """Hypothesis times collections by a callback, in which Python loses the exception of a signal that comes then."""
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks


@pytest.mark.usefixtures("_no_python_in_the_garbage_collector")
@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_ctrl_c_comes_out_while_the_pipeline_waits(fake: FakeDriver, transport: str) -> None:
    """The source does not go on, so the iterating thread waits; a signal ends it, and the source's thread later."""
    stuck, go = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield 0
        stuck.set()
        go.wait(PATIENCE)
        yield 1

    touched: list[int] = []
    main = threading.get_ident()
    interrupter = threading.Thread(target=lambda: (stuck.wait(PATIENCE), signal.pthread_kill(main, signal.SIGINT)))
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        with um.Pipeline(
            source(), lambda i, s: touched.append(i), lambda b: b.index, like=LIKE, transport=transport
        ) as p:
            for index in p:
                assert index == 0
    interrupter.join(PATIENCE)
    assert fake.live == {} and fake.open_streams() == set() and touched == [0]
    go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("umarray-pipeline-"):
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert touched == [0] and drivers.get_driver() is fake


def test_waiting_for_the_device_is_no_work_that_a_thread_could_hide(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[float, float]] = []

    def prepared(self: Pace, seconds: float, waited: float = 0.0) -> None:
        told.append((seconds, waited))

    monkeypatch.setattr(Pace, "prepared", prepared)
    lab, pause = Lab(fake, "staged", 2, workers=0), 0.2
    with lab.pipeline as p:
        results = iter(p)
        gate = fake.hold(lab.stream("transfer"))
        lab.on_wait = lambda: threading.Timer(pause, gate.open).start()  # a slot is waited for
        assert list(results) == list(range(24))
    assert sum(waited for _, waited in told) >= 0.9 * pause
    assert sum(seconds for seconds, _ in told) < 0.9 * pause
    lab.check()


@pytest.mark.watchdog(30)
def test_waiting_for_what_is_under_way_is_told_too(
    make_fake: Callable[..., FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr(Pace, "waited", lambda self, seconds: told.append(seconds))
    lab, pause = Lab(make_fake("managed", prefetch_blocks=True), "managed", 3, workers=0), 0.2
    with lab.pipeline as p:
        results = iter(p)
        gate = lab.fake.hold(lab.stream("transfer"))
        threading.Timer(pause, gate.open).start()
        assert list(results) == list(range(24))
    assert sum(told) >= 0.5 * pause
    lab.check()
