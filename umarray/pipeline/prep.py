"""Batch preparation on the CPU: numba kernels that write straight into a slot.

Each runs on all cores, without the GIL, and is compiled once and kept on disk. Each has the same result as the NumPy
expression in its docstring. numba is loaded at the first call.

Give the device the raw bytes and cast there: a slot of uint8 is a quarter of the same slot in float32, so a quarter of
the memory is written here and a quarter of the bytes travels, and the cast is free beside the work that follows.

>>> import numpy as np, umarray as um
>>> from umarray.pipeline import prep
>>> pixels = np.arange(40, dtype=np.uint8).reshape(10, 4)  # or a memory map
>>> def prepare(rows, slot):
...     prep.gather(pixels, rows, slot["x"])
>>> def compute(batch):
...     x = batch["x"].astype(um.xp.float32) / 255  # on the device
...     return round(float(x.sum()), 3)
>>> with um.Pipeline([[0, 9], [5, 5]], prepare, compute, like={"x": um.Spec((2, 4), "uint8")}) as p:
...     list(p)
[0.612, 0.675]
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from umarray.pipeline.kernel_lock import kernel_turn

_Array = np.ndarray[Any, np.dtype[Any]]


def gather(source: _Array, rows: npt.ArrayLike, out: _Array) -> None:
    """Take rows by index: ``out[...] = source[rows]``.

    Parameters
    ----------
    source : ndarray
        Rows along the first axis, each contiguous; a memory map too, whose pages are then read by all cores.
    rows : array of int
        Negative indices count from the end.
    out : ndarray
        ``(len(rows), *source.shape[1:])``, of the same dtype, contiguous.

    Raises
    ------
    IndexError
        A row is not there; nothing was written.
    TypeError, ValueError
        Shapes or dtypes do not fit.
    """
    index = _rows(rows, len(source))
    if out.dtype != source.dtype:
        raise TypeError(f"gather takes rows as they are: out has dtype {out.dtype}, source {source.dtype}")
    _same_shape("out", out, (len(index), *source.shape[1:]))
    if out.size:
        with kernel_turn():
            _kernels().gather(_row_bytes("source", source), index, _row_bytes("out", out))


def cast(source: _Array, out: _Array) -> None:
    """Change the dtype: ``out[...] = source.astype(out.dtype)``. Up to float it is better done on the device.

    Raises
    ------
    ValueError
        Shapes differ, or an array is not contiguous.
    """
    _same_shape("out", out, source.shape)
    with kernel_turn():
        _kernels().cast(_flat("source", source), _flat("out", out))


def normalise(source: _Array, mean: npt.ArrayLike, scale: npt.ArrayLike, out: _Array) -> None:
    """Shift and scale each column: ``out[...] = (source - mean) * scale``, computed in the dtype of `out`.

    Parameters
    ----------
    source : ndarray of shape (n, columns)
    mean, scale : array of shape (columns,)
        `scale` is a factor: one over the standard deviation, as a rule.
    out : ndarray
        Of floats, shaped as `source`.

    Raises
    ------
    TypeError, ValueError
        Shapes or dtypes do not fit.
    """
    if source.ndim != 2:
        raise ValueError(f"normalise takes (n, columns), not shape {source.shape}")
    if out.dtype.kind != "f":
        raise TypeError(f"out must be of floats, not {out.dtype}")
    _same_shape("out", out, source.shape)
    means, scales = (np.ascontiguousarray(np.asarray(one), dtype=out.dtype) for one in (mean, scale))
    _same_shape("mean", means, source.shape[1:])
    _same_shape("scale", scales, source.shape[1:])
    with kernel_turn():
        _kernels().normalise(source, means, scales, out)


def shift_scale(images: _Array, rows: npt.ArrayLike, shifts: npt.ArrayLike, scales: npt.ArrayLike, out: _Array) -> None:
    """Take images by index, each moved and zoomed about its centre; bilinear, and zero outside.

    Parameters
    ----------
    images : ndarray of shape (count, height, width)
    rows : array of int, shape (n,)
    shifts : array of shape (n, 2)
        Pixels, down and right.
    scales : array of shape (n,)
        1.0 keeps the size, 2.0 shows half of the picture twice as large.
    out : ndarray of shape (n, height, width)
        Integers are rounded to the nearest, halves to even.

    Raises
    ------
    IndexError
        An image is not there; nothing was written.
    ValueError
        Shapes do not fit, or a scale is not positive.

    Notes
    -----
    Pixel (y, x) of the result is the picture at ``(y - cy - dy) / scale + cy``, and so for x, with
    ``cy = (height - 1) / 2``; in float32.
    """
    if images.ndim != 3:
        raise ValueError(f"images must be (count, height, width), not {images.shape}")
    index = _rows(rows, len(images))
    moves, zooms = (np.ascontiguousarray(np.asarray(one), dtype=np.float32) for one in (shifts, scales))
    _same_shape("shifts", moves, (len(index), 2))
    _same_shape("scales", zooms, (len(index),))
    _same_shape("out", out, (len(index), *images.shape[1:]))
    if not (np.isfinite(moves).all() and np.isfinite(zooms).all() and (zooms > 0).all()):
        raise ValueError("shifts must be finite and scales positive")
    if out.size:
        with kernel_turn():
            _kernels().shift_scale(images, index, moves, zooms, out.dtype.kind in "iub", out)


@cache
def _kernels() -> ModuleType:
    from umarray.pipeline import kernels

    return kernels


def _rows(rows: npt.ArrayLike, count: int) -> _Array:
    index = np.asarray(rows)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise TypeError(f"rows must be one-dimensional ints, not shape {index.shape} of {index.dtype}")
    if index.size and (int(index.min()) < -count or int(index.max()) >= count):
        raise IndexError(f"rows must be {-count} to {count - 1}, and go from {index.min()} to {index.max()}")
    index = np.ascontiguousarray(index, dtype=np.int64)
    return np.where(index < 0, index + count, index) if index.size and index.min() < 0 else index


def _same_shape(name: str, array: _Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, and must have {shape}")


def _flat(name: str, array: _Array) -> _Array:
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be contiguous, in C order")
    return np.asarray(array).reshape(-1)


def _row_bytes(name: str, array: _Array) -> _Array:
    """The array's rows as bytes, so that one compiled kernel serves every dtype."""
    return _flat(name, array).view(np.uint8).reshape(len(array), -1)
