"""host_view and dlpack over CuPy arrays of the real ROCm wheel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import umarray as um
from umarray import drivers
from umarray.drivers.base import Driver, Mode


@pytest.fixture
def driver() -> Driver:
    return drivers.get_driver()


@pytest.fixture(params=["managed", "device"])
def cupy(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Any]:
    """CuPy, with arrays in managed and in plain device memory."""
    if request.param == "managed" and driver.mode is not Mode.MANAGED:
        pytest.skip("this machine has no managed mode")
    allocator = driver.xp.cuda.malloc_managed if request.param == "managed" else None
    with driver.xp.cuda.using_allocator(allocator):
        yield driver.xp
    driver.synchronize()


VIEWS = {
    "all": lambda x: x,
    "reversed": lambda x: x[::-1],
    "transposed": lambda x: x.reshape(40, 25).T,
    "sliced": lambda x: x[3::7],
    "rectangle": lambda x: x.reshape(40, 25)[2:30, 20:3:-2],
    "scalar": lambda x: x[5:6].reshape(()),
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "c8"])
def test_it_reads_and_writes_the_elements_of_a_view(cupy: Any, view: str, dtype: str) -> None:
    x = cupy.arange(1000).astype(dtype)
    expected = np.arange(1000).astype(dtype)
    mine = VIEWS[view](expected)
    with um.host_view(VIEWS[view](x), "r+") as h:
        np.testing.assert_array_equal(h, mine)
        h[...] = 7
    mine[...] = 7
    np.testing.assert_array_equal(um.asnumpy(x), expected)


def test_the_device_sees_what_was_written_and_the_host_what_the_device_writes(cupy: Any) -> None:
    x = cupy.zeros(1000, "f4")
    with um.host_view(x, "w") as h:
        h[...] = np.arange(1000)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x *= 2
    with um.host_view(x) as h:
        np.testing.assert_array_equal(h, 2 * np.arange(1000))


def test_a_broadcast(cupy: Any) -> None:
    x = cupy.broadcast_to(cupy.arange(3), (5, 3))
    with um.host_view(x) as h:
        np.testing.assert_array_equal(h, np.broadcast_to(np.arange(3), (5, 3)))
    with pytest.raises(ValueError, match="share memory"):
        um.host_view(x, "w")


def test_pinned_memory(driver: Driver) -> None:
    import cupyx

    x = cupyx.empty_pinned(100, "f4")
    with um.host_view(x, "w") as h:
        h[...] = 3
    assert (x == 3).all()


def test_an_export_is_cupys_own_type_and_shares_memory(cupy: Any) -> None:
    x = cupy.arange(5.0)
    export = um.dlpack(x)
    assert export.__dlpack_device__()[0] == 10  # kDLROCM
    y = cupy.from_dlpack(export)
    y[0] = 9
    assert float(x[0]) == 9
