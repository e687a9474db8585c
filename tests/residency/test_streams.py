"""Streams of others, streams of our own, and our threads."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from tests.fake_driver import FakeDriver
from umarray.residency.streams import Lane, OwnStreams, after


def test_threads_that_ask_at_once_get_one_stream(fake: FakeDriver) -> None:
    own, begin, got = OwnStreams(fake), threading.Barrier(4), list[Lane]()

    def work() -> None:
        begin.wait(10)
        got.append(own.lane(0))

    fake.on_call = lambda call: begin.wait(10) if call.name == "create_stream" else None
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(got) == 4 and len(set(got)) == 1
    assert fake.open_streams() == {got[0].stream}


def test_a_default_streams_handle_means_that_of_its_device() -> None:
    fake = FakeDriver(devices=2)
    stream, seen = fake.create_stream(0), list[str]()
    gate = fake.hold(stream)
    after(fake, Lane(0, 1), [Lane(stream, 0)])
    fake.launch(lambda: seen.append("other device"), 0, 1)
    fake.launch(lambda: seen.append("this device"), 0, 0)
    assert seen == ["this device"]
    gate.open()
    assert seen == ["this device", "other device"]


def test_a_stream_does_not_wait_for_itself(fake: FakeDriver) -> None:
    after(fake, Lane(0, 0), [Lane(0, 0)])
    assert fake.count("record") == 0


def test_work_in_our_thread_is_in_order_errors_come_out_and_nothing_is_kept(fake: FakeDriver) -> None:
    own, done, threads = OwnStreams(fake), list[int](), set[str]()

    def work(number: int) -> None:
        done.append(number)
        threads.add(threading.current_thread().name)

    class Big:
        def __call__(self) -> None:
            raise KeyError("mine")

    futures = [own.in_thread(0, lambda number=number: work(number)) for number in range(5)]
    for future in futures:
        future.result(10)
    assert done == list(range(5)) and threads == {"umarray-prefetch-0"}
    big = Big()
    alive = weakref.ref(big)
    failed = own.in_thread(0, big)
    with pytest.raises(KeyError, match="mine"):
        failed.result(10)
    del big, failed
    give_up = time.monotonic() + 10  # the thread lets go right after it has told the result
    while alive() is not None and time.monotonic() < give_up:
        gc.collect()
    assert alive() is None
