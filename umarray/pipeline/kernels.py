"""The compiled loops of `prep`; importing this loads numba."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def _compiled(function: Callable[..., None]) -> Any:
    try:
        return numba.njit(parallel=True, nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep it in: compiled in each process then
        return numba.njit(parallel=True, nogil=True)(function)


@_compiled
def gather(source: Any, rows: Any, out: Any) -> None:
    for i in numba.prange(rows.size):
        row = rows[i]
        for j in range(out.shape[1]):
            out[i, j] = source[row, j]


@_compiled
def cast(source: Any, out: Any) -> None:
    for i in numba.prange(source.size):
        out[i] = source[i]


@_compiled
def normalise(source: Any, mean: Any, scale: Any, out: Any) -> None:
    for i in numba.prange(source.shape[0]):
        for j in range(source.shape[1]):
            out[i, j] = source[i, j]  # so that the arithmetic is in the dtype of out
            out[i, j] = (out[i, j] - mean[j]) * scale[j]


@_compiled
def shift_scale(images: Any, rows: Any, shifts: Any, scales: Any, whole: bool, out: Any) -> None:
    height, width = images.shape[1], images.shape[2]
    cy, cx = np.float32(height - 1) / np.float32(2), np.float32(width - 1) / np.float32(2)
    for i in numba.prange(rows.size):
        image, zoom = images[rows[i]], scales[i]
        for y in range(height):
            fy = (np.float32(y) - cy - shifts[i, 0]) / zoom + cy
            y0 = math.floor(fy)
            ty = fy - np.float32(y0)
            for x in range(width):
                fx = (np.float32(x) - cx - shifts[i, 1]) / zoom + cx
                x0 = math.floor(fx)
                tx = fx - np.float32(x0)
                value = np.float32(0)
                for dy in range(2):
                    for dx in range(2):
                        if 0 <= y0 + dy < height and 0 <= x0 + dx < width:
                            wy = ty if dy == 1 else np.float32(1) - ty
                            wx = tx if dx == 1 else np.float32(1) - tx
                            value += wy * wx * np.float32(image[int(y0) + dy, int(x0) + dx])
                out[i, y, x] = np.rint(value) if whole else value
