"""Chunks of a big array, taken when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, final, overload

import numpy as np

from umarray.drivers import get_driver
from umarray.drivers.base import Array
from umarray.pipeline.structure import is_device_array
from umarray.places import HOST
from umarray.sizes import format_size, parse_size


def chunks(a: Array, nbytes: int | str = "256MiB", axis: int = 0) -> Chunks:
    """Slices of a big array along an axis, each of at most so many bytes, taken when asked for.

    Parameters
    ----------
    a : array
        Usually a memory map. It is not read here, and its slices are views.
    nbytes : int or str
        Bytes of a chunk at most, such as "256MiB", or "10%" of the memory that this process may use.
    axis : int
        Along which to cut. A pipeline that copies items in needs 0, as its slots can be short in the first dimension
        only: along another one give it ``numpy.moveaxis(a, axis, 0)``.

    Raises
    ------
    TypeError, ValueError
        No array, an axis that it lacks, no size, or one index along the axis is already larger.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> parts = um.chunks(np.zeros((10, 128)), nbytes="4KiB")
    >>> len(parts), parts[0].shape, parts[-1].shape
    (3, (4, 128), (2, 128))
    """
    if not (isinstance(a, np.ndarray) or is_device_array(a)):
        raise TypeError(f"chunks takes an array, not {type(a).__name__}; numpy.asarray makes one")
    limit = parse_size(nbytes, total=lambda: get_driver().memory_info(HOST).total, name="nbytes")
    if isinstance(axis, bool) or not hasattr(type(axis), "__index__"):
        raise TypeError(f"axis must be an int, not {axis!r}")
    if not -a.ndim <= axis < a.ndim:
        raise ValueError(f"axis {axis} is not in an array of shape {a.shape}")
    axis = axis.__index__() % a.ndim
    one = math.prod(side for at, side in enumerate(a.shape) if at != axis) * a.dtype.itemsize
    if one > limit:
        raise ValueError(
            f"one index along axis {axis} of an array of shape {a.shape} is {format_size(one)}, more than"
            f" nbytes={nbytes!r}: ask for larger chunks, or cut along another axis"
        )
    return Chunks(a, limit // one if one else max(a.shape[axis], 1), axis)


@final
class Chunks(Sequence[Array]):
    """A sequence of slices of one array; made by `chunks`."""

    def __init__(self, a: Array, step: int, axis: int) -> None:
        self._array = a
        self._axis = axis
        self.step = min(step, max(a.shape[axis], 1))
        """How many indices along the axis a chunk has; the last one may have fewer."""

    def __len__(self) -> int:
        return int(-(-self._array.shape[self._axis] // self.step))

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._take(at) for at in range(*index.indices(len(self)))]
        at = index.__index__()
        if not -len(self) <= at < len(self):
            raise IndexError(f"chunk {index} of {len(self)}")
        return self._take(at % len(self))

    def __iter__(self) -> Iterator[Array]:
        return (self._take(at) for at in range(len(self)))

    def _take(self, at: int) -> Array:
        cut = (slice(None),) * self._axis + (slice(at * self.step, (at + 1) * self.step),)
        return self._array[cut]

    def __repr__(self) -> str:
        return f"<{len(self)} chunks of an array of shape {self._array.shape}, {self.step} along axis {self._axis}>"
