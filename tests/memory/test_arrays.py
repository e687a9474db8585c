"""empty, zeros, asarray and asnumpy, with a pool and without."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.memory.host_pool import HostPool


@pytest.fixture(params=["pool", "no pool"])
def place(request: pytest.FixtureRequest, fake: FakeDriver) -> Any:
    with um.pool("1MiB") if request.param == "pool" else nullcontext():
        yield


@pytest.mark.parametrize("page_aligned", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), 0, 5, (0,), (3, 4), (2, 0, 3), (2, 3, 4), np.int64(3), [2, 2]])
def test_shapes(place: None, shape: Any, order: Any, page_aligned: bool, fake: FakeDriver) -> None:
    like = np.empty(shape, "f4", order)
    for x in (
        um.empty(shape, "f4", order, page_aligned=page_aligned),
        um.zeros(shape, "f4", order, page_aligned=page_aligned),
    ):
        assert (x.shape, x.dtype, x.strides) == (like.shape, like.dtype, like.strides) or x.size == 0
        assert x.flags.c_contiguous == like.flags.c_contiguous and x.flags.f_contiguous == like.flags.f_contiguous
        if page_aligned and x.size:
            assert x.ctypes.data % fake.page_size == 0
        x[...] = 1
    assert (um.zeros(shape, "i2", order) == 0).all()


def test_a_page_aligned_array_has_its_pages_alone(fake: FakeDriver) -> None:
    with um.pool("1MiB") as pool:
        page = fake.page_size
        arrays = [um.empty(nbytes, "u1", page_aligned=True) for nbytes in (1, page - 1, page, page + 1, 5)]
        small = [um.empty(8, "u1") for _ in range(20)]
        pages: set[int] = set()
        for array in arrays:
            mine = set(range(array.ctypes.data // page, (array.ctypes.data + array.nbytes - 1) // page + 1))
            assert not mine & pages
            pages |= mine
        assert not {x.ctypes.data // page for x in small} & pages
        assert pool.statistics().current_bytes <= (6 + 5) * page + 20 * 512


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (((-1,),), ValueError),
        (((2, -3),), ValueError),
        ((1.5,), TypeError),
        (("abc",), TypeError),
        ((True,), TypeError),
        (((2, None),), TypeError),
        ((3, "nonsense"), TypeError),
        ((3, object), TypeError),
        ((3, "S"), TypeError),
        ((3, "f4", "K"), ValueError),
        (((2**40, 2**40),), um.OutOfMemory),
        ((2**63 - 8, "u1"), um.OutOfMemory),
    ],
)
def test_bad_input_is_an_error_and_allocates_nothing(fake: FakeDriver, arguments: Any, error: type[Exception]) -> None:
    with um.pool("1MiB") as pool:
        for make in (um.empty, um.zeros):
            with pytest.raises(error):
                make(*arguments)
        assert pool.statistics().arena_bytes == 0
    with pytest.raises(TypeError, match="pool"):
        um.empty(3, pool=7)  # type: ignore[arg-type]


def test_an_explicit_pool_goes_before_the_threads(fake: FakeDriver) -> None:
    other = HostPool("1MiB")
    with um.pool("1MiB") as pool:
        x = um.zeros(3, pool=other)
        assert pool.statistics().arena_bytes == 0 and other.statistics().current_bytes == 512
        del x
    other.close()
    with pytest.raises(um.ClosedError):
        um.zeros(3, pool=other)


@pytest.mark.host_mode
@given(data=st.data())
def test_asarray_copies_any_layout(data: st.DataObject) -> None:
    source = np.arange(120).reshape(4, 5, 6)
    axes = data.draw(st.permutations([0, 1, 2]))
    step = data.draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, 4, 2), slice(0, 0)]))
    x = source.transpose(axes)[step]
    with um.pool("1MiB"):
        y = um.asarray(x)
        assert np.array_equal(x, y) and y.dtype == x.dtype
        assert not np.shares_memory(x, y)
        assert y.size == 0 or um.asarray(y) is y
        assert np.array_equal(um.asarray(x, "f4"), x)


def test_asarray_of_lists_scalars_and_bad_things(fake: FakeDriver) -> None:
    assert um.asarray([[1, 2], [3, 4]]).shape == (2, 2)
    assert um.asarray(3.5).shape == ()
    with pytest.raises(TypeError):
        um.asarray([object()])


def test_a_memory_map_beyond_the_budget_names_chunks(make_fake: Any, tmp_path: Path) -> None:
    fake = make_fake(capacity=1 << 20)
    path = tmp_path / "big"
    big = np.memmap(path, "u1", "w+", shape=4 << 20)
    for x in (big, big.reshape(2, -1), np.asarray(big)[5:]):
        with um.pool("64KiB") as pool, pytest.raises(um.OutOfMemory, match=r"umarray\.chunks"):
            um.asarray(x)
        assert pool.statistics().arena_bytes == 0
    with pytest.raises(um.OutOfMemory, match=r"umarray\.chunks"):
        um.asarray(big)
    with um.pool("64KiB"):
        assert um.asarray(big[:1000]).shape == (1000,)
    assert not fake.faults


def test_asnumpy_is_a_copy_to_keep(fake: FakeDriver) -> None:
    with um.pool("1MiB"):
        x = um.zeros((2, 3), "f4", "F")
        kept = um.asnumpy(x)
        x += 1
        assert type(kept) is np.ndarray and (kept == 0).all() and kept.flags.f_contiguous
    assert um.asnumpy([1, 2]).tolist() == [1, 2]


PAIR = pytest.param([("a", ">f4"), ("b", "u1")], marks=pytest.mark.host_mode)  # CuPy wants such a type to be aligned


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i2", PAIR])
def test_arrays_are_in_the_machines_byte_order(dtype: Any) -> None:
    """CuPy takes another order and computes garbage, so no mode keeps it."""
    native = np.dtype(dtype).newbyteorder("=")
    assert um.empty(3, dtype).dtype == um.zeros(3, dtype).dtype == native
    source = np.zeros(3, dtype)
    source[...] = np.arange(3) if source.dtype.names is None else [(1, 2), (3, 4), (5, 6)]
    array = um.asarray(source)
    assert array.dtype == native
    assert um.asnumpy(array).tolist() == source.tolist()
