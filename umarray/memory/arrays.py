"""Arrays from the current pool: empty, zeros, asarray; and a NumPy copy to keep."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from umarray.drivers import get_driver
from umarray.drivers.base import Array
from umarray.errors import OutOfMemory
from umarray.memory.arena import round_up
from umarray.memory.current import pool_for
from umarray.memory.pool import Pool
from umarray.sizes import LARGEST, format_size


def empty(
    shape: Any, dtype: Any = float, order: str = "C", *, page_aligned: bool = False, pool: Pool | None = None
) -> Array:
    """A new array that is not initialised.

    Parameters
    ----------
    shape : int or tuple of int
        May hold zeros.
    dtype : dtype
        Anything but objects; kept in the machine's byte order.
    order : {"C", "F"}
        Row or column first.
    page_aligned : bool
        Start and end on the driver's pages, so that advice on this array cannot reach a neighbour.
    pool : pool, optional
        None: the calling thread's pool, else the installed one, else one that was given to CuPy, else a default pool
        of the process (`umarray.memory.default_pool`), so that managed mode gives managed memory without asking.

    Raises
    ------
    OutOfMemory
        There is no room; nothing has changed.
    TypeError, ValueError
        Not a shape, dtype or order; the text quotes it.

    Examples
    --------
    >>> import umarray as um
    >>> um.empty((3, 4), "f4", page_aligned=True).shape
    (3, 4)
    """
    sizes, kind = _shape(shape), _dtype(dtype)
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    if pool is not None and not isinstance(pool, Pool):
        raise TypeError(f"pool must be a pool of umarray's, not {pool!r}")
    nbytes = math.prod(sizes) * kind.itemsize
    if nbytes > LARGEST:
        raise OutOfMemory(nbytes, 0, LARGEST, f"an array of shape {sizes} and {kind.itemsize} bytes an element")
    driver = get_driver()
    chosen = pool_for(pool)
    chosen.check_open()
    page = driver.page_size
    asked = round_up(nbytes, page) + page if page_aligned and nbytes else nbytes
    raw = chosen.array_of_bytes(asked) if nbytes else None
    if raw is not None and page_aligned:
        start = -address_of(raw) % page
        raw = raw[start : start + nbytes]
    flat = driver.xp.empty(0, kind) if raw is None else raw.view(kind)
    if order == "F":
        return flat.reshape(sizes[::-1]).T
    return flat.reshape(sizes)


def zeros(
    shape: Any, dtype: Any = float, order: str = "C", *, page_aligned: bool = False, pool: Pool | None = None
) -> Array:
    """A new array of zeros; the arguments are those of `empty`.

    Examples
    --------
    >>> import umarray as um
    >>> um.zeros(3)
    array([0., 0., 0.])
    """
    array = empty(shape, dtype, order, page_aligned=page_aligned, pool=pool)
    array[...] = 0
    return array


def asarray(x: Any, dtype: Any = None, *, pool: Pool | None = None) -> Array:
    """`x` as an array of `umarray.xp` in the pool's memory: itself where it is one already, else a copy.

    Raises
    ------
    OutOfMemory
        A memory map that is larger than the budget: walk it with `umarray.chunks`.

    Notes
    -----
    A NumPy array is copied on the host too, so that a later change of the result does not depend on the mode.

    Examples
    --------
    >>> import umarray as um
    >>> um.asarray([1, 2, 3])
    array([1, 2, 3])
    """
    driver = get_driver()
    if driver.xp is not np and isinstance(x, driver.xp.ndarray):
        return x if dtype is None or x.dtype == _dtype(dtype) else x.astype(_dtype(dtype))
    source = np.asanyarray(x)
    kind = _dtype(source.dtype if dtype is None else dtype)
    nbytes = source.size * kind.itemsize
    _check_map(source, nbytes, pool)
    if source.dtype == kind and driver.xp is np and nbytes and driver.find(address_of(source)) is not None:
        return source
    order = "F" if source.flags.f_contiguous and not source.flags.c_contiguous else "C"
    array = empty(source.shape, kind, order, pool=pool)
    if driver.xp is np:
        array[...] = source
    else:
        array.set(np.asarray(source, dtype=kind, order=order))  # type: ignore[call-overload]
    return array


def asnumpy(x: Any) -> np.ndarray[Any, Any]:
    """A NumPy copy of `x` to keep, in every mode.

    Examples
    --------
    >>> import umarray as um
    >>> x = um.zeros(2)
    >>> kept = um.asnumpy(x)
    >>> x += 1
    >>> kept
    array([0., 0.])
    """
    xp = get_driver().xp
    if xp is not np and isinstance(x, xp.ndarray):
        copy: np.ndarray[Any, Any] = xp.asnumpy(x)
        return copy
    return np.array(x, copy=True, order="K")


def address_of(array: Array) -> int:
    """Where an array's first element lies."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return int(array.data.ptr)


def _shape(shape: Any) -> tuple[int, ...]:
    given = shape if isinstance(shape, Iterable) and not isinstance(shape, str) else (shape,)
    sizes = []
    for size in given:
        if isinstance(size, bool) or not hasattr(type(size), "__index__"):
            raise TypeError(f"a shape is an int or a tuple of ints, not {shape!r}")
        if size.__index__() < 0:
            raise ValueError(f"a shape cannot hold a negative size: {shape!r}")
        sizes.append(size.__index__())
    return tuple(sizes)


def _dtype(dtype: Any) -> np.dtype[Any]:
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype {dtype!r} is none that arrays can have: {error}") from None
    if kind.hasobject:
        raise TypeError(f"dtype {dtype!r} holds Python objects, which live on no device")
    if kind.itemsize == 0:
        raise TypeError(f"dtype {dtype!r} has no size: write it out, such as 'S8'")
    return kind.newbyteorder("=")  # CuPy computes garbage with any other, in silence


def _check_map(source: np.ndarray[Any, Any], nbytes: int, pool: Pool | None) -> None:
    """A memory map may be larger than everything: say so before anything is touched."""
    base: Any = source
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    if base is None:
        return
    limit = pool_for(pool).reserve_of(get_driver().current_device()).budget.limit
    if nbytes > limit:
        raise OutOfMemory(
            nbytes,
            0,
            limit,
            f"this memory map does not fit: walk it with umarray.chunks(x, {format_size(limit / 8)!r})",
        )
