"""Where the arrays of a batch lie in a slot's memory, and how an item is copied in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from umarray.drivers.base import Array, Driver, host_array
from umarray.pipeline.structure import Spec, Structure, brief
from umarray.sizes import LARGEST

ALIGNMENT = 256
"""Bytes. Arrays of one slot lie next to each other: the slot is copied and prefetched as a whole and has pages of its
own, so an array needs no page of its own, only what SIMD loads (64) and coalesced device reads (256) like."""


@final
class Layout:
    """Where the arrays of a slot lie in its memory.

    Parameters
    ----------
    like : Any
        A nest of arrays or specs.

    Raises
    ------
    TypeError, ValueError
        No array in it, or one that cannot lie in a slot.

    Examples
    --------
    >>> from umarray.pipeline.structure import Spec
    >>> layout = Layout((Spec((3, 5), "uint8"), Spec(3, "int64")))
    >>> layout.offsets, layout.nbytes, layout.capacity
    ((0, 256), 280, 3)
    """

    def __init__(self, like: Any) -> None:
        self.structure = Structure(like)
        if not self.structure.arrays:
            raise ValueError(f"like={brief(like)} holds no array and no umarray.Spec: a slot would be empty")
        self.specs = tuple(
            leaf if isinstance(leaf, Spec) else Spec(tuple(leaf.shape), leaf.dtype) for leaf in self.structure.arrays
        )
        offsets, end = [], 0
        for spec in self.specs:
            start = -(-end // ALIGNMENT) * ALIGNMENT
            offsets.append(start)
            end = start + spec.nbytes
        if end > LARGEST:
            raise ValueError(f"a slot of like={brief(like)} is 2**63 bytes or more")
        self.offsets = tuple(offsets)
        self._names = self.structure.names("item")
        self.nbytes = max(end, 1)
        """Bytes that a slot needs; 1 where every array is empty, since no runtime allocates nothing."""
        firsts = [spec.shape[0] for spec in self.specs if spec.shape]
        self.capacity = firsts[0] if firsts else 1
        """How many samples a slot holds: the first dimension of its first array that has one."""
        self._trims = tuple(bool(spec.shape) and spec.shape[0] == self.capacity for spec in self.specs)
        self._places = tuple(
            (offset, spec.nbytes, spec.dtype, spec.shape) for offset, spec in zip(offsets, self.specs, strict=True)
        )
        self.stride = -(-self.nbytes // ALIGNMENT) * ALIGNMENT
        """Bytes from one batch of a group to the next."""

    def arrays(self, driver: Driver, address: int, owner: object, device: int, length: int) -> list[Array]:
        """The arrays of a batch at an address, those with its first dimension cut to `length`."""
        lay = driver.as_array
        arrays = [
            lay(address + offset, size, owner, device, dtype, shape) for offset, size, dtype, shape in self._places
        ]
        if length != self.capacity:
            arrays = [one[:length] if trims else one for one, trims in zip(arrays, self._trims, strict=True)]
        return arrays

    def host_arrays(self, address: int, owner: object) -> list[np.ndarray[Any, Any]]:
        """The arrays of a batch at an address that the host may touch."""
        return [host_array(address + offset, size, owner, dtype, shape) for offset, size, dtype, shape in self._places]

    def used(self, lengths: Sequence[int]) -> list[tuple[int, int]]:
        """The (offset, bytes) of a slot that batches of these lengths fill; those of a group as one range."""
        before = (len(lengths) - 1) * self.stride
        if lengths[-1] == self.capacity:
            return [(0, before + self.nbytes)]
        ranges = []
        for spec, start, trims in zip(self.specs, self.offsets, self._trims, strict=True):
            nbytes = spec.nbytes // self.capacity * lengths[-1] if trims else spec.nbytes
            if nbytes:
                ranges.append((start, nbytes))
        if before:
            return [(0, before + max((start + nbytes for start, nbytes in ranges), default=0))]
        return ranges

    def fill(self, targets: Sequence[np.ndarray[Any, Any]], item: Any) -> tuple[int, list[Any]]:
        """Copy an item into a slot's arrays; returns its length and its other leaves.

        Raises
        ------
        TypeError, ValueError
            Another structure, shape, length or kind of dtype than the slot's, or an array that is not on the host.
        """
        arrays, others = self.structure.take(item)
        length: int | None = None
        for name, array, spec, trims in zip(self._names, arrays, self.specs, self._trims, strict=True):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name} must be a NumPy array to be copied into a slot, not {type(array).__name__}")
            if trims and array.shape[1:] == spec.shape[1:] and array.ndim and len(array) <= self.capacity:
                if length is not None and len(array) != length:
                    raise ValueError(f"{name} has {len(array)} samples where the arrays before it have {length}")
                length = len(array)
            elif array.shape != spec.shape:
                most = "at most " if trims else ""
                raise ValueError(f"{name} has shape {array.shape}; the slot takes {most}{spec.shape}")
            if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
                raise TypeError(f"{name} has dtype {array.dtype}, which the slot's {spec.dtype} cannot take")
        for array, target, trims in zip(arrays, targets, self._trims, strict=True):
            np.copyto(target[: len(array)] if trims else target, array, casting="same_kind")
        return self.capacity if length is None else length, others
