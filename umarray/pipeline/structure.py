"""Nests of arrays: what items, slots and batches share, and where each array lies in a slot.

A nest is any mix of dict, list and tuple. Its array leaves are NumPy or CuPy arrays or a `Spec`, which stands for one;
whatever else is a leaf passes through untouched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from umarray.drivers.base import Array
from umarray.sizes import LARGEST

ALIGNMENT = 256
"""Bytes. Arrays of one slot lie next to each other: the slot is copied and prefetched as a whole and has pages of its
own, so an array needs no page of its own, only what SIMD loads (64) and coalesced device reads (256) like."""


@final
@dataclass(frozen=True, slots=True)
class Spec:
    """The shape and dtype of an array that does not exist yet.

    Parameters
    ----------
    shape : int or tuple of int
        Its first dimension is the batch's.
    dtype : dtype, optional
        Anything `numpy.dtype` takes, without Python objects.

    Raises
    ------
    TypeError, ValueError
        A shape or dtype that no array in a slot can have.

    Examples
    --------
    >>> import umarray as um
    >>> um.Spec((256, 64), "uint8").nbytes
    16384
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any] = np.dtype(float)

    def __post_init__(self) -> None:
        shape: Any = self.shape
        sides = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for side in sides:
            if isinstance(side, bool) or not hasattr(type(side), "__index__"):
                raise TypeError(f"the shape of a Spec must be ints, not {shape!r}")
            if side.__index__() < 0:
                raise ValueError(f"the shape of a Spec cannot be negative: {shape!r}")
        object.__setattr__(self, "shape", tuple(side.__index__() for side in sides))
        dtype = np.dtype(self.dtype)
        if dtype.hasobject or dtype.itemsize == 0:
            raise TypeError(f"dtype {dtype!r} cannot lie in a slot: its elements have no fixed bytes")
        object.__setattr__(self, "dtype", dtype)
        if self.nbytes > LARGEST:
            raise ValueError(f"a Spec of shape {self.shape} and dtype {dtype} is 2**63 bytes or more")

    @property
    def nbytes(self) -> int:
        """Bytes of such an array."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class _ArrayAt:
    index: int


@dataclass(frozen=True, slots=True)
class _OtherAt:
    index: int


@dataclass(frozen=True, slots=True)
class _Node:
    kind: type
    keys: tuple[Any, ...]
    children: tuple[_Tree, ...]

    def items(self) -> Iterator[tuple[Any, _Tree]]:
        return zip(self.keys, self.children, strict=True)


_Tree: TypeAlias = _ArrayAt | _OtherAt | _Node


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array or stands for one."""
    return isinstance(leaf, (np.ndarray, Spec)) or hasattr(leaf, "__cuda_array_interface__")


@final
class Structure:
    """The form of a nest: rebuilds one from its leaves, and takes the leaves of another of the same form.

    Parameters
    ----------
    nest : Any
        A nest, or a single array.

    Examples
    --------
    >>> form = Structure({"x": Spec((4, 2)), "name": "digits", "pair": (Spec(3), Spec(3))})
    >>> [spec.shape for spec in form.arrays], form.others
    ([(4, 2), (3,), (3,)], ['digits'])
    >>> form.rebuild(["a", "b", "c"], ["d"])
    {'x': 'a', 'name': 'd', 'pair': ('b', 'c')}
    """

    def __init__(self, nest: Any) -> None:
        self.arrays: list[Any] = []
        """The array leaves of the nest that it was made from, in order."""
        self.others: list[Any] = []
        """Its other leaves, in order."""
        self._tree = self._read(nest)

    def _read(self, nest: Any) -> _Tree:
        if isinstance(nest, dict):
            return _Node(dict, tuple(nest), tuple(self._read(child) for child in nest.values()))
        if isinstance(nest, (list, tuple)):
            return _Node(_sequence_type(nest), tuple(range(len(nest))), tuple(self._read(child) for child in nest))
        if is_array(nest):
            self.arrays.append(nest)
            return _ArrayAt(len(self.arrays) - 1)
        self.others.append(nest)
        return _OtherAt(len(self.others) - 1)

    def rebuild(self, arrays: Sequence[Any], others: Sequence[Any]) -> Any:
        """A nest of this form with these leaves."""
        return _rebuild(self._tree, arrays, others)

    def take(self, nest: Any, name: str = "item") -> tuple[list[Any], list[Any]]:
        """The array leaves and the other leaves of another nest of this form.

        Raises
        ------
        ValueError
            It has another form; the text names the place.
        """
        arrays: list[Any] = [None] * len(self.arrays)
        others: list[Any] = [None] * len(self.others)
        _take(self._tree, nest, name, arrays, others)
        return arrays, others

    def names(self, name: str = "") -> list[str]:
        """How one writes each array leaf, such as ``['x'][0]``, after `name`."""
        return [path for path, tree in _walk(self._tree, name) if isinstance(tree, _ArrayAt)]


def _sequence_type(nest: list[Any] | tuple[Any, ...]) -> type:
    if isinstance(nest, list):
        return list
    return type(nest) if hasattr(nest, "_fields") else tuple


def _rebuild(tree: _Tree, arrays: Sequence[Any], others: Sequence[Any]) -> Any:
    if isinstance(tree, _ArrayAt):
        return arrays[tree.index]
    if isinstance(tree, _OtherAt):
        return others[tree.index]
    children = [_rebuild(child, arrays, others) for child in tree.children]
    if tree.kind is dict:
        return dict(zip(tree.keys, children, strict=True))
    if tree.kind is list:
        return children
    return tuple(children) if tree.kind is tuple else tree.kind(*children)


def _take(tree: _Tree, nest: Any, name: str, arrays: list[Any], others: list[Any]) -> None:
    if isinstance(tree, _ArrayAt):
        if not is_array(nest):
            raise ValueError(f"{name} must be an array, as in the slots, not {_brief(nest)}")
        arrays[tree.index] = nest
    elif isinstance(tree, _OtherAt):
        if is_array(nest) or isinstance(nest, (dict, list, tuple)):
            raise ValueError(f"{name} must be a leaf that is no array, as in the slots, not {_brief(nest)}")
        others[tree.index] = nest
    elif tree.kind is dict:
        if not isinstance(nest, dict) or nest.keys() != set(tree.keys):
            found = f"keys {list(nest)}" if isinstance(nest, dict) else _brief(nest)
            raise ValueError(f"{name} must be a dict with the keys {list(tree.keys)}, as in the slots, not {found}")
        for key, child in tree.items():
            _take(child, nest[key], f"{name}[{key!r}]", arrays, others)
    else:
        if not isinstance(nest, (list, tuple)) or len(nest) != len(tree.keys):
            found = f"{type(nest).__name__} of {len(nest)}" if isinstance(nest, (list, tuple)) else _brief(nest)
            raise ValueError(f"{name} must be a {tree.kind.__name__} of {len(tree.keys)}, as in the slots, not {found}")
        for key, child in tree.items():
            _take(child, nest[key], f"{name}[{key!r}]", arrays, others)


def _walk(tree: _Tree, name: str) -> Iterator[tuple[str, _Tree]]:
    yield name, tree
    if isinstance(tree, _Node):
        for key, child in tree.items():
            yield from _walk(child, f"{name}[{key!r}]")


def _brief(value: Any) -> str:
    if is_array(value):
        return f"an array of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


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
    >>> layout = Layout((Spec((3, 5), "uint8"), Spec(3, "int64")))
    >>> layout.offsets, layout.nbytes, layout.capacity
    ((0, 256), 280, 3)
    """

    def __init__(self, like: Any) -> None:
        self.structure = Structure(like)
        if not self.structure.arrays:
            raise ValueError(f"like={_brief(like)} holds no array and no umarray.Spec: a slot would be empty")
        self.specs = tuple(
            leaf if isinstance(leaf, Spec) else Spec(tuple(leaf.shape), leaf.dtype) for leaf in self.structure.arrays
        )
        offsets, end = [], 0
        for spec in self.specs:
            start = -(-end // ALIGNMENT) * ALIGNMENT
            offsets.append(start)
            end = start + spec.nbytes
        if end > LARGEST:
            raise ValueError(f"a slot of like={_brief(like)} is 2**63 bytes or more")
        self.offsets = tuple(offsets)
        self.nbytes = max(end, 1)
        """Bytes that a slot needs; 1 where every array is empty, since no runtime allocates nothing."""
        firsts = [spec.shape[0] for spec in self.specs if spec.shape]
        self.capacity = firsts[0] if firsts else 1
        """How many samples a slot holds: the first dimension of its first array that has one."""
        self._trims = tuple(bool(spec.shape) and spec.shape[0] == self.capacity for spec in self.specs)

    def arrays(self, memory: Array, length: int | None = None) -> list[Array]:
        """The arrays over a slot's bytes, those with the batch's first dimension cut to `length`."""
        views = []
        for spec, start, trims in zip(self.specs, self.offsets, self._trims, strict=True):
            view = memory[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape)
            views.append(view[:length] if trims and length is not None and length != self.capacity else view)
        return views

    def used(self, length: int) -> list[tuple[int, int]]:
        """The (offset, bytes) of a slot that a batch of this length fills, touching ranges as one."""
        if length == self.capacity:
            return [(0, self.nbytes)]
        ranges = []
        for spec, start, trims in zip(self.specs, self.offsets, self._trims, strict=True):
            nbytes = spec.nbytes // self.capacity * length if trims else spec.nbytes
            if nbytes:
                ranges.append((start, nbytes))
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
        for name, array, spec, trims in zip(self.structure.names("item"), arrays, self.specs, self._trims, strict=True):
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
