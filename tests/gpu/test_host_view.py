"""host_view on a real card: it waits, brings pages home, and writes back what is its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.gpu.arrays import SIZE, array, busy, host_write
from umarray.drivers.base import Driver, Kind

VIEWS = {
    "all": lambda x: x,
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x.reshape(40, 25).T,
    "sliced": lambda x: x[3::7],
    "rectangle": lambda x: x.reshape(40, 25)[2:30, 20:3:-2],
    "scalar": lambda x: x[5:6].reshape(()),
    "empty": lambda x: x[:0],
}
KINDS = (Kind.MANAGED, Kind.DEVICE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "c16", "?"])
def test_it_reads_and_writes_the_elements_of_a_view(driver: Driver, kind: Kind, view: str, dtype: str) -> None:
    x = array(driver, 1000, dtype, kind)
    x[...] = driver.xp.arange(1000).astype(dtype)
    expected = np.arange(1000).astype(dtype)
    mine = VIEWS[view](expected)
    with um.host_view(VIEWS[view](x)) as h:
        np.testing.assert_array_equal(h, mine)
        with pytest.raises(ValueError, match="read-only"):
            h[...] = 1
    with pytest.raises(KeyError), um.host_view(VIEWS[view](x), "r+") as h:
        np.testing.assert_array_equal(h, mine)
        h[...] = 1
        raise KeyError
    mine[...] = 1
    np.testing.assert_array_equal(um.asnumpy(x), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("told", [False, True])
def test_it_waits_for_work_on_another_stream(
    driver: Driver, kind: Kind, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is held until the view asks the driver to wait; without that it would read zeros."""
    x = array(driver, SIZE // 4, kind=kind)
    x[...] = 0
    driver.synchronize()
    with driver.xp.cuda.Stream(non_blocking=True) as stream, busy(driver, stream.ptr) as let_go:
        x += 7
        done = driver.record(stream.ptr, 0)
        original, held = driver.synchronize, list[bool]()

        def synchronize(*args: Any, **kwargs: Any) -> None:
            held.append(not done.done())
            let_go()
            original(*args, **kwargs)

        monkeypatch.setattr(driver, "synchronize", synchronize)
        with driver.xp.cuda.Stream.null:
            view = um.host_view(x, streams=stream if told else None)
            with view as h:
                assert (h == 7).all()
        monkeypatch.undo()
    assert held[0] and view.waits >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_stream_sees_what_was_written(driver: Driver, kind: Kind) -> None:
    x = array(driver, SIZE // 4, kind=kind)
    with um.host_view(x, "w") as h:
        h[...] = 3
    with driver.xp.cuda.Stream(non_blocking=True):
        assert int(x.sum(dtype="i8")) == 3 * len(x)


def test_managed_memory_is_the_very_memory(driver: Driver) -> None:
    x = array(driver)
    host_write(x, 1)
    with um.host_view(x, "r+") as h:
        assert h.ctypes.data == x.data.ptr


def test_a_gathered_view_moves_only_what_it_holds(driver: Driver) -> None:
    from umarray import events

    x, told = array(driver, SIZE // 4, kind=Kind.DEVICE), list[Any]()
    x[...] = 2
    stop = events.listen(told.append)
    try:
        with um.host_view(x[::16], "r+") as h:
            h += 1
    finally:
        stop()
    copies = [one.nbytes for one in told if isinstance(one, events.Copied)]
    assert copies == [SIZE // 16, SIZE // 16]
    assert int(x[::16].sum(dtype="i8")) == 3 * (len(x) // 16) and int(x[1]) == 2


def test_pinned_memory(driver: Driver) -> None:
    import cupyx

    x = cupyx.empty_pinned(1000, "f4")
    with um.host_view(x, "w") as h:
        h[...] = 3
    assert (x == 3).all()
