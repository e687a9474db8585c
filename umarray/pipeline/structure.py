"""Nests of arrays: the form that items, slots and batches share.

A nest is any mix of dict, list and tuple. Its array leaves are NumPy or CuPy arrays or a `Spec`, which stands for one;
whatever else is a leaf passes through untouched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import eq, is_
from typing import Any, SupportsIndex, TypeAlias, TypeGuard, final

import numpy as np
import numpy.typing as npt

from umarray.sizes import LARGEST


@final
@dataclass(frozen=True, slots=True, init=False)
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
    dtype: np.dtype[Any]

    def __init__(self, shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = float) -> None:
        sides: Any = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for side in sides:
            if isinstance(side, bool) or not hasattr(type(side), "__index__"):
                raise TypeError(f"the shape of a Spec must be ints, not {shape!r}")
            if side.__index__() < 0:
                raise ValueError(f"the shape of a Spec cannot be negative: {shape!r}")
        kind = np.dtype(dtype)
        if kind.hasobject or kind.itemsize == 0:
            raise TypeError(f"dtype {kind!r} cannot lie in a slot: its elements have no fixed bytes")
        object.__setattr__(self, "shape", tuple(side.__index__() for side in sides))
        object.__setattr__(self, "dtype", kind.newbyteorder("="))  # CuPy reads the device's order, whatever it is told
        if self.nbytes > LARGEST:
            raise ValueError(f"a Spec of shape {self.shape} and dtype {kind} is 2**63 bytes or more")

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
    return isinstance(leaf, (np.ndarray, Spec)) or is_device_array(leaf)


def is_device_array(leaf: Any) -> bool:
    """Whether a leaf is CuPy's, which need not be imported to know; on HIP it has no CUDA array interface."""
    return any(base.__name__ == "ndarray" and base.__module__.startswith("cupy") for base in type(leaf).__mro__)


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
        self._flat = self._tree.keys if _is_flat(self._tree) else None

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
        if self._flat is not None:  # the usual form, at a fifth of the price
            return dict(zip(self._flat, arrays, strict=True))
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

    def holds(self, nest: Any, arrays: Sequence[Any]) -> bool:
        """Whether a nest is known to hold these very arrays in their places; False leaves it open."""
        if self._flat is None or type(nest) is not dict or len(nest) != len(arrays):
            return False
        return all(map(is_, nest.values(), arrays)) and all(map(eq, nest, self._flat))

    def names(self, name: str = "") -> list[str]:
        """How one writes each array leaf, such as ``['x'][0]``, after `name`."""
        return [path for path, tree in _walk(self._tree, name) if isinstance(tree, _ArrayAt)]


def _is_flat(tree: _Tree) -> TypeGuard[_Node]:
    """Whether a nest is a dict of arrays."""
    return isinstance(tree, _Node) and tree.kind is dict and all(isinstance(one, _ArrayAt) for one in tree.children)


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
            raise ValueError(f"{name} must be an array, as in the slots, not {brief(nest)}")
        arrays[tree.index] = nest
    elif isinstance(tree, _OtherAt):
        if is_array(nest) or isinstance(nest, (dict, list, tuple)):
            raise ValueError(f"{name} must be a leaf that is no array, as in the slots, not {brief(nest)}")
        others[tree.index] = nest
    elif tree.kind is dict:
        if not isinstance(nest, dict) or nest.keys() != set(tree.keys):
            found = f"keys {list(nest)}" if isinstance(nest, dict) else brief(nest)
            raise ValueError(f"{name} must be a dict with the keys {list(tree.keys)}, as in the slots, not {found}")
        for key, child in tree.items():
            _take(child, nest[key], f"{name}[{key!r}]", arrays, others)
    else:
        if not isinstance(nest, (list, tuple)) or len(nest) != len(tree.keys):
            found = f"{type(nest).__name__} of {len(nest)}" if isinstance(nest, (list, tuple)) else brief(nest)
            raise ValueError(f"{name} must be a {tree.kind.__name__} of {len(tree.keys)}, as in the slots, not {found}")
        for key, child in tree.items():
            _take(child, nest[key], f"{name}[{key!r}]", arrays, others)


def _walk(tree: _Tree, name: str) -> Iterator[tuple[str, _Tree]]:
    yield name, tree
    if isinstance(tree, _Node):
        for key, child in tree.items():
            yield from _walk(child, f"{name}[{key!r}]")


def brief(value: Any) -> str:
    """A value in a message."""
    if is_array(value):
        return f"an array of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
