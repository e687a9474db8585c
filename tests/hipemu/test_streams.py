"""Order: streams, events, callbacks. A gate in a callback holds a stream; nothing sleeps."""

from __future__ import annotations

from .conftest import HEAD, Run, needs_emulator

pytestmark = needs_emulator

HEAD_WITH_GATE = (
    HEAD
    + """
def held(stream):
    gate, reached = threading.Event(), threading.Event()
    def wait(*_):
        reached.set()
        gate.wait(60)
    stream.add_callback(wait, None)
    return gate
"""
)


def test_work_is_asynchronous_and_in_order(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream(non_blocking=True)
        gate = held(s)
        order = []
        for i in range(5):
            s.add_callback(lambda _, __, n: order.append(n), i)
        event = s.record()
        assert not s.done and not event.done and order == []
        gate.set()
        s.synchronize()
        assert s.done and event.done and order == [0, 1, 2, 3, 4]
        """,
        head=HEAD_WITH_GATE,
    )


def test_a_kernel_waits_for_an_event_of_another_stream(emulated: Run) -> None:
    emulated(
        """
        a, b = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
        x = cupy.zeros(10)
        rt.deviceSynchronize()
        gate = held(a)
        with a:
            x += 1
        b.wait_event(a.record())
        with b:
            y = x * 2
            done = b.record()
        assert not done.done
        gate.set()
        b.synchronize()
        assert y.get(stream=b).tolist() == [2.0] * 10
        """,
        head=HEAD_WITH_GATE,
    )


def test_the_legacy_default_stream_waits_for_blocking_streams_only(emulated: Run) -> None:
    emulated(
        """
        null = cupy.cuda.Stream.null
        for non_blocking in (False, True):
            s = cupy.cuda.Stream(non_blocking=non_blocking)
            gate = held(s)
            mark = null.record()
            if non_blocking:
                mark.synchronize()
                assert not s.done
            else:
                assert not mark.done
            gate.set()
            s.synchronize()
            null.synchronize()
            assert mark.done
        """,
        head=HEAD_WITH_GATE,
    )


def test_blocking_streams_wait_for_the_default_stream(emulated: Run) -> None:
    emulated(
        """
        blocking, free = cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
        holder = cupy.cuda.Stream(non_blocking=True)
        gate = held(holder)
        cupy.cuda.Stream.null.wait_event(holder.record())  # CuPy allows no callback there on HIP
        waits, runs = blocking.record(), free.record()
        runs.synchronize()
        assert not waits.done
        gate.set()
        waits.synchronize()
        """,
        head=HEAD_WITH_GATE,
    )


def test_arguments_and_pageable_sources_are_taken_at_the_call(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream(non_blocking=True)
        x = cupy.zeros(4)
        rt.deviceSynchronize()
        gate = held(s)
        source = np.ones(4)
        rt.memcpyAsync(x.data.ptr, source.ctypes.data, 32, 1, s.ptr)
        source[:] = 7
        gate.set()
        s.synchronize()
        assert x.get().tolist() == [1.0] * 4
        pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(32), "f8", 4)
        pinned[:] = 1
        gate = held(s)
        rt.memcpyAsync(x.data.ptr, pinned.ctypes.data, 32, 1, s.ptr)
        pinned[:] = 7
        gate.set()
        s.synchronize()
        assert x.get().tolist() == [7.0] * 4  # pinned memory is read when the copy runs
        """,
        head=HEAD_WITH_GATE,
    )


def test_a_free_waits_for_the_device(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream(non_blocking=True)
        p = rt.malloc(100)
        gate = held(s)
        ended = threading.Event()
        thread = threading.Thread(target=lambda: (rt.free(p), ended.set()))
        thread.start()
        assert not ended.wait(0.2)
        gate.set()
        thread.join(60)
        assert ended.is_set()
        """,
        head=HEAD_WITH_GATE,
    )


def test_events_measure_and_unrecorded_ones_are_refused(emulated: Run) -> None:
    emulated(
        """
        a, b = cupy.cuda.Event(), cupy.cuda.Event()
        try:
            cupy.cuda.get_elapsed_time(a, b)
        except rt.CUDARuntimeError as error:
            assert error.status == 400
        else:
            raise AssertionError
        a.record()
        cupy.ones(1 << 20).sum()
        b.record()
        b.synchronize()
        assert 0 < cupy.cuda.get_elapsed_time(a, b) < 60000
        """
    )


def test_a_destroyed_stream_finishes_its_work(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream()
        gate = held(s)
        ran = threading.Event()
        s.add_callback(lambda *_: ran.set(), None)
        del s
        gate.set()
        assert ran.wait(60)
        for _ in range(300):
            cupy.cuda.Stream(non_blocking=True).synchronize()
        """,
        head=HEAD_WITH_GATE,
    )


def test_the_device_is_not_idle_before_a_destroyed_stream_is(emulated: Run) -> None:
    emulated(
        """
        s = cupy.cuda.Stream(non_blocking=True)
        gate = held(s)
        del s
        ended = threading.Event()
        thread = threading.Thread(target=lambda: (rt.deviceSynchronize(), ended.set()))
        thread.start()
        assert not ended.wait(0.2)
        gate.set()
        thread.join(60)
        assert ended.is_set()
        """,
        head=HEAD_WITH_GATE,
    )
