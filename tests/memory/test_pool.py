"""What every pool is: its life, epochs, escapes, statistics."""

from __future__ import annotations

import gc
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray import events
from umarray.memory import active, lingering
from umarray.memory.host_pool import HostPool

ARENA = 64 << 10


def test_a_pool_does_nothing_before_it_is_needed(fake: FakeDriver) -> None:
    with um.pool():
        assert not fake.named("allocate")
        um.empty(1)
        assert fake.count("allocate") == 1


def test_closing_with_live_arrays_keeps_them(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        x = um.zeros(10)
    assert pool.closed and lingering.kept() == 1
    x += 3
    assert (x == 3).all() and len(fake.live) == 1
    for use in (lambda: pool.malloc(1), lambda: pool.epoch().__enter__(), pool.__enter__):
        with pytest.raises(um.ClosedError, match="closed"):
            use()
    pool.close()
    del x
    assert lingering.sweep() == 0 and not fake.live


def test_closing_lets_go_of_deferred_uses_that_are_done(fake: FakeDriver) -> None:
    with um.pool(ARENA):
        gate = fake.hold(0)
        um.record_use(um.zeros(1), 0)
        gate.open()
    assert lingering.kept() == 0 and not fake.live


def test_dropping_with_live_arrays_keeps_them(fake: FakeDriver) -> None:
    pool = HostPool(ARENA)
    x = um.zeros(10, pool=pool)
    error = None
    try:
        raise ValueError("a traceback that holds the array", x)
    except ValueError as caught:
        error = caught
    del pool, x
    gc.collect()
    lingering.sweep()
    assert (error.args[1] == 0).all() and len(fake.live) == 1
    error = None
    gc.collect()
    assert lingering.sweep() == 0 and not fake.live


def test_dropped_pools_give_everything_back(fake: FakeDriver) -> None:
    for _ in range(5):
        HostPool(ARENA).malloc(512)
    assert lingering.sweep() == 0
    assert not fake.live and fake.count("free") == 5


def test_escapes_are_told_once_a_line(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        kept: list[Any] = []
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(3):
                with pool.epoch("learn", on_escape="warn") as epoch:
                    kept += [um.zeros(100) for _ in range(2)]
                    um.zeros(100)
        assert len(told) == 1 and told[0].category is um.EscapeWarning
        text = str(told[0].message)
        assert "'learn'" in text and "2 arrays (2.0 KiB)" in text and "test_pool.py:" in text
        assert told[0].filename == __file__
        assert [(escape.count, escape.nbytes) for escape in epoch.escapes] == [(2, 2048)]
        kept.clear()


def test_escapes_raise_only_where_the_body_succeeded(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        with pytest.raises(um.EscapeError, match=r"test_pool\.py.*persistent"), pool.epoch(on_escape="raise"):
            x = um.zeros(1)
        with pytest.raises(KeyError), pool.epoch(on_escape="raise") as epoch:
            x = um.zeros(1)
            raise KeyError
        assert len(epoch.escapes) == 1
        assert (x == 0).all()
        del x
        gc.collect()
        with pool.epoch(on_escape="raise") as epoch:
            x = um.zeros(1)
            del x
        assert epoch.escapes == ()


def test_cycles_and_persistent_arrays_are_no_escapes(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool, pool.epoch(on_escape="raise"):
        cycle: list[Any] = [um.zeros(1)]
        cycle.append(cycle)
        del cycle
        with pool.persistent():
            weights = um.zeros(1)
    assert (weights == 0).all()


def test_what_was_made_before_or_by_a_thread_with_an_epoch_of_its_own_is_no_escape(fake: FakeDriver) -> None:
    with um.pool(ARENA, track=True) as pool:
        before = um.zeros(1)
        kept: list[Any] = []
        found: list[Any] = []

        def work() -> None:
            with pool.epoch("other") as epoch:
                kept.append(um.zeros(1, pool=pool))
            found.append(epoch.escapes)

        with pool.epoch("here") as epoch:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(10)
        assert epoch.escapes == ()
        assert [escape.epoch for escape in found[0]] == ["other"]
        assert [escape.epoch for escape in pool.statistics().escapes] == ["other"]
        del before


def test_only_the_outermost_of_overlapping_epochs_touches_the_arenas(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with um.pool(ARENA) as pool:
        calls: list[int] = []
        monkeypatch.setattr(pool, "relay", lambda: calls.append(1))
        with pool.epoch("outer"):
            with pool.epoch("inner"):
                pass
            assert not calls
        assert calls == [1]
        entered, leave = threading.Event(), threading.Event()

        def other() -> None:
            with pool.epoch("concurrent"):
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with pool.epoch("outer"):
            thread.start()
            entered.wait(10)
        assert calls == [1], "another epoch is open"
        leave.set()
        thread.join(10)
        assert calls == [1, 1]


def test_epochs_are_used_once_and_checked(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        with pytest.raises(ValueError, match="'panic'"):
            pool.epoch(on_escape="panic")
        with pytest.raises(TypeError, match="7"):
            pool.epoch(7)  # type: ignore[arg-type]
        epoch = pool.epoch("once")
        with epoch:
            pass
        with pytest.raises(um.ClosedError, match="'once'"), epoch:
            pass


def test_an_epoch_says_what_escaped_to_listeners(fake: FakeDriver) -> None:
    seen: list[events.Record] = []
    stop = events.listen(seen.append)
    with um.pool(ARENA) as pool:
        with pool.epoch("untracked"):
            pass
        with pytest.warns(um.EscapeWarning), pool.epoch("tracked", on_escape="warn"):
            x = um.zeros(1)
        del x
    stop()
    ends = [record for record in seen if isinstance(record, events.EpochEnded)]
    assert [(end.label, end.escapes, end.escaped_bytes) for end in ends] == [
        ("untracked", None, None),
        ("tracked", 1, 512),
    ]


def test_tracked_statistics(fake: FakeDriver) -> None:
    with um.pool(ARENA, track=True) as pool:
        first, second = um.zeros(128, "u1"), um.zeros(1024, "u1")
        del first
        third = um.zeros(2048, "u1")
        statistics = pool.statistics()
        assert statistics.current_bytes == 3072
        assert statistics.peak_bytes == 3072
        assert statistics.total_bytes == 512 + 1024 + 2048
        assert statistics.allocations == 3
        assert statistics.fragmentation == pytest.approx(1 - 3072 / 3584)
        del second, third
        statistics = pool.statistics()
        assert (statistics.current_bytes, statistics.peak_bytes, statistics.fragmentation) == (0, 3072, 0)


def test_pools_may_be_left_in_any_order_of_an_exit_stack(fake: FakeDriver) -> None:
    outer, inner = um.pool(ARENA), um.pool(ARENA)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    x = um.zeros(1)
    assert inner.statistics().current_bytes == 512
    inner.__exit__(None, None, None)
    assert active.current() is None
    del x


def test_a_generator_that_stands_still_in_an_epoch_keeps_no_pool_current(fake: FakeDriver) -> None:
    def batches() -> Any:
        with pool.epoch("batches", on_escape="raise"), pool.persistent():
            yield um.zeros(1)

    with um.pool(ARENA) as pool:
        still = batches()
        next(still)
    assert active.current() is None
    um.zeros(1)
    still.close()
    assert active.current() is None and active.flags(pool) == active.Flags()


def test_a_pool_is_left_in_the_thread_that_entered_it(fake: FakeDriver) -> None:
    pool = um.pool(ARENA)
    pool.__enter__()
    errors: list[BaseException] = []

    def leave() -> None:
        try:
            pool.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join(10)
    assert "thread" in str(errors[0])
    pool.__exit__(None, None, None)


def test_memory_stays_flat_over_many_rounds(fake: FakeDriver) -> None:
    with um.pool(ARENA) as pool:
        for step in range(200):
            with pool.epoch():
                x = um.zeros(100 + step)
                y = np.asarray(x)
                del x, y
        assert pool.statistics().arenas == 1 and len(fake.live) == 1
