"""um.dlpack into PyTorch and back on a real card."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import umarray as um
from tests.gpu.arrays import SIZE, array, busy
from umarray.drivers.base import Driver, Kind

torch: Any = pytest.importorskip("torch")


@pytest.mark.parametrize("kind", [Kind.MANAGED, Kind.DEVICE])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "u1", "c8", "?"])
def test_torch_shares_the_memory(driver: Driver, kind: Kind, dtype: str) -> None:
    x = array(driver, (20, 50), dtype, kind)
    x[...] = driver.xp.arange(1000).reshape(20, 50).astype(dtype)
    for view in (x, x.T, x[3:9, ::7], x[:0]):
        tensor = torch.from_dlpack(um.dlpack(view))
        assert tensor.is_cuda and tuple(tensor.shape) == view.shape
        if view.size:
            assert tensor.data_ptr() == view.data.ptr
        np.testing.assert_array_equal(tensor.cpu().numpy(), um.asnumpy(view))
    torch.from_dlpack(um.dlpack(x)).fill_(1)
    torch.cuda.synchronize()
    assert (um.asnumpy(x) == 1).all()


def test_the_block_lives_as_long_as_the_tensor(driver: Driver) -> None:
    x = array(driver)
    block = weakref.ref(x.data.mem._owner)
    tensor = torch.from_dlpack(um.dlpack(x))
    del x
    gc.collect()
    assert block() is not None
    tensor.fill_(2)
    assert float(tensor.sum()) == SIZE // 2
    del tensor
    gc.collect()
    assert block() is None


def test_the_consumers_stream_waits_for_cupys(driver: Driver) -> None:
    x = array(driver)
    x[...] = 0
    driver.synchronize()
    with driver.xp.cuda.Stream(non_blocking=True) as stream, busy(driver, stream.ptr) as let_go:
        x += 1
        total = torch.from_dlpack(um.dlpack(x)).sum(dtype=torch.float64)
        let_go()
        assert float(total) == SIZE // 4


def test_cupy_takes_it_back_and_numpy_refuses_it_clearly(driver: Driver) -> None:
    x = array(driver, 100)
    x[...] = 5
    assert driver.xp.from_dlpack(um.dlpack(x)).data.ptr == x.data.ptr
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(um.dlpack(x))


def test_tensors_in_scopes_and_host_views(driver: Driver) -> None:
    x = array(driver)
    x[...] = 1
    tensor = torch.from_dlpack(um.dlpack(x))
    with um.prefetch(tensor), um.advise({"t": tensor}, preferred_location=0) as scope:
        tensor.add_(1)
    if driver.mode.value == "managed":
        assert scope.tally.asked == 1
    with um.host_view(tensor, "r+", streams=torch.cuda.current_stream()) as h:
        assert (h == 2).all()
        h[...] = 4
    assert float(tensor.sum(dtype=torch.float64)) == SIZE
    plain = torch.arange(12, device="cuda", dtype=torch.float32).reshape(3, 4)[:, ::2]
    with um.host_view(plain, "r+") as h:
        np.testing.assert_array_equal(h, np.arange(12, dtype="f4").reshape(3, 4)[:, ::2])
        h[...] = -1
    assert plain.cpu().tolist() == [[-1, -1]] * 3
