"""Epochs: when the arenas are made whole, what counts as escaped, and epochs that end strangely."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.memory import active
from umarray.memory.epochs import MOST_ESCAPES, Epochs
from umarray.memory.host_pool import HostPool

ARENA = 64 << 10


@pytest.fixture
def pool(fake: FakeDriver) -> Any:
    with um.pool(ARENA) as made:
        yield made


@pytest.fixture
def relaid(pool: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    monkeypatch.setattr(pool, "relay", lambda: calls.append(1))
    return calls


def test_epochs_may_end_out_of_order(pool: Any, relaid: list[int]) -> None:
    first, second = pool.epoch("first"), pool.epoch("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not relaid
    second.__exit__(None, None, None)
    assert relaid == [1]


def test_an_epoch_ends_once_and_in_its_thread(pool: Any) -> None:
    epoch = pool.epoch("mine")
    with pytest.raises(um.ClosedError, match="not open"):
        epoch.__exit__(None, None, None)
    errors: list[BaseException] = []

    def end() -> None:
        try:
            epoch.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(error)

    with epoch:
        thread = threading.Thread(target=end)
        thread.start()
        thread.join(10)
    assert "thread that entered it" in str(errors[0])
    with pytest.raises(um.ClosedError, match="'mine'"):
        epoch.__exit__(None, None, None)


def test_an_epoch_that_is_dropped_open_does_not_keep_the_others_from_ending(pool: Any, relaid: list[int]) -> None:
    epoch = pool.epoch("dropped")
    epoch.__enter__()
    del epoch
    with pool.epoch():
        pass
    assert relaid == [1]


def test_the_arenas_are_made_whole_also_where_the_end_raises(pool: Any, relaid: list[int]) -> None:
    with pytest.raises(um.EscapeError), pool.epoch(on_escape="raise"):
        x = um.zeros(1)
    assert relaid == [1]
    with pytest.raises(KeyError), pool.epoch():
        raise KeyError
    assert relaid == [1, 1]
    del x


def test_an_array_that_an_exception_keeps_is_an_escape(pool: Any) -> None:
    def work() -> None:
        x = um.zeros(1)
        raise ValueError(x.shape)

    with pytest.raises(um.EscapeError, match=r"test_epochs\.py"), pool.epoch(on_escape="raise"):
        try:
            work()
        except ValueError as error:
            kept = error
    del kept


def test_an_epoch_of_a_closed_pool_cannot_begin_and_one_that_is_open_ends(pool: Any) -> None:
    with pool.epoch("open") as epoch:
        pool.close()
    assert epoch.escapes is None
    with pytest.raises(um.ClosedError), pool.epoch("late"):
        pass


def test_an_epoch_of_a_pool_that_is_not_current_sees_what_is_made_in_it(pool: Any) -> None:
    other = HostPool(ARENA)
    with pytest.raises(um.EscapeError), other.epoch(on_escape="raise"):
        assert active.current() is pool
        x = um.zeros(1, pool=other)
    assert not active.flags(other).tracked
    del x
    other.close()


def test_depth_is_the_threads_own() -> None:
    epochs: Any = Epochs()
    first, second = (type("Open", (), {})() for _ in range(2))
    epochs.begin(first)
    epochs.begin(second)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(epochs.depth()))
    thread.start()
    thread.join(10)
    assert (epochs.depth(), seen) == (2, [0])
    epochs.end(second, lambda: seen.append(7))
    epochs.end(first, lambda: seen.append(8))
    assert (epochs.depth(), seen) == (0, [0, 8])


def test_escapes_that_are_remembered_are_bounded(pool: Any) -> None:
    escape = um.memory.Escape("line:1", 1, 512, "epoch")
    pool.epochs.escapes.extend([escape] * (MOST_ESCAPES + 5))
    assert len(pool.epochs.escapes) == MOST_ESCAPES
    assert pool.epochs.not_told([escape, escape]) and not pool.epochs.not_told([escape])
