"""dlpack: an export of an array that PyTorch takes, without a copy, whatever memory it lies in.

CuPy exports managed memory as `kDLCUDAManaged`, which PyTorch refuses, though it is valid device memory. So the device
type in CuPy's capsule is rewritten to `kDLCUDA`. Layouts and numbers: dlpack.h of DLPack 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any

from umarray.drivers.base import Array

_CUDA, _CUDA_MANAGED = 2, 13

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes, _get_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p

# Where DLTensor lies in what a capsule holds: at once, or after version (2 x 4 bytes), context, deleter and flags.
_TENSOR_AT = {b"dltensor": 0, b"dltensor_versioned": 32}
_DEVICE_AT = 8  # in DLTensor, after the data pointer: int32 type, int32 index


class Export:
    """What `dlpack` returns: hand it to `torch.from_dlpack` or any other consumer. It keeps its array alive."""

    __slots__ = ("_x",)

    def __init__(self, x: Array) -> None:
        self._x = x

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._x.__dlpack_device__()
        return (_CUDA if kind == _CUDA_MANAGED else int(kind)), int(index)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        wishes: dict[str, Any] = {"max_version": max_version, "copy": copy}
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            wishes["dl_device"] = dl_device
        wishes = {name: value for name, value in wishes.items() if value is not None}
        try:
            capsule = self._x.__dlpack__(stream=stream, **wishes)
        except TypeError:
            if not wishes:
                raise
            if copy or "dl_device" in wishes:
                raise BufferError("this array library exports its memory as it is, without a copy elsewhere") from None
            capsule = self._x.__dlpack__(stream=stream)  # CuPy 13 and old NumPy know no other wish; both are optional
        _as_device_memory(capsule)
        return capsule


def dlpack(x: Array) -> Export:
    """An export of `x` that PyTorch accepts on CUDA and HIP, sharing its memory.

    Parameters
    ----------
    x : array
        A CuPy or NumPy array.

    Raises
    ------
    TypeError
        `x` has no DLPack export.

    Notes
    -----
    The consumer's stream waits for work queued so far on CuPy's current stream. The block stays alive until the
    consumer's tensor dies. Afterwards order work on the two libraries' streams yourself, and tell a pool of umarray
    with `record_use` when the tensor is used on another stream.

    Examples
    --------
    >>> import numpy as np, umarray as um
    >>> x = np.arange(3.0)
    >>> y = np.from_dlpack(um.dlpack(x))
    >>> x[0] = 5
    >>> float(y[0])
    5.0
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"{x!r} (a {type(x).__name__}) cannot be exported by DLPack: give a CuPy or NumPy array")
    return Export(x)


def _as_device_memory(capsule: Any) -> None:
    """Call managed memory plain device memory in a capsule that nobody has consumed yet."""
    for name, offset in _TENSOR_AT.items():
        if _is_valid(capsule, name):
            kind = ctypes.c_int32.from_address(_get_pointer(capsule, name) + offset + _DEVICE_AT)
            if kind.value == _CUDA_MANAGED:
                kind.value = _CUDA
