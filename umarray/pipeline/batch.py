"""What `prep` and `compute` are given: a slot to write, a batch to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from umarray.errors import ClosedError
from umarray.pipeline.layout import Layout


class _Nest:
    """A nest of arrays behind one object: indexing, iterating and `in` go to the nest."""

    __slots__ = ()

    @property
    def data(self) -> Any:
        """The nest itself: a dict, list, tuple or array, as in `like`."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)

    def __contains__(self, key: Any) -> bool:
        return key in self.data

    def keys(self) -> Any:
        """The keys, where the nest is a dict."""
        return self.data.keys()


@final
class WritableSlot(_Nest):
    """A slot in the hands of `prep`: NumPy arrays to write in place.

    Attributes
    ----------
    length : int
        How many samples the batch has: the slot's capacity, unless `prep` sets less.

    Notes
    -----
    Its arrays are `prep`'s until it returns. What they hold before they are written is undefined.
    """

    __slots__ = ("_arrays", "_closed", "_data", "_layout", "_length")

    def __init__(self, layout: Layout, address: int, owner: object) -> None:
        self._layout = layout
        self._arrays = layout.host_arrays(address, owner)
        self._length = layout.capacity
        self._data: Any = None
        self._closed = False

    def close(self) -> None:
        """Let go of the arrays: a traceback may keep the slot."""
        self._arrays, self._data, self._closed = [], None, True

    def renew(self) -> None:
        """Make it as new for the next batch."""
        self._length = self._layout.capacity
        structure = self._layout.structure
        if not structure.holds(self._data, self._arrays):
            self._data = structure.rebuild(self._arrays, structure.others)

    @property
    def data(self) -> Any:
        """The nest of NumPy arrays, in the form of `like`."""
        if self._closed:
            raise ClosedError("this slot's pipeline is closed")
        return self._data

    @property
    def capacity(self) -> int:
        """The most samples that a batch can have."""
        return self._layout.capacity

    @property
    def length(self) -> int:
        return self._length

    @length.setter
    def length(self, value: Any) -> None:
        if self._closed:
            raise ClosedError("this slot's pipeline is closed")
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            raise TypeError(f"slot.length must be an int, not {value!r}")
        if not 0 <= value.__index__() <= self.capacity:
            raise ValueError(f"slot.length must be 0 to {self.capacity}, the samples of a slot, not {value}")
        self._length = value.__index__()

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write into the array at `key`: ``slot["x"] = value`` is ``slot["x"][...] = value`` with the shape checked."""
        data = self.data
        if isinstance(data, np.ndarray):
            data[key] = value
            return
        target = data[key]
        if not isinstance(target, np.ndarray):
            raise TypeError(f"slot[{key!r}] is no array: only arrays can be written")
        shape = np.shape(value)
        if shape != target.shape and shape == (self._length, *target.shape[1:]):
            target = target[: self._length]
        if shape not in ((), target.shape):
            raise ValueError(f"slot[{key!r}] has shape {target.shape}; prep wrote shape {shape}")
        target[...] = value

    def check(self) -> None:
        """See that `prep` wrote into the arrays, and did not put others in their place.

        Raises
        ------
        ValueError
            It did; the text names the array and the shape.
        """
        structure = self._layout.structure
        if structure.holds(self._data, self._arrays):
            return
        arrays, _ = structure.take(self._data, "slot")
        for at, (ours, found) in enumerate(zip(self._arrays, arrays, strict=True)):
            if ours is not found:
                name = structure.names("slot")[at]
                raise ValueError(
                    f"prep replaced {name} by another array, of shape {tuple(found.shape)}: write into it, as in"
                    f" {name}[...] = values (its shape is {ours.shape})"
                )

    def fill(self, item: Any) -> list[Any]:
        """Copy an item in; returns its leaves that are no arrays."""
        self._length, others = self._layout.fill(self._arrays, item)
        return others


@final
class Batch(_Nest):
    """A batch in the hands of `compute`, or of the loop.

    Attributes
    ----------
    index : int
        Its number, from 0, in the order of the source.
    length : int
        How many samples it has; its arrays are cut to as many.
    meta : Any
        What `prep` returned.

    Notes
    -----
    Arrays are of `umarray.xp`, on the pipeline's device. An array of a batch, or a view of one, holds the slot for as
    long as it lives. A batch that a loop was handed is closed when the next one is asked for.
    """

    __slots__ = ("__weakref__", "_data", "index", "length", "meta")

    def __init__(self, index: int, length: int, meta: Any, data: Any) -> None:
        self.index = index
        self.length = length
        self.meta = meta
        self._data: tuple[Any, ...] = (data,)

    @property
    def data(self) -> Any:
        """The nest of arrays, in the form of `like`."""
        if not self._data:
            raise ClosedError(f"batch {self.index} was valid until the next one; copy what is to be kept")
        return self._data[0]

    def close(self) -> None:
        """Let go of the arrays."""
        self._data = ()

    def __repr__(self) -> str:
        return f"<batch {self.index} of {self.length}>"
